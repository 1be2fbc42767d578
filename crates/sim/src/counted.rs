//! What targets say of themselves in numbers.
//!
//! Deliberately not here: what the numbers should be.

use ocssd_lightnvm::Target;
use ocssd_lightnvm::counter::CounterValue;

/// What a gauge of a target stands at; `None` if it has none of this name.
pub(crate) fn gauge<T: Target + ?Sized>(target: &T, name: &str) -> Option<u64> {
    let found = target.counters().into_iter().find(|counter| counter.name == name)?;
    if let CounterValue::Gauge(value) = found.value { Some(value) } else { None }
}

/// What a target counted, name and count.
pub(crate) fn counts<T: Target + ?Sized>(target: &T) -> Vec<(&'static str, u64)> {
    let count = |value| if let CounterValue::Count(count) = value { Some(count) } else { None };
    target.counters().into_iter().filter_map(|counter| Some((counter.name, count(counter.value)?))).collect()
}
