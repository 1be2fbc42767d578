//! Fabrics commands: Connect, properties, Disconnect.
//!
//! Deliberately not here: the associations themselves.

use super::association::{Change, Purpose};
use super::queue::Queue;
use super::respond::Refusal;
use super::session::{Bound, Session, Stage};
use super::subsystem::QUEUE_ENTRIES_MAX;
use crate::dispatcher::Dispatcher;
use ocssd_base::SlabKey;
use ocssd_lightnvm::Status;
use ocssd_nvme::fabrics::{
    Capabilities, Connect, ConnectData, ConnectDataError, ConnectStatus, FabricsType, PropertyGet,
    PropertySet, offset,
};
use ocssd_nvme::{Sqe, StatusField};

/// NVMe 2.0.0: the revision whose structures are used.
pub(super) const VERSION: u32 = 0x0002_0000;

/// Longest time to become ready, in units of 500 ms (chosen: it takes none; hosts wait at least this long for a shutdown).
const READY_TIMEOUT: u8 = 20;

impl From<ConnectStatus> for Refusal {
    fn from(status: ConnectStatus) -> Self {
        Self { status: StatusField::rule(status.status()), dw0: status.dw0() }
    }
}

impl Session {
    /// Carries out a Fabrics command and answers it.
    pub(super) fn fabrics(&mut self, key: SlabKey, dispatcher: &mut Dispatcher) {
        let sqe = self.queue.commands.get(key).sqe;
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
        self.answer(key, answer, dispatcher);
    }

    /// Answers with two dwords, or a refusal.
    pub(super) fn answer(
        &mut self,
        key: SlabKey,
        answer: Result<(u32, u32), Refusal>,
        dispatcher: &mut Dispatcher,
    ) {
        let command = self.queue.commands.get_mut(key);
        match answer {
            Ok(result) => command.result = result,
            Err(refusal) => (command.result, command.failure) = ((refusal.dw0, 0), Some(refusal.status)),
        }
        self.respond(key, dispatcher);
    }

    fn connect(&mut self, key: SlabKey, sqe: &Sqe, dispatcher: &mut Dispatcher) {
        let connect = Connect::of(sqe);
        let command = self.queue.commands.get(key);
        let bytes = command.transfer.bytes();
        let sound = command.transfer.is_from_host() && bytes == ConnectData::BYTES;
        let data = match (&command.piece, sound) {
            (Some(piece), true) => decode(dispatcher.buffers.bytes(piece.buffer, 0, bytes)),
            _ => Err(Status::INVALID_SGL_LENGTH.into()),
        };
        let bound = data.and_then(|data| self.bind(&connect, &data, dispatcher));
        match bound {
            Err(refusal) => self.answer(key, Err(refusal), dispatcher),
            Ok(bound) => {
                if connect.no_flow_control {
                    self.queue.drop_flow_control();
                }
                self.answer(key, Ok((bound.cntlid.into(), 0)), dispatcher);
                self.stage = Stage::Bound(bound);
                let entries = connect.sqsize + 1;
                self.replace_queue(Queue::new(connect.qid, entries, !connect.no_flow_control));
            }
        }
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
            subsystem.begin(connect, data, self.name, dispatcher.now)?
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
                queues
                    .into_iter()
                    .for_each(|(_, (connection, generation))| dispatcher.call(connection, generation));
                self.forget_commands_but(key, dispatcher);
                self.leave_stages(bound.cntlid, dispatcher);
            }
            Change::ShutDown => self.shut_down(dispatcher),
        }
        Ok((0, 0))
    }

    /// A reset: commands that are open are not answered any more.
    fn forget_commands_but(&mut self, key: SlabKey, dispatcher: &mut Dispatcher) {
        let open: Vec<SlabKey> = self.queue.commands.iter().map(|(other, _)| other).collect();
        for other in open.into_iter().filter(|other| *other != key) {
            // Admin commands end at once, so none has a job; what waits for memory or data goes on.
            if self.queue.commands.get(other).state == super::command::State::Held {
                let command = self.queue.commands.remove(other);
                command.piece.into_iter().for_each(|piece| dispatcher.pool.give_back(piece));
            }
        }
    }

    fn disconnect(&mut self, key: SlabKey, dispatcher: &mut Dispatcher) {
        let bound = self.bound().expect("it was judged");
        self.answer(key, Ok((0, 0)), dispatcher);
        let subsystem = dispatcher.subsystem.as_mut().expect("an association lies in a subsystem");
        subsystem.leave(bound.cntlid, self.name);
        if self.queue.qid == 0 {
            self.leave_stages(bound.cntlid, dispatcher);
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
