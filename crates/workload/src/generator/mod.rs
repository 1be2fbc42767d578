//! Requests of the interfaces beyond blocks, in the words of the tools that users know.
//!
//! `zoned` has fio's words, `ycsb` those of YCSB's core workloads for key-value targets, `mooncake` asks these for the blocks of a
//! trace, `db_bench` those of RocksDB's benchmark for table targets, and `page_store` flushes buffers as OX-ELEOS' host does.
//! Options are text, `name=value` with commas between; what cannot be used is refused in a sentence. The same options and seed give
//! the same requests, if the replies are the same.
//!
//! A [`Generator`] is asked for requests and told of replies; it never looks at a clock, but may say when a request arrives.
//! Content is a name and a version, repeated ([`payload`]). Deliberately not here: when requests are sent, and what replies must be
//! (`sim`).

pub mod closed_loop;
pub mod db_bench;
pub mod mooncake;
pub mod page_store;
pub mod payload;
pub mod words;
pub mod ycsb;
pub mod zipfian;
pub mod zoned;

use ocssd_base::Nanos;
use ocssd_lightnvm::{Buffers, Status, Tag};

/// How a request ended, for who counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// As it was asked.
    Done,
    /// There is nothing under the name it asked for.
    Absent,
    /// The target refused it, or the media failed: why, in words.
    Failed(String),
}

impl Outcome {
    /// Of a reply with this status, and its refusal if it was refused.
    #[must_use]
    pub fn of(status: Status, refusal: Option<&dyn std::fmt::Display>) -> Self {
        match refusal {
            _ if status.has_data() => Self::Done,
            Some(refusal) => Self::Failed(refusal.to_string()),
            None => {
                Self::Failed(format!("status {:03X}h, {}: {}", status.0, status.name(), status.meaning()))
            }
        }
    }
}

/// What an answered request counts as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// What was asked, in one word.
    pub name: &'static str,
    /// Bytes that were carried.
    pub bytes: u64,
    /// They went to the target: it stores them.
    pub is_stored: bool,
    /// How it ended.
    pub outcome: Outcome,
}

/// Who makes requests of one interface.
pub trait Generator {
    /// A request.
    type Request: Copy;
    /// What it is answered with.
    type Reply;

    /// The next request; `None` if it depends on replies that are outstanding, or if there are no more.
    fn next(&mut self, tag: Tag, buffers: &mut Buffers) -> Option<Self::Request>;

    /// When the next request arrives, from the first on; `None` if it is made as soon as there is a place for it.
    fn arrival(&self) -> Option<Nanos> {
        None
    }

    /// A request was answered. Its buffers are taken back.
    fn on_reply(&mut self, request: &Self::Request, reply: &Self::Reply, buffers: &mut Buffers);

    /// The tag of a request.
    fn tag(request: &Self::Request) -> Tag;

    /// The tag of the request a reply answers.
    fn reply_tag(reply: &Self::Reply) -> Tag;

    /// What an answered request counts as.
    fn answered(&self, request: &Self::Request, reply: &Self::Reply) -> Answered;

    /// The request that ends an instance in good order.
    fn shutdown(tag: Tag) -> Self::Request;

    /// The part of the run that is on, as the tool calls it: YCSB's load, a benchmark of `db_bench`. It changes with the next
    /// request.
    fn phase(&self) -> &'static str {
        "run"
    }

    /// True while the next request is of what the tool loads before it measures.
    fn is_loading(&self) -> bool {
        false
    }

    /// Operations begun so far, in the tool's own counting: records and not the requests they take.
    fn operations_begun(&self) -> u64;

    /// Operations there will be in all, as far as it is known.
    fn operation_count_max(&self) -> u64;

    /// True once no more requests will come, whatever is replied to those that are outstanding.
    fn is_finished(&self) -> bool;
}
