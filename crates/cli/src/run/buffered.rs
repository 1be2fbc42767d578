//! Writes that memory took: a write buffer, or the drive's cache, answered them before media had them.
//!
//! Their rate is that of memory then, however the media are. It is judged for each job, by what was written to its target and what
//! media began to program while it ran. Deliberately not here: jobs that took no time at all; they have no rate, and fail.

use super::execute::Finished;
use super::limit::Party;
use crate::table::bytes;
use ocssd_base::Nanos;
use ocssd_flash::FlashCounters;
use ocssd_lightnvm::Geometry;
use ocssd_lightnvm::wrap::UnitCounts;
use ocssd_workload::run::{Runner, Stage};

/// Of what was written, so many parts, of which media must have had one (chosen: below, the rate is more than twice theirs).
const PARTS: u64 = 2;

/// What happened while a job ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meanwhile {
    /// Bytes written to its target, by whomever.
    pub written: u64,
    /// Bytes that went to media for them, at most.
    pub programmed: u64,
}

/// What the drive has done until a job began.
#[derive(Clone, Copy, Debug, Default)]
struct Before {
    programs: u64,
    /// Sectors the job's target sent to the drive to be written.
    sent: u64,
    /// Sectors all targets did.
    sent_by_all: u64,
}

/// Looks at jobs when they begin and end.
pub struct Looks {
    stages: Vec<Stage>,
    before: Vec<Before>,
    found: Vec<Meanwhile>,
}

impl Looks {
    /// At so many jobs, none of which has begun.
    pub fn new(jobs: usize) -> Self {
        Self {
            stages: vec![Stage::Waiting; jobs],
            before: vec![Before::default(); jobs],
            found: vec![Meanwhile::default(); jobs],
        }
    }

    /// Looks at those that began or ended since the last look.
    pub fn look(&mut self, runner: &Runner, parties: &[Party], drive: Drive<'_>) {
        for party in parties {
            for &job in &party.jobs {
                let now = runner.stage(job);
                let then = std::mem::replace(&mut self.stages[job], now);
                if now == then {
                    continue;
                }
                let so_far = drive.done_for(party);
                match now {
                    Stage::Waiting => unreachable!("job {job} began twice"),
                    Stage::Running => self.before[job] = so_far,
                    Stage::Done if then == Stage::Waiting => {}
                    Stage::Done => {
                        self.found[job] = Meanwhile {
                            written: runner.written_meanwhile(job),
                            programmed: drive.bytes_between(self.before[job], so_far),
                        };
                    }
                }
            }
        }
    }

    /// What was found of each job.
    pub fn found(self) -> Vec<Meanwhile> {
        self.found
    }
}

/// The drive at a look.
#[derive(Clone, Copy)]
pub struct Drive<'a> {
    /// What it has done so far.
    pub counters: &'a FlashCounters,
    /// What each unit was asked so far.
    pub units: &'a [UnitCounts],
    /// Its shape.
    pub geometry: &'a Geometry,
}

impl Drive<'_> {
    fn done_for(self, party: &Party) -> Before {
        Before {
            programs: self.counters.media.programs,
            sent: party.units.iter().map(|unit| self.units[unit.index()].write.sectors).sum(),
            sent_by_all: self.units.iter().map(|unit| unit.write.sectors).sum(),
        }
    }

    /// At most so much went to media: a unit may be programmed with less than is optimal, and targets write of their own. Programs
    /// are counted for all targets together; each has as large a part of them as of what was sent.
    fn bytes_between(self, from: Before, to: Before) -> u64 {
        let unit_bytes = u64::from(self.geometry.ws_opt) * u64::from(self.geometry.sector_bytes);
        let all = u128::from((to.programs - from.programs).saturating_mul(unit_bytes));
        let (sent, sent_by_all) = (to.sent - from.sent, to.sent_by_all - from.sent_by_all);
        let part = (all * u128::from(sent)).checked_div(u128::from(sent_by_all)).unwrap_or(all);
        u64::try_from(part).expect("a part of 64 bits")
    }
}

/// A caution for each name of jobs while which media had less than half of what was written.
pub fn cautions(finished: &Finished) -> Vec<String> {
    // A target without units keeps nothing.
    let with_media = finished.parties.iter().filter(|party| !party.units.is_empty());
    let mut jobs: Vec<usize> = with_media.flat_map(|party| party.jobs.iter().copied()).collect();
    jobs.sort_unstable();
    jobs.retain(|&job| is_buffered(finished, job));
    let name = |job: usize| finished.jobs[job].name.as_str();
    let alike = jobs.chunk_by(|&one, &next| name(one) == name(next));
    alike.map(|jobs| sentence(name(jobs[0]), jobs.len(), finished.meanwhile[jobs[0]])).collect()
}

fn is_buffered(finished: &Finished, job: usize) -> bool {
    let (result, Meanwhile { written, programmed }) = (&finished.jobs[job], finished.meanwhile[job]);
    let has_rate = result.run_time > Nanos::ZERO && result.write.io_bytes > 0;
    has_rate && PARTS.saturating_mul(programmed) < written
}

fn sentence(name: &str, alike: usize, Meanwhile { written, programmed }: Meanwhile) -> String {
    let more = match alike {
        1 => String::new(),
        more => format!(" (the first of {more} alike)"),
    };
    format!(
        "when job \"{name}\"{more} ended, media had {} of the {} that were written to its target meanwhile: the rate of its writes \
         is that of memory (a write buffer, or the drive's cache) and says nothing about media; write more, or flush at the end \
         (end_fsync=1)",
        bytes(programmed),
        bytes(written)
    )
}
