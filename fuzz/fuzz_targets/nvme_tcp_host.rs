//! Any bytes as what an NVMe/TCP host sends: never a panic, nothing beyond an export, nothing kept when the host is gone.
#![no_main]

#[path = "../../crates/export/src/model_targets.rs"]
mod model_targets;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let others = vec![("z", model_targets::zones()), ("k", model_targets::keys())];
    ocssd_export::fuzz::nvme_tcp_host(data, others);
});
