//! Options, one by one, and clients that get them wrong.

use crate::nbd::handshake::TlsPolicy;
use crate::nbd::testing::{Talk, context_data, go_data, option_bytes};
use crate::nbd::wire::{Fields, OPTION_REPLY_MAGIC, flag, info, option, reply};
use crate::protocol::{Phase, Protocol};
use crate::stats::DropReason;

const HELLO: [u8; 4] = [0, 0, 0, 3];

/// Replies to options in what a server sent: option, kind, data.
fn replies(mut bytes: &[u8]) -> Vec<(u32, u32, Vec<u8>)> {
    let mut replies = Vec::new();
    while !bytes.is_empty() {
        let mut fields = Fields(bytes);
        assert_eq!(fields.u64(), Some(OPTION_REPLY_MAGIC));
        let (option, kind, length) = (fields.u32().unwrap(), fields.u32().unwrap(), fields.u32().unwrap());
        replies.push((option, kind, fields.bytes(length.try_into().unwrap()).unwrap().to_vec()));
        bytes = fields.0;
    }
    replies
}

/// A client that has said hello.
fn greeted(exports: &[(&str, u64)], tls: TlsPolicy) -> Talk {
    let mut talk = Talk::with(exports, [4, 4, 4], tls);
    let greeting = talk.say(&HELLO).unwrap();
    assert_eq!(greeting, b"NBDMAGICIHAVEOPT\x00\x03");
    talk
}

fn ask(talk: &mut Talk, option: u32, data: &[u8]) -> Vec<(u32, u32, Vec<u8>)> {
    replies(&talk.say(&option_bytes(option, data)).unwrap())
}

#[test]
fn exports_are_listed_with_their_descriptions() {
    let mut talk = greeted(&[("a", 8), ("bb", 8)], TlsPolicy::None);
    let list = ask(&mut talk, option::LIST, &[]);
    let kinds: Vec<u32> = list.iter().map(|(_, kind, _)| *kind).collect();
    assert_eq!(kinds, [reply::SERVER, reply::SERVER, reply::ACK]);
    assert_eq!(list[1].2, b"\x00\x00\x00\x02bbmemory");
}

#[test]
fn info_tells_size_flags_and_blocks_and_go_begins_to_serve() {
    let mut talk = greeted(&[("a", 8), ("b-ro", 16)], TlsPolicy::None);
    let told = ask(&mut talk, option::INFO, &go_data("b-ro"));
    let of = |kind: u16| {
        let found =
            told.iter().find(|(_, reply, data)| *reply == reply::INFO && data[..2] == kind.to_be_bytes());
        found.unwrap().2[2..].to_vec()
    };
    let export = of(info::EXPORT);
    assert_eq!(export[..8], (16_u64 * 512).to_be_bytes());
    let flags = u16::from_be_bytes([export[8], export[9]]);
    assert!(
        flags & flag::READ_ONLY != 0 && flags & flag::SEND_TRIM == 0 && flags & flag::CAN_MULTI_CONN != 0
    );
    assert_eq!(of(info::BLOCK_SIZE), [512_u32, 4096, 32 << 20].map(u32::to_be_bytes).as_flattened());
    assert_eq!(talk.session.phase(), Phase::Greeting);
    let last = ask(&mut talk, option::GO, &go_data("a")).pop().unwrap();
    assert_eq!((last.1, talk.session.phase()), (reply::ACK, Phase::Serving));
}

#[test]
fn the_old_way_gives_size_and_flags_with_or_without_zeroes() {
    for (flags, bytes) in [(3_u8, 10), (1, 134)] {
        let mut talk = Talk::new(&[("a", 8)]);
        talk.say(&[0, 0, 0, flags]).unwrap();
        let answer = talk.say(&option_bytes(option::EXPORT_NAME, b"a")).unwrap();
        assert_eq!((answer.len(), &answer[..8]), (bytes, &(8_u64 * 512).to_be_bytes()[..]), "flags {flags}");
        assert_eq!(talk.session.phase(), Phase::Serving);
    }
}

#[test]
fn what_is_not_understood_is_answered_and_the_handshake_goes_on() {
    let mut talk = greeted(&[("a", 8), ("b", 8)], TlsPolicy::None);
    let long = vec![0; 9000];
    let cases: &[(u32, &[u8], u32)] = &[
        (99, &[], reply::ERR_UNSUP),
        (option::STARTTLS, &[], reply::ERR_UNSUP),
        (option::GO, &[0, 0, 0, 9, b'a', 0, 0], reply::ERR_INVALID),
        (option::GO, &[], reply::ERR_INVALID),
        (option::LIST, &[1], reply::ERR_INVALID),
        (option::STRUCTURED_REPLY, &[1], reply::ERR_INVALID),
        (option::SET_META_CONTEXT, &context_data("a", &["base:allocation"]), reply::ERR_INVALID),
        (option::INFO, &long, reply::ERR_TOO_BIG),
        (option::INFO, &go_data("nobody"), reply::ERR_UNKNOWN),
        (option::INFO, &go_data(""), reply::ERR_UNKNOWN),
    ];
    for &(option, data, kind) in cases {
        let answer = ask(&mut talk, option, data);
        assert_eq!((answer.len(), answer[0].1), (1, kind), "option {option}");
    }
    talk.enter_rest("b");
    assert_eq!(talk.session.phase(), Phase::Serving);
}

#[test]
fn a_context_is_listed_and_chosen_once_structured_replies_are() {
    let mut talk = greeted(&[("a", 8)], TlsPolicy::None);
    assert_eq!(ask(&mut talk, option::STRUCTURED_REPLY, &[])[0].1, reply::ACK);
    let cases: [(u32, &[&str], usize); 6] = [
        (option::LIST_META_CONTEXT, &[], 2),
        (option::LIST_META_CONTEXT, &["base:"], 2),
        (option::LIST_META_CONTEXT, &["x:y"], 1),
        (option::SET_META_CONTEXT, &["x:y", "base:allocation"], 2),
        (option::SET_META_CONTEXT, &["base:"], 1),
        (option::SET_META_CONTEXT, &[], 1),
    ];
    for (option, queries, count) in cases {
        let answer = ask(&mut talk, option, &context_data("a", queries));
        assert_eq!((answer.len(), answer[count - 1].1), (count, reply::ACK), "{option} {queries:?}");
    }
}

#[test]
fn closing_is_answered_and_ends_it() {
    let mut talk = greeted(&[("a", 8)], TlsPolicy::None);
    assert_eq!(ask(&mut talk, option::ABORT, &[])[0].1, reply::ACK);
    assert_eq!(talk.session.phase(), Phase::Leaving);
}

#[test]
fn nothing_is_served_before_tls_where_it_is_required() {
    let mut talk = greeted(&[("a", 8)], TlsPolicy::Required);
    for option in [option::LIST, option::GO, option::INFO, option::STRUCTURED_REPLY, 99] {
        assert_eq!(ask(&mut talk, option, &[])[0].1, reply::ERR_TLS_REQD, "option {option}");
    }
    assert_eq!(ask(&mut talk, option::STARTTLS, &[])[0].1, reply::ACK);
    assert_eq!((talk.session.phase(), talk.session.text_wanted()), (Phase::StartTls, 0));
    talk.session.on_tls();
    assert_eq!(ask(&mut talk, option::STARTTLS, &[])[0].1, reply::ERR_INVALID, "it has begun already");
    talk.enter_rest("a");
    assert_eq!(talk.session.phase(), Phase::Serving);
}

#[test]
fn hostile_clients_are_dropped_with_a_reason() {
    let garbage: &[&[u8]] = &[
        &[0, 0, 0, 8],
        &[0, 0, 0, 3, b'G', b'E', b'T', b' ', b'/', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        &[&[0, 0, 0, 0][..], &option_bytes(option::LIST, &[])].concat(),
        &[&HELLO[..], &option_bytes(option::EXPORT_NAME, b"nobody")].concat(),
    ];
    for bytes in garbage {
        let error = Talk::new(&[("a", 8), ("b", 8)]).say(bytes).err().unwrap();
        assert_eq!(error.reason, DropReason::Garbage, "{error}");
    }
    let huge = [&HELLO[..], b"IHAVEOPT", &option::GO.to_be_bytes(), &[0x7f, 0xff, 0xff, 0xff]].concat();
    assert_eq!(Talk::new(&[("a", 8)]).say(&huge).err().unwrap().reason, DropReason::Oversized);
    let many: Vec<u8> = [HELLO.to_vec(), option_bytes(option::LIST, &[]).repeat(2000)].concat();
    assert_eq!(Talk::new(&[("a", 8)]).say(&many).err().unwrap().reason, DropReason::Oversized);
}

#[test]
fn bytes_between_starttls_and_tls_are_not_taken_for_encrypted() {
    let mut talk = greeted(&[("a", 8)], TlsPolicy::Required);
    let bytes = [option_bytes(option::STARTTLS, &[]), option_bytes(option::LIST, &[])].concat();
    assert_eq!(talk.say(&bytes).err().unwrap().reason, DropReason::Garbage);
    let mut bare = Talk::with(&[("a", 8)], [1, 1, 1], TlsPolicy::Required);
    let error = bare.say(&[&HELLO[..], &option_bytes(option::EXPORT_NAME, b"a")].concat()).err().unwrap();
    assert_eq!(error.reason, DropReason::Garbage);
}
