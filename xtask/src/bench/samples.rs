//! Samples of several runs, and what they have in common.

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One line the benchmark program printed.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Sample {
    /// What ran.
    pub bench: String,
    /// What of it was measured.
    pub metric: String,
    /// The number, finite.
    pub value: f64,
    /// Its unit.
    pub unit: String,
    /// Whatever else the line said; kept when saved.
    #[serde(flatten)]
    pub rest: serde_json::Map<String, serde_json::Value>,
}

/// One metric over all runs.
#[derive(Debug, PartialEq)]
pub struct Row {
    bench: String,
    metric: String,
    unit: String,
    median: f64,
    min: f64,
    max: f64,
}

/// Reads what one run printed.
///
/// Errors: no line at all, or a line that is not a sample.
pub fn parse(printed: &str) -> Result<Vec<Sample>> {
    let mut samples = Vec::new();
    for (index, line) in printed.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let sample = serde_json::from_str(line);
        samples.push(sample.with_context(|| {
            format!(
                "expected a JSON object with bench, metric, value and unit on line {}, found `{line}`",
                index + 1
            )
        })?);
    }
    ensure!(!samples.is_empty(), "expected one JSON object per line, found no line");
    Ok(samples)
}

/// Puts the runs side by side, in the order of the first run.
///
/// Errors: a run measures something twice, leaves something out, adds something, or uses another unit.
pub fn rows(runs: &[Vec<Sample>]) -> Result<Vec<Row>> {
    let first = runs.first().context("there must be at least one run")?;
    let mut values: BTreeMap<(&str, &str, &str), Vec<f64>> = BTreeMap::new();
    for (index, run) in runs.iter().enumerate() {
        for sample in run {
            let so_far = values.entry((&sample.bench, &sample.metric, &sample.unit)).or_default();
            ensure!(
                so_far.len() == index,
                "{} {} in {}: expected it once in every run, found it {} times before its place in run {}",
                sample.bench,
                sample.metric,
                sample.unit,
                so_far.len(),
                index + 1
            );
            so_far.push(sample.value);
        }
    }
    let row = |sample: &Sample| {
        let mut sorted =
            values[&(sample.bench.as_str(), sample.metric.as_str(), sample.unit.as_str())].clone();
        ensure!(sorted.len() == runs.len(), "{} {}: a later run leaves it out", sample.bench, sample.metric);
        sorted.sort_by(f64::total_cmp);
        Ok(Row {
            bench: sample.bench.clone(),
            metric: sample.metric.clone(),
            unit: sample.unit.clone(),
            median: median(&sorted),
            min: sorted[0],
            max: sorted[sorted.len() - 1],
        })
    };
    first.iter().map(row).collect()
}

/// The middle value, or the mean of the two middle values. `sorted` is not empty.
fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { f64::midpoint(sorted[middle - 1], sorted[middle]) }
}

/// The rows as aligned text.
pub fn table(rows: &[Row]) -> String {
    let number = |value: f64| format!("{value:.3}");
    let mut cells = vec![["bench", "metric", "median", "min", "max", "unit"].map(str::to_string)];
    cells.extend(rows.iter().map(|row| {
        let [median, min, max] = [row.median, row.min, row.max].map(number);
        [row.bench.clone(), row.metric.clone(), median, min, max, row.unit.clone()]
    }));
    let width = |column: usize| cells.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths = [0, 1, 2, 3, 4].map(width);
    let [w0, w1, w2, w3, w4] = widths;
    let line = |[bench, metric, median, min, max, unit]: &[String; 6]| {
        format!("{bench:w0$}  {metric:w1$}  {median:>w2$}  {min:>w3$}  {max:>w4$}  {unit}\n")
    };
    cells.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(samples: &[(&str, f64, &str)]) -> Vec<Sample> {
        let lines: Vec<String> = samples
            .iter()
            .map(|(bench, value, unit)| {
                format!(
                    "{{\"bench\": \"{bench}\", \"metric\": \"m\", \"value\": {value}, \"unit\": \"{unit}\"}}"
                )
            })
            .collect();
        parse(&lines.join("\n")).unwrap()
    }

    #[test]
    fn runs_become_median_minimum_and_maximum() {
        let odd = rows(&[run(&[("a", 3.0, "s")]), run(&[("a", 1.0, "s")]), run(&[("a", 9.0, "s")])]).unwrap();
        assert_eq!((odd[0].median, odd[0].min, odd[0].max), (3.0, 1.0, 9.0));
        let even = rows(&[run(&[("a", 3.0, "s")]), run(&[("a", 1.0, "s")])]).unwrap();
        assert_eq!((even[0].median, even[0].min, even[0].max), (2.0, 1.0, 3.0));
    }

    #[test]
    fn runs_that_measure_different_things_are_refused() {
        let one = || run(&[("a", 1.0, "s")]);
        for other in
            [run(&[("b", 1.0, "s")]), run(&[("a", 1.0, "ms")]), run(&[("a", 1.0, "s"), ("b", 1.0, "s")])]
        {
            assert!(rows(&[one(), other.clone()]).is_err(), "{other:?}");
            assert!(rows(&[other.clone(), one()]).is_err(), "{other:?} first");
        }
        assert!(rows(&[run(&[("a", 1.0, "s"), ("a", 2.0, "s")])]).is_err());
        assert!(rows(&[]).is_err());
    }

    #[test]
    fn lines_that_are_no_samples_are_refused_with_their_number() {
        for printed in
            ["", "\n", "{}", "Compiling", "{\"bench\":\"a\",\"metric\":\"m\",\"value\":null,\"unit\":\"s\"}"]
        {
            assert!(parse(printed).is_err(), "{printed}");
        }
        let error = parse("\nnoise").unwrap_err().to_string();
        assert!(error.contains("line 2") && error.contains("noise"), "{error}");
    }

    #[test]
    fn fields_beyond_the_four_are_kept() {
        let line = "{\"bench\":\"a\",\"metric\":\"m\",\"value\":1.0,\"unit\":\"s\",\"seed\":7}";
        let kept = serde_json::to_value(&parse(line).unwrap()[0]).unwrap();
        assert_eq!(kept["seed"], 7);
    }

    #[test]
    fn the_table_aligns_its_columns() {
        let rows = rows(&[run(&[("loop", 12.5, "ns"), ("a", 1.0, "s")])]).unwrap();
        let expected = "bench  metric  median     min     max  unit\n\
                        loop   m       12.500  12.500  12.500  ns\n\
                        a      m        1.000   1.000   1.000  s\n";
        assert_eq!(table(&rows), expected);
    }
}
