//! A model as the contract of a world: requests are drawn, and every answer is held against the model.
//!
//! An audit asks the target for everything it shows: after a power cut the model says whether that may be left and goes on from
//! there; at any other time each answer must be the model's own. Deliberately not here: media that lose what was written;
//! nothing here knows what a sector held, so such faults are not drawn for these targets (`swarm`).

use super::trial::Requests;
use super::{Expected, Model};
use crate::contract::{Answerer, Broken, Contract, Media, Room};
use crate::counted;
use crate::watched::Harmed;
use crate::wear::Promise;
use ocssd_base::{Nanos, Prng};
use ocssd_flash::FailedOp;
use ocssd_lightnvm::{Buffers, Status, Tag, Target};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// A host interface as the simulator knows it.
pub trait Interface {
    /// What is right.
    type Model: Model;
    /// The targets that have it.
    type Target: Target<Request = <Self::Model as Model>::Request, Reply = <Self::Model as Model>::Reply>
        + ?Sized;
    /// Who draws requests.
    type Drawn: Requests<Self::Model> + Clone;

    /// The model of a target on fresh media.
    fn model(target: &Self::Target) -> Self::Model;

    /// What a target takes, in words: the same at every mount.
    fn limits(target: &Self::Target) -> String;

    /// Who draws requests for it, in a manner of its own for every seed.
    fn drawn(model: &Self::Model, prng: &mut Prng) -> Self::Drawn;

    /// Who draws them so that most is written once and never again, and the rest all the time: chunks wear differently then. None
    /// of an interface whose targets level no wear.
    fn drawn_for_wear(model: &Self::Model, prng: &mut Prng) -> Option<Self::Drawn> {
        let _ = (model, prng);
        None
    }

    /// The request that ends an instance in good order.
    fn shutdown(tag: Tag) -> <Self::Model as Model>::Request;

    /// How far a target lets wear differ; `None` if it does not say.
    fn wear_promise(target: &Self::Target) -> Option<Promise> {
        let _ = target;
        None
    }

    /// A request's name among the counts, as `requests.reads`.
    fn name(request: &<Self::Model as Model>::Request) -> &'static str;
}

/// Most requests outstanding (chosen: enough that a group commit has several, few enough that flushes find little to do).
const DEPTHS: [usize; 4] = [1, 2, 6, 12];

#[derive(Clone)]
struct Outstanding<M: Model> {
    request: M::Request,
    expected: Expected<M::Reply>,
    at: Nanos,
}

/// What there is once a target was mounted.
struct Judged<I: Interface> {
    model: I::Model,
    drawn: I::Drawn,
    limits: String,
}

impl<I: Interface> Clone for Judged<I> {
    fn clone(&self) -> Self {
        Self { model: self.model.clone(), drawn: self.drawn.clone(), limits: self.limits.clone() }
    }
}

/// The contract.
pub struct Judge<I: Interface> {
    prng: Prng,
    depth: usize,
    /// Most is written once and left alone.
    leaves_most_alone: bool,
    judged: Option<Judged<I>>,
    outstanding: BTreeMap<Tag, Outstanding<I::Model>>,
    next_tag: u32,
    /// The power went, and what the target shows was not looked at since.
    was_cut: bool,
    /// The drive has fewer good chunks than the target needs, and it refused a change: nothing is judged any more.
    is_worn_out: bool,
    refused: u64,
}

impl<I: Interface> Clone for Judge<I> {
    fn clone(&self) -> Self {
        Self {
            prng: self.prng.clone(),
            judged: self.judged.clone(),
            outstanding: self.outstanding.clone(),
            ..*self
        }
    }
}

impl<I: Interface> Judge<I> {
    /// The contract of a target on fresh media; `seed` says in which manner requests are drawn.
    ///
    /// # Panics
    /// Never: there are depths to choose from.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut prng = Prng::new(seed).split("judge");
        let nth = usize::try_from(prng.below(DEPTHS.len() as u64)).expect("below a length");
        Self {
            prng,
            depth: DEPTHS[nth],
            leaves_most_alone: false,
            judged: None,
            outstanding: BTreeMap::new(),
            next_tag: 1,
            was_cut: false,
            is_worn_out: false,
            refused: 0,
        }
    }

    /// Requests leave most that was written alone, if `is_wanted`.
    #[must_use]
    pub const fn leaves_most_alone(mut self, is_wanted: bool) -> Self {
        self.leaves_most_alone = is_wanted;
        self
    }

    fn judged(&mut self) -> &mut Judged<I> {
        self.judged.as_mut().expect("a target was mounted")
    }

    /// A request is sent: what its answer must be.
    fn send(
        &mut self,
        request: <I::Model as Model>::Request,
        now: Nanos,
        buffers: &Buffers,
    ) -> <I::Model as Model>::Request {
        self.next_tag += 1;
        let expected = self.judged().model.apply(&request, buffers);
        let before =
            self.outstanding.insert(I::Model::tag(&request), Outstanding { request, expected, at: now });
        assert!(before.is_none(), "two requests of one tag");
        request
    }
}

/// Asks on, and holds every answer against the model.
struct Checked<'a, M: Model> {
    model: &'a mut M,
    inner: &'a mut dyn Answerer<M::Request, M::Reply>,
}

impl<M: Model> Answerer<M::Request, M::Reply> for Checked<'_, M> {
    fn buffers(&mut self) -> &mut Buffers {
        self.inner.buffers()
    }

    fn ask(&mut self, request: M::Request) -> Result<M::Reply, Broken> {
        let expected = self.model.apply(&request, self.inner.buffers());
        let reply = self.inner.ask(request)?;
        self.model.agrees(&expected, &reply, self.inner.buffers())?;
        self.model.answered(&reply);
        Ok(reply)
    }
}

impl<I: Interface> Contract for Judge<I> {
    type Target = I::Target;

    const KNOWS_DEAD_DRIVES: bool = false;

    fn mounted(
        &mut self,
        target: &Self::Target,
        buffers: &mut Buffers,
        _chunks: Ordering,
    ) -> Result<(), Broken> {
        self.outstanding.clear();
        let limits = I::limits(target);
        if let Some(judged) = &mut self.judged {
            judged.drawn.power_cut(&judged.model, buffers);
            if judged.limits != limits {
                return Err(Broken::new("limits", judged.limits.clone(), limits));
            }
            return Ok(());
        }
        let model = I::model(target);
        let for_wear = if self.leaves_most_alone { I::drawn_for_wear(&model, &mut self.prng) } else { None };
        let drawn = for_wear.unwrap_or_else(|| I::drawn(&model, &mut self.prng));
        self.judged = Some(Judged { model, drawn, limits });
        Ok(())
    }

    fn draw(
        &mut self,
        draw: u64,
        now: Nanos,
        buffers: &mut Buffers,
        _: &mut Self::Target,
    ) -> Option<<Self::Target as Target>::Request> {
        if self.outstanding.len() >= self.depth {
            return None;
        }
        let tag = Tag(self.next_tag);
        let judged = self.judged();
        let request = judged.drawn.next(tag, &mut Prng::new(draw), &judged.model, buffers)?;
        assert!(I::Model::tag(&request) == tag, "a request has the tag it was given");
        Some(self.send(request, now, buffers))
    }

    fn shutdown(&mut self, now: Nanos, buffers: &Buffers) -> <Self::Target as Target>::Request {
        assert!(self.outstanding.is_empty(), "nothing is outstanding at a shutdown");
        let request = I::shutdown(Tag(self.next_tag));
        self.send(request, now, buffers)
    }

    fn begin_audit(&mut self) {
        assert!(self.outstanding.is_empty(), "an audit begins when everything was answered");
    }

    fn audit(&mut self, _now: Nanos) -> Option<<Self::Target as Target>::Request> {
        None
    }

    fn replied(
        &mut self,
        reply: &<Self::Target as Target>::Reply,
        buffers: &mut Buffers,
        room: &dyn Fn() -> Room,
    ) -> Result<&'static str, Broken> {
        let Some(done) = self.outstanding.remove(&I::Model::reply_tag(reply)) else {
            let found = format!("{reply:?} answers none");
            return Err(Broken::new("answered once", "every request is answered once", found));
        };
        let is_refused = I::Model::is_refused(reply);
        self.refused += u64::from(is_refused);
        let is_worn_out = is_refused && !I::Model::is_refused(&done.expected.reply) && room().is_short();
        self.is_worn_out |= is_worn_out;
        let is_judged = !self.is_worn_out;
        let judged = self.judged();
        if is_judged {
            judged.model.agrees(&done.expected, reply, buffers)?;
        }
        judged.model.answered(reply);
        judged.drawn.answered(&done.request, reply, buffers);
        Ok(I::name(&done.request))
    }

    fn end_audit(&mut self) -> Result<(), Broken> {
        Ok(())
    }

    fn observe(
        &mut self,
        target: &mut dyn Answerer<<Self::Target as Target>::Request, <Self::Target as Target>::Reply>,
    ) -> Result<(), Broken> {
        if self.is_worn_out {
            return Ok(());
        }
        let was_cut = std::mem::take(&mut self.was_cut);
        let model = &mut self.judged().model;
        if was_cut {
            let found = model.observe(target)?;
            model.may_hold(&found)?;
            model.settle(&found);
            return Ok(());
        }
        let asking = model.clone();
        asking.observe(&mut Checked { model, inner: target }).map(drop)
    }

    fn outstanding(&self) -> u32 {
        u32::try_from(self.outstanding.len()).expect("no more than the depth")
    }

    fn oldest(&self) -> Option<Nanos> {
        // Tags count up, and time does not fall: the first was sent first.
        self.outstanding.first_key_value().map(|(_, other)| other.at)
    }

    fn power_cut(&mut self, _media: &mut dyn Media) {
        self.outstanding.clear();
        self.was_cut = true;
    }

    fn harmed(&mut self, harmed: &Harmed, _media: &mut dyn Media) {
        unreachable!("{:?}: faults that harm content are not drawn for this interface", harmed.at);
    }

    fn command_failed(&mut self, _op: FailedOp, _status: Status) {}

    fn content_in_words(&self, _content: &[u8]) -> String {
        "bytes of the target's own format".to_owned()
    }

    fn request_in_words(request: &<Self::Target as Target>::Request) -> (u32, String) {
        (I::Model::tag(request).0, format!("{request:?}"))
    }

    fn reply_in_words(reply: &<Self::Target as Target>::Reply) -> (u32, String) {
        (I::Model::reply_tag(reply).0, format!("{reply:?}"))
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("requests.refused_as_they_must", self.refused),
            ("runs.ended_on_a_worn_drive", u64::from(self.is_worn_out)),
        ]
    }

    fn target_summary(&self, target: &Self::Target) -> String {
        target.summary()
    }

    fn chunks_needed(target: &Self::Target) -> Option<u32> {
        counted::gauge(target, "chunks_needed").and_then(|chunks| u32::try_from(chunks).ok())
    }

    fn wear_promise(&self, target: &Self::Target) -> Option<Promise> {
        if self.is_worn_out { None } else { I::wear_promise(target) }
    }

    fn target_counts(&self, target: &Self::Target) -> Vec<(&'static str, u64)> {
        counted::counts(target)
    }
}
