//! Settings that follow from others unless they are given: the address format, and what the host is told of times.
//!
//! Hints follow the media as in the presets: typical is the average over page types, the longest is the longest.

use super::entry::Entries;
use ocssd_base::Nanos;
use ocssd_flash::Config;
use ocssd_lightnvm::LbaFormat;

fn average(times: &[Nanos]) -> Nanos {
    let count = u64::try_from(times.len()).expect("a length fits 64 bits").max(1);
    // A sum of unchecked times may be beyond 64 bits; the check of the whole drive refuses such times later.
    Nanos(times.iter().fold(0u64, |sum, time| sum.saturating_add(time.0)) / count)
}

fn longest(times: &[Nanos]) -> Nanos {
    times.iter().copied().max().unwrap_or_default()
}

/// Brings everything that was not written in line with what was.
pub(super) fn follow(config: &mut Config, written: &Entries) {
    let geometry = &mut config.geometry;
    let counts = ["groups", "pus_per_group", "chunks_per_pu", "sectors_per_chunk"];
    if counts.iter().any(|key| written.names(key)) {
        let least = LbaFormat::smallest(
            geometry.groups,
            geometry.pus_per_group,
            geometry.chunks_per_pu,
            geometry.sectors_per_chunk,
        );
        let format = &mut geometry.lba_format;
        for (key, bits, least) in [
            ("lba_format.group_bits", &mut format.group_bits, least.group_bits),
            ("lba_format.pu_bits", &mut format.pu_bits, least.pu_bits),
            ("lba_format.chunk_bits", &mut format.chunk_bits, least.chunk_bits),
            ("lba_format.sector_bits", &mut format.sector_bits, least.sector_bits),
        ] {
            if !written.names(key) {
                *bits = least;
            }
        }
    }
    let (media, times) = (&config.media, &mut geometry.times);
    let slowest = media.slow_read.iter().map(|slow| slow.time).max().unwrap_or_default();
    for (causes, key, hint, value) in [
        ("media.read", "times.read_typical", &mut times.read_typical, average(&media.read)),
        (
            "media.read media.slow_read",
            "times.read_max",
            &mut times.read_max,
            longest(&media.read).max(slowest),
        ),
        ("media.program", "times.write_typical", &mut times.write_typical, average(&media.program)),
        ("media.program", "times.write_max", &mut times.write_max, longest(&media.program)),
        ("media.erase", "times.reset_typical", &mut times.reset_typical, media.erase),
        ("media.erase", "times.reset_max", &mut times.reset_max, media.erase),
    ] {
        if causes.split(' ').any(|cause| written.names(cause)) && !written.names(key) {
            *hint = value;
        }
    }
}
