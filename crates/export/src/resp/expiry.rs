//! When keys end: the EXPIRE and TTL families, and the options of SET and GETEX.

use super::command::{Call, NO_INTEGER, Refused};
use super::number;
use super::stored::Expiry;
use std::borrow::Cow;

/// How a time is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Milliseconds of one.
    pub milliseconds: i64,
    /// It counts from now, not from 1970.
    pub is_relative: bool,
}

/// Seconds and milliseconds from now, and since 1970.
const UNITS: [(&str, Unit); 4] = [
    ("ex", Unit { milliseconds: 1000, is_relative: true }),
    ("px", Unit { milliseconds: 1, is_relative: true }),
    ("exat", Unit { milliseconds: 1000, is_relative: false }),
    ("pxat", Unit { milliseconds: 1, is_relative: false }),
];

impl Unit {
    /// The one that an option of SET or GETEX names.
    #[must_use]
    pub fn of_option(word: &[u8]) -> Option<Self> {
        UNITS.iter().find(|(name, _)| word.eq_ignore_ascii_case(name.as_bytes())).map(|(_, unit)| *unit)
    }

    /// Milliseconds since 1970 of a time so given; `None` if 64 bits do not hold it.
    #[must_use]
    pub fn at(self, time: i64, now_ms: i64) -> Option<i64> {
        let time = time.checked_mul(self.milliseconds)?;
        if self.is_relative { time.checked_add(now_ms) } else { Some(time) }
    }
}

fn invalid(call: &Call<'_>) -> Refused {
    Cow::Owned(format!("ERR invalid expire time in '{}' command", call.command.name))
}

/// The end of a value that is stored: a time above zero.
///
/// # Errors
/// If it is no such time.
pub fn end_of_stored(call: &Call<'_>, word: &[u8], unit: Unit) -> Result<Expiry, Refused> {
    let time = number::integer(word).ok_or(NO_INTEGER)?;
    if time <= 0 {
        return Err(invalid(call));
    }
    unit.at(time, call.now_ms).map(Expiry::At).ok_or_else(|| invalid(call))
}

/// What must be so for EXPIRE to change anything.
#[derive(Clone, Copy, Debug, Default)]
struct Conditions {
    has_none: bool,
    has_one: bool,
    is_later: bool,
    is_earlier: bool,
}

impl Conditions {
    fn read(call: &Call<'_>) -> Result<Self, Refused> {
        let mut found = Self::default();
        for word in call.request.words_from(3) {
            let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
            match () {
                () if is("nx") => found.has_none = true,
                () if is("xx") => found.has_one = true,
                () if is("gt") => found.is_later = true,
                () if is("lt") => found.is_earlier = true,
                () => return Err(format!("ERR Unsupported option {}", String::from_utf8_lossy(word)).into()),
            }
        }
        if found.has_none && (found.has_one || found.is_later || found.is_earlier) {
            return Err("ERR NX and XX, GT or LT options at the same time are not compatible".into());
        }
        if found.is_later && found.is_earlier {
            return Err("ERR GT and LT options at the same time are not compatible".into());
        }
        Ok(found)
    }

    /// A key without end counts as one that ends after all others.
    fn hold(self, before: Expiry, at: i64) -> bool {
        match before {
            Expiry::Never => !self.has_one && !self.is_later,
            Expiry::At(before) => {
                !self.has_none && (!self.is_later || at > before) && (!self.is_earlier || at < before)
            }
        }
    }
}

fn expire_in(call: &mut Call<'_>, unit: Unit) -> Result<(), Refused> {
    let key = call.first();
    let time = call.integer(2)?;
    let conditions = Conditions::read(call)?;
    let at = unit.at(time, call.now_ms).ok_or_else(|| invalid(call))?;
    let holds = call.view.expiry(key).is_some_and(|before| conditions.hold(before, at));
    if holds && at <= call.now_ms {
        call.view.delete(key);
    } else if holds {
        call.view.expire(key, Expiry::At(at));
    }
    call.reply.integer(i64::from(holds));
    Ok(())
}

/// EXPIRE.
pub fn expire(call: &mut Call<'_>) -> Result<(), Refused> {
    expire_in(call, UNITS[0].1)
}

/// PEXPIRE.
pub fn pexpire(call: &mut Call<'_>) -> Result<(), Refused> {
    expire_in(call, UNITS[1].1)
}

/// EXPIREAT.
pub fn expireat(call: &mut Call<'_>) -> Result<(), Refused> {
    expire_in(call, UNITS[2].1)
}

/// PEXPIREAT.
pub fn pexpireat(call: &mut Call<'_>) -> Result<(), Refused> {
    expire_in(call, UNITS[3].1)
}

/// PERSIST.
pub fn persist(call: &mut Call<'_>) -> Result<(), Refused> {
    let key = call.first();
    let ends = matches!(call.view.expiry(key), Some(Expiry::At(_)));
    if ends {
        call.view.expire(key, Expiry::Never);
    }
    call.reply.integer(i64::from(ends));
    Ok(())
}

/// -2 of a key that does not exist, -1 of one without end, else what `of` makes of the time.
fn answer(call: &mut Call<'_>, of: impl Fn(i64, i64) -> i64) -> Result<(), Refused> {
    let value = match call.view.expiry(call.first()) {
        None => -2,
        Some(Expiry::Never) => -1,
        Some(Expiry::At(at)) => of(at, call.now_ms),
    };
    call.reply.integer(value);
    Ok(())
}

/// Whole seconds, rounded as Redis does.
const fn seconds(milliseconds: i64) -> i64 {
    milliseconds.saturating_add(500) / 1000
}

/// TTL.
pub fn ttl(call: &mut Call<'_>) -> Result<(), Refused> {
    answer(call, |at, now| seconds(at.saturating_sub(now).max(0)))
}

/// PTTL.
pub fn pttl(call: &mut Call<'_>) -> Result<(), Refused> {
    answer(call, |at, now| at.saturating_sub(now).max(0))
}

/// EXPIRETIME.
pub fn expiretime(call: &mut Call<'_>) -> Result<(), Refused> {
    answer(call, |at, _| seconds(at))
}

/// PEXPIRETIME.
pub fn pexpiretime(call: &mut Call<'_>) -> Result<(), Refused> {
    answer(call, |at, _| at)
}
