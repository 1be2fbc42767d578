//! What a simulated file keeps, and what it forgets.

use super::*;

const MILLION: u32 = 1_000_000;

fn file() -> (SimulatedFile, OpenSimulated) {
    let file = SimulatedFile::new(3);
    let open = file.open().expect("nobody has it");
    open.clear(1 << 20).expect("it is empty");
    (file, open)
}

fn read(open: &OpenSimulated, at: u64) -> [u8; 8] {
    let mut bytes = [9; 8];
    assert_eq!(open.read_at(&mut bytes, at).expect("it is read"), 8);
    bytes
}

#[test]
fn what_was_synced_survives_the_host_and_the_rest_only_the_process() {
    let (file, open) = file();
    open.write_at(&[1; 8], 4092).expect("there is room");
    open.sync().expect("the disk works");
    open.write_at(&[2; 8], 4092).expect("there is room");
    drop(open);
    let open = file.open().expect("the process is gone");
    assert_eq!(read(&open, 4092), [2; 8]);
    drop(open);
    file.crash(Unsynced::Lost);
    assert_eq!(read(&file.open().expect("nobody has it"), 4092), [1; 8]);
}

#[test]
fn a_crash_may_leave_some_pages_and_not_others() {
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..32 {
        let file = SimulatedFile::new(seed);
        let open = file.open().expect("nobody has it");
        open.clear(1 << 20).expect("it is empty");
        // Across the border of two pages.
        open.write_at(&[5; 8], 4092).expect("there is room");
        drop(open);
        file.crash(Unsynced::InPart);
        seen.insert(read(&file.open().expect("nobody has it"), 4092));
    }
    let expected = [[0; 8], [0, 0, 0, 0, 5, 5, 5, 5], [5, 5, 5, 5, 0, 0, 0, 0], [5; 8]];
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), expected);
}

#[test]
fn a_failed_sync_is_not_made_good_by_the_next() {
    let mut lost = 0;
    for seed in 0..16 {
        let file = SimulatedFile::new(seed);
        let open = file.open().expect("nobody has it");
        open.clear(1 << 20).expect("it is empty");
        open.write_at(&[7; 8], 0).expect("there is room");
        file.set_faults(FileFaults {
            sync_error: MILLION,
            failed_sync: Unsynced::InPart,
            ..FileFaults::default()
        });
        assert_eq!(open.sync().expect_err("it fails").raw_os_error(), Some(5));
        file.set_faults(FileFaults::default());
        open.sync().expect("nothing is left to write, as far as is known");
        assert_eq!(read(&open, 0), [7; 8], "memory has it still");
        open.drop_clean_pages();
        lost += u32::from(read(&open, 0) == [0; 8]);
    }
    assert!((2..15).contains(&lost), "{lost} of 16 pages were lost");
}

#[test]
fn a_page_that_is_written_again_after_a_failed_sync_is_synced_whole() {
    let (file, open) = file();
    open.write_at(&[7; 8], 0).expect("there is room");
    file.set_faults(FileFaults { sync_error: MILLION, ..FileFaults::default() });
    open.sync().expect_err("it fails");
    file.set_faults(FileFaults::default());
    open.write_at(&[8; 8], 100).expect("there is room");
    open.sync().expect("the disk works");
    drop(open);
    file.crash(Unsynced::Lost);
    let open = file.open().expect("nobody has it");
    assert_eq!((read(&open, 0), read(&open, 100)), ([7; 8], [8; 8]));
}

#[test]
fn a_full_file_system_takes_what_fits_and_what_is_there_already() {
    let (file, open) = file();
    file.set_faults(FileFaults { pages_max: Some(2), ..FileFaults::default() });
    assert_eq!(open.write_at(&[1; 3 * 4096], 0).expect("some of it"), 2 * 4096);
    let error = open.write_at(&[1; 8], 2 * 4096).expect_err("no page is left");
    assert_eq!((error.kind(), file.pages()), (io::ErrorKind::StorageFull, 2));
    assert_eq!(open.write_at(&[2; 8], 100).expect("the page is there"), 8);
    file.set_faults(FileFaults { pages_max: Some(3), ..FileFaults::default() });
    assert_eq!(open.write_at(&[1; 8], 2 * 4096).expect("space was freed"), 8);
}

#[test]
fn a_read_only_file_system_takes_nothing_and_cannot_write_what_waits() {
    let (file, open) = file();
    open.write_at(&[1; 8], 0).expect("there is room");
    file.set_faults(FileFaults { is_read_only: true, ..FileFaults::default() });
    assert_eq!(open.write_at(&[1; 8], 0).expect_err("it fails").kind(), io::ErrorKind::ReadOnlyFilesystem);
    assert_eq!(open.sync().expect_err("it fails").kind(), io::ErrorKind::ReadOnlyFilesystem);
    open.sync().expect("nothing waits any more, as far as is known");
}

#[test]
fn calls_fail_and_fall_short_as_often_as_asked() {
    let (file, open) = file();
    file.set_faults(FileFaults {
        write_error: MILLION / 4,
        read_error: MILLION / 4,
        short: MILLION / 4,
        ..FileFaults::default()
    });
    let (mut failed, mut short, mut interrupted) = (0, 0, 0);
    for number in 0..1000 {
        let mut bytes = [3; 3 * 4096];
        let done = if number % 2 == 0 { open.write_at(&bytes, 8) } else { open.read_at(&mut bytes, 8) };
        match done {
            Ok(count) if number % 2 == 0 && count < bytes.len() => {
                assert_eq!((count + 8) % 4096, 0, "a page was torn");
                short += 1;
            }
            Ok(count) => short += u32::from(count < bytes.len()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => interrupted += 1,
            Err(error) => failed += u32::from(error.raw_os_error() == Some(5)),
        }
    }
    assert!((200..300).contains(&failed), "{failed} of 1000 failed");
    assert!((120..250).contains(&short) && interrupted > 0, "{short} short, {interrupted} interrupted");
    file.set_faults(FileFaults { writes_left: Some(1), ..FileFaults::default() });
    open.write_at(&[1; 8], 0).expect("one more");
    open.write_at(&[1; 8], 0).expect_err("and no more");
}

#[test]
fn one_opens_it_at_a_time_and_forks_go_their_own_ways() {
    let (file, open) = file();
    assert_eq!(file.open().expect_err("it is open").kind(), io::ErrorKind::WouldBlock);
    open.write_at(&[1; 8], 0).expect("there is room");
    let fork = file.fork();
    open.write_at(&[2; 8], 0).expect("there is room");
    assert_eq!(read(&fork.open().expect("nobody has it"), 0), [1; 8]);
    assert_eq!(read(&open, 0), [2; 8]);
}
