//! An association: what a host and the target have agreed on beyond one connection, which is the controller's state.
//!
//! It is made by the Connect of an admin queue, has a number of its own, and ends with that queue. Deliberately not
//! here: connections, and other associations.

use ocssd_base::Nanos;
use ocssd_nvme::fabrics::{Configuration, ControllerStatus};
use ocssd_nvme::identify::FabricsLimits;
use ocssd_nvme::log_page::{AsyncEvent, ErrorLogEntry};
use ocssd_nvme::zns::ChangedZoneList;
use ocssd_nvme::{AdminOpcode, Lba};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

/// A connection: its place, and which of those that had it.
pub type Name = (u32, u32);

/// I/O queues of an association (chosen: a queue for each processor of a large host, and bounded).
pub const IO_QUEUES_MAX: u16 = 64;

/// Entries of the error log kept (chosen).
pub const ERRORS_MAX: usize = 16;

/// Zone Descriptor Changed Notices: the bit in OAES and in the feature of asynchronous events (ZNS 1.1 section 4.1.5.3).
pub const CHANGED_ZONES_BIT: u32 = 27;

/// Events that wait for an event request (chosen: there are few kinds, and each is told once until its page is read).
const EVENTS_MAX: usize = 8;

/// What a controller is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// It tells where subsystems are.
    Discovery,
    /// It has namespaces.
    Io,
}

/// Whose a command is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The association.
    pub cntlid: u16,
    /// What it is for.
    pub purpose: Purpose,
}

/// What a transport adds to what its controllers say of themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransportTraits {
    /// The model, which names the transport.
    pub model: &'static str,
    /// VS and VER: the revision of the structures.
    pub version: u32,
    /// SGLS.
    pub sgls: u32,
    /// OACS.
    pub oacs: u16,
    /// MAXCMD; 0 if nothing is said.
    pub commands_max: u16,
    /// What capsules are like, where there are any.
    pub fabrics: FabricsLimits,
    /// A host may promise not to be silent: Keep Alive, and its feature.
    pub keeps_alive: bool,
    /// Admin commands that the transport carries out itself.
    pub admin: &'static [AdminOpcode],
}

#[cfg(test)]
impl TransportTraits {
    /// A transport that adds nothing.
    pub const EXAMPLE: Self = Self {
        model: "test",
        version: 0,
        sgls: 0,
        oacs: 0,
        commands_max: 0,
        fabrics: FabricsLimits { ioccsz: 0, iorcsz: 0, icdoff: 0, fcatt: 0, msdbd: 0 },
        keeps_alive: true,
        admin: &[],
    };
}

/// A controller that begins.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// The connection of its admin queue.
    pub admin: Name,
    /// The address of this machine that its host came to, if it came through the network.
    pub local: Option<SocketAddr>,
    /// What its transport is like.
    pub transport: TransportTraits,
    /// When.
    pub now: Nanos,
}

/// What a host can change; lost with a reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// Feature 06h: off, every write is a FUA write.
    pub write_cache: bool,
    /// Feature 0Bh.
    pub async_events: u32,
    /// I/O queues granted.
    pub queues: u16,
}

impl Default for Features {
    fn default() -> Self {
        Self { write_cache: true, async_events: 0, queues: IO_QUEUES_MAX }
    }
}

/// An association.
#[derive(Debug)]
pub struct Association {
    /// Its number.
    pub cntlid: u16,
    /// What for.
    pub purpose: Purpose,
    /// The host's name.
    pub hostnqn: String,
    /// The host's identifier.
    pub hostid: [u8; 16],
    /// The host may be silent for so long; `None` for ever.
    pub kato: Option<Nanos>,
    /// When the host was heard last.
    pub heard: Nanos,
    /// What its transport is like.
    pub transport: TransportTraits,
    /// The address of this machine that the host came to.
    pub local: Option<SocketAddr>,
    /// CC as the host wrote it.
    pub configuration: u32,
    /// CSTS.
    pub status: ControllerStatus,
    /// What the host changed.
    pub features: Features,
    /// The connection of the admin queue.
    pub admin: Name,
    /// Those of its I/O queues.
    pub queues: Vec<(u16, Name)>,
    /// Events nobody was told of.
    pub events: VecDeque<u32>,
    /// Newest first.
    pub errors: VecDeque<ErrorLogEntry>,
    /// How many there were.
    pub error_count: u64,
    /// By namespace: zones that changed by themselves since the host read the list.
    pub changed_zones: BTreeMap<u32, Vec<Lba>>,
}

/// What a change of CC asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing.
    Nothing,
    /// A reset: I/O queues and event requests go.
    Reset,
    /// A shutdown: what was answered is to be made durable.
    ShutDown,
}

/// Leave beyond the time a host promised: the granularity the target announces (KAS).
pub const KEEP_ALIVE_GRANULARITY: Nanos = Nanos::from_secs(1);

impl Association {
    /// The host has been silent for longer than it promised.
    #[must_use]
    pub fn is_silent(&self, now: Nanos) -> bool {
        self.kato.is_some_and(|kato| now.saturating_since(self.heard) > kato + KEEP_ALIVE_GRANULARITY)
    }

    /// The host writes CC.
    pub fn configure(&mut self, bits: u32) -> Change {
        let (before, after) = (Configuration::from_bits(self.configuration), Configuration::from_bits(bits));
        self.configuration = bits;
        if before.enable && !after.enable {
            self.reset();
            return Change::Reset;
        }
        if !before.enable && after.enable {
            self.status = ControllerStatus { ready: true, fatal: false, shutdown: 0 };
        }
        let shuts_down = matches!(after.shutdown, 1 | 2) && before.shutdown != after.shutdown;
        if shuts_down && self.status.shutdown == 0 {
            self.status.shutdown = 1;
            return Change::ShutDown;
        }
        Change::Nothing
    }

    /// What a reset takes: what the host changed, and news nobody was told of.
    pub fn reset(&mut self) {
        self.status = ControllerStatus::default();
        self.features = Features::default();
        self.events.clear();
    }

    /// Commands of I/O queues, and admin commands beside those of Fabrics, are carried out.
    #[must_use]
    pub const fn is_ready(&self) -> bool {
        self.status.ready
    }

    /// There is news; told once until it is taken.
    pub fn announce(&mut self, event: u32) {
        if self.events.len() < EVENTS_MAX && !self.events.contains(&event) {
            self.events.push_back(event);
        }
    }

    /// A zone of a namespace changed by itself. True if the host wants to be told.
    pub fn note_changed_zone(&mut self, nsid: u32, zone: Lba) -> bool {
        let zones = self.changed_zones.entry(nsid).or_default();
        // One more than fit says that there are too many.
        if zones.len() <= ChangedZoneList::LEN_MAX && !zones.contains(&zone) {
            zones.push(zone);
        }
        let wants = self.features.async_events >> CHANGED_ZONES_BIT & 1 == 1;
        if wants {
            self.announce(AsyncEvent::CHANGED_ZONES.to_dword());
        }
        wants
    }

    /// The host reads which zones of a namespace changed; they are forgotten unless it wants to read them again.
    pub fn changed_zones(&mut self, nsid: u32, retains: bool) -> ChangedZoneList {
        let zones = self.changed_zones.get(&nsid).cloned().unwrap_or_default();
        if !retains {
            self.changed_zones.remove(&nsid);
        }
        ChangedZoneList::of(zones)
    }

    /// A command failed.
    pub fn note_error(&mut self, entry: ErrorLogEntry) {
        self.error_count += 1;
        self.errors.truncate(ERRORS_MAX - 1);
        self.errors.push_front(ErrorLogEntry { error_count: self.error_count, ..entry });
    }
}
