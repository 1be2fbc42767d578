//! What is said when the drive itself failed, because the file below it did.

use anyhow::anyhow;
use ocssd_flash::Flash;

/// Why a target could not be mounted, with what the drive's file has to say to it.
pub fn with_cause(sentence: String, flash: &Flash) -> anyhow::Error {
    match flash.store_error() {
        Some(error) => anyhow!("{error}; {sentence}"),
        None => anyhow!(sentence),
    }
}

/// The end of a drive whose file failed while it was served, which was told then.
pub fn not_kept() -> anyhow::Error {
    anyhow!("the drive's file failed: what was flushed is there, what came after it is lost or was refused")
}
