//! A translation layer of this crate's parts, without media: one open line per stream, GC of one victim at a time.

use crate::{
    Candidate, Classification, Classifier, ContinuousLimiter, ContinuousLimits, InstanceGeometry, L2p,
    LastWrites, LineId, Mapped, PhysicalAddress, Situation, Stream, ValidMap, VictimPolicy,
};
use ocssd_base::Prng;
use ocssd_lightnvm::{Geometry, PuId};

/// A layer and what is written to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setup {
    pub lines: u32,
    pub limits: ContinuousLimits,
    pub policy: VictimPolicy,
    pub classification: Classification,
    /// Logical sectors in percent of places.
    pub logical_percent: u64,
    /// Of the logical sectors the first `hot_percent` get `100 - hot_percent` of the writes; 50 is uniform.
    pub hot_percent: u64,
    pub seed: u64,
}

/// A line being collected, and how far.
struct Victim {
    line: LineId,
    next: PhysicalAddress,
    moved: u64,
}

/// What is known of a line beside its valid sectors.
#[derive(Clone, Copy)]
struct Line {
    stream: Stream,
    opened_at: u64,
    closed_at: u64,
}

pub(super) struct Layer {
    pub setup: Setup,
    pub l2p: L2p,
    pub valid: ValidMap,
    last_writes: LastWrites,
    classifier: Classifier,
    pub limiter: ContinuousLimiter,
    prng: Prng,
    /// Logical sectors written once, in order, before random ones.
    filled: u64,
    /// The logical sector each place was written for.
    owners: Vec<u64>,
    lines: Vec<Line>,
    free: Vec<LineId>,
    closed: Vec<LineId>,
    /// Per stream: the line, and its next place; none left at first.
    open: Vec<Option<(LineId, PhysicalAddress)>>,
    victim: Option<Victim>,
    /// Sectors users wrote, and GC.
    pub user: u64,
    pub gc: u64,
}

impl Layer {
    pub fn new(setup: Setup) -> Self {
        let line_sectors = u32::try_from(setup.limits.line_sectors).unwrap();
        let shape = InstanceGeometry::new(&Geometry::example(1, 1, setup.lines, line_sectors, 1), &[PuId(0)]);
        let sectors = shape.places() * setup.logical_percent / 100;
        let classifier = Classifier::new(setup.classification);
        let open = vec![None; usize::try_from(classifier.streams()).unwrap()];
        let line = Line { stream: Stream(0), opened_at: 0, closed_at: 0 };
        Self {
            setup,
            l2p: L2p::new(sectors, shape.places(), 0),
            valid: ValidMap::new(&shape),
            last_writes: LastWrites::new(sectors, 2),
            classifier,
            limiter: ContinuousLimiter::new(setup.limits),
            prng: Prng::new(setup.seed),
            filled: 0,
            owners: vec![0; usize::try_from(shape.places()).unwrap()],
            lines: vec![line; usize::try_from(setup.lines).unwrap()],
            free: (0..setup.lines).rev().map(LineId).collect(),
            closed: Vec::new(),
            open,
            victim: None,
            user: 0,
            gc: 0,
        }
    }

    fn start(&self, line: LineId) -> PhysicalAddress {
        PhysicalAddress(u64::from(line.0) * self.setup.limits.line_sectors)
    }

    fn left(&self, stream: Stream) -> u64 {
        let left = |(line, at): (LineId, PhysicalAddress)| self.start(LineId(line.0 + 1)).0 - at.0;
        self.open[stream.index()].map_or(0, left)
    }

    fn open_next(&mut self, stream: Stream) {
        if let Some((line, _)) = self.open[stream.index()] {
            self.lines[line.index()].closed_at = self.user;
            self.closed.push(line);
        }
        let line = self.free.pop().expect("GC is never out of lines");
        self.lines[line.index()] = Line { stream, opened_at: self.user, closed_at: 0 };
        self.open[stream.index()] = Some((line, self.start(line)));
    }

    fn write(&mut self, stream: Stream, lba: u64) {
        if self.left(stream) == 0 {
            self.open_next(stream);
        }
        let (line, place) = self.open[stream.index()].unwrap();
        self.open[stream.index()] = Some((line, PhysicalAddress(place.0 + 1)));
        self.valid.set(place);
        self.owners[usize::try_from(place.0).unwrap()] = lba;
        if let Mapped::Media(old) = self.l2p.set(lba, Mapped::Media(place)) {
            self.valid.clear(old, self.user);
        }
    }

    fn update(&mut self) {
        let is_worth_it = |&line: &LineId| self.valid.count(line) < self.setup.limits.line_sectors;
        let gc_has_work = self.victim.is_some() || self.closed.iter().any(is_worth_it);
        let user_streams = if self.setup.classification == Classification::SepBit { 2 } else { 1 };
        self.limiter.update(Situation {
            free_chunks: 0,
            free_lines: u64::try_from(self.free.len()).unwrap(),
            coming_sectors: 0,
            open_user_sectors: (0..user_streams).map(|stream| self.left(Stream(stream))).sum(),
            gc_has_work,
        });
    }

    fn take_victim(&mut self) -> Victim {
        let candidate = |&line: &LineId| {
            let touched = self.valid.last_invalidated(line).max(self.lines[line.index()].closed_at);
            let (valid, sectors) = (self.valid.count(line), self.setup.limits.line_sectors);
            Candidate { line, valid, sectors, age: self.user - touched }
        };
        let candidates: Vec<_> = self.closed.iter().map(candidate).collect();
        let line = self.setup.policy.pick(&mut self.prng, &candidates).expect("GC has work");
        self.closed.retain(|&closed| closed != line);
        Victim { line, next: self.start(line), moved: 0 }
    }

    /// Moves one sector, or finishes the victim, if GC should.
    fn gc_step(&mut self) {
        if !self.limiter.gc_should_run() {
            return;
        }
        let victim = self.victim.take().unwrap_or_else(|| self.take_victim());
        let Victim { line, next, moved } = victim;
        let Line { stream: from, opened_at, .. } = self.lines[line.index()];
        if let Some(place) = self.valid.next_valid(line, next) {
            let lba = self.owners[usize::try_from(place.0).unwrap()];
            assert_eq!(self.l2p.get(lba), Mapped::Media(place), "a valid place is where its sector is");
            let written = self.last_writes.get(lba, self.user);
            self.write(self.classifier.gc_stream(from, self.user, written), lba);
            self.gc += 1;
            self.limiter.on_gc_write(1);
            self.victim = Some(Victim { line, next: PhysicalAddress(place.0 + 1), moved: moved + 1 });
        } else {
            assert_eq!(self.valid.count(line), 0, "a line is reset when nothing of it is needed");
            self.valid.clear_line(line);
            self.free.insert(0, line);
            self.classifier.on_collected(from, opened_at, self.user);
            self.limiter.on_victim_done(moved, self.setup.limits.line_sectors);
        }
    }

    fn next_lba(&mut self) -> u64 {
        if self.filled < self.l2p.sectors() {
            self.filled += 1;
            return self.filled - 1;
        }
        let hot_sectors = self.l2p.sectors() * self.setup.hot_percent / 100;
        let is_hot = self.prng.below(100) < 100 - self.setup.hot_percent;
        if is_hot {
            self.prng.below(hot_sectors)
        } else {
            hot_sectors + self.prng.below(self.l2p.sectors() - hot_sectors)
        }
    }

    fn user_write(&mut self) {
        let lba = self.next_lba();
        let stream = self.classifier.user_stream(self.user, self.last_writes.get(lba, self.user));
        self.limiter.on_user_write(1);
        self.write(stream, lba);
        self.last_writes.set(lba, self.user);
        self.user += 1;
    }

    /// Runs until users wrote `sectors` more; returns the mean of free lines, in sectors.
    pub fn run(&mut self, sectors: u64) -> u64 {
        let end = self.user + sectors;
        let (mut steps, mut free_sum, mut stalled) = (0, 0, 0);
        while self.user < end {
            self.update();
            self.gc_step();
            self.update();
            stalled += 1;
            assert!(stalled < 5_000, "users wait at {:?}, {:?}", self.limiter.gauges(), self.setup);
            for _ in 0..self.limiter.user_credit().min(8) {
                self.user_write();
                stalled = 0;
            }
            free_sum += self.limiter.gauges().free_sectors;
            steps += 1;
        }
        free_sum / steps
    }
}
