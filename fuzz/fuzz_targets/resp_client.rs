//! Any bytes as what a client of Redis' protocol sends: never a panic, memory bounded, nothing kept when the client is gone.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    ocssd_export::fuzz::resp_client(data);
});
