//! Hand-written cases, and random trials.

use super::*;
use crate::model::Model;
use crate::model::trial::{Reference, Trial};
use ocssd_base::Prng;
use ocssd_lightnvm::interface::log_structured::{
    LogAnswer, LogLimits, LogOp, LogRefusal, LogReply, LogRequest, PageEntry, PageId, SessionId, Wsn,
};
use ocssd_lightnvm::interface::{Content, Durability, List, Piece, StageId, StageLimits, StageOp};
use ocssd_lightnvm::{BufId, Buffers, Geometry, Payload, PayloadFormat, Status, Tag};

const LIMITS: LogLimits = LogLimits {
    flush_bytes_max: 4_000,
    flush_pages_max: 8,
    page_bytes_max: 700,
    page_align_bytes: 1,
    sessions_max: 3,
    capacity_bytes: 12_000,
    pages_max: 20,
    stages: StageLimits { stages_max: 2, bytes_max: 4_000 },
};

fn pool() -> Buffers {
    Buffers::new(PayloadFormat::new(Payload::Stamp, &Geometry::example(1, 1, 4, 24, 24)))
}

fn target() -> Reference<LogModel> {
    Reference { model: LogModel::new(LIMITS), buffers: pool() }
}

/// A flush of pages of these lengths, one after the other, all bytes `byte`; length 0 deletes.
fn flush(buffers: &mut Buffers, session: u64, wsn: u64, byte: u8, pages: &[(u64, u32)]) -> LogOp {
    let (payload, table) = (buffers.take_whole(1), buffers.take_whole(1));
    let mut bytes = 0;
    let mut rows = Vec::new();
    for &(page, length) in pages {
        let offset = if length == 0 { 0 } else { bytes };
        rows.push(PageEntry { page: PageId(page), offset, bytes: length });
        bytes += length;
    }
    buffers.whole_mut(payload, 0, 1).fill(byte);
    LogOp::Flush {
        session: SessionId(session),
        wsn: Wsn(wsn),
        content: Content::Piece(Piece { buffer: payload, first_byte: 0, bytes }),
        pages: List::write(buffers, table, &rows),
        durability: Durability::AtFlush,
    }
}

fn durable(op: LogOp) -> LogOp {
    let LogOp::Flush { session, wsn, content, pages, .. } = op else { unreachable!("a flush") };
    LogOp::Flush { session, wsn, content, pages, durability: Durability::AtReply }
}

fn open(session: u64) -> LogOp {
    LogOp::OpenSession { session: SessionId(session) }
}

fn ask(target: &mut Reference<LogModel>, op: LogOp) -> LogReply {
    target.ask(LogRequest { tag: Tag(1), op })
}

fn flushed(
    target: &mut Reference<LogModel>,
    session: u64,
    wsn: u64,
    byte: u8,
    pages: &[(u64, u32)],
) -> LogReply {
    let op = flush(&mut target.buffers, session, wsn, byte, pages);
    ask(target, op)
}

const fn progress(applied: u64, durable: u64) -> LogAnswer {
    LogAnswer::Progress { applied: Wsn(applied), durable: Wsn(durable) }
}

#[test]
fn a_session_takes_its_flushes_in_order_and_once() {
    let mut target = target();
    let refused = |reply: LogReply| reply.refusal;
    assert_eq!(refused(flushed(&mut target, 1, 1, 7, &[])), Some(LogRefusal::UnknownSession));
    assert_eq!(ask(&mut target, open(1)).answer, progress(0, 0));
    assert_eq!(refused(flushed(&mut target, 1, 0, 7, &[])), Some(LogRefusal::SequenceZero));
    let future = LogRefusal::FutureSequence { expected: Wsn(1) };
    assert_eq!(refused(flushed(&mut target, 1, 2, 7, &[])), Some(future));
    assert_eq!(flushed(&mut target, 1, 1, 7, &[(5, 10), (6, 20)]).answer, progress(1, 0));
    assert_eq!(flushed(&mut target, 1, 1, 9, &[(5, 99)]).answer, progress(1, 0), "it was sent again");
    let sector = Piece { buffer: target.buffers.take_whole(1), first_byte: 0, bytes: 700 };
    let read = LogOp::Read { page: PageId(5), offset: 4, into: Content::Piece(sector) };
    assert_eq!(ask(&mut target, read).answer, LogAnswer::Page { bytes: 10 });
    assert_eq!(target.buffers.whole(sector.buffer, 0, 1)[..7], [7, 7, 7, 7, 7, 7, 0]);
    assert_eq!(flushed(&mut target, 1, 2, 8, &[(5, 0)]).answer, progress(2, 0));
    assert_eq!(ask(&mut target, read).status, Status::UNWRITTEN, "it was deleted");
    assert_eq!(ask(&mut target, LogOp::Stat).answer, LogAnswer::Stat { pages: 1, live_bytes: 20 });
    assert!(ask(&mut target, LogOp::Sync).status.is_success());
    assert_eq!(ask(&mut target, open(1)).answer, progress(2, 2), "it is resumed");
    let close = LogOp::CloseSession { session: SessionId(1) };
    assert!(ask(&mut target, close).status.is_success());
    assert_eq!(refused(ask(&mut target, close)), Some(LogRefusal::UnknownSession));
    assert_eq!(ask(&mut target, open(1)).answer, progress(0, 0), "it begins anew");
}

#[test]
fn bad_flushes_are_refused_by_name_and_change_nothing() {
    let mut target = target();
    assert!(ask(&mut target, open(1)).status.is_success());
    assert!(flushed(&mut target, 1, 1, 7, &[(1, 700)]).status.is_success());
    let before = target.model.volatile().clone();
    let many: Vec<(u64, u32)> = (0..9).map(|page| (page, 1)).collect();
    for (pages, refusal) in [
        (&[(1, 600), (2, 701)][..], LogRefusal::PageTooLong { row: 1 }),
        (&[(1, 5), (2, 5), (1, 5)], LogRefusal::PageTwice { row: 2 }),
        (&many, LogRefusal::TooManyPages),
    ] {
        assert_eq!(flushed(&mut target, 1, 2, 8, pages).refusal, Some(refusal));
    }
    let op = flush(&mut target.buffers, 1, 2, 8, &[(1, 100)]);
    let LogOp::Flush { session, wsn, content, pages, durability } = op else { unreachable!("a flush") };
    let stamps = target.buffers.take(1);
    let staged = Content::Staged { stage: StageId(0), bytes: 100 };
    for (content, pages, status) in [
        (Content::Empty, pages, Status::INVALID_FIELD),
        (
            Content::Piece(Piece { buffer: BufId(0), first_byte: 0, bytes: 4_001 }),
            pages,
            Status::INVALID_FIELD,
        ),
        (content, List::new(stamps, 1), Status::INVALID_FIELD),
        (Content::Piece(Piece { buffer: stamps, first_byte: 0, bytes: 100 }), pages, Status::INVALID_FIELD),
        (staged, pages, Status::COMMAND_SEQUENCE_ERROR),
    ] {
        let reply = ask(&mut target, LogOp::Flush { session, wsn, content, pages, durability });
        assert_eq!(reply.status, status, "{:?}", reply.refusal);
    }
    assert!([2, 3].into_iter().all(|session| ask(&mut target, open(session)).status.is_success()));
    assert_eq!(ask(&mut target, open(4)).refusal, Some(LogRefusal::TooManySessions));
    assert_eq!(target.model.volatile().pages, before.pages);
    assert_eq!(target.model.volatile().applied(SessionId(1)), Wsn(1));
}

#[test]
fn a_full_store_refuses_pages_and_takes_deletions() {
    let mut target = target();
    assert!(ask(&mut target, open(1)).status.is_success());
    let of = |first: u64| (first..first + 4).map(|page| (page, 700)).collect::<Vec<_>>();
    for wsn in 1..=4 {
        assert!(flushed(&mut target, 1, wsn, 1, &of(wsn * 10)).status.is_success());
    }
    let reply = flushed(&mut target, 1, 5, 1, &of(50));
    assert_eq!((reply.refusal, reply.status), (Some(LogRefusal::NoRoom), Status::CAPACITY_EXCEEDED));
    assert!(flushed(&mut target, 1, 5, 1, &[(10, 0), (11, 0), (12, 0)]).status.is_success());
    assert!(flushed(&mut target, 1, 6, 1, &of(50)).status.is_success());
}

#[test]
fn a_flush_that_comes_in_pieces_is_one_flush() {
    let mut target = target();
    assert!(ask(&mut target, open(1)).status.is_success());
    let op = flush(&mut target.buffers, 1, 1, 6, &[(1, 500), (2, 500)]);
    let LogOp::Flush { session, wsn, content: Content::Piece(whole), pages, durability } = op else {
        unreachable!("a flush of one piece")
    };
    let stage = StageId(1);
    let append = |offset| {
        let piece = Piece { first_byte: offset, bytes: 500, ..whole };
        LogOp::Stage(StageOp::Append { stage, offset, content: Content::Piece(piece) })
    };
    let content = Content::Staged { stage, bytes: 1_000 };
    let staged = LogOp::Flush { session, wsn, content, pages, durability };
    assert!(ask(&mut target, LogOp::Stage(StageOp::Open { stage, bytes: 1_000 })).status.is_success());
    assert!(ask(&mut target, append(0)).status.is_success());
    assert_eq!(ask(&mut target, staged).status, Status::COMMAND_SEQUENCE_ERROR, "it is incomplete");
    assert!(ask(&mut target, append(500)).status.is_success());
    assert_eq!(ask(&mut target, staged).answer, progress(1, 0));
    assert_eq!(target.model.volatile().pages[&PageId(2)], [6; 500]);
    assert!(
        ask(&mut target, LogOp::Stage(StageOp::Open { stage, bytes: 1 })).status.is_success(),
        "it is over"
    );
}

/// Which flushes a power cut may leave: (session 1's, session 2's), each page written by one flush.
fn survivors(ops: &[(u64, u64, bool)], answered: usize) -> Vec<(u64, u64)> {
    let mut target = target();
    for session in [1, 2] {
        assert!(ask(&mut target, open(session)).status.is_success());
    }
    for (nth, &(session, wsn, at_reply)) in ops.iter().enumerate() {
        let op = flush(
            &mut target.buffers,
            session,
            wsn,
            1,
            &[(session * 10 + wsn, 5), (7, 10 + u32::try_from(nth).expect("few"))],
        );
        let op = if at_reply { durable(op) } else { op };
        let request = LogRequest { tag: Tag(u32::try_from(nth).expect("few")), op };
        let expected = target.model.apply(&request, &target.buffers);
        if nth < answered {
            target.model.answered(&expected.reply);
        }
    }
    let mut legal = Vec::new();
    for first in 0..4 {
        for second in 0..4 {
            let mut image = LogImage::default();
            for (nth, &(session, wsn, _)) in ops.iter().enumerate() {
                if wsn <= if session == 1 { first } else { second } {
                    let page = |page, length: usize| (PageId(page), Some(vec![1; length]));
                    let pages = vec![page(session * 10 + wsn, 5), page(7, 10 + nth)];
                    image.change(SessionId(session), &LogChange::Flushed(Wsn(wsn), pages));
                }
            }
            let is_named =
                (image.applied(SessionId(1)), image.applied(SessionId(2))) == (Wsn(first), Wsn(second));
            if is_named && target.model.may_hold(&image).is_ok() {
                legal.push((first, second));
            }
        }
    }
    legal
}

#[test]
fn a_power_cut_leaves_the_first_flushes_of_each_session() {
    let ops = [(1, 1, false), (2, 1, false), (1, 2, false)];
    assert_eq!(survivors(&ops, 3), [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]);
    let ops = [(1, 1, false), (2, 1, false), (1, 2, true)];
    assert_eq!(survivors(&ops, 2), [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]);
    assert_eq!(survivors(&ops, 3), [(2, 0), (2, 1)], "an answered one makes those before it durable");
    let ops = [(1, 1, true), (2, 1, true), (1, 2, false)];
    assert_eq!(survivors(&ops, 2), [(1, 1), (2, 1)]);
}

#[test]
fn a_torn_flush_is_illegal() {
    let mut target = target();
    assert!(ask(&mut target, open(1)).status.is_success());
    assert!(flushed(&mut target, 1, 1, 1, &[(1, 5), (2, 5)]).status.is_success());
    let mut whole = target.model.volatile().clone();
    assert!(target.model.may_hold(&whole).is_ok() && target.model.may_hold(&LogImage::default()).is_ok());
    whole.pages.remove(&PageId(2));
    assert!(target.model.may_hold(&whole).is_err(), "half of its pages");
    assert!(target.model.may_hold(&LogImage { sessions: whole.sessions, ..LogImage::default() }).is_err());
}

#[test]
fn whatever_a_sound_target_keeps_is_allowed() {
    for seed in 0..60 {
        let tally = Trial::new(seed, LogModel::new(LIMITS), pool())
            .run(1_500, &mut DrawnLog::new(LIMITS, &mut Prng::new(seed)));
        let tally = tally.unwrap_or_else(|found| panic!("{found}"));
        assert!(tally.succeeded > 150 && tally.refused > 30 && tally.cuts > 5, "seed {seed}: {tally:?}");
    }
}

#[test]
fn a_target_that_forgets_or_tears_is_found() {
    for (name, canary) in canaries() {
        let found = (0..20).find_map(|seed| {
            let mut trial = Trial::new(seed, LogModel::new(LIMITS), pool());
            trial.canary = Some(canary);
            trial.run(1_500, &mut DrawnLog::new(LIMITS, &mut Prng::new(seed))).err()
        });
        assert!(found.is_some(), "{name}: not found with seeds 0 to 19");
    }
}
