//! A job as a request of its target's interface, and a reply as what the job brought.
//!
//! Deliberately not here: when a job goes to its target (`dispatcher`).

use crate::job::{Answer, Job, Work};
use ocssd_lightnvm::block::{BlockOp, BlockRequest};
use ocssd_lightnvm::interface::key_value::KvRequest;
use ocssd_lightnvm::interface::log_structured::LogRequest;
use ocssd_lightnvm::interface::table::TableRequest;
use ocssd_lightnvm::interface::zoned::{ZonedOp, ZonedRequest};
use ocssd_lightnvm::interface::{AnyReply, AnyRequest, Durability, Interface};
use ocssd_lightnvm::{Status, Tag};

/// The request of a job on an export of `interface`.
///
/// # Panics
/// If the export's interface has no such request: whoever gives a job has judged that.
pub fn request(job: &Job, interface: Interface, tag: Tag) -> AnyRequest {
    match (job.work, interface) {
        (_, Interface::Block) => AnyRequest::Block(blocks(job, tag)),
        (Work::Flush, _) => AnyRequest::flush(interface, tag),
        (_, Interface::Zoned) => AnyRequest::Zoned(zones(job, tag)),
        (Work::Log(op), Interface::Log) => AnyRequest::Log(LogRequest { tag, op }),
        (Work::Table(op), Interface::Table) => AnyRequest::Table(TableRequest { tag, op }),
        (Work::KeyValue(op), Interface::KeyValue) => AnyRequest::KeyValue(KvRequest { tag, op }),
        (work, _) => unreachable!("{work:?} was asked of a target of {interface}"),
    }
}

/// The request of a job on an export of blocks.
///
/// # Panics
/// If there is none.
pub fn blocks(job: &Job, tag: Tag) -> BlockRequest {
    let op = match job.work {
        Work::Read => BlockOp::Read,
        Work::Write { fua } => BlockOp::Write { fua },
        Work::Flush => BlockOp::Flush,
        Work::Discard => BlockOp::Discard,
        Work::WriteZeroes => BlockOp::WriteZeroes,
        Work::Map { .. } => unreachable!("questions about the map do not go to targets as requests"),
        Work::Raw => unreachable!("raw commands go to the raw drive"),
        work => unreachable!("{work:?} was asked of a target of blocks"),
    };
    let buffer = job.piece.as_ref().map(|piece| piece.buffer);
    BlockRequest { tag, op, block: job.block, count: job.count, buffer }
}

fn zones(job: &Job, tag: Tag) -> ZonedRequest {
    let op = match job.work {
        Work::Read => ZonedOp::Read,
        Work::Write { fua } => ZonedOp::Write { durability: durability(fua) },
        Work::Append { fua } => ZonedOp::Append { durability: durability(fua) },
        Work::ManageZones { action, scope } => ZonedOp::Manage { action, scope },
        Work::ReportZones { only } => ZonedOp::Report { only },
        Work::ReportZonesExtended { only } => ZonedOp::ReportExtended { only },
        Work::SetZoneExtension => ZonedOp::SetExtension,
        Work::OpenZoneWithArea => ZonedOp::OpenWithArea,
        Work::CommitZoneArea => ZonedOp::CommitArea,
        work => unreachable!("{work:?} was asked of a target of zones"),
    };
    let buffer = job.piece.as_ref().map(|piece| piece.buffer);
    ZonedRequest { tag, op, block: job.block, count: job.count, buffer }
}

/// When a change survives a power cut.
pub const fn durability(fua: bool) -> Durability {
    if fua { Durability::AtReply } else { Durability::AtFlush }
}

/// How a request ended, and what it brought.
pub fn answer(reply: AnyReply) -> (Status, Answer) {
    match reply {
        AnyReply::Block(reply) => (reply.status, Answer::Nothing),
        AnyReply::Zoned(reply) => (reply.status, Answer::Zoned(reply.answer)),
        AnyReply::Log(reply) => (reply.status, Answer::Log(reply)),
        AnyReply::Table(reply) => (reply.status, Answer::Table(reply)),
        AnyReply::KeyValue(reply) => (reply.status, Answer::KeyValue(reply)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatcher::Dispatcher;
    use crate::exports::ExportId;
    use crate::job::{Done, JobOwner};
    use crate::memory_disk::MemoryDisks;
    use crate::model_targets::{keys, zones};
    use crate::pool::PoolPiece;
    use crate::shares::{ClientId, Want};
    use ocssd_lightnvm::interface::key_value::{
        AbsentKey, Key, KvAnswer, KvOp, KvRefusal, KvReply, StoreCondition,
    };
    use ocssd_lightnvm::interface::zoned::{ZoneAction, ZoneScope, ZoneState, ZonedAnswer};
    use ocssd_lightnvm::interface::{Content, StageId, StageOp};

    const ZONES: ExportId = ExportId(1);
    const KEYS: ExportId = ExportId(2);

    /// A disk, zones, and keys with values.
    struct World {
        dispatcher: Dispatcher,
        disks: MemoryDisks,
    }

    impl World {
        fn new() -> Self {
            let others = vec![("z", zones()), ("k", keys())];
            let (dispatcher, disks) = MemoryDisks::beside(&[("a", 8)], others, [8, 8, 8]);
            Self { dispatcher, disks }
        }

        fn piece(&mut self, bytes: usize) -> PoolPiece {
            self.dispatcher.pool.take(ClientId(0), bytes, Want::Share).expect("few are lent")
        }

        fn filled(&mut self, content: &[u8]) -> PoolPiece {
            let piece = self.piece(content.len());
            self.dispatcher.buffers.bytes_mut(piece.buffer, 0, content.len()).copy_from_slice(content);
            piece
        }

        /// A job, to its end.
        fn run(
            &mut self,
            export: ExportId,
            work: Work,
            block: u64,
            count: u32,
            piece: Option<PoolPiece>,
        ) -> Done {
            let owner = JobOwner { connection: 0, generation: 0, request: 0 };
            self.dispatcher.give(Job { owner, export, work, block, count, piece, beside: Vec::new() });
            loop {
                self.disks.take(&mut self.dispatcher);
                self.disks.carry_out(0, &mut self.dispatcher);
                if let Some(done) = self.dispatcher.poll_done() {
                    return done;
                }
            }
        }

        fn end(&mut self, done: Done) {
            done.into_pieces().for_each(|piece| self.dispatcher.pool.give_back(piece));
            assert_eq!((self.dispatcher.open_jobs(), self.dispatcher.pool.lent()), (0, 0));
        }

        fn ask(&mut self, op: KvOp, piece: Option<PoolPiece>) -> (Status, KvReply, Option<PoolPiece>) {
            let done = self.run(KEYS, Work::KeyValue(op), 0, 0, piece);
            let Answer::KeyValue(reply) = done.answer else {
                panic!("{:?} of a key-value target", done.answer)
            };
            assert_eq!(reply.status, done.status);
            (done.status, reply, done.job.piece)
        }
    }

    #[test]
    fn jobs_on_zones_reach_a_zoned_target_and_bring_what_it_answers() {
        let mut world = World::new();
        let piece = world.filled(&[7; 8192]);
        let done = world.run(ZONES, Work::Append { fua: true }, 64, 2, Some(piece));
        assert_eq!((done.status, done.bytes), (Status::SUCCESS, 8192));
        assert_eq!(done.answer, Answer::Zoned(ZonedAnswer::Appended { block: 64 }));
        world.end(done);
        let piece = world.piece(4096);
        let done = world.run(ZONES, Work::Read, 65, 1, Some(piece));
        let buffer = done.job.piece.as_ref().expect("it comes back").buffer;
        assert_eq!(world.dispatcher.buffers.bytes(buffer, 0, 4096), [7; 4096]);
        world.end(done);
        let piece = world.filled(&[9; 4096]);
        let done = world.run(ZONES, Work::Write { fua: false }, 65, 1, Some(piece));
        assert_eq!(
            (done.status, &done.answer),
            (Status::ZONE_INVALID_WRITE, &Answer::Zoned(ZonedAnswer::Done))
        );
        world.end(done);
        let finish = Work::ManageZones { action: ZoneAction::Finish, scope: ZoneScope::One };
        let done = world.run(ZONES, finish, 64, 0, None);
        assert_eq!(done.status, Status::SUCCESS);
        let piece = world.piece(4096);
        let done = world.run(ZONES, Work::ReportZones { only: Some(ZoneState::Full) }, 0, 3, Some(piece));
        let Answer::Zoned(ZonedAnswer::Reported { listed, matching }) = done.answer else {
            panic!("{:?} of a report", done.answer)
        };
        let zone = listed.get(&world.dispatcher.buffers, 0).expect("a descriptor");
        assert_eq!((listed.count, matching, zone.start, zone.state), (1, 1, 64, ZoneState::Full));
        world.end(done);
        let done = world.run(ZONES, Work::Flush, 0, 0, None);
        assert_eq!((done.status, done.bytes), (Status::SUCCESS, 0));
    }

    #[test]
    fn jobs_on_keys_reach_a_key_value_target_and_bring_its_whole_reply() {
        let mut world = World::new();
        let (key, durability) = (Key::inline(b"key").expect("short"), Durability::AtReply);
        let condition = StoreCondition::MustNotExist;
        let piece = world.filled(b"some value");
        let content = Content::Piece(piece.part(5, 5));
        let store = KvOp::Store { key, content, condition, durability };
        let (status, _, piece) = world.ask(store, Some(piece));
        assert_eq!(status, Status::SUCCESS);
        let (status, reply, piece) = world.ask(store, piece);
        assert_eq!((status, reply.refusal), (Status::KEY_EXISTS, Some(KvRefusal::KeyExists)));
        let piece = piece.expect("it comes back");
        let into = Content::Piece(piece.part(1, 3));
        let (_, reply, piece) = world.ask(KvOp::Retrieve { key, offset: 0, into }, Some(piece));
        assert_eq!(reply.answer, KvAnswer::Value { bytes: 5 }, "all of it");
        let piece = piece.expect("it comes back");
        assert_eq!(world.dispatcher.buffers.bytes(piece.buffer, 1, 3), b"val");
        world.dispatcher.pool.give_back(piece);
        let (status, ..) = world.ask(KvOp::Delete { key, absent: AbsentKey::Refused, durability }, None);
        assert_eq!(status, Status::SUCCESS);
        let (status, ..) = world.ask(KvOp::Exist { key }, None);
        assert_eq!(status, Status::KEY_DOES_NOT_EXIST);
        let (status, reply, _) = world.ask(KvOp::Stage(StageOp::Abort { stage: StageId(0) }), None);
        assert!(status == Status::COMMAND_SEQUENCE_ERROR && reply.refusal.is_some(), "{reply:?}");
        let done = world.run(KEYS, Work::Flush, 0, 0, None);
        world.end(done);
    }

    #[test]
    fn a_disk_beside_them_is_served_as_ever() {
        let mut world = World::new();
        let piece = world.filled(&[3; 512]);
        let done = world.run(ExportId(0), Work::Write { fua: false }, 2, 1, Some(piece));
        assert_eq!((done.status, &done.answer, done.bytes), (Status::SUCCESS, &Answer::Nothing, 512));
        assert_eq!(world.disks.disks[0][1024..1536], [3; 512]);
        world.end(done);
        let names = ["a", "z", "k", ""].map(|name| world.dispatcher.exports.find_block(name));
        assert_eq!(names, [Some(ExportId(0)), None, None, None]);
        let blocks: Vec<ExportId> = world.dispatcher.exports.blocks().map(|(id, _)| id).collect();
        assert_eq!(blocks, [ExportId(0)]);
    }
}
