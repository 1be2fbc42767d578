//! Any bytes as an image, or as one piece of a sound image. The promises checked are listed at `ocssd_drive::fuzz`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    ocssd_drive::fuzz::open_image(data);
});
