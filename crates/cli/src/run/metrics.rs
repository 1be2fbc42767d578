//! What drive and targets counted: as a table, as JSON, and as text that Prometheus reads.
//!
//! Deliberately not here: what the counters mean; they say so themselves.

use super::execute::Finished;
use crate::table;
use ocssd_lightnvm::block::{Counter, CounterValue};
use serde_json::{Value, json};
use std::fmt::Write as _;

fn text(value: CounterValue) -> String {
    match value {
        CounterValue::Count(count) | CounterValue::Gauge(count) => count.to_string(),
        CounterValue::Ratio(ratio) => ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.3}")),
    }
}

/// One object per target.
pub fn to_json(targets: &[(String, Vec<Counter>)]) -> Value {
    let object = |counters: &[Counter]| {
        let value = |counter: &Counter| match counter.value {
            CounterValue::Count(count) | CounterValue::Gauge(count) => json!(count),
            CounterValue::Ratio(ratio) => json!(ratio),
        };
        counters
            .iter()
            .map(|counter| (counter.name.to_owned(), value(counter)))
            .collect::<serde_json::Map<_, _>>()
    };
    Value::Array(
        targets
            .iter()
            .map(|(kind, counters)| json!({ "target": kind, "counters": object(counters) }))
            .collect(),
    )
}

/// Prints what is not zero.
pub fn print(targets: &[(String, Vec<Counter>)]) {
    for (kind, counters) in targets.iter().filter(|(_, counters)| !counters.is_empty()) {
        let is_zero = |value| matches!(value, CounterValue::Count(0) | CounterValue::Gauge(0));
        let shown = counters.iter().filter(|counter| !is_zero(counter.value));
        let rows: Vec<Vec<String>> = shown
            .map(|counter| vec![counter.name.to_owned(), text(counter.value), counter.about.to_owned()])
            .collect();
        table::print(&[kind, "", "what it counts since it was made, layout included"], &rows);
    }
}

/// The text exposition format of Prometheus, version 0.0.4.
pub fn prometheus(finished: &Finished) -> String {
    let mut out = String::new();
    let mut known: Vec<&str> = Vec::new();
    for (_, counters) in &finished.targets {
        for counter in counters {
            if known.contains(&counter.name) {
                continue;
            }
            known.push(counter.name);
            let kind = if matches!(counter.value, CounterValue::Count(_)) { "counter" } else { "gauge" };
            let suffix = if kind == "counter" { "_total" } else { "" };
            let name = format!("ocssd_target_{}{suffix}", counter.name);
            // Writing to a string cannot fail.
            let _ = writeln!(out, "# HELP {name} {}\n# TYPE {name} {kind}", counter.about);
            for (number, (target, counters)) in finished.targets.iter().enumerate() {
                for found in counters.iter().filter(|found| found.name == counter.name) {
                    let value = match found.value {
                        CounterValue::Ratio(None) => "NaN".to_owned(),
                        value => text(value),
                    };
                    let _ = writeln!(out, "{name}{{target=\"{target}\",number=\"{number}\"}} {value}");
                }
            }
        }
    }
    units(finished, &mut out);
    out
}

fn units(finished: &Finished, out: &mut String) {
    let name = "ocssd_unit_busy_seconds_total";
    let _ = writeln!(out, "# HELP {name} time the media of a parallel unit were busy\n# TYPE {name} counter");
    for (unit, busy) in finished.counters.unit_busy.iter().enumerate() {
        let _ = writeln!(out, "{name}{{unit=\"{unit}\"}} {}", busy.as_secs_f64());
    }
    let name = "ocssd_channel_busy_seconds_total";
    let _ = writeln!(out, "# HELP {name} time the channel of a group was busy\n# TYPE {name} counter");
    for (group, busy) in finished.counters.channel_busy.iter().enumerate() {
        let _ = writeln!(out, "{name}{{group=\"{group}\"}} {}", busy.as_secs_f64());
    }
}
