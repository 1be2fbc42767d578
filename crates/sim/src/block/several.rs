//! Transactions over several requests: which are begun, what they hold, and which request is what of them.
//!
//! A write within one is nobody's until the flush that commits it is sent; given up, or met by a power cut before, it was never
//! there. Deliberately not here: what a block may hold (`oracle`), and whether a transaction is whole (`atomic`).

use super::history::Content;
use ocssd_base::Prng;
use ocssd_lightnvm::Tag;
use ocssd_lightnvm::block::BlockTarget;
use ocssd_lightnvm::transaction::{BlockTransaction, TransactionPart, TransactionRefusal, Transactions};
use std::collections::{BTreeMap, BTreeSet};

/// Transactions that are begun at once, at most (chosen: some write the same blocks).
const OPEN_MAX: usize = 3;

/// What a request is, of which transaction.
pub type Role = (BlockTransaction, TransactionPart);

/// One that is begun.
#[derive(Clone, Debug, Default)]
struct Begun {
    /// What its blocks hold once it is true.
    contents: BTreeMap<u64, Content>,
    /// Of these contents, those that the media harmed before they were true.
    harmed: BTreeSet<Content>,
    /// Blocks written, each as often as it was.
    taken: u32,
    /// As many were begun at a time while it was, at most.
    beside: usize,
    /// Writes that were not answered.
    waiting: u32,
    /// A write was refused: it is given up.
    is_spoiled: bool,
    /// Its end was sent.
    is_ending: bool,
}

/// All of them.
#[derive(Clone, Debug, Default)]
pub struct Several {
    begun: BTreeMap<BlockTransaction, Begun>,
    roles: BTreeMap<Tag, Role>,
    /// Committed, and given up.
    ended: (u64, u64),
    /// Given up by the target.
    given_way: u64,
    /// Blocks one may have.
    blocks: u32,
}

impl Several {
    /// What the next request, of this tag, is of a transaction, in place of a write of `count` blocks that was drawn; `None` if
    /// it is a write like any other. The target is told.
    pub fn draw(
        &mut self,
        prng: &mut Prng,
        tag: Tag,
        count: u32,
        target: &mut dyn BlockTarget,
    ) -> Option<Role> {
        let transactions = target.transactions()?;
        let role = self.choose(prng, count, transactions)?;
        match transactions.join(role.0, tag, role.1) {
            Ok(()) => {}
            Err(TransactionRefusal::NotOpen) => {
                // A target that takes no changes any more has forgotten them.
                let begun = transactions.begin();
                assert!(
                    matches!(begun, Err(TransactionRefusal::NoChanges(_))),
                    "{role:?} is refused as not open, and the target begins {begun:?}"
                );
                self.begun.retain(|_, begun| begun.is_ending);
                return None;
            }
            Err(refusal) => panic!("{role:?} of a transaction that is open was refused: {refusal}"),
        }
        let begun = self.begun.get_mut(&role.0).expect("it was chosen");
        match role.1 {
            TransactionPart::Write => (begun.taken, begun.waiting) = (begun.taken + count, begun.waiting + 1),
            TransactionPart::Commit | TransactionPart::Abort => begun.is_ending = true,
        }
        self.roles.insert(tag, role);
        Some(role)
    }

    fn choose(&mut self, prng: &mut Prng, count: u32, transactions: &mut dyn Transactions) -> Option<Role> {
        let limits = transactions.limits();
        self.blocks = limits.blocks;
        if count > limits.blocks {
            return None;
        }
        let open: Vec<BlockTransaction> =
            self.begun.iter().filter(|(_, begun)| !begun.is_ending).map(|(&name, _)| name).collect();
        if self.begun.len() < OPEN_MAX && prng.below(3) == 0 || open.is_empty() {
            let name = transactions.begin().ok()?;
            let before = self.begun.insert(name, Begun::default());
            assert!(before.is_none(), "{name:?} was begun twice");
            let count = self.begun.len();
            self.begun.values_mut().for_each(|begun| begun.beside = begun.beside.max(count));
            return Some((name, TransactionPart::Write));
        }
        let most = u64::try_from(open.len()).expect("few");
        let name = open[usize::try_from(prng.below(most)).expect("few")];
        let begun = &self.begun[&name];
        let ends = begun.taken + count > limits.blocks || begun.is_spoiled || prng.below(3) == 0;
        let is_given_up = begun.is_spoiled || prng.below(4) == 0;
        match (ends, begun.waiting) {
            (true, 0) if is_given_up => Some((name, TransactionPart::Abort)),
            (true, 0) => Some((name, TransactionPart::Commit)),
            (true, _) if begun.taken + count > limits.blocks => None,
            _ => Some((name, TransactionPart::Write)),
        }
    }

    /// What a request is of a transaction.
    pub fn role_of(&self, tag: Tag) -> Option<Role> {
        self.roles.get(&tag).copied()
    }

    /// A block is written within one.
    pub fn wrote(&mut self, name: BlockTransaction, block: u64, content: Content) {
        let begun = self.begun.get_mut(&name).expect("a request has a role in it");
        begun.contents.insert(block, content);
    }

    /// What its blocks hold once it is true.
    pub fn contents(&self, name: BlockTransaction) -> Vec<(u64, Content)> {
        self.begun[&name].contents.iter().map(|(&block, &content)| (block, content)).collect()
    }

    /// The media harmed a place that held `content` of `block`.
    pub fn harmed(&mut self, block: u64, content: Content) {
        let holds = |begun: &&mut Begun| begun.contents.get(&block) == Some(&content);
        self.begun.values_mut().filter(holds).for_each(|begun| {
            begun.harmed.insert(content);
        });
    }

    /// True if that was harmed before it was true.
    pub fn is_harmed(&self, name: BlockTransaction, content: Content) -> bool {
        self.begun[&name].harmed.contains(&content)
    }

    /// True if the target may have given one up: it and those begun beside it may have more blocks than there are sectors beyond
    /// those that are needed. There were no fewer of these before, for chunks go bad and never good.
    pub fn may_give_way(&self, name: BlockTransaction, sectors_beyond: u64) -> bool {
        let Some(begun) = self.begun.get(&name) else { return false };
        let most = u64::try_from(begun.beside).expect("few") * u64::from(self.blocks);
        most > sectors_beyond
    }

    /// The target gave one up.
    pub const fn gave_way(&mut self) {
        self.given_way += 1;
    }

    /// How many the target gave up.
    #[must_use]
    pub const fn given_way(&self) -> u64 {
        self.given_way
    }

    /// A request that had a role was answered.
    pub fn answered(&mut self, tag: Tag, is_success: bool) {
        let (name, part) = self.roles.remove(&tag).expect("the request has a role");
        // Those of a target that takes no changes any more are forgotten.
        let Some(begun) = self.begun.get_mut(&name) else { return };
        match part {
            TransactionPart::Write => {
                begun.waiting -= 1;
                begun.is_spoiled |= !is_success;
                return;
            }
            TransactionPart::Commit => self.ended.0 += u64::from(is_success),
            TransactionPart::Abort => self.ended.1 += u64::from(is_success),
        }
        self.begun.remove(&name);
    }

    /// The target is gone: what was begun was never there.
    pub fn clear(&mut self) {
        self.begun.clear();
        self.roles.clear();
    }

    /// How many were committed, and how many given up.
    #[must_use]
    pub const fn ended(&self) -> (u64, u64) {
        self.ended
    }
}
