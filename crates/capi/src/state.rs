//! A drive with everything that is open on it: the one owner of all state, and the only place where time passes.
//!
//! The host has the controller as its device, so that targets and raw entries meet in one drive. A turn gives everybody
//! what is due; `advance` waits for the next thing that will be. Deliberately not here: locks, pointers, callbacks.

use crate::ask::Asked;
use crate::command::{Resolved, Units};
use crate::failure::Failure;
use crate::leased;
use crate::queues::{QueueId, Queues, Waiter};
use crate::reply::Reply;
use crate::requests::{Requests, Waited};
use crate::status::errno_of;
use ocssd_base::Nanos;
use ocssd_drive::{DriveSpec, Image, OpenDrive};
use ocssd_engine::{Clock, DriveClock, Host};
use ocssd_flash::Config;
use ocssd_flash::controller::{AdminOutcome, Controller, IoBuffers};
use ocssd_lightnvm::interface::AnyTarget;
use ocssd_lightnvm::media_manager::MediaManager;
use ocssd_lightnvm::{Buffers, Device};
use ocssd_nvme::{AdminOpcode, Cqe};
use std::ffi::c_int;

/// An open drive.
pub struct State {
    /// The drive and its targets.
    pub host: Host<Controller, DriveClock, AnyTarget>,
    /// The settings it was opened with.
    pub spec: DriveSpec,
    /// Who has which units.
    pub manager: MediaManager,
    /// The image, locked while it is here.
    pub image: Option<Image>,
    /// Queue pairs.
    pub queues: Queues,
    /// Requests to targets.
    pub requests: Requests,
    /// An entry that a call waits for is in the drive.
    waiting: bool,
    /// Its completion.
    waited: Option<Cqe>,
}

impl State {
    /// An opened drive under a clock.
    pub fn new(drive: OpenDrive, clock: DriveClock) -> Result<Self, Failure> {
        let OpenDrive { flash, media_manager, image, spec, uuid } = drive;
        let buffers = Buffers::new(flash.payload_format());
        let controller = Controller::new(flash).map_err(Failure::invalid)?.with_uuid(uuid);
        Ok(Self {
            host: Host::new(controller, clock, buffers),
            spec,
            manager: media_manager,
            image,
            queues: Queues::new(),
            requests: Requests::new(),
            waiting: false,
            waited: None,
        })
    }

    /// The drive's settings.
    pub fn config(&self) -> &Config {
        self.host.device().flash().config()
    }

    /// What decides how long metadata are.
    pub fn units(&self) -> Units {
        let config = self.config();
        Units { oob_bytes: config.geometry.oob_bytes, revision: config.revision }
    }

    /// The drive's time.
    pub fn now(&self) -> Nanos {
        self.host.clock().now()
    }

    /// Gives everybody what is due now.
    pub fn turn(&mut self) {
        if self.requests.target_count() > 0 {
            while self.host.step(&mut self.requests) {}
        }
        let now = self.now();
        while let Some((queue, completion)) = self.host.device_mut().poll(now) {
            let cqe = Cqe::decode(&completion);
            if QueueId(queue) == QueueId::WAITED_FOR {
                self.waited = Some(cqe);
            } else {
                self.queues.post(QueueId(queue), &cqe);
            }
        }
        while let Some(completion) = self.host.device_mut().poll_event() {
            self.queues.post_event(&Cqe::decode(&completion));
        }
    }

    /// Waits for the next thing that is due before `limit`, or for `limit`; false if that is never.
    pub fn advance(&mut self, limit: Nanos) -> bool {
        // An entry that is in the drive ends, so that working ahead ends too; and nobody submits meanwhile.
        let alone = self.requests.target_count() == 0 && (self.waiting || self.queues.in_drive() > 0);
        let next = if alone && self.host.clock().is_virtual() {
            self.host.device_mut().work_ahead(limit)
        } else {
            self.host.next_deadline()
        };
        let at = next.unwrap_or(limit).min(limit);
        if at == Nanos::MAX {
            return false;
        }
        self.host.clock_mut().wait_until(at);
        true
    }

    /// Lets time pass until something is so.
    ///
    /// # Panics
    /// If it never will be: a bug, since whatever was taken ends.
    pub fn until(&mut self, is_so: impl Fn(&mut Self) -> bool) {
        loop {
            self.turn();
            if is_so(self) {
                return;
            }
            assert!(self.advance(Nanos::MAX), "something that was taken never ends");
        }
    }

    /// Lets time pass until something waits to be told, `timeout` at most. Returns how much does.
    pub fn wait(&mut self, timeout: Nanos) -> usize {
        let limit = self.now().0.saturating_add(timeout.0).min(Nanos::MAX.0 - 1);
        loop {
            self.turn();
            let ended = self.queues.ended() + self.requests.ended();
            if ended > 0 || self.now().0 >= limit {
                return ended;
            }
            self.advance(Nanos(limit));
        }
    }

    /// Carries out an admin command.
    pub fn admin(&mut self, command: &Resolved, wants_event: Option<Waiter>) -> Result<Option<Cqe>, Failure> {
        let is_event = command.sqe.admin_opcode() == AdminOpcode::ASYNC_EVENT_REQUEST;
        let mut entry = command.entry;
        let place = match (is_event, wants_event) {
            (false, _) => None,
            (true, Some(waiter)) => Some(self.queues.take_event(waiter)?),
            (true, None) => {
                return Err(Failure::invalid(
                    "an asynchronous event request ends when there is news, which may be never; submit it to an admin queue",
                ));
            }
        };
        if let Some(place) = place {
            set_cid(&mut entry, place);
        }
        let now = self.now();
        // The controller takes a list of blocks as data.
        let mut list: Vec<u8> = command.lbas.iter().flat_map(|block| block.to_le_bytes()).collect();
        // SAFETY: the caller's memory, for the length of this call; nothing else of the call uses it.
        let data = if list.is_empty() { unsafe { command.data.as_mut() } } else { &mut list[..] };
        match (self.host.device_mut().admin(now, &entry, data), place) {
            (AdminOutcome::Done(completion), place) => {
                if let Some(place) = place {
                    self.queues.give_back_event(place);
                }
                Ok(Some(Cqe { cid: command.sqe.cid, ..Cqe::decode(&completion) }))
            }
            (AdminOutcome::Held, Some(_)) => {
                self.queues.event_is_held();
                Ok(None)
            }
            (AdminOutcome::Held, None) => unreachable!("only event requests are held"),
        }
    }

    /// Gives an I/O command to the drive, as `cid` of a queue. False if the drive has no room now.
    pub fn submit(&mut self, queue: QueueId, cid: u16, command: &Resolved) -> Result<bool, Failure> {
        if self.requests.target_count() > 0 {
            let requests = &self.requests;
            let config = self.host.device().flash().config();
            leased::check(config, &self.manager, |name| requests.has_lease(name), command)?;
        }
        let mut entry = command.entry;
        set_cid(&mut entry, cid);
        let now = self.now();
        // SAFETY: the caller's memory, for the length of this call; data and metadata were found not to overlap.
        let (data, metadata) = unsafe { (command.data.as_mut(), command.metadata.as_mut()) };
        let (lba_list, destination_list) = (&command.lbas[..], &command.destinations[..]);
        let buffers = IoBuffers { data, metadata, lba_list, destination_list };
        Ok(self.host.device_mut().submit(now, queue.0, &entry, buffers).is_ok())
    }

    /// Carries out an I/O command, and waits for its end.
    pub fn io(&mut self, command: &Resolved) -> Result<Cqe, Failure> {
        while !self.submit(QueueId::WAITED_FOR, 0, command)? {
            assert!(self.advance(Nanos::MAX), "a full drive ends something");
            self.turn();
        }
        (self.waiting, self.waited) = (true, None);
        self.until(|state| state.waited.is_some());
        self.waiting = false;
        let cqe = self.waited.take().expect("it was waited for");
        Ok(Cqe { cid: command.sqe.cid, sqid: 0, ..cqe })
    }

    /// Asks a target, and waits for the end. The requests that `next` gives are asked in their order, as many at once as there
    /// is room for.
    ///
    /// # Errors
    /// The first failure.
    pub fn ask(&mut self, lane: usize, asked: impl Iterator<Item = Asked>) -> Result<Reply, Failure> {
        self.requests.waited = Waited::new();
        for asked in asked {
            while let Err(failure) = self.take(lane, asked) {
                self.turn();
                if failure.errno != libc::EAGAIN || self.requests.in_progress() == 0 {
                    self.until(|state| state.requests.waited.left == 0);
                    return Err(failure);
                }
                self.advance(Nanos::MAX);
            }
        }
        self.until(|state| state.requests.waited.left == 0);
        std::mem::replace(&mut self.requests.waited, Waited::new()).end.into_result()
    }

    /// Takes a request for a target, which is told first if that is part of a transaction.
    fn take(&mut self, lane: usize, asked: Asked) -> Result<(), Failure> {
        let tag = self.requests.take(lane, asked, self.host.buffers_mut())?;
        let Some((transaction, part)) = asked.ask.part() else { return Ok(()) };
        let joined = self
            .transactions(lane)
            .and_then(|transactions| transactions.join(transaction, tag, part).map_err(Failure::from));
        joined.inspect_err(|_| self.requests.take_back(lane, tag, self.host.buffers()))
    }

    /// Gives a target a request whose end is told by a poll.
    pub fn submit_to(&mut self, lane: usize, asked: Asked) -> Result<c_int, Failure> {
        self.take(lane, asked)?;
        // The drive begins with it now, not at the next poll.
        self.turn();
        Ok(0)
    }

    /// Lets everything in progress end, and what goes on behind it.
    pub fn settle(&mut self) {
        self.until(|state| state.requests.in_progress() == 0 && state.queues.in_drive() == 0);
        self.host.settle();
        self.turn();
    }

    /// What is written becomes durable, before the drive is left.
    pub fn close(&mut self) -> Result<(), Failure> {
        self.settle();
        if self.image.as_ref().is_some_and(Image::is_writable) {
            let closed = self.host.device_mut().flash_mut().close();
            closed.map_err(|error| {
                Failure::new(errno_of(error.status()), format!("the image could not be kept: {error}"))
            })?;
        }
        Ok(())
    }
}

/// Puts a command identifier into an entry: bytes 2 and 3 (NVMe base 1.4 section 4.2).
fn set_cid(entry: &mut [u8; 64], cid: u16) {
    entry[2..4].copy_from_slice(&cid.to_le_bytes());
}
