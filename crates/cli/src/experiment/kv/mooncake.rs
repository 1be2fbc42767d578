//! Blocks of KV caches on KV drives, stored and retrieved as a trace of Mooncake's has it.
//!
//! Deliberately not here: a drive and a workload on it (`rig`), verdicts and pictures (`mooncake_report`).

use super::super::catalogue::Experiment;
use super::super::data::Data;
use super::super::lab::Lab;
use super::mooncake_report::report;
use super::rig::{Outcome, Rig, Shape, percentile_us};
use anyhow::{Context, anyhow};
use ocssd_base::Prng;
use ocssd_lightnvm::interface::key_value::KvLimits;
use ocssd_report::{PaperRow, PaperTable};
use ocssd_workload::generator::mooncake::synthetic::synthetic;
use ocssd_workload::generator::mooncake::trace::Trace;
use ocssd_workload::generator::mooncake::{Mooncake, MooncakeOptions};

/// The experiment.
pub const EXPERIMENT: Experiment = Experiment {
    id: "kv-mooncake",
    aliases: &[],
    title: "KV caches of language models on KV drives",
    source: "Mooncake (FAST 2025): blocks of 512 tokens, used again by prompts that begin alike; traces in its artifact",
    claim: "Blocks of KV caches are long and leave in nearly the order in which they came, so a KV FTL that places them on flash \
            itself writes them about once, and a retrieve beside stores waits less than on a KV FTL on a block device.",
    method: "8 units, 128 chunks of 3 MiB on each (zn540 preset otherwise): 3 GiB. A trace of 12 031 requests, drawn in the shape \
             of conversation_trace.jsonl (docs/workload.md), blocks of 256 KiB. What of a prompt's beginning is there is \
             retrieved, the rest stored; 50 or 90 % of what the kind with the least room takes is kept, least recently used \
             blocks are deleted before, until four times the 3 GiB were stored. Load at-once: requests as fast as 8 outstanding \
             are answered, each timed from when it is made. Load timed: requests at eight times the pace of the trace, ten of \
             them every 375 ms, 32 outstanding, each timed from its arrival, so a burst waits for itself. written: bytes the \
             media wrote for each stored, of all, and of each 3 GiB (1 to 4). found: blocks of prompts that were retrieved. \
             Latencies begin when the first block was deleted.",
    paper: include_str!("../../../../../experiments/kv-mooncake/paper.csv"),
    run,
    report,
    why,
};

/// The kinds, as the rows call them.
pub const KINDS: [&str; 2] = ["kv", "kv-block over pblk"];
/// How requests come: name, pace (0: as fast as they are answered) and how many are outstanding.
const LOADS: [(&str, u32, usize); 2] = [("at-once", 0, 8), ("timed", 8, 32)];
/// What is stored, as parts of the media's capacity.
pub const PARTS: u64 = 4;
/// Requests of the trace, as the published one has them.
const REQUESTS: u64 = 12_031;
const SHAPE: Shape = Shape { groups: 4, units_per_group: 2, chunks_per_unit: 128, chunk_sectors: 768 };
/// The media's bytes, of sectors of 4 KiB.
const MEDIA_BYTES: u64 = 8 * 128 * 768 * 4_096;

fn why(_: &PaperTable, _: &PaperRow, percent: f64) -> Option<String> {
    (percent > 0.0).then(|| {
        "records are headed and padded to write units, and what prompts use again is moved".to_owned()
    })
}

fn rig(kind: &str) -> anyhow::Result<Rig> {
    Rig::named(&SHAPE, kind)
}

fn run(lab: &mut Lab) -> anyhow::Result<Data> {
    let mut data = lab.data(&["kind", "full", "load", "metric"]);
    let fills: &[u64] = lab.size.pick(&[90], &[50, 90]);
    let loads = lab.size.pick(&LOADS[..1], &LOADS[..]);
    let store_bytes = lab.size.pick(MEDIA_BYTES / 16, PARTS * MEDIA_BYTES);
    lab.expect(fills.len() * loads.len() * KINDS.len());
    let trace = synthetic(REQUESTS, &Prng::new(lab.seed));
    let mut least = u64::MAX;
    for kind in KINDS {
        least = least.min(rig(kind)?.limits().capacity_bytes);
    }
    for &full in fills {
        let cache_bytes = least / 100 * full / lab.size.pick(32, 1);
        for &(load, speed, depth) in loads {
            for kind in KINDS {
                lab.point(&format!("{kind}, {full} % full, {load}"));
                let words = format!("cachebytes={cache_bytes},speed={speed},storebytes={store_bytes}");
                let point = Point { kind, full: full.to_string(), load, depth, part: store_bytes / PARTS };
                point
                    .run(&mut data, &words, trace.clone())
                    .with_context(|| format!("{kind}, {full} % full"))?;
            }
        }
    }
    Ok(data)
}

fn mooncake(words: &str, limits: &KvLimits, trace: Trace) -> anyhow::Result<Mooncake> {
    let options = MooncakeOptions::parse(words, limits).map_err(|problems| anyhow!("{problems}"))?;
    Ok(Mooncake::new(options, trace))
}

/// A kind that keeps so much, under a load.
struct Point {
    kind: &'static str,
    full: String,
    load: &'static str,
    depth: usize,
    /// Bytes of a part of what is stored.
    part: u64,
}

impl Point {
    fn run(&self, data: &mut Data, words: &str, trace: Trace) -> anyhow::Result<()> {
        let mut rig = rig(self.kind)?;
        let generator = mooncake(words, &rig.limits(), trace)?;
        let mut parts: Vec<(u64, u64)> = Vec::new();
        let mut watch = |stored: u64, written: u64| {
            let ended = u64::try_from(parts.len()).expect("few parts") + 1;
            if stored >= ended * self.part {
                parts.push((stored, written));
            }
        };
        let outcome = rig.run_watched(generator, self.depth, &mut watch)?;
        let mut before = (0, 0);
        for (nth, &(stored, written)) in (1..=PARTS).zip(&parts) {
            let bytes = stored - before.0;
            let amplification = (written - before.1) as f64 / bytes as f64;
            self.push(
                data,
                &format!("written_{nth}"),
                amplification,
                ("x", &format!("{bytes} bytes stored")),
            );
            before = (stored, written);
        }
        self.push_rest(data, &outcome);
        Ok(())
    }

    fn push(&self, data: &mut Data, metric: &str, value: f64, (unit, note): (&str, &str)) {
        data.push(&[self.kind, self.full.as_str(), self.load, metric], value, unit, note);
    }

    fn push_rest(&self, data: &mut Data, outcome: &Outcome) {
        let stored = outcome.stored_bytes as f64;
        let note = format!("{} bytes stored", outcome.stored_bytes);
        self.push(data, "written", outcome.media_written_bytes as f64 / stored, ("x", &note));
        let seconds = outcome.phase.took().0 as f64 / 1e9;
        for (name, metrics) in [
            ("retrieve", ["retrieve_p50", "retrieve_p99", "retrieve_p999"]),
            ("store", ["store_p50", "store_p99", "store_p999"]),
        ] {
            let Some(measured) = outcome.phase.measured.iter().find(|measured| measured.name == name) else {
                continue;
            };
            let note = format!("{} blocks", measured.latency.count());
            for (metric, percent) in metrics.into_iter().zip([50.0, 99.0, 99.9]) {
                let time = percentile_us(&measured.latency, percent);
                self.push(data, metric, time, ("us", &note));
            }
            let rate = measured.bytes as f64 / 1e6 / seconds;
            self.push(data, &format!("{name}_bandwidth"), rate, ("MB/s", &note));
        }
        let (found, stored) = (outcome.count_of("retrieve") as f64, outcome.count_of("store") as f64);
        self.push(
            data,
            "found",
            100.0 * found / (found + stored),
            ("%", "of the blocks that were retrieved or stored"),
        );
    }
}
