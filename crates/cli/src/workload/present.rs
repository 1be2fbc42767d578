//! Showing a workload's result: a verdict, each phase with its requests, what the media did; or JSON.

use super::execute::{Asked, Finished};
use crate::args::WorkloadArgs;
use crate::{Outcome, table};
use ocssd_base::Nanos;
use ocssd_workload::generator::closed_loop::{Measured, Phase};
use ocssd_workload::results::fold::fold;
use serde_json::{Value, json};

/// Percentiles that are shown.
const PERCENTILES: [f64; 3] = [50.0, 99.0, 99.9];

/// Shows it.
pub fn present(args: &WorkloadArgs, finished: &Finished, as_json: bool) -> anyhow::Result<Outcome> {
    let Finished { asked, interrupted, .. } = finished;
    let (outcome, verdict) = match (interrupted, against(asked)) {
        (Some(interrupted), _) if asked.failure.is_none() => {
            (Outcome::Interrupted, format!("interrupted: {interrupted}"))
        }
        (_, Some(why)) => (Outcome::Failed, format!("fail: {why}")),
        (_, None) => (Outcome::Good, "pass".to_owned()),
    };
    if as_json {
        let mut object = to_json(asked, &verdict);
        object["trace_hash"] = json!(format!("{:016x}", finished.hash));
        object["notes"] = json!(finished.notes);
        table::print_json(&object);
        return Ok(outcome);
    }
    table::line(&fold(&format!("verdict: {verdict}")));
    table::line("");
    table::show(&text(asked));
    for note in &finished.notes {
        table::line(&fold(note));
    }
    if args.verbose {
        crate::run::metrics::print(&[("target".to_owned(), asked.counters.clone())]);
        table::line(&format!("trace hash {:016x}", finished.hash));
    }
    table::line(&format!("took {:.1} s", finished.took.as_secs_f64()));
    Ok(outcome)
}

/// What forbids the numbers: a failure, or that there are none.
pub fn against(asked: &Asked) -> Option<String> {
    if asked.failure.is_some() {
        return asked.failure.clone();
    }
    let nothing = asked.phases.iter().all(|phase| phase.measured.is_empty());
    if nothing {
        Some("nothing was asked, so nothing was measured".to_owned())
    } else {
        timeless(&asked.phases)
    }
}

/// Its phases, a blank line behind each, and what the media did.
pub fn text(asked: &Asked) -> String {
    let mut lines: Vec<String> = asked.phases.iter().map(phase_text).collect();
    lines.push(fold(&media(asked)));
    lines.join("\n\n") + "\n"
}

/// Why a result has no rate: whatever was asked for took no time.
fn timeless(phases: &[Phase]) -> Option<String> {
    let took_none = phases.iter().all(|phase| phase.measured.is_empty() || phase.took() == Nanos::ZERO);
    took_none.then(|| {
        "it took no time, so there is no rate: buffers of the target answered every request, and in virtual time they cost \
         nothing; ask for more than they hold, for durable answers (durable=reply, sync, fsync), for processors of the host \
         (--host-cpu e5-2620v3), or use --clock wall"
            .to_owned()
    })
}

fn phase_text(phase: &Phase) -> String {
    let seconds = phase.took().as_secs_f64();
    let Phase { name, operations, .. } = phase;
    let head =
        format!("{name}: {operations} operations in {seconds:.3} s, {} a second", rate(*operations, seconds));
    let rows: Vec<Vec<String>> = phase.measured.iter().map(|measured| row(measured, seconds)).collect();
    let columns = ["request", "count", "MB/s", "mean us", "p50 us", "p99 us", "p99.9 us", "max us"];
    let mut lines = vec![fold(&head), table::text(&columns, &rows)];
    if !phase.measured.is_empty() && phase.took() == Nanos::ZERO {
        lines
            .push(fold("it took no time: buffers of the target answered every request, so there is no rate"));
    }
    let absent: u64 = phase.measured.iter().map(|measured| measured.absent).sum();
    if absent > 0 {
        lines.push(format!("{absent} of them found nothing under the name they asked for"));
    }
    lines.join("\n")
}

#[expect(clippy::cast_precision_loss, reason = "shown with four digits")]
fn rate(count: u64, seconds: f64) -> String {
    if seconds > 0.0 { format!("{:.0}", count as f64 / seconds) } else { "-".to_owned() }
}

#[expect(clippy::cast_precision_loss, reason = "shown with four digits")]
fn micros(nanos: Nanos) -> String {
    format!("{:.1}", nanos.0 as f64 / 1e3)
}

#[expect(clippy::cast_precision_loss, reason = "shown with four digits")]
fn row(measured: &Measured, seconds: f64) -> Vec<String> {
    let latency = &measured.latency;
    let megabytes = if seconds > 0.0 && measured.bytes > 0 {
        format!("{:.1}", measured.bytes as f64 / 1e6 / seconds)
    } else {
        String::new()
    };
    let mut row = vec![
        measured.name.to_owned(),
        latency.count().to_string(),
        megabytes,
        format!("{:.1}", latency.mean_ns() / 1e3),
    ];
    let percentile = |percent| latency.histogram().percentile(percent).map_or_else(String::new, micros);
    row.extend(PERCENTILES.map(percentile));
    row.push(latency.max().map_or_else(String::new, micros));
    row
}

#[expect(clippy::cast_precision_loss, reason = "shown with three digits")]
fn media(asked: &Asked) -> String {
    let Asked { bytes_stored, media_written_bytes, media_read_bytes, resets, .. } = asked;
    let amplification = if *bytes_stored > 0 {
        format!(", {:.2} for each that was stored", *media_written_bytes as f64 / *bytes_stored as f64)
    } else {
        String::new()
    };
    format!(
        "media: {} written{amplification}; {} read; {resets} chunks reset",
        table::bytes(*media_written_bytes),
        table::bytes(*media_read_bytes)
    )
}

/// As JSON.
pub fn to_json(asked: &Asked, verdict: &str) -> Value {
    let of_measured = |measured: &Measured| {
        let latency = &measured.latency;
        let percentiles: serde_json::Map<String, Value> = PERCENTILES
            .iter()
            .map(|&percent| {
                (format!("{percent:.6}"), json!(latency.histogram().percentile(percent).map(|at| at.0)))
            })
            .collect();
        json!({
            "request": measured.name, "count": latency.count(), "bytes": measured.bytes, "absent": measured.absent,
            "lat_ns": { "min": latency.min().map(|at| at.0), "max": latency.max().map(|at| at.0),
                        "mean": latency.mean_ns(), "stddev": latency.stddev_ns(), "percentile": percentiles },
        })
    };
    let of_phase = |phase: &Phase| {
        json!({
            "phase": phase.name, "operations": phase.operations, "runtime_ns": phase.took().0,
            "requests": phase.measured.iter().map(of_measured).collect::<Vec<_>>(),
        })
    };
    json!({
        "verdict": verdict,
        "phases": asked.phases.iter().map(of_phase).collect::<Vec<_>>(),
        "stored_bytes": asked.bytes_stored,
        "media": { "written_bytes": asked.media_written_bytes, "read_bytes": asked.media_read_bytes,
                   "resets": asked.resets },
        "counters": crate::run::metrics::to_json(&[("target".to_owned(), asked.counters.clone())])[0]["counters"],
    })
}
