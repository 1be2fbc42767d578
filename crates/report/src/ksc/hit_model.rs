//! Read latency as a mixture of buffer hits and media reads, fitted to a grid.
//!
//! Each thread reads 4 KiB and waits, so latency = threads x 4096 / throughput. All threads read one region of `W`
//! bytes; of it the `B` bytes written last are in the buffer. Then latency = M (1 - B/W) + H B/W.

use super::grid::{BUFFERS_MIB, Grid, Missing, Pattern};

/// Bytes of one read. Chosen: the paper does not state it; 4 KiB at depth 1 is what its latencies fit.
const READ_BYTES: f64 = 4096.0;

/// Microseconds of a read that hits the buffer. Chosen: a copy of 4 KiB and the block layer; the fit hardly depends on it.
const HIT_US: f64 = 3.0;

/// The model fitted to the buffers of 64, 128 and 256 MiB at one thread count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HitModel {
    /// Latency of a read from media, us.
    pub media_us: f64,
    /// Region that all threads read, MiB.
    pub region_mib: f64,
    /// Root of the mean squared distance from the fit, us.
    pub rms_us: f64,
    /// Latency with 32 MiB over what the model says, us: what hits do not explain.
    pub excess_32_us: f64,
}

/// Latency of a read in us, from throughput in MB/s.
fn latency_us(threads: u32, mb_per_second: f64) -> f64 {
    f64::from(threads) * READ_BYTES / mb_per_second
}

/// Fits the model by least squares. Nothing when latency does not fall with the buffer, or a cell is missing.
pub fn fit_hit_model(grid: &Grid, pattern: Pattern, threads: u32) -> Option<HitModel> {
    try_fit(grid, pattern, threads).ok().flatten()
}

pub(super) fn try_fit(grid: &Grid, pattern: Pattern, threads: u32) -> Result<Option<HitModel>, Missing> {
    let mut latencies = [0.0; 4];
    for (latency, buffer) in latencies.iter_mut().zip(BUFFERS_MIB) {
        *latency = latency_us(threads, grid.need(pattern, buffer, threads)?);
    }
    let sizes = BUFFERS_MIB.map(f64::from);
    let (mean_size, mean_latency) = (mean(&sizes[1..]), mean(&latencies[1..]));
    let pairs = || sizes[1..].iter().zip(&latencies[1..]);
    let covariance: f64 = pairs().map(|(size, latency)| (size - mean_size) * (latency - mean_latency)).sum();
    let variance: f64 = sizes[1..].iter().map(|size| (size - mean_size).powi(2)).sum();
    let slope = covariance / variance;
    let media_us = mean_latency - slope * mean_size;
    if slope >= 0.0 || media_us <= HIT_US {
        return Ok(None);
    }
    let at = |size: f64| media_us + slope * size;
    let squares: f64 = pairs().map(|(size, latency)| (latency - at(*size)).powi(2)).sum();
    let region_mib = (HIT_US - media_us) / slope;
    let excess_32_us = latencies[0] - at(sizes[0]);
    Ok(Some(HitModel { media_us, region_mib, rms_us: (squares / 3.0).sqrt(), excess_32_us }))
}

fn mean(numbers: &[f64]) -> f64 {
    let count = u32::try_from(numbers.len()).expect("a handful of numbers");
    numbers.iter().sum::<f64>() / f64::from(count)
}

#[cfg(test)]
mod tests {
    use super::super::grid::Cell;
    use super::*;

    #[test]
    fn a_grid_made_by_the_model_gives_its_parameters_back() {
        let mut grid = Grid::default();
        for buffer_mib in BUFFERS_MIB {
            let hit = f64::from(buffer_mib) / 1000.0;
            let latency = 90.0 * (1.0 - hit) + HIT_US * hit;
            let cell = Cell { pattern: Pattern::Random, buffer_mib, threads: 8 };
            grid.insert(cell, 8.0 * READ_BYTES / latency).expect("a positive throughput");
        }
        let model = fit_hit_model(&grid, Pattern::Random, 8).expect("latency falls");
        assert!(
            (model.media_us - 90.0).abs() < 1e-6 && (model.region_mib - 1000.0).abs() < 1e-6,
            "{model:?}"
        );
        assert!(model.rms_us < 1e-6 && model.excess_32_us.abs() < 1e-6, "{model:?}");
        assert_eq!(fit_hit_model(&grid, Pattern::Random, 4), None, "not measured");
    }
}
