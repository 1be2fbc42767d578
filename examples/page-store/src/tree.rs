//! A B-tree whose nodes are pages of any length.
//!
//! A node keeps its page's name for life and is written in place, as far as the tree is concerned: the target puts it elsewhere.
//! Nodes that changed wait in memory; a commit flushes them all, with page 0 that says where the root is, as one flush. So a
//! restart finds the tree of some commit, and needs no log. Deliberately not here: merging of nodes that became small; forgetting
//! nodes that were read.

use crate::pages::Pages;
use ocssd_lightnvm::interface::log_structured::PageId;
use std::collections::{BTreeMap, BTreeSet};

/// Bytes above which a node is split (chosen: a sector with its neighbours' share of a flash page).
const NODE_BYTES_MAX: usize = 4_096;
/// Bytes of a value at most: a node holds four.
pub const VALUE_BYTES_MAX: usize = 1_000;
/// The page that says where the root is, and which name the next node gets.
const META: PageId = PageId(0);

/// A node: keys with values, or the first key of each child with the child's page.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    Leaf(BTreeMap<u64, Vec<u8>>),
    Inner(BTreeMap<u64, PageId>),
}

impl Node {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self {
            Self::Leaf(values) => {
                bytes.push(0);
                for (key, value) in values {
                    bytes.extend(key.to_le_bytes());
                    bytes.extend(u16::try_from(value.len()).expect("values are short").to_le_bytes());
                    bytes.extend(value);
                }
            }
            Self::Inner(children) => {
                bytes.push(1);
                for (key, child) in children {
                    bytes.extend(key.to_le_bytes());
                    bytes.extend(child.0.to_le_bytes());
                }
            }
        }
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (kind, mut left) = bytes.split_first()?;
        let (mut values, mut children) = (BTreeMap::new(), BTreeMap::new());
        while !left.is_empty() {
            let (key, rest) = left.split_first_chunk::<8>()?;
            let key = u64::from_le_bytes(*key);
            if *kind == 0 {
                let (length, rest) = rest.split_first_chunk::<2>()?;
                let (value, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
                values.insert(key, value.to_vec());
                left = rest;
            } else {
                let (child, rest) = rest.split_first_chunk::<8>()?;
                children.insert(key, PageId(u64::from_le_bytes(*child)));
                left = rest;
            }
        }
        Some(if *kind == 0 { Self::Leaf(values) } else { Self::Inner(children) })
    }

    /// Gives the upper half away, with its first key.
    fn split(&mut self) -> (u64, Self) {
        fn upper<T>(entries: &mut BTreeMap<u64, T>) -> (u64, BTreeMap<u64, T>) {
            let middle =
                *entries.keys().nth(entries.len() / 2).expect("a node that is too long has several entries");
            (middle, entries.split_off(&middle))
        }
        match self {
            Self::Leaf(values) => {
                let (first, half) = upper(values);
                (first, Self::Leaf(half))
            }
            Self::Inner(children) => {
                let (first, half) = upper(children);
                (first, Self::Inner(half))
            }
        }
    }
}

/// The child a key belongs to: the last whose first key is not above it, or the first.
fn child_of(children: &BTreeMap<u64, PageId>, key: u64) -> PageId {
    let below = children.range(..=key).next_back();
    *below.or_else(|| children.first_key_value()).expect("an inner node has children").1
}

/// The tree.
pub struct Tree {
    /// Where its nodes are kept.
    pub pages: Pages,
    root: PageId,
    next: u64,
    nodes: BTreeMap<PageId, Node>,
    changed: BTreeSet<PageId>,
}

impl Tree {
    /// The tree of the last commit, or an empty one.
    ///
    /// # Errors
    /// A sentence, if pages cannot be read.
    pub fn open(mut pages: Pages) -> Result<Self, String> {
        let meta = pages.read(META, 16)?;
        let mut tree =
            Self { pages, root: PageId(1), next: 2, nodes: BTreeMap::new(), changed: BTreeSet::new() };
        match meta.as_deref().and_then(|meta| meta.split_first_chunk::<8>()) {
            Some((root, next)) => {
                tree.root = PageId(u64::from_le_bytes(*root));
                tree.next = u64::from_le_bytes(next.try_into().map_err(|_| "page 0 is no page of a tree")?);
            }
            None => tree.put(PageId(1), Node::Leaf(BTreeMap::new())),
        }
        Ok(tree)
    }

    fn put(&mut self, page: PageId, node: Node) {
        self.nodes.insert(page, node);
        self.changed.insert(page);
    }

    fn node(&mut self, page: PageId) -> Result<&mut Node, String> {
        if !self.nodes.contains_key(&page) {
            let bytes = self.pages.read(page, NODE_BYTES_MAX)?.ok_or(format!("node {} is gone", page.0))?;
            let node = Node::decode(&bytes).ok_or(format!("page {} is no node", page.0))?;
            self.nodes.insert(page, node);
        }
        Ok(self.nodes.get_mut(&page).expect("it was read"))
    }

    /// The pages from the root down to the leaf of a key.
    fn path(&mut self, key: u64) -> Result<Vec<PageId>, String> {
        let mut path = vec![self.root];
        while let Node::Inner(children) = self.node(path[path.len() - 1])? {
            let child = child_of(children, key);
            path.push(child);
        }
        Ok(path)
    }

    /// The value of a key.
    ///
    /// # Errors
    /// A sentence, if pages cannot be read.
    pub fn get(&mut self, key: u64) -> Result<Option<Vec<u8>>, String> {
        let leaf = self.path(key)?.pop().expect("a path has a leaf");
        match self.node(leaf)? {
            Node::Leaf(values) => Ok(values.get(&key).cloned()),
            Node::Inner(_) => unreachable!("a path ends at a leaf"),
        }
    }

    /// Gives a key a value, or takes it away (`None`). True after the next commit.
    ///
    /// # Errors
    /// A sentence, if the value is too long or pages cannot be read.
    pub fn set(&mut self, key: u64, value: Option<Vec<u8>>) -> Result<(), String> {
        if let Some(bytes) = value.as_ref().map(Vec::len).filter(|&bytes| bytes > VALUE_BYTES_MAX) {
            return Err(format!("a value has up to {VALUE_BYTES_MAX} bytes, and this one has {bytes}"));
        }
        let mut path = self.path(key)?;
        let leaf = path.pop().expect("a path has a leaf");
        let Node::Leaf(values) = self.node(leaf)? else { unreachable!("a path ends at a leaf") };
        match value {
            Some(value) => drop(values.insert(key, value)),
            None => drop(values.remove(&key)),
        }
        self.changed.insert(leaf);
        self.split_up(leaf, path)
    }

    /// Splits a node that is too long, and those above it that become so.
    fn split_up(&mut self, mut page: PageId, mut path: Vec<PageId>) -> Result<(), String> {
        while self.node(page)?.encode().len() > NODE_BYTES_MAX {
            let (first, half) = self.node(page)?.split();
            let other = PageId(self.next);
            self.next += 1;
            self.put(other, half);
            let parent = path.pop().unwrap_or_else(|| {
                let parent = PageId(self.next);
                self.next += 1;
                // Keys below the first child's go there too.
                self.put(parent, Node::Inner(BTreeMap::from([(0, page)])));
                self.root = parent;
                parent
            });
            let Node::Inner(children) = self.node(parent)? else { unreachable!("leaves have no children") };
            children.insert(first, other);
            self.changed.insert(parent);
            page = parent;
        }
        Ok(())
    }

    /// Everything that was set becomes durable, all of it or nothing.
    ///
    /// # Errors
    /// A sentence, if the flush is refused or the power went.
    pub fn commit(&mut self) -> Result<(), String> {
        let meta = [self.root.0.to_le_bytes(), self.next.to_le_bytes()].concat();
        let mut flush = vec![(META, Some(meta))];
        flush.extend(self.changed.iter().map(|page| (*page, Some(self.nodes[page].encode()))));
        self.pages.flush(&flush)?;
        self.changed.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_base::{Nanos, Prng};

    /// Commits of a run, each of so many changes.
    const COMMITS: u64 = 24;
    const CHANGES: u64 = 40;

    fn fresh() -> Tree {
        Tree::open(Pages::open("tiny", &["chunks_per_pu=64"]).expect("a drive")).expect("an empty tree")
    }

    /// The changes of commit `nth`, always the same.
    fn changes(nth: u64) -> Vec<(u64, Option<Vec<u8>>)> {
        let mut prng = Prng::new(nth);
        let mut change = || {
            let (key, length) = (prng.below(600), prng.below(VALUE_BYTES_MAX as u64));
            let byte = u8::try_from(nth % 251).expect("a byte");
            (key, (length % 8 > 0).then(|| vec![byte; usize::try_from(length).expect("short")]))
        };
        (0..CHANGES).map(|_| change()).collect()
    }

    /// Commits until all are done or the power goes.
    fn run(tree: &mut Tree, from: u64) -> Result<(), String> {
        for nth in from..COMMITS {
            for (key, value) in changes(nth) {
                tree.set(key, value)?;
            }
            tree.commit()?;
        }
        Ok(())
    }

    /// The tree holds what the first `commits` commits made of it.
    fn check(tree: &mut Tree, commits: u64) {
        let mut model = BTreeMap::new();
        (0..commits).flat_map(changes).for_each(|(key, value)| drop(model.insert(key, value)));
        for key in 0..600 {
            let expected = model.get(&key).cloned().flatten();
            assert_eq!(tree.get(key), Ok(expected), "key {key} after {commits} commits");
        }
    }

    #[test]
    fn a_tree_is_what_was_set() {
        let mut tree = fresh();
        run(&mut tree, 0).expect("the drive is large enough");
        check(&mut tree, COMMITS);
        assert!(tree.nodes.len() > 50, "{} nodes: nothing was split", tree.nodes.len());
        assert!(tree.set(1, Some(vec![0; VALUE_BYTES_MAX + 1])).is_err());
    }

    #[test]
    fn after_any_power_cut_the_tree_is_that_of_a_commit_and_goes_on() {
        let mut whole = fresh();
        let begin = whole.pages.now();
        run(&mut whole, 0).expect("the drive is large enough");
        let lasts = whole.pages.now().saturating_since(begin).0;
        let mut torn = 0;
        for seed in 0..60 {
            let mut tree = fresh();
            tree.pages.cut_power_at(begin + Nanos(Prng::new(seed).below(lasts)));
            run(&mut tree, 0).expect_err("the power goes before the end");
            let answered = tree.pages.flushed().0;
            tree.pages.restart(seed).expect("the target is mounted");
            let found = tree.pages.flushed().0;
            assert!(
                (answered..=answered + 1).contains(&found),
                "seed {seed}: {answered} answered, {found} there"
            );
            torn += found - answered;
            let mut tree = Tree::open(tree.pages).expect("pages are there");
            check(&mut tree, found);
            run(&mut tree, found).expect("it goes on");
            check(&mut tree, COMMITS);
        }
        println!("{torn} of 60 power cuts came between a commit's becoming true and its answer");
    }

    #[test]
    fn any_bytes_are_a_node_or_none() {
        let mut prng = Prng::new(7);
        for _ in 0..10_000 {
            let bytes: Vec<u8> =
                (0..prng.below(40)).map(|_| u8::try_from(prng.below(256)).expect("a byte")).collect();
            let Some(node) = Node::decode(&bytes) else { continue };
            assert_eq!(Node::decode(&node.encode()), Some(node));
        }
    }
}
