//! Clients against the store in memory.

mod commands;
mod concurrent;
mod conversation;
mod lane;
mod transactions;
mod turns;

use super::testing::World;

/// Memory for requests and answers in these tests.
const MEMORY: u64 = 16 << 20;

/// What a client is told for a line, as one line: types and lengths left out, arrays in brackets.
fn ask(world: &mut World, client: usize, line: &str) -> String {
    world.send(client, format!("{line}\r\n").as_bytes()).expect("it is a request");
    world.settle();
    let sent = world.take_sent(client);
    let mut rest = sent.as_slice();
    let shown = show(&mut rest);
    assert!(rest.is_empty(), "more than one answer to {line}: {}", String::from_utf8_lossy(&sent));
    shown
}

/// The first answer of `rest`, readable.
fn show(rest: &mut &[u8]) -> String {
    let Some(end) = rest.windows(2).position(|end| end == b"\r\n") else { return "(nothing)".to_owned() };
    let (head, behind) = (rest[1..end].to_vec(), &rest[end + 2..]);
    let kind = rest[0];
    *rest = behind;
    let text = String::from_utf8_lossy(&head).into_owned();
    match kind {
        b'+' | b'-' | b':' => text,
        b'_' => "(null)".to_owned(),
        b'$' | b'*' if text == "-1" => "(null)".to_owned(),
        b'$' | b'=' => {
            let (bytes, behind) = behind.split_at(text.parse().unwrap());
            *rest = behind.strip_prefix(b"\r\n").unwrap();
            String::from_utf8_lossy(bytes).into_owned()
        }
        b'*' | b'~' | b'%' => {
            let count: usize = text.parse().unwrap();
            let count = if kind == b'%' { 2 * count } else { count };
            let parts: Vec<String> = (0..count).map(|_| show(rest)).collect();
            format!("[{}]", parts.join(" "))
        }
        other => panic!("an answer of type {other}"),
    }
}

/// Asks each line in turn and compares what it is told.
fn check(world: &mut World, talk: &[(&str, &str)]) {
    for (line, expected) in talk {
        assert_eq!(ask(world, 0, line), *expected, "{line}");
    }
}
