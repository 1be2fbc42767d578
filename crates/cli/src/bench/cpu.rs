//! Processor time and memory of this process, from Linux's `/proc`.

use ocssd_base::Nanos;

/// Time this thread has spent on a processor.
///
/// # Panics
/// If there is no `/proc/thread-self/schedstat`: benchmarks run on Linux.
pub fn thread_time() -> Nanos {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")
        .expect("Linux gives a thread's processor time");
    let field = text.split_whitespace().next().and_then(|field| field.parse().ok());
    Nanos(field.expect("the first field is nanoseconds on a processor"))
}

/// Resident memory.
///
/// # Panics
/// If there is no `/proc/self/statm`.
pub fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").expect("Linux gives a process's memory");
    let pages: u64 =
        text.split_whitespace().nth(1).and_then(|field| field.parse().ok()).expect("pages resident");
    pages * 4096
}
