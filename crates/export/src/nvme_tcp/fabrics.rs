//! Fabrics commands: Connect, properties, Disconnect.
//!
//! Deliberately not here: the associations themselves.

use super::queue::Queue;
use super::session::{Session, Stage};
use super::wire::{COMMON_BYTES, IN_CAPSULE_BYTES_MAX};
use crate::dispatcher::Dispatcher;
use crate::nvme_subsystem::{
    Arrival, Bound, Change, Commands, Purpose, QUEUE_ENTRIES_MAX, Refusal, State, TransportTraits,
};
use ocssd_base::SlabKey;
use ocssd_lightnvm::Status;
use ocssd_nvme::fabrics::{
    Capabilities, Connect, ConnectData, ConnectDataError, ConnectStatus, FabricsType, PropertyGet,
    PropertySet, offset,
};
use ocssd_nvme::identify::FabricsLimits;
use ocssd_nvme::{Cqe, Sqe, StatusField};

/// NVMe 2.0.0: the revision whose structures are used.
const VERSION: u32 = 0x0002_0000;

/// Longest time to become ready, in units of 500 ms (chosen: it takes none; hosts wait at least this long for a shutdown).
const READY_TIMEOUT: u8 = 20;

/// SGLS: supported (1:0), offsets into the capsule (20), the transport's own descriptors (21).
const SGL_SUPPORT: u32 = 1 | 1 << 20 | 1 << 21;

/// A capsule counts in units of 16 bytes.
const CAPSULE_UNIT: usize = 16;

const _: () =
    assert!(COMMON_BYTES == 8 && IN_CAPSULE_BYTES_MAX.is_multiple_of(CAPSULE_UNIT), "IOCCSZ has no rest");

/// What controllers say of the transport.
const TRAITS: TransportTraits = TransportTraits {
    model: "ocssd NVMe/TCP target",
    version: VERSION,
    sgls: SGL_SUPPORT,
    oacs: 0,
    commands_max: QUEUE_ENTRIES_MAX,
    fabrics: FabricsLimits {
        ioccsz: units(Sqe::BYTES + IN_CAPSULE_BYTES_MAX),
        iorcsz: units(Cqe::BYTES),
        icdoff: 0,
        fcatt: 0,
        msdbd: 1,
    },
    keeps_alive: true,
    admin: &[],
};

#[allow(clippy::cast_possible_truncation, reason = "a capsule has less than 2^32 bytes")]
const fn units(bytes: usize) -> u32 {
    assert!(bytes < 1 << 20, "a capsule is small");
    (bytes / CAPSULE_UNIT) as u32
}

impl From<ConnectStatus> for Refusal {
    fn from(status: ConnectStatus) -> Self {
        Self { status: StatusField::rule(status.status()), dw0: status.dw0() }
    }
}

impl Session {
    /// Carries out a Fabrics command and answers it.
    pub(super) fn fabrics(&mut self, key: SlabKey, dispatcher: &mut Dispatcher) {
        let sqe = self.commands.get(key).sqe;
        let answer = match (FabricsType::of(&sqe), self.bound()) {
            (FabricsType::CONNECT, None) => return self.connect(key, &sqe, dispatcher),
            (FabricsType::PROPERTY_GET, Some(bound)) if self.queue.qid == 0 => {
                property(bound, &sqe, dispatcher)
            }
            (FabricsType::PROPERTY_SET, Some(bound)) if self.queue.qid == 0 => {
                self.set_property(key, bound, &sqe, dispatcher)
            }
            (FabricsType::DISCONNECT, Some(_)) if self.queue.qid > 0 => {
                return self.disconnect(key, dispatcher);
            }
            (FabricsType::CONNECT | FabricsType::DISCONNECT, _) => Err(Status::COMMAND_SEQUENCE_ERROR.into()),
            _ => Err(Status::INVALID_FIELD.into()),
        };
        self.commands.answer(key, answer, dispatcher);
    }

    fn connect(&mut self, key: SlabKey, sqe: &Sqe, dispatcher: &mut Dispatcher) {
        let connect = Connect::of(sqe);
        let command = self.commands.get(key);
        let bytes = command.transfer.bytes();
        let sound = command.transfer.is_from_host() && bytes == ConnectData::BYTES;
        let data = match (&command.piece, sound) {
            (Some(piece), true) => decode(dispatcher.buffers.bytes(piece.buffer, 0, bytes)),
            _ => Err(Status::INVALID_SGL_LENGTH.into()),
        };
        let bound = data.and_then(|data| self.bind(&connect, &data, dispatcher));
        match bound {
            Err(refusal) => self.commands.answer(key, Err(refusal), dispatcher),
            Ok(bound) => {
                if connect.no_flow_control {
                    self.queue.drop_flow_control();
                }
                self.commands.answer(key, Ok((bound.cntlid.into(), 0)), dispatcher);
                self.settle(dispatcher);
                self.begin_queue(bound, &connect);
            }
        }
    }

    /// Connect was answered: the queue that it asked for begins.
    fn begin_queue(&mut self, bound: Bound, connect: &Connect) {
        assert!(self.commands.is_empty(), "Connect is answered before the queue begins");
        let stopping = self.commands.stopping;
        let entries = connect.sqsize + 1;
        self.stage = Stage::Bound(bound);
        self.queue = Queue::new(connect.qid, entries, !connect.no_flow_control);
        self.commands = Commands::new(self.name, bound.cntlid, entries.into());
        self.commands.stopping = stopping;
    }

    fn bind(
        &self,
        connect: &Connect,
        data: &ConnectData,
        dispatcher: &mut Dispatcher,
    ) -> Result<Bound, Refusal> {
        let Some(subsystem) = &mut dispatcher.subsystem else {
            return Err(ConnectStatus::InvalidParameters { offset: 256, in_data: true }.into());
        };
        if connect.recfmt != 0 {
            return Err(ConnectStatus::IncompatibleFormat.into());
        }
        if !(1..QUEUE_ENTRIES_MAX).contains(&connect.sqsize) {
            // Byte 44 of the entry is SQSIZE.
            return Err(ConnectStatus::InvalidParameters { offset: 44, in_data: false }.into());
        }
        let cntlid = if connect.qid == 0 {
            dispatcher.stats.associations += 1;
            let (admin, local, now) = (self.name, self.local, dispatcher.now);
            subsystem.begin(connect, data, &Arrival { admin, local, transport: TRAITS, now })?
        } else {
            subsystem.join(connect, data, self.name)?;
            data.cntlid
        };
        let association = subsystem.association(cntlid).expect("it was found");
        Ok(Bound { cntlid, purpose: association.purpose })
    }

    fn set_property(
        &mut self,
        key: SlabKey,
        bound: Bound,
        sqe: &Sqe,
        dispatcher: &mut Dispatcher,
    ) -> Result<(u32, u32), Refusal> {
        let set = PropertySet::of(sqe);
        let value = u32::try_from(set.value).ok().filter(|_| set.offset == offset::CC && !set.is_long);
        let value = value.ok_or(Status::INVALID_FIELD)?;
        let subsystem = dispatcher.subsystem.as_mut().expect("an association lies in a subsystem");
        let association = subsystem.association_mut(bound.cntlid).ok_or(Status::COMMAND_SEQUENCE_ERROR)?;
        match association.configure(value) {
            Change::Nothing => {}
            Change::Reset => {
                let queues = std::mem::take(&mut association.queues);
                subsystem.end_claims(bound.cntlid);
                queues
                    .into_iter()
                    .for_each(|(_, (connection, generation))| dispatcher.call(connection, generation));
                self.forget_commands_but(key, dispatcher);
                self.commands.leave_stages(dispatcher);
            }
            Change::ShutDown => self.commands.shut_down(dispatcher),
        }
        Ok((0, 0))
    }

    /// A reset: commands that are open are not answered any more.
    fn forget_commands_but(&mut self, key: SlabKey, dispatcher: &mut Dispatcher) {
        // Admin commands end at once, so none has a job; what waits for memory or data goes on.
        let held = self.commands.iter().filter(|(_, command)| command.state == State::Held);
        let held: Vec<SlabKey> = held.map(|(other, _)| other).filter(|other| *other != key).collect();
        held.into_iter().for_each(|other| self.commands.forget(other, dispatcher));
    }

    fn disconnect(&mut self, key: SlabKey, dispatcher: &mut Dispatcher) {
        let bound = self.bound().expect("it was judged");
        self.commands.answer(key, Ok((0, 0)), dispatcher);
        self.settle(dispatcher);
        let subsystem = dispatcher.subsystem.as_mut().expect("an association lies in a subsystem");
        subsystem.leave(bound.cntlid, self.name);
        if self.queue.qid == 0 {
            self.commands.leave_stages(dispatcher);
        }
        self.finish(dispatcher);
    }
}

fn decode(bytes: &[u8]) -> Result<ConnectData, Refusal> {
    ConnectData::decode(bytes).map_err(|error| match error {
        ConnectDataError::Short(_) => Status::INVALID_SGL_LENGTH.into(),
        ConnectDataError::Name { offset } => {
            ConnectStatus::InvalidParameters { offset, in_data: true }.into()
        }
    })
}

/// Property Get.
fn property(bound: Bound, sqe: &Sqe, dispatcher: &Dispatcher) -> Result<(u32, u32), Refusal> {
    let subsystem = dispatcher.subsystem.as_ref().expect("an association lies in a subsystem");
    let association = subsystem.association(bound.cntlid).ok_or(Status::COMMAND_SEQUENCE_ERROR)?;
    let capabilities = Capabilities {
        mqes: QUEUE_ENTRIES_MAX - 1,
        timeout: READY_TIMEOUT,
        nvm: true,
        command_sets: bound.purpose == Purpose::Io,
    };
    let value = match PropertyGet::of(sqe) {
        PropertyGet { is_long: true, offset: offset::CAP } => capabilities.to_bits(),
        PropertyGet { is_long: false, offset: offset::VS } => VERSION.into(),
        PropertyGet { is_long: false, offset: offset::CC } => association.configuration.into(),
        PropertyGet { is_long: false, offset: offset::CSTS } => association.status.to_bits().into(),
        _ => return Err(Status::INVALID_FIELD.into()),
    };
    let [a, b, c, d, e, f, g, h] = value.to_le_bytes();
    Ok((u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h])))
}
