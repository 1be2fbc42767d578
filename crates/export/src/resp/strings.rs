//! Strings: GET, SET and their families.

use super::command::{Call, Refused, SYNTAX};
use super::expiry::{Unit, end_of_stored};
use super::patch::Patch;
use super::request::Request;
use super::stored::Expiry;
use super::view::Fetch;

/// What a value may not exceed.
pub const TOO_LONG: &str = "ERR string exceeds maximum allowed size (proto-max-bulk-len)";

/// What SET is asked beside key and value.
#[derive(Clone, Copy, Debug, Default)]
struct SetOptions {
    /// Only if the key does not exist.
    is_absent: bool,
    /// Only if it does.
    is_present: bool,
    /// The old value is the answer.
    gets: bool,
    keeps_end: bool,
    /// The word that is the time, and its unit.
    end: Option<(usize, Unit)>,
}

impl SetOptions {
    fn read(request: &Request) -> Option<Self> {
        let (mut found, mut at) = (Self::default(), 3);
        while at < request.len() {
            match Unit::of_option(request.word(at)) {
                Some(unit) => {
                    if found.end.is_some() || found.keeps_end || at + 1 >= request.len() {
                        return None;
                    }
                    at += 1;
                    found.end = Some((at, unit));
                }
                None if request.is(at, "nx") && !found.is_present => found.is_absent = true,
                None if request.is(at, "xx") && !found.is_absent => found.is_present = true,
                None if request.is(at, "get") => found.gets = true,
                None if request.is(at, "keepttl") && found.end.is_none() => found.keeps_end = true,
                None => return None,
            }
            at += 1;
        }
        Some(found)
    }
}

/// How much SET reads: nothing without options that ask about what was there.
#[must_use]
pub fn set_fetch(request: &Request) -> Fetch {
    match SetOptions::read(request) {
        Some(SetOptions { gets: true, .. }) => Fetch::Whole,
        Some(SetOptions { is_absent: false, is_present: false, keeps_end: false, .. }) | None => {
            Fetch::Nothing
        }
        Some(_) => Fetch::Head,
    }
}

/// SET.
pub fn set(call: &mut Call<'_>) -> Result<(), Refused> {
    let options = SetOptions::read(call.request).ok_or(SYNTAX)?;
    let (key, value) = (call.first(), call.shared(2));
    let mut end = match options.end {
        Some((word, unit)) => end_of_stored(call, call.word(word), unit)?,
        None => Expiry::Never,
    };
    let asks = options.gets || options.is_absent || options.is_present || options.keeps_end;
    let exists = asks && call.view.exists(key);
    if options.keeps_end {
        end = call.view.expiry(key).unwrap_or_default();
    }
    let stores = !(options.is_absent && exists || options.is_present && !exists);
    if options.gets {
        call.reply.shared_or_null(call.view.value(key).cloned());
    } else if stores {
        call.reply.ok();
    } else {
        call.reply.null();
    }
    if stores {
        call.view.store_until(key, value, end, call.now_ms);
    }
    Ok(())
}

/// SETNX.
pub fn setnx(call: &mut Call<'_>) -> Result<(), Refused> {
    let (key, exists) = (call.first(), call.view.exists(call.first()));
    if !exists {
        call.view.store(key, call.shared(2), Expiry::Never);
    }
    call.reply.integer(i64::from(!exists));
    Ok(())
}

fn set_with_end(call: &mut Call<'_>, unit: Unit) -> Result<(), Refused> {
    let end = end_of_stored(call, call.word(2), unit)?;
    call.view.store_until(call.first(), call.shared(3), end, call.now_ms);
    call.reply.ok();
    Ok(())
}

/// SETEX.
pub fn setex(call: &mut Call<'_>) -> Result<(), Refused> {
    set_with_end(call, Unit { milliseconds: 1000, is_relative: true })
}

/// PSETEX.
pub fn psetex(call: &mut Call<'_>) -> Result<(), Refused> {
    set_with_end(call, Unit { milliseconds: 1, is_relative: true })
}

/// GET.
pub fn get(call: &mut Call<'_>) -> Result<(), Refused> {
    call.reply.shared_or_null(call.view.value(call.first()).cloned());
    Ok(())
}

/// MGET.
pub fn mget(call: &mut Call<'_>) -> Result<(), Refused> {
    if call.is_at_start() {
        call.reply.array(call.len() - 1);
    }
    while let Some(place) = call.next_key(1) {
        call.reply.shared_or_null(call.view.value(call.word(place)).cloned());
    }
    Ok(())
}

/// GETSET.
pub fn getset(call: &mut Call<'_>) -> Result<(), Refused> {
    get(call)?;
    call.view.store(call.first(), call.shared(2), Expiry::Never);
    Ok(())
}

/// GETDEL.
pub fn getdel(call: &mut Call<'_>) -> Result<(), Refused> {
    get(call)?;
    call.view.delete(call.first());
    Ok(())
}

/// GETEX.
pub fn getex(call: &mut Call<'_>) -> Result<(), Refused> {
    let key = call.first();
    let end = match call.len() {
        2 => None,
        3 if call.request.is(2, "persist") => Some(Expiry::Never),
        4 => {
            let unit = Unit::of_option(call.word(2)).ok_or(SYNTAX)?;
            Some(end_of_stored(call, call.word(3), unit)?)
        }
        _ => return Err(SYNTAX.into()),
    };
    get(call)?;
    let (before, now_ms) = (call.view.expiry(key), call.now_ms);
    match (before, end) {
        (Some(_), Some(end)) if end.is_over(now_ms) => drop(call.view.delete(key)),
        (Some(before), Some(end)) if before != end => call.view.expire(key, end),
        _ => {}
    }
    Ok(())
}

/// Gives keys values, as many as the turn reaches. True if those were all.
fn store_pairs(call: &mut Call<'_>) -> bool {
    while let Some(place) = call.next_key(2) {
        call.view.store(call.word(place), call.shared(place + 1), Expiry::Never);
    }
    call.is_over()
}

/// MSET.
pub fn mset(call: &mut Call<'_>) -> Result<(), Refused> {
    if call.len().is_multiple_of(2) {
        return Err(call.command.wrong_number().into());
    }
    if store_pairs(call) {
        call.reply.ok();
    }
    Ok(())
}

/// MSETNX: looks at all keys, and then stores all.
pub fn msetnx(call: &mut Call<'_>) -> Result<(), Refused> {
    if call.len().is_multiple_of(2) {
        return Err(call.command.wrong_number().into());
    }
    if call.progress.rounds == 0 {
        while let Some(place) = call.next_key(2) {
            if call.view.exists(call.word(place)) {
                call.end();
                call.reply.integer(0);
                return Ok(());
            }
        }
        if !call.is_over() {
            return Ok(());
        }
        call.begin_again();
    }
    if store_pairs(call) {
        call.reply.integer(1);
    }
    Ok(())
}

/// STRLEN.
pub fn strlen(call: &mut Call<'_>) -> Result<(), Refused> {
    call.reply.length(call.view.length(call.first()).unwrap_or(0));
    Ok(())
}

/// APPEND.
pub fn append(call: &mut Call<'_>) -> Result<(), Refused> {
    let (key, with) = (call.first(), call.word(2));
    let at = call.view.length(key).unwrap_or(0);
    if at + with.len() > call.value_bytes_max {
        return Err(TOO_LONG.into());
    }
    if call.patch(key, Patch { at, with })? {
        call.reply.length(at + with.len());
    }
    Ok(())
}

/// SETRANGE.
pub fn setrange(call: &mut Call<'_>) -> Result<(), Refused> {
    let (key, offset, with) = (call.first(), call.integer(2)?, call.word(3));
    let at = usize::try_from(offset).map_err(|_| "ERR offset is out of range")?;
    let before = call.view.length(key).unwrap_or(0);
    if with.is_empty() {
        call.reply.length(before);
        return Ok(());
    }
    at.checked_add(with.len()).filter(|end| *end <= call.value_bytes_max).ok_or(TOO_LONG)?;
    let patch = Patch { at, with };
    if call.patch(key, patch)? {
        call.reply.length(patch.len(before));
    }
    Ok(())
}

/// GETRANGE, and SUBSTR, its old name.
pub fn getrange(call: &mut Call<'_>) -> Result<(), Refused> {
    let (first, last) = (call.integer(2)?, call.integer(3)?);
    let value = call.view.value(call.first());
    let length = i64::try_from(value.map_or(0, |value| value.len())).expect("a value is shorter than 2^63");
    let from_start = |at: i64| if at < 0 { (length + at.max(-length)).max(0) } else { at };
    let is_crossed = first < 0 && last < 0 && first > last;
    let (first, last) = (from_start(first), from_start(last).min(length - 1));
    let range = match (usize::try_from(first), usize::try_from(last)) {
        (Ok(first), Ok(last)) if !is_crossed && first <= last => first..last + 1,
        _ => 0..0,
    };
    match value.map(|value| value.slice(range)) {
        Some(part) => call.reply.bulk_shared(part),
        None => call.reply.bulk(b""),
    }
    Ok(())
}
