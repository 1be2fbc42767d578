//! Any bytes as a job file and as a command line: never a panic, and every job said again gives the same job.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ocssd_workload::job::fuzz_parse(data));
