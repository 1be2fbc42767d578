//! What was exercised: the counts as a table, and what never happened.

use super::marks::{Mark, marks};
use crate::table;
use ocssd_sim::campaign::{Outcome, cuts};
use ocssd_sim::swarm::Size;
use ocssd_sim::tally::Tally;
use ocssd_workload::results::fold::fold;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// Prints a tally, and what of it never happened.
pub fn print(tally: &Tally, size: Size) {
    let marks = marks(tally, size);
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut group = "";
    for mark in marks.iter().filter(|mark| mark.count > 0) {
        let title = if mark.group == group { "" } else { &mark.group };
        group = &mark.group;
        rows.push(vec![title.to_owned(), mark.name.clone(), mark.count.to_string()]);
    }
    if !rows.is_empty() {
        table::print(&["", "what", "count"], &rows);
    }
    let never = never(&marks);
    if !never.is_empty() {
        table::line(&fold(&format!("never happened: {}", never.join(", "))));
    }
}

/// A tally as JSON: counts by group and name, and the names of what never happened.
pub fn as_json(tally: &Tally, size: Size) -> (Value, Value) {
    let marks = marks(tally, size);
    let mut groups = Map::new();
    for mark in &marks {
        let group = groups.entry(mark.group.clone()).or_insert_with(|| json!({}));
        group[&mark.name] = json!(mark.count);
    }
    (Value::Object(groups), json!(never(&marks)))
}

fn never(marks: &[Mark]) -> Vec<String> {
    marks.iter().filter(|mark| mark.count == 0).map(|mark| format!("{} {}", mark.group, mark.name)).collect()
}

/// How fast a campaign was.
pub struct Speed {
    seconds: f64,
    cpu_seconds: Option<f64>,
    seeds: f64,
    cuts: f64,
}

#[expect(clippy::cast_precision_loss, reason = "rates are for people")]
impl Speed {
    /// Of this campaign.
    pub fn of(outcome: &Outcome) -> Self {
        Self {
            seconds: outcome.elapsed.as_secs_f64(),
            cpu_seconds: outcome.cpu.filter(|cpu| *cpu > Duration::ZERO).map(|cpu| cpu.as_secs_f64()),
            seeds: (outcome.seeds.end - outcome.seeds.start) as f64,
            cuts: cuts(&outcome.tally) as f64,
        }
    }

    /// A sentence.
    pub fn in_words(&self) -> String {
        let rates =
            |seconds: f64| (rate(self.seeds / seconds.max(1e-9)), rate(self.cuts / seconds.max(1e-9)));
        let (seeds, cuts) = rates(self.seconds);
        let mut text = format!("{:.1} s: {seeds} seeds/s, {cuts} power cuts/s", self.seconds);
        if let Some(cpu) = self.cpu_seconds {
            let (seeds, cuts) = rates(cpu);
            text += &format!("; {cpu:.1} processor seconds: {seeds} seeds, {cuts} power cuts in each");
        }
        text
    }

    /// The numbers.
    pub fn as_json(&self) -> Value {
        let per =
            |count: f64, seconds: Option<f64>| seconds.filter(|seconds| *seconds > 0.0).map(|s| count / s);
        let wall = Some(self.seconds);
        json!({ "seconds": self.seconds, "cpu_seconds": self.cpu_seconds,
            "seeds_per_second": per(self.seeds, wall), "seeds_per_cpu_second": per(self.seeds, self.cpu_seconds),
            "cuts_per_second": per(self.cuts, wall), "cuts_per_cpu_second": per(self.cuts, self.cpu_seconds) })
    }
}

fn rate(value: f64) -> String {
    if value < 10.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_sim::campaign::Stopped;

    #[test]
    fn rates_are_by_wall_clock_and_by_processor() {
        let mut tally = Tally::default();
        tally.add("cuts.in_flight", 300);
        let outcome = Outcome {
            seeds: 10..40,
            unfit: 0,
            unfit_reason: None,
            failures: Vec::new(),
            tally,
            stopped: Stopped::Exhausted,
            elapsed: Duration::from_secs(10),
            cpu: Some(Duration::from_secs(20)),
        };
        let speed = Speed::of(&outcome);
        assert_eq!(
            speed.in_words(),
            "10.0 s: 3.0 seeds/s, 30 power cuts/s; 20.0 processor seconds: 1.5 seeds, 15 power cuts in each"
        );
        assert_eq!(speed.as_json()["cuts_per_cpu_second"], 15.0);
        let unknown = Speed::of(&Outcome { cpu: None, ..outcome });
        assert_eq!(unknown.in_words(), "10.0 s: 3.0 seeds/s, 30 power cuts/s");
        assert!(unknown.as_json()["cpu_seconds"].is_null());
    }

    #[test]
    fn what_stayed_at_zero_is_told_by_name() {
        let mut tally = Tally::default();
        tally.add("cuts.idle", 1);
        tally.add("checkpoints", 0);
        let (counts, never) = as_json(&tally, Size::Tiny);
        assert_eq!(counts["power cuts"]["idle"], 1);
        let never = never.to_string();
        assert!(never.contains("power cuts in_flight") && never.contains("target checkpoints"), "{never}");
        assert!(!never.contains("power cuts idle") && !never.contains("faults"), "{never}");
    }
}
