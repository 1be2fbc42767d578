//! What the host's processors do for a request, whatever its interface: this is all that the model knows of interfaces.
//!
//! What FAST'17 measured of blocks is taken for all of them: nobody measured what a page store, tables, or keys cost. Deliberately
//! not here: what it costs (`costs`), and the targets that the model stands for (`as_target`).

use super::HostCpu;
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest, BlockTarget};
use ocssd_lightnvm::interface::key_value::{BatchChange, KvOp, KvReply, KvRequest, KvTarget};
use ocssd_lightnvm::interface::log_structured::{LogOp, LogReply, LogRequest, LogTarget};
use ocssd_lightnvm::interface::table::{TableOp, TableReply, TableRequest, TableTarget};
use ocssd_lightnvm::interface::zoned::{ZonedOp, ZonedReply, ZonedRequest, ZonedTarget};
use ocssd_lightnvm::interface::{Content, Durability, Piece, StageOp};
use ocssd_lightnvm::{BufId, Buffers, Tag, Target};
use std::fmt::Debug;

/// What a thread does for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Looks something up, and has it copied to its memory.
    Read,
    /// Finds room, and copies content from its memory.
    Write {
        /// It is answered once it has room, so it may try for that again and again.
        may_spin: bool,
    },
    /// Neither.
    Other,
    /// The last request of all.
    Shutdown,
}

/// A request as the processors see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// What is done for it.
    pub work: Work,
    /// Bytes it is about.
    pub bytes: u64,
    /// It changes what is stored.
    pub is_change: bool,
}

impl Asked {
    const fn read(bytes: u64) -> Self {
        Self { work: Work::Read, bytes, is_change: false }
    }

    const fn write(bytes: u64, durability: Durability) -> Self {
        let may_spin = matches!(durability, Durability::AtFlush);
        Self { work: Work::Write { may_spin }, bytes, is_change: true }
    }

    const fn other(bytes: u64, is_change: bool) -> Self {
        Self { work: Work::Other, bytes, is_change }
    }

    const SHUTDOWN: Self = Self { work: Work::Shutdown, bytes: 0, is_change: false };
}

/// What must reach a target in the order the host made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ordered {
    /// Nothing.
    Nothing,
    /// Changes.
    Changes,
    /// Everything: what is asked after a change may rely on it before that is answered.
    All,
}

/// The targets of an interface, as far as processors before them must know it.
pub trait Hosted: Target<Reply: Copy + Debug> {
    /// The target may read through buffers of its own, because what is asked for begins and ends at any byte. Its reads are then
    /// prepared by the threads that ask as long as there are any, and else by the garbage collector's.
    const READS_ANY_BYTES: bool;

    /// What a request is to the processors. Cost: a look at each entry of a batch.
    fn asked(&self, request: &Self::Request, buffers: &Buffers) -> Asked;

    /// The host's name for a request.
    fn tag(request: &Self::Request) -> Tag;

    /// The request under another name.
    fn with_tag(request: Self::Request, tag: Tag) -> Self::Request;

    /// The name of the request that a reply answers.
    fn reply_tag(reply: &Self::Reply) -> Tag;

    /// The reply to a request of another name.
    fn reply_with_tag(reply: Self::Reply, tag: Tag) -> Self::Reply;

    /// Whether the request was carried out.
    fn is_success(reply: &Self::Reply) -> bool;

    /// Tells of each buffer with content of the request, once for each piece.
    fn tell_buffers(request: &Self::Request, buffers: &Buffers, tell: &mut dyn FnMut(BufId));

    /// What is ordered.
    fn ordered(&self) -> Ordered {
        Ordered::All
    }

    /// A target on processors in place of one without.
    fn boxed(on_processors: HostCpu<Self>) -> Box<Self>;
}

/// Writes what is alike in all interfaces.
macro_rules! alike {
    ($request:ident, $reply:ident) => {
        fn boxed(on_processors: HostCpu<Self>) -> Box<Self> {
            Box::new(on_processors)
        }

        fn tag(request: &$request) -> Tag {
            request.tag
        }

        fn with_tag(request: $request, tag: Tag) -> $request {
            $request { tag, ..request }
        }

        fn reply_tag(reply: &$reply) -> Tag {
            reply.tag
        }

        fn reply_with_tag(reply: $reply, tag: Tag) -> $reply {
            $reply { tag, ..reply }
        }

        fn is_success(reply: &$reply) -> bool {
            reply.status.is_success()
        }
    };
}

impl Hosted for dyn BlockTarget {
    const READS_ANY_BYTES: bool = false;

    alike!(BlockRequest, BlockReply);

    fn asked(&self, request: &BlockRequest, _buffers: &Buffers) -> Asked {
        let bytes = u64::from(request.count) * u64::from(self.block_bytes());
        match request.op {
            BlockOp::Read => Asked::read(bytes),
            BlockOp::Write { fua: true } => Asked::write(bytes, Durability::AtReply),
            BlockOp::Write { fua: false } => Asked::write(bytes, Durability::AtFlush),
            BlockOp::Discard | BlockOp::WriteZeroes | BlockOp::ResetZone => Asked::other(bytes, true),
            BlockOp::Flush => Asked::other(bytes, false),
            BlockOp::Shutdown => Asked::SHUTDOWN,
        }
    }

    fn tell_buffers(request: &BlockRequest, _buffers: &Buffers, tell: &mut dyn FnMut(BufId)) {
        request.buffer.into_iter().for_each(tell);
    }

    fn ordered(&self) -> Ordered {
        if self.zones().is_some() { Ordered::Changes } else { Ordered::Nothing }
    }
}

impl Hosted for dyn ZonedTarget {
    const READS_ANY_BYTES: bool = false;

    alike!(ZonedRequest, ZonedReply);

    fn asked(&self, request: &ZonedRequest, _buffers: &Buffers) -> Asked {
        let bytes = u64::from(request.count) * u64::from(self.zone_geometry().block_bytes);
        match request.op {
            ZonedOp::Read => Asked::read(bytes),
            ZonedOp::Write { durability } | ZonedOp::Append { durability } => Asked::write(bytes, durability),
            ZonedOp::Manage { .. } | ZonedOp::SetExtension | ZonedOp::OpenWithArea | ZonedOp::CommitArea => {
                Asked::other(0, true)
            }
            // Their count is of descriptors.
            ZonedOp::Report { .. } | ZonedOp::ReportExtended { .. } | ZonedOp::Flush => {
                Asked::other(0, false)
            }
            ZonedOp::Shutdown => Asked::SHUTDOWN,
        }
    }

    fn tell_buffers(request: &ZonedRequest, _buffers: &Buffers, tell: &mut dyn FnMut(BufId)) {
        request.buffer.into_iter().for_each(tell);
    }
}

impl Hosted for dyn LogTarget {
    const READS_ANY_BYTES: bool = true;

    alike!(LogRequest, LogReply);

    fn asked(&self, request: &LogRequest, _buffers: &Buffers) -> Asked {
        match request.op {
            LogOp::Read { into, .. } => Asked::read(into.bytes().into()),
            LogOp::Flush { content, durability, .. } => Asked::write(unstaged(&content), durability),
            LogOp::Stage(stage) => staged(&stage),
            LogOp::OpenSession { .. } | LogOp::CloseSession { .. } => Asked::other(0, true),
            LogOp::Stat | LogOp::Sync => Asked::other(0, false),
            LogOp::Shutdown => Asked::SHUTDOWN,
        }
    }

    fn tell_buffers(request: &LogRequest, buffers: &Buffers, tell: &mut dyn FnMut(BufId)) {
        match request.op {
            LogOp::Read { into: content, .. }
            | LogOp::Flush { content, .. }
            | LogOp::Stage(StageOp::Append { content, .. }) => tell_content(&content, buffers, tell),
            _ => {}
        }
    }
}

impl Hosted for dyn TableTarget {
    const READS_ANY_BYTES: bool = true;

    alike!(TableRequest, TableReply);

    fn asked(&self, request: &TableRequest, _buffers: &Buffers) -> Asked {
        match request.op {
            TableOp::Read { into, .. } | TableOp::Attributes { into, .. } => Asked::read(into.bytes().into()),
            TableOp::Append { content, durability, .. } => Asked::write(content.bytes().into(), durability),
            TableOp::Create { .. }
            | TableOp::Publish { .. }
            | TableOp::Delete { .. }
            | TableOp::Edit { .. } => Asked::other(0, true),
            TableOp::Sync { .. } | TableOp::List { .. } | TableOp::Flush => Asked::other(0, false),
            TableOp::Shutdown => Asked::SHUTDOWN,
        }
    }

    fn tell_buffers(request: &TableRequest, buffers: &Buffers, tell: &mut dyn FnMut(BufId)) {
        match request.op {
            TableOp::Read { into: content, .. } | TableOp::Append { content, .. } => {
                tell_content(&content, buffers, tell);
            }
            _ => {}
        }
    }
}

impl Hosted for dyn KvTarget {
    const READS_ANY_BYTES: bool = true;

    alike!(KvRequest, KvReply);

    fn asked(&self, request: &KvRequest, buffers: &Buffers) -> Asked {
        match request.op {
            KvOp::Store { key, content, durability, .. } => {
                Asked::write(u64::from(key.bytes()) + unstaged(&content), durability)
            }
            KvOp::Batch { entries, durability } if entries.lies_within(buffers) => {
                let changes = entries.entries(buffers).flatten().map(|entry| {
                    let value = values(&entry.change).map_or(0, |value| value.bytes);
                    u64::from(entry.key.bytes()) + u64::from(value)
                });
                Asked::write(changes.sum(), durability)
            }
            // It is refused.
            KvOp::Batch { durability, .. } => Asked::write(0, durability),
            KvOp::Retrieve { into, .. } | KvOp::List { into, .. } => Asked::read(into.bytes().into()),
            KvOp::Exist { .. } => Asked::read(0),
            KvOp::Stage(stage) => staged(&stage),
            KvOp::Delete { .. } => Asked::other(0, true),
            KvOp::Flush => Asked::other(0, false),
            KvOp::Shutdown => Asked::SHUTDOWN,
        }
    }

    fn tell_buffers(request: &KvRequest, buffers: &Buffers, tell: &mut dyn FnMut(BufId)) {
        match request.op {
            KvOp::Store { content, .. }
            | KvOp::Retrieve { into: content, .. }
            | KvOp::List { into: content, .. }
            | KvOp::Stage(StageOp::Append { content, .. }) => tell_content(&content, buffers, tell),
            KvOp::Batch { entries, .. } if entries.lies_within(buffers) => {
                let changes = entries.entries(buffers).flatten();
                changes.filter_map(|entry| values(&entry.change)).for_each(|value| tell(value.buffer));
            }
            _ => {}
        }
    }
}

/// The value of an entry of a batch, if it has one.
const fn values(change: &BatchChange) -> Option<Piece> {
    match change {
        BatchChange::Store { value, .. } => *value,
        BatchChange::Delete { .. } => None,
    }
}

/// Bytes that are copied from the host's memory: what was staged has been.
fn unstaged(content: &Content) -> u64 {
    if matches!(content, Content::Staged { .. }) { 0 } else { content.bytes().into() }
}

fn staged(stage: &StageOp) -> Asked {
    match stage {
        StageOp::Append { content, .. } => Asked::write(content.bytes().into(), Durability::AtFlush),
        StageOp::Open { .. } | StageOp::Abort { .. } => Asked::other(0, true),
    }
}

/// Tells of the buffers of content that lies where it says; other content is refused, so nothing is done with its buffers.
fn tell_content(content: &Content, buffers: &Buffers, tell: &mut dyn FnMut(BufId)) {
    match content {
        Content::Piece(piece) => tell(piece.buffer),
        Content::Pieces { list, .. } if list.lies_within(buffers) => {
            list.entries(buffers).flatten().for_each(|piece: Piece| tell(piece.buffer));
        }
        Content::Empty | Content::Pieces { .. } | Content::Staged { .. } => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_lightnvm::interface::List;
    use ocssd_lightnvm::interface::key_value::{BatchEntry, Key, StoreCondition};
    use ocssd_lightnvm::{Geometry, Payload, PayloadFormat};

    fn pool() -> Buffers {
        Buffers::new(PayloadFormat::new(Payload::Bytes, &Geometry::example(1, 1, 4, 24, 24)))
    }

    /// The buffers that a request with keys tells of.
    fn told(op: KvOp, buffers: &Buffers) -> Vec<BufId> {
        let mut told = Vec::new();
        <dyn KvTarget>::tell_buffers(&KvRequest { tag: Tag(1), op }, buffers, &mut |buffer| {
            told.push(buffer)
        });
        told
    }

    #[test]
    fn every_buffer_with_content_is_told_and_none_of_refused_content() {
        let mut buffers = pool();
        let (one, other, list) = (buffers.take_whole(1), buffers.take_whole(1), buffers.take_whole(1));
        let piece = |buffer| Piece { buffer, first_byte: 8, bytes: 100 };
        let key = Key::inline(b"key").expect("short");
        let store = |content| KvOp::Store {
            key,
            content,
            condition: StoreCondition::Always,
            durability: Durability::AtFlush,
        };
        let pieces = List::write(&mut buffers, list, &[piece(one), piece(other), piece(one)]);
        assert_eq!(told(store(Content::Pieces { list: pieces, bytes: 300 }), &buffers), [one, other, one]);
        let beyond = List::new(list, 1 << 20);
        assert_eq!(told(store(Content::Pieces { list: beyond, bytes: 300 }), &buffers), []);
        assert_eq!(told(store(Content::Piece(piece(other))), &buffers), [other]);
        assert_eq!(told(KvOp::Flush, &buffers), []);
        let entry = |value| BatchEntry {
            key,
            change: BatchChange::Store { value, condition: StoreCondition::Always },
        };
        let entries = List::write(&mut buffers, list, &[entry(Some(piece(other))), entry(None)]);
        assert_eq!(told(KvOp::Batch { entries, durability: Durability::AtFlush }, &buffers), [other]);
    }

    #[test]
    fn what_was_staged_is_copied_once_and_a_durable_write_does_not_spin() {
        let piece = Content::Piece(Piece { buffer: BufId(0), first_byte: 0, bytes: 5_000 });
        let stage = ocssd_lightnvm::interface::StageId(0);
        assert_eq!((unstaged(&piece), unstaged(&Content::Staged { stage, bytes: 5_000 })), (5_000, 0));
        let append = staged(&StageOp::Append { stage, offset: 0, content: piece });
        assert_eq!((append.work, append.bytes), (Work::Write { may_spin: true }, 5_000));
        let open = staged(&StageOp::Open { stage, bytes: 5_000 });
        assert_eq!((open.work, open.bytes, open.is_change), (Work::Other, 0, true));
        assert_eq!(Asked::write(1, Durability::AtReply).work, Work::Write { may_spin: false });
    }
}
