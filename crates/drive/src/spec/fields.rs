//! Every setting of a drive, in the order drive files are written. `docs/drive.md` lists the same.
//!
//! Deliberately not here: explicit faults, which are a list (`fault`), and `preset`, which names all settings at once.

use super::field::{Access, Field};
use super::own;
use Access::{Bits, Count, Flag, Own, Parts, Rate, Time, Times};

const fn field(key: &'static str, access: Access, about: &'static str) -> Field {
    Field { key, about, access }
}

/// Every setting. Those without a table come first, as TOML wants them.
pub const FIELDS: &[Field] = &[
    field("model", Own(own::MODEL), "name of the drive, for people"),
    field("revision", Own(own::REVISION), "what the controller speaks: \"2.0\" or \"1.2\""),
    field("payload", Own(own::PAYLOAD), "what is stored for a sector: \"bytes\" or 16 bytes of \"stamp\""),
    field("queue_depth", Count(|c| &mut c.queue_depth), "commands in flight, 1 to 65535"),
    field("seed", Own(own::SEED), "where factory-bad chunks and seeded faults come from"),
    field("groups", Count(|c| &mut c.geometry.groups), "groups, 1 to 65535"),
    field("pus_per_group", Count(|c| &mut c.geometry.pus_per_group), "parallel units in a group, 1 to 65535"),
    field("chunks_per_pu", Count(|c| &mut c.geometry.chunks_per_pu), "chunks in a parallel unit, from 1"),
    field(
        "sectors_per_chunk",
        Count(|c| &mut c.geometry.sectors_per_chunk),
        "sectors in a chunk, a multiple of ws_opt",
    ),
    field(
        "sector_bytes",
        Count(|c| &mut c.geometry.sector_bytes),
        "bytes of a sector, a power of two, 512 to 65536",
    ),
    field("oob_bytes", Count(|c| &mut c.geometry.oob_bytes), "bytes of metadata beside a sector, 0 to 64"),
    field("ws_min", Count(|c| &mut c.geometry.ws_min), "sectors a write is a multiple of, from 1"),
    field(
        "ws_opt",
        Count(|c| &mut c.geometry.ws_opt),
        "sectors of a whole write unit, up to 64, a multiple of ws_min",
    ),
    field(
        "mw_cunits",
        Count(|c| &mut c.geometry.mw_cunits),
        "sectors that must follow one before it is readable, a multiple of ws_min",
    ),
    field(
        "max_open_chunks",
        Count(|c| &mut c.geometry.max_open_chunks),
        "chunks open in the drive, 0 for no limit",
    ),
    field(
        "max_open_chunks_per_pu",
        Count(|c| &mut c.geometry.max_open_chunks_per_pu),
        "chunks open in one parallel unit, 0 for no limit",
    ),
    field(
        "wear_index_threshold",
        Bits(|c| &mut c.geometry.wear_index_threshold),
        "distance of a wear index from the average that is notified, 0 to 255",
    ),
    field(
        "lba_format.group_bits",
        Bits(|c| &mut c.geometry.lba_format.group_bits),
        "bits of the group, up to 32",
    ),
    field(
        "lba_format.pu_bits",
        Bits(|c| &mut c.geometry.lba_format.pu_bits),
        "bits of the parallel unit, up to 32",
    ),
    field(
        "lba_format.chunk_bits",
        Bits(|c| &mut c.geometry.lba_format.chunk_bits),
        "bits of the chunk, up to 32",
    ),
    field(
        "lba_format.sector_bits",
        Bits(|c| &mut c.geometry.lba_format.sector_bits),
        "bits of the sector, up to 32",
    ),
    field(
        "capabilities.vector_copy",
        Flag(|c| &mut c.geometry.capabilities.vector_copy),
        "vector copy is supported",
    ),
    field(
        "capabilities.multiple_resets",
        Flag(|c| &mut c.geometry.capabilities.multiple_resets),
        "a FREE chunk may be reset again",
    ),
    field(
        "capabilities.early_reset",
        Flag(|c| &mut c.geometry.capabilities.early_reset),
        "an OPEN chunk may be reset",
    ),
    field(
        "features.dulbe",
        Flag(|c| &mut c.dulbe),
        "reads of unwritten sectors fail after power-on, until a host says otherwise (feature 05h)",
    ),
    field(
        "times.read_typical",
        Time(|c| &mut c.geometry.times.read_typical),
        "typical read told to the host",
    ),
    field("times.read_max", Time(|c| &mut c.geometry.times.read_max), "longest read told to the host"),
    field(
        "times.write_typical",
        Time(|c| &mut c.geometry.times.write_typical),
        "typical write told to the host",
    ),
    field("times.write_max", Time(|c| &mut c.geometry.times.write_max), "longest write told to the host"),
    field(
        "times.reset_typical",
        Time(|c| &mut c.geometry.times.reset_typical),
        "typical reset told to the host",
    ),
    field("times.reset_max", Time(|c| &mut c.geometry.times.reset_max), "longest reset told to the host"),
    field("media.cell", Own(own::CELL), "cell type: \"slc\", \"mlc\", \"tlc\" or \"qlc\""),
    field("media.planes", Count(|c| &mut c.media.planes), "planes worked together, 1 to 4"),
    field(
        "media.sectors_per_page",
        Count(|c| &mut c.media.sectors_per_page),
        "sectors of a page of one plane, from 1",
    ),
    field(
        "media.plane_reads",
        Own(own::PLANE_READS),
        "reads that sense a page of every plane: those whose command \"asked\", or \"always\"",
    ),
    field(
        "media.read",
        Times(|c| &mut c.media.read),
        "time to sense a page, one per page type, up to 60s each",
    ),
    field(
        "media.slow_read",
        Own(own::SLOW_READ),
        "shares of pages that take longer, as \"6%: 85us\", each smaller and slower than the one before it",
    ),
    field(
        "media.program",
        Times(|c| &mut c.media.program),
        "time to program a write unit, repeating, up to 60s each",
    ),
    field("media.erase", Time(|c| &mut c.media.erase), "time to reset a chunk, up to 60s"),
    field(
        "media.registers",
        Count(|c| &mut c.media.registers),
        "page registers, 1 to 4; with 1 nothing overlaps",
    ),
    field(
        "channel.bytes_per_second",
        Rate(|c| &mut c.channel.bytes_per_second),
        "data rate of a group's bus, 1MB/s to 1000GB/s",
    ),
    field("channel.command", Time(|c| &mut c.channel.command), "command cycles of one transfer, up to 60s"),
    field(
        "channel.grant_sectors",
        Count(|c| &mut c.channel.grant_sectors),
        "sectors after which a transfer lets others have the channel, 0 for never",
    ),
    field(
        "link.read_bytes_per_second",
        Rate(|c| &mut c.link.read_bytes_per_second),
        "host interface towards the host, 1MB/s to 1000GB/s",
    ),
    field(
        "link.write_bytes_per_second",
        Rate(|c| &mut c.link.write_bytes_per_second),
        "host interface towards the drive, 1MB/s to 1000GB/s",
    ),
    field("link.command", Time(|c| &mut c.link.command), "controller time of every command, up to 60s"),
    field("cache.sectors", Own(own::CACHE_SECTORS), "write-back cache in sectors or as a size; 0 for none"),
    field(
        "cache.power_loss_protection",
        Flag(|c| &mut c.cache.power_loss_protection),
        "the cache survives a power cut",
    ),
    field("scheduler.kind", Own(own::SCHEDULER_KIND), "\"fifo\" or \"read_priority\""),
    field("scheduler.suspend", Own(own::SUSPEND), "time until a suspended reset frees the array"),
    field("scheduler.resume", Own(own::RESUME), "time a resumed reset loses"),
    field("scheduler.suspends_max", Own(own::SUSPENDS_MAX), "how often one reset may be suspended"),
    field(
        "scheduler.program_suspend",
        Own(own::PROGRAM_SUSPEND),
        "time until a suspended program frees the array",
    ),
    field("scheduler.program_resume", Own(own::PROGRAM_RESUME), "time a resumed program loses"),
    field(
        "scheduler.program_suspends_max",
        Own(own::PROGRAM_SUSPENDS_MAX),
        "how often one program may be suspended; 0 for never",
    ),
    field("scheduler.bypasses_max", Own(own::BYPASSES_MAX), "reads that may pass a waiting write or reset"),
    field("wear.endurance", Count(|c| &mut c.wear.endurance), "resets a chunk survives, from 1"),
    field("wear.initial_cycles", Count(|c| &mut c.wear.initial_cycles), "resets behind every chunk when new"),
    field("faults.factory_bad", Parts(|c| &mut c.faults.factory_bad), "chunks offline from the factory"),
    field("faults.unrecovered_read", Parts(|c| &mut c.faults.unrecovered_read), "sectors lost on new media"),
    field(
        "faults.unrecovered_read_worn",
        Parts(|c| &mut c.faults.unrecovered_read_worn),
        "sectors lost on worn media",
    ),
    field(
        "faults.high_ecc",
        Parts(|c| &mut c.faults.high_ecc),
        "sectors that read with High ECC on new media",
    ),
    field("faults.high_ecc_worn", Parts(|c| &mut c.faults.high_ecc_worn), "the same on worn-out media"),
    field(
        "faults.write_next_unit",
        Parts(|c| &mut c.faults.write_next_unit),
        "write units that fail and are skipped",
    ),
    field(
        "faults.early_close",
        Parts(|c| &mut c.faults.early_close),
        "write units at which a chunk closes early",
    ),
    field(
        "faults.reset_failure",
        Parts(|c| &mut c.faults.reset_failure),
        "resets that take the chunk offline",
    ),
    field(
        "faults.latency_spike",
        Parts(|c| &mut c.faults.latency_spike),
        "array operations that take longer",
    ),
    field("faults.spike", Time(|c| &mut c.faults.spike), "how much longer, up to 60s"),
    field(
        "faults.transient_read",
        Parts(|c| &mut c.faults.transient_read),
        "sectors that cannot be read in one try, and in the next can",
    ),
    field("faults.failed_read", Parts(|c| &mut c.faults.failed_read), "reads that fail as a whole"),
    field(
        "faults.failed_write",
        Parts(|c| &mut c.faults.failed_write),
        "writes and copies that fail as a whole",
    ),
    field("faults.failed_reset", Parts(|c| &mut c.faults.failed_reset), "resets that fail as a whole"),
    field(
        "faults.failed_flush",
        Parts(|c| &mut c.faults.failed_flush),
        "flushes that fail, and wait for nothing",
    ),
    field(
        "faults.half_reset",
        Parts(|c| &mut c.faults.half_reset),
        "resets that a power cut leaves half done",
    ),
    field(
        "faults.paired_loss",
        Parts(|c| &mut c.faults.paired_loss),
        "units torn by a power cut that take the one before along",
    ),
    field(
        "faults.misdirected_read",
        Parts(|c| &mut c.faults.misdirected_read),
        "sectors whose read returns the first of their chunk, once",
    ),
];

/// The setting of this name.
#[must_use]
pub fn find(key: &str) -> Option<&'static Field> {
    FIELDS.iter().find(|field| field.key == key)
}

/// The setting a mistyped name was probably meant to be: at most a third of its letters differ.
pub(super) fn nearest(key: &str) -> Option<&'static str> {
    let names = FIELDS.iter().map(|field| field.key).chain(["preset", "fault"]);
    let (distance, name) = names.map(|name| (strsim::damerau_levenshtein(key, name), name)).min()?;
    let by_last = || {
        // `erase` for `media.erase`: the table was forgotten.
        FIELDS
            .iter()
            .map(|field| field.key)
            .find(|name| name.split_once('.').is_some_and(|(_, last)| last == key))
    };
    if distance * 3 <= key.len() { Some(name) } else { by_last() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_has_its_own_name_and_those_of_a_table_lie_together() {
        let mut tables: Vec<&str> = Vec::new();
        for (index, field) in FIELDS.iter().enumerate() {
            assert!(
                FIELDS[..index].iter().all(|other| other.key != field.key),
                "{} is listed twice",
                field.key
            );
            let table = field.key.rsplit_once('.').map_or("", |(table, _)| table);
            if tables.last() != Some(&table) {
                assert!(!tables.contains(&table), "[{table}] is split at {}", field.key);
                tables.push(table);
            }
        }
        assert_eq!(tables.first(), Some(&""), "settings without a table come first");
    }

    #[test]
    fn a_mistyped_name_is_led_to_its_setting() {
        let table = [
            ("medai.erase", Some("media.erase")),
            ("erase", Some("media.erase")),
            ("group", Some("groups")),
            ("prest", Some("preset")),
            ("colour", None),
        ];
        for (typed, expected) in table {
            assert_eq!(nearest(typed), expected, "{typed}");
        }
    }
}
