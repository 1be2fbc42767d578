//! Any bytes as what a kernel asks of a mount: never a panic, one answer each, nothing kept.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    ocssd_export::fuzz::fuse_kernel(data);
});
