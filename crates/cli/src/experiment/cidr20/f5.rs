//! Figure 5: throughput of RocksDB with horizontal and vertical placement.

use super::super::catalogue::{Experiment, Numbers};
use super::super::data::Data;
use super::super::lab::Lab;
use super::database::{self, CHUNKS, KEYS, Ran, Setup};
use super::ground::Ground;
use super::unexplained;
use ocssd_report::{Axis, ChartSpec, Panel, PaperTable, Point, Report, Role, Series, Style, Verdict};
use ocssd_workload::lsm::Phase;

/// The experiment.
pub const EXPERIMENT: Experiment = Experiment {
    id: "cidr20-f5",
    aliases: &[],
    title: "RocksDB on LightLSM, horizontal and vertical",
    source: "CIDR 2020, figure 5 and section 4.3",
    claim: "Horizontal placement writes 4 times as fast as vertical with one thread, is best with two, and loses 60 % with four or \
            eight; vertical placement gains with every thread and writes twice as fast as horizontal with eight. Reads differ little, \
            horizontal always being ahead.",
    method: "The LSM tree of `ocssd workload lsm` on lightlsm over 8 groups of 4 units; everything that has bytes is a sixteenth of \
             the paper's: chunks of 1.5 MB, tables of 48 MB over 32 chunks, memtables of 1.5 MB, 196,608 puts of 1 KiB for each \
             thread, the same keys for all. Times are not: read 70 us, program of 96 KiB 2 ms, channel 800 MB/s (chosen; \
             the paper gives none). Flags are those of the scripts of its time: no log, no cache, blocks of 96 KiB, filters of 10 bits, \
             level 0 triggers 1, 16 and 24, delayed_write_rate of 8 MiB/s, 40 compactions. Processors take what was measured of \
             db_bench 7.8.3 on tmpfs (docs/workload.md): one thread puts at most 130,000 a second. fillseq; then compactions end; \
             then readseq and readrandom of 4,096 records a thread. One run for each point. \
             vertical is as the paper draws it: a flush, and each compaction, has a group while it writes. groups:1 is what the \
             program it measured did: each table lies on the next group, whoever writes it.\n\n\
             behind is the part of the write units of flushes that were sent to a parallel unit at which another table's write or a \
             read was in flight.",
    paper: include_str!("../../../../../experiments/cidr20-f5/paper.csv"),
    run,
    report,
    why: unexplained,
};

const THREADS: [u32; 4] = [1, 2, 4, 8];
/// Of the paper's two, the one by streams is as it draws it, and groups in turn are what the program it measured did.
const PLACEMENTS: [&str; 3] = ["horizontal", "vertical", "groups:1"];
const WORKLOADS: [&str; 3] = ["fillseq", "readseq", "readrandom"];
/// Records that each thread reads.
const READS: u64 = 4_096;

fn run(lab: &mut Lab) -> anyhow::Result<Data> {
    let mut data = lab.data(&["what", "threads", "metric"]);
    lab.expect(THREADS.len() * PLACEMENTS.len());
    let keys = lab.size.pick(KEYS / 16, KEYS);
    for placement in PLACEMENTS {
        for threads in THREADS {
            lab.point(&format!("{placement}, {threads} threads"));
            let flags = format!(
                "--benchmarks=fillseq,waitforcompaction,readseq,readrandom --threads={threads} --num={keys} --reads={}",
                READS.min(keys)
            );
            let flags = database::flags_of_paper(96 << 10, false, &flags);
            let setup = Setup {
                ground: Ground::of_paper(placement),
                chunks_per_unit: CHUNKS,
                has_early_reset: false,
                flags,
            };
            let ran = database::run(&setup, lab.seed)?;
            push(&mut data, placement, &threads.to_string(), &ran);
        }
    }
    relations(&mut data)?;
    Ok(data)
}

fn rate(phase: &Phase) -> f64 {
    phase.operations() as f64 / phase.took().as_secs_f64().max(1e-9)
}

fn percent(some: f64, all: f64) -> f64 {
    if all > 0.0 { some / all * 100.0 } else { 0.0 }
}

fn push(data: &mut Data, placement: &str, threads: &str, ran: &Ran) {
    let levels: Vec<String> = ran.lsm.levels().iter().map(|(tables, _)| tables.to_string()).collect();
    for phase in ran.lsm.phases().iter().filter(|phase| WORKLOADS.contains(&phase.name)) {
        let note =
            format!("{:.3} s; tables by level at the end {}", phase.took().as_secs_f64(), levels.join(" "));
        data.push(&[placement, threads, phase.name], rate(phase), "IOPS", &note);
    }
    let fill = &ran.lsm.phases()[0];
    let took = fill.took().as_secs_f64();
    let all = |times: &[ocssd_base::Nanos; 3]| times.iter().map(|time| time.as_secs_f64()).sum::<f64>();
    let keys = |metric| [placement, threads, metric];
    data.push(&keys("stopped"), percent(all(&fill.stopped), took), "%", "of the time of fillseq");
    data.push(&keys("slowed"), percent(all(&fill.delayed), took), "%", "of the time of fillseq");
    data.push(
        &keys("amplification"),
        fill.work.amplification(),
        "x",
        "flushed and compacted bytes, until puts end",
    );
    let behind = percent(ran.counter("stream0_units_behind_any"), ran.counter("stream0_units"));
    let note = format!(
        "{} write units of flushes; behind writes {}, behind reads {}",
        ran.counter("stream0_units"),
        ran.counter("stream0_units_behind_writes"),
        ran.counter("stream0_units_behind_reads")
    );
    data.push(&keys("behind"), behind, "%", &note);
}

/// The numbers the paper's text has.
fn relations(data: &mut Data) -> anyhow::Result<()> {
    let ours = data.to_table()?;
    let of = |what, threads, metric| value(&ours, what, threads, metric).unwrap_or(f64::NAN);
    for threads in THREADS {
        for (what, placement) in [("horizontal/vertical", "vertical"), ("horizontal/groups:1", "groups:1")] {
            for metric in WORKLOADS {
                let ratio = of("horizontal", threads, metric) / of(placement, threads, metric);
                data.push(&[what, &threads.to_string(), metric], ratio, "x", "");
            }
        }
        let ratio = of("horizontal", threads, "fillseq") / of("horizontal", 2, "fillseq");
        data.push(&["horizontal/2 threads", &threads.to_string(), "fillseq"], ratio, "x", "");
    }
    Ok(())
}

fn value(ours: &PaperTable, what: &str, threads: u32, metric: &str) -> Option<f64> {
    ours.value(&[("what", what), ("threads", &threads.to_string()), ("metric", metric)])
}

fn series(ours: &PaperTable, what: &str, metric: &str) -> Vec<f64> {
    THREADS.iter().filter_map(|&threads| value(ours, what, threads, metric)).collect()
}

fn report(report: Report, numbers: &Numbers) -> anyhow::Result<Report> {
    let ours = &numbers.ours;
    let names = ["1", "2", "4", "8"];
    let points = |what: &str, metric: &str| -> Vec<Point> {
        (0_u32..).zip(series(ours, what, metric)).map(|(x, y)| Point::new(f64::from(x), y)).collect()
    };
    let mut rates = ChartSpec::new(
        "Operations a second",
        Axis::categories("threads", &names),
        Axis::log10("rate", "IOPS"),
    )
    .source("Paper: CIDR 2020, figure 5; its text gives relations only.");
    for workload in WORKLOADS {
        let mut panel = Panel::new(workload);
        for placement in PLACEMENTS {
            panel = panel.series(Series::new(placement, Role::Ours, points(placement, workload)));
        }
        rates = rates.panel(panel);
    }
    let mut causes = ChartSpec::new(
        "What held fillseq up",
        Axis::categories("threads", &names),
        Axis::linear("part", "%").range(0.0, 100.0),
    )
    .subtitle("Time in which puts were stopped or slowed down; write units of flushes that met another table's I/O at their unit.");
    for placement in PLACEMENTS {
        let mut panel = Panel::new(placement);
        for metric in ["stopped", "slowed", "behind"] {
            let bars = Series::new(metric, Role::Ours, points(placement, metric)).style(Style::Bars);
            panel = panel.series(bars);
        }
        causes = causes.panel(panel);
    }
    Ok(report.verdicts(verdicts(ours)).chart(rates).chart(causes))
}

/// Holds if the relation is within bounds.
fn within(id: &str, claim: &str, found: Option<f64>, (least, most): (f64, f64), more: &str) -> Verdict {
    let Some(found) = found else { return Verdict::not_evaluated(id, claim, "its points were not run") };
    Verdict::decided(id, claim, (least..=most).contains(&found), format!("x{found:.2}{more}"))
}

/// Reads of both kinds, by any number of threads.
fn of_reads(ours: &PaperTable) -> Verdict {
    let reads: Vec<f64> = ["readseq", "readrandom"]
        .iter()
        .flat_map(|metric| series(ours, "horizontal/vertical", metric))
        .collect();
    let all: Vec<String> = reads.iter().map(|ratio| format!("{ratio:.2}")).collect();
    let holds = reads.len() == 8 && reads.iter().all(|ratio| (1.0..=1.3).contains(ratio));
    Verdict::decided(
        "F5g",
        "Horizontal placement reads 1.0 to 1.3 times as fast.",
        holds,
        format!("readseq, then readrandom: {}", all.join(", ")),
    )
}

fn verdicts(ours: &PaperTable) -> Vec<Verdict> {
    let ratio = |threads, metric| value(ours, "horizontal/vertical", threads, metric);
    let to_two = |threads| value(ours, "horizontal/2 threads", threads, "fillseq");
    let told = |what: &str, metric: &str| {
        let all: Vec<String> = series(ours, what, metric).iter().map(|value| format!("{value:.0}")).collect();
        all.join(", ")
    };
    let slowed =
        format!("; slowed down {} % of the time with 1, 2, 4, 8 threads", told("horizontal", "slowed"));
    let slowed_vertical = format!("; vertical is slowed down {} %", told("vertical", "slowed"));
    let vertical = series(ours, "vertical", "fillseq");
    let is_best = series(ours, "horizontal", "fillseq")
        .iter()
        .all(|&rate| value(ours, "horizontal", 2, "fillseq") >= Some(rate));
    let mut verdicts = vec![
        within(
            "F5a",
            "One thread writes 3 to 5 times as fast horizontally as vertically.",
            ratio(1, "fillseq"),
            (3.0, 5.0),
            &slowed_vertical,
        ),
        Verdict::decided(
            "F5b",
            "Horizontal placement writes fastest with two threads.",
            is_best,
            format!("{} a second", told("horizontal", "fillseq")),
        ),
        within(
            "F5c",
            "With four threads it writes 0.3 to 0.5 times as fast as with two.",
            to_two(4),
            (0.3, 0.5),
            &slowed,
        ),
        within("F5d", "With eight threads it does too.", to_two(8), (0.3, 0.5), &slowed),
        Verdict::decided(
            "F5e",
            "Vertical placement gains with every thread.",
            vertical.is_sorted(),
            format!("{} a second", told("vertical", "fillseq")),
        ),
        within(
            "F5f",
            "With eight threads vertical placement writes 1.6 to 2.5 times as fast as horizontal.",
            ratio(8, "fillseq").map(|ratio| 1.0 / ratio),
            (1.6, 2.5),
            &slowed_vertical,
        ),
    ];
    verdicts.push(of_reads(ours));
    let behind = |what, threads| value(ours, what, threads, "behind").unwrap_or(f64::NAN);
    let (horizontal, vertical) = (behind("horizontal", 8), behind("vertical", 8));
    let in_turn = behind("groups:1", 8);
    let claim = "Ours: with eight threads flushes meet other I/O at their unit more often horizontally.";
    verdicts.push(Verdict::decided(
        "F5h",
        claim,
        horizontal > vertical,
        format!("{horizontal:.0} % and {vertical:.0} % of their write units"),
    ));
    let claim = "Ours: with eight threads flushes meet it no more often where each stream has a group than where tables take turns.";
    verdicts.push(Verdict::decided(
        "F5i",
        claim,
        vertical <= in_turn,
        format!("{vertical:.0} % and {in_turn:.0} % of their write units"),
    ));
    verdicts
}
