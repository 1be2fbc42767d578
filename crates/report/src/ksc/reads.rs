//! Reads: R1 to R4.

use super::grid::{BUFFERS_MIB, Grid, Missing, Pattern, THREADS, change_percent, ends, verdict};
use super::hit_model::try_fit;
use crate::verdict::Verdict;

/// Least and greatest factor per doubling of threads up to 8, as far as the claim's one decimal reaches: 1.65 is 1.7.
const EARLY_GROWTH: (f64, f64) = (1.65, 2.15);

/// Least and greatest factor from 18 to 36 threads, likewise for 1.2 and 1.8.
const LATE_GROWTH: (f64, f64) = (1.15, 1.85);

/// All claims about reads, in order.
pub fn judge_reads(grid: &Grid) -> Vec<Verdict> {
    vec![r1(grid), r2(grid), r3(grid), r4(grid)]
}

/// Reads grow with threads, and ever less: 1.7 to 2.1 times per doubling up to 8, 1.2 to 1.8 times from 18 to 36.
pub fn r1(grid: &Grid) -> Verdict {
    let claim = "Reads grow with threads, and ever less: 1.7 to 2.1 times per doubling up to 8 threads, \
                 1.2 to 1.8 times from 18 to 36, at every buffer size.";
    verdict("R1", claim, decide_r1(grid))
}

fn decide_r1(grid: &Grid) -> Result<(bool, String), Missing> {
    let (mut early, mut late, mut falling) = (Vec::new(), Vec::new(), Vec::new());
    for (pattern, buffer) in curves() {
        let curve = grid.curve(pattern, buffer)?;
        early.extend([curve[1] / curve[0], curve[2] / curve[1]]);
        late.push(curve[4] / curve[3]);
        falling.extend(falls(pattern, buffer, &curve));
    }
    let (early, late) = (ends(&early), ends(&late));
    let is_early = early.0 >= EARLY_GROWTH.0 && early.1 <= EARLY_GROWTH.1;
    let is_late = late.0 >= LATE_GROWTH.0 && late.1 <= LATE_GROWTH.1;
    let mut sentence = format!(
        "per doubling up to 8 threads x{:.2} to x{:.2}, from 18 to 36 x{:.2} to x{:.2}",
        early.0, early.1, late.0, late.1
    );
    if falling.is_empty() {
        sentence += "; no curve falls before 54 threads";
    } else {
        sentence += &format!("; falls: {}", falling.join(", "));
    }
    Ok((is_early && is_late && falling.is_empty(), sentence))
}

/// Steps of a curve up to 54 threads that do not rise. What happens from 54 to 72 is R2.
fn falls(pattern: Pattern, buffer: u32, curve: &[f64; 7]) -> Vec<String> {
    let steps = curve.windows(2).zip(THREADS.windows(2)).take(5);
    steps
        .filter(|(values, _)| values[1] <= values[0])
        .map(|(values, threads)| {
            let word = pattern.word();
            format!(
                "{word} {buffer} MiB {} to {} threads {:.0} to {:.0} MB/s",
                threads[0], threads[1], values[0], values[1]
            )
        })
        .collect()
}

/// From 54 to 72 threads reads change by -2 to +16 %; the paper's text says "almost no change".
pub fn r2(grid: &Grid) -> Verdict {
    let claim = "From 54 to 72 threads reads change by -2 to +16 % (the paper's text: almost none).";
    verdict("R2", claim, decide_r2(grid))
}

fn decide_r2(grid: &Grid) -> Result<(bool, String), Missing> {
    let mut parts = Vec::new();
    let mut changes = Vec::new();
    for pattern in Pattern::ALL {
        let mut list = Vec::new();
        for buffer in BUFFERS_MIB {
            let change = change_percent(grid.need(pattern, buffer, 54)?, grid.need(pattern, buffer, 72)?);
            changes.push(change);
            list.push(format!("{change:+.1}"));
        }
        parts.push(format!("{} {} %", pattern.word(), list.join(", ")));
    }
    // Whole percents are what the claim is stated in.
    let (least, greatest) = ends(&changes);
    let almost_none = changes.iter().filter(|change| change.abs() <= 5.0).count();
    let sentence = format!(
        "54 to 72 threads at 32, 64, 128, 256 MiB: {}; within 5 % in {almost_none} of {} curves",
        parts.join("; "),
        changes.len()
    );
    Ok((least >= -2.5 && greatest <= 16.5, sentence))
}

/// A larger buffer reads faster at every thread count, but for two cells of the paper's own table.
pub fn r3(grid: &Grid) -> Verdict {
    let claim = "A larger buffer reads faster at every thread count (the paper's own exceptions: sequential, \
                 54 threads 32 to 64 MiB, 72 threads 64 to 128 MiB).";
    verdict("R3", claim, decide_r3(grid))
}

fn decide_r3(grid: &Grid) -> Result<(bool, String), Missing> {
    let (mut named, mut others, mut pairs) = (Vec::new(), Vec::new(), 0_u32);
    for pattern in Pattern::ALL {
        for threads in THREADS {
            for step in BUFFERS_MIB.windows(2) {
                let (small, large) =
                    (grid.need(pattern, step[0], threads)?, grid.need(pattern, step[1], threads)?);
                pairs += 1;
                if large > small {
                    continue;
                }
                let word = pattern.word();
                let text = format!(
                    "{word} {threads} threads {} to {} MiB {small:.0} to {large:.0} MB/s",
                    step[0], step[1]
                );
                let is_named =
                    pattern == Pattern::Sequential && matches!((threads, step[0]), (54, 32) | (72, 64));
                if is_named { named.push(text) } else { others.push(text) }
            }
        }
    }
    let ordered = pairs - u32::try_from(named.len() + others.len()).expect("at most all pairs");
    let mut sentence = format!("{ordered} of {pairs} steps to the next size are faster");
    for (what, list) in [("exceptions the paper has too", &named), ("others", &others)] {
        if !list.is_empty() {
            sentence += &format!("; {what}: {}", list.join(", "));
        }
    }
    Ok((others.is_empty(), sentence))
}

/// What a larger buffer gains is explained by hits: see [`super::HitModel`].
pub fn r4(grid: &Grid) -> Verdict {
    let claim = "What a larger buffer gains in reads is explained by hits in it: for 64 to 256 MiB and 2 to 18 threads \
                 one region and one media latency fit within 1 us.";
    verdict("R4", claim, decide_r4(grid))
}

fn decide_r4(grid: &Grid) -> Result<(bool, String), Missing> {
    let (mut regions, mut media, mut errors, mut excess) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for pattern in Pattern::ALL {
        for threads in &THREADS[..4] {
            let Some(model) = try_fit(grid, pattern, *threads)? else {
                let word = pattern.word();
                return Ok((
                    false,
                    format!("{word}, {threads} threads: latency does not fall as the buffer grows"),
                ));
            };
            regions.push(model.region_mib);
            media.push(model.media_us);
            errors.push(model.rms_us);
            excess.push(model.excess_32_us);
        }
    }
    let (regions, media, errors, excess) = (ends(&regions), ends(&media), ends(&errors), ends(&excess));
    // Chosen: one region means that the fits agree within a factor of 1.5; the paper's differ by 1.3.
    let holds = errors.1 <= 1.0 && regions.1 <= 1.5 * regions.0;
    let sentence = format!(
        "region {:.0} to {:.0} MiB, media read {:.0} to {:.0} us, rms error {:.2} us at most; 32 MiB is {:+.0} to \
         {:+.0} us off the model",
        regions.0, regions.1, media.0, media.1, errors.1, excess.0, excess.1
    );
    Ok((holds, sentence))
}

/// Every curve of a table.
fn curves() -> impl Iterator<Item = (Pattern, u32)> {
    Pattern::ALL.into_iter().flat_map(|pattern| BUFFERS_MIB.map(|buffer| (pattern, buffer)))
}
