//! The subsystem: its name, who may come, its namespaces, and its associations.
//!
//! It lies on the dispatcher, so that the connections of an association find each other there. Deliberately not here:
//! connections, and what commands do.

use super::association::{Arrival, Association, Features, IO_QUEUES_MAX, Name, Purpose};
use crate::exports::{ExportId, ExportKind, Exports};
use ocssd_base::Nanos;
use ocssd_lightnvm::Status;
use ocssd_lightnvm::interface::key_value::AbsentKey;
use ocssd_nvme::Lba;
use ocssd_nvme::fabrics::{
    Connect, ConnectData, ConnectStatus, ControllerStatus, DISCOVERY_NQN, DYNAMIC_CNTLID, NQN_BYTES_MAX,
};
use ocssd_nvme::identify::Uuid;
use ocssd_nvme::ocssd20::Claim;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;

/// Associations at once (chosen: each is a kilobyte, and one host needs one or two).
const ASSOCIATIONS_MAX: usize = 256;

/// Numbers of controllers above this one are reserved (NVMe over Fabrics 1.1 section 4.2).
const CNTLID_MAX: u16 = 0xFFEF;

/// Entries of a queue: what CAP and MAXCMD say (chosen: the deepest queue Linux asks for by itself).
pub const QUEUE_ENTRIES_MAX: u16 = 128;

/// What is fixed while it is served.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubsystemConfig {
    /// Its qualified name.
    pub nqn: String,
    /// What its serial number is made of.
    pub uuid: Uuid,
    /// Hosts that may come, by their names; everybody, if there is none.
    pub hosts: Vec<String>,
    /// The address hosts are told, if it is not the one they came to.
    pub advertised: Option<SocketAddr>,
}

/// A namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Namespace {
    /// Blocks of an export.
    Block(ExportId),
    /// Zones of one.
    Zoned(ExportId),
    /// Keys and values of one.
    KeyValue(ExportId),
    /// Pages of one.
    Pages(ExportId),
    /// Tables of one.
    Tables(ExportId),
    /// The raw drive.
    Raw,
}

/// The subsystem.
#[derive(Debug)]
pub struct Subsystem {
    /// What is fixed.
    pub config: SubsystemConfig,
    associations: Vec<Association>,
    last_cntlid: u16,
    /// Namespaces of keys on which a deletion of one that does not exist is refused (EDNEK).
    refusing: BTreeSet<u32>,
    /// The associations that have namespaces alone, by the namespaces.
    claims: BTreeMap<u32, u16>,
    /// Tables that were begun and are not published, each with its namespace.
    unpublished: BTreeSet<(u32, u64)>,
}

impl Subsystem {
    /// A subsystem without hosts.
    ///
    /// # Errors
    /// A sentence, if its name or a host's is none.
    pub fn new(config: SubsystemConfig) -> Result<Self, String> {
        for name in config.hosts.iter().chain([&config.nqn]) {
            let sound = name.len() <= NQN_BYTES_MAX && !name.contains('\0');
            if !sound || !name.starts_with("nqn.") || name == DISCOVERY_NQN {
                return Err(format!(
                    "a qualified name begins with \"nqn.\" and has at most {NQN_BYTES_MAX} bytes, as \
                     nqn.2014-08.org.nvmexpress:uuid:..., but \"{name}\" was given"
                ));
            }
        }
        Ok(Self {
            config,
            associations: Vec::new(),
            last_cntlid: 0,
            refusing: BTreeSet::new(),
            claims: BTreeMap::new(),
            unpublished: BTreeSet::new(),
        })
    }

    /// What the deletion of a key that does not exist is on a namespace (EDNEK of its feature).
    #[must_use]
    pub fn absent_key(&self, nsid: u32) -> AbsentKey {
        if self.refusing.contains(&nsid) { AbsentKey::Refused } else { AbsentKey::Success }
    }

    /// A host says what it is. All hosts share it.
    pub fn set_absent_key(&mut self, nsid: u32, absent: AbsentKey) {
        match absent {
            AbsentKey::Refused => self.refusing.insert(nsid),
            AbsentKey::Success => self.refusing.remove(&nsid),
        };
    }

    /// The association that has a namespace alone.
    #[must_use]
    pub fn claim(&self, nsid: u32) -> Option<u16> {
        self.claims.get(&nsid).copied()
    }

    /// An association claims a namespace, or gives it up; it is another's no longer than that one's association lasts.
    ///
    /// # Errors
    /// 083h, if another has it.
    pub fn set_claim(&mut self, nsid: u32, cntlid: u16, claim: Claim) -> Result<(), Status> {
        assert!(self.association(cntlid).is_some(), "association {cntlid} claims, and is over");
        if self.claim(nsid).is_some_and(|holder| holder != cntlid) {
            return Err(Status::RESERVATION_CONFLICT);
        }
        match claim {
            Claim::Take => self.claims.insert(nsid, cntlid),
            Claim::GiveUp => self.claims.remove(&nsid),
        };
        Ok(())
    }

    /// An association is over, or its controller was reset: it has no namespace alone any more.
    pub fn end_claims(&mut self, cntlid: u16) {
        self.claims.retain(|_, holder| *holder != cntlid);
    }

    /// A table that nobody sees yet was begun.
    pub fn note_begun(&mut self, nsid: u32, table: u64) {
        self.unpublished.insert((nsid, table));
    }

    /// A table was published, or is gone.
    pub fn note_over(&mut self, nsid: u32, table: u64) {
        self.unpublished.remove(&(nsid, table));
    }

    /// A table of a namespace that nobody sees yet, taken out.
    pub fn take_unpublished(&mut self, nsid: u32) -> Option<u64> {
        let found = self.unpublished.range((nsid, 0)..=(nsid, u64::MAX)).next().copied()?;
        self.unpublished.remove(&found);
        Some(found.1)
    }

    /// An association, if it has not ended.
    #[must_use]
    pub fn association(&self, cntlid: u16) -> Option<&Association> {
        self.associations.iter().find(|association| association.cntlid == cntlid)
    }

    /// An association, to change.
    pub fn association_mut(&mut self, cntlid: u16) -> Option<&mut Association> {
        self.associations.iter_mut().find(|association| association.cntlid == cntlid)
    }

    /// How many associations there are.
    #[must_use]
    pub fn association_count(&self) -> usize {
        self.associations.len()
    }

    /// A host connects an admin queue: the number of the association that begins.
    ///
    /// # Errors
    /// Why it may not.
    pub fn begin(
        &mut self,
        connect: &Connect,
        data: &ConnectData,
        arrival: &Arrival,
    ) -> Result<u16, ConnectStatus> {
        let purpose = self.check_names(data)?;
        if data.cntlid != DYNAMIC_CNTLID {
            return Err(wrong_data(16));
        }
        let cntlid = self.attach(purpose, arrival).ok_or(ConnectStatus::ControllerBusy)?;
        let association = self.association_mut(cntlid).expect("it has just begun");
        association.hostnqn.clone_from(&data.hostnqn);
        association.hostid = data.hostid;
        association.kato = (connect.kato_ms > 0).then(|| Nanos::from_millis(connect.kato_ms.into()));
        Ok(cntlid)
    }

    /// A controller begins, whose host says nothing about itself: its number, or `None` if there are as many as there can be.
    pub fn attach(&mut self, purpose: Purpose, arrival: &Arrival) -> Option<u16> {
        let cntlid = self.next_cntlid()?;
        let Arrival { admin, local, transport, now } = *arrival;
        self.associations.push(Association {
            cntlid,
            purpose,
            hostnqn: String::new(),
            hostid: [0; 16],
            kato: None,
            heard: now,
            transport,
            local,
            configuration: 0,
            status: ControllerStatus::default(),
            features: Features::default(),
            admin,
            queues: Vec::new(),
            events: VecDeque::new(),
            errors: VecDeque::new(),
            error_count: 0,
            changed_zones: BTreeMap::new(),
        });
        Some(cntlid)
    }

    /// A host connects an I/O queue of its association.
    ///
    /// # Errors
    /// Why it may not.
    pub fn join(&mut self, connect: &Connect, data: &ConnectData, queue: Name) -> Result<(), ConnectStatus> {
        self.check_names(data)?;
        let association = self.association_mut(data.cntlid).ok_or(wrong_data(16))?;
        if association.hostnqn != data.hostnqn || association.hostid != data.hostid {
            return Err(ConnectStatus::InvalidHost);
        }
        let taken = association.queues.iter().any(|(qid, _)| *qid == connect.qid);
        let known = (1..=association.features.queues).contains(&connect.qid);
        if association.purpose == Purpose::Discovery || !association.is_ready() || taken || !known {
            // Byte 42 of the entry is QID.
            return Err(ConnectStatus::InvalidParameters { offset: 42, in_data: false });
        }
        association.queues.push((connect.qid, queue));
        assert!(association.queues.len() <= usize::from(IO_QUEUES_MAX), "more queues than were granted");
        Ok(())
    }

    /// The names are those of this subsystem, and of a host that may come.
    fn check_names(&self, data: &ConnectData) -> Result<Purpose, ConnectStatus> {
        let purpose = match data.subnqn.as_str() {
            DISCOVERY_NQN => Purpose::Discovery,
            name if name == self.config.nqn => Purpose::Io,
            _ => return Err(wrong_data(256)),
        };
        let hosts = &self.config.hosts;
        if !hosts.is_empty() && !hosts.contains(&data.hostnqn) {
            return Err(ConnectStatus::InvalidHost);
        }
        Ok(purpose)
    }

    /// The next number nobody has: not the one used last, so that a host that missed an end does not meet another's queue.
    fn next_cntlid(&mut self) -> Option<u16> {
        if self.associations.len() >= ASSOCIATIONS_MAX {
            return None;
        }
        loop {
            self.last_cntlid = if self.last_cntlid >= CNTLID_MAX { 1 } else { self.last_cntlid + 1 };
            if self.association(self.last_cntlid).is_none() {
                return Some(self.last_cntlid);
            }
        }
    }

    /// A queue's connection is over. With the admin queue the association ends: the connections that go with it.
    pub fn leave(&mut self, cntlid: u16, name: Name) -> Vec<Name> {
        let Some(place) = self.associations.iter().position(|one| one.cntlid == cntlid) else {
            return Vec::new();
        };
        if self.associations[place].admin == name {
            self.end_claims(cntlid);
            let ended = self.associations.swap_remove(place);
            return ended.queues.into_iter().map(|(_, queue)| queue).collect();
        }
        self.associations[place].queues.retain(|(_, queue)| *queue != name);
        Vec::new()
    }

    /// Zones of a namespace changed by themselves: hosts find them in the changed zone list, and are told of it if they asked; the
    /// admin connections to call.
    pub fn note_changed_zone(&mut self, nsid: u32, zone: Lba) -> Vec<Name> {
        let with_namespaces = self.associations.iter_mut().filter(|one| one.purpose == Purpose::Io);
        let called = with_namespaces
            .filter_map(|association| association.note_changed_zone(nsid, zone).then_some(association.admin));
        called.collect()
    }

    /// Every host is told, if it asked for events; the admin connections to call.
    pub fn announce(&mut self, event: u32) -> impl Iterator<Item = Name> {
        let with_namespaces = self.associations.iter_mut().filter(|one| one.purpose == Purpose::Io);
        with_namespaces.map(move |association| {
            association.announce(event);
            association.admin
        })
    }
}

/// A field of Connect's data is wrong.
const fn wrong_data(offset: u16) -> ConnectStatus {
    ConnectStatus::InvalidParameters { offset, in_data: true }
}

/// The namespace of this number: exports first, in order, then the raw drive.
#[must_use]
pub fn namespace(nsid: u32, exports: &Exports, has_raw: bool) -> Option<Namespace> {
    let count = u32::try_from(exports.len()).expect("a host has at most 256 targets");
    match nsid.checked_sub(1)? {
        place if place < count => {
            let id = ExportId(place);
            match exports.get(id).kind {
                ExportKind::Block => Some(Namespace::Block(id)),
                ExportKind::Zoned(_) => Some(Namespace::Zoned(id)),
                ExportKind::KeyValue(_) => Some(Namespace::KeyValue(id)),
                ExportKind::Log(_) => Some(Namespace::Pages(id)),
                ExportKind::Table(_) => Some(Namespace::Tables(id)),
            }
        }
        place if place == count && has_raw => Some(Namespace::Raw),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nvme_subsystem::TransportTraits;

    fn subsystem(hosts: &[&str]) -> Subsystem {
        let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
        let config = SubsystemConfig { nqn: "nqn.test".to_owned(), hosts, ..SubsystemConfig::default() };
        Subsystem::new(config).unwrap()
    }

    fn arrival(admin: Name) -> Arrival {
        Arrival { admin, local: None, transport: TransportTraits::EXAMPLE, now: Nanos::ZERO }
    }

    fn connect(qid: u16) -> Connect {
        Connect { recfmt: 0, qid, sqsize: 31, no_flow_control: false, kato_ms: 5000 }
    }

    fn data(subnqn: &str, hostnqn: &str, cntlid: u16) -> ConnectData {
        ConnectData { hostid: [1; 16], cntlid, subnqn: subnqn.to_owned(), hostnqn: hostnqn.to_owned() }
    }

    #[test]
    fn a_name_that_is_none_is_refused() {
        let long = format!("nqn.{}", "x".repeat(220));
        for nqn in ["", "test", DISCOVERY_NQN, long.as_str()] {
            let config = SubsystemConfig { nqn: nqn.to_owned(), ..SubsystemConfig::default() };
            assert!(Subsystem::new(config).is_err_and(|error| error.contains("nqn.")), "{nqn}");
        }
    }

    #[test]
    fn who_may_come_gets_a_number_of_its_own_and_others_are_told_what_is_wrong() {
        let mut served = subsystem(&["nqn.a"]);
        let any = DYNAMIC_CNTLID;
        let mut begin = |data| served.begin(&connect(0), &data, &arrival((0, 0)));
        assert_eq!(begin(data("nqn.test", "nqn.a", any)), Ok(1));
        assert_eq!(begin(data(DISCOVERY_NQN, "nqn.a", any)), Ok(2));
        assert_eq!(begin(data("nqn.other", "nqn.a", any)), Err(wrong_data(256)));
        assert_eq!(begin(data("nqn.test", "nqn.b", any)), Err(ConnectStatus::InvalidHost));
        assert_eq!(begin(data("nqn.test", "nqn.a", 1)), Err(wrong_data(16)));
    }

    #[test]
    fn an_io_queue_belongs_to_its_host_and_is_there_once() {
        let mut served = subsystem(&[]);
        let cntlid =
            served.begin(&connect(0), &data("nqn.test", "nqn.a", DYNAMIC_CNTLID), &arrival((0, 0))).unwrap();
        let wrong_queue = Err(ConnectStatus::InvalidParameters { offset: 42, in_data: false });
        assert_eq!(
            served.join(&connect(1), &data("nqn.test", "nqn.a", cntlid), (1, 0)),
            wrong_queue,
            "not ready"
        );
        served.association_mut(cntlid).unwrap().configure(1);
        let mut join =
            |qid, host, cntlid| served.join(&connect(qid), &data("nqn.test", host, cntlid), (qid.into(), 0));
        assert_eq!(join(1, "nqn.a", cntlid), Ok(()));
        assert_eq!(join(1, "nqn.a", cntlid), wrong_queue);
        assert_eq!(join(IO_QUEUES_MAX + 1, "nqn.a", cntlid), wrong_queue);
        assert_eq!(join(2, "nqn.b", cntlid), Err(ConnectStatus::InvalidHost));
        assert_eq!(join(2, "nqn.a", cntlid + 1), Err(wrong_data(16)));
        assert_eq!(join(2, "nqn.a", cntlid), Ok(()));
        assert_eq!((served.set_claim(3, cntlid, Claim::Take), served.claim(3)), (Ok(()), Some(cntlid)));
        assert_eq!(served.claim(2), None, "another namespace");
        let other =
            served.begin(&connect(0), &data("nqn.test", "nqn.b", DYNAMIC_CNTLID), &arrival((9, 0))).unwrap();
        assert_eq!(served.set_claim(3, other, Claim::Take), Err(Status::RESERVATION_CONFLICT));
        assert_eq!(served.leave(cntlid, (2, 0)), []);
        assert_eq!((served.leave(other, (9, 0)), served.claim(3)), (vec![], Some(cntlid)));
        assert_eq!((served.leave(cntlid, (0, 0)), served.association_count()), (vec![(1, 0)], 0));
        assert_eq!(served.claim(3), None, "it ends with the association");
    }

    #[test]
    fn there_are_so_many_associations_and_no_number_is_used_twice_in_a_row() {
        let mut served = subsystem(&[]);
        let begin = |served: &mut Subsystem| {
            served.begin(&connect(0), &data("nqn.test", "nqn.a", DYNAMIC_CNTLID), &arrival((7, 7)))
        };
        for number in 1..=ASSOCIATIONS_MAX {
            assert_eq!(begin(&mut served).map(usize::from), Ok(number));
        }
        assert_eq!(begin(&mut served), Err(ConnectStatus::ControllerBusy));
        served.last_cntlid = CNTLID_MAX;
        served.leave(3, (7, 7));
        assert_eq!(begin(&mut served), Ok(3), "numbers begin again");
    }
}
