//! Naive models of host interfaces: what each request must be answered with, and what may be left after a power cut.
//!
//! A model is told of requests in the order in which a target took them ([`Model::apply`]), and of replies as they come
//! ([`Model::agrees`], then [`Model::answered`]). It keeps two images, ordered maps and nothing more: the *volatile* one that
//! reads see, and the *durable* one, with the changes between them. At a power cut [`Model::may_hold`] judges what a target
//! shows at its next mount, and [`Model::settle`] goes on from there. [`Model::cut`] settles on the durable image, which
//! makes a model a reference target too.
//!
//! Deliberately not here: when requests are sent and when the power goes; media faults.

pub mod held;
pub mod judge;
mod pending;
mod staging;
pub mod target;
pub mod trial;
pub mod world;

pub use pending::{Pending, Taken};
pub use staging::Staging;

use crate::contract::{Answerer, Broken};
use ocssd_lightnvm::interface::Content;
use ocssd_lightnvm::{Buffers, Tag};
use std::fmt::Debug;

/// What a request must be answered with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected<R> {
    /// The reply.
    pub reply: R,
    /// The first bytes of `into`.
    pub content: Vec<u8>,
    /// Where the content goes to.
    pub into: Content,
}

impl<R> Expected<R> {
    /// A reply without content.
    pub const fn plain(reply: R) -> Self {
        Self { reply, content: Vec::new(), into: Content::Empty }
    }

    /// Puts the content where it goes to, as a target does.
    pub fn deliver(&self, buffers: &mut Buffers) {
        self.into.scatter(buffers, &self.content);
    }

    /// What lies there, as many bytes as are expected.
    #[must_use]
    pub fn found(&self, buffers: &Buffers) -> Vec<u8> {
        let mut found = self.into.gathered(buffers);
        found.truncate(self.content.len());
        found
    }
}

/// A model of a host interface.
pub trait Model: Clone {
    /// What a host asks.
    type Request: Copy + Debug;
    /// What it is told.
    type Reply: Copy + Debug + PartialEq;
    /// All that a target shows.
    type Observation: Debug;

    /// A request's tag.
    fn tag(request: &Self::Request) -> Tag;

    /// A reply's tag.
    fn reply_tag(reply: &Self::Reply) -> Tag;

    /// True if a reply is no success.
    fn is_refused(reply: &Self::Reply) -> bool;

    /// The request that makes everything durable.
    fn flush(tag: Tag) -> Self::Request;

    /// A target took a request: changes the volatile image, and says what the reply must be.
    fn apply(&mut self, request: &Self::Request, buffers: &Buffers) -> Expected<Self::Reply>;

    /// Holds a reply, and what lies in the buffers, against what was expected.
    ///
    /// # Errors
    /// If it is not what the interface promises.
    fn agrees(
        &self,
        expected: &Expected<Self::Reply>,
        reply: &Self::Reply,
        buffers: &Buffers,
    ) -> Result<(), Broken>;

    /// A reply that agrees came: what it makes durable is durable.
    fn answered(&mut self, reply: &Self::Reply);

    /// Asks a target for everything it shows.
    ///
    /// # Errors
    /// If it does not answer as any target must.
    fn observe(
        &self,
        target: &mut dyn Answerer<Self::Request, Self::Reply>,
    ) -> Result<Self::Observation, Broken>;

    /// Holds what a target shows after a power cut against what is promised.
    ///
    /// # Errors
    /// If no set of changes that may have survived leaves this.
    fn may_hold(&self, observation: &Self::Observation) -> Result<(), Broken>;

    /// Goes on from what a target shows after a power cut; nothing is outstanding, and all of it is durable.
    fn settle(&mut self, observation: &Self::Observation);

    /// Drops what is not durable: what the weakest target there may be does at a power cut.
    fn cut(&mut self);
}

/// Replies are equal, and so is the content: what most interfaces ask of a reply.
///
/// # Errors
/// If one of them differs.
pub fn equal<R: PartialEq + Debug>(
    expected: &Expected<R>,
    reply: &R,
    buffers: &Buffers,
) -> Result<(), Broken> {
    if expected.reply != *reply {
        let (promised, found) = (format!("{:?}", expected.reply), format!("{reply:?}"));
        return Err(Broken::new("the reply", promised, found));
    }
    same_content(expected, buffers)
}

/// The content is what was expected.
///
/// # Errors
/// If it differs: where, and how.
pub fn same_content<R>(expected: &Expected<R>, buffers: &Buffers) -> Result<(), Broken> {
    let found = expected.found(buffers);
    // As a whole first: most content is as it must be, and some is long.
    if found == expected.content {
        return Ok(());
    }
    let Some(at) = found.iter().zip(&expected.content).position(|(found, expected)| found != expected) else {
        return Ok(());
    };
    let show = |bytes: &[u8]| format!("{:02X?} at byte {at}", &bytes[at..(at + 16).min(bytes.len())]);
    Err(Broken::new("the content", show(&expected.content), show(&found)))
}
