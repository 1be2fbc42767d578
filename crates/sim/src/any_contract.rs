//! The contract of a target of any interface, for worlds whose targets are spoken to by several.
//!
//! It asks and judges by the contract of the target's own interface, and turns nothing but requests and replies. Worlds of one
//! interface do without. Deliberately not here: what is right; and what media may lose, which not every interface's contract
//! knows, so that no content is lost in these worlds.

use crate::block::BlockContract;
use crate::contract::{Answerer, Broken, Contract, Media, Room};
use crate::kv::KvInterface;
use crate::log::LogInterface;
use crate::model::judge::Judge;
use crate::table::TableInterface;
use crate::watched::Harmed;
use crate::wear::Promise;
use crate::zoned::ZonedInterface;
use ocssd_base::Nanos;
use ocssd_flash::FailedOp;
use ocssd_lightnvm::interface::{AnyReply, AnyRequest, AnyTarget, Interface, OfInterface};
use ocssd_lightnvm::{Buffers, Status, Target};
use std::cmp::Ordering;
use std::marker::PhantomData;

/// The contract of one target.
#[derive(Clone)]
pub(crate) enum AnyContract {
    Block(BlockContract),
    Zoned(Judge<ZonedInterface>),
    Log(Judge<LogInterface>),
    Table(Judge<TableInterface>),
    KeyValue(Judge<KvInterface>),
}

/// Does the same with whichever contract it is.
macro_rules! each {
    ($any:expr, $contract:ident => $call:expr) => {
        match $any {
            AnyContract::Block($contract) => $call,
            AnyContract::Zoned($contract) => $call,
            AnyContract::Log($contract) => $call,
            AnyContract::Table($contract) => $call,
            AnyContract::KeyValue($contract) => $call,
        }
    };
}

/// Why what belongs to one target is of one interface.
const OWN: &str = "a contract is of its target's interface";

/// A target, to a contract of its interface.
fn within<T: OfInterface + ?Sized>(any: &AnyTarget) -> &T {
    T::within(any).expect(OWN)
}

fn within_mut<T: OfInterface + ?Sized>(any: &mut AnyTarget) -> &mut T {
    T::within_mut(any).expect(OWN)
}

fn request<C: Contract<Target: OfInterface>>(any: &AnyRequest) -> Option<(u32, String)> {
    <C::Target as OfInterface>::request(any).map(C::request_in_words)
}

fn reply<C: Contract<Target: OfInterface>>(any: &AnyReply) -> Option<(u32, String)> {
    <C::Target as OfInterface>::reply(any).map(C::reply_in_words)
}

fn needed<C: Contract<Target: OfInterface>>(any: &AnyTarget) -> Option<u32> {
    <C::Target as OfInterface>::within(any).and_then(C::chunks_needed)
}

fn ask<C: Contract<Target: OfInterface>>(_: &C, request: <C::Target as Target>::Request) -> AnyRequest {
    <C::Target as OfInterface>::ask(request)
}

fn replied<C: Contract<Target: OfInterface>>(
    contract: &mut C,
    reply: &AnyReply,
    buffers: &mut Buffers,
    room: &dyn Fn() -> Room,
) -> Result<&'static str, Broken> {
    contract.replied(<C::Target as OfInterface>::reply(reply).expect(OWN), buffers, room)
}

/// Who answers requests of any interface, for one who asks in its own.
struct Turned<'a, T: ?Sized> {
    inner: &'a mut dyn Answerer<AnyRequest, AnyReply>,
    interface: PhantomData<fn(&T)>,
}

impl<T: OfInterface<Reply: Clone> + ?Sized> Answerer<T::Request, T::Reply> for Turned<'_, T> {
    fn buffers(&mut self) -> &mut Buffers {
        self.inner.buffers()
    }

    fn ask(&mut self, request: T::Request) -> Result<T::Reply, Broken> {
        let reply = self.inner.ask(T::ask(request))?;
        Ok(T::reply(&reply).expect(OWN).clone())
    }
}

fn observe<C: Contract<Target: OfInterface<Reply: Clone>>>(
    contract: &mut C,
    inner: &mut dyn Answerer<AnyRequest, AnyReply>,
) -> Result<(), Broken> {
    contract.observe(&mut Turned::<C::Target> { inner, interface: PhantomData })
}

impl Contract for AnyContract {
    type Target = AnyTarget;

    const KNOWS_DEAD_DRIVES: bool = false;

    fn mounted(&mut self, target: &AnyTarget, buffers: &mut Buffers, chunks: Ordering) -> Result<(), Broken> {
        each!(self, contract => contract.mounted(within(target), buffers, chunks))
    }

    fn draw(
        &mut self,
        draw: u64,
        now: Nanos,
        buffers: &mut Buffers,
        target: &mut AnyTarget,
    ) -> Option<AnyRequest> {
        each!(self, contract => {
            let request = contract.draw(draw, now, buffers, within_mut(target))?;
            Some(ask(contract, request))
        })
    }

    fn shutdown(&mut self, now: Nanos, buffers: &Buffers) -> AnyRequest {
        each!(self, contract => {
            let request = contract.shutdown(now, buffers);
            ask(contract, request)
        })
    }

    fn begin_audit(&mut self) {
        each!(self, contract => contract.begin_audit());
    }

    fn audit(&mut self, now: Nanos) -> Option<AnyRequest> {
        each!(self, contract => {
            let request = contract.audit(now)?;
            Some(ask(contract, request))
        })
    }

    fn replied(
        &mut self,
        reply: &AnyReply,
        buffers: &mut Buffers,
        room: &dyn Fn() -> Room,
    ) -> Result<&'static str, Broken> {
        each!(self, contract => replied(contract, reply, buffers, room))
    }

    fn end_audit(&mut self) -> Result<(), Broken> {
        each!(self, contract => contract.end_audit())
    }

    fn observe(&mut self, target: &mut dyn Answerer<AnyRequest, AnyReply>) -> Result<(), Broken> {
        each!(self, contract => observe(contract, target))
    }

    fn outstanding(&self) -> u32 {
        each!(self, contract => contract.outstanding())
    }

    fn oldest(&self) -> Option<Nanos> {
        each!(self, contract => contract.oldest())
    }

    fn power_cut(&mut self, media: &mut dyn Media) {
        each!(self, contract => contract.power_cut(media));
    }

    fn harmed(&mut self, harmed: &Harmed, media: &mut dyn Media) {
        each!(self, contract => contract.harmed(harmed, media));
    }

    fn command_failed(&mut self, op: FailedOp, status: Status) {
        each!(self, contract => contract.command_failed(op, status));
    }

    fn content_in_words(&self, content: &[u8]) -> String {
        each!(self, contract => contract.content_in_words(content))
    }

    fn request_in_words(any: &AnyRequest) -> (u32, String) {
        let words = match any {
            AnyRequest::Block(_) => request::<BlockContract>(any),
            AnyRequest::Zoned(_) => request::<Judge<ZonedInterface>>(any),
            AnyRequest::Log(_) => request::<Judge<LogInterface>>(any),
            AnyRequest::Table(_) => request::<Judge<TableInterface>>(any),
            AnyRequest::KeyValue(_) => request::<Judge<KvInterface>>(any),
        };
        words.expect(OWN)
    }

    fn reply_in_words(any: &AnyReply) -> (u32, String) {
        let words = match any {
            AnyReply::Block(_) => reply::<BlockContract>(any),
            AnyReply::Zoned(_) => reply::<Judge<ZonedInterface>>(any),
            AnyReply::Log(_) => reply::<Judge<LogInterface>>(any),
            AnyReply::Table(_) => reply::<Judge<TableInterface>>(any),
            AnyReply::KeyValue(_) => reply::<Judge<KvInterface>>(any),
        };
        words.expect(OWN)
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        each!(self, contract => contract.counts())
    }

    fn target_summary(&self, target: &AnyTarget) -> String {
        each!(self, contract => contract.target_summary(within(target)))
    }

    fn chunks_needed(target: &AnyTarget) -> Option<u32> {
        match target.interface() {
            Interface::Block => needed::<BlockContract>(target),
            Interface::Zoned => needed::<Judge<ZonedInterface>>(target),
            Interface::Log => needed::<Judge<LogInterface>>(target),
            Interface::Table => needed::<Judge<TableInterface>>(target),
            Interface::KeyValue => needed::<Judge<KvInterface>>(target),
        }
    }

    fn wear_promise(&self, target: &AnyTarget) -> Option<Promise> {
        each!(self, contract => contract.wear_promise(within(target)))
    }

    fn target_counts(&self, target: &AnyTarget) -> Vec<(&'static str, u64)> {
        each!(self, contract => contract.target_counts(within(target)))
    }
}
