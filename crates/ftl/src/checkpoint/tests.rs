//! Checkpoints against the list of those that were completed: after a cut at any write the newest of these is found.

use super::*;
use crate::head::InstanceId;
use ocssd_base::Prng;

const PAGE_BYTES: u32 = 128;

/// The bytes of both sections.
type Content = (Vec<u8>, Vec<u8>);

fn sections(prng: &mut Prng) -> Content {
    let mut bytes =
        |most: u64| -> Vec<u8> { (0..prng.below(most)).map(|_| prng.next_u64().to_le_bytes()[0]).collect() };
    (bytes(40), bytes(600))
}

fn begin(serial: u64, (info, map): &Content) -> CheckpointWriter {
    CheckpointWriter::new(
        InstanceId::new(5),
        Serial(serial),
        PAGE_BYTES,
        &[(*b"info    ", info), (*b"map     ", map)],
    )
}

fn page() -> Vec<u8> {
    vec![0; 128]
}

fn found(media: &[Vec<u8>]) -> Checkpoints {
    let mut found = Checkpoints::of_pages(media.len());
    // Torn pages are none.
    for bytes in media {
        let _ = found.take(bytes);
    }
    found
}

/// Checkpoints one after the other, whose pages are programmed in any order; before each write, and with it torn, the newest
/// complete one is found.
#[test]
fn a_cut_at_any_write_leaves_the_newest_complete_checkpoint() {
    for seed in 0..60 {
        println!("seed {seed}");
        let mut prng = Prng::new(seed);
        let mut media: Vec<Vec<u8>> = Vec::new();
        let mut newest: Option<(u64, Content)> = None;
        for serial in 1..6 {
            let content = sections(&mut prng);
            let mut writer = begin(serial, &content);
            let bytes = u64::try_from(content.0.len() + content.1.len()).expect("small");
            assert_eq!(u64::from(writer.pages()), CheckpointWriter::pages_of(2, bytes, PAGE_BYTES));
            let mut flying: Vec<(PageIndex, Vec<u8>)> = Vec::new();
            while !writer.is_complete() {
                let mut out = page();
                if prng.below(2) == 0
                    && let Some(index) = writer.take_page(&mut out)
                {
                    flying.push((index, out));
                } else if !flying.is_empty() {
                    let count = u64::try_from(flying.len()).expect("small");
                    let at = usize::try_from(prng.below(count)).expect("small");
                    let (index, bytes) = flying.swap_remove(at);
                    let mut torn = bytes.clone();
                    torn[100..].fill(0x5A);
                    torn[40] ^= 1;
                    media.push(torn);
                    check(&media, newest.as_ref());
                    *media.last_mut().expect("a page") = bytes;
                    writer.on_written(index);
                    if !writer.is_complete() {
                        check(&media, newest.as_ref());
                    }
                }
            }
            newest = Some((serial, content));
            check(&media, newest.as_ref());
        }
    }
}

fn check(media: &[Vec<u8>], newest: Option<&(u64, Content)>) {
    let whole = found(media).newest_whole();
    assert_eq!(whole.as_ref().map(|(serial, _)| serial.0), newest.map(|&(serial, _)| serial));
    if let (Some((_, sections)), Some((_, (info, map)))) = (whole, newest) {
        assert_eq!(sections.get(*b"info    "), Ok(info.as_slice()));
        assert_eq!(sections.get(*b"map     "), Ok(map.as_slice()));
        assert_eq!(sections.get(*b"chunks  "), Err(CheckpointError::Missing(*b"chunks  ")));
    }
}

fn write_all(writer: &mut CheckpointWriter, media: &mut Vec<Vec<u8>>) {
    let mut out = page();
    while let Some(index) = writer.take_page(&mut out) {
        media.push(out.clone());
        writer.on_written(index);
    }
}

#[test]
fn the_commit_page_waits_for_all_others() {
    let mut writer = begin(1, &(vec![1; 10], vec![2; 500]));
    let mut out = page();
    let mut given = Vec::new();
    while let Some(index) = writer.take_page(&mut out) {
        given.push(index);
    }
    assert_eq!(given.len() + 1, usize::try_from(writer.pages()).expect("small"));
    for index in given {
        assert!(!writer.has_page());
        writer.on_written(index);
    }
    let commit = writer.take_page(&mut out).expect("the commit page");
    assert!(CheckpointPage::decode(&out).expect("a page").0.is_commit() && !writer.is_complete());
    writer.on_written(commit);
    assert!(writer.is_complete() && !writer.has_page());
}

#[test]
fn a_checkpoint_that_lost_a_page_gives_way_to_the_one_before() {
    let (first, second) = ((vec![1; 10], vec![2; 500]), (vec![3; 10], vec![4; 500]));
    let mut media = Vec::new();
    write_all(&mut begin(1, &first), &mut media);
    let before = media.len();
    write_all(&mut begin(2, &second), &mut media);
    for lost in before..media.len() {
        let mut left = media.clone();
        left.remove(lost);
        let mut found = found(&left);
        assert!(found.assemble(Serial(2)).is_err(), "without page {lost}");
        assert_eq!(found.newest_whole().map(|(serial, _)| serial), Some(Serial(1)), "without page {lost}");
    }
    assert_eq!(found(&media).newest().collect::<Vec<_>>(), [Serial(2), Serial(1)]);
}

/// What a mount that was cut wrote, and the next one wrote again under the same number with another content.
#[test]
fn pages_of_two_tries_of_one_number_are_not_mixed() {
    let mut media = Vec::new();
    write_all(&mut begin(7, &(vec![1; 10], vec![2; 500])), &mut media);
    media.pop();
    media.swap_remove(0);
    let mut again = Vec::new();
    let second = (vec![9; 10], vec![8; 300]);
    write_all(&mut begin(7, &second), &mut again);
    // In any order.
    again.extend(media);
    let media = again;
    let (serial, sections) = found(&media).newest_whole().expect("the second try is whole");
    assert_eq!((serial, sections.get(*b"map     ")), (Serial(7), Ok(second.1.as_slice())));
}

#[test]
fn pages_make_the_same_image_in_whatever_order_they_come_and_twice() {
    let seed = 5;
    let mut prng = Prng::new(seed);
    let content = (vec![1; 10], (0..=255).collect::<Vec<u8>>().repeat(3));
    let mut media = Vec::new();
    write_all(&mut begin(1, &content), &mut media);
    media.extend(media.clone());
    for _ in 0..50 {
        for last in (1..media.len()).rev() {
            let other = usize::try_from(prng.below(u64::try_from(last + 1).expect("small"))).expect("small");
            media.swap(last, other);
        }
        let (_, sections) =
            found(&media).newest_whole().unwrap_or_else(|| panic!("seed {seed}: no checkpoint"));
        assert_eq!(sections.get(*b"map     "), Ok(content.1.as_slice()), "seed {seed}");
    }
}

/// Each page is whole by its checksum, and the first says that the image has 2^60 bytes.
#[test]
fn a_page_that_lies_of_its_image_takes_no_more_memory_than_pages_have() {
    let page = CheckpointPage {
        instance: InstanceId::new(1),
        serial: Serial(1),
        index: PageIndex(0),
        pages: 1,
        image_bytes: 1 << 60,
        image_crc: 7,
        bytes: 4,
    };
    let mut media = vec![vec![0; 128]; 2];
    page.encode(&[1; 4], &mut media[0]);
    CheckpointPage { index: PageIndex(1), bytes: 0, ..page }.encode(&[], &mut media[1]);
    assert_eq!(found(&media).assemble(Serial(1)), Err(CheckpointError::Image));
}

#[test]
fn bytes_that_are_no_page_are_told_by_what_is_wrong() {
    let mut out = page();
    assert_eq!(CheckpointPage::decode(&out), Err(CheckpointPageError::NotACheckpointPage));
    begin(1, &(vec![1; 30], vec![])).take_page(&mut out);
    for at in [5, 10, 20, 25, 30, 40, 46, 49, 60, 80] {
        let mut torn = out.clone();
        torn[at] ^= 0x20;
        assert_eq!(CheckpointPage::decode(&torn), Err(CheckpointPageError::Corrupt), "byte {at}");
    }
    assert_eq!(CheckpointPage::decode(&out[..50]), Err(CheckpointPageError::NotACheckpointPage));
}

#[test]
fn the_begin_of_a_page_says_of_which_checkpoint_it_is() {
    let mut writer =
        CheckpointWriter::new(InstanceId::new(7), Serial(3), PAGE_BYTES, &[(*b"map     ", &[1; 700][..])]);
    let mut media = Vec::new();
    write_all(&mut writer, &mut media);
    assert!(media.len() > 2, "a page of the image, another, and the commit page");
    for (index, page) in (0..).map(PageIndex).zip(&mut media) {
        assert_eq!(CheckpointPage::claimed(&page[..CHECKPOINT_HEADER_BYTES]), Some((Serial(3), index)));
        assert_eq!(CheckpointPage::claimed(&page[..CHECKPOINT_HEADER_BYTES - 1]), None, "a header cut short");
        page[4] ^= 1;
        assert_eq!(CheckpointPage::claimed(page), None, "a version that is not known");
        page[0] ^= 1;
        assert_eq!(CheckpointPage::claimed(page), None, "no page at all");
    }
}
