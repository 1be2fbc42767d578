//! What LightLSM's interface costs: reads in write units, and chunk sets of one size.

use super::super::catalogue::{Experiment, Numbers};
use super::super::data::Data;
use super::super::lab::Lab;
use super::database::{self, CHUNKS, KEYS, Ran, Setup};
use super::ground::Ground;
use super::unexplained;
use ocssd_report::{Axis, ChartSpec, Panel, PaperTable, Point, Report, Role, Series, Style, Verdict};

/// The experiment.
pub const EXPERIMENT: Experiment = Experiment {
    id: "lightlsm-units",
    aliases: &[],
    title: "Units of reads and classes of chunk sets",
    source: "CIDR 2020, section 5 (the interface fallacy); ratio computed",
    claim: "A get of 1 KiB reads 24 times as many bytes where reads are of write units (96 KiB) as where they are of sectors (4 KiB).",
    method: "The database of cidr20-f5 with one thread, horizontal: fillseq, compactions end, readrandom of 4,096 keys. Blocks of 4 KiB or \
             96 KiB, and reads of sectors or of write units (read_unit). amplification is what was read of media for each byte of \
             the records that were asked for. A block of 4 KiB has four records, 4,160 bytes, and lies in two sectors or three.\n\n\
             Chunk sets: the same fill with tables of unknown length (a stripe over all 32 units, as the paper's environment) and with \
             their length given, so that each has as few chunks as hold it (size class). unfilled is the part of the chunks of \
             tables that nothing fills, right after the last put.",
    paper: include_str!("../../../../../experiments/lightlsm-units/paper.csv"),
    run,
    report,
    why: unexplained,
};

const BLOCKS: [(&str, u64); 2] = [("4k", 4 << 10), ("96k", 96 << 10)];
const UNITS: [&str; 2] = ["sector", "write_unit"];
const READS: u64 = 4_096;
/// Bytes of a record: key and value.
const RECORD_BYTES: f64 = 1_040.0;

fn run(lab: &mut Lab) -> anyhow::Result<Data> {
    let mut data = lab.data(&["block", "read", "metric"]);
    lab.expect(BLOCKS.len() * UNITS.len() + 2);
    let keys = lab.size.pick(KEYS / 16, KEYS);
    for (block, block_bytes) in BLOCKS {
        for unit in UNITS {
            lab.point(&format!("blocks of {block}, reads of a {unit}"));
            let flags =
                format!("--benchmarks=fillseq,waitforcompaction,readrandom --num={keys} --reads={READS}");
            let flags = database::flags_of_paper(block_bytes, false, &flags);
            let ground = Ground::of_paper("horizontal").with("read_unit", unit);
            let ran = database::run(
                &Setup { ground, chunks_per_unit: CHUNKS, has_early_reset: false, flags },
                lab.seed,
            )?;
            push_reads(&mut data, block, unit, &ran);
        }
        let of = |unit| value(&data.to_table().ok()?, block, unit, "amplification");
        let ratio = of("write_unit").zip(of("sector")).map_or(f64::NAN, |(all, least)| all / least);
        data.push(&[block, "write_unit/sector", "amplification"], ratio, "x", "");
    }
    for (name, has_size_hint) in [("stripe", false), ("size class", true)] {
        lab.point(&format!("chunk sets: {name}"));
        let flags = format!("--benchmarks=fillseq --num={keys}");
        let flags = database::flags_of_paper(96 << 10, has_size_hint, &flags);
        let setup = Setup {
            ground: Ground::of_paper("horizontal"),
            chunks_per_unit: CHUNKS,
            has_early_reset: false,
            flags,
        };
        let ran = database::run(&setup, lab.seed)?;
        push_space(&mut data, name, &ran);
    }
    Ok(data)
}

fn push_reads(data: &mut Data, block: &str, unit: &str, ran: &Ran) {
    let phase = ran.lsm.phases().last().expect("three benchmarks were run");
    let read = ran.counter("read_sectors") * 4_096.0;
    let asked = phase.gets.count() as f64 * RECORD_BYTES;
    let keys = |metric| [block, unit, metric];
    let note = format!("{} sectors for {} gets", ran.counter("read_sectors"), phase.gets.count());
    data.push(&keys("amplification"), read / asked, "x", &note);
    data.push(&keys("mean"), phase.gets.mean_ns() / 1e3, "us", "of a get");
    data.push(&keys("rate"), phase.operations() as f64 / phase.took().as_secs_f64(), "IOPS", "gets a second");
}

fn push_space(data: &mut Data, name: &str, ran: &Ran) {
    let phase = &ran.lsm.phases()[0];
    let (unfilled, live) = (ran.counter("unfilled_bytes"), ran.counter("table_bytes_live"));
    let keys = |metric| ["chunk sets", name, metric];
    let note = format!("{} tables in {} chunks", ran.counter("tables"), ran.counter("content_chunks"));
    data.push(&keys("unfilled"), unfilled / (unfilled + live) * 100.0, "%", &note);
    data.push(&keys("rate"), phase.operations() as f64 / phase.took().as_secs_f64(), "IOPS", "puts a second");
}

fn value(ours: &PaperTable, block: &str, unit: &str, metric: &str) -> Option<f64> {
    ours.value(&[("block", block), ("read", unit), ("metric", metric)])
}

fn report(report: Report, numbers: &Numbers) -> anyhow::Result<Report> {
    let ours = &numbers.ours;
    let mut chart = ChartSpec::new(
        "Gets of 1 KiB",
        Axis::categories("reads of a", &["sector", "write unit"]),
        Axis::log10("read of media for each byte", "x"),
    );
    let mut panel = Panel::new("read amplification");
    for (block, _) in BLOCKS {
        let points = (0_u32..).zip(UNITS).filter_map(|(x, unit)| {
            Some(Point::new(f64::from(x), value(ours, block, unit, "amplification")?))
        });
        panel = panel.series(
            Series::new(&format!("blocks of {block}"), Role::Ours, points.collect()).style(Style::Bars),
        );
    }
    chart = chart.panel(panel);
    Ok(report.verdicts(verdicts(ours)).chart(chart))
}

fn verdicts(ours: &PaperTable) -> Vec<Verdict> {
    let of = |block, unit, metric| value(ours, block, unit, metric).unwrap_or(f64::NAN);
    let ratio = of("4k", "write_unit/sector", "amplification");
    let exact =
        "Reads of write units read 24 times as many bytes as reads of sectors (10 %), blocks of 4 KiB.";
    let claim = "Ours: with blocks of 4 KiB, reads of sectors read at most a tenth of the bytes.";
    let (sector, unit) = (of("4k", "sector", "amplification"), of("4k", "write_unit", "amplification"));
    let sentence = format!("{sector:.1} and {unit:.1} bytes for each byte asked for: x{ratio:.1}");
    let mut verdicts = vec![
        Verdict::decided("LU1", exact, (ratio / 24.0 - 1.0).abs() <= 0.1, sentence.clone()),
        Verdict::decided("LU2", claim, ratio >= 10.0, sentence),
    ];
    let claim = "Ours: size classes leave less than half as much unfilled as stripes over all units.";
    let (stripe, class) =
        (of("chunk sets", "stripe", "unfilled"), of("chunk sets", "size class", "unfilled"));
    let rates = (of("chunk sets", "stripe", "rate"), of("chunk sets", "size class", "rate"));
    let sentence =
        format!("{stripe:.0} and {class:.0} % unfilled, at {:.0} and {:.0} puts a second", rates.0, rates.1);
    verdicts.push(Verdict::decided("LU3", claim, class < stripe / 2.0, sentence));
    verdicts
}
