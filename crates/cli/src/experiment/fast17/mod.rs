//! FAST'17: "LightNVM: The Linux Open-Channel SSD Subsystem", its table 1 and figures 4, 5 and 8.

pub mod f4;
pub mod f5;
pub mod f8;
pub mod t1;

use ocssd_workload::results::DirectionStats;

/// Bytes a second, in GB/s.
fn gigabytes(direction: &DirectionStats) -> f64 {
    direction.io_bytes as f64 / direction.runtime.as_secs_f64() / 1e9
}

/// Mean completion latency in ms.
fn mean_ms(direction: &DirectionStats) -> f64 {
    direction.clat.mean_ns() / 1e6
}
