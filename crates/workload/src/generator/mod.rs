//! Requests of the interfaces beyond blocks, in the words of the tools that users know.
//!
//! `zoned` has fio's words, `ycsb` those of YCSB's core workloads for key-value targets, `db_bench` those of RocksDB's
//! benchmark for table targets, and `page_store` flushes buffers as OX-ELEOS' host does. Options are text, `name=value`
//! with commas between; what cannot be used is refused in a sentence. The same options and seed give the same requests,
//! if the replies are the same.
//!
//! A [`Generator`] is asked for requests and told of replies; it never looks at a clock. Content is a name and a version,
//! repeated ([`payload`]). Deliberately not here: when requests are sent, and what replies must be (`sim`).

pub mod db_bench;
pub mod page_store;
pub mod payload;
pub mod words;
pub mod ycsb;
pub mod zipfian;
pub mod zoned;

use ocssd_lightnvm::{Buffers, Tag};

/// Who makes requests of one interface.
pub trait Generator {
    /// A request.
    type Request;
    /// What it is answered with.
    type Reply;

    /// The next request; `None` if it depends on replies that are outstanding, or if there are no more.
    fn next(&mut self, tag: Tag, buffers: &mut Buffers) -> Option<Self::Request>;

    /// A request was answered. Its buffers are taken back.
    fn on_reply(&mut self, request: &Self::Request, reply: &Self::Reply, buffers: &mut Buffers);

    /// True once no more requests will come, whatever is replied to those that are outstanding.
    fn is_finished(&self) -> bool;
}
