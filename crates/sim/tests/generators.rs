//! Every generator of `workload` against the reference target of its interface, with power cuts; and planted bugs.

use ocssd_base::Prng;
use ocssd_lightnvm::interface::StageLimits;
use ocssd_lightnvm::interface::key_value::{KvLimits, ListOrder};
use ocssd_lightnvm::interface::log_structured::LogLimits;
use ocssd_lightnvm::interface::table::TableLimits;
use ocssd_lightnvm::interface::zoned::{ZoneGeometry, ZoneState};
use ocssd_lightnvm::{Buffers, Geometry, Payload, PayloadFormat, Tag};
use ocssd_sim::kv::KvModel;
use ocssd_sim::log::LogModel;
use ocssd_sim::model::Model;
use ocssd_sim::model::trial::{Canary, Found, Requests, Tally, Trial};
use ocssd_sim::model::world;
use ocssd_sim::table::TableModel;
use ocssd_sim::zoned::ZonedModel;
use ocssd_workload::generator::Generator;
use ocssd_workload::generator::db_bench::{DbBench, DbBenchOptions};
use ocssd_workload::generator::page_store::{PageStore, PageStoreOptions};
use ocssd_workload::generator::ycsb::{Ycsb, YcsbOptions};
use ocssd_workload::generator::zoned::{Zoned, ZonedOptions};

/// Steps of a trial, and power cuts of a run in the loop.
const STEPS: u32 = 3_000;
const CUTS: u32 = 20;

/// A generator as the source of a trial; `cut` tells it of a power cut.
#[derive(Clone)]
struct Driven<G, M> {
    generator: G,
    cut: fn(&mut G, &M),
}

impl<M: Model, G: Generator<Request = M::Request, Reply = M::Reply>> Requests<M> for Driven<G, M> {
    fn next(&mut self, tag: Tag, _: &mut Prng, _: &M, buffers: &mut Buffers) -> Option<M::Request> {
        self.generator.next(tag, buffers)
    }

    fn answered(&mut self, request: &M::Request, reply: &M::Reply, buffers: &mut Buffers) {
        self.generator.on_reply(request, reply, buffers);
    }

    fn power_cut(&mut self, model: &M, _: &mut Buffers) {
        (self.cut)(&mut self.generator, model);
    }
}

fn pool(payload: Payload) -> Buffers {
    Buffers::new(PayloadFormat::new(payload, &Geometry::example(1, 1, 4, 24, 24)))
}

fn payload_of(seed: u64) -> Payload {
    if seed.is_multiple_of(2) { Payload::Stamp } else { Payload::Bytes }
}

type Run<M> = fn(u64, Option<fn(&mut M)>) -> Result<Tally, Box<Found>>;

fn trial<M: Model, G: Clone + Generator<Request = M::Request, Reply = M::Reply>>(
    seed: u64,
    model: M,
    driven: &mut Driven<G, M>,
    canary: Option<fn(&mut M)>,
) -> Result<Tally, Box<Found>> {
    let mut again = driven.clone();
    let mut trial = Trial::new(seed, model.clone(), pool(payload_of(seed)));
    trial.canary = canary;
    let alone = trial.run(STEPS, driven)?;
    // The same requests, to a target of the engine's loop.
    let served = world::run(seed, model, pool(payload_of(seed)), &mut again, CUTS, canary)?;
    let (succeeded, refused) = (alone.succeeded + served.succeeded, alone.refused + served.refused);
    Ok(Tally { succeeded, refused, cuts: alone.cuts.min(served.cuts) })
}

/// Sound targets pass with every seed, and each planted bug is found with one of them.
fn check<M: Model>(run: Run<M>, canaries: [Canary<M>; 4]) {
    let mut sum = Tally::default();
    for seed in 0..12 {
        let tally = run(seed, None).unwrap_or_else(|found| panic!("{found}"));
        assert!(tally.cuts > 10, "seed {seed}: {tally:?}");
        sum.succeeded += tally.succeeded;
        sum.refused += tally.refused;
    }
    assert!(sum.succeeded > 10_000 && sum.refused * 4 < sum.succeeded, "{sum:?}");
    for (name, canary) in canaries {
        let found = (0..24).find_map(|seed| run(seed, Some(canary)).err());
        assert!(found.is_some(), "{name}: not found with seeds 0 to 23");
    }
}

fn zoned(seed: u64, canary: Option<fn(&mut ZonedModel)>) -> Result<Tally, Box<Found>> {
    let zones = ZoneGeometry {
        takes_extensions: true,
        capacity_blocks: 12,
        open_max: Some(4),
        active_max: Some(8),
        append_blocks_max: 4,
        ..ZoneGeometry::plain(16, 12)
    };
    let text = match seed % 4 {
        0 => "rw=write,bs=12k,max_open_zones=2,fsync=9,io_size=1g",
        1 => "rw=randwrite,bs=4k,max_open_zones=3,durable=reply,zone_reset_frequency=0.1,io_size=1g",
        2 => "rw=randrw,bs=8k,zone_append=1,fsync=20,finish_frequency=0.05,io_size=1g",
        _ => "rw=randrw,bs=4k,open_explicitly=1,max_open_zones=3,read_beyond_wp=1,io_size=1g",
    };
    let options = ZonedOptions::parse(text, &zones).expect("the options can be used");
    let generator = Zoned::new(options, zones, &Prng::new(seed));
    let cut = |generator: &mut Zoned, model: &ZonedModel| {
        let zones = (0..model.geometry().zone_count).map(|zone| model.zone(zone));
        generator.power_cut(zones.map(|zone| (zone.written(), zone.state == ZoneState::Full)));
    };
    trial(seed, ZonedModel::new(zones), &mut Driven { generator, cut }, canary)
}

#[test]
fn fios_zbd_words_run_on_zones_through_power_cuts() {
    check(zoned, ocssd_sim::zoned::canaries());
}

fn log(seed: u64, canary: Option<fn(&mut LogModel)>) -> Result<Tally, Box<Found>> {
    let limits = LogLimits {
        flush_bytes_max: 64 << 10,
        flush_pages_max: 64,
        page_bytes_max: 8_192,
        page_align_bytes: 1,
        sessions_max: 4,
        pages_max: 1 << 20,
        capacity_bytes: 1 << 30,
        stages: StageLimits { stages_max: 4, bytes_max: 64 << 10 },
    };
    let text = match seed % 3 {
        0 => "sessions=1,pages=100,buffer=32k,requests=100k",
        1 => {
            "sessions=4,pages=200,buffer=20k,page_bytes_max=900,page_bytes_min=1,delete=10,resend=20,requests=100k"
        }
        _ => {
            "sessions=3,pages=50,buffer=16k,page_bytes_max=3000,page_bytes_min=50,stage=4000,durable=flush,requests=100k"
        }
    };
    let options = PageStoreOptions::parse(text, &limits).expect("the options can be used");
    let generator = PageStore::new(options, limits, &Prng::new(seed));
    let cut = |generator: &mut PageStore, _: &LogModel| generator.power_cut();
    trial(seed, LogModel::new(limits), &mut Driven { generator, cut }, canary)
}

#[test]
fn a_page_store_flushes_through_power_cuts() {
    check(log, ocssd_sim::log::canaries());
}

fn table(seed: u64, canary: Option<fn(&mut TableModel)>) -> Result<Tally, Box<Found>> {
    let limits = TableLimits {
        tables_max: 64,
        table_bytes_max: 1 << 16,
        attributes_bytes_max: 64,
        edits_max: 64,
        capacity_bytes: 1 << 30,
    };
    let benchmarks = match seed % 3 {
        0 => "fillseq,readrandom,readseq",
        1 => "fillrandom,overwrite,readwhilewriting --sync=1",
        _ => "fillsync,readrandom,fillrandom",
    };
    let flags = format!(
        "--benchmarks={benchmarks} --num=100000 --value_size=84 --write_buffer_size=800 --target_file_size_base=5000"
    );
    let options = DbBenchOptions::parse(&flags).expect("the flags can be used");
    let generator = DbBench::new(options, limits, &Prng::new(seed));
    let cut = |generator: &mut DbBench, model: &TableModel| generator.power_cut(model.names());
    trial(seed, TableModel::new(limits), &mut Driven { generator, cut }, canary)
}

#[test]
fn db_benchs_words_run_on_tables_through_power_cuts() {
    check(table, ocssd_sim::table::canaries());
}

fn kv(seed: u64, canary: Option<fn(&mut KvModel)>) -> Result<Tally, Box<Found>> {
    let limits = KvLimits {
        key_bytes_max: 16,
        value_bytes_max: 4_096,
        batch_entries_max: 16,
        capacity_bytes: 1 << 30,
        list_order: ListOrder::Bytewise,
        stages: StageLimits { stages_max: 1, bytes_max: 4_096 },
    };
    let workload = ["a", "b", "c", "d", "e", "f"][usize::try_from(seed % 6).expect("six")];
    let more = match seed % 6 {
        0 => "updateproportion=0.3,deleteproportion=0.1,batchproportion=0.1,batchsize=4,flush=40",
        4 => "maxscanlength=10",
        5 => "readproportion=0.1,readmodifywriteproportion=0.4,batchproportion=0.5,batchsize=3",
        _ => "durable=reply",
    };
    let text = format!("workload={workload},recordcount=100,operationcount=1m,fieldcount=3,{more}");
    let options = YcsbOptions::parse(&text).expect("the options can be used");
    let generator = Ycsb::new(options, &Prng::new(seed));
    let cut = |generator: &mut Ycsb, _: &KvModel| generator.power_cut();
    trial(seed, KvModel::new(limits), &mut Driven { generator, cut }, canary)
}

#[test]
fn ycsbs_workloads_run_on_keys_through_power_cuts() {
    check(kv, ocssd_sim::kv::canaries());
}
