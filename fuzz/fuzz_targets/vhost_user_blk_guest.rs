//! Any bytes as what a guest puts into its memory: never a panic, nothing beyond an export, nothing kept when it is gone.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    ocssd_export::fuzz::vhost_user_blk_guest(data);
});
