//! Every power cut of a short workload: the world is cloned after each device event, cut there, mounted, and audited; and
//! cut again after every command of that mount.
//!
//! The workload is a seed's tiny world without its own cuts. A clone is the drive and what was promised; the target is
//! dropped, as a power cut drops it. Deliberately not here: faults, and other times between two events than a few.

use crate::campaign::ATTEMPTS;
use crate::contract::{Broken, Contract};
use crate::contract_of::{WithContract, with_contract_of};
use crate::failure::{Cause, Failure};
use crate::journal::{Journal, Keep};
use crate::mounts::{KindMount, Mounts};
use crate::panics;
use crate::plan::{Step, WorldPlan};
use crate::power::MountCut;
use crate::swarm::{self, Asked, Size};
use crate::tally::Tally;
use crate::world::{Mount, Mounted, Stop, World};
use ocssd_base::{Nanos, Prng};
use ocssd_flash::Flash;
use ocssd_targets::registry::Kind;

/// What an exploration found.
#[derive(Clone, Debug, Default)]
pub struct Explored {
    /// Device events of the workload; there is a power cut after each.
    pub events: u64,
    /// States that were mounted and audited: after a cut, and after every second cut during a mount.
    pub states: u64,
    /// Of these, after a second cut.
    pub states_cut_twice: u64,
    /// What was exercised.
    pub tally: Tally,
    /// The first state that was not as promised.
    pub failure: Option<Failure>,
    /// Which state that was, in words.
    pub failed_at: String,
    /// The drive and the options.
    pub plan: Option<WorldPlan>,
}

/// Explores `seed`'s world: every cut of its first `requests` requests. `None` if none of the drives drawn fits.
#[must_use]
pub fn explore(kind: &Kind, fixed: &[(String, String)], seed: u64, requests: usize) -> Option<Explored> {
    let asked = Asked::of(kind, Size::Tiny, fixed);
    (0..ATTEMPTS).find_map(|attempt| {
        let mut plan = swarm::draw_asked(seed, attempt, &asked);
        let asks = |step: &Step| matches!(step, Step::Request { .. } | Step::Quiesce | Step::Idle { .. });
        plan.steps.retain(asks);
        plan.steps.truncate(requests);
        let found = with_contract_of(kind, &plan, Exploration { plan: &plan, kind })?;
        Some(Explored { plan: Some(plan), ..found })
    })
}

/// An exploration that waits for its contract.
struct Exploration<'a> {
    plan: &'a WorldPlan,
    kind: &'a Kind,
}

impl WithContract for Exploration<'_> {
    type Out = Option<Explored>;

    fn with<C: Contract + Clone>(self, contract: C, beside: Vec<C>) -> Option<Explored>
    where
        for<'a> KindMount<'a>: Mount<C::Target>,
    {
        let Self { plan, kind } = self;
        let flash =
            Flash::format(plan.config.clone()).unwrap_or_else(|problems| panic!("a drawn drive: {problems}"));
        let journal = Journal::new(Keep::Nothing);
        let mut world = World::new(flash, plan.units.clone(), contract, plan.bound, journal);
        for (beside, contract) in plan.beside.iter().zip(beside) {
            world = world.and(beside.units.clone(), contract);
        }
        let mounts = Mounts::of(plan, kind);
        let mut explorer = Explorer { world, mounts, found: Explored::default(), step: 0, at: String::new() };
        let cause = match panics::caught(|| explorer.run(&plan.steps)) {
            Ok(Ok(true)) => None,
            Ok(Ok(false)) => return None,
            Ok(Err(cause)) => Some(cause),
            Err(caught) => Some(Cause::Panic { message: caught.message, place: caught.place }),
        };
        let Explorer { mut found, step, at, .. } = explorer;
        found.failure = cause.map(|cause| Failure { step, cause, state: String::new() });
        found.failed_at = at;
        Some(found)
    }
}

struct Explorer<'a, C: Contract> {
    world: World<C>,
    mounts: Mounts<'a>,
    found: Explored,
    step: usize,
    /// The state being looked at.
    at: String,
}

impl<C: Contract + Clone> Explorer<'_, C>
where
    for<'a> KindMount<'a>: Mount<C::Target>,
{
    /// False if the target does not fit the drive.
    fn run(&mut self, steps: &[Step]) -> Result<bool, Cause> {
        if let Mounted::Refused(_) = self.world.mount(&self.mounts.all(), None)? {
            return Ok(false);
        }
        self.look()?;
        for (index, step) in steps.iter().enumerate() {
            self.step = index;
            self.world.begin_step();
            self.step(step)?;
        }
        while self.next_event()? {}
        self.world.audit()?;
        self.found.tally.merge(&self.world.tally);
        Ok(true)
    }

    fn step(&mut self, step: &Step) -> Result<(), Cause> {
        match step {
            Step::Request { draw, turn } => {
                while !self.world.draw(*draw) {
                    self.next_event()?;
                }
                if *turn {
                    self.next_event()?;
                }
            }
            Step::Quiesce => while self.next_event()? {},
            Step::Idle { time } => {
                self.world.idle(*time)?;
            }
            _ => unreachable!("only requests and time are left of the plan"),
        }
        Ok(())
    }

    /// Goes on to the next device event and looks at what a power cut would leave there. False if nothing is due.
    fn next_event(&mut self) -> Result<bool, Cause> {
        self.world.cut_after(1);
        let stop = self.world.go(|_| false)?;
        self.world.keep_power();
        if stop != Stop::Cut {
            return Ok(false);
        }
        self.found.events += 1;
        self.look()?;
        Ok(true)
    }

    /// Cuts the power of a clone, mounts and audits it; then again with a second cut after every command of the mount.
    fn look(&mut self) -> Result<(), Cause> {
        let mut prng = Prng::new(self.world.events);
        let mut cut = self.clone_of(&self.world)?;
        cut.part_of_gap(u32::try_from(prng.below(1_000_000)).expect("below a million"));
        cut.power_cut(&mut prng);
        self.at = format!("power cut after event {}", self.world.events);
        let mut once = self.clone_of(&cut)?;
        self.recover(&mut once)?;
        for commands in 0.. {
            self.at = format!(
                "power cut after event {}, again {commands} commands into the mount",
                self.world.events
            );
            let mut twice = self.clone_of(&cut)?;
            let later = Nanos(prng.below(2_000_000));
            match twice.mount(&self.mounts.all(), Some(MountCut { commands, later }))? {
                Mounted::Up => break,
                Mounted::Refused(sentence) => return Err(Cause::NotMounted(sentence)),
                Mounted::PowerCut => {}
            }
            twice.power_cut(&mut prng);
            self.recover(&mut twice)?;
            self.found.states_cut_twice += 1;
        }
        Ok(())
    }

    fn clone_of(&self, world: &World<C>) -> Result<World<C>, Cause> {
        let none =
            || Broken::new("can be cloned", "a simulated drive is in memory", "one that cannot be cloned");
        Ok(world.branch(Journal::new(Keep::Nothing)).ok_or_else(none)?)
    }

    fn recover(&mut self, world: &mut World<C>) -> Result<(), Cause> {
        if let Mounted::Refused(sentence) = world.mount(&self.mounts.all(), None)? {
            return Err(Cause::NotMounted(sentence));
        }
        world.audit()?;
        world.count_target();
        self.found.states += 1;
        self.found.tally.merge(&world.tally);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cut_of_a_short_workload_is_survived() {
        let kind = ocssd_targets::registry::find("pblk").expect("a kind");
        let found = explore(kind, &[], 5, 12).expect("one of the drives fits");
        assert!(found.failure.is_none(), "seed 5: {:?} at {}", found.failure, found.failed_at);
        assert!(found.events > 10 && found.states > found.events, "{found:?}");
        assert!(found.states_cut_twice > found.events, "mounts were cut too: {found:?}");
    }
}
