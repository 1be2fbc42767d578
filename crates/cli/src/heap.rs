//! The programs' heap: jemalloc, told to ask for huge pages.
//!
//! A drive's content is stamps all over memory (4 GiB a written TiB) and an FTL's map is one large table. A random read
//! touches both once, and in pages of 4 KiB every touch also misses the address cache. Linux gives huge pages to those
//! who ask by `madvise` (its usual setting); where it refuses, nothing but speed is lost. experiments/bench/README.md has
//! what it brings. Deliberately not in a library: which heap a program uses is the program's choice.

#[global_allocator]
static HEAP: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// jemalloc's own options (its manual page, "tuning"); the environment's `_RJEM_MALLOC_CONF` goes before them. Without the last one
/// what has 8 MiB or more is given back to the system at once, and the next value as long finds new pages, to be cleared, again.
#[expect(unsafe_code, reason = "jemalloc finds its options by the name of a symbol")]
// SAFETY: this is the name and type jemalloc looks for, a pointer to text that ends with a zero, and no one else has it.
#[unsafe(export_name = "_rjem_malloc_conf")]
pub static OPTIONS: Option<&'static std::ffi::c_char> = {
    const TEXT: &std::ffi::CStr = c"thp:always,metadata_thp:auto,oversize_threshold:0";
    // SAFETY: a text that is never freed starts there.
    Some(unsafe { &*TEXT.as_ptr() })
};
