//! Any bytes as what an NVMe/TCP host sends: never a panic, nothing beyond an export, nothing kept when the host is gone.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    ocssd_export::fuzz::nvme_tcp_host(data);
});
