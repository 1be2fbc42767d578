//! What every exported function goes through: panics end here, and pointers become references, or a sentence.
//!
//! Deliberately not here: what the functions do.

use crate::failure::Failure;
use ocssd_base::usize_of;
use ocssd_lightnvm::{BufId, Buffers};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs the body of an exported function. A failure becomes its negative number, and so does a panic; the lock of the drive
/// that was held is poisoned by then, so that nothing half changed is used again.
pub fn call(body: impl FnOnce() -> Result<c_int, Failure>) -> c_int {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(value)) => value,
        Ok(Err(failure)) => failure.keep(),
        Err(panic) => Failure::of_panic(panic.as_ref()).keep(),
    }
}

fn checked<T>(pointer: *const T, name: &str) -> Result<(), Failure> {
    if pointer.is_null() {
        return Err(Failure::invalid(format!("{name} is NULL; it must point to something")));
    }
    if !pointer.is_aligned() {
        let align = align_of::<T>();
        return Err(Failure::invalid(format!(
            "{name} is no multiple of {align}, so it points to no such thing"
        )));
    }
    Ok(())
}

/// What a pointer of the caller's points to.
///
/// # Safety
/// If it is neither NULL nor misaligned it must point to a `T` that nobody changes during the call.
pub unsafe fn shared<'a, T>(pointer: *const T, name: &str) -> Result<&'a T, Failure> {
    checked(pointer, name)?;
    // SAFETY: not NULL and aligned; the rest is the caller's promise.
    Ok(unsafe { &*pointer })
}

/// Writes to where a pointer of the caller's points.
///
/// # Safety
/// If it is neither NULL nor misaligned it must point to room for a `T`.
pub unsafe fn put<T>(pointer: *mut T, name: &str, value: T) -> Result<(), Failure> {
    checked(pointer, name)?;
    // SAFETY: not NULL and aligned; the rest is the caller's promise. What was there is not dropped: it may be no `T` yet.
    unsafe { pointer.write(value) };
    Ok(())
}

/// Puts a number where the caller wants it, if anywhere.
///
/// # Safety
/// NULL, or room for a number.
pub unsafe fn put_if_wanted(pointer: *mut u64, name: &str, value: u64) -> Result<(), Failure> {
    if pointer.is_null() {
        return Ok(());
    }
    // SAFETY: the caller's promise.
    unsafe { put(pointer, name, value) }
}

/// A text of the caller's.
///
/// # Safety
/// If it is not NULL it must point to bytes that end with a zero and do not change during the call.
pub unsafe fn text<'a>(pointer: *const c_char, name: &str) -> Result<&'a str, Failure> {
    checked(pointer, name)?;
    // SAFETY: not NULL; the rest is the caller's promise.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map_err(|_| Failure::invalid(format!("{name} is not UTF-8")))
}

/// Memory of the caller's: an address and a length that may be handed around before it is used.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    start: *mut u8,
    bytes: usize,
}

impl Memory {
    /// No memory.
    pub const NONE: Self = Self { start: std::ptr::null_mut(), bytes: 0 };

    /// `bytes` bytes from `pointer` on. NULL stands for none, and has no length.
    pub fn new(pointer: *const c_void, bytes: u64, name: &str) -> Result<Self, Failure> {
        if pointer.is_null() {
            let none = (bytes == 0).then_some(Self::NONE);
            return none.ok_or_else(|| Failure::invalid(format!("{name} is NULL, but has {bytes} bytes")));
        }
        let end = u64::try_from(pointer.addr()).ok().and_then(|start| start.checked_add(bytes));
        let length = isize::try_from(bytes).ok().and_then(|bytes| usize::try_from(bytes).ok());
        match (end, length) {
            (Some(_), Some(bytes)) => Ok(Self { start: pointer.cast_mut().cast(), bytes }),
            _ => Err(Failure::invalid(format!("{name} with {bytes} bytes reaches beyond the end of memory"))),
        }
    }

    /// `bytes` bytes of it from byte `first` on; of no memory, none.
    ///
    /// # Panics
    /// If that is more than there is.
    pub fn part(self, first: u64, bytes: u64) -> Self {
        if self.start.is_null() {
            return Self::NONE;
        }
        let index = |value: u64| usize::try_from(value).expect("within memory");
        let (first, bytes) = (index(first), index(bytes));
        assert!(first <= self.bytes && bytes <= self.bytes - first, "a part lies in the whole");
        Self { start: self.start.wrapping_add(first), bytes }
    }

    /// How many bytes.
    pub const fn bytes(self) -> usize {
        self.bytes
    }

    /// True if both have a byte in common.
    pub fn overlaps(self, other: Self) -> bool {
        let ends = |memory: Self| (memory.start.addr(), memory.start.addr() + memory.bytes);
        let ((a, a_end), (b, b_end)) = (ends(self), ends(other));
        self.bytes > 0 && other.bytes > 0 && a < b_end && b < a_end
    }

    /// The bytes, to read and write during a call.
    ///
    /// # Safety
    /// The memory must exist for as long as the slice is used, and nobody else may touch it meanwhile. Memory the caller only
    /// lets read from must not be written to.
    pub unsafe fn as_mut<'a>(self) -> &'a mut [u8] {
        if self.bytes == 0 {
            return &mut [];
        }
        // SAFETY: not NULL and no longer than memory goes; the rest is the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.bytes) }
    }

    /// Writes the first `bytes` bytes of a buffer of real bytes there: what a request read.
    ///
    /// # Panics
    /// If the memory or the buffer has fewer.
    pub fn fill_from(self, buffers: &Buffers, buffer: BufId, bytes: usize) {
        // SAFETY: the caller keeps what is read into alive, and leaves it alone, until the request has ended.
        let to = unsafe { self.as_mut() };
        to[..bytes].copy_from_slice(buffers.bytes(buffer, 0, bytes));
    }

    /// Writes the first `bytes` bytes of a buffer there, as many as there is room for.
    pub fn fill_as_far(self, buffers: &Buffers, buffer: Option<BufId>, bytes: u32) {
        let count = self.bytes.min(usize_of(bytes));
        if let Some(buffer) = buffer.filter(|_| count > 0) {
            self.fill_from(buffers, buffer, count);
        }
    }

    /// A value of an array there: part of what a request gives.
    ///
    /// # Panics
    /// If the memory ends before.
    pub fn nth<T: Copy>(self, index: usize) -> T {
        assert!((index + 1) * size_of::<T>() <= self.bytes, "place {index} lies behind {} bytes", self.bytes);
        // SAFETY: the place lies in the memory, which the caller lets be read during the call; the structs that are read so have
        // a value for every pattern of bits.
        unsafe { self.start.cast::<T>().add(index).read_unaligned() }
    }

    /// Puts a value at a place of an array there: what a request read.
    ///
    /// # Panics
    /// If the memory ends before.
    pub fn put_nth<T: Copy>(self, index: usize, value: T) {
        assert!((index + 1) * size_of::<T>() <= self.bytes, "place {index} lies behind {} bytes", self.bytes);
        // SAFETY: the place lies in the memory, which the caller keeps alive and leaves alone until the request has ended.
        unsafe { self.start.cast::<T>().add(index).write_unaligned(value) };
    }

    /// The bytes, to read during a call.
    ///
    /// # Safety
    /// The memory must exist for as long as the slice is used, and nobody may write to it meanwhile.
    pub unsafe fn as_shared<'a>(self) -> &'a [u8] {
        if self.bytes == 0 {
            return &[];
        }
        // SAFETY: not NULL and no longer than memory goes; the rest is the caller's promise.
        unsafe { std::slice::from_raw_parts(self.start, self.bytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_number() {
        assert_eq!(call(|| panic!("planted")), -libc::ENOTRECOVERABLE);
        assert_eq!(call(|| Ok(3)), 3);
    }

    #[test]
    fn pointers_that_cannot_be_used_are_refused() {
        let word = 7u64;
        let odd = std::ptr::from_ref(&word).cast::<u8>().wrapping_add(1).cast::<u64>();
        for pointer in [std::ptr::null(), odd] {
            // SAFETY: NULL and misaligned pointers are looked at by their value only.
            let refused = unsafe { shared(pointer, "it") };
            assert_eq!(refused.unwrap_err().errno, libc::EINVAL);
        }
        let at = |address: usize, bytes| Memory::new(std::ptr::without_provenance(address), bytes, "it");
        assert!(at(0, 1).is_err() && at(8, u64::MAX).is_err() && at(8, 1 << 63).is_err());
        assert!(at(0, 0).is_ok() && at(8, 8).is_ok());
    }

    #[test]
    fn ranges_overlap_if_they_share_a_byte() {
        let at =
            |address: usize, bytes| Memory::new(std::ptr::without_provenance(address), bytes, "it").unwrap();
        for (a, b, shared) in [(8, 16, true), (8, 15, true), (0x100, 0x100, true), (8, 24, false)] {
            assert_eq!(at(a, 9).overlaps(at(b, 9)), shared, "{a} {b}");
            assert_eq!(at(b, 9).overlaps(at(a, 9)), shared, "{b} {a}");
        }
        assert!(!at(8, 0).overlaps(at(8, 9)) && !Memory::NONE.overlaps(at(8, 9)));
    }
}
