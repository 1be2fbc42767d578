//! Trials: a reference target that keeps more than it must, or less, against the model that judges it.
//!
//! The target is a second model that makes changes durable when it pleases. Requests are drawn, replies come in any order, and
//! the power goes at any moment; then everything the target shows is held against what was promised. A planted bug
//! ([`Trial::canary`]) must be found. No time passes. Deliberately not here: devices, and targets that have one.

use super::{Expected, Model};
use crate::contract::{Answerer, Broken};
use ocssd_base::Prng;
use ocssd_lightnvm::{Buffers, Tag};
use std::fmt;

/// A model as a target that answers at once.
#[derive(Clone, Debug)]
pub struct Reference<M> {
    /// What it holds.
    pub model: M,
    /// Where payload lies.
    pub buffers: Buffers,
}

impl<M: Model> Reference<M> {
    /// Answers.
    pub fn ask(&mut self, request: M::Request) -> M::Reply {
        let expected = self.model.apply(&request, &self.buffers);
        expected.deliver(&mut self.buffers);
        self.model.answered(&expected.reply);
        expected.reply
    }
}

impl<M: Model> Answerer<M::Request, M::Reply> for Reference<M> {
    fn buffers(&mut self) -> &mut Buffers {
        &mut self.buffers
    }

    fn ask(&mut self, request: M::Request) -> Result<M::Reply, Broken> {
        Ok(Self::ask(self, request))
    }
}

/// Who draws requests.
pub trait Requests<M: Model> {
    /// The next request; `None` if there is none now.
    fn next(&mut self, tag: Tag, prng: &mut Prng, model: &M, buffers: &mut Buffers) -> Option<M::Request>;

    /// A request was answered; its buffers are free.
    fn answered(&mut self, request: &M::Request, reply: &M::Reply, buffers: &mut Buffers);

    /// The power went: outstanding requests will not be answered, all buffers are free, and the target holds what `model` does.
    fn power_cut(&mut self, model: &M, buffers: &mut Buffers);
}

/// What a trial came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Requests that succeeded.
    pub succeeded: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// Power cuts.
    pub cuts: u64,
}

/// A trial that found something.
#[derive(Clone, Debug)]
pub struct Found {
    /// The seed.
    pub seed: u64,
    /// The step.
    pub step: u32,
    /// What was promised, and what came.
    pub broken: Broken,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}, step {}: {}: {}", self.seed, self.step, self.broken.rule, self.broken)
    }
}

/// Most requests outstanding (chosen: enough that replies pass each other, few enough that flushes find little to do).
const OUTSTANDING_MAX: usize = 6;
/// The tag of the target's own flushes: no host uses it.
const OWN_TAG: Tag = Tag(u32::MAX);

#[derive(Debug)]
struct Outstanding<M: Model> {
    request: M::Request,
    expected: Expected<M::Reply>,
    produced: Expected<M::Reply>,
}

/// A bug with its name: done to a reference target right before its power goes.
pub type Canary<M> = (&'static str, fn(&mut M));

/// One trial.
#[derive(Debug)]
pub struct Trial<M: Model> {
    seed: u64,
    prng: Prng,
    judge: M,
    target: Reference<M>,
    outstanding: Vec<Outstanding<M>>,
    next_tag: u32,
    tally: Tally,
    /// A bug: done to the target right before the power goes.
    pub canary: Option<fn(&mut M)>,
}

impl<M: Model> Trial<M> {
    /// A target that is as this model, with buffers of this pool.
    #[must_use]
    pub fn new(seed: u64, model: M, buffers: Buffers) -> Self {
        Self {
            seed,
            prng: Prng::new(seed),
            judge: model.clone(),
            target: Reference { model, buffers },
            outstanding: Vec::new(),
            next_tag: 0,
            tally: Tally::default(),
            canary: None,
        }
    }

    /// Runs `steps` steps, and ends with a power cut.
    ///
    /// # Errors
    /// The first promise that was broken.
    pub fn run(mut self, steps: u32, requests: &mut dyn Requests<M>) -> Result<Tally, Box<Found>> {
        let seed = self.seed;
        for step in 0..steps {
            let end = step + 1 == steps;
            self.step(end, requests).map_err(|broken| Box::new(Found { seed, step, broken }))?;
        }
        Ok(self.tally)
    }

    fn step(&mut self, end: bool, requests: &mut dyn Requests<M>) -> Result<(), Broken> {
        match self.prng.below(64) {
            _ if end => self.power_cut(requests),
            0 => self.power_cut(requests),
            1..4 => {
                self.persist();
                Ok(())
            }
            4..32 if self.outstanding.len() < OUTSTANDING_MAX => {
                self.send(requests);
                Ok(())
            }
            _ => self.reply(requests),
        }
    }

    fn send(&mut self, requests: &mut dyn Requests<M>) {
        let Self { prng, judge, target, .. } = self;
        let tag = Tag(self.next_tag);
        let Some(request) = requests.next(tag, prng, judge, &mut target.buffers) else { return };
        self.next_tag += 1;
        let expected = judge.apply(&request, &target.buffers);
        let produced = target.model.apply(&request, &target.buffers);
        if prng.below(2) == 0 {
            target.model.answered(&produced.reply);
        }
        self.outstanding.push(Outstanding { request, expected, produced });
    }

    /// The target makes durable what it thinks is over.
    fn persist(&mut self) {
        let Reference { model, buffers } = &mut self.target;
        let reply = model.apply(&M::flush(OWN_TAG), buffers).reply;
        model.answered(&reply);
    }

    fn reply(&mut self, requests: &mut dyn Requests<M>) -> Result<(), Broken> {
        let Some(count) = u64::try_from(self.outstanding.len()).ok().filter(|&count| count > 0) else {
            return Ok(());
        };
        let nth = usize::try_from(self.prng.below(count)).expect("an index");
        let Outstanding { request, expected, produced } = self.outstanding.swap_remove(nth);
        let Reference { model, buffers } = &mut self.target;
        produced.deliver(buffers);
        self.judge.agrees(&expected, &produced.reply, buffers)?;
        let is_success = !M::is_refused(&produced.reply);
        self.tally.succeeded += u64::from(is_success);
        self.tally.refused += u64::from(!is_success);
        self.judge.answered(&produced.reply);
        model.answered(&produced.reply);
        requests.answered(&request, &produced.reply, buffers);
        Ok(())
    }

    fn power_cut(&mut self, requests: &mut dyn Requests<M>) -> Result<(), Broken> {
        if let Some(canary) = self.canary {
            canary(&mut self.target.model);
        }
        self.target.model.cut();
        self.outstanding.clear();
        self.target.buffers.reclaim();
        let observation = self.judge.observe(&mut self.target)?;
        self.judge.may_hold(&observation)?;
        self.judge.settle(&observation);
        self.tally.cuts += 1;
        requests.power_cut(&self.judge, &mut self.target.buffers);
        Ok(())
    }
}
