//! A target of any interface, for a host that has targets of several at once: a server.
//!
//! [`AnyTarget`] is a target whose requests and replies are enums over the interfaces. The target within works on the
//! buffers, the room and the sink of commands of whoever calls, so that only its replies are touched on their way. Deliberately
//! not here: turning a request of one interface into one of another; a request goes to a target of its own interface.

use super::key_value::{KvOp, KvReply, KvRequest, KvTarget};
use super::log_structured::{LogOp, LogReply, LogRequest, LogTarget};
use super::table::{TableOp, TableReply, TableRequest, TableTarget};
use super::zoned::{ZonedOp, ZonedReply, ZonedRequest, ZonedTarget};
use crate::block::{BlockOp, BlockReply, BlockRequest, BlockTarget};
use crate::command::{Completion, Tag};
use crate::counter::Counter;
use crate::out::Out;
use crate::target::{Admission, Target};
use ocssd_base::Nanos;
use std::fmt;

/// A host interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Interface {
    /// [`crate::block`].
    Block,
    /// [`super::zoned`].
    Zoned,
    /// [`super::log_structured`].
    Log,
    /// [`super::table`].
    Table,
    /// [`super::key_value`].
    KeyValue,
}

impl Interface {
    /// What it speaks of, in words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Block => "blocks",
            Self::Zoned => "zones",
            Self::Log => "log-structured pages",
            Self::Table => "tables",
            Self::KeyValue => "keys and values",
        }
    }
}

impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

/// A request of any interface.
#[derive(Clone, Copy, Debug)]
pub enum AnyRequest {
    /// Of blocks.
    Block(BlockRequest),
    /// Of zones.
    Zoned(ZonedRequest),
    /// Of log-structured pages.
    Log(LogRequest),
    /// Of tables.
    Table(TableRequest),
    /// Of keys and values.
    KeyValue(KvRequest),
}

impl AnyRequest {
    /// The host's name for it.
    #[must_use]
    pub const fn tag(&self) -> Tag {
        match self {
            Self::Block(request) => request.tag,
            Self::Zoned(request) => request.tag,
            Self::Log(request) => request.tag,
            Self::Table(request) => request.tag,
            Self::KeyValue(request) => request.tag,
        }
    }

    /// Gives it another name.
    pub const fn set_tag(&mut self, tag: Tag) {
        match self {
            Self::Block(request) => request.tag = tag,
            Self::Zoned(request) => request.tag = tag,
            Self::Log(request) => request.tag = tag,
            Self::Table(request) => request.tag = tag,
            Self::KeyValue(request) => request.tag = tag,
        }
    }

    /// Everything answered before becomes durable.
    #[must_use]
    pub const fn flush(interface: Interface, tag: Tag) -> Self {
        match interface {
            Interface::Block => Self::without_blocks(BlockOp::Flush, tag),
            Interface::Zoned => Self::without_zones(ZonedOp::Flush, tag),
            Interface::Log => Self::Log(LogRequest { tag, op: LogOp::Sync }),
            Interface::Table => Self::Table(TableRequest { tag, op: TableOp::Flush }),
            Interface::KeyValue => Self::KeyValue(KvRequest { tag, op: KvOp::Flush }),
        }
    }

    /// The last request: the target can be left.
    #[must_use]
    pub const fn shutdown(interface: Interface, tag: Tag) -> Self {
        match interface {
            Interface::Block => Self::without_blocks(BlockOp::Shutdown, tag),
            Interface::Zoned => Self::without_zones(ZonedOp::Shutdown, tag),
            Interface::Log => Self::Log(LogRequest { tag, op: LogOp::Shutdown }),
            Interface::Table => Self::Table(TableRequest { tag, op: TableOp::Shutdown }),
            Interface::KeyValue => Self::KeyValue(KvRequest { tag, op: KvOp::Shutdown }),
        }
    }

    const fn without_blocks(op: BlockOp, tag: Tag) -> Self {
        Self::Block(BlockRequest { tag, op, block: 0, count: 0, buffer: None })
    }

    const fn without_zones(op: ZonedOp, tag: Tag) -> Self {
        Self::Zoned(ZonedRequest { tag, op, block: 0, count: 0, buffer: None })
    }
}

/// A reply of any interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnyReply {
    /// Of blocks.
    Block(BlockReply),
    /// Of zones.
    Zoned(ZonedReply),
    /// Of log-structured pages.
    Log(LogReply),
    /// Of tables.
    Table(TableReply),
    /// Of keys and values.
    KeyValue(KvReply),
}

impl AnyReply {
    /// The request's tag.
    #[must_use]
    pub const fn tag(&self) -> Tag {
        match self {
            Self::Block(reply) => reply.tag,
            Self::Zoned(reply) => reply.tag,
            Self::Log(reply) => reply.tag,
            Self::Table(reply) => reply.tag,
            Self::KeyValue(reply) => reply.tag,
        }
    }
}

/// A target with the sinks it is called with: they are empty but while it is called.
pub struct Member<T: Target + ?Sized> {
    target: Box<T>,
    below: Out<T::Reply>,
}

impl<T: Target<Reply: Into<AnyReply>> + ?Sized> Member<T> {
    const fn new(target: Box<T>) -> Self {
        Self { target, below: Out::below() }
    }

    /// Calls the target with what `out` has, and passes its replies on.
    #[inline(always)]
    fn call<R>(&mut self, out: &mut Out<AnyReply>, call: impl FnOnce(&mut T, &mut Out<T::Reply>) -> R) -> R {
        let Self { target, below } = self;
        let result = out.pass(below, |below| call(target, below));
        below.replies_mut().0.drain(..).for_each(|reply| out.reply(reply.into()));
        result
    }
}

/// A target of any interface.
pub enum AnyTarget {
    /// Of blocks.
    Block(Member<dyn BlockTarget>),
    /// Of zones.
    Zoned(Member<dyn ZonedTarget>),
    /// Of log-structured pages.
    Log(Member<dyn LogTarget>),
    /// Of tables.
    Table(Member<dyn TableTarget>),
    /// Of keys and values.
    KeyValue(Member<dyn KvTarget>),
}

/// The targets of one interface among those of any: their requests, their replies, and they themselves.
pub trait OfInterface: Target {
    /// The target within, if it is of this interface.
    fn within(any: &AnyTarget) -> Option<&Self>;

    /// As [`Self::within`], to be changed.
    fn within_mut(any: &mut AnyTarget) -> Option<&mut Self>;

    /// The request, if it is to a target of this interface.
    fn request(any: &AnyRequest) -> Option<&Self::Request>;

    /// The reply, if it is from a target of this interface.
    fn reply(any: &AnyReply) -> Option<&Self::Reply>;

    /// A request to a target of any interface.
    fn ask(request: Self::Request) -> AnyRequest;
}

/// Writes the conversions of one interface, and its place among all.
macro_rules! of_interface {
    ($name:ident, $target:ident, $request:ident, $reply:ident) => {
        impl From<$reply> for AnyReply {
            #[inline(always)]
            fn from(reply: $reply) -> Self {
                Self::$name(reply)
            }
        }

        impl From<Box<dyn $target>> for AnyTarget {
            fn from(target: Box<dyn $target>) -> Self {
                Self::$name(Member::new(target))
            }
        }

        impl OfInterface for dyn $target {
            fn within(any: &AnyTarget) -> Option<&Self> {
                if let AnyTarget::$name(member) = any { Some(member.target.as_ref()) } else { None }
            }

            fn within_mut(any: &mut AnyTarget) -> Option<&mut Self> {
                if let AnyTarget::$name(member) = any { Some(member.target.as_mut()) } else { None }
            }

            fn request(any: &AnyRequest) -> Option<&$request> {
                if let AnyRequest::$name(request) = any { Some(request) } else { None }
            }

            fn reply(any: &AnyReply) -> Option<&$reply> {
                if let AnyReply::$name(reply) = any { Some(reply) } else { None }
            }

            fn ask(request: $request) -> AnyRequest {
                AnyRequest::$name(request)
            }
        }
    };
}

of_interface!(Block, BlockTarget, BlockRequest, BlockReply);
of_interface!(Zoned, ZonedTarget, ZonedRequest, ZonedReply);
of_interface!(Log, LogTarget, LogRequest, LogReply);
of_interface!(Table, TableTarget, TableRequest, TableReply);
of_interface!(KeyValue, KvTarget, KvRequest, KvReply);

/// The same for the target within, whatever its interface.
macro_rules! within {
    ($any:expr, $member:ident => $call:expr) => {
        match $any {
            AnyTarget::Block($member) => $call,
            AnyTarget::Zoned($member) => $call,
            AnyTarget::Log($member) => $call,
            AnyTarget::Table($member) => $call,
            AnyTarget::KeyValue($member) => $call,
        }
    };
}

impl AnyTarget {
    /// Which interface it has.
    #[must_use]
    pub const fn interface(&self) -> Interface {
        match self {
            Self::Block(_) => Interface::Block,
            Self::Zoned(_) => Interface::Zoned,
            Self::Log(_) => Interface::Log,
            Self::Table(_) => Interface::Table,
            Self::KeyValue(_) => Interface::KeyValue,
        }
    }

    /// The target within, if it is one of blocks, for a host that has no others.
    #[must_use]
    pub fn into_block(self) -> Option<Box<dyn BlockTarget>> {
        if let Self::Block(member) = self { Some(member.target) } else { None }
    }

    /// The target within, if it is one of blocks.
    #[must_use]
    pub fn block(&self) -> Option<&dyn BlockTarget> {
        if let Self::Block(member) = self { Some(member.target.as_ref()) } else { None }
    }

    /// The target within, if it is one of blocks, for its transactions.
    pub fn block_mut(&mut self) -> Option<&mut dyn BlockTarget> {
        if let Self::Block(member) = self { Some(member.target.as_mut()) } else { None }
    }

    /// The target within, if it is one of zones.
    #[must_use]
    pub fn zoned(&self) -> Option<&dyn ZonedTarget> {
        if let Self::Zoned(member) = self { Some(member.target.as_ref()) } else { None }
    }

    /// The target within, if it is one of zones, to take what it has to tell.
    pub fn zoned_mut(&mut self) -> Option<&mut dyn ZonedTarget> {
        if let Self::Zoned(member) = self { Some(member.target.as_mut()) } else { None }
    }

    /// The target within, if it is one of log-structured pages.
    #[must_use]
    pub fn log(&self) -> Option<&dyn LogTarget> {
        if let Self::Log(member) = self { Some(member.target.as_ref()) } else { None }
    }

    /// The target within, if it is one of tables.
    #[must_use]
    pub fn table(&self) -> Option<&dyn TableTarget> {
        if let Self::Table(member) = self { Some(member.target.as_ref()) } else { None }
    }

    /// The target within, if it is one of keys and values.
    #[must_use]
    pub fn key_value(&self) -> Option<&dyn KvTarget> {
        if let Self::KeyValue(member) = self { Some(member.target.as_ref()) } else { None }
    }
}

impl Target for AnyTarget {
    type Request = AnyRequest;
    type Reply = AnyReply;

    /// # Panics
    /// If the request is of another interface.
    fn submit(&mut self, now: Nanos, request: &AnyRequest, out: &mut Out<AnyReply>) -> Admission {
        match (self, request) {
            (Self::Block(member), AnyRequest::Block(request)) => {
                member.call(out, |target, below| target.submit(now, request, below))
            }
            (Self::Zoned(member), AnyRequest::Zoned(request)) => {
                member.call(out, |target, below| target.submit(now, request, below))
            }
            (Self::Log(member), AnyRequest::Log(request)) => {
                member.call(out, |target, below| target.submit(now, request, below))
            }
            (Self::Table(member), AnyRequest::Table(request)) => {
                member.call(out, |target, below| target.submit(now, request, below))
            }
            (Self::KeyValue(member), AnyRequest::KeyValue(request)) => {
                member.call(out, |target, below| target.submit(now, request, below))
            }
            (target, request) => panic!("a target of {} was asked {request:?}", target.interface()),
        }
    }

    fn on_completion(&mut self, now: Nanos, completion: Completion, out: &mut Out<AnyReply>) {
        within!(self, member => {
            member.call(out, |target, below| target.on_completion(now, completion, below));
        });
    }

    fn on_deadline(&mut self, now: Nanos, out: &mut Out<AnyReply>) {
        within!(self, member => member.call(out, |target, below| target.on_deadline(now, below)));
    }

    fn advance(&mut self, now: Nanos, out: &mut Out<AnyReply>) {
        within!(self, member => member.call(out, |target, below| target.advance(now, below)));
    }

    fn deadline(&self) -> Option<Nanos> {
        within!(self, member => member.target.deadline())
    }

    fn has_deadlines(&self) -> bool {
        within!(self, member => member.target.has_deadlines())
    }

    fn prefetch(&self, blocks: &[u64]) {
        within!(self, member => member.target.prefetch(blocks));
    }

    fn prefetches(&self) -> bool {
        within!(self, member => member.target.prefetches())
    }

    fn check(&self) {
        within!(self, member => {
            assert_eq!(member.below.reply_count(), 0, "a reply was left below");
            assert!(member.below.commands().is_empty(), "a command was left below");
            member.target.check();
        });
    }

    fn counters(&self) -> Vec<Counter> {
        within!(self, member => member.target.counters())
    }

    fn summary(&self) -> String {
        within!(self, member => member.target.summary())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffers::{Buffers, Payload, PayloadFormat};
    use crate::command::{Addresses, Command, Op, PlaneMode};
    use crate::geometry::Geometry;
    use crate::interface::StageLimits;
    use crate::interface::key_value::{KvAnswer, KvLimits, ListOrder};

    /// Answers every second request, and gives a command with a buffer of its own for each if there is room.
    #[derive(Default)]
    struct Echo {
        asked: u32,
    }

    impl Target for Echo {
        type Request = KvRequest;
        type Reply = KvReply;

        fn submit(&mut self, _now: Nanos, request: &KvRequest, out: &mut Out<KvReply>) -> Admission {
            self.asked += 1;
            if !out.has_room() {
                return Admission::Full;
            }
            let buffer = Some(out.buffers.take(1));
            let (addresses, plane_mode) = (Addresses::None, PlaneMode::Single);
            let op = Op::Flush;
            out.command(Command {
                tag: request.tag,
                op,
                addresses,
                buffer,
                buffer_first: 0,
                oob: false,
                plane_mode,
            });
            if self.asked.is_multiple_of(2) {
                out.reply(KvReply::success(request.tag, KvAnswer::Done));
            }
            Admission::Taken
        }

        fn on_completion(&mut self, _now: Nanos, completion: Completion, out: &mut Out<KvReply>) {
            out.reply(KvReply::success(completion.tag, KvAnswer::Value { bytes: 7 }));
        }

        fn has_deadlines(&self) -> bool {
            false
        }

        fn advance(&mut self, _now: Nanos, out: &mut Out<KvReply>) {
            assert!(out.commands().is_empty(), "commands were taken before");
        }

        fn check(&self) {
            assert!(self.asked < 100, "asked {} times", self.asked);
        }
    }

    impl KvTarget for Echo {
        fn limits(&self) -> KvLimits {
            KvLimits {
                key_bytes_max: 16,
                value_bytes_max: 1,
                batch_entries_max: 1,
                capacity_bytes: 1,
                list_order: ListOrder::Bytewise,
                stages: StageLimits { stages_max: 0, bytes_max: 0 },
            }
        }

        fn used_bytes(&self) -> u64 {
            0
        }
    }

    fn out(room: usize) -> Out<AnyReply> {
        let geometry = Geometry::example(1, 1, 4, 24, 24);
        Out::new(Buffers::new(PayloadFormat::new(Payload::Stamp, &geometry)), room)
    }

    fn echo() -> AnyTarget {
        AnyTarget::from(Box::<Echo>::default() as Box<dyn KvTarget>)
    }

    #[test]
    fn commands_and_buffers_are_the_callers_and_replies_come_wrapped() {
        let (mut target, mut out) = (echo(), out(2));
        let ask = |tag| AnyRequest::flush(Interface::KeyValue, Tag(tag));
        assert!(target.submit(Nanos::ZERO, &ask(5), &mut out).is_taken());
        assert!(target.submit(Nanos::ZERO, &ask(6), &mut out).is_taken());
        assert!(!target.submit(Nanos::ZERO, &ask(7), &mut out).is_taken(), "the room is the caller's");
        let tags: Vec<Tag> = out.commands().iter().map(|command| command.tag).collect();
        assert_eq!((tags, out.buffers.in_use()), (vec![Tag(5), Tag(6)], 2));
        out.commands_mut().0.clear();
        target.on_completion(Nanos::ZERO, Completion::success(Tag(5)), &mut out);
        target.advance(Nanos::ZERO, &mut out);
        let value = KvReply::success(Tag(5), KvAnswer::Value { bytes: 7 });
        let replies = [KvReply::success(Tag(6), KvAnswer::Done), value].map(AnyReply::KeyValue);
        assert_eq!(*out.replies_mut().0, replies);
        assert_eq!(replies.map(|reply| reply.tag()), [Tag(6), Tag(5)]);
        target.check();
    }

    #[test]
    fn a_target_says_which_interface_it_has() {
        let target = echo();
        assert_eq!(target.interface(), Interface::KeyValue);
        assert!(target.key_value().is_some() && target.block().is_none() && target.zoned().is_none());
        assert!(target.log().is_none() && target.table().is_none());
        assert_eq!((target.has_deadlines(), target.deadline(), target.prefetches()), (false, None, false));
    }

    #[test]
    fn every_interface_has_a_flush_and_a_last_request() {
        let all = [Interface::Block, Interface::Zoned, Interface::Log, Interface::Table, Interface::KeyValue];
        for interface in all {
            let requests = [AnyRequest::flush(interface, Tag(3)), AnyRequest::shutdown(interface, Tag(3))];
            assert_eq!(requests.map(|request| request.tag()), [Tag(3); 2], "{interface}");
            assert_ne!(format!("{:?}", requests[0]), format!("{:?}", requests[1]), "{interface}");
        }
    }
}
