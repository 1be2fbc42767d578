//! Workloads beside the jobs, each on a target of its own: how they are made, and what they came to.
//!
//! Deliberately not here: whose turn it is to ask (`workload::beside`), and how one looks (`workload::present`).

use super::assemble::{Mount, Processors, behind};
use crate::args::{AskArgs, BesideArg, ToolArg};
use crate::lease::lease;
use crate::workload::DEPTH;
use crate::workload::execute::Asked;
use crate::workload::lsm;
use crate::workload::present;
use crate::workload::tool::{
    DbBenchTool, LsmTool, MooncakeTool, PageStoreTool, Speaks, Tool, YcsbTool, ZbdTool,
};
use anyhow::{Context, ensure};
use ocssd_base::{Nanos, Prng};
use ocssd_lightnvm::counter::Counter;
use ocssd_lightnvm::interface::{AnyTarget, OfInterface};
use ocssd_lightnvm::wrap::UnitCounts;
use ocssd_lightnvm::{Geometry, PuId, TargetId};
use ocssd_targets::named_target::NamedTarget;
use ocssd_workload::beside::{Asker, Askers, Database, OnTarget, Report};
use ocssd_workload::generator::closed_loop::ClosedLoop;
use ocssd_workload::host_cpu::Hosted;
use ocssd_workload::lsm::{Lsm, Phase};
use ocssd_workload::results::BesideResult;
use ocssd_workload::results::fold::fold;
use serde_json::{Value, json};
use std::num::NonZeroUsize;

/// What to do about units that are another's: of the image, or of jobs or another workload.
const ADVICE: [&str; 2] = [
    "ask it with --target NAME, choose other units with --place, or end the lease with `ocssd target remove`",
    "what asks beside the jobs needs units of its own: give it a --place, and the jobs a place=, that have none in common",
];

/// What is known of a workload beside the jobs before it asks.
pub struct Beside {
    /// As it was given.
    pub text: String,
    /// Its target in words.
    pub described: String,
    /// The target.
    pub target: TargetId,
    /// The target's kind.
    pub kind: String,
    units: Vec<PuId>,
    /// The lease of the image that the target is.
    lease: Option<String>,
    /// Bytes that loading stored.
    loaded_bytes: u64,
}

/// Those beside the jobs, with who asks for them.
pub struct AllBeside {
    /// What is known of each.
    pub facts: Vec<Beside>,
    /// Who asks, in the same order.
    pub askers: Askers,
}

/// One of them, with the target for the host.
pub struct MadeBeside {
    /// What is known of it.
    pub facts: Beside,
    /// Its target.
    pub target: AnyTarget,
    asker: Box<dyn Asker>,
}

/// True if one of them needs a drive that keeps bytes.
pub fn has_bytes(all: &[BesideArg]) -> bool {
    let one = |beside: &BesideArg| match beside.ask.tool {
        ToolArg::Ycsb => YcsbTool::HAS_BYTES,
        ToolArg::Mooncake => MooncakeTool::HAS_BYTES,
        ToolArg::DbBench => DbBenchTool::HAS_BYTES,
        ToolArg::PageStore => PageStoreTool::HAS_BYTES,
        ToolArg::Zbd => ZbdTool::HAS_BYTES,
        ToolArg::Lsm => LsmTool::HAS_BYTES,
    };
    all.iter().any(one)
}

/// What all of them have in common.
pub struct Common {
    /// Targets of jobs that the host has before theirs.
    pub before: usize,
    /// Their randomness.
    pub prng: Prng,
    /// The processors of the host; each target has as many for those who ask it.
    pub host: Option<Processors>,
    /// The clock is virtual.
    pub is_virtual: bool,
}

/// Makes their targets.
pub fn make(
    all: &[BesideArg],
    common: &Common,
    mount: &mut Mount,
    notes: &mut Vec<String>,
) -> anyhow::Result<Vec<MadeBeside>> {
    let mut made: Vec<MadeBeside> = Vec::new();
    for (number, BesideArg { text, ask }) in all.iter().enumerate() {
        let target = u32::try_from(common.before + number).context("more targets than a host can have")?;
        let prng = &common.prng.split(&format!("beside{number}"));
        let (host, is_virtual) = (common.host.as_ref(), common.is_virtual);
        let place = Place { text, target: TargetId(target), prng, host, is_virtual };
        let one = match ask.tool {
            ToolArg::Ycsb => make_one::<YcsbTool>(ask, place, mount, notes),
            ToolArg::Mooncake => make_one::<MooncakeTool>(ask, place, mount, notes),
            ToolArg::DbBench => make_one::<DbBenchTool>(ask, place, mount, notes),
            ToolArg::PageStore => make_one::<PageStoreTool>(ask, place, mount, notes),
            ToolArg::Zbd => make_one::<ZbdTool>(ask, place, mount, notes),
            ToolArg::Lsm => make_database(ask, place, mount, notes),
        };
        let one = one.with_context(|| format!("--beside \"{text}\""))?;
        let lease = one.facts.lease.as_ref();
        let is_taken = lease.is_some() && made.iter().any(|other| other.facts.lease.as_ref() == lease);
        ensure!(
            !is_taken,
            "--beside \"{text}\": another asks the same target of the image; give each its own"
        );
        made.push(one);
    }
    Ok(made)
}

/// Which of those beside the jobs is made.
#[derive(Clone, Copy)]
struct Place<'a> {
    text: &'a str,
    target: TargetId,
    prng: &'a Prng,
    host: Option<&'a Processors>,
    is_virtual: bool,
}

fn make_one<T: Tool>(
    ask: &AskArgs,
    place: Place<'_>,
    mount: &mut Mount,
    notes: &mut Vec<String>,
) -> anyhow::Result<MadeBeside>
where
    T::Generator: 'static,
    T::Target: OfInterface<Reply: Copy> + Hosted + 'static,
    AnyTarget: From<Box<T::Target>>,
{
    make_with::<T>(ask, place, mount, notes, |target| {
        let generator = T::generator(&ask.options, target, place.prng)?;
        let source = ClosedLoop::new(generator, ask.iodepth.map_or(DEPTH, NonZeroUsize::get));
        Ok(Box::new(OnTarget::<T::Generator, T::Target>::new(source, place.target)))
    })
}

/// A tree has processors of its own.
fn make_database(
    ask: &AskArgs,
    place: Place<'_>,
    mount: &mut Mount,
    notes: &mut Vec<String>,
) -> anyhow::Result<MadeBeside> {
    let options = lsm::options_of(ask, place.is_virtual)?;
    make_with::<LsmTool>(ask, Place { host: None, ..place }, mount, notes, |target| {
        let lsm = Lsm::new(options, target.limits(), place.prng);
        Ok(Box::new(Database::new(lsm, place.target)))
    })
}

/// Makes the target that a tool asks, and who asks it.
fn make_with<S: Speaks>(
    ask: &AskArgs,
    place: Place<'_>,
    mount: &mut Mount,
    notes: &mut Vec<String>,
    asker: impl FnOnce(&S::Target) -> anyhow::Result<Box<dyn Asker>>,
) -> anyhow::Result<MadeBeside>
where
    S::Target: Hosted + 'static,
    AnyTarget: From<Box<S::Target>>,
{
    let name = ask.target.as_deref().unwrap_or(S::KIND);
    let Mount { geometry, media_manager, .. } = &*mount;
    let sector_bytes = geometry.sector_bytes;
    let named = NamedTarget::named(name, &ask.place, geometry, media_manager, crate::kinds::find)?;
    let kind = crate::kinds::find(&named.kind).map_err(anyhow::Error::msg)?;
    let make = S::make(kind).map_err(anyhow::Error::msg)?;
    lease(&named, &mut mount.media_manager, &format!("beside{}", place.target.0), &mount.kept, ADVICE)?;
    let made = mount.call(|caller| {
        make(caller, &named.spec()).map_err(|sentence| format!("target {}: {sentence}", kind.name))
    })?;
    notes.extend(made.notes);
    let asker = asker(&made.target)?;
    let target = behind(made.target, sector_bytes, place.host, kind.runs_on_host());
    let target = target.map_err(anyhow::Error::msg)?;
    let host = place.host.map_or_else(String::new, |(host, _)| format!(", host_cpu {host}"));
    let facts = Beside {
        text: place.text.to_owned(),
        described: format!("{}{host}", named.describe()),
        target: place.target,
        kind: named.kind,
        units: named.units,
        lease: named.lease,
        loaded_bytes: 0,
    };
    Ok(MadeBeside { facts, target: target.into(), asker })
}

impl AllBeside {
    /// Of those that were made; their targets go to the host.
    pub fn of(made: Vec<MadeBeside>) -> (Self, Vec<AnyTarget>) {
        let (mut facts, mut targets, mut askers) = (Vec::new(), Vec::new(), Vec::new());
        for one in made {
            facts.push(one.facts);
            targets.push(one.target);
            askers.push(one.asker);
        }
        (Self { facts, askers: Askers::new(askers) }, targets)
    }

    /// What was loaded is loaded; a sentence if something was not.
    pub fn note_loaded(&mut self) -> Result<(), String> {
        for (facts, asker) in self.facts.iter_mut().zip(self.askers.iter()) {
            if let Some(failure) = asker.failure() {
                return Err(format!("{} could not load what it asks for: {failure}", facts.name()));
            }
            facts.loaded_bytes = asker.bytes_stored();
        }
        Ok(())
    }

    /// What each came to; `targets` has the counters of all targets of the host.
    pub fn results(
        &self,
        units: &[UnitCounts],
        geometry: &Geometry,
        targets: &[(String, Vec<Counter>)],
    ) -> Vec<BesideResult> {
        let sector = u64::from(geometry.sector_bytes);
        let one = |(facts, asker): (&Beside, &dyn Asker)| {
            let sum = |of: fn(&UnitCounts) -> u64| -> u64 {
                facts.units.iter().map(|unit| of(&units[unit.index()])).sum()
            };
            let media_written_bytes = sum(|counts| counts.write.sectors) * sector;
            let counters = &targets[facts.target.index()].1;
            let phases = match asker.report() {
                Report::Phases(phases) => phases.to_vec(),
                Report::Database(lsm) => {
                    return facts.result_of_database(&lsm::Shown { lsm, counters, media_written_bytes });
                }
            };
            facts.result(&Asked {
                phases,
                bytes_stored: asker.bytes_stored() - facts.loaded_bytes,
                media_written_bytes,
                media_read_bytes: sum(|counts| counts.read.sectors) * sector,
                resets: sum(|counts| counts.reset.sectors),
                counters: counters.clone(),
                failure: asker.failure().map(str::to_owned),
            })
        };
        self.facts.iter().zip(self.askers.iter()).map(one).collect()
    }

    /// Says which of them had no more to ask before the jobs were done.
    pub fn notes(&self, began: Nanos, ended: Nanos) -> impl Iterator<Item = String> {
        let early = move |(facts, asker): (&Beside, &dyn Asker)| {
            let last = asker.report().ended()?;
            let is_early = !asker.is_stopped() && asker.failure().is_none() && last < ended;
            is_early.then(|| {
                format!(
                    "{} had no more to ask after {} of the {} that the jobs took: give it more to do, or the jobs less",
                    facts.name(),
                    last.saturating_since(began),
                    ended.saturating_since(began)
                )
            })
        };
        self.facts.iter().zip(self.askers.iter()).filter_map(early)
    }
}

impl Beside {
    /// How sentences call it: the tool, and where it asks.
    pub fn name(&self) -> String {
        let tool = self.text.split_whitespace().next().unwrap_or_default();
        format!("{tool} beside the jobs ({})", self.described)
    }

    /// What it came to, for the result.
    pub fn result(&self, asked: &Asked) -> BesideResult {
        let against = present::against(asked);
        self.result_with(against, &present::text(asked), |verdict| present::to_json(asked, verdict))
    }

    /// The same of a database.
    fn result_of_database(&self, shown: &lsm::Shown<'_>) -> BesideResult {
        let operations: u64 = shown.lsm.phases().iter().map(Phase::operations).sum();
        let nothing =
            || "none of its operations ended while the jobs ran, so nothing was measured".to_owned();
        let against = shown.lsm.failure().map(str::to_owned).or_else(|| (operations == 0).then(nothing));
        self.result_with(against, &format!("{}\n", lsm::text(shown)), |verdict| lsm::to_json(shown, verdict))
    }

    fn result_with(
        &self,
        against: Option<String>,
        text: &str,
        to_json: impl FnOnce(&str) -> Value,
    ) -> BesideResult {
        let against = against.map(|why| format!("{}: {why}", self.name()));
        let verdict = against.as_ref().map_or("pass".to_owned(), |why| format!("fail: {why}"));
        let mut object = to_json(&verdict);
        object["workload"] = json!(self.text);
        object["target"] = json!(self.described);
        let head = fold(&format!("beside the jobs: {}, on {}", self.text, self.described));
        BesideResult { object, text: format!("{head}\n\n{text}"), against }
    }
}
