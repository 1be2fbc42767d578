//! The virtual drive from outside: typed commands in, completions and times out.

mod cache;
mod calibration;
mod channel_grants;
mod copy;
mod failing_backing;
mod faults;
mod harm;
mod mixed_failures;
mod plain_reads;
mod plane_reads;
mod power_cut;
mod power_cut_history;
mod reads;
mod rig;
mod rules;
mod rules_model;
mod scheduler;
mod timing;
mod waits;
mod wear;
mod whole;
