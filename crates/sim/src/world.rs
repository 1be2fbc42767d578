//! A drive, targets on it, and contracts that all keep, under virtual time; the power can go between any two events.
//!
//! Its turns are the engine's, under the eyes of an observer that stops them where the power goes. Deliberately not here: what
//! happens when (`run`), and what is right (`contract`).

mod asking;
mod auditing;
mod events;
mod instance;
mod losing;
mod mounting;

use crate::contract::{Broken, Contract, Room};
use crate::journal::{Event, Journal};
use crate::seen::{Seen, good_chunks};
use crate::tally::Tally;
use crate::watched::Watched;
use crate::wear::Wear;
use events::Events;
use instance::{Asked, Instance};
use ocssd_base::{Nanos, Prng};
use ocssd_engine::{Clock, Host, VirtualClock};
use ocssd_flash::Flash;
use ocssd_lightnvm::wrap::Check;
use ocssd_lightnvm::{BlockingDevice, Buffers, Device, PuId, Target};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Makes a target of what lies on a device.
pub trait Mount<T: ?Sized> {
    /// Mounts.
    ///
    /// # Errors
    /// A sentence: options that do not fit the device, or that the power went.
    fn mount(&self, device: &mut dyn BlockingDevice) -> Result<Box<T>, String>;
}

/// What became of a mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mounted {
    /// There is a target.
    Up,
    /// The power went first.
    PowerCut,
    /// The target cannot be on this drive.
    Refused(String),
}

/// Why the world stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// What it waited for is so.
    Done,
    /// The power should go now.
    Cut,
    /// Nothing will happen any more unless something is asked.
    Idle,
}

/// The count of sectors whose content the media changed or lost.
pub const SECTORS_HARMED: &str = "faults.sectors_harmed";

/// The rule of a run that was stopped from outside: nothing was broken.
pub const STOPPED: &str = "stopped";

/// The rule of a run that ended where a kind's limits let it: what it declares not to promise came to pass, and nothing is left to
/// be judged.
pub const LIMIT: &str = "beyond the limits of the kind";

/// Latency spikes of commands in flight when a request is sent, behind which it may wait (chosen: more than were seen).
const SPIKES_BEFORE: u64 = 100;

/// Turns of one step before the target is said never to settle (chosen: the longest step seen, the emptying of a whole large
/// drive with reads of all of it, takes a tenth).
const TURNS_OF_STEP_MAX: u64 = 4_000_000;

/// Turns between two looks at whether the world should stop (chosen: a millisecond's worth).
const TURNS_PER_LOOK: u64 = 1024;

/// Turns at one point of time before the target is said to go round in circles (chosen: none needs a thousandth).
const TURNS_MAX: u32 = 200_000;

/// The world.
pub struct World<C: Contract> {
    /// The drive, its answers checked, the targets, and the loop.
    host: Host<Check<Watched>, VirtualClock, C::Target>,
    /// The targets, each with what it promises: one, or more on units of their own.
    instances: Vec<Instance<C>>,
    /// Events so far: commands the device took, completions it gave.
    pub events: u64,
    /// What happened.
    pub journal: Journal,
    /// What was exercised.
    pub tally: Tally,
    /// Whether the first target spreads wear, where that is looked at.
    pub wear: Option<Wear>,
    cut_at: Option<u64>,
    /// Commands the drive failed as such that the contract was told of.
    failed: u64,
    turns_now: u32,
    /// Turns since the step began.
    turns_of_step: u64,
    /// Says that nobody waits for this world any more.
    is_over: Arc<AtomicBool>,
    /// No request may take longer, but for what latency spikes add.
    bound: Nanos,
    /// When a command was sent that meets a latency spike.
    spikes: Vec<Nanos>,
    /// How long one is, which the drive forgets when its faults end.
    spike: Nanos,
}

impl<C: Contract> World<C> {
    /// A world without a target yet, which will be on `units`. `bound` is the longest any request may take, were the media
    /// never slow: each latency spike meanwhile is granted on top.
    #[must_use]
    pub fn new(flash: Flash, units: Vec<PuId>, contract: C, bound: Nanos, journal: Journal) -> Self {
        Self::on(Watched::of::<C>(flash), vec![Instance::new(contract, units)], bound, journal)
    }

    /// Another target will be there, on other units.
    ///
    /// # Panics
    /// If it shares a unit with one that is there.
    #[must_use]
    pub fn and(mut self, units: Vec<PuId>, contract: C) -> Self {
        let is_free = |unit: &PuId| self.instances.iter().all(|other| !other.units.contains(unit));
        assert!(units.iter().all(is_free), "two targets share a unit");
        self.instances.push(Instance::new(contract, units));
        self
    }

    fn on(device: Watched, instances: Vec<Instance<C>>, bound: Nanos, journal: Journal) -> Self {
        let spike = device.config().faults.spike;
        Self {
            host: {
                let buffers = Buffers::new(device.payload_format());
                Host::new(Check::new(device), VirtualClock::default(), buffers)
            },
            instances,
            events: 0,
            journal,
            tally: Tally::default(),
            wear: None,
            cut_at: None,
            failed: 0,
            turns_now: 0,
            turns_of_step: 0,
            is_over: Arc::default(),
            bound,
            spikes: Vec::new(),
            spike,
        }
    }

    /// The same drive and promises, nothing mounted: what happens to it does not happen here. `None` if the drive's
    /// content is not in memory.
    #[must_use]
    pub fn branch(&self, journal: Journal) -> Option<Self>
    where
        C: Clone,
    {
        let device = self.device().inner().fork()?;
        let instances = self.instances.iter().map(Instance::unmounted).collect();
        let mut branch = Self::on(device, instances, self.bound, journal);
        branch.host.clock_mut().wait_until(self.now());
        branch.events = self.events;
        branch.spikes.clone_from(&self.spikes);
        branch.spike = self.spike;
        branch.is_over = Arc::clone(&self.is_over);
        Some(branch)
    }

    /// The world ends with [`STOPPED`] soon after this is set, wherever it is.
    #[must_use]
    pub fn ends_with(mut self, is_over: Arc<AtomicBool>) -> Self {
        self.is_over = is_over;
        self
    }

    /// A step begins: it has a bound of its own.
    pub const fn begin_step(&mut self) {
        self.turns_of_step = 0;
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.host.clock().now()
    }

    /// The drive, its answers checked.
    #[must_use]
    pub fn device(&self) -> &Check<Watched> {
        self.host.device()
    }

    /// The drive, to change between turns.
    pub fn device_mut(&mut self) -> &mut Check<Watched> {
        self.host.device_mut()
    }

    /// True if chunks went bad since the first mount.
    #[must_use]
    pub fn has_lost_chunks(&self) -> bool {
        self.instances.iter().any(|instance| {
            let good = good_chunks(self.device().inner(), &instance.units);
            instance.chunks_at_first.is_some_and(|first| good < first)
        })
    }

    /// True if a target has no good chunk left: all its units died.
    #[must_use]
    pub fn has_dead_target(&self) -> bool {
        self.instances.iter().any(|instance| good_chunks(self.device().inner(), &instance.units) == 0)
    }

    /// How many targets there are.
    #[must_use]
    pub const fn targets(&self) -> usize {
        self.instances.len()
    }

    /// What the targets promise.
    pub fn contracts(&self) -> impl Iterator<Item = &C> {
        self.instances.iter().map(|instance| &instance.contract)
    }

    /// Requests of all targets without an answer.
    #[must_use]
    pub fn outstanding(&self) -> u32 {
        self.contracts().map(Contract::outstanding).sum()
    }

    fn is_mounted(&self) -> bool {
        self.instances.iter().all(|instance| instance.target.is_some())
    }

    /// The targets are gone, and what was asked of them.
    fn drop_targets(&mut self) {
        self.host.drop_targets();
        for instance in &mut self.instances {
            instance.requests.clear();
            instance.target = None;
        }
        self.cut_at = None;
    }

    /// Every contract hears that the power went.
    fn tell_power_cut(&mut self) {
        let Self { host, instances, .. } = self;
        for Instance { contract, units, .. } in instances {
            contract.power_cut(&mut Seen { device: host.device_mut().inner_mut(), units });
        }
    }

    /// The power goes now. `prng` says which pages of torn units survive.
    pub fn power_cut(&mut self, prng: &mut Prng) {
        self.power_off(prng);
        self.wear.iter_mut().for_each(Wear::power_cut);
    }

    /// As [`Self::power_cut`], of a target that was shut down: nothing is excused by it.
    ///
    /// # Panics
    /// Never: memory does not fail.
    pub fn power_off(&mut self, prng: &mut Prng) {
        let now = self.now();
        self.journal.note(now, || Event::PowerCut);
        self.count_target();
        let report = self.device_mut().inner_mut().power_cut(now, prng).expect("memory does not fail");
        self.device_mut().power_cut();
        self.tally.add("power_cut.commands_in_flight", u64::from(report.commands));
        self.tally.add("power_cut.sectors_lost", report.sectors_lost);
        self.tally.add("power_cut.units_torn", u64::from(report.units_torn));
        self.tally.add("power_cut.resets_undone", u64::from(report.resets_undone));
        self.tally.add("power_cut.resets_half_done", u64::from(report.resets_half_done));
        self.tally.add("power_cut.pairs_lost", u64::from(report.pairs_lost));
        self.tell_harm();
        self.drop_targets();
        self.tell_power_cut();
    }

    /// A unit of the drive dies.
    pub fn kill_unit(&mut self, pu: PuId) {
        let mut buffers = self.host.take_buffers();
        self.device_mut().inner_mut().kill_unit(pu, &mut buffers);
        self.host.return_buffers(buffers);
        self.tell_harm();
    }

    /// The process of the drive is gone, and the target with it. A drive in memory stands in until another is there.
    ///
    /// # Panics
    /// Never: the drive was made with these settings.
    pub fn leave_drive(&mut self) {
        let now = self.now();
        self.journal.note(now, || Event::PowerCut);
        self.count_target();
        let config = self.device().inner().config().clone();
        let standing_in = Flash::format(config).expect("the settings made a drive before");
        *self.device_mut() = Check::new(Watched::of::<C>(standing_in));
        self.drop_targets();
    }

    /// The drive as its next process finds it.
    pub fn enter_drive(&mut self, flash: Flash) {
        assert!(!self.is_mounted(), "a target is mounted on a drive that is gone");
        *self.device_mut() = Check::new(Watched::of::<C>(flash));
        self.spikes.clear();
        self.wear.iter_mut().for_each(Wear::power_cut);
        self.tell_power_cut();
    }

    /// Tells the contract of whoever it is on what was harmed.
    pub fn tell_harm(&mut self) {
        let now = self.now();
        for harmed in self.device_mut().inner_mut().take_news() {
            let Self { host, instances, journal, .. } = self;
            let geometry = host.device().geometry();
            let Some(instance) =
                instances.iter_mut().find(|instance| instance.has(harmed.at.chunk, geometry))
            else {
                continue;
            };
            let Instance { contract, units, .. } = instance;
            journal.note(now, || {
                let held = contract.content_in_words(&harmed.content);
                Event::Harmed { at: harmed.at, what: format!("{}; it held {held}", harmed.harm) }
            });
            contract.harmed(&harmed, &mut Seen { device: host.device_mut().inner_mut(), units });
            self.tally.add(SECTORS_HARMED, 1);
        }
    }

    /// Adds what the targets counted to the tally.
    pub fn count_target(&mut self) {
        let Self { host, instances, tally, journal, .. } = self;
        for Instance { contract, target, .. } in instances {
            let counts = target.map(|id| {
                journal.counters(host.clock().now(), || host.target(id).counters());
                contract.target_counts(host.target(id))
            });
            counts.into_iter().flatten().for_each(|(name, count)| tally.add(name, count));
        }
    }

    /// The targets' states in words; empty if there is none.
    #[must_use]
    pub fn summary(&self) -> String {
        let words = self.instances.iter().filter_map(|Instance { contract, target, .. }| {
            target.map(|id| contract.target_summary(self.host.target(id)))
        });
        words.collect::<Vec<_>>().join("\n")
    }

    /// The power should go after so many more events.
    pub const fn cut_after(&mut self, events: u64) {
        self.cut_at = Some(self.events + events);
    }

    /// The power stays.
    pub const fn keep_power(&mut self) {
        self.cut_at = None;
    }

    /// True if the power should go now.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.cut_at.is_some_and(|at| self.events >= at)
    }

    /// Draws a request and gives it to a target. False if no more of that may be outstanding.
    pub fn draw(&mut self, draw: u64) -> bool {
        let now = self.now();
        // Which is drawn apart from the rest: any odd factor mixes the bits.
        let whose = draw.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let index = usize::try_from(whose).expect("32 bits fit an index") % self.instances.len();
        let Instance { contract, target, .. } = &mut self.instances[index];
        let id = target.expect("a target is mounted");
        let mut buffers = self.host.take_buffers();
        let drawn = contract.draw(draw, now, &mut buffers, self.host.target_mut(id));
        self.host.return_buffers(buffers);
        let Some(request) = drawn else { return false };
        self.submit(index, request);
        true
    }

    /// Asks the targets to end in good order.
    pub fn shut_down(&mut self) {
        for index in 0..self.instances.len() {
            let now = self.now();
            let request = self.instances[index].contract.shutdown(now, self.host.buffers());
            self.submit(index, request);
        }
    }

    fn submit(&mut self, index: usize, request: <C::Target as Target>::Request) {
        let now = self.now();
        self.journal.note(now, || {
            let (number, what) = C::request_in_words(&request);
            Event::Request { number, what: of_instance(index, what) }
        });
        let instance = &mut self.instances[index];
        assert!(instance.target.is_some(), "a target is mounted");
        instance.requests.push(request);
    }

    /// One turn at the present time. True if anything happened.
    ///
    /// # Errors
    /// If an answer is not what was promised.
    pub fn turn(&mut self) -> Result<bool, Broken> {
        assert!(self.is_mounted(), "all targets are mounted");
        let before = self.events;
        let Self { host, instances, events, cut_at, journal, .. } = self;
        let cut_at = cut_at.unwrap_or(u64::MAX);
        host.step_observed(&mut Asked(instances), &mut Events { count: events, cut_at, journal });
        self.tell_harm();
        self.tell_failures();
        let any = self.replies()? || self.events > before;
        self.judge_progress(any)?;
        Ok(any)
    }

    /// Tells the contracts which commands the drive failed as such: any may have been of any of them.
    fn tell_failures(&mut self) {
        let failed = self.device().inner().commands_failed();
        if failed == self.failed {
            return;
        }
        for (op, status) in self.device_mut().inner_mut().take_failed_commands() {
            self.instances.iter_mut().for_each(|instance| instance.contract.command_failed(op, status));
        }
        self.failed = failed;
    }

    /// Holds the targets' replies against their contracts; true if there were any.
    fn replies(&mut self) -> Result<bool, Broken> {
        let mut any = false;
        for index in 0..self.instances.len() {
            any |= self.replies_of(index)?;
        }
        Ok(any)
    }

    fn replies_of(&mut self, index: usize) -> Result<bool, Broken> {
        let now = self.now();
        let Self { host, instances, journal, tally, .. } = self;
        let Instance { target, requests, contract, units, chunks_at_first, .. } = &mut instances[index];
        let waited = requests.take_refused();
        if waited > 0 {
            tally.add("requests.waited_for_room", waited);
        }
        let replies = requests.take_replies();
        if replies.is_empty() {
            return Ok(false);
        }
        let mut buffers = host.take_buffers();
        for reply in replies {
            journal.note(now, || {
                let (number, what) = C::reply_in_words(&reply);
                Event::Reply { number, what: of_instance(index, what) }
            });
            let room = || {
                let drive = host.device().inner();
                let needed = target.and_then(|id| C::chunks_needed(host.target(id)));
                Room {
                    good_chunks: good_chunks(drive, units),
                    chunk_sectors: drive.geometry().sectors_per_chunk,
                    chunks_needed: needed.or(*chunks_at_first).unwrap_or(0),
                    drive_failed: drive.store_error().is_some() || drive.gave_up(),
                }
            };
            let name = contract.replied(&reply, &mut buffers, &room)?;
            tally.add(name, 1);
        }
        host.return_buffers(buffers);
        Ok(true)
    }

    fn judge_progress(&mut self, any: bool) -> Result<(), Broken> {
        self.turns_of_step += 1;
        if self.turns_of_step.is_multiple_of(TURNS_PER_LOOK) && self.is_over.load(Ordering::Relaxed) {
            return Err(Broken::new(STOPPED, "the run goes on", "it was stopped"));
        }
        if self.turns_of_step > TURNS_OF_STEP_MAX {
            return Err(Broken::new(
                "work ends",
                "a target settles: what one step asks for comes to an end",
                format!("{TURNS_OF_STEP_MAX} turns in one step"),
            ));
        }
        self.turns_now = if any { self.turns_now + 1 } else { 0 };
        if self.turns_now > TURNS_MAX {
            return Err(Broken::new(
                "work ends",
                "work comes to an end",
                format!("{TURNS_MAX} turns at one point of time"),
            ));
        }
        let (now, spikes) = (self.now(), self.device().inner().latency_spikes());
        self.spikes.resize(usize::try_from(spikes).expect("as many as fit memory"), now);
        let Some(sent) = self.contracts().filter_map(Contract::oldest).min() else { return Ok(()) };
        let waited = now.saturating_since(sent);
        if waited <= self.bound {
            return Ok(());
        }
        // As if one spike came after the other: many requests share units, and each may wait for all others.
        let since = self.spikes.len() - self.spikes.partition_point(|&at| at < sent);
        let spikes = SPIKES_BEFORE + u64::try_from(since).expect("64 bits hold a count");
        let granted = self.bound + self.spike * spikes;
        if waited > granted {
            let promised = format!(
                "every request is answered within {granted}, of which {spikes} latency spikes take {} each",
                self.spike
            );
            return Err(Broken::new("answered in time", promised, format!("one waits since {waited}")));
        }
        Ok(())
    }

    /// When something happens next.
    #[must_use]
    pub fn next(&self) -> Option<Nanos> {
        self.host.next_deadline()
    }

    /// Goes on until `done`, of the requests that are outstanding, the power should go, or nothing happens any more.
    ///
    /// # Errors
    /// If an answer is not what was promised, or none comes.
    pub fn go(&mut self, done: impl Fn(u32) -> bool) -> Result<Stop, Broken> {
        loop {
            if done(self.outstanding()) {
                return Ok(Stop::Done);
            }
            while !self.is_cut() && self.turn()? {}
            if self.is_cut() {
                return Ok(Stop::Cut);
            }
            if done(self.outstanding()) {
                return Ok(Stop::Done);
            }
            let Some(next) = self.next() else { return Ok(Stop::Idle) };
            self.host.clock_mut().wait_until(next);
        }
    }

    /// Goes on until everything outstanding was answered; `Stop::Cut` if the power should go first.
    ///
    /// # Errors
    /// If an answer is not what was promised, or none comes.
    pub fn drain(&mut self) -> Result<Stop, Broken> {
        match self.go(|outstanding| outstanding == 0)? {
            Stop::Idle => {
                let waits = self.outstanding();
                Err(Broken::new(
                    "answered",
                    "every request is answered",
                    format!("{waits} never will be: nothing is due"),
                ))
            }
            stop => Ok(stop),
        }
    }

    /// Goes on for so long.
    ///
    /// # Errors
    /// If an answer is not what was promised.
    pub fn idle(&mut self, time: Nanos) -> Result<Stop, Broken> {
        let until = self.now() + time;
        loop {
            while !self.is_cut() && self.turn()? {}
            if self.is_cut() {
                return Ok(Stop::Cut);
            }
            let next = self.next().unwrap_or(until).min(until);
            self.host.clock_mut().wait_until(next);
            if next >= until {
                return Ok(Stop::Done);
            }
        }
    }

    /// Lets a part of the time to the next event pass, in millionths.
    pub fn part_of_gap(&mut self, millionths: u32) {
        let Some(next) = self.next() else { return };
        let now = self.now();
        let gap = next.saturating_since(now).0;
        let part = u128::from(gap) * u128::from(millionths.min(999_999)) / 1_000_000;
        self.host.clock_mut().wait_until(now + Nanos(u64::try_from(part).expect("less than the gap")));
    }
}

/// Words about a request of the first target, or of one beside it.
fn of_instance(index: usize, what: String) -> String {
    if index == 0 { what } else { format!("{what} (of target {})", index + 1) }
}
