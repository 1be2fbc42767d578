//! What targets keep in the host's memory, counted by the allocator.
//!
//! Deliberately not here: buffers, which a target takes when it is mounted.

#![expect(unsafe_code, reason = "a global allocator that counts cannot be written without it")]

mod told;
mod zones;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Bytes that this thread has and did not give back; tests run in threads of their own.
    static BYTES: Cell<i64> = const { Cell::new(0) };
}

struct Counting;

fn count(bytes: usize, sign: i64) {
    BYTES.set(BYTES.get() + sign * i64::try_from(bytes).expect("an allocation is smaller than memory"));
}

// SAFETY: every call is passed on to the system's allocator unchanged; counting touches only a thread-local cell that needs no
// allocation and no destructor. What is zeroed or made longer comes through `alloc`, as the trait does it by itself.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, shape: Layout) -> *mut u8 {
        count(shape.size(), 1);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(shape) }
    }

    unsafe fn dealloc(&self, place: *mut u8, shape: Layout) {
        count(shape.size(), -1);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(place, shape) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes that this thread has.
fn bytes_held() -> i64 {
    BYTES.get()
}
