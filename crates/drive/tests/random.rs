//! The fuzzers' entries on seeded random input, so that every build runs some of it.

use ocssd_base::Prng;
use ocssd_drive::fuzz::{open_image, parse_toml};
use ocssd_drive::spec::FIELDS;
use ocssd_drive::{DriveSpec, Existing, Image};

fn any_byte(prng: &mut Prng) -> u8 {
    u8::try_from(prng.below(256)).expect("below 256")
}

fn pick<'a, T>(prng: &mut Prng, list: &'a [T]) -> &'a T {
    let count = u64::try_from(list.len()).expect("a length");
    &list[usize::try_from(prng.below(count)).expect("an index")]
}

#[test]
fn random_lines_of_settings_are_refused_with_words_or_survive_their_text() {
    let values = [
        "1",
        "0",
        "2",
        "64",
        "4294967295",
        "-1",
        "true",
        "\"3ms\"",
        "3ms",
        "[\"1us\", \"2us\"]",
        "\"280MB/s\"",
        "\"5ppb\"",
        "1e-6",
        "\"tlc\"",
        "\"read_priority\"",
        "\"32MiB\"",
        "{}",
        "[",
        "\"g0/p0/c1\"",
        "\"stamp\"",
        "99999999999999999999",
    ];
    for seed in 0..300 {
        let mut prng = Prng::new(seed);
        let mut text = String::from("preset = \"tiny\"\n");
        for _ in 0..prng.below(6) {
            let key = pick(&mut prng, FIELDS).key;
            let key = if prng.below(20) == 0 { "fault" } else { key };
            text.push_str(&format!("{key} = {}\n", pick(&mut prng, &values)));
        }
        let mut bytes = text.into_bytes();
        if prng.below(3) == 0 {
            let at = usize::try_from(prng.below(u64::try_from(bytes.len()).expect("small"))).expect("small");
            bytes[at] = any_byte(&mut prng);
        }
        let run = std::panic::catch_unwind(|| parse_toml(&bytes));
        assert!(run.is_ok(), "seed {seed}: {}", String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn random_pieces_of_images_are_refused_with_words_or_open_again() {
    let (mut accepted, mut refused) = (0, 0);
    for seed in 0..400 {
        let mut prng = Prng::new(seed);
        let kind = u8::try_from(prng.below(5)).expect("below 5");
        let length = prng.below(if kind == 4 { 40 } else { 5000 });
        let mut data: Vec<u8> = (0..length).map(|_| any_byte(&mut prng)).collect();
        if kind == 3 {
            plausible_records(&mut prng, &mut data);
        }
        data.insert(0, kind);
        let run = std::panic::catch_unwind(|| open_image(&data));
        match run {
            Ok(true) => accepted += 1,
            Ok(false) => refused += 1,
            Err(_) => panic!("seed {seed}, kind {kind}: see the panic above"),
        }
    }
    assert!(accepted > 20 && refused > 20, "{accepted} accepted, {refused} refused: one side is not tried");
}

/// Records whose fields are mostly possible.
fn plausible_records(prng: &mut Prng, data: &mut [u8]) {
    for (chunk, record) in (0u8..).zip(data.chunks_mut(28)) {
        record.fill(0);
        if let [number, _, _, _, state, marked, _, _, pointer, _, _, _, cycles, ..] = record {
            *number = chunk;
            *state = u8::try_from(1 + prng.below(4)).expect("small");
            *marked = u8::try_from(prng.below(2)).expect("small");
            *pointer =
                if matches!(*state, 2 | 3) { u8::try_from(1 + prng.below(31)).expect("small") } else { 0 };
            *cycles = any_byte(prng);
        }
    }
}

/// A preset as small as the fuzzer's image.
fn small(preset: &str) -> DriveSpec {
    let mut spec = DriveSpec::preset(preset).expect("it exists");
    spec.apply_all(&["sector_bytes=512", "chunks_per_pu=8"]).expect("the smallest sector, and few chunks");
    spec
}

#[test]
fn settings_of_another_drive_under_a_right_checksum_are_refused() {
    let odd = small("odd").to_toml();
    assert!(!open_image(&[&[2], odd.as_bytes()].concat()));
    let tiny = small("tiny").to_toml();
    assert!(open_image(&[&[2], tiny.as_bytes()].concat()), "the same settings are the same drive");
}

#[test]
fn a_whole_image_given_as_bytes_is_accepted() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = folder.path().join("a.img");
    drop(Image::create(&path, &small("tiny"), Existing::Refuse).expect("it is made"));
    let bytes = std::fs::read(&path).expect("it exists");
    assert!(open_image(&[&[0], bytes.as_slice()].concat()));
    assert!(!open_image(&[&[0], &bytes[..bytes.len() - 1]].concat()));
}
