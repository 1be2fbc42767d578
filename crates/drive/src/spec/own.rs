//! Settings with rules of their own: names of kinds, the seed, the cache's size, the scheduler.

use super::field::Own;
use super::quantity::{PARTS, SIZE, TIME};
use super::value::{Value, quoted};
use ocssd_base::Nanos;
use ocssd_flash::Config;
use ocssd_flash::config::{CellType, PlaneReads, Revision, Scheduler, SlowRead, Suspension};
use ocssd_lightnvm::Payload;

/// Chosen. Suspend: about what published erase-suspend schemes need to free the array (tens to hundreds of microseconds).
/// Resume: half of that, to restore the erase voltage. Vendors bound suspends so that an erase ends; eight keep a 3 ms erase
/// within twice its time.
const ERASE_DEFAULT: Suspension =
    Suspension { suspend: Nanos::from_micros(100), resume: Nanos::from_micros(50), suspends_max: 8 };
/// Chosen: programs are not suspended unless asked. If they are, the array stops at the end of a pulse with its verify, some
/// tens of microseconds (Wu and He, FAST 2012, suspend there), and raises its voltages again in half of that.
const PROGRAM_DEFAULT: Suspension =
    Suspension { suspend: Nanos::from_micros(20), resume: Nanos::from_micros(10), suspends_max: 0 };
/// Chosen: as many reads as one vector command holds may pass a waiting write.
const BYPASSES_MAX_DEFAULT: u32 = 64;

/// The value a name stands for.
fn named<T: Copy>(value: &Value, names: &[(&str, T)]) -> Option<T> {
    let (Value::Text(text) | Value::Float(text)) = value else { return None };
    names.iter().find(|(name, _)| name == text).map(|(_, named)| *named)
}

/// The name of a value, as TOML.
fn name_of<T: Copy + PartialEq>(value: T, names: &[(&str, T)]) -> Option<String> {
    names.iter().find(|(_, named)| *named == value).map(|(name, _)| quoted(name))
}

pub(super) const MODEL: Own = Own {
    expected: "must be text of at most 128 bytes in quotes",
    set: |config, value| {
        value.text().filter(|text| text.len() <= 128)?.clone_into(&mut config.model);
        Some(())
    },
    show: |config| Some(quoted(&config.model)),
};

const REVISIONS: [(&str, Revision); 2] = [("2.0", Revision::V20), ("1.2", Revision::V12)];

pub(super) const REVISION: Own = Own {
    expected: "must be \"2.0\" or \"1.2\"",
    set: |config, value| {
        config.revision = named(value, &REVISIONS)?;
        Some(())
    },
    show: |config| name_of(config.revision, &REVISIONS),
};

const PAYLOADS: [(&str, Payload); 2] = [("bytes", Payload::Bytes), ("stamp", Payload::Stamp)];

pub(super) const PAYLOAD: Own = Own {
    expected: "must be \"bytes\" (real content) or \"stamp\" (16 bytes a sector, for simulations)",
    set: |config, value| {
        config.payload = named(value, &PAYLOADS)?;
        Some(())
    },
    show: |config| name_of(config.payload, &PAYLOADS),
};

const CELLS: [(&str, CellType); 4] =
    [("slc", CellType::Slc), ("mlc", CellType::Mlc), ("tlc", CellType::Tlc), ("qlc", CellType::Qlc)];

pub(super) const CELL: Own = Own {
    expected: "must be \"slc\", \"mlc\", \"tlc\" or \"qlc\"",
    set: |config, value| {
        config.media.cell = named(value, &CELLS)?;
        Some(())
    },
    show: |config| name_of(config.media.cell, &CELLS),
};

const PLANE_READS_NAMES: [(&str, PlaneReads); 2] =
    [("asked", PlaneReads::Asked), ("always", PlaneReads::Always)];

pub(super) const PLANE_READS: Own = Own {
    expected: "must be \"asked\" or \"always\"",
    set: |config, value| {
        config.media.plane_reads = named(value, &PLANE_READS_NAMES)?;
        Some(())
    },
    show: |config| name_of(config.media.plane_reads, &PLANE_READS_NAMES),
};

/// One share and its time, as `6%: 85us`.
fn slow_read(text: &str) -> Option<SlowRead> {
    let (share, time) = text.split_once(':')?;
    let share = u32::try_from(PARTS.parse(share.trim())?).ok()?;
    Some(SlowRead { share, time: Nanos(TIME.parse(time.trim())?) })
}

pub(super) const SLOW_READ: Own = Own {
    expected: "must be a list of shares of pages with their times, such as [\"6%: 85us\", \"2000ppm: 95us\"] (ppb, ppm, %; ns, us, \
               ms, s)",
    set: |config, value| {
        config.media.slow_read = match value {
            Value::Text(text) if text.is_empty() => Some(Vec::new()),
            Value::Text(text) => text.split(',').map(|entry| slow_read(entry.trim())).collect(),
            Value::List(list) => list.iter().map(|entry| entry.text().and_then(slow_read)).collect(),
            _ => None,
        }?;
        Some(())
    },
    show: |config| {
        let show = |slow: &SlowRead| {
            quoted(&format!("{}: {}", PARTS.show(slow.share.into()), TIME.show(slow.time.0)))
        };
        let list: Vec<String> = config.media.slow_read.iter().map(show).collect();
        Some(format!("[{}]", list.join(", ")))
    },
};

pub(super) const SEED: Own = Own {
    expected: "must be a whole number from 0 to 18446744073709551615 (in quotes above 9223372036854775807)",
    set: |config, value| {
        config.seed = match value {
            Value::Text(text) => text.parse().ok()?,
            other => other.number()?,
        };
        Some(())
    },
    // TOML's integers are signed 64 bits; larger seeds are written as text.
    show: |config| {
        let plain = i64::try_from(config.seed).is_ok();
        Some(if plain { config.seed.to_string() } else { quoted(&config.seed.to_string()) })
    },
};

pub(super) const CACHE_SECTORS: Own = Own {
    expected: "must be a whole number of sectors, or a size that is a multiple of sector_bytes, such as \"32MiB\"",
    set: |config, value| {
        let sector_bytes = u64::from(config.geometry.sector_bytes);
        let sectors = match value {
            Value::Text(text) => {
                let bytes = SIZE.parse(text)?;
                bytes.is_multiple_of(sector_bytes).then(|| bytes.checked_div(sector_bytes))??
            }
            other => other.number()?,
        };
        config.cache.sectors = u32::try_from(sectors).ok()?;
        Some(())
    },
    show: |config| Some(config.cache.sectors.to_string()),
};

pub(super) const SCHEDULER_KIND: Own = Own {
    expected: "must be \"fifo\" or \"read_priority\"",
    set: |config, value| {
        match (value.text()?, &config.scheduler) {
            ("fifo", _) => config.scheduler = Scheduler::Fifo,
            ("read_priority", Scheduler::ReadPriority { .. }) => {}
            ("read_priority", Scheduler::Fifo) => {
                config.scheduler = Scheduler::ReadPriority {
                    erase: ERASE_DEFAULT,
                    program: PROGRAM_DEFAULT,
                    bypasses_max: BYPASSES_MAX_DEFAULT,
                };
            }
            _ => return None,
        }
        Some(())
    },
    show: |config| {
        Some(quoted(match config.scheduler {
            Scheduler::Fifo => "fifo",
            Scheduler::ReadPriority { .. } => "read_priority",
        }))
    },
};

/// Chosen: as the other times of a drive, which `Config::check` bounds the same way.
const TIME_MAX: Nanos = Nanos::from_secs(60);

fn time(value: &Value) -> Option<Nanos> {
    TIME.parse(value.text()?).map(Nanos).filter(|time| *time <= TIME_MAX)
}

fn quoted_time(time: Nanos) -> String {
    quoted(&TIME.show(time.0))
}

const TIME_EXPECTED: &str = "must be a time of at most 60s such as \"100us\" and needs scheduler.kind = \"read_priority\", the kind that suspends";
const COUNT_EXPECTED: &str =
    "must be a whole number from 0 to 4294967295 and needs scheduler.kind = \"read_priority\"";

/// A time of the scheduler.
macro_rules! scheduler_time {
    ($name:ident, $kind:ident, $field:ident) => {
        pub(super) const $name: Own = Own {
            expected: TIME_EXPECTED,
            set: |config, value| {
                let Scheduler::ReadPriority { $kind, .. } = &mut config.scheduler else { return None };
                $kind.$field = time(value)?;
                Some(())
            },
            show: |config| match config.scheduler {
                Scheduler::ReadPriority { $kind, .. } => Some(quoted_time($kind.$field)),
                Scheduler::Fifo => None,
            },
        };
    };
}

/// How often an operation may be suspended.
macro_rules! suspends_max {
    ($name:ident, $kind:ident) => {
        pub(super) const $name: Own = Own {
            expected: COUNT_EXPECTED,
            set: |config, value| {
                let Scheduler::ReadPriority { $kind, .. } = &mut config.scheduler else { return None };
                $kind.suspends_max = value.number()?;
                Some(())
            },
            show: |config| match config.scheduler {
                Scheduler::ReadPriority { $kind, .. } => Some($kind.suspends_max.to_string()),
                Scheduler::Fifo => None,
            },
        };
    };
}

scheduler_time!(SUSPEND, erase, suspend);
scheduler_time!(RESUME, erase, resume);
suspends_max!(SUSPENDS_MAX, erase);
scheduler_time!(PROGRAM_SUSPEND, program, suspend);
scheduler_time!(PROGRAM_RESUME, program, resume);
suspends_max!(PROGRAM_SUSPENDS_MAX, program);

pub(super) const BYPASSES_MAX: Own = Own {
    expected: COUNT_EXPECTED,
    set: |config, value| {
        let Scheduler::ReadPriority { bypasses_max, .. } = &mut config.scheduler else { return None };
        *bypasses_max = value.number()?;
        Some(())
    },
    show: |config| match config.scheduler {
        Scheduler::ReadPriority { bypasses_max, .. } => Some(bypasses_max.to_string()),
        Scheduler::Fifo => None,
    },
};

/// True if both drives would keep the same things in an image: what an override must not change.
pub(crate) fn same_shape(one: &Config, other: &Config) -> bool {
    let shape = |config: &Config| {
        let g = &config.geometry;
        let counts =
            [g.groups, g.pus_per_group, g.chunks_per_pu, g.sectors_per_chunk, g.sector_bytes, g.oob_bytes];
        (counts, g.ws_min, g.ws_opt, g.lba_format, config.payload, config.wear.initial_cycles)
    };
    shape(one) == shape(other)
}
