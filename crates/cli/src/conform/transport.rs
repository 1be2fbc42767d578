//! What carries commands to a controller, one at a time.

use anyhow::Result;
use ocssd_nvme::{Cqe, Sqe};

/// A controller that takes a command and answers it before the next.
pub trait Transport {
    /// Sends a command of the admin queue that brings up to `bytes` bytes: these, and how it ended.
    ///
    /// # Errors
    /// The command was not carried out, or not as the transport's rules say.
    fn admin(&mut self, sqe: Sqe, bytes: usize) -> Result<(Vec<u8>, Cqe)>;

    /// Sends a command of I/O that brings up to `bytes` bytes. Of one that fails, what is returned means nothing.
    ///
    /// # Errors
    /// As of [`Transport::admin`].
    fn read(&mut self, sqe: Sqe, bytes: usize) -> Result<(Vec<u8>, Cqe)>;

    /// Sends a command of I/O that takes data, or none.
    ///
    /// # Errors
    /// As of [`Transport::admin`].
    fn write(&mut self, sqe: Sqe, data: &[u8]) -> Result<Cqe>;
}
