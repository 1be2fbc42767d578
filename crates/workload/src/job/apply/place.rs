//! What is done, with which sizes, where and how much.

use crate::job::draft::{Draft, Value};
use crate::job::ioengine::parse_ioengine;
use crate::job::list::{parse_range, parse_split, parse_triple};
use crate::job::number::{parse_amount, parse_integer};
use crate::job::pattern::{ByDirection, FileOrder};
use crate::job::word::{choose, parse_bool, parse_distribution, parse_rw};

type Done = Result<(), String>;

/// The deepest queue: NVMe queues have at most 65 536 entries (NVMe base specification, `CAP.MQES`).
const IODEPTH_MAX: u64 = 65_536;
/// The most clones: fio's `REAL_MAX_JOBS`.
const NUMJOBS_MAX: u64 = 4096;
/// The most files of a job, each of which has its own place (chosen: 20 MB of places; fio has no bound).
const FILES_MAX: u64 = 65_536;

/// A whole number from `low` to `high`.
pub fn bounded(value: Value<'_>, low: u64, high: u64) -> Result<u64, String> {
    let number = parse_integer(value.text, value.kb_base)?;
    if (low..=high).contains(&number) {
        return Ok(number);
    }
    Err(format!("expected a number from {low} to {high}, but it is {number}"))
}

/// As [`bounded`], for 32-bit fields.
pub fn bounded_u32(value: Value<'_>, low: u64, high: u64) -> Result<u32, String> {
    let high = high.min(u64::from(u32::MAX));
    bounded(value, low, high).map(|number| u32::try_from(number).expect("bounded to 32 bits"))
}

/// A percentage per direction.
fn percent(value: Value<'_>) -> Result<u8, String> {
    bounded(value, 0, 100).map(|number| u8::try_from(number).expect("bounded to 100"))
}

pub fn rw(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.rw = parse_rw(value.text, value.kb_base)?;
    Ok(())
}

pub fn bs(draft: &mut Draft, value: Value<'_>) -> Done {
    parse_triple(value.text, &mut draft.bs, |text| bounded(Value { text, ..value }, 1, u64::from(u32::MAX)))
}

/// Of `bsrange` and `bssplit` the one given last holds.
pub fn bsrange(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.bssplit = ByDirection::all(None);
    parse_triple(value.text, &mut draft.bsrange, |text| {
        let range = parse_range(text, value.kb_base)?;
        if range.0 == 0 || range.1 > u64::from(u32::MAX) {
            return Err(format!("expected block sizes from 1 to {} bytes", u32::MAX));
        }
        Ok(Some(range))
    })
}

/// Of `bsrange` and `bssplit` the one given last holds.
pub fn bssplit(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.bsrange = ByDirection::all(None);
    parse_triple(value.text, &mut draft.bssplit, |text| {
        let entries = parse_split(text, value.kb_base)?;
        if entries.iter().any(|entry| entry.bytes > u64::from(u32::MAX)) {
            return Err(format!("expected block sizes from 1 to {} bytes", u32::MAX));
        }
        Ok(Some(entries))
    })
}

pub fn blockalign(draft: &mut Draft, value: Value<'_>) -> Done {
    parse_triple(value.text, &mut draft.options.blockalign, |text| {
        bounded(Value { text, ..value }, 1, u64::MAX).map(Some)
    })
}

pub fn iodepth(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.iodepth = bounded_u32(value, 1, IODEPTH_MAX)?;
    Ok(())
}

pub fn numjobs(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.numjobs = bounded_u32(value, 1, NUMJOBS_MAX)?;
    Ok(())
}

pub fn size(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.size = Some(parse_amount(value.text, value.kb_base)?);
    Ok(())
}

pub fn io_size(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.io_size = Some(parse_amount(value.text, value.kb_base)?);
    Ok(())
}

pub fn offset(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.offset = parse_amount(value.text, value.kb_base)?;
    Ok(())
}

pub fn offset_increment(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.offset_increment = parse_amount(value.text, value.kb_base)?;
    Ok(())
}

/// `a:b` is two names; `\:` is a colon inside a name, as in fio.
pub fn names_of(text: &str) -> Result<Vec<String>, String> {
    let mut names = vec![String::new()];
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let last = names.last_mut().expect("never empty");
        match character {
            '\\' if characters.peek() == Some(&':') => last.extend(characters.next()),
            ':' => names.push(String::new()),
            other => last.push(other),
        }
    }
    if names.iter().any(String::is_empty) {
        return Err("expected file names separated by single colons".to_owned());
    }
    Ok(names)
}

pub fn filename(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.files.names = names_of(value.text)?;
    draft.note("filename", "is only a name, which write_iolog records; the drive of the run stands for it");
    Ok(())
}

/// As `filename`: several are given to clones in turn.
pub fn directory(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.files.directories = names_of(value.text)?;
    Ok(())
}

pub fn filename_format(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.files.format = Some(value.text.to_owned());
    Ok(())
}

pub fn ioengine(draft: &mut Draft, value: Value<'_>) -> Done {
    let (engine, sentence) = parse_ioengine(value.text)?;
    draft.options.ioengine = engine;
    draft.note("ioengine", sentence);
    Ok(())
}

pub fn random_distribution(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.random_distribution = parse_distribution(value.text)?;
    Ok(())
}

pub fn percentage_random(draft: &mut Draft, value: Value<'_>) -> Done {
    parse_triple(value.text, &mut draft.options.percentage_random, |text| percent(Value { text, ..value }))
}

pub fn norandommap(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.norandommap = parse_bool(value.text)?;
    Ok(())
}

/// Only noted; a word fio does not know is an error all the same.
pub fn random_generator(_: &mut Draft, value: Value<'_>) -> Done {
    choose(value.text, &[("tausworthe", ()), ("lfsr", ()), ("tausworthe64", ())])
}

pub fn randseed(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.randseed = Some(parse_integer(value.text, value.kb_base)?);
    Ok(())
}

pub fn randrepeat(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.randrepeat = Some(parse_bool(value.text)?);
    Ok(())
}

pub fn allrandrepeat(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.allrandrepeat = parse_bool(value.text)?;
    Ok(())
}

pub fn rwmixread(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.rwmixread = percent(value)?;
    Ok(())
}

pub fn rwmixwrite(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.rwmixread = 100 - percent(value)?;
    Ok(())
}

pub fn nrfiles(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.file_set.count = bounded_u32(value, 1, FILES_MAX)?;
    Ok(())
}

pub fn openfiles(draft: &mut Draft, value: Value<'_>) -> Done {
    // fio takes 0 as all.
    draft.openfiles = Some(bounded_u32(value, 0, FILES_MAX)?).filter(|count| *count > 0);
    Ok(())
}

pub fn file_service_type(draft: &mut Draft, value: Value<'_>) -> Done {
    let (word, number) = value.text.split_once(':').unwrap_or((value.text, "1"));
    let words = [
        ("roundrobin", FileOrder::RoundRobin),
        ("random", FileOrder::Random),
        ("sequential", FileOrder::Sequential),
    ];
    draft.options.file_set.order = choose(word, &words)?;
    draft.options.file_set.ios_per_file = bounded_u32(Value { text: number, ..value }, 1, u64::MAX)?;
    Ok(())
}
