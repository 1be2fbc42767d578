//! Keys whatever they hold: DEL, EXISTS, RENAME, COPY, OBJECT; and what needs no key: PING, ECHO.

use super::command::{Call, Refused, SYNTAX};
use super::number;

/// PING.
pub fn ping(call: &mut Call<'_>) -> Result<(), Refused> {
    match call.len() {
        1 => call.reply.simple("PONG"),
        2 => return echo(call),
        _ => return Err(call.command.wrong_number().into()),
    }
    Ok(())
}

/// ECHO.
pub fn echo(call: &mut Call<'_>) -> Result<(), Refused> {
    // The answer has the request's bytes, and longer than that has them.
    call.memory.hold(call.first().len())?;
    call.reply.bulk_shared(call.shared(1));
    Ok(())
}

/// DEL and UNLINK.
pub fn del(call: &mut Call<'_>) -> Result<(), Refused> {
    while let Some(place) = call.next_key(1) {
        call.progress.count += usize::from(call.view.delete(call.word(place)));
    }
    if call.is_over() {
        call.reply.length(call.progress.count);
    }
    Ok(())
}

/// EXISTS and TOUCH: a key named twice counts twice.
pub fn exists(call: &mut Call<'_>) -> Result<(), Refused> {
    while let Some(place) = call.next_key(1) {
        call.progress.count += usize::from(call.view.exists(call.word(place)));
    }
    if call.is_over() {
        call.reply.length(call.progress.count);
    }
    Ok(())
}

/// TYPE.
pub fn kind(call: &mut Call<'_>) -> Result<(), Refused> {
    call.reply.simple(if call.view.exists(call.first()) { "string" } else { "none" });
    Ok(())
}

/// The value, and when it ends, go to the other key.
fn copy_to(call: &mut Call<'_>, from: &[u8], to: &[u8]) {
    let value = call.view.value(from).expect("it was looked for").clone();
    let end = call.view.expiry(from).unwrap_or_default();
    call.view.store(to, value, end);
}

fn rename_unless(call: &mut Call<'_>, is_kept: bool) -> Result<bool, Refused> {
    let (from, to) = (call.first(), call.word(2));
    if !call.view.exists(from) {
        return Err("ERR no such key".into());
    }
    if is_kept && call.view.exists(to) {
        return Ok(false);
    }
    if from != to {
        copy_to(call, from, to);
        call.view.delete(from);
    }
    Ok(true)
}

/// RENAME.
pub fn rename(call: &mut Call<'_>) -> Result<(), Refused> {
    rename_unless(call, false)?;
    call.reply.ok();
    Ok(())
}

/// RENAMENX.
pub fn renamenx(call: &mut Call<'_>) -> Result<(), Refused> {
    let is_renamed = rename_unless(call, true)?;
    call.reply.integer(i64::from(is_renamed));
    Ok(())
}

/// COPY.
pub fn copy(call: &mut Call<'_>) -> Result<(), Refused> {
    let (mut replaces, mut at) = (false, 3);
    while at < call.len() {
        if call.request.is(at, "replace") {
            replaces = true;
        } else if call.request.is(at, "db") && at + 1 < call.len() {
            at += 1;
            database(call, at)?;
        } else {
            return Err(SYNTAX.into());
        }
        at += 1;
    }
    let (from, to) = (call.first(), call.word(2));
    if from == to {
        return Err("ERR source and destination objects are the same".into());
    }
    let copies = call.view.exists(from) && (replaces || !call.view.exists(to));
    if copies {
        copy_to(call, from, to);
    }
    call.reply.integer(i64::from(copies));
    Ok(())
}

/// There is one database, number 0.
fn database(call: &Call<'_>, place: usize) -> Result<(), Refused> {
    match call.integer(place)? {
        0 => Ok(()),
        _ => Err("ERR DB index is out of range".into()),
    }
}

/// OBJECT ENCODING and OBJECT REFCOUNT.
pub fn object(call: &mut Call<'_>) -> Result<(), Refused> {
    let (is_encoding, is_count) = (call.request.is(1, "encoding"), call.request.is(1, "refcount"));
    if !is_encoding && !is_count {
        let name = String::from_utf8_lossy(call.word(1)).into_owned();
        return Err(format!("ERR unknown subcommand '{name}'. Try OBJECT HELP.").into());
    }
    let key = call.word(2);
    match call.view.value(key) {
        None => call.reply.null(),
        Some(_) if is_count => call.reply.integer(1),
        // What Redis would take for a value that was just set.
        Some(value) if number::integer(value).is_some() => call.reply.bulk(b"int"),
        Some(value) if value.len() <= 44 => call.reply.bulk(b"embstr"),
        Some(_) => call.reply.bulk(b"raw"),
    }
    Ok(())
}
