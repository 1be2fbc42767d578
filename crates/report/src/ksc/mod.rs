//! The claims of KSC'17 ("Performance Analysis Based on Write Buffer and Thread Configuration in Open Channel SSD
//! Platforms") as checks over a grid of buffer size, threads and pattern.
//!
//! R1 to R4 are about reads (its table 2), W1 to W5 about writes (its table 3); W4 and W5 are seen in the table and not
//! said in its text. Every check is a pure function that also runs on the paper's own numbers. A missing cell makes a
//! claim "not evaluated", never false.

mod chart;
mod grid;
mod hit_model;
mod reads;
mod writes;

pub use chart::{chart, chart_by_buffer};
pub use grid::{BUFFERS_MIB, Cell, Grid, GridError, Pattern, THREADS};
pub use hit_model::{HitModel, fit_hit_model};
pub use reads::{judge_reads, r1, r2, r3, r4};
pub use writes::{judge_writes, w1, w2, w3, w4, w5};
