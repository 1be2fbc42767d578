//! What a parallel unit does next: in arrival order, or reads first with a reset or a program suspended for them.

use super::part::{PartId, PartKind, Phase};
use super::sense::{Held, Span, nth_of};
use super::unit::Suspended;
use super::{Event, Media};
use crate::config::{Scheduler, Suspension};
use ocssd_base::Nanos;
use ocssd_lightnvm::PuId;

/// The choice for one unit.
enum Choice {
    Read(PartId),
    Change(PartId),
    Resume,
    Nothing,
}

impl Media {
    /// Starts whatever the unit can start at `at`. Called after every change of the unit.
    pub(super) fn start_next(&mut self, at: Nanos, pu: PuId) {
        // Most units have nothing waiting most of the time.
        while self.units[pu.index()].can_begin() {
            let choice = self.choose(pu);
            let started = match choice {
                Choice::Read(id) => self.start_read(at, pu, id),
                Choice::Change(id) => self.start_change(at, pu, id),
                Choice::Resume => self.resume(at, pu),
                Choice::Nothing => false,
            };
            if !started {
                return;
            }
        }
    }

    fn choose(&self, pu: PuId) -> Choice {
        let unit = &self.units[pu.index()];
        let (read, change) = (unit.reads.head(), unit.changes.head());
        match self.scheduler {
            Scheduler::Fifo => match (read, change) {
                (Some(read), Some(change)) if self.sequence(read) > self.sequence(change) => {
                    Choice::Change(change)
                }
                (Some(read), _) => Choice::Read(read),
                (None, Some(change)) => Choice::Change(change),
                (None, None) => Choice::Nothing,
            },
            Scheduler::ReadPriority { .. } => match (read, change) {
                // What is suspended waits like any other: without this, reads that never end would starve it. And what
                // holds the only register goes before any read, which could not take it, but behind what is suspended.
                (Some(_), change) if unit.suspended.is_some() && self.is_turn_of_changes(pu, change) => {
                    Choice::Resume
                }
                (Some(_), Some(change)) if self.is_turn_of_changes(pu, Some(change)) => {
                    Choice::Change(change)
                }
                (Some(read), _) => Choice::Read(read),
                (None, _) if unit.suspended.is_some() => Choice::Resume,
                (None, Some(change)) => Choice::Change(change),
                (None, None) => Choice::Nothing,
            },
        }
    }

    /// True if reads passed the waiting change, or what is suspended, often enough, or cannot go first because a loaded
    /// program holds the last register.
    fn is_turn_of_changes(&self, pu: PuId, change: Option<PartId>) -> bool {
        let Scheduler::ReadPriority { bypasses_max, .. } = self.scheduler else { return false };
        let unit = &self.units[pu.index()];
        let holds_register = change.is_some_and(|change| self.parts.get(change).phase == Phase::Loaded);
        let read = unit.reads.head().map_or(0, |read| self.registers_of(read));
        let is_full = unit.registers_used + read.max(1) > self.config.registers;
        unit.bypasses >= bypasses_max || holds_register && is_full
    }

    /// Registers a part takes while it is in the unit.
    fn registers_of(&self, id: PartId) -> u32 {
        self.sensing.registers(self.parts.get(id).span)
    }

    fn sequence(&self, id: PartId) -> u64 {
        self.parts.get(id).sequence
    }

    fn start_read(&mut self, at: Nanos, pu: PuId, id: PartId) -> bool {
        let registers = self.registers_of(id);
        let unit = &mut self.units[pu.index()];
        if unit.array.is_some() || unit.registers_used + registers > self.config.registers {
            return false;
        }
        let popped = unit.reads.pop(&self.parts);
        assert_eq!(popped, Some(id), "the unit starts the read at its queue's head");
        unit.bypasses += u32::from(unit.changes.head().is_some() || unit.suspended.is_some());
        self.begin_read(at, pu, id);
        true
    }

    /// Senses what the read wants, or takes it from the registers that still hold it. The array and registers are free.
    #[inline]
    pub(super) fn begin_read(&mut self, at: Nanos, pu: PuId, id: PartId) {
        let part = self.parts.get(id);
        if let Some(waits) = &mut self.waits {
            // Here and not with the array: what is in a register needs none.
            waits.on_array_granted(at, pu, id, part.command);
        }
        let unit = &mut self.units[pu.index()];
        unit.registers_used += self.sensing.registers(part.span);
        unit.exclusive = part.span == Span::Page;
        assert!(unit.registers_used <= self.config.registers, "a read takes a register that is not there");
        let is_held = part.delay == Nanos::ZERO && self.sensing.is_held(unit.held, part);
        if is_held && at >= unit.ready_at {
            self.counters.register_hits += 1;
            let group = unit.group;
            self.request_channel(at, group, id);
            return;
        }
        let time = if is_held {
            // The unit is still busy suspending an operation: nothing leaves it before that is done.
            self.counters.register_hits += 1;
            Nanos::ZERO
        } else {
            self.counters.senses += 1;
            unit.held = Some(Held::of(part));
            self.sensing.time(part) + part.delay
        };
        self.run_array(at, pu, id, time);
    }

    fn start_change(&mut self, at: Nanos, pu: PuId, id: PartId) -> bool {
        let part = *self.parts.get(id);
        let registers = self.config.registers;
        let unit = &mut self.units[pu.index()];
        match (part.kind, part.phase) {
            (PartKind::Program, Phase::Queued) => {
                if unit.loading || unit.registers_used >= registers {
                    return false;
                }
                unit.loading = true;
                assert!(unit.registers_used < registers, "a program takes a register that is not there");
                unit.registers_used += 1;
                unit.held = None;
                let group = unit.group;
                self.request_channel(at, group, id);
                false
            }
            (PartKind::Program, Phase::Loaded) | (PartKind::Erase, Phase::Queued) => {
                if unit.array.is_some() {
                    return false;
                }
                let popped = unit.changes.pop(&self.parts);
                assert_eq!(popped, Some(id), "the unit starts the change at its queue's head");
                unit.bypasses = 0;
                unit.suspends = 0;
                let time = if part.kind == PartKind::Erase {
                    self.counters.erases += 1;
                    self.config.erase
                } else {
                    self.counters.programs += 1;
                    self.program_time(part.first)
                };
                self.run_array(at, pu, id, time + part.delay);
                true
            }
            _ => false,
        }
    }

    fn program_time(&self, first: u32) -> Nanos {
        let times = &self.config.program;
        nth_of(times, self.by_unit.div_rem_u32(first).0)
    }

    #[inline(always)]
    fn run_array(&mut self, at: Nanos, pu: PuId, id: PartId, time: Nanos) {
        let part = self.parts.get_mut(id);
        part.phase = Phase::Array;
        if let Some(waits) = &mut self.waits {
            waits.on_array_granted(at, pu, id, part.command);
        }
        let unit = &mut self.units[pu.index()];
        assert!(unit.array.is_none(), "an array does one operation at a time");
        assert!(
            time <= Nanos::from_secs(180),
            "an array operation takes {time}, longer than any setting allows"
        );
        let start = at.max(unit.ready_at);
        unit.array = Some(id);
        unit.array_since = at;
        unit.array_until = start + time;
        unit.generation = unit.generation.wrapping_add(1);
        self.events.push(unit.array_until, Event::array(pu, unit.generation));
    }

    /// What suspending such an operation costs; none if the scheduler suspends nothing, or reads never.
    pub(super) const fn suspension(&self, kind: PartKind) -> Option<Suspension> {
        match (self.scheduler, kind) {
            (Scheduler::ReadPriority { erase, .. }, PartKind::Erase) => Some(erase),
            (Scheduler::ReadPriority { program, .. }, PartKind::Program) => Some(program),
            (Scheduler::Fifo, _) | (_, PartKind::Read) => None,
        }
    }

    /// A read came: an erase or a program in the array makes way, unless it has done so often enough. The data of a program
    /// stays in the array's latches meanwhile (chosen; parts differ), so that its register is free for the read.
    pub(super) fn suspend_for_read(&mut self, at: Nanos, pu: PuId) {
        let Scheduler::ReadPriority { bypasses_max, .. } = self.scheduler else { return };
        let unit = &self.units[pu.index()];
        let Some(id) = unit.array else { return };
        let kind = self.parts.get(id).kind;
        let Some(Suspension { suspend, suspends_max, .. }) = self.suspension(kind) else { return };
        let is_program = kind == PartKind::Program;
        let read = unit.reads.head().map_or(0, |read| self.registers_of(read));
        let taken = unit.registers_used - u32::from(is_program);
        let worthwhile = unit.array_until > at + suspend && taken + read <= self.config.registers;
        if !worthwhile || unit.suspends >= suspends_max || unit.bypasses >= bypasses_max {
            return;
        }
        let unit = &mut self.units[pu.index()];
        assert!(unit.suspended.is_none(), "one operation is suspended at a time");
        let remaining = unit.array_until - at;
        assert!(remaining > suspend, "{remaining} are left: ending takes less time than suspending");
        unit.suspended = Some(Suspended { id, remaining });
        unit.suspends += 1;
        unit.registers_used = taken;
        unit.busy += at - unit.array_since;
        if let Some(waits) = &mut self.waits {
            waits.on_array(pu, kind, at - unit.array_since);
        }
        unit.array = None;
        unit.generation = unit.generation.wrapping_add(1);
        unit.ready_at = at + suspend;
        self.counters.suspends += u64::from(!is_program);
        self.counters.program_suspends += u64::from(is_program);
    }

    /// What is suspended goes on; a program as soon as a register is free again.
    fn resume(&mut self, at: Nanos, pu: PuId) -> bool {
        let unit = &self.units[pu.index()];
        let Some(Suspended { id, remaining }) = unit.suspended else { return false };
        let kind = self.parts.get(id).kind;
        let Some(Suspension { resume, .. }) = self.suspension(kind) else { return false };
        let is_program = kind == PartKind::Program;
        if unit.array.is_some() || is_program && unit.registers_used >= self.config.registers {
            return false;
        }
        let unit = &mut self.units[pu.index()];
        unit.suspended = None;
        unit.bypasses = 0;
        if is_program {
            unit.registers_used += 1;
            unit.held = None;
        }
        self.run_array(at, pu, id, remaining + resume);
        true
    }
}
