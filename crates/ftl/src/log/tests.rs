//! The log against a list: what was durable is replayed, whole and in order, and nothing of what was not appended.

use super::*;
use crate::instance_geometry::PhysicalAddress;
use ocssd_base::Prng;

const PAGE_BYTES: usize = 512;
const INSTANCE: u64 = 77;

fn log(generation: u64, first: Lsn) -> Log {
    Log::new(LogConfig {
        instance: InstanceId::new(INSTANCE),
        generation: Generation(generation),
        first,
        tail: first,
        page_bytes: 512,
        depth: 3,
        copies: 1,
        pages_max: 1000,
    })
}

fn entries(prng: &mut Prng) -> Vec<LogEntry> {
    (0..1 + prng.below(30))
        .map(|_| {
            let (lba, place) = (prng.below(1 << 40), PhysicalAddress(prng.below(1 << 47)));
            let count = u32::try_from(1 + prng.below(256)).expect("small");
            match prng.below(4) {
                0 => LogEntry::Write { lba, place, count },
                1 => LogEntry::Move { lba, from: place, to: PhysicalAddress(prng.below(1 << 47)), count },
                2 => LogEntry::Owner {
                    code: u8::try_from(count - 1).expect("below 256"),
                    count,
                    numbers: [lba, place.0, 7],
                },
                _ => LogEntry::Discard { lba, count },
            }
        })
        .collect()
}

/// Pages on their way, and the media behind them.
#[derive(Default)]
struct Media {
    flying: Vec<(Lsn, Vec<u8>)>,
    pages: Vec<Vec<u8>>,
}

impl Media {
    /// One step: a page goes out, or one that is out is programmed.
    fn step(&mut self, log: &mut Log, prng: &mut Prng) {
        let mut out = vec![0; PAGE_BYTES];
        if prng.below(2) == 0
            && let Some(LogCopy { lsn, .. }) = log.take_page(&mut out)
        {
            self.flying.push((lsn, out));
        } else if !self.flying.is_empty() {
            let count = u64::try_from(self.flying.len()).expect("small");
            let (lsn, page) =
                self.flying.swap_remove(usize_of(u32::try_from(prng.below(count)).expect("small")));
            self.pages.push(page);
            log.on_written(lsn);
        }
        log.check();
    }

    /// The power goes: each page in flight was programmed, is torn, or never was.
    fn cut(&mut self, prng: &mut Prng) {
        for (_, mut page) in std::mem::take(&mut self.flying) {
            match prng.below(3) {
                0 => self.pages.push(page),
                1 => {
                    page[PAGE_BYTES / 4..].fill(0xA5);
                    self.pages.push(page);
                }
                _ => {}
            }
        }
    }

    fn found(&self, prng: &mut Prng) -> Replay {
        let mut order: Vec<&Vec<u8>> = self.pages.iter().collect();
        order.sort_by_cached_key(|_| prng.next_u64());
        let mut replay = Replay::default();
        for page in order.into_iter().filter_map(|bytes| LogPage::decode(bytes).ok()) {
            assert_eq!(page.instance.bits(), INSTANCE);
            replay.add(page);
        }
        replay
    }
}

/// Several lives with a power cut each, read back every time from the beginning.
#[test]
fn what_was_durable_is_replayed_in_order_over_many_power_cuts() {
    for seed in 0..300 {
        println!("seed {seed}");
        let mut prng = Prng::new(seed);
        let (mut media, mut kept) = (Media::default(), Vec::<Transaction>::new());
        let (mut first, mut generation) = (Lsn(1), 0);
        for _ in 0..5 {
            generation += 1;
            let mut log = log(generation, first);
            let mut appended: Vec<(Transaction, Lsn)> = Vec::new();
            let mut next = kept.last().map_or(1, |last| last.id.0 + 1);
            for _ in 0..prng.below(60) {
                if prng.below(3) == 0 {
                    let transaction = Transaction { id: TransactionId(next), entries: entries(&mut prng) };
                    let (from, last) = log.append(transaction.id, &transaction.entries);
                    assert!(from <= last);
                    appended.push((transaction, last));
                    next += 1;
                } else {
                    media.step(&mut log, &mut prng);
                }
            }
            let durable = appended.iter().take_while(|(_, last)| *last < log.durable()).count();
            media.cut(&mut prng);
            let replay = media.found(&mut prng);
            let found = replay.run(Lsn(1), Generation(1), TransactionId(0)).expect("pages of one log");
            let before = kept.len();
            assert_eq!(found.lost_before, None, "seed {seed}: power cuts lose nothing that was durable");
            assert_eq!(found.transactions[..before], kept[..], "seed {seed}: what was replayed once is gone");
            let fresh: Vec<Transaction> = appended.into_iter().map(|(transaction, _)| transaction).collect();
            let came = &found.transactions[before..];
            assert!(came.len() >= durable, "seed {seed}: {} of {durable} durable ones", came.len());
            assert_eq!(*came, fresh[..came.len()], "seed {seed}");
            kept = found.transactions;
            first = found.end;
        }
    }
}

/// A page that was durable when a later one was written is gone: the replay ends before it, and says that it did not end there.
#[test]
fn a_page_that_the_media_lost_is_missed_if_a_later_one_was_written_behind_it() {
    let mut missed = 0;
    for seed in 0..200 {
        let mut prng = Prng::new(seed);
        let (mut log, mut media) = (log(3, Lsn(1)), Media::default());
        for id in 1..=40 {
            log.append(TransactionId(id), &entries(&mut prng));
            media.step(&mut log, &mut prng);
        }
        while log.is_pending() {
            media.step(&mut log, &mut prng);
        }
        let pages = media.pages.iter().filter_map(|bytes| LogPage::<LogEntry>::decode(bytes).ok());
        let durable = pages.filter_map(|page| page.durable).max().expect("each page says it");
        assert!(durable.0 + u64::from(PAGES_AHEAD_MAX) >= log.next().0, "seed {seed}: {}", durable.0);
        let lost = Lsn(1 + prng.below(log.next().0 - 1));
        media.pages.retain(|bytes| LogPage::<LogEntry>::decode(bytes).is_ok_and(|page| page.lsn != lost));
        let replay = media.found(&mut prng);
        let found = replay.run(Lsn(1), Generation(3), TransactionId(0)).expect("one log");
        assert_eq!(found.end, lost, "seed {seed}");
        assert_eq!(found.lost_before, (lost < durable).then_some(durable), "seed {seed}");
        missed += u32::from(found.lost_before.is_some());
        // Whoever went on without it made a checkpoint of a generation of its own: what older ones say is settled.
        let later = replay.run(lost, Generation(4), TransactionId(0)).expect("nothing of that generation");
        assert_eq!(later.lost_before, None, "seed {seed}");
    }
    assert!(missed > 150, "{missed} of 200 lost pages were missed");
}

#[test]
fn a_checkpoint_has_what_replay_leaves_out() {
    let mut prng = Prng::new(5);
    let (mut log, mut media) = (log(3, Lsn(9)), Media::default());
    let all: Vec<Transaction> =
        (1..=40).map(|id| Transaction { id: TransactionId(id), entries: entries(&mut prng) }).collect();
    let starts: Vec<Lsn> = all.iter().map(|one| log.append(one.id, &one.entries).0).collect();
    while log.is_pending() {
        media.step(&mut log, &mut prng);
    }
    let replay = media.found(&mut prng);
    for (index, &start) in starts.iter().enumerate() {
        let applied = TransactionId(u64::try_from(index).expect("small"));
        let found = replay.run(start, Generation(3), applied).expect("one log");
        assert_eq!(found.transactions, all[index..], "from page {}", start.0);
        assert_eq!((found.end, found.aborted_entries), (log.next(), 0));
    }
    let none = replay.run(Lsn(9), Generation(4), TransactionId(0)).expect("nothing of that generation");
    assert!(
        none.transactions.is_empty() && none.end == Lsn(9),
        "pages of an older generation count for nothing"
    );
}

#[test]
fn a_lone_commit_goes_out_at_once_and_others_gather_behind_it() {
    let mut log = log(1, Lsn(1));
    let mut out = vec![0; PAGE_BYTES];
    assert!(!log.has_page() && !log.is_pending());
    let discard = [LogEntry::Discard { lba: 5, count: 2 }];
    let (_, first) = log.append(TransactionId(1), &discard);
    assert_eq!(log.take_page(&mut out), Some(LogCopy { lsn: first, copy: 0 }));
    let (_, second) = log.append(TransactionId(2), &discard);
    assert_eq!(log.append(TransactionId(3), &discard).1, second, "one page for both");
    assert_eq!(log.take_page(&mut out), None, "a page is in flight");
    log.on_written(first);
    assert_eq!((log.durable(), log.take_page(&mut out)), (second, Some(LogCopy { lsn: second, copy: 0 })));
}

#[test]
fn a_page_that_lands_early_is_not_durable_before_those_it_follows() {
    let mut prng = Prng::new(1);
    let mut log = log(1, Lsn(1));
    for id in 1..20 {
        log.append(TransactionId(id), &entries(&mut prng));
    }
    let mut out = vec![0; PAGE_BYTES];
    let pages: Vec<Lsn> = std::iter::from_fn(|| log.take_page(&mut out)).map(|page| page.lsn).collect();
    assert_eq!(pages, [Lsn(1), Lsn(2), Lsn(3)], "as many as the depth");
    log.on_written(Lsn(3));
    log.on_written(Lsn(2));
    assert_eq!(log.durable(), Lsn(1));
    log.on_written(Lsn(1));
    assert_eq!(log.durable(), Lsn(4));
}

#[test]
fn of_a_page_written_twice_either_is_enough_and_both_make_it_durable() {
    let mut log = Log::new(LogConfig { copies: 2, ..log(1, Lsn(1)).config });
    let (mut one, mut other) = (vec![0; PAGE_BYTES], vec![0; PAGE_BYTES]);
    log.append(TransactionId(1), &[LogEntry::Discard { lba: 3, count: 1 }]);
    let copy = |copy| Some(LogCopy { lsn: Lsn(1), copy });
    assert_eq!((log.take_page(&mut one), log.take_page(&mut other)), (copy(0), copy(1)));
    assert!(one == other && !log.has_page());
    log.on_written(Lsn(1));
    assert_eq!(log.durable(), Lsn(1), "a copy is on its way");
    log.on_written(Lsn(1));
    assert_eq!(log.durable(), Lsn(2));
    one[50] ^= 1;
    let mut replay = Replay::<LogEntry>::default();
    [one, other].iter().filter_map(|bytes| LogPage::decode(bytes).ok()).for_each(|page| replay.add(page));
    let found = replay.run(Lsn(1), Generation(1), TransactionId(0)).expect("one log");
    assert_eq!(found.transactions.len(), 1);
}

#[test]
fn a_full_log_says_so_until_it_is_truncated() {
    let config = LogConfig { pages_max: 4, ..log(1, Lsn(1)).config };
    let mut log = Log::new(config);
    let per_page = log.entries_per_page();
    let mut out = vec![0; PAGE_BYTES];
    assert!(log.has_room(4 * per_page) && !log.has_room(4 * per_page + 1));
    let many = vec![LogEntry::Discard { lba: 1, count: 1 }; 4 * per_page - 1];
    log.append(TransactionId(1), &many);
    assert!(!log.has_room(1));
    assert_eq!(log.pages(), 4, "a mount would read all of them");
    while let Some(LogCopy { lsn, .. }) = log.take_page(&mut out) {
        log.on_written(lsn);
    }
    log.truncate(Lsn(3));
    assert_eq!(log.pages(), 2, "it would begin at the third");
    assert!(log.has_room(2 * per_page) && !log.has_room(2 * per_page + 1));
    log.check();
}

#[test]
fn bytes_that_are_no_page_are_told_by_what_is_wrong() {
    let mut page = vec![0; PAGE_BYTES];
    assert_eq!(LogPage::<LogEntry>::decode(&page), Err(PageError::NotALogPage));
    assert_eq!(LogPage::<LogEntry>::decode(&page[..7]), Err(PageError::NotALogPage));
    let mut log = log(1, Lsn(1));
    log.append(TransactionId(1), &[LogEntry::Discard { lba: 1, count: 1 }]);
    log.take_page(&mut page);
    for at in [4, 9, 20, 30, 33, 38, 41, 70] {
        let mut torn = page.clone();
        torn[at] ^= 0x40;
        assert_eq!(LogPage::<LogEntry>::decode(&torn), Err(PageError::Corrupt), "byte {at}");
    }
    let mut prng = Prng::new(3);
    for _ in 0..2000 {
        let random: Vec<u8> = (0..100).map(|_| prng.next_u64().to_le_bytes()[0]).collect();
        assert!(LogPage::<LogEntry>::decode(&random).is_err());
    }
}

#[test]
fn pages_that_contradict_each_other_are_refused() {
    let page = |lsn, entries| LogPage {
        instance: InstanceId::new(1),
        generation: Generation(1),
        lsn: Lsn(lsn),
        durable: None,
        entries,
    };
    let commit = |id, entries| LogEntry::Commit { transaction: TransactionId(id), entries };
    let mut replay = Replay::default();
    replay.add(page(1, vec![commit(4, 0), commit(4, 0)]));
    let error = replay.run(Lsn(1), Generation(1), TransactionId(0)).expect_err("4 follows 4");
    assert!(error.to_string().contains("count up"), "{error}");
    replay.add(page(1, vec![commit(4, 1)]));
    let error = replay.run(Lsn(1), Generation(1), TransactionId(0)).expect_err("an entry is missing");
    assert!(error.to_string().contains("should have 1 entries"), "{error}");
    assert!(replay.run(Lsn(1), Generation(1), TransactionId(4)).is_ok(), "a checkpoint has it");
}

#[test]
fn the_first_bytes_of_a_page_say_how_long_it_is() {
    let mut log = log(1, Lsn(1));
    let mut page = vec![0; PAGE_BYTES];
    assert_eq!(used_bytes(&page), None, "nothing is no page");
    let write = LogEntry::Write { lba: 1, place: PhysicalAddress(2), count: 3 };
    log.append(TransactionId(1), &[write, write]);
    log.take_page(&mut page).expect("a page");
    let used = HEADER_BYTES + 3 * ENTRY_BYTES;
    assert_eq!(used_bytes(&page[..HEADER_BYTES]), Some(used));
    assert!(LogPage::<LogEntry>::decode(&page[..used]).is_ok(), "the rest is zeroes");
    assert_eq!(LogPage::<LogEntry>::decode(&page[..used - 1]), Err(PageError::Corrupt));
    assert_eq!(used_bytes(&page[..HEADER_BYTES - 1]), None);
    page[32..36].fill(0xff);
    assert!(used_bytes(&page) > Some(PAGE_BYTES), "a torn page may say anything");
}
