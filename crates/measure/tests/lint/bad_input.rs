//! What is no result: one sentence each, and never a panic.

use crate::made::{fio, own};
use ocssd_base::Prng;
use ocssd_measure::lint::{RULES, Selection, Settings, lint, read};

const ROWS: &str = include_str!("../../../../examples/lint/report-2024.csv");

#[test]
fn what_is_no_result_is_refused_with_what_was_expected_and_found() {
    let whole = fio(&[]);
    let cases: [(&[u8], &str); 15] = [
        (b"", "an empty file"),
        (b"\xff\xfe", "byte 0 is not UTF-8"),
        (b"a.fio: (g=0): rw=randread", "text that begins `a.fio: (g=0): rw=randread`"),
        (&whole.as_bytes()[..whole.len() / 2], "cut short"),
        (b"{\"a\": 1}", "an object with the keys a"),
        (b"{\"jobs\": 3}", "an object with the keys jobs"),
        (b"{\"jobs\": []}", "`jobs` is empty"),
        (b"{\"jobs\": [7]}", "job 0 of `jobs`, but found a number"),
        (b"{\"jobs\": [{\"jobname\": \"a\"}]}", "an object with the keys jobname"),
        (b"[1]", "a list with a number in it"),
        (b"[]", "at least one row"),
        (b"name,iops\n", "at least one row"),
        (b"name,iosp\na,1\n", "the column `iosp`"),
        (b"name,iops\na,1 000\n", "row 1, column `iops`: expected a number of 0 or more, without separators"),
        (b"name,iops\na,1,2\n", "as many fields"),
    ];
    for (bytes, part) in cases {
        let error = read("the-file", bytes).map(|read| read.cells.len()).expect_err(part).to_string();
        assert!(error.starts_with("the-file: ") && error.contains(part), "{error}");
        assert!(error.contains("expected") && !error.contains('\n'), "{error}");
    }
}

#[test]
fn every_value_of_a_table_says_what_may_stand_there() {
    for (column, value) in [
        ("read_percent", "101"),
        ("read_percent", "half"),
        ("order", "zig-zag"),
        ("direct", "perhaps"),
        ("depth", "-1"),
        ("block_bytes", "4x"),
        ("latency_mean_us", "NaN"),
        ("p99.9_us", "inf"),
        ("p101_us", "1"),
    ] {
        let text = format!("name,{column}\na,{value}\n");
        let error = read("t", text.as_bytes()).map(|read| read.cells.len()).expect_err(&text).to_string();
        assert!(error.contains(column), "{error}");
    }
}

/// The text up to a random place.
fn cut(source: &str, prng: &mut Prng) -> Vec<u8> {
    let length = u64::try_from(source.len()).expect("a short text");
    source.as_bytes()[..usize::try_from(prng.below(length)).expect("within the text")].to_vec()
}

/// The text with random numbers in place of a few of its own.
fn renumbered(source: &str, prng: &mut Prng) -> Vec<u8> {
    const NUMBERS: [&str; 8] =
        ["0", "1", "18446744073709551615", "1e300", "-1", "0.0", "1e-300", "99999999999999999999"];
    let mut text = String::new();
    let mut rest = source;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, number) = rest.split_at(at);
        let end = number.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(number.len());
        let chosen = NUMBERS[usize::try_from(prng.below(8)).expect("below 8")];
        let is_kept = before.ends_with(|c: char| c != ' ' && c != ':' && c != ',') || prng.below(6) > 0;
        text += before;
        text += if is_kept { &number[..end] } else { chosen };
        rest = &number[end..];
    }
    (text + rest).into_bytes()
}

/// Cuts a result at a random place, or puts other numbers into it: whatever is still read can be judged.
#[test]
fn cut_and_damaged_results_never_panic() {
    let sources = [fio(&[]), own(&[]), ROWS.to_owned()];
    let (mut refused, mut judged) = (0, 0);
    for seed in 0..600 {
        let mut prng = Prng::new(seed);
        let source = &sources[usize::try_from(seed % 3).expect("below 3")];
        let bytes = match seed % 2 {
            0 => cut(source, &mut prng),
            _ => renumbered(source, &mut prng),
        };
        let outcome = std::panic::catch_unwind(|| match read("cut", &bytes) {
            Ok(evidence) => {
                let cells = evidence.cells.len();
                lint(&[evidence], &Settings::default(), &Selection::all()).judged.len() == cells * RULES.len()
            }
            Err(error) => error.to_string().is_empty(),
        });
        match (outcome, read("cut", &bytes).is_ok()) {
            (Ok(true), true) => judged += 1,
            (Ok(false), false) => refused += 1,
            (outcome, is_read) => panic!("seed {seed}: {outcome:?}, read: {is_read}"),
        }
    }
    assert!(refused > 100 && judged > 100, "{refused} refused, {judged} judged: one kind was hardly tried");
}
