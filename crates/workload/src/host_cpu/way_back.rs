//! From the inner target's reply to the host's: the thread notices, is woken, or never waited, and finishes on its core.
//!
//! Deliberately not here: the way to the inner target (`target`).

use super::HostCpu;
use super::hosted::Hosted;
use super::target::{Event, index};
use super::thread::Step;
use super::threads::ThreadNumber;
use ocssd_base::Nanos;
use ocssd_lightnvm::Buffers;

impl<T: Hosted + ?Sized> HostCpu<T> {
    /// Takes the inner target's replies; true if there was one.
    pub(super) fn take_replies(&mut self, now: Nanos) -> bool {
        let mut replies = std::mem::take(self.inner_out.replies_mut().0);
        let any = !replies.is_empty();
        for reply in replies.drain(..) {
            self.is_blocked = false;
            self.answered(now, ThreadNumber(T::reply_tag(&reply).0), reply);
        }
        *self.inner_out.replies_mut().0 = replies;
        any
    }

    /// The inner target is done with a request: its thread notices, is woken, or never waited.
    fn answered(&mut self, now: Nanos, number: ThreadNumber, reply: T::Reply) {
        let period = self.costs.retry_period(self.lock.crowd());
        let thread = self.threads.get_mut(number);
        thread.answered(now, reply, T::is_success(&reply));
        self.reads_inside -= u32::from(thread.is_read());
        let waited = now > thread.since;
        if thread.spins && waited {
            thread.step = Step::Notice;
            self.events.push(now + Nanos(period.0 / 2), Event::Thread(number));
        } else if waited {
            thread.slept = true;
            thread.step = Step::Waking;
            self.events.push(now + self.costs.config().wake_up_ns, Event::Thread(number));
            self.stats.with(|stats| stats.slept += 1);
        } else {
            if thread.spins {
                self.stop_spinning(now, number);
            }
            self.finish(now, number);
        }
    }

    pub(super) fn stop_spinning(&mut self, now: Nanos, number: ThreadNumber) {
        let period = self.costs.retry_period(self.lock.crowd());
        let thread = self.threads.get_mut(number);
        assert!(std::mem::take(&mut thread.spins), "a thread stops spinning that did not");
        let spun = now - thread.since;
        self.cores.spun(thread.core);
        self.lock.spun();
        if spun > Nanos::ZERO {
            self.stats.with(|stats| {
                stats.spun += 1;
                stats.spin_ns += spun;
                // A retry without cost takes no time, so it cannot be counted.
                stats.retries += if period.0 == 0 { 0 } else { spun.0.div_ceil(period.0) };
            });
        }
    }

    pub(super) fn finish(&mut self, now: Nanos, number: ThreadNumber) {
        self.threads.get_mut(number).step = Step::Finish;
        self.enter_core(now, number);
    }

    /// A request is over.
    pub(super) fn end(&mut self, now: Nanos, number: ThreadNumber, buffers: &Buffers) {
        self.leave_core(now, number);
        let thread = self.threads.end(now, number);
        assert!(!thread.spins, "a request ended while its thread spins");
        let socket = thread.core / self.config().cores_per_socket;
        if thread.is_write() {
            self.lock.user_ends(socket);
        }
        if thread.is_read() {
            self.map_lock.user_ends(socket);
        }
        T::tell_buffers(&thread.request, buffers, &mut |buffer| {
            let users = &mut self.buffer_users[index(buffer.0)];
            assert!(*users > 0, "buffer {} has a request that was not counted", buffer.0);
            *users -= 1;
        });
        let reply = T::reply_with_tag(thread.reply.expect("it was answered"), T::tag(&thread.request));
        self.replies.push(reply).expect("there are as many places for replies as for requests");
        self.stats.with(|stats| {
            stats.requests += 1;
            let own = &mut stats.threads[index(number.0)];
            own.requests += 1;
            own.blocks += self.costs.sectors(thread.asked.bytes);
        });
    }
}
