//! Any bytes as what an NBD client sends: never a panic, nothing beyond an export, nothing kept when the client is gone.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    ocssd_export::fuzz::nbd_client(data);
});
