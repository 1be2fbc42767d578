//! What is in the blocks: fillers, patterns, stamps; and that wrong content is found and reported.

use crate::world::{Outcome, World, preset};
use ocssd_flash::Config;
use ocssd_lightnvm::Payload;
use ocssd_lightnvm::block::BlockOp;

const BLOCK: usize = 4096;
/// Bytes of the stamp at the start of a block.
const STAMP: usize = 16;

/// What block 3 holds after two passes over the device, and after one.
fn content(settings: &str) -> [Vec<u8>; 2] {
    [1, 2].map(|loops| {
        let mut world = World::memory();
        world.run(&format!("[j]\nrw=write\nsize=64k\nloops={loops}\n{settings}"));
        world.memory.borrow().content[&3].clone()
    })
}

#[test]
fn buffers_hold_what_was_asked_for() {
    let [zeroes, _] = content("zero_buffers");
    assert!(zeroes[STAMP..].iter().all(|&byte| byte == 0));
    assert_eq!(zeroes[..8], 3u64.to_le_bytes(), "the stamp says which block it is");
    let [pattern, _] = content("buffer_pattern=\"abc\"");
    assert!(pattern[STAMP..].chunks(3).all(|chunk| b"abc".starts_with(chunk)));
    let [kept, again] = content("");
    assert!(
        kept[STAMP..].iter().any(|&byte| byte != 0) && kept[STAMP..] == again[STAMP..],
        "a buffer is reused"
    );
    let [fresh, again] = content("refill_buffers");
    assert_ne!(fresh[STAMP..], again[STAMP..], "new content for every write");
    assert_eq!(fresh.len(), BLOCK);
    let [bare, _] = content("verify=pattern\nverify_pattern=0x11223344");
    assert!(bare.chunks(4).all(|chunk| chunk == &bare[..4]), "no stamp in it");
}

#[test]
fn content_is_really_on_a_drive() {
    let config = Config { payload: Payload::Bytes, ..preset("tiny") };
    let mut world = World::linear(config);
    world.run("[j]\nrw=write\nbs=16k\nsize=50%\nbuffer_pattern=\"ocssd\"");
    let data = world.read(7, 1).expect("written and readable");
    assert!(data[STAMP..].chunks(5).all(|chunk| b"ocssd".starts_with(chunk)));
}

fn lied_to(text: &str) -> Outcome {
    let mut world = World::memory();
    world.memory.borrow_mut().lie = Some(33);
    world.run(text)
}

#[test]
fn what_was_written_is_read_back_and_compared() {
    for word in ["md5", "crc32c", "crc64", "sha256", "xxhash", "meta", "pattern\nverify_pattern=\"xy\""] {
        for settings in ["", "zero_buffers", "refill_buffers", "iodepth=8\nioengine=libaio"] {
            let text = format!("[j]\nrw=randwrite\nsize=400k\nverify={word}\n{settings}");
            let mut world = World::memory();
            let good = world.run(&text);
            let verify = good.only().verify.expect("the job verifies");
            assert_eq!((verify.checked, verify.failed, good.only().error), (100, 0, 0), "{text}");
            let reads = world.seen().iter().filter(|seen| seen.op == BlockOp::Read).count();
            assert_eq!((reads, good.only().read.total_ios), (100, 0), "reading back is not measured: {text}");
            let bad = lied_to(&text);
            let verify = bad.only().verify.expect("the job verifies");
            assert_eq!((verify.failed, bad.only().error, bad.only().error_count), (1, 84, 1), "{text}");
        }
    }
}

#[test]
fn do_verify_and_null_compare_nothing() {
    for settings in ["verify=crc32c\ndo_verify=0", "verify=null", ""] {
        let outcome = lied_to(&format!("[j]\nrw=write\nsize=400k\n{settings}"));
        assert_eq!(
            (outcome.only().error, outcome.only().verify.map_or(0, |verify| verify.failed)),
            (0, 0),
            "{settings}"
        );
    }
    let mut world = World::memory();
    world.run("[j]\nrw=write\nsize=400k\nverify=crc32c\ndo_verify=0");
    assert!(world.seen().iter().all(|seen| seen.op != BlockOp::Read));
}

#[test]
fn a_mixed_job_compares_what_it_reads_itself() {
    let bad = lied_to(
        "[j]\nrw=randrw\nsize=400k\nverify=crc32c\nnorandommap\nloops=9\ndo_verify=0\niodepth=4\nioengine=libaio",
    );
    assert_eq!((bad.only().error, bad.only().verify.map(|verify| verify.failed)), (84, Some(1)));
    let mut world = World::memory();
    let good = world.run("[j]\nrw=randrw\nverify=crc32c\nnorandommap\nloops=3\niodepth=16\nioengine=libaio");
    assert_eq!(good.only().error, 0);
    assert!(good.only().verify.is_some_and(|verify| verify.checked > 1_500 && verify.failed == 0));
}

#[test]
fn verify_backlog_reads_back_in_between() {
    let mut world = World::memory();
    world.run("[j]\nrw=write\nsize=160k\nverify=crc32c\nverify_backlog=10");
    let ops: Vec<bool> = world.seen().iter().map(|seen| seen.op == BlockOp::Read).collect();
    let expected: Vec<bool> = (0..8).flat_map(|run| [run % 2 == 1; 10]).collect();
    assert_eq!(ops, expected);
}

#[test]
fn verify_fatal_ends_even_a_job_that_goes_on_after_wrong_blocks() {
    let text = "[j]\nrw=write\nsize=400k\nbs=8k\nverify=crc32c\ncontinue_on_error=verify\nverify_fatal=";
    let (on, off) = (lied_to(&format!("{text}1")), lied_to(&format!("{text}0")));
    let checked = |outcome: &Outcome| outcome.only().verify.map(|verify| verify.checked);
    assert_eq!((on.only().error, checked(&on)), (84, Some(34)), "up to the wrong block");
    assert_eq!((off.only().error, off.only().first_error, checked(&off)), (0, Some(84), Some(100)));
    let none = lied_to("[j]\nrw=write\nsize=400k\nbs=8k\nverify=crc32c");
    assert_eq!(
        (none.only().error, checked(&none)),
        (84, Some(34)),
        "the whole I/O is compared, then the job ends"
    );
}

#[test]
fn jobs_that_write_different_things_are_compared_with_what_each_wrote() {
    let text = "[global]\nsize=400k\nrw=randwrite\n[a]\nverify=crc32c\nzero_buffers\n[b]\noffset=400k\nverify=md5\n\
                [c]\noffset=800k\nverify=pattern\nverify_pattern=0xaa\n\
                [reader]\nstonewall\nrw=randread\nverify=crc32c\nsize=1200k";
    let good = World::memory().run(text);
    let found: Vec<_> = good
        .results
        .iter()
        .map(|result| (result.error, result.verify.map(|verify| verify.checked)))
        .collect();
    assert_eq!(found, [(0, Some(100)), (0, Some(100)), (0, Some(100)), (0, Some(300))]);
    let bad = lied_to(text);
    assert_eq!(bad.results.iter().map(|result| result.error).collect::<Vec<_>>(), [84, 0, 0, 84]);
}

#[test]
fn a_verifying_job_on_a_raw_window_reads_back_all_that_can_be_read() {
    for (unit, payload) in [("16k", Payload::Stamp), ("64k", Payload::Bytes)] {
        let mut world = World::linear(Config { payload, ..preset("tiny") });
        let text = format!(
            "[j]\nrw=randwrite\nbs={unit}\nio_size=2m\nverify=crc32c\nverify_backlog=4\nmax_open_zones=2"
        );
        let outcome = world.run(&text);
        let verify = outcome.only().verify.expect("the job verifies");
        assert_eq!((outcome.only().error, verify.failed), (0, 0));
        assert_eq!(verify.checked + outcome.unread, 512, "of 512 blocks written");
        assert!(verify.checked >= 512 - 2 * 64 - 32, "{} checked", verify.checked);
    }
}

#[test]
fn a_trimmed_block_is_not_compared_and_a_written_one_again_is() {
    let mut world = World::memory();
    let outcome =
        world.run("[j]\nrw=randtrimwrite\nsize=400k\nverify=crc32c\nloops=2\niodepth=4\nioengine=libaio");
    assert_eq!((outcome.only().error, outcome.only().verify.map(|verify| verify.failed)), (0, Some(0)));
    let mut world = World::memory();
    let outcome = world.run("[w]\nrw=write\nsize=400k\nverify=crc32c\n[t]\nstonewall\nrw=randtrim\nsize=400k\n[r]\nstonewall\nrw=read\nsize=400k\nverify=crc32c");
    assert!(outcome.results.iter().all(|result| result.error == 0));
    assert_eq!(outcome.results[2].verify.map(|verify| verify.checked), Some(0));
}
