//! Swarm testing: each seed draws which features there are at all, then how strong each is (Groce et al., ISSTA 2012).
//!
//! A run in which everything happens a little finds less than many in which some things never happen and others all the
//! time. Deliberately not here: what is done with a draw.

mod beside;
mod checkpoints;
mod disk;
mod drive;
mod harm;
mod knobs;
mod loss;
mod pages;
mod rare;
mod rot;
mod small;
mod stale;
mod steps;
mod target;
mod undone;
mod wear;

use crate::block::Mix;
use crate::plan::WorldPlan;
use ocssd_base::{Nanos, Prng};
use ocssd_lightnvm::Payload;
use ocssd_targets::registry::{Kind, MakeOf};

/// How large worlds are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Size {
    /// One or two units of a few dozen small chunks, no media faults, power cuts all the time: thousands a second.
    Tiny,
    /// Anything: one unit to 128, any write unit, all faults.
    #[default]
    Any,
}

/// Draws of one seed, which come true with some likelihood.
pub(crate) struct Draw(Prng);

impl Draw {
    fn new(prng: &Prng, label: &str) -> Self {
        Self(prng.split(label))
    }

    /// True in `percent` of all draws.
    fn percent(&mut self, percent: u64) -> bool {
        self.0.below(100) < percent
    }

    /// One of `from..=to`.
    fn between(&mut self, from: u32, to: u32) -> u32 {
        assert!(from <= to, "nothing lies between {from} and {to}");
        let span = u64::from(to - from) + 1;
        from + u32::try_from(self.0.below(span)).expect("below a 32-bit bound, or 2^32 of it")
    }

    /// One of a list.
    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        let at = self.0.below(u64::try_from(choices.len()).expect("a length fits 64 bits"));
        choices[usize::try_from(at).expect("below a length")]
    }

    /// 64 bits.
    fn raw(&mut self) -> u64 {
        self.0.next_u64()
    }
}

/// No request of a drive without stuck units may take longer, but for latency spikes (chosen: all of garbage collection
/// lies between).
const BOUND: Nanos = Nanos::from_secs(60);

/// Draws of worlds of a kind of their own.
const WEAR: &str = "wear";
const WEAR_BY_CHUNK: &str = "wear by chunk";
const PAGES: &str = "pages of the index";
const SMALL: &str = "small blocks";
const ROT: &str = "rot";
const LOSS: &str = "loss";
const CHECKPOINTS: &str = "checkpoints";
const DISK: &str = "disk";
const RARE: &str = "rare";
/// Draws of worlds of several targets.
const BESIDE: &str = "beside";

/// The option of every kind whose blocks may be smaller than sectors.
const BLOCK_BYTES: &str = "block_bytes";

/// True if a world is of a kind of its own.
fn is_special(prng: &Prng) -> bool {
    let kinds = [
        (WEAR, wear::PERCENT),
        (SMALL, small::PERCENT),
        (ROT, rot::PERCENT),
        (LOSS, loss::PERCENT),
        (CHECKPOINTS, checkpoints::PERCENT),
        (RARE, rare::PERCENT),
    ];
    kinds.into_iter().any(|(label, percent)| Draw::new(prng, label).percent(percent))
}

/// Kinds of worlds of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Own {
    /// Something happens to pblk all the time.
    OfPblk,
    /// Most that is written is left alone.
    Wear,
    /// Media lose pages of an index.
    Pages,
}

impl Own {
    /// The kind of a world, if it is of one.
    fn draw(prng: &Prng, asked: &Asked<'_>) -> Option<Self> {
        let target = asked.target;
        let is = |label: &str, percent: u64| Draw::new(prng, label).percent(percent);
        match asked.size {
            Size::Tiny => None,
            Size::Any if target == "pblk" => is_special(prng).then_some(Self::OfPblk),
            Size::Any if wear::is_by_chunk(target) && is(WEAR_BY_CHUNK, wear::PERCENT) => Some(Self::Wear),
            Size::Any if target == "kv" && is(PAGES, pages::PERCENT) => Some(Self::Pages),
            Size::Any => None,
        }
    }

    /// Makes a plan one of this kind.
    fn make(self, prng: &Prng, asked: &Asked<'_>, plan: &mut WorldPlan) {
        match self {
            Self::OfPblk => draw_special(prng, plan),
            Self::Wear => wear::draw_by_chunk(&mut Draw::new(prng, WEAR_BY_CHUNK), asked.target, plan),
            Self::Pages => pages::draw(&mut Draw::new(prng, PAGES), plan),
        }
    }
}

/// Which worlds are drawn.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The target's name.
    pub target: &'a str,
    /// How large worlds are.
    pub size: Size,
    /// Options of the target that are not drawn, name and value.
    pub fixed: &'a [(String, String)],
    /// The target's contract knows what a sector held: media may lose content.
    pub may_lose_content: bool,
}

impl<'a> Asked<'a> {
    /// Worlds of a target of blocks; nothing is held fixed.
    #[must_use]
    pub const fn any(target: &'a str, size: Size) -> Self {
        Self { target, size, fixed: &[], may_lose_content: true }
    }

    /// Worlds of this kind, by whatever interface it is spoken to.
    #[must_use]
    pub const fn of(kind: &'a Kind, size: Size, fixed: &'a [(String, String)]) -> Self {
        let may_lose_content = matches!(kind.make_of(), MakeOf::Block(_));
        Self { target: kind.name, size, fixed, may_lose_content }
    }

    /// The value an option is held at.
    fn fixed(&self, option: &str) -> Option<&'a str> {
        self.fixed.iter().rfind(|(name, _)| name == option).map(|(_, value)| value.as_str())
    }
}

/// What `seed` means for the target called `target`. `attempt` counts draws the drive was too small for.
#[must_use]
pub fn draw(seed: u64, attempt: u32, size: Size, target: &str) -> WorldPlan {
    draw_asked(seed, attempt, &Asked::any(target, size))
}

/// As [`draw`], of the worlds that are asked for.
#[must_use]
pub fn draw_asked(seed: u64, attempt: u32, asked: &Asked<'_>) -> WorldPlan {
    let &Asked { target, size, .. } = asked;
    let prng = Prng::new(seed ^ u64::from(attempt) << 56);
    let own = Own::draw(&prng, asked);
    // Those are tiny worlds in which something else happens all the time.
    let is_on_disk = own.is_none() && disk::fits(target) && Draw::new(&prng, DISK).percent(disk::PERCENT);
    let size = if own.is_some() || is_on_disk { Size::Tiny } else { size };
    let mut config = drive::draw(&mut Draw::new(&prng, "drive"), size, seed);
    drive::enlarge_one_unit(&mut config.geometry, size, target);
    let mut units = target::units(&mut Draw::new(&prng, "units"), &config.geometry, target);
    let may_share = own.is_none() && !is_on_disk;
    let others = if may_share { beside::split(&prng, target, &mut units) } else { Vec::new() };
    let is_one_interface = !others.iter().any(beside::Other::is_of_other_interface);
    let asked = &Asked { may_lose_content: asked.may_lose_content && is_one_interface, ..*asked };
    if size == Size::Any && asked.may_lose_content {
        drive::draw_faults(&mut Draw::new(&prng, "faults"), &mut config);
        drive::spare_lines(&mut config, units.len(), target);
    }
    if !others.is_empty() && size == Size::Tiny {
        beside::enlarge(&mut config.geometry, 1 + others.len());
    }
    if asked.fixed(BLOCK_BYTES).is_some() || !asked.may_lose_content {
        // A stamp stands for a whole sector, and content of other interfaces has any length.
        config.payload = Payload::Bytes;
    }
    let chosen = target::draw(&mut Draw::new(&prng, "target"), asked, &config, size);
    let mut mix = mix(&mut Draw::new(&prng, "mix"), size, &chosen);
    discard_most(&mut Draw::new(&prng, "discard most"), &mut mix);
    if mix.atomic_blocks > 0 {
        mix.transaction_percent = Draw::new(&prng, "transactions").one_of(&[0, 20, 60]);
    }
    let mut steps = steps::draw(&mut Draw::new(&prng, "steps"), size, &config);
    if !asked.may_lose_content {
        steps.retain(steps::keeps_content);
    }
    let options = chosen.options;
    let mut plan = WorldPlan {
        config,
        units,
        options,
        later_options: Vec::new(),
        mix,
        steps,
        beside: Vec::new(),
        disk: false,
        bound: BOUND,
    };
    target::draw_later(&mut Draw::new(&prng, "active units"), target, plan.units.len(), &mut plan.options);
    if target == "pblk" {
        let draw = &mut Draw::new(&prng, "larger writes");
        target::draw_sec_per_write(draw, &plan.config, &mut plan.options);
        knobs::draw(&mut Draw::new(&prng, "small scale"), &mut plan);
    }
    if is_on_disk {
        disk::make(&mut Draw::new(&prng, "on disk"), &mut plan);
    }
    match own {
        Some(own) => own.make(&prng, asked, &mut plan),
        None if size == Size::Any => rare::draw_any(&mut Draw::new(&prng, RARE), &mut plan),
        None => {}
    }
    let draw = &mut Draw::new(&prng, "beside of its own");
    others.into_iter().for_each(|other| beside::draw(draw, asked, size, other, &mut plan));
    draw_harm(&prng, asked, size, &mut plan);
    undone::draw(&mut Draw::new(&prng, "undone"), &mut plan, size, asked);
    stale::draw(&mut Draw::new(&prng, "stale reports"), &mut plan);
    target::hold(&mut plan.options, asked.fixed);
    target::draw_changes(&mut Draw::new(&prng, "option changes"), asked, &mut plan);
    plan
}

/// What happens all the time in worlds of a kind of their own.
fn draw_special(prng: &Prng, plan: &mut WorldPlan) {
    wear::draw(&mut Draw::new(prng, WEAR), plan);
    small::draw(&mut Draw::new(prng, SMALL), plan);
    rot::draw(&mut Draw::new(prng, ROT), plan);
    loss::draw(&mut Draw::new(prng, LOSS), plan);
    checkpoints::draw(&mut Draw::new(prng, CHECKPOINTS), plan);
    rare::draw_tiny(&mut Draw::new(prng, RARE), plan);
}

/// What takes content away, of targets whose contract knows of that.
fn draw_harm(prng: &Prng, asked: &Asked<'_>, size: Size, plan: &mut WorldPlan) {
    if plan.disk || !asked.may_lose_content {
        // A disk below the drive has failures of its own; other interfaces' contracts know of no loss.
    } else if size == Size::Any {
        harm::draw_any(&mut Draw::new(prng, "harm"), plan, asked.target);
        harm::draw_strays(&mut Draw::new(prng, "strays"), plan, asked.target);
        harm::draw_shelf(&mut Draw::new(prng, "shelf"), plan);
    } else {
        harm::draw_tiny(&mut Draw::new(prng, "harm"), plan);
        harm::draw_pairs(&mut Draw::new(prng, "pairs"), plan, asked.target);
    }
}

/// Now and then nearly everything dies by discards, and whole lines with it: what is reset then was never overwritten.
fn discard_most(draw: &mut Draw, mix: &mut Mix) {
    if mix.discards > 0 && draw.percent(20) {
        mix.discards = mix.writes;
        mix.longest *= 2;
        mix.span_percent = 20;
    }
}

fn mix(draw: &mut Draw, size: Size, chosen: &target::Chosen) -> Mix {
    let mut weight = |percent: u64, most: u32| if draw.percent(percent) { draw.between(1, most) } else { 0 };
    let (reads, flushes, discards, zeroes) = (weight(80, 60), weight(80, 20), weight(50, 20), weight(40, 15));
    let fua_percent = weight(50, 60);
    let hot_percent = weight(50, 90);
    let (longest, depth) = match size {
        Size::Tiny => (draw.one_of(&[4, 16, 24]), draw.one_of(&[1, 4, 8])),
        Size::Any => (draw.one_of(&[1, 4, 16, 64, 200]), draw.one_of(&[1, 2, 8, 32, 64])),
    };
    Mix {
        reads,
        writes: draw.between(20, 100),
        flushes,
        discards,
        zeroes,
        fua_percent,
        longest,
        span_percent: draw.one_of(&[100, 100, 60, 20]),
        hot_percent,
        cold_after: 0,
        depth,
        discards_are_durable: chosen.discards_are_durable,
        answers_are_durable: chosen.answers_are_durable,
        atomic_blocks: chosen.atomic_blocks,
        transaction_percent: 0,
    }
}
