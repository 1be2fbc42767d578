//! Figure 6: puts over time, and whether RocksDB's rate limiter is why they fluctuate.

use super::super::catalogue::{Experiment, Numbers};
use super::super::data::Data;
use super::super::lab::Lab;
use super::database::{self, CHUNKS, KEYS, Ran, SECOND_MS, Setup};
use super::ground::Ground;
use super::unexplained;
use ocssd_report::{Axis, ChartSpec, Panel, PaperTable, Point, Report, Role, Series, Verdict};
use ocssd_workload::lsm::Phase;

/// The experiment.
pub const EXPERIMENT: Experiment = Experiment {
    id: "cidr20-f6",
    aliases: &[],
    title: "Puts over time, with and without RocksDB's rate limiter",
    source: "CIDR 2020, figure 6 and section 4.3",
    claim: "With horizontal placement puts stay high with one or two threads, and take significantly longer with four or eight. \
            Vertical placement has its highest peak, and its lowest mean, with one thread; with more its peaks are lower and it is \
            more stable. Hypothesis, not tested there: puts fluctuate because of RocksDB's rate limiter.",
    method: "fillseq of cidr20-f5, with delayed_write_rate of 8 MiB/s (limiter on) and without (off: puts are stopped by the same \
             triggers, and never slowed down before). A bucket is 62 ms, for a second of the paper's database, which is 16 times \
             larger. variation is the standard deviation of the buckets over their mean, the last one left out; peak is the \
             highest bucket over the mean; longer is the time over that of one thread, divided by the threads.",
    paper: include_str!("../../../../../experiments/cidr20-f6/paper.csv"),
    run,
    report,
    why: unexplained,
};

const THREADS: [u32; 4] = [1, 2, 4, 8];
const PLACEMENTS: [&str; 2] = ["horizontal", "vertical"];
/// The limiter, and the flag for it.
const LIMITERS: [(&str, u64); 2] = [("on", 8 << 20), ("off", 0)];

fn run(lab: &mut Lab) -> anyhow::Result<Data> {
    let mut data = lab.data(&["placement", "limiter", "threads", "metric"]);
    lab.expect(THREADS.len() * PLACEMENTS.len() * LIMITERS.len());
    let keys = lab.size.pick(KEYS / 16, KEYS);
    for placement in PLACEMENTS {
        for (limiter, rate) in LIMITERS {
            let (mut alone, mut two) = (None, None);
            for threads in THREADS {
                lab.point(&format!("{placement}, limiter {limiter}, {threads} threads"));
                let flags = format!(
                    "--benchmarks=fillseq --threads={threads} --num={keys} --delayed_write_rate={rate}"
                );
                let flags = database::flags_of_paper(96 << 10, false, &flags);
                let setup = Setup {
                    ground: Ground::of_paper(placement),
                    chunks_per_unit: CHUNKS,
                    has_early_reset: false,
                    flags,
                };
                let ran = database::run(&setup, lab.seed)?;
                let took = ran.lsm.phases()[0].took().as_secs_f64();
                let alone = *alone.get_or_insert(took);
                let each = took / f64::from(threads);
                if threads == 2 {
                    two = Some(each);
                }
                let keys = [placement, limiter, &threads.to_string()];
                push(&mut data, keys, &ran, each / alone);
                if let Some(two) = two {
                    data.push(&[keys[0], keys[1], keys[2], "longer_than_two"], each / two, "x", "");
                }
            }
        }
    }
    Ok(data)
}

fn percent(some: f64, all: f64) -> f64 {
    if all > 0.0 { some / all * 100.0 } else { 0.0 }
}

/// Puts a second of every bucket that is whole.
fn buckets(phase: &Phase) -> Vec<f64> {
    let whole = usize::try_from(phase.took().0 / (SECOND_MS * 1_000_000)).unwrap_or(0).max(1);
    phase.series.iter().take(whole).map(|point| point.puts as f64 * 1e3 / SECOND_MS as f64).collect()
}

fn push(data: &mut Data, [placement, limiter, threads]: [&str; 3], ran: &Ran, longer: f64) {
    let phase = &ran.lsm.phases()[0];
    let rates = buckets(phase);
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    let variance = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / rates.len() as f64;
    let took = phase.took().as_secs_f64();
    let keys = |metric| [placement, limiter, threads, metric];
    data.push(&keys("took"), took, "s", "");
    data.push(&keys("longer"), longer, "x", "");
    data.push(&keys("mean"), phase.puts.count() as f64 / took, "IOPS", "");
    let peak = rates.iter().copied().fold(0.0, f64::max);
    data.push(&keys("peak"), peak / mean, "x", "");
    data.push(&keys("variation"), variance.sqrt() / mean * 100.0, "%", &format!("{} buckets", rates.len()));
    let all = |times: &[ocssd_base::Nanos; 3]| times.iter().map(|time| time.as_secs_f64()).sum::<f64>();
    data.push(&keys("stopped"), percent(all(&phase.stopped), took), "%", "");
    let lowest = phase.rate_min.map_or_else(String::new, |rate| format!("lowest rate {rate} bytes a second"));
    data.push(&keys("slowed"), percent(all(&phase.delayed), took), "%", &lowest);
    let behind = percent(ran.counter("stream0_units_behind_any"), ran.counter("stream0_units"));
    data.push(
        &keys("behind"),
        behind,
        "%",
        "write units of flushes that met another table's I/O at their unit",
    );
    for (number, rate) in rates.iter().enumerate() {
        let bucket = format!("bucket {number}");
        data.push(&[placement, limiter, threads, &bucket], *rate, "IOPS", "");
    }
}

fn value(ours: &PaperTable, keys: (&str, &str, u32), metric: &str) -> Option<f64> {
    let (placement, limiter, threads) = keys;
    ours.value(&[
        ("placement", placement),
        ("limiter", limiter),
        ("threads", &threads.to_string()),
        ("metric", metric),
    ])
}

fn all(ours: &PaperTable, placement: &str, limiter: &str, metric: &str) -> Vec<f64> {
    THREADS.iter().filter_map(|&threads| value(ours, (placement, limiter, threads), metric)).collect()
}

fn report(report: Report, numbers: &Numbers) -> anyhow::Result<Report> {
    let ours = &numbers.ours;
    let mut report = report.verdicts(verdicts(ours));
    for (limiter, _) in LIMITERS {
        let title = format!("Puts a second over time, limiter {limiter}");
        let mut chart = ChartSpec::new(&title, Axis::linear("time", "s"), Axis::linear("puts", "IOPS"))
            .subtitle("Each thread puts as much as any other, so more threads take longer.")
            .source("Paper: CIDR 2020, figure 6; its text gives no numbers.");
        for placement in PLACEMENTS {
            let mut panel = Panel::new(placement);
            for threads in THREADS {
                let points = (0_u32..).map_while(|number| {
                    let rate = value(ours, (placement, limiter, threads), &format!("bucket {number}"))?;
                    Some(Point::new((f64::from(number) + 0.5) * SECOND_MS as f64 / 1e3, rate))
                });
                let name = if threads == 1 { "1 thread".to_owned() } else { format!("{threads} threads") };
                panel = panel.series(Series::new(&name, Role::Ours, points.collect()));
            }
            chart = chart.panel(panel);
        }
        report = report.chart(chart);
    }
    Ok(report)
}

fn told(values: &[f64]) -> String {
    let all: Vec<String> = values.iter().map(|value| format!("{value:.2}")).collect();
    all.join(", ")
}

fn verdicts(ours: &PaperTable) -> Vec<Verdict> {
    let longer = all(ours, "horizontal", "on", "longer");
    let peaks = all(ours, "vertical", "on", "peak");
    let means = all(ours, "vertical", "on", "mean");
    let vertical = all(ours, "vertical", "on", "variation");
    if [&longer, &peaks, &means, &vertical].iter().any(|values| values.len() != THREADS.len()) {
        return vec![Verdict::not_evaluated("F6", "Puts over time", "not all points were run")];
    }
    let holds = longer[2] > 1.0 && longer[3] > 1.0 && longer[1] <= 1.0;
    let mut verdicts = vec![Verdict::decided(
        "F6a",
        "Horizontally four and eight threads take longer than in proportion, two do not.",
        holds,
        format!("time over threads times that of one: {}", told(&longer)),
    )];
    let is_first = peaks.iter().all(|&peak| peak <= peaks[0]) && means.iter().all(|&mean| mean >= means[0]);
    let sentence = format!("peak over mean {}; means {}", told(&peaks), told(&means));
    verdicts.push(Verdict::decided(
        "F6b",
        "Vertically one thread has the highest peak over its mean, and the lowest mean.",
        is_first,
        sentence,
    ));
    let is_falling = vertical.is_sorted_by(|a, b| a >= b);
    let sentence = format!("standard deviation over mean, in percent: {}", told(&vertical));
    verdicts.push(Verdict::decided(
        "F6c",
        "Vertically puts are more stable the more threads there are.",
        is_falling,
        sentence,
    ));
    let claim = "The hypothesis: without the limiter puts fluctuate half as much or less (four and eight threads, both placements).";
    let both = |limiter: &str| -> Vec<f64> {
        PLACEMENTS
            .iter()
            .flat_map(|placement| all(ours, placement, limiter, "variation").split_off(2))
            .collect()
    };
    let (on, off) = (both("on"), both("off"));
    let stopped: Vec<f64> =
        PLACEMENTS.iter().flat_map(|placement| all(ours, placement, "off", "stopped").split_off(2)).collect();
    let holds = on.len() == off.len() && on.iter().zip(&off).all(|(on, off)| *off <= on / 2.0);
    verdicts.push(Verdict::decided(
        "F6d",
        claim,
        holds,
        format!(
            "variation with {} %, without {} %; stopped without {} % of the time",
            told(&on),
            told(&off),
            told(&stopped)
        ),
    ));
    let claim = "The hypothesis: without the limiter horizontal placement does not collapse: eight threads put at least 0.8 times as fast \
                 as two.";
    let without = all(ours, "horizontal", "off", "mean");
    let with = all(ours, "horizontal", "on", "mean");
    let sentence = format!("x{:.2} without, x{:.2} with", without[3] / without[1], with[3] / with[1]);
    verdicts.push(Verdict::decided("F6e", claim, without[3] >= 0.8 * without[1], sentence));
    verdicts
}
