//! Workloads: fio job files as input, requests to targets, fio results as output.
//!
//! `job` reads what is asked, `run` turns it into requests and checks what comes back, `results` shows what was
//! measured. `generator` makes requests of interfaces beyond blocks, `lsm` those of an LSM tree in time; `beside`
//! lets generators ask beside jobs. Deliberately not here: clocks, devices, files.

pub mod beside;
pub mod generator;
pub mod host_cpu;
pub mod job;
pub mod lsm;
pub mod results;
pub mod run;
