//! How many blocks an instance has. Linux keeps no such number: it counts good chunks at every mount
//! (`pblk_set_provision`), so an instance shrinks when chunks go bad.

use super::format::LineLayout;

/// Part of the good chunks that is kept from the user: `PBLK_DEFAULT_OP`.
pub const OVER_PROVISIONING_PERCENT: u32 = 11;

/// The chunks an instance has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GoodChunks {
    /// Good chunks of lines that are used.
    pub chunks: u32,
    /// Lines that are used.
    pub lines: u32,
}

/// Blocks of an instance. `packed`: the last sector of every unit holds metadata.
///
/// # Errors
/// A sentence, if Linux would not make an instance of this size.
pub fn blocks(
    layout: &LineLayout,
    good: GoodChunks,
    over_provisioning_percent: Option<u32>,
    packed: bool,
) -> Result<u64, String> {
    let GoodChunks { chunks, lines } = good;
    assert!(lines <= layout.lines && chunks <= lines * layout.units(), "more good chunks than chunks");
    let percent = over_provisioning_percent.unwrap_or(OVER_PROVISIONING_PERCENT);
    assert!((1..=90).contains(&percent), "{percent} percent are kept from the user");
    let part = u64::from(chunks) * u64::from(100 - percent) / 100;
    let part = u32::try_from(part).expect("a part of the chunks");
    // So many chunks free a line even if every line has only this part to give.
    let spare_min = 100u32.div_ceil(percent) * layout.units();
    let provisioned = if chunks - part >= spare_min {
        part
    } else if over_provisioning_percent.is_some() {
        return Err(format!(
            "Linux's pblk keeps at least {spare_min} chunks back, but {percent} % of {chunks} good chunks are fewer; give \
             over_provisioning_percent as it was when the instance was made"
        ));
    } else {
        chunks.saturating_sub(spare_min)
    };
    let metadata = u64::from(layout.unit + layout.emeta_sectors()) * u64::from(lines);
    let metadata = metadata.div_ceil(u64::from(layout.chunk));
    let chunk = layout.chunk / layout.unit * (layout.unit - u32::from(packed));
    let blocks = u64::from(provisioned).saturating_sub(metadata) * u64::from(chunk);
    if blocks == 0 {
        return Err(format!(
            "Linux's pblk has no room for users on {chunks} good chunks: {spare_min} are kept back, {metadata} hold metadata"
        ));
    }
    Ok(blocks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_lightnvm::{Geometry, PuId};

    fn layout(lines: u32) -> LineLayout {
        let units: Vec<PuId> = (0..8).map(PuId).collect();
        LineLayout::new(&Geometry::example(4, 2, lines, 64, 8), &units).expect("Linux takes it")
    }

    #[test]
    fn sizes_follow_linux() {
        let good = |lines| GoodChunks { chunks: lines * 8, lines };
        // 64 lines: 11 % are 57 chunks, but ten lines of 8 are kept back; 64 * 16 sectors of metadata are 16 chunks.
        assert_eq!(blocks(&layout(64), good(64), None, false), Ok((512 - 80 - 16) * 64));
        // 2000 lines: 14240 of 16000 chunks; 2000 * 24 sectors of metadata (the counts take two sectors more).
        assert_eq!(layout(2000).emeta_sectors(), 8);
        assert_eq!(blocks(&layout(2000), good(2000), None, false), Ok((14_240 - 500) * 64));
        assert_eq!(blocks(&layout(2000), good(2000), Some(20), false), Ok((12_800 - 500) * 64));
        assert_eq!(blocks(&layout(2000), good(2000), Some(20), true), Ok((12_800 - 500) * 56));
    }

    #[test]
    fn what_linux_would_not_make_is_refused() {
        let good = GoodChunks { chunks: 512, lines: 64 };
        let error = blocks(&layout(64), good, Some(11), false).expect_err("57 chunks are fewer than 80");
        assert!(error.contains("at least 80"), "{error}");
        let error =
            blocks(&layout(64), GoodChunks { chunks: 90, lines: 40 }, None, false).expect_err("too small");
        assert!(error.contains("no room"), "{error}");
    }
}
