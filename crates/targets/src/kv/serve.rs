//! Requests in the order in which they were taken: each is looked at when those before it took effect.
//!
//! One that waits for buffer units holds up those behind it, but for reads of what no change that waits names: they show what they
//! would show in their turn. A read of a key whose page of the index is not in memory takes its turn.
//! Deliberately not here: how changes are made (`change`) and reads carried out (`read`).

use super::canary::Canary;
use super::index::Need;
use super::state::Kv;
use ocssd_base::usize_of;
use ocssd_lightnvm::Buffers;
use ocssd_lightnvm::interface::Content;
use ocssd_lightnvm::interface::StageOp;
use ocssd_lightnvm::interface::key_value::{Key, KvAnswer, KvOp, KvRefusal, KvReply, KvRequest, encode_keys};

/// Requests at once: as pblk takes.
pub(super) const REQUESTS_MAX: usize = 4096;

impl Kv {
    /// Room for one more request.
    pub(super) fn has_room(&self) -> bool {
        assert!(self.replies.is_empty(), "a request comes before replies were given");
        let taken: usize = [self.queue.len(), self.waiters.len(), self.reads.jobs()].iter().sum();
        assert!(taken <= REQUESTS_MAX, "{taken} requests were taken");
        taken < REQUESTS_MAX
    }

    /// Carries out a request that has none before it, if it need not wait. False if it must.
    pub(super) fn serve_alone(&mut self, request: &KvRequest, buffers: &mut Buffers) -> bool {
        assert!(self.queue.is_empty() && self.taking.is_none(), "a request overtakes others");
        let is_served = match self.has_pages(request, buffers) {
            Ok(true) => self.serve_one(request, buffers),
            Ok(false) => false,
            Err(status) => {
                self.fail(request.tag, status);
                true
            }
        };
        if is_served {
            self.index.needs_no_more(Need::Request);
        }
        // A page that was asked for may put another one out.
        self.work_due |= !self.index.is_whole();
        is_served
    }

    /// Carries out requests until one must wait. True if any was.
    pub(super) fn serve(&mut self, buffers: &mut Buffers) -> bool {
        let mut any = false;
        while let Some(&request) = self.queue.first() {
            match self.has_pages(&request, buffers) {
                Ok(true) if self.serve_one(&request, buffers) => {}
                Ok(_) => break,
                Err(status) => {
                    self.abandon_change();
                    self.fail(request.tag, status);
                }
            }
            self.queue.pop();
            self.index.needs_no_more(Need::Request);
            any = true;
        }
        any
    }

    /// Carries out a read that was taken behind requests that wait, if it shows now what it would show in its turn. False if not.
    pub(super) fn pass(&mut self, request: &KvRequest, buffers: &mut Buffers) -> bool {
        assert!(!self.queue.is_empty(), "a read passes nobody");
        let passes = match request.op {
            KvOp::Retrieve { key, .. } | KvOp::Exist { key } => self
                .key(key, buffers)
                .is_ok_and(|key| !self.may_change(&key, buffers) && self.index.is_here(&key)),
            KvOp::List { from, prefix_bytes, .. } => {
                self.index.is_whole() && {
                    let is_sound =
                        from.bytes() <= self.sizes.limits().key_bytes_max && from.lies_within(buffers);
                    let from = if is_sound { from.gathered(buffers) } else { Vec::new() };
                    let prefix = from.get(..usize::from(prefix_bytes));
                    is_sound && prefix.is_some_and(|prefix| !self.queue.names_any(&from, prefix, buffers))
                }
            }
            _ => false,
        };
        if passes {
            let is_over = self.serve_one(request, buffers);
            assert!(is_over, "{request:?} waits, but reads do not");
            self.stats.reads_passed += 1;
        }
        passes
    }

    /// True if a change that waits names a key.
    fn may_change(&mut self, key: &[u8], buffers: &Buffers) -> bool {
        self.queue.names(key, buffers) && !self.has_canary(Canary::ReadsPassOwnKey)
    }

    /// Carries out a request. False if it must wait.
    fn serve_one(&mut self, request: &KvRequest, buffers: &mut Buffers) -> bool {
        let KvRequest { tag, op } = *request;
        match op {
            KvOp::Store { .. } | KvOp::Delete { .. } | KvOp::Batch { .. } => {
                return self.change(request, buffers);
            }
            KvOp::Stage(op) => return self.stage(request, &op, buffers),
            KvOp::Retrieve { key, offset, into } => {
                if let Err(refusal) = self.retrieve(tag, key, offset, into, buffers) {
                    self.replies.push_back(KvReply::refused(tag, refusal, None));
                }
            }
            KvOp::Exist { key } => {
                let found =
                    self.key(key, buffers).and_then(|key| self.index.get(&key).ok_or(KvRefusal::NoSuchKey));
                self.replies.push_back(match found {
                    Ok(found) => KvReply::success(tag, KvAnswer::Value { bytes: found.bytes }),
                    Err(refusal) => KvReply::refused(tag, refusal, None),
                });
            }
            KvOp::List { from, prefix_bytes, into } => {
                let reply = match self.list(from, prefix_bytes, into, buffers) {
                    Ok(answer) => KvReply::success(tag, answer),
                    Err(refusal) => KvReply::refused(tag, refusal, None),
                };
                self.replies.push_back(reply);
            }
            KvOp::Flush => match self.refuses_changes() {
                Some(status) => self.fail(tag, status),
                None => self.wait(KvReply::success(tag, KvAnswer::Done)),
            },
            KvOp::Shutdown => {
                self.shutdown = Some(tag);
                self.work_due = true;
            }
        }
        true
    }

    pub(super) fn fail(&mut self, tag: ocssd_lightnvm::Tag, status: ocssd_lightnvm::Status) {
        assert!(!status.has_data(), "{status} is no failure");
        self.replies.push_back(KvReply { status, ..KvReply::success(tag, KvAnswer::Done) });
    }

    fn change(&mut self, request: &KvRequest, buffers: &mut Buffers) -> bool {
        let KvRequest { tag, op } = *request;
        if let Some(status) = self.refuses_changes() {
            self.taking = None;
            self.fail(tag, status);
            return true;
        }
        if self.taking.is_none() {
            let looked_at = match op {
                KvOp::Store { key, content, condition, durability } => {
                    self.look_at_store((tag, key, content), condition, durability, buffers)
                }
                KvOp::Delete { key, absent, durability } => {
                    self.look_at_delete((tag, key), absent, durability, buffers)
                }
                KvOp::Batch { entries, durability } => self.look_at_batch(tag, entries, durability, buffers),
                _ => unreachable!("{op:?} changes nothing"),
            };
            match looked_at {
                Ok(taking) => self.taking = Some(taking),
                Err((refusal, entry)) => {
                    self.replies.push_back(KvReply::refused(tag, refusal, entry));
                    return true;
                }
            }
        }
        self.take(buffers)
    }

    fn stage(&mut self, request: &KvRequest, op: &StageOp, buffers: &mut Buffers) -> bool {
        let tag = request.tag;
        if let Some(status) = self.refuses_changes() {
            self.fail(tag, status);
            return true;
        }
        // Of an append that waits for buffer units the content was taken before.
        let is_under_way = self.appending == Some(tag);
        if !is_under_way {
            if let Err(refusal) = self.look_at_stage(op, buffers) {
                self.replies.push_back(KvReply::refused(tag, KvRefusal::Stage(refusal), None));
                return true;
            }
            self.change_stage(op, buffers);
        }
        if let StageOp::Append { stage, .. } = *op {
            self.appending = Some(tag);
            if !self.go_on_staging(stage, buffers) {
                return false;
            }
            self.appending = None;
        }
        self.replies.push_back(KvReply::success(tag, KvAnswer::Done));
        true
    }

    fn list(
        &self,
        from: Key,
        prefix_bytes: u8,
        into: Content,
        buffers: &mut Buffers,
    ) -> Result<KvAnswer, KvRefusal> {
        if matches!(into, Content::Staged { .. }) || !into.lies_within(buffers) {
            return Err(KvRefusal::BadContent);
        }
        if from.bytes() > self.sizes.limits().key_bytes_max {
            return Err(KvRefusal::KeyLength);
        }
        let from = from.lies_within(buffers).then(|| from.gathered(buffers)).ok_or(KvRefusal::BadContent)?;
        let prefix = from.get(..usize::from(prefix_bytes)).ok_or(KvRefusal::PrefixLength)?;
        let (bytes, keys) = encode_keys(self.index.listed(&from, prefix), usize_of(into.bytes()));
        assert!(bytes.len() <= usize_of(into.bytes()), "a list of {} bytes", bytes.len());
        into.scatter(buffers, &bytes);
        Ok(KvAnswer::Listed { keys, bytes: u32::try_from(bytes.len()).expect("no more than there is room") })
    }
}
