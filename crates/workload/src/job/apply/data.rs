//! Buffers, durability, verification and errors.

use super::place::{bounded, bounded_u32};
use crate::job::check::{Verify, VerifyContent};
use crate::job::draft::{Draft, Value};
use crate::job::list::parse_pattern;
use crate::job::number::parse_integer;
use crate::job::word::{parse_bool, parse_continue_on_error, parse_sync, parse_verify};

type Done = Result<(), String>;

pub fn fsync(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.fsync = bounded_u32(value, 0, u64::MAX)?;
    Ok(())
}

pub fn fdatasync(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.fdatasync = bounded_u32(value, 0, u64::MAX)?;
    Ok(())
}

pub fn end_fsync(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.end_fsync = parse_bool(value.text)?;
    Ok(())
}

pub fn sync(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.sync = parse_sync(value.text)?;
    Ok(())
}

pub fn verify(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.verify = parse_verify(value.text)?;
    match draft.options.verify.map(Verify::content) {
        Some(VerifyContent::Stamp) => draft.note(
            "verify",
            "every block is compared by its stamp (address and sequence number), which finds what this word would find",
        ),
        Some(VerifyContent::Nothing) => draft.note("verify", "compares nothing, as in fio"),
        Some(VerifyContent::Pattern) | None => {}
    }
    Ok(())
}

pub fn do_verify(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.do_verify = parse_bool(value.text)?;
    Ok(())
}

pub fn verify_pattern(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.verify_pattern = parse_pattern(value.text)?;
    Ok(())
}

pub fn verify_fatal(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.verify_fatal = parse_bool(value.text)?;
    Ok(())
}

pub fn verify_backlog(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.verify_backlog = Some(parse_integer(value.text, value.kb_base)?).filter(|count| *count > 0);
    Ok(())
}

pub fn buffer_pattern(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.buffer_pattern = parse_pattern(value.text)?;
    Ok(())
}

pub fn zero_buffers(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.zero_buffers = parse_bool(value.text)?;
    Ok(())
}

pub fn refill_buffers(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.refill_buffers = parse_bool(value.text)?;
    Ok(())
}

pub fn buffer_compress_percentage(draft: &mut Draft, value: Value<'_>) -> Done {
    let percent = bounded(value, 0, 100)?;
    draft.options.buffer_compress.percentage = Some(u8::try_from(percent).expect("bounded to 100"));
    draft.note(
        "buffer_compress_percentage",
        "is for drives that keep real bytes (payload=bytes); where they keep stamps, a block holds its stamp alone",
    );
    Ok(())
}

pub fn buffer_compress_chunk(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.buffer_compress.chunk = parse_integer(value.text, value.kb_base)?;
    Ok(())
}

pub fn continue_on_error(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.continue_on_error = parse_continue_on_error(value.text)?;
    Ok(())
}
