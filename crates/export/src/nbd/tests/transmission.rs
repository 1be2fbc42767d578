//! Requests and their answers.

use crate::nbd::testing::{Talk, request};
use crate::nbd::wire::{
    Fields, NbdError, REQUEST_BYTES_MAX, SIMPLE_REPLY_MAGIC, STRUCTURED_REPLY_MAGIC, chunk, command,
    command_flag,
};
use crate::protocol::{Phase, Protocol};
use crate::stats::DropReason;
use ocssd_lightnvm::block::BlockOp;

/// A reply or chunk as it came.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Simple { error: u32, cookie: u64, data: Vec<u8> },
    Chunk { flags: u16, kind: u16, cookie: u64, data: Vec<u8> },
}

/// Answers in what a server sent; simple replies without error have `read` bytes of data each.
fn answers(mut bytes: &[u8], read: usize) -> Vec<Answer> {
    let mut answers = Vec::new();
    while !bytes.is_empty() {
        let mut fields = Fields(bytes);
        answers.push(match fields.u32().unwrap() {
            SIMPLE_REPLY_MAGIC => {
                let (error, cookie) = (fields.u32().unwrap(), fields.u64().unwrap());
                let length = if error == 0 { read } else { 0 };
                Answer::Simple { error, cookie, data: fields.bytes(length).unwrap().to_vec() }
            }
            magic => {
                assert_eq!(magic, STRUCTURED_REPLY_MAGIC);
                let (flags, kind) = (fields.u16().unwrap(), fields.u16().unwrap());
                let (cookie, length) = (fields.u64().unwrap(), fields.u32().unwrap());
                let data = fields.bytes(length.try_into().unwrap()).unwrap().to_vec();
                Answer::Chunk { flags, kind, cookie, data }
            }
        });
        bytes = fields.0;
    }
    answers
}

fn entered(exports: &[(&str, u64)], structured: bool) -> Talk {
    let mut talk = Talk::new(exports);
    talk.enter(exports[0].0, structured);
    talk
}

fn done(cookie: u64) -> Answer {
    Answer::Simple { error: 0, cookie, data: Vec::new() }
}

fn failed(error: NbdError, cookie: u64) -> Answer {
    Answer::Simple { error: error.code(), cookie, data: Vec::new() }
}

/// Bytes that differ from place to place.
fn pattern(count: usize) -> Vec<u8> {
    (0..count).map(|at| u8::try_from((at * 7 + at / 512) % 251).unwrap()).collect()
}

fn write(talk: &mut Talk, offset: u64, data: &[u8], flags: u16) -> Vec<Answer> {
    let header = request(command::WRITE, flags, 7, offset, u32::try_from(data.len()).unwrap());
    answers(&talk.say(&[&header[..], data].concat()).unwrap(), 0)
}

#[test]
fn what_is_written_is_read_in_simple_replies_whatever_its_size() {
    for size in [512, 4096, 70_000 / 512 * 512, 600 << 10] {
        let mut talk = entered(&[("a", 4096)], false);
        let data = pattern(size);
        assert_eq!(write(&mut talk, 1024, &data, 0), [done(7)], "{size} bytes");
        let asked = request(command::READ, 0, 8, 1024, u32::try_from(size).unwrap());
        let read = answers(&talk.say(&asked).unwrap(), size);
        assert_eq!(read, [Answer::Simple { error: 0, cookie: 8, data }], "{size} bytes");
        assert_eq!(talk.dispatcher.pool.lent(), 0);
    }
}

#[test]
fn structured_replies_carry_every_byte_once_and_end_once() {
    let mut talk = entered(&[("a", 4096)], true);
    let size = 600 << 10;
    let data = pattern(size);
    write(&mut talk, 512, &data, 0);
    let asked = request(command::READ, 0, 9, 512, u32::try_from(size).unwrap());
    let chunks = answers(&talk.say(&asked).unwrap(), 0);
    assert!(chunks.len() > 1, "it does not fit one piece");
    let (mut read, mut ends) = (vec![None; size], 0);
    for answer in chunks {
        let Answer::Chunk { flags, kind: chunk::OFFSET_DATA, cookie: 9, data } = answer else {
            panic!("{answer:?}")
        };
        ends += flags;
        let mut fields = Fields(&data);
        let first = usize::try_from(fields.u64().unwrap() - 512).unwrap();
        for (place, byte) in read[first..].iter_mut().zip(fields.0) {
            assert_eq!(place.replace(*byte), None, "a byte came twice");
        }
    }
    assert_eq!((read.into_iter().collect::<Option<Vec<u8>>>(), ends), (Some(data), 1));
}

#[test]
fn a_client_that_wants_no_fragments_gets_none() {
    let mut talk = entered(&[("a", 4096)], true);
    let asked = request(command::READ, command_flag::DF, 9, 0, 600 << 10);
    let chunks = answers(&talk.say(&asked).unwrap(), 0);
    let [Answer::Chunk { flags: chunk::FLAG_DONE, kind: chunk::OFFSET_DATA, data, .. }] = &chunks[..] else {
        panic!("{} chunks", chunks.len())
    };
    assert_eq!(data.len(), (600 << 10) + 8);
}

#[test]
fn an_unreadable_part_is_an_error_where_it_is_and_of_the_whole() {
    let mut talk = entered(&[("a", 4096)], true);
    talk.disks.bad = 600..601;
    let chunks = answers(&talk.say(&request(command::READ, 0, 1, 0, 600 << 10)).unwrap(), 0);
    let kinds: Vec<u16> = chunks
        .iter()
        .map(|answer| match answer {
            Answer::Chunk { kind, .. } => *kind,
            Answer::Simple { .. } => panic!("{answer:?}"),
        })
        .collect();
    assert!(kinds.contains(&chunk::ERROR_OFFSET) && kinds.contains(&chunk::OFFSET_DATA), "{kinds:?}");
    assert_eq!(kinds.last(), Some(&chunk::NONE));
    let mut plain = entered(&[("a", 4096)], false);
    plain.disks.bad = 600..601;
    let answer = answers(&plain.say(&request(command::READ, 0, 2, 0, 600 << 10)).unwrap(), 0);
    assert_eq!((answer, plain.dispatcher.pool.lent()), (vec![failed(NbdError::Io, 2)], 0));
    assert_eq!(write(&mut plain, 600 * 512, &[0; 512], 0), [failed(NbdError::Io, 7)]);
}

#[test]
fn fua_reaches_the_target_with_writes_and_as_a_flush_behind_everything_else() {
    let mut talk = entered(&[("a", 64)], false);
    write(&mut talk, 0, &[1; 512], command_flag::FUA);
    talk.say(&request(command::TRIM, command_flag::FUA, 1, 0, 512)).unwrap();
    talk.say(&request(command::WRITE_ZEROES, command_flag::FUA, 2, 0, 512)).unwrap();
    talk.say(&request(command::FLUSH, 0, 3, 0, 0)).unwrap();
    let ops: Vec<BlockOp> = talk.disks.log.iter().map(|(_, op)| *op).collect();
    let expected = [
        BlockOp::Write { fua: true },
        BlockOp::Discard,
        BlockOp::Flush,
        BlockOp::WriteZeroes,
        BlockOp::Flush,
        BlockOp::Flush,
    ];
    assert_eq!((ops.as_slice(), talk.dispatcher.stats.fuas), (&expected[..], 3));
}

#[test]
fn zeroes_without_a_hole_are_written_and_what_holds_data_is_told() {
    let mut talk = entered(&[("a", 4096)], true);
    write(&mut talk, 512, &[1; 1024], 0);
    let no_hole = request(command::WRITE_ZEROES, command_flag::NO_HOLE, 1, 1024, 1024);
    assert_eq!(answers(&talk.say(&no_hole).unwrap(), 0), [done(1)]);
    let asked = request(command::BLOCK_STATUS, 0, 2, 0, 8192);
    let answer = answers(&talk.say(&asked).unwrap(), 0);
    let words = [1_u32, 512, 3, 1536, 0, 6144, 3].map(u32::to_be_bytes).as_flattened().to_vec();
    let kind = chunk::BLOCK_STATUS;
    assert_eq!(answer, [Answer::Chunk { flags: chunk::FLAG_DONE, kind, cookie: 2, data: words }]);
    let one = request(command::BLOCK_STATUS, command_flag::REQ_ONE, 3, 512, 8192);
    let answer = answers(&talk.say(&one).unwrap(), 0);
    let words = [1_u32, 1536, 0].map(u32::to_be_bytes).as_flattened().to_vec();
    assert_eq!(answer, [Answer::Chunk { flags: chunk::FLAG_DONE, kind, cookie: 3, data: words }]);
}

#[test]
fn a_read_ahead_reads_and_says_nothing_more() {
    let mut talk = entered(&[("a", 4096)], true);
    let answer = talk.say(&request(command::CACHE, 0, 5, 0, 1 << 20)).unwrap();
    assert_eq!((answers(&answer, 0), talk.dispatcher.pool.lent()), (vec![done(5)], 0));
    assert!(talk.disks.log.iter().all(|(_, op)| *op == BlockOp::Read));
}

#[test]
fn refused_requests_leave_client_and_server_in_step() {
    let mut talk = entered(&[("b-ro", 64)], false);
    assert_eq!(write(&mut talk, 0, &[1; 512], 0), [failed(NbdError::Perm, 7)]);
    let mut talk = entered(&[("a", 64)], false);
    assert_eq!(write(&mut talk, 64 * 512, &[1; 512], 0), [failed(NbdError::NoSpc, 7)]);
    assert_eq!(write(&mut talk, 7, &[1; 512], 0), [failed(NbdError::Inval, 7)]);
    let bad: Vec<u8> = [
        request(99, 0, 1, 0, 512),
        request(command::READ, 0, 2, 64 * 512, 512),
        request(command::READ, 0xff00, 3, 0, 512),
        request(command::READ, 0, 4, 0, REQUEST_BYTES_MAX + 512),
        request(command::READ, 0, 5, 0, 512),
    ]
    .concat();
    let answer = answers(&talk.say(&bad).unwrap(), 512);
    let inval = |cookie| failed(NbdError::Inval, cookie);
    assert_eq!(answer[..4], [inval(1), inval(2), inval(3), inval(4)]);
    assert_eq!(answer[4], Answer::Simple { error: 0, cookie: 5, data: vec![0; 512] });
    assert_eq!(talk.dispatcher.stats.errors, 6);
}

#[test]
fn garbage_and_endless_writes_drop_the_client_and_leave_nothing_behind() {
    let mut talk = entered(&[("a", 4096)], false);
    let garbage = [0x11; 28];
    assert_eq!(talk.say(&garbage).err().unwrap().reason, DropReason::Garbage);
    let mut talk = entered(&[("a", 4096)], false);
    let endless = request(command::WRITE, 0, 1, 0, u32::MAX);
    assert_eq!(talk.say(&endless).err().unwrap().reason, DropReason::Oversized);
    let mut talk = entered(&[("a", 4096)], false);
    let half = [request(command::WRITE, 0, 1, 0, 1 << 20), pattern(300 << 10)].concat();
    talk.say(&half).unwrap();
    assert!(talk.dispatcher.pool.lent() > 0);
    talk.session.release(&mut talk.dispatcher);
    assert_eq!((talk.dispatcher.pool.lent(), talk.dispatcher.open_jobs()), (0, 0));
}

#[test]
fn a_closing_waits_for_the_answers_and_a_stopping_server_refuses() {
    let mut talk = entered(&[("a", 64)], false);
    let bytes = [request(command::READ, 0, 1, 0, 512), request(command::DISC, 0, 2, 0, 0)].concat();
    assert_eq!(answers(&talk.say(&bytes).unwrap(), 512).len(), 1);
    assert_eq!((talk.session.phase(), talk.session.is_idle()), (Phase::Leaving, true));
    let mut talk = entered(&[("a", 64)], false);
    talk.session.on_stop();
    assert_eq!(write(&mut talk, 0, &[1; 512], 0), [failed(NbdError::Shutdown, 7)]);
}
