//! Which reads of a target ask the drive for plane mode.
//!
//! Deliberately not here: what plane mode does; that is the drive's (`media.plane_reads`).

use ocssd_lightnvm::PlaneMode;
use std::fmt;

/// Which reads ask for plane mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlaneReads {
    /// Those whose count is a multiple of WS_OPT, as Linux's pblk had it since 4.12 (`pblk_io_aligned`).
    #[default]
    Aligned,
    /// None.
    Never,
}

impl fmt::Display for PlaneReads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Aligned => "aligned",
            Self::Never => "never",
        })
    }
}

impl std::str::FromStr for PlaneReads {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "aligned" => Ok(Self::Aligned),
            "never" => Ok(Self::Never),
            _ => Err(format!("plane_reads should be \"aligned\" or \"never\", but is \"{text}\"")),
        }
    }
}

/// The rule on one drive.
#[derive(Clone, Copy, Debug)]
pub struct PlaneRule {
    /// Sectors whose multiples ask; `u32::MAX` if none do.
    unit: u32,
}

impl PlaneRule {
    /// For a drive whose write unit is `ws_opt` sectors.
    pub fn new(reads: PlaneReads, ws_opt: u32) -> Self {
        assert!(ws_opt > 0, "a write unit has sectors");
        Self { unit: if reads == PlaneReads::Aligned { ws_opt } else { u32::MAX } }
    }

    /// The mode of a read of `count` sectors.
    #[inline(always)]
    pub const fn of(self, count: u32) -> PlaneMode {
        // Most reads are short: they are asked one question.
        if count >= self.unit && count.is_multiple_of(self.unit) {
            PlaneMode::Multi
        } else {
            PlaneMode::Single
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_write_units_ask_for_plane_mode_and_nothing_does_if_it_is_never() {
        let modes = |reads| [1, 8, 15, 16, 17, 24, 32, 64].map(|count| PlaneRule::new(reads, 16).of(count));
        let multi = modes(PlaneReads::Aligned).map(|mode| mode == PlaneMode::Multi);
        assert_eq!(multi, [false, false, false, true, false, false, true, true]);
        assert_eq!(modes(PlaneReads::Never), [PlaneMode::Single; 8]);
        for reads in [PlaneReads::Aligned, PlaneReads::Never] {
            assert_eq!(reads.to_string().parse(), Ok(reads));
        }
        let error = "quad".parse::<PlaneReads>().expect_err("1.2's word, but no rule");
        assert!(error.contains("\"aligned\" or \"never\""), "{error}");
    }
}
