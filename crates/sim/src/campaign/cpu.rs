//! How long a thread was on a processor, where the system says so.

use std::time::Duration;

/// Time this thread has spent on a processor; `None` where there is no Linux `/proc` to read it from.
pub(super) fn thread_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}
