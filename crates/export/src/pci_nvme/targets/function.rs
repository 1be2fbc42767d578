//! The function of targets: a port, the commands taken from it, and the controller they belong to.

use super::super::config_space::PciId;
use super::super::counters::Counters;
use super::super::function::PciFunction;
use super::super::memory::{GuestMemory, Segment};
use super::super::port::{NoSuchPlace, OACS_DOORBELL_BUFFER, Port, Shutdown, Written};
use super::super::queue_admin::OWN;
use super::super::registers::Shape;
use super::super::sgl::SGLS;
use crate::dispatcher::Dispatcher;
use crate::job::Done;
use crate::nvme_subsystem::{Arrival, Association, Bound, Commands, NOBODY, Name, Purpose, TransportTraits};
use ocssd_base::Nanos;
use ocssd_nvme::identify::FabricsLimits;

/// Commands at once (chosen: half of the dispatcher's jobs; more wait in their queues).
const COMMANDS_MAX: u32 = 1024;

/// What controllers say of PCI.
const TRAITS: TransportTraits = TransportTraits {
    model: "ocssd NVMe target",
    version: Shape::ALL_2_0.version,
    sgls: SGLS,
    oacs: OACS_DOORBELL_BUFFER,
    commands_max: 0,
    fabrics: FabricsLimits { ioccsz: 0, iorcsz: 0, icdoff: 0, fcatt: 0, msdbd: 0 },
    // A guest that goes is heard by its socket.
    keeps_alive: false,
    admin: &OWN,
};

/// What is kept with a command: where it came from, and where its data lies.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) qid: u16,
    pub(super) segments: Vec<Segment>,
}

/// An NVMe controller on PCI whose namespaces are targets.
#[derive(Debug)]
pub struct TargetFunction<M> {
    pub(super) port: Port<M>,
    pub(super) commands: Commands<Kept>,
    /// What its jobs are called: the transport, and which of the controllers it had.
    connection: u32,
    generation: u32,
    /// The controller, from when it was enabled first until power is off.
    pub(super) bound: Option<Bound>,
    /// Jobs of controllers that were reset. Nothing is taken before they have ended: what comes next must not be overtaken.
    left_behind: u32,
    /// Lists for segments.
    pub(super) spare: Vec<Vec<Segment>>,
}

impl<M: GuestMemory> TargetFunction<M> {
    /// A function, powered on, whose jobs are told to `connection`.
    #[must_use]
    pub fn new(memory: M, connection: u32) -> Self {
        Self {
            port: Port::new(memory, PciId::Targets, Shape::ALL_2_0),
            commands: Commands::new((connection, 0), 0, COMMANDS_MAX),
            connection,
            generation: 0,
            bound: None,
            left_behind: 0,
            spare: Vec::new(),
        }
    }

    /// What was counted.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.port.counters
    }

    /// Takes commands, goes on with what waits, tells news. True if there was anything to do: then there may be more.
    pub fn take(&mut self, dispatcher: &mut Dispatcher) -> bool {
        if self.left_behind > 0 {
            return false;
        }
        self.commands.issue(dispatcher);
        self.settle(dispatcher);
        let mut any = self.fetch(dispatcher);
        any |= self.tell_events(dispatcher);
        self.go_on_shutting_down(dispatcher);
        any
    }

    /// Posts completions; the vectors to signal are [`Self::take_interrupt`]'s.
    pub fn post(&mut self) {
        self.port.post();
    }

    /// The next vector to signal to the guest.
    pub fn take_interrupt(&mut self) -> Option<u16> {
        self.port.take_interrupt()
    }

    /// The guest rings for what comes next. False if something has come already: then there is another turn to take before
    /// sleeping.
    pub fn arm(&mut self) -> bool {
        self.left_behind > 0 || self.port.arm()
    }

    /// A job of it has ended, perhaps of a controller that was reset.
    pub fn on_done(&mut self, done: Done, dispatcher: &mut Dispatcher) {
        if done.job.owner.generation == self.generation {
            self.commands.on_done(done, dispatcher);
            return self.settle(dispatcher);
        }
        if done.job.owner.request != NOBODY.0 {
            assert!(self.left_behind > 0, "a job ended that no controller left behind");
            self.left_behind -= 1;
        }
        done.into_pieces().for_each(|piece| dispatcher.pool.give_back(piece));
    }

    /// Some commands wait for memory or a place for a job, which others may hold.
    #[must_use]
    pub fn waits_for_room(&self) -> bool {
        self.commands.waits_for_room()
    }

    /// Nothing is taken any more; what was taken ends.
    pub const fn stop(&mut self) {
        self.commands.stopping = true;
    }

    /// No command is open, and no job of one that was.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.commands.is_empty() && !self.commands.is_shutting_down() && self.left_behind == 0
    }

    /// What its jobs are called.
    pub(super) const fn name(&self) -> Name {
        (self.connection, self.generation)
    }

    fn go_on_shutting_down(&mut self, dispatcher: &mut Dispatcher) {
        if self.port.shutdown == Shutdown::Waits && self.port.in_flight() == 0 {
            self.port.shutdown = Shutdown::Flushes;
            self.commands.shut_down(dispatcher);
            self.settle(dispatcher);
        }
    }

    /// The state of its controller, if it has one.
    pub(super) fn association<'a>(&self, dispatcher: &'a mut Dispatcher) -> Option<&'a mut Association> {
        let subsystem = dispatcher.subsystem.as_mut().expect("a function of targets has a subsystem");
        subsystem.association_mut(self.bound?.cntlid)
    }

    /// CC.EN was set: there is a controller, new or as the reset left it.
    fn on_enabled(&mut self, dispatcher: &mut Dispatcher) {
        let subsystem = dispatcher.subsystem.as_mut().expect("a function of targets has a subsystem");
        if self.bound.is_none() {
            let admin = self.name();
            let arrival = Arrival { admin, local: None, transport: TRAITS, now: dispatcher.now };
            let purpose = Purpose::Io;
            self.bound = subsystem.attach(purpose, &arrival).map(|cntlid| Bound { cntlid, purpose });
            dispatcher.stats.associations += u64::from(self.bound.is_some());
        }
        let Some(bound) = self.bound else {
            // There are as many controllers as there can be.
            return self.port.fail();
        };
        self.commands.bind(bound.cntlid);
        self.association(dispatcher).expect("it lasts until power is off").status.ready = true;
    }

    /// CC.EN was cleared: commands in progress end unheard, and what the guest had begun to collect is given up.
    fn on_disabled(&mut self, dispatcher: &mut Dispatcher) {
        self.commands.leave_stages(dispatcher);
        self.left_behind += self.commands.jobs();
        self.commands.give_up(dispatcher);
        self.generation = self.generation.wrapping_add(1);
        let stopping = self.commands.stopping;
        let cntlid = self.bound.map_or(0, |bound| bound.cntlid);
        self.commands = Commands::new(self.name(), cntlid, COMMANDS_MAX);
        self.commands.stopping = stopping;
        let admin = self.name();
        if let Some(association) = self.association(dispatcher) {
            association.reset();
            association.admin = admin;
            association.queues.clear();
            dispatcher.subsystem.as_mut().expect("it has the association").end_claims(cntlid);
        }
    }

    /// Power was off: the controller is gone.
    fn on_reset(&mut self, dispatcher: &mut Dispatcher) {
        self.on_disabled(dispatcher);
        if let Some(bound) = self.bound.take() {
            let subsystem = dispatcher.subsystem.as_mut().expect("a function of targets has a subsystem");
            subsystem.leave(bound.cntlid, self.name());
        }
    }
}

/// A function of targets with the dispatcher beside it: what a guest does to the controller may concern jobs.
#[derive(Debug)]
pub struct Attended<'a, M> {
    /// The function.
    pub function: &'a mut TargetFunction<M>,
    /// Where its jobs are.
    pub dispatcher: &'a mut Dispatcher,
}

impl<M: GuestMemory> PciFunction for Attended<'_, M> {
    type Memory = M;

    fn read(&self, region: u32, offset: u64, into: &mut [u8]) -> Result<(), NoSuchPlace> {
        self.function.port.read(region, offset, into)
    }

    fn write(&mut self, _now: Nanos, region: u32, offset: u64, from: &[u8]) -> Result<(), NoSuchPlace> {
        match self.function.port.write(region, offset, from)? {
            Written::Plain => {}
            Written::Enabled => self.function.on_enabled(self.dispatcher),
            Written::Disabled => self.function.on_disabled(self.dispatcher),
            Written::Reset => self.function.on_reset(self.dispatcher),
        }
        Ok(())
    }

    fn reset(&mut self, _now: Nanos) {
        self.function.port.reset();
        self.function.on_reset(self.dispatcher);
    }

    fn mask(&mut self, vector: u32, masked: bool) {
        self.function.port.interrupts.mask(vector, masked);
    }

    fn memory_mut(&mut self) -> &mut M {
        &mut self.function.port.memory
    }
}
