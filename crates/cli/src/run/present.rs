//! Showing a result: the table, fio's JSON, the logs, and where they are kept.

use super::execute::Finished;
use super::jobs::Request;
use crate::args::{PrintArg, RunArgs};
use crate::{Outcome, table};
use anyhow::Context;
use ocssd_lightnvm::PuId;
use ocssd_workload::job::OutputFormat;
use ocssd_workload::results::fold::fold;
use ocssd_workload::results::json::{Format, to_text};
use ocssd_workload::results::logs::requested_logs;
use ocssd_workload::results::table as results_table;
use ocssd_workload::results::{RunResult, Verdict};
use serde_json::json;
use std::io::IsTerminal;
use std::path::PathBuf;

/// Makes the places a result goes to, before anything is run for it.
pub fn prepare(args: &RunArgs, request: &Request) -> anyhow::Result<()> {
    if args.print == PrintArg::Hash {
        return Ok(());
    }
    let directory = &args.results;
    std::fs::create_dir_all(directory).with_context(|| {
        format!("{} cannot be written; choose a directory with --results", directory.display())
    })?;
    if let Some(path) = &request.parsed.program.output {
        std::fs::File::create(path)
            .with_context(|| format!("{path} cannot be written; name another file"))?;
    }
    Ok(())
}

/// Shows and keeps a result.
pub fn present(
    args: &RunArgs,
    request: &Request,
    result: &RunResult,
    finished: &Finished,
    as_json: bool,
) -> anyhow::Result<Outcome> {
    let outcome = match result.verdict {
        Verdict::Pass | Verdict::Warn(_) => Outcome::Good,
        Verdict::Fail(_) => Outcome::Failed,
        Verdict::Interrupted(_) => Outcome::Interrupted,
    };
    if args.print == PrintArg::Hash {
        if let Verdict::Fail(reasons) | Verdict::Interrupted(reasons) = &result.verdict {
            eprintln!("ocssd: {}", reasons.join("; "));
        }
        let hash = format!("{:016x}", finished.hash);
        if as_json {
            table::print_json(&json!({ "trace_hash": hash }));
        } else {
            table::line(&format!("trace hash {hash}"));
        }
        return Ok(outcome);
    }
    let chosen = match &request.parsed.program.output_formats[..] {
        _ if as_json => &[OutputFormat::JsonPlus],
        [] => &[OutputFormat::Normal],
        named => named,
    };
    let mut text = String::new();
    for format in chosen {
        text.push_str(&match format {
            OutputFormat::Normal if args.verbose => results_table::render(result),
            OutputFormat::Normal => results_table::brief(result, is_coloured(request)),
            OutputFormat::Json => to_text(result, Format::Json),
            OutputFormat::JsonPlus => to_text(result, Format::JsonPlus),
        });
    }
    let written = write(request, &text);
    let kept = keep(args, request, result);
    write_metrics(args, finished)?;
    written?;
    let kept = kept?;
    if chosen.contains(&OutputFormat::Normal) && request.parsed.program.output.is_none() {
        if args.verbose {
            super::metrics::print(&finished.targets);
        }
        if args.print == PrintArg::Units {
            print_units(finished);
        }
        let more = if args.verbose { "" } else { "; more with --verbose" };
        let took = finished.took.as_secs_f64();
        table::line(&fold(&format!("took {took:.1} s; result kept in {}{more}", kept.display())));
    }
    Ok(outcome)
}

/// Writes the result to its file, or shows it; what there is no room for is shown, so that what was measured is not lost.
fn write(request: &Request, text: &str) -> anyhow::Result<()> {
    let Some(path) = &request.parsed.program.output else {
        table::show(text);
        return Ok(());
    };
    std::fs::write(path, text).inspect_err(|_| table::show(text)).with_context(|| {
        format!("{path} cannot be written, so the result is shown here; name another file with --output")
    })
}

/// Whether the verdict is painted: on a terminal, unless the user wants none (no-color.org).
fn is_coloured(request: &Request) -> bool {
    let goes_to_terminal = request.parsed.program.output.is_none() && std::io::stdout().is_terminal();
    goes_to_terminal
        && table::may_paint(std::env::var_os("NO_COLOR").as_deref(), std::env::var_os("TERM").as_deref())
}

/// Writes what was counted, where it was asked for.
fn write_metrics(args: &RunArgs, finished: &Finished) -> anyhow::Result<()> {
    let Some(path) = &args.metrics else { return Ok(()) };
    let Finished { targets, counters, .. } = finished;
    let text = super::metrics::exposition(targets, &counters.unit_busy, &counters.channel_busy);
    std::fs::write(path, text)
        .with_context(|| format!("{} cannot be written; name another file with --metrics", path.display()))
}

/// Writes the result file and the logs the jobs asked for.
fn keep(args: &RunArgs, request: &Request, result: &RunResult) -> anyhow::Result<PathBuf> {
    let directory = &args.results;
    let advice = || format!("{} cannot be written; choose a directory with --results", directory.display());
    // A job may be named like a path; its result stays in the directory.
    let path = directory.join(format!("{}.json", request.name.replace('/', "_")));
    std::fs::write(&path, to_text(result, Format::JsonPlus)).with_context(advice)?;
    for log in requested_logs(&result.jobs) {
        std::fs::write(directory.join(&log.name), &log.content).with_context(|| {
            format!(
                "{} cannot be written; choose a directory with --results",
                directory.join(&log.name).display()
            )
        })?;
    }
    Ok(path)
}

fn print_units(finished: &Finished) {
    let rows: Vec<Vec<String>> = (0..)
        .map(PuId)
        .zip(finished.units.iter().zip(&finished.counters.unit_busy))
        .map(|(unit, (counts, busy))| {
            vec![
                unit.0.to_string(),
                finished.geometry.group_of(unit).0.to_string(),
                counts.read.sectors.to_string(),
                counts.write.sectors.to_string(),
                counts.reset.sectors.to_string(),
                format!("{:.3}", busy.as_secs_f64()),
            ]
        })
        .collect();
    table::print(&["unit", "group", "sectors read", "sectors written", "resets", "busy s"], &rows);
}
