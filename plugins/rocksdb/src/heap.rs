//! The heap of the plugin's Rust side: jemalloc, told to ask for huge pages. RocksDB keeps its own.
//!
//! A drive in memory is a few hundred MB that are read at random, and in pages of 4 KiB nearly every read misses the address cache
//! on its way to the content; tmpfs lies in the kernel's own map, whose pages are huge. docs/rocksdb.md has what it brings.
//! Deliberately not here: the heap of the process, which is the program's choice.

#[global_allocator]
static HEAP: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// jemalloc's own options (its manual page, "tuning"); the environment's `_RJEM_MALLOC_CONF` goes before them.
// SAFETY: this is the name and type jemalloc looks for, a pointer to text that ends with a zero, and no one else has it.
#[unsafe(export_name = "_rjem_malloc_conf")]
pub static OPTIONS: Option<&'static std::ffi::c_char> = {
    const TEXT: &std::ffi::CStr = c"thp:always,metadata_thp:auto";
    // SAFETY: a text that is never freed starts there.
    Some(unsafe { &*TEXT.as_ptr() })
};
