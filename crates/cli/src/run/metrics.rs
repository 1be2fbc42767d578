//! What drive and targets counted: as a table, as JSON, and as text that Prometheus reads.
//!
//! Deliberately not here: what the counters mean; they say so themselves.

use crate::table;
use ocssd_base::Nanos;
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

/// What drive and targets counted, in the text exposition format of Prometheus, version 0.0.4.
pub fn exposition(targets: &[(String, Vec<Counter>)], unit_busy: &[Nanos], channel_busy: &[Nanos]) -> String {
    let mut out = String::new();
    let mut known: Vec<&str> = Vec::new();
    for (_, counters) in targets {
        for counter in counters {
            if known.contains(&counter.name) {
                continue;
            }
            known.push(counter.name);
            let kind = if matches!(counter.value, CounterValue::Count(_)) { "counter" } else { "gauge" };
            let suffix = if kind == "counter" { "_total" } else { "" };
            let name = format!("ocssd_target_{}{suffix}", counter.name);
            head(&mut out, &name, kind, counter.about);
            for (number, (target, counters)) in targets.iter().enumerate() {
                for found in counters.iter().filter(|found| found.name == counter.name) {
                    let value = match found.value {
                        CounterValue::Ratio(None) => "NaN".to_owned(),
                        value => text(value),
                    };
                    let target = escaped(target);
                    let _ = writeln!(out, "{name}{{target=\"{target}\",number=\"{number}\"}} {value}");
                }
            }
        }
    }
    let busy = [
        ("ocssd_unit_busy_seconds_total", "unit", "time the media of a parallel unit were busy", unit_busy),
        ("ocssd_channel_busy_seconds_total", "group", "time the channel of a group was busy", channel_busy),
    ];
    for (name, label, about, times) in busy {
        head(&mut out, name, "counter", about);
        for (number, time) in times.iter().enumerate() {
            let _ = writeln!(out, "{name}{{{label}=\"{number}\"}} {}", time.as_secs_f64());
        }
    }
    out
}

/// What a metric is, before its values. Writing to a string cannot fail.
pub fn head(out: &mut String, name: &str, kind: &str, about: &str) {
    let _ = writeln!(out, "# HELP {name} {about}\n# TYPE {name} {kind}");
}

/// A label's value, with what ends one escaped; names of exports are the user's.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
