//! Any bytes as a drive file and as single settings. The promises checked are listed at `ocssd_drive::fuzz`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    ocssd_drive::fuzz::parse_toml(data);
});
