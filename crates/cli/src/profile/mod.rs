//! `ocssd profile`: what a drive really does, in one command.
//!
//! `subject` opens what is named, `wait` shows progress and hears Ctrl-C, `against` finds what it is compared with, `show`
//! prints and keeps. Deliberately not here: measuring (`measure::profile`).

mod against;
mod show;
mod subject;
mod wait;
mod writers;

use crate::Outcome;
use crate::args::ProfileArgs;
use ocssd_base::Nanos;
use ocssd_measure::profile::{DeviceUnderTest, Effort, Effortful, Profile, Session, judge};
use ocssd_workload::host_cpu::HostCpuConfig;
use ocssd_workload::results::Row;
use wait::Waiting;

/// Virtual time is a tenth of what a real drive gets: it has no noise that time would average out (chosen).
const VIRTUAL_SHARE: u64 = 10;

/// How thorough the command line asks for.
fn effort(args: &ProfileArgs) -> Effort {
    match (args.quick, args.full) {
        (true, _) => Effort::Quick,
        (_, true) => Effort::Full,
        _ => Effort::Normal,
    }
}

fn asked(args: &ProfileArgs, is_virtual: bool) -> Effortful {
    let effort = effort(args);
    let given = args.time.map(|time| Nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)));
    let time = given.or_else(|| is_virtual.then(|| Nanos(effort.time().0 / VIRTUAL_SHARE)));
    Effortful {
        effort,
        time,
        repetitions: args.repetitions.map(std::num::NonZero::get),
        contract: args.contract_grade,
    }
}

/// Measures a device.
fn measure(
    args: &ProfileArgs,
    device: &mut dyn DeviceUnderTest,
    waiting: &mut Waiting,
    is_virtual: bool,
) -> Profile {
    waiting.begin(is_virtual);
    let mut profile =
        Session::new(device, waiting, asked(args, is_virtual), args.seed).only(&args.cell).carry_out();
    waiting.finish();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    profile.started_unix_secs = now.ok().map(|now| now.as_secs()).filter(|_| !is_virtual);
    profile
}

/// The processors of a virtual drive's host, as asked for. A `block_ssd` has its FTL in itself.
fn host(args: &ProfileArgs) -> anyhow::Result<Option<HostCpuConfig>> {
    let host = HostCpuConfig::parse_text(&args.host_cpu);
    let host = host.map_err(|problems| anyhow::anyhow!("--host-cpu {}: {problems}", args.host_cpu))?;
    let is_black_box = args.ftl.starts_with("block_ssd");
    Ok(host.map(|host| if is_black_box { host.without_ftl() } else { host }))
}

/// Carries out the verb.
pub fn profile(args: &ProfileArgs, as_json: bool) -> anyhow::Result<Outcome> {
    // What can be wrong with the other side is found before an hour is spent.
    let against = against::find(&args.compare)?;
    if let Some(path) = &args.saved {
        let ours = against::kept(path)?;
        let compared: anyhow::Result<Vec<_>> =
            against.iter().map(|other| against::compare_kept(&ours, other)).collect();
        show::comparisons(&compared?, as_json);
        return Ok(Outcome::Good);
    }
    show::prepare(args)?;
    let mut waiting = Waiting::new(args.quiet || as_json, args.live)?;
    let mut profile = match &args.emulated {
        Some(drive) => {
            let mut device = subject::virtual_drive(drive, &args.ftl, args.size, host(args)?)?;
            let mut profile = measure(args, device.as_mut(), &mut waiting, true);
            profile.description.push(Row::new("host_cpu", args.host_cpu.clone()));
            profile
        }
        None => {
            let mut device = subject::real(args, effort(args))?;
            measure(args, &mut device, &mut waiting, false)
        }
    };
    if let Some(drive) = args.emulated.as_ref().filter(|_| profile.ended_early.is_none()) {
        let time = asked(args, true).time.unwrap_or_default();
        writers::measure(args, drive, time, &mut profile, &mut waiting);
        waiting.finish();
        if waiting.is_interrupted() {
            profile.is_interrupted = true;
            profile.ended_early = Some("it was interrupted after its cells; they stand".to_owned());
        }
    }
    let mut comparisons = Vec::new();
    let is_kept = |other: &&against::Against| !matches!(other, against::Against::Emulated(_));
    for other in against.iter().filter(|other| !profile.is_interrupted || is_kept(other)) {
        comparisons.push(against::compare(args, &profile, other, &mut waiting)?);
    }
    let judged = judge(&profile, &show::rerun(args), &args.facts.settings(None));
    show::show(args, &profile, &judged, &comparisons, as_json)
}
