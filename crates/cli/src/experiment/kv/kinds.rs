//! The kinds of KV drives: a KV FTL on open-channel units, and the same FTL on block devices.
//!
//! Deliberately not here: a drive and a workload on it (`rig`), verdicts and pictures (`kinds_report`).

use super::super::catalogue::Experiment;
use super::super::data::Data;
use super::super::lab::Lab;
use super::kinds_report::report;
use super::rig::{Outcome, Rig, Shape, percentile_us};
use anyhow::{Context, anyhow};
use ocssd_base::Prng;
use ocssd_report::{PaperRow, PaperTable};
use ocssd_workload::generator::ycsb::{Ycsb, YcsbOptions};

/// The experiment.
pub const EXPERIMENT: Experiment = Experiment {
    id: "kv-kinds",
    aliases: &[],
    title: "A KV FTL on open-channel units, and on block devices",
    source: "CIDR 2020, section 3.1: a KV-SSD is a KV FTL on a block abstraction; Pliops' is one on open-channel units",
    claim: "A KV FTL that places records on flash itself needs one map and one garbage collection: it finds a value in one \
            read, and writes less for each byte stored than the same FTL on a block device, which has both twice.",
    method: "8 units, 128 chunks of 3 MiB on each (zn540 preset otherwise: write units of 96 KiB): 3 GiB. The same records of \
             1 000 bytes, keys of 16, on each kind: 50 or 90 % of what the kind with the least room takes. Targets as they \
             are if nobody says anything; stores are durable at a flush; 32 requests outstanding. After the load records \
             drawn uniformly are overwritten, six times as many as there are, in 24 parts (over-1 to over-24), until that is \
             steady. Then YCSB's A, B, C, F, D and E one after the other, with as many operations as records in A and F, half \
             as many in B, C and D, a hundredth in E, whose scans retrieve 50 records each. The load is in no figure. \
             written: bytes the media wrote for each byte of values stored. reads: reads a retrieve takes by the KV FTL's \
             count. read: bytes the media read for each byte retrieved. cpu: processor time of the target's own code for each \
             operation, on the machine of the run: it varies. Virtual time counts no processor time: rates are those of the \
             media.",
    paper: include_str!("../../../../../experiments/kv-kinds/paper.csv"),
    run,
    report,
    why,
};

/// The kinds, as the rows call them.
pub const KINDS: [&str; 4] =
    ["kv", "kv-block over pblk", "kv-block over block_ssd", "kv-block over ox-block"];
/// YCSB's, in the order that its authors run them in: D and E add records.
pub const WORKLOADS: [&str; 6] = ["a", "b", "c", "f", "d", "e"];
/// Parts of the overwriting, and how many of them write all records once.
pub const OVERWRITES: usize = 24;
pub const OVERWRITES_ONCE: u64 = 4;
/// Bytes of a value, and of a record: with its key.
const VALUE_BYTES: u64 = 1_000;
const RECORD_BYTES: u64 = VALUE_BYTES + 16;
/// Requests outstanding.
const DEPTH: usize = 32;
const SHAPE: Shape = Shape { groups: 4, units_per_group: 2, chunks_per_unit: 128, chunk_sectors: 768 };

fn why(_: &PaperTable, _: &PaperRow, percent: f64) -> Option<String> {
    (percent < 0.0)
        .then(|| "the others were answered from the write buffer, which has what was stored last".to_owned())
}

fn run(lab: &mut Lab) -> anyhow::Result<Data> {
    let mut data = lab.data(&["kind", "full", "workload", "metric"]);
    let fills: &[u64] = lab.size.pick(&[90], &[50, 90]);
    let workloads = lab.size.pick(&WORKLOADS[..2], &WORKLOADS[..]);
    lab.expect(fills.len() * KINDS.len());
    let mut least = u64::MAX;
    for kind in KINDS {
        least = least.min(Rig::named(&SHAPE, kind)?.limits().capacity_bytes);
    }
    for &full in fills {
        let records = least * full / 100 / RECORD_BYTES / lab.size.pick(20, 1);
        for kind in KINDS {
            lab.point(&format!("{kind}, {full} % full"));
            let mut point = Point {
                rig: Rig::named(&SHAPE, kind)?,
                kind,
                full: full.to_string(),
                records,
                seed: lab.seed,
            };
            point.run(&mut data, workloads).with_context(|| format!("{kind}, {full} % full"))?;
        }
    }
    Ok(data)
}

/// A kind with so many records.
struct Point {
    rig: Rig,
    kind: &'static str,
    full: String,
    records: u64,
    seed: u64,
}

impl Point {
    fn run(&mut self, data: &mut Data, workloads: &[&str]) -> anyhow::Result<()> {
        let load = self.ycsb("load", "operationcount=0")?;
        self.rig.run(Ycsb::new(load.0, &load.1), DEPTH)?;
        for part in 1..=OVERWRITES {
            let name = format!("over-{part}");
            let operations = self.records / OVERWRITES_ONCE;
            let updates = "readproportion=0,updateproportion=1,requestdistribution=uniform";
            let outcome = self.on_records(&name, &format!("{updates},operationcount={operations}"))?;
            self.push_rate(data, &name, &outcome);
        }
        for &workload in workloads {
            let share = match workload {
                "a" | "f" => 1,
                "e" => 100,
                _ => 2,
            };
            let words = format!("workload={workload},operationcount={}", self.records / share);
            let outcome = self.on_records(workload, &words)?;
            self.push_rate(data, workload, &outcome);
            self.push_rest(data, workload, &outcome);
        }
        Ok(())
    }

    fn ycsb(&self, name: &str, words: &str) -> anyhow::Result<(YcsbOptions, Prng)> {
        let size = format!("recordcount={},fieldcount=1,fieldlength={VALUE_BYTES}", self.records);
        let options =
            YcsbOptions::parse(&format!("{size},{words}")).map_err(|problems| anyhow!("{problems}"))?;
        Ok((options, Prng::new(self.seed).split(name)))
    }

    fn on_records(&mut self, name: &str, words: &str) -> anyhow::Result<Outcome> {
        let (options, prng) = self.ycsb(name, words)?;
        self.rig.run(Ycsb::on_records(options, &prng), DEPTH).with_context(|| format!("workload {name}"))
    }

    /// What overwriting is measured by, too.
    fn push_rate(&self, data: &mut Data, workload: &str, outcome: &Outcome) {
        let keys = |metric| [self.kind, self.full.as_str(), workload, metric];
        let operations = outcome.phase.operations;
        data.push(&keys("throughput"), outcome.rate(), "op/s", &format!("{operations} operations"));
        let stored = outcome.stored_bytes;
        if stored > 0 {
            let written = outcome.media_written_bytes as f64 / stored as f64;
            data.push(&keys("written"), written, "x", &format!("{stored} bytes stored"));
        }
    }

    fn push_rest(&self, data: &mut Data, workload: &str, outcome: &Outcome) {
        let keys = |metric| [self.kind, self.full.as_str(), workload, metric];
        for (name, metrics) in [
            ("retrieve", ["retrieve_p50", "retrieve_p99", "retrieve_p999"]),
            ("store", ["store_p50", "store_p99", "store_p999"]),
        ] {
            let Some(latency) = outcome.latency(name) else { continue };
            for (metric, percent) in metrics.into_iter().zip([50.0, 99.0, 99.9]) {
                let note = format!("{} requests", latency.count());
                data.push(&keys(metric), percentile_us(latency, percent), "us", &note);
            }
        }
        let retrieves = outcome.retrieves as f64;
        if outcome.retrieves > 0 {
            let reads = outcome.reads as f64 / retrieves;
            data.push(&keys("reads"), reads, "x", &format!("{retrieves} retrieves"));
            let read = outcome.media_read_bytes as f64 / (retrieves * VALUE_BYTES as f64);
            data.push(&keys("read"), read, "x", "garbage collection's counted");
        }
        if let Some(cpu) = outcome.cpu_ns {
            let each = cpu / 1e3 / outcome.phase.operations as f64;
            data.push(&keys("cpu"), each, "us", "of this machine; an operation, all its requests counted");
        }
    }
}
