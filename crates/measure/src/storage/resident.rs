//! Which part of a file the page cache holds: the other half of the proof that I/O was direct.
//!
//! The second place in the project with `unsafe`. What must hold: the mapping is made, asked about and taken down within
//! one function, is never read or written, and the list for the answer has a byte for each page.

#![expect(
    unsafe_code,
    reason = "mmap and mincore take addresses; the module's documentation says why that is sound"
)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Pages asked about at once: a window of 64 MiB of 4 KiB pages (chosen).
const WINDOW_BYTES: u64 = 64 << 20;

/// Share of the first `bytes` of `file` that is in the page cache, looked at in `windows` windows spread over it.
///
/// # Errors
/// What the system says, if it cannot be asked: devices may refuse.
pub fn resident_share(file: &File, bytes: u64, windows: u64) -> io::Result<f64> {
    let page = u64::try_from(rustix::param::page_size()).expect("a page size");
    let window = WINDOW_BYTES.min(bytes);
    if window < page {
        return Ok(0.0);
    }
    let spread = (bytes - window) / windows.max(1) / page * page;
    let (mut resident, mut pages) = (0_u64, 0_u64);
    for number in 0..if spread == 0 { 1 } else { windows } {
        let seen = resident_pages(file, number * spread, window)?;
        pages += u64::try_from(seen.len()).expect("a length");
        resident += u64::try_from(seen.iter().filter(|state| **state & 1 == 1).count()).expect("a count");
    }
    Ok(as_f64(resident) / as_f64(pages.max(1)))
}

#[expect(clippy::cast_precision_loss, reason = "a count of pages is far below 2^53")]
const fn as_f64(number: u64) -> f64 {
    number as f64
}

/// A byte for each page from `offset` on; bit 0 says that it is in memory.
fn resident_pages(file: &File, offset: u64, bytes: u64) -> io::Result<Vec<u8>> {
    let length = usize::try_from(bytes).map_err(io::Error::other)?;
    let offset = i64::try_from(offset).map_err(io::Error::other)?;
    let mut states = vec![0_u8; length.div_ceil(rustix::param::page_size())];
    // SAFETY: a new mapping at an address of the kernel's choice; nothing reads or writes it.
    let address = unsafe {
        libc::mmap(std::ptr::null_mut(), length, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), offset)
    };
    if address == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the range is the mapping just made, and the list has a byte for each of its pages.
    let answer = unsafe { libc::mincore(address, length, states.as_mut_ptr().cast()) };
    let result = if answer == 0 { Ok(states) } else { Err(io::Error::last_os_error()) };
    // SAFETY: the mapping is ours and nobody refers to it.
    unsafe { libc::munmap(address, length) };
    result
}
