//! Which interface a tool speaks, and how its options become requests.
//!
//! Deliberately not here: what the options mean (`workload::generator`).

use anyhow::{Context, anyhow};
use ocssd_base::Prng;
use ocssd_lightnvm::Target;
use ocssd_lightnvm::interface::key_value::KvTarget;
use ocssd_lightnvm::interface::log_structured::LogTarget;
use ocssd_lightnvm::interface::table::TableTarget;
use ocssd_lightnvm::interface::zoned::ZonedTarget;
use ocssd_targets::registry::{Kind, Make, MakeOf};
use ocssd_workload::generator::Generator;
use ocssd_workload::generator::db_bench::{DbBench, DbBenchOptions};
use ocssd_workload::generator::mooncake::synthetic::synthetic;
use ocssd_workload::generator::mooncake::trace::Trace;
use ocssd_workload::generator::mooncake::{Mooncake, MooncakeOptions};
use ocssd_workload::generator::page_store::{PageStore, PageStoreOptions};
use ocssd_workload::generator::ycsb::{Ycsb, YcsbOptions};
use ocssd_workload::generator::zoned::{Zoned, ZonedOptions};

/// Which interface a tool speaks.
pub trait Speaks {
    /// The targets it can ask.
    type Target: Target + ?Sized;
    /// The kind of target if none is named.
    const KIND: &'static str;
    /// Its content is bytes of any length.
    const HAS_BYTES: bool;

    /// How a kind of its interface is made.
    ///
    /// # Errors
    /// A sentence, if the kind has another interface.
    fn make(kind: &Kind) -> Result<Make<Self::Target>, String>;
}

/// A tool whose requests a generator makes.
pub trait Tool: Speaks {
    /// Who makes its requests.
    type Generator: Generator<Request = <Self::Target as Target>::Request, Reply = <Self::Target as Target>::Reply>;

    /// The generator of these options.
    ///
    /// # Errors
    /// Options that cannot be used.
    fn generator(options: &[String], target: &Self::Target, prng: &Prng) -> anyhow::Result<Self::Generator>;
}

/// The sentence about a kind of another interface.
fn other(kind: &Kind, tool: &str, needed: &str) -> String {
    format!(
        "the target \"{}\" speaks of {}, but {tool} asks for {needed}; `ocssd targets` lists the kinds of each interface",
        kind.name,
        kind.make_of().interface()
    )
}

/// How a kind of tables is made.
fn of_tables(kind: &Kind, tool: &str) -> Result<Make<dyn TableTarget>, String> {
    match kind.make_of() {
        MakeOf::Table(make) => Ok(make),
        _ => Err(other(kind, tool, "tables")),
    }
}

/// How a kind of keys and values is made.
fn of_keys(kind: &Kind, tool: &str) -> Result<Make<dyn KvTarget>, String> {
    match kind.make_of() {
        MakeOf::KeyValue(make) => Ok(make),
        _ => Err(other(kind, tool, "keys and values")),
    }
}

/// YCSB.
pub struct YcsbTool;

impl Speaks for YcsbTool {
    type Target = dyn KvTarget;
    const KIND: &'static str = "kv";
    const HAS_BYTES: bool = true;

    fn make(kind: &Kind) -> Result<Make<dyn KvTarget>, String> {
        of_keys(kind, "ycsb")
    }
}

impl Tool for YcsbTool {
    type Generator = Ycsb;

    fn generator(options: &[String], _: &dyn KvTarget, prng: &Prng) -> anyhow::Result<Ycsb> {
        Ok(Ycsb::new(YcsbOptions::parse(&options.join(","))?, prng))
    }
}

/// Mooncake's store of KV caches.
pub struct MooncakeTool;

impl Speaks for MooncakeTool {
    type Target = dyn KvTarget;
    const KIND: &'static str = "kv";
    const HAS_BYTES: bool = true;

    fn make(kind: &Kind) -> Result<Make<dyn KvTarget>, String> {
        of_keys(kind, "mooncake")
    }
}

impl Tool for MooncakeTool {
    type Generator = Mooncake;

    fn generator(options: &[String], target: &dyn KvTarget, prng: &Prng) -> anyhow::Result<Mooncake> {
        let options = MooncakeOptions::parse(&options.join(","), &target.limits())?;
        let trace = match &options.trace {
            Some(path) => read_trace(path)?,
            None => synthetic(options.drawn(), prng),
        };
        Ok(Mooncake::new(options, trace))
    }
}

/// Reads the file of a trace.
pub fn read_trace(path: &str) -> anyhow::Result<Trace> {
    let text = std::fs::read_to_string(path).with_context(|| format!("the trace {path} cannot be read"))?;
    Trace::parse(&text).map_err(|sentence| anyhow!("{path}: {sentence}"))
}

/// `db_bench`.
pub struct DbBenchTool;

impl Speaks for DbBenchTool {
    type Target = dyn TableTarget;
    const KIND: &'static str = "lightlsm";
    const HAS_BYTES: bool = true;

    fn make(kind: &Kind) -> Result<Make<dyn TableTarget>, String> {
        of_tables(kind, "db_bench")
    }
}

impl Tool for DbBenchTool {
    type Generator = DbBench;

    fn generator(options: &[String], target: &dyn TableTarget, prng: &Prng) -> anyhow::Result<DbBench> {
        Ok(DbBench::new(DbBenchOptions::parse(&options.join(" "))?, target.limits(), prng))
    }
}

/// An LSM tree in virtual time; it is a source by itself.
pub struct LsmTool;

impl Speaks for LsmTool {
    type Target = dyn TableTarget;
    const KIND: &'static str = "lightlsm";
    const HAS_BYTES: bool = true;

    fn make(kind: &Kind) -> Result<Make<dyn TableTarget>, String> {
        of_tables(kind, "lsm")
    }
}

/// A page store.
pub struct PageStoreTool;

impl Speaks for PageStoreTool {
    type Target = dyn LogTarget;
    const KIND: &'static str = "eleos";
    const HAS_BYTES: bool = true;

    fn make(kind: &Kind) -> Result<Make<dyn LogTarget>, String> {
        match kind.make_of() {
            MakeOf::Log(make) => Ok(make),
            _ => Err(other(kind, "page-store", "log-structured pages")),
        }
    }
}

impl Tool for PageStoreTool {
    type Generator = PageStore;

    fn generator(options: &[String], target: &dyn LogTarget, prng: &Prng) -> anyhow::Result<PageStore> {
        let limits = target.limits();
        Ok(PageStore::new(PageStoreOptions::parse(&options.join(","), &limits)?, limits, prng))
    }
}

/// fio's `zonemode=zbd`.
pub struct ZbdTool;

impl Speaks for ZbdTool {
    type Target = dyn ZonedTarget;
    const KIND: &'static str = "zns";
    const HAS_BYTES: bool = false;

    fn make(kind: &Kind) -> Result<Make<dyn ZonedTarget>, String> {
        match kind.make_of() {
            MakeOf::Zoned(make) => Ok(make),
            _ => Err(other(kind, "zbd", "zones")),
        }
    }
}

impl Tool for ZbdTool {
    type Generator = Zoned;

    fn generator(options: &[String], target: &dyn ZonedTarget, prng: &Prng) -> anyhow::Result<Zoned> {
        let zones = target.zone_geometry();
        Ok(Zoned::new(ZonedOptions::parse(&options.join(","), &zones)?, zones, prng))
    }
}
