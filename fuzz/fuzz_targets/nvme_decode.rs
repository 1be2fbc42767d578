//! Any bytes through every decoder of the wire crate. The promises checked are listed at `ocssd_nvme::fuzz`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    ocssd_nvme::fuzz::decode_everything(data);
});
