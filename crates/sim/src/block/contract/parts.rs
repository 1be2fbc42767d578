//! Requests that are parts of transactions over several: drawn in place of writes, noted, and judged.
//!
//! Deliberately not here: which are begun (`several`).

use super::{BlockContract, Outstanding};
use crate::block::mix::Drawn;
use crate::block::several::{Role, Several};
use crate::contract::{Broken, Room};
use ocssd_base::Prng;
use ocssd_lightnvm::block::{BlockOp, BlockRequest, BlockTarget};
use ocssd_lightnvm::transaction::TransactionPart;
use ocssd_lightnvm::{Buffers, Status, Tag};

impl BlockContract {
    /// What is drawn in place of a write, as a part of a transaction over several requests.
    pub(super) fn draw_part(
        &mut self,
        draw: u64,
        drawn: Drawn,
        target: &mut dyn BlockTarget,
    ) -> Option<Role> {
        // Beside what the mix draws, so that this stays what a seed means.
        let mut prng = Prng::new(draw).split("transactions");
        let is_part = prng.below(100) < u64::from(self.mix.transaction_percent);
        let is_write = matches!(drawn.op, BlockOp::Write { .. }) && self.per_sector == 1;
        if !is_part || !is_write {
            return None;
        }
        self.several.draw(&mut prng, Tag(self.next_tag), drawn.count, target)
    }

    /// Notes a part of a transaction: nothing of it may be seen before its commit is sent.
    pub(super) fn note_part(&mut self, request: &BlockRequest, (name, part): Role, buffers: &mut Buffers) {
        match part {
            TransactionPart::Write => {
                for offset in 0..request.count {
                    let content = self.fill(request, offset, buffers);
                    self.atomicity.begun(name, content);
                    self.several.wrote(name, request.block + u64::from(offset), content);
                }
            }
            TransactionPart::Commit => {
                let (sent, order) = (self.outstanding[&request.tag].sent, self.writes);
                let contents = self.several.contents(name);
                for &(block, content) in &contents {
                    self.oracle().sent_late(block, content, order, sent);
                    if self.several.is_harmed(name, content) {
                        self.oracle().harmed(block, content);
                    }
                }
                self.atomicity.commit_sent(request.tag, name, &contents, order + 1);
            }
            TransactionPart::Abort => {}
        }
    }

    /// Judges the answer to a part of a transaction.
    pub(super) fn judge_part(
        &mut self,
        done: &Outstanding,
        (name, part): Role,
        status: Status,
        room: &dyn Fn() -> Room,
    ) -> Result<(), Broken> {
        let (tag, is_made) = (done.request.tag, status.is_success());
        let gave_way = status == Status::COMMAND_INTERRUPTED;
        if part == TransactionPart::Commit {
            let durable = self.mix.answers_are_durable;
            let oldest = self.oldest_read();
            for (block, _) in self.several.contents(name) {
                if is_made {
                    self.oracle().made(block..block + 1, done.sent, durable, oldest);
                } else if gave_way {
                    self.oracle().never_made(block, done.sent);
                } else {
                    self.oracle().refused(block..block + 1, done.sent);
                }
            }
            if is_made {
                let now = self.oracle().now();
                self.atomicity.made(tag, now, durable);
            } else {
                self.atomicity.refused(tag);
            }
        } else if part == TransactionPart::Abort {
            self.atomicity.given_up(name);
        }
        let may_give_way = |several: &Several| several.may_give_way(name, room().sectors_beyond());
        let is_excused = gave_way && may_give_way(&self.several);
        self.several.answered(tag, is_made);
        if is_made {
            return Ok(());
        }
        self.refused += 1;
        if is_excused {
            self.several.gave_way();
            return Ok(());
        }
        let room = room();
        if room.is_short() || room.drive_failed || self.is_stopped {
            return Ok(());
        }
        let found = format!("{part:?} of transaction {}: {status}", name.0);
        Err(Broken::new("changes succeed", "a part of a transaction that is open succeeds", found))
    }
}
