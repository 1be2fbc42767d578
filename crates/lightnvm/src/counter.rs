//! What targets count, for whoever shows it.
//!
//! Deliberately not here: how it is shown (`cli`).

/// What a counter counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CounterValue {
    /// Only ever grows.
    Count(u64),
    /// What is so now.
    Gauge(u64),
    /// A quotient of others; `None` before there is anything to divide.
    Ratio(Option<f64>),
}

/// Something a target counts, for whoever shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Counter {
    /// Its name, in the style of Prometheus: `user_written_sectors`.
    pub name: &'static str,
    /// One line about it.
    pub about: &'static str,
    /// What it stands at.
    pub value: CounterValue,
}
