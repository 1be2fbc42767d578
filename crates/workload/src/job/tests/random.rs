//! Random and mutated text: reading it never panics, and what it gives can be said again as a command line.

use ocssd_base::Prng;

use super::super::table::option_names;
use crate::job::fuzz_parse;

/// Pieces that valid and nearly valid files are made of.
const PIECES: [&str; 44] = [
    "[global]\n",
    "[a]\n",
    "[b]\n",
    "=",
    ",",
    ":",
    "-",
    "/",
    "%",
    "z",
    "(",
    ")",
    "^",
    "*",
    "\n",
    " ",
    ";",
    "#",
    "--name=a\n",
    "--",
    ";ocssd: ",
    "place=pu:",
    "drive=x",
    "include ",
    "missing",
    "${A}",
    "${",
    "$jobname",
    "$ncpus",
    "0x",
    "4k",
    "64k/90",
    "18446744073709551615",
    "1.5g",
    "randread",
    "rw:8",
    "zipf:1.2",
    "crc32c",
    "\"",
    "\u{feff}",
    "é",
    "kb_base=1000\n",
    "bs=,8k\n",
    "1",
];

fn pick<'a>(prng: &mut Prng, from: &[&'a str]) -> &'a str {
    let count = u64::try_from(from.len()).expect("a short list");
    from[usize::try_from(prng.below(count)).expect("an index")]
}

/// A file whose lines are mostly known options with random values.
fn compose(prng: &mut Prng, names: &[&str]) -> String {
    let mut text = String::from(if prng.chance(1 << 31) { "[j]\n" } else { "--name=j\n" });
    for _ in 0..prng.below(12) {
        if prng.chance(3 << 30) {
            let dashes = if prng.chance(1 << 31) { "--" } else { "" };
            text.push_str(&format!("{dashes}{}=", pick(prng, names)));
        }
        for _ in 0..=prng.below(3) {
            text.push_str(pick(prng, &PIECES));
        }
        text.push('\n');
    }
    text
}

fn mutate(prng: &mut Prng, text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..prng.below(4) {
        let length = u64::try_from(bytes.len()).expect("a short text");
        let at = usize::try_from(prng.below(length + 1)).expect("an index");
        let byte = prng.next_u64().to_le_bytes()[0];
        match prng.below(3) {
            0 => bytes.insert(at, byte),
            1 if at < bytes.len() => bytes[at] = byte,
            _ => bytes.truncate(at),
        }
    }
    bytes
}

/// Goal: the random files are not all refused at the first word, or the test below would show little.
#[test]
fn composed_text_is_often_valid() {
    let names: Vec<&str> = option_names().collect();
    let accepted = (0..300).filter(|seed| {
        let text = compose(&mut Prng::new(*seed), &names);
        super::read(&text).is_ok()
            || super::super::parse_command_line(&lines(&text), &|_| None, &|_| Err(String::new())).is_ok()
    });
    let count = accepted.count();
    assert!(count >= 15, "only {count} of 300 (seeds 0 to 299) are valid");
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

/// Goal: no input panics. Method: composed and mutated files; the failing seed and text are in the message.
#[test]
fn any_text_is_read_or_refused_in_words() {
    let names: Vec<&str> = option_names().collect();
    let files: Vec<&str> = super::files::OWN_FILES.iter().map(|(_, text)| *text).collect();
    for seed in 0..1_500 {
        let mut prng = Prng::new(seed);
        let text = if prng.chance(1 << 30) {
            pick(&mut prng, &files).to_owned()
        } else {
            compose(&mut prng, &names)
        };
        let bytes = mutate(&mut prng, &text);
        if std::panic::catch_unwind(|| fuzz_parse(&bytes)).is_err() {
            panic!("seed {seed}: {:?}", String::from_utf8_lossy(&bytes));
        }
    }
}

#[test]
fn any_bytes_are_read_or_refused_in_words() {
    for seed in 0..500 {
        let mut prng = Prng::new(seed);
        let bytes: Vec<u8> = (0..prng.below(300)).map(|_| prng.next_u64().to_le_bytes()[0]).collect();
        if std::panic::catch_unwind(|| fuzz_parse(&bytes)).is_err() {
            panic!("seed {seed}: {bytes:?}");
        }
    }
}
