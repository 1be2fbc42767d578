//! What a user knows about the drive that numbers were measured on, and the linter cannot see in them.
//!
//! Options that `ocssd lint` and `ocssd profile` share, and how their values are read. Deliberately not here: the rules that
//! want to know (`measure::lint`).

use clap::{Args, ValueEnum};
use ocssd_base::Nanos;
use ocssd_flash::Config;
use ocssd_measure::lint::{Media, Settings};

/// The drive, as far as it is known.
#[derive(Args, Clone, Debug)]
pub struct DriveFacts {
    /// What the drive reads from [default: what a virtual drive says of itself, else nand]
    #[arg(long, value_enum)]
    pub media: Option<MediaArg>,
    /// Rate of the drive's link, as 3.9GB/s [default: what the system says, if it is measured here]
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    pub link: Option<f64>,
    /// Memory of the drive [default: a guess of 1GiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub dram: Option<u64>,
    /// Write cache of the drive
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub cache: Option<u64>,
}

/// What a drive reads from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MediaArg {
    /// Flash
    Nand,
    /// Flash with one bit a cell, made for latency
    Slc,
    /// 3D XPoint
    Xpoint,
}

impl DriveFacts {
    /// As the linter takes them, with the IOPS that the same job reaches on a target that answers at once.
    pub fn settings(&self, ceiling: Option<f64>) -> Settings {
        Settings {
            media: self.media.map(|media| match media {
                MediaArg::Nand => Media::Nand,
                MediaArg::Slc => Media::Slc,
                MediaArg::Xpoint => Media::Xpoint,
            }),
            link_bytes_per_second: self.link,
            dram_bytes: self.dram.unwrap_or(Settings::default().dram_bytes),
            cache_bytes: self.cache,
            ceiling_iops: ceiling,
        }
    }

    /// The options that say the same again.
    pub fn words(&self) -> Vec<String> {
        let media = self.media.and_then(|media| media.to_possible_value());
        let media = media.map(|value| format!("--media {}", value.get_name()));
        let link = self.link.map(|rate| format!("--link {rate}"));
        let dram = self.dram.map(|size| format!("--dram {size}"));
        let cache = self.cache.map(|size| format!("--cache {size}"));
        [media, link, dram, cache].into_iter().flatten().collect()
    }
}

/// The shortest sense of a virtual drive's media.
pub fn fastest_read(config: &Config) -> Nanos {
    config.media.read.iter().copied().min().expect("a drive's media have at least one time to be read in")
}

/// A rate in bytes per second: `3.9e9`, `3.9GB/s` or `3.7GiB/s`.
pub fn parse_rate(text: &str) -> Result<f64, String> {
    let units = [
        ("GiB/s", 1_073_741_824.0),
        ("MiB/s", 1_048_576.0),
        ("GB/s", 1e9),
        ("MB/s", 1e6),
        ("B/s", 1.0),
        ("", 1.0),
    ];
    let found = units.iter().find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, scale)));
    let value = found.and_then(|(number, scale)| Some(number.trim().parse::<f64>().ok()? * scale));
    value
        .filter(|rate| rate.is_finite() && *rate > 0.0)
        .ok_or_else(|| format!("expected a rate such as 3.9GB/s or 3700MiB/s, but found `{text}`"))
}

/// A size in bytes: `2GiB`, `512MiB`, `2GB` or a number.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let units = [
        ("TiB", 1 << 40),
        ("GiB", 1 << 30),
        ("MiB", 1 << 20),
        ("TB", 1_000_000_000_000),
        ("GB", 1_000_000_000),
        ("MB", 1_000_000),
        ("", 1_u64),
    ];
    let found = units.iter().find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, scale)));
    let value = found.and_then(|(number, scale)| number.trim().parse::<u64>().ok()?.checked_mul(*scale));
    value.ok_or_else(|| format!("expected a size such as 2GiB or 512MB, but found `{text}`"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        facts: DriveFacts,
    }

    #[test]
    fn what_is_known_reaches_the_linter_and_is_written_as_it_was_read() {
        let read = |words: &str| Line::try_parse_from(format!("x {words}").split_whitespace()).unwrap().facts;
        let words = "--media slc --link 3.9GB/s --dram 2GiB --cache 512MB";
        let settings = read(words).settings(Some(7.0));
        assert_eq!(settings.media, Some(Media::Slc));
        assert_eq!(settings.link_bytes_per_second, Some(3.9e9));
        assert_eq!((settings.dram_bytes, settings.cache_bytes), (2 << 30, Some(512_000_000)));
        assert_eq!(settings.ceiling_iops, Some(7.0));
        let again = read(&read(words).words().join(" "));
        assert_eq!(format!("{again:?}"), format!("{:?}", read(words)));
        assert_eq!(read("").words(), [""; 0], "what is the default need not be said");
        assert_eq!(read("").settings(None).dram_bytes, Settings::default().dram_bytes);
    }

    #[test]
    fn rates_and_sizes_that_are_none_are_refused() {
        for text in ["", "x", "-1GB/s", "0", "infB/s", "3.9 parsecs"] {
            assert!(parse_rate(text).is_err_and(|error| error.contains("3.9GB/s")), "{text}");
        }
        for text in ["", "x", "-1", "1.5GiB", "99999999999TiB"] {
            assert!(parse_bytes(text).is_err_and(|error| error.contains("2GiB")), "{text}");
        }
    }
}
