//! One request after the other, each answered before the next is asked: how a contract looks at everything a target shows.
//!
//! Deliberately not here: what is asked, and what is right (`contract`).

use super::events::Events;
use super::instance::{Instance, OfTarget};
use super::{TURNS_OF_STEP_MAX, World};
use crate::contract::{Answerer, Broken, Contract};
use crate::journal::{Event, Journal};
use crate::watched::Watched;
use ocssd_engine::{Clock, Host, Requests, VirtualClock};
use ocssd_lightnvm::wrap::Check;
use ocssd_lightnvm::{Buffers, Target, TargetId};

/// The parts of a world that answer.
struct Asking<'a, C: Contract> {
    host: &'a mut Host<Check<Watched>, VirtualClock, C::Target>,
    requests: &'a mut Requests<C::Target>,
    /// Whose they are; of the others nothing is outstanding.
    target: TargetId,
    events: &'a mut u64,
    journal: &'a mut Journal,
}

impl<C: Contract> Asking<'_, C> {
    /// One turn; false if nothing happened.
    fn turn(&mut self) -> bool {
        let before = *self.events;
        let mut events = Events { count: self.events, cut_at: u64::MAX, journal: self.journal };
        let source = &mut OfTarget { requests: self.requests, target: self.target };
        self.host.step_observed(source, &mut events);
        *self.events > before
    }
}

impl<C: Contract> Answerer<<C::Target as Target>::Request, <C::Target as Target>::Reply> for Asking<'_, C> {
    fn buffers(&mut self) -> &mut Buffers {
        self.host.buffers_mut()
    }

    fn ask(
        &mut self,
        request: <C::Target as Target>::Request,
    ) -> Result<<C::Target as Target>::Reply, Broken> {
        let (number, what) = C::request_in_words(&request);
        self.journal.note(self.host.clock().now(), || Event::Request { number, what: what.clone() });
        self.requests.push(request);
        for _ in 0..TURNS_OF_STEP_MAX {
            let any = self.turn();
            if let Some(reply) = self.requests.take_replies().pop() {
                let now = self.host.clock().now();
                let words = || C::reply_in_words(&reply);
                self.journal.note(now, || Event::Reply { number: words().0, what: words().1 });
                return Ok(reply);
            }
            if any {
                continue;
            }
            let Some(next) = self.host.next_deadline() else { break };
            self.host.clock_mut().wait_until(next);
        }
        Err(Broken::new(
            "audit answered",
            "every request of an audit is answered",
            format!("{what} never will be"),
        ))
    }
}

impl<C: Contract> World<C> {
    /// The contract of a target looks at everything that shows.
    pub(super) fn observe(&mut self, index: usize) -> Result<(), Broken> {
        let Self { host, instances, events, journal, .. } = self;
        let Instance { contract, requests, target, .. } = &mut instances[index];
        let target = target.expect("a target is mounted that is looked at");
        let observed = contract.observe(&mut Asking::<C> { host, requests, target, events, journal });
        self.tell_harm();
        self.tell_failures();
        observed
    }
}
