//! Numbers in values: INCR and its family, and bits.

use super::command::{Call, NO_INTEGER, Refused};
use super::number::{self, Decimal};
use super::patch::Patch;
use super::strings::TOO_LONG;

fn add(call: &mut Call<'_>, amount: i64) -> Result<(), Refused> {
    let key = call.first();
    let before = call.view.value(key).map_or(Some(0), |value| number::integer(value)).ok_or(NO_INTEGER)?;
    let sum = before.checked_add(amount).ok_or("ERR increment or decrement would overflow")?;
    call.view.replace(key, sum.to_string().as_bytes());
    call.reply.integer(sum);
    Ok(())
}

/// INCR.
pub fn incr(call: &mut Call<'_>) -> Result<(), Refused> {
    add(call, 1)
}

/// DECR.
pub fn decr(call: &mut Call<'_>) -> Result<(), Refused> {
    add(call, -1)
}

/// INCRBY.
pub fn incrby(call: &mut Call<'_>) -> Result<(), Refused> {
    add(call, call.integer(2)?)
}

/// DECRBY.
pub fn decrby(call: &mut Call<'_>) -> Result<(), Refused> {
    let amount = call.integer(2)?.checked_neg().ok_or("ERR decrement would overflow")?;
    add(call, amount)
}

/// INCRBYFLOAT.
pub fn incrbyfloat(call: &mut Call<'_>) -> Result<(), Refused> {
    let key = call.first();
    let before = call.view.value(key).map_or(Some(Decimal::Exact(0)), |value| Decimal::parse(value));
    let (Some(before), Some(amount)) = (before, Decimal::parse(call.word(2))) else {
        return Err("ERR value is not a valid float".into());
    };
    let sum = before.plus(amount).ok_or("ERR increment would produce NaN or Infinity")?.print();
    call.view.replace(key, sum.as_bytes());
    call.reply.bulk(sum.as_bytes());
    Ok(())
}

/// The byte a bit lies in, and the bit in it, the highest first.
fn bit(call: &Call<'_>) -> Result<(usize, u8), Refused> {
    let no_offset = "ERR bit offset is not an integer or out of range";
    // 2^32 bits are the 512 MiB that Redis takes.
    let offset =
        number::integer(call.word(2)).filter(|offset| (0..1 << 32).contains(offset)).ok_or(no_offset)?;
    let byte = usize::try_from(offset / 8).map_err(|_| no_offset)?;
    let bit = u8::try_from(offset % 8).map_err(|_| no_offset)?;
    Ok((byte, 0x80 >> bit))
}

/// GETBIT.
pub fn getbit(call: &mut Call<'_>) -> Result<(), Refused> {
    let (byte, mask) = bit(call)?;
    let found =
        call.view.value(call.first()).and_then(|value| value.get(byte)).is_some_and(|byte| byte & mask != 0);
    call.reply.integer(i64::from(found));
    Ok(())
}

/// SETBIT.
pub fn setbit(call: &mut Call<'_>) -> Result<(), Refused> {
    let (byte, mask) = bit(call)?;
    let is_set = match call.word(3) {
        b"0" => false,
        b"1" => true,
        _ => return Err("ERR bit is not an integer or out of range".into()),
    };
    if byte >= call.value_bytes_max {
        return Err(TOO_LONG.into());
    }
    let key = call.first();
    let before = call.view.value(key).and_then(|value| value.get(byte)).copied().unwrap_or(0);
    let after = if is_set { before | mask } else { before & !mask };
    if call.patch(key, Patch { at: byte, with: &[after] })? {
        call.reply.integer(i64::from(before & mask != 0));
    }
    Ok(())
}
