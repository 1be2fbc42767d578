//! Where the next I/O goes: blocks of a region, one after another or drawn.
//!
//! Deliberately not here: zones, which decide for themselves where a write lands.

use super::permutation::Permutation;
use crate::job::{Distribution, ZoneShares};
use ocssd_base::Prng;
use rand_distr::{Distribution as _, StandardNormal, Zipf};

/// What draws from a distribution of the Rust ecosystem, fed by our generator.
struct Feed<'a>(&'a mut Prng);

impl rand_core::TryRng for Feed<'_> {
    type Error = std::convert::Infallible;

    fn try_next_u32(&mut self) -> Result<u32, std::convert::Infallible> {
        Ok(u32::try_from(self.0.next_u64() >> 32).expect("the high half"))
    }

    fn try_next_u64(&mut self) -> Result<u64, std::convert::Infallible> {
        Ok(self.0.next_u64())
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), std::convert::Infallible> {
        for chunk in bytes.chunks_mut(8) {
            let word = self.0.next_u64().to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
        Ok(())
    }
}

/// How a place is drawn.
#[derive(Clone, Debug)]
enum Draw {
    /// Each place once before any again (fio's random map).
    Once { order: Permutation, next: u64 },
    /// Any place any time.
    Uniform,
    /// Few places often; which ones is scattered over the region, as fio does by hashing.
    Zipf { zipf: Zipf<f64>, scatter: Permutation },
    /// The self-similar law fio calls pareto: a fraction `h` of the draws goes to a fraction `1 - h` of the places.
    Pareto { power: f64, scatter: Permutation },
    /// Around the middle.
    Normal { deviation: f64 },
    /// More in some parts than in others.
    Zoned { shares: ZoneShares },
}

/// The places of one direction of one worker. A place is the unit offsets are aligned to.
#[derive(Clone, Debug)]
pub(super) struct Offsets {
    places: u64,
    draw: Option<Draw>,
    /// The next place of a sequential walk.
    cursor: u64,
    /// Places that a walk goes back before each I/O; 0 if it goes forwards.
    back: u64,
    /// I/Os until a new place is drawn.
    burst: u32,
    burst_left: u32,
    /// Percent of I/Os that are drawn at all.
    percent_random: u8,
}

/// What decides how places are drawn.
#[derive(Clone, Copy)]
pub(super) struct DrawOptions {
    pub(super) distribution: Distribution,
    /// Places may repeat before all were used.
    pub(super) no_map: bool,
    pub(super) ios_per_offset: u32,
    pub(super) percent_random: u8,
}

#[expect(clippy::cast_precision_loss, reason = "regions are far below 2^53 places")]
const fn as_f64(count: u64) -> f64 {
    count as f64
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the region's places")]
fn place_of(value: f64, places: u64) -> u64 {
    (value.max(0.0) as u64).min(places - 1)
}

impl Offsets {
    /// One after another from the first.
    pub(super) const fn sequential(places: u64) -> Self {
        Self { places, draw: None, cursor: 0, back: 0, burst: 1, burst_left: 0, percent_random: 100 }
    }

    /// From the end, each `back` places before the end of the last one.
    pub(super) fn backwards(places: u64, back: u64) -> Self {
        assert!((1..=places).contains(&back), "a walk back by {back} of {places} places");
        Self { cursor: places, back, ..Self::sequential(places) }
    }

    /// Drawn.
    pub(super) fn random(places: u64, options: &DrawOptions, prng: &mut Prng) -> Self {
        let scatter = Permutation::new(places, prng.next_u64());
        let draw = match options.distribution {
            Distribution::Uniform if options.no_map => Draw::Uniform,
            Distribution::Uniform => Draw::Once { order: scatter, next: 0 },
            Distribution::Zipf(theta) => {
                let zipf = Zipf::new(as_f64(places), theta).expect("theta was checked when the job was read");
                Draw::Zipf { zipf, scatter }
            }
            Distribution::Pareto(h) => Draw::Pareto { power: h.ln() / (1.0 - h).ln(), scatter },
            Distribution::Zoned(shares) => Draw::Zoned { shares },
            Distribution::Normal(percent) => Draw::Normal { deviation: percent / 100.0 * as_f64(places) },
        };
        let (burst, percent_random) = (options.ios_per_offset, options.percent_random);
        Self { places, draw: Some(draw), cursor: 0, back: 0, burst, burst_left: 0, percent_random }
    }

    /// The next place; `step` places are then behind it. `None` once a walk is at its end, or every place
    /// of a random map was used: call [`Self::rewind`] to go on.
    #[inline(always)]
    pub(super) fn next(&mut self, step: u64, prng: &mut Prng) -> Option<u64> {
        let follow = self.draw.is_none() || self.burst_left > 0 || !self.draws(prng);
        if follow {
            if self.back > 0 {
                let place = self.cursor.checked_sub(self.back)?;
                self.cursor = place + step;
                return Some(place);
            }
            self.burst_left = self.burst_left.saturating_sub(1);
            if self.cursor >= self.places {
                self.draw.as_ref()?;
                self.cursor = 0;
            }
            let place = self.cursor;
            self.cursor += step;
            return Some(place);
        }
        let place = self.drawn(prng)?;
        self.burst_left = self.burst - 1;
        self.cursor = place + step;
        Some(place)
    }

    #[inline(always)]
    fn draws(&self, prng: &mut Prng) -> bool {
        self.percent_random >= 100 || prng.below(100) < u64::from(self.percent_random)
    }

    #[inline(always)]
    fn drawn(&mut self, prng: &mut Prng) -> Option<u64> {
        let places = self.places;
        Some(match self.draw.as_mut()? {
            Draw::Once { next, .. } if *next == places => return None,
            Draw::Once { order, next } => {
                *next += 1;
                order.at(*next - 1)
            }
            Draw::Uniform => prng.below(places),
            Draw::Zipf { zipf, scatter } => scatter.at(place_of(zipf.sample(&mut Feed(prng)) - 1.0, places)),
            Draw::Pareto { power, scatter } => {
                let value = as_f64(places - 1) * prng.unit_f64().powf(*power);
                scatter.at(place_of(value, places))
            }
            Draw::Normal { deviation } => {
                let value: f64 = StandardNormal.sample(&mut Feed(prng));
                place_of(as_f64(places) / 2.0 + value * *deviation, places)
            }
            Draw::Zoned { shares } => {
                let (first, count) = shares.range(prng.below(100), places);
                first + prng.below(count)
            }
        })
    }

    /// Fills `ahead` with the next places, as far as they are cheaply told before they are drawn and nobody else draws from
    /// `prng` until then; returns how many. None unless places are drawn uniformly and each I/O has its own.
    pub(super) fn ahead(&self, prng: &Prng, ahead: &mut [u64]) -> usize {
        if self.burst > 1 || self.percent_random < 100 {
            return 0;
        }
        match &self.draw {
            Some(Draw::Once { order, next }) => {
                let rest = *next..self.places;
                let told = ahead.iter_mut().zip(rest).map(|(place, at)| *place = order.at(at));
                told.count()
            }
            Some(Draw::Uniform) => {
                let mut prng = prng.clone();
                ahead.fill_with(|| prng.below(self.places));
                ahead.len()
            }
            _ => 0,
        }
    }

    /// Starts over: the walk from its first place, the map with another order.
    pub(super) fn rewind(&mut self, prng: &mut Prng) {
        self.cursor = if self.back > 0 { self.places } else { 0 };
        if let Some(Draw::Once { order, next }) = &mut self.draw {
            *order = Permutation::new(self.places, prng.next_u64());
            *next = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::ZoneShare;

    fn counts(distribution: Distribution, no_map: bool, draws: u64) -> Vec<u64> {
        let mut prng = Prng::new(21);
        let options = DrawOptions { distribution, no_map, ios_per_offset: 1, percent_random: 100 };
        let mut offsets = Offsets::random(100, &options, &mut prng);
        let mut counts = vec![0; 100];
        for _ in 0..draws {
            let place = offsets.next(1, &mut prng).expect("a place");
            counts[usize::try_from(place).expect("below 100")] += 1;
        }
        counts.sort_unstable_by(|a, b| b.cmp(a));
        counts
    }

    #[test]
    fn the_map_uses_every_place_once_and_then_ends_until_rewound() {
        assert!(counts(Distribution::Uniform, false, 100).iter().all(|&count| count == 1));
        let mut prng = Prng::new(1);
        let options = DrawOptions {
            distribution: Distribution::Uniform,
            no_map: false,
            ios_per_offset: 1,
            percent_random: 100,
        };
        let mut offsets = Offsets::random(3, &options, &mut prng);
        let taken = (0..5).filter(|_| offsets.next(1, &mut prng).is_some()).count();
        assert_eq!(taken, 3);
        offsets.rewind(&mut prng);
        assert!(offsets.next(1, &mut prng).is_some());
    }

    #[test]
    fn what_is_ahead_comes_next_and_nothing_is_where_it_is_dear_to_tell() {
        let mut prng = Prng::new(7);
        let map = DrawOptions {
            distribution: Distribution::Uniform,
            no_map: false,
            ios_per_offset: 1,
            percent_random: 100,
        };
        for (no_map, told) in [(false, [4, 3, 0]), (true, [4, 4, 4])] {
            let mut offsets = Offsets::random(7, &DrawOptions { no_map, ..map }, &mut prng);
            for count in told {
                let mut ahead = [0; 4];
                assert_eq!(offsets.ahead(&prng, &mut ahead), count, "no map: {no_map}");
                for &place in &ahead[..count] {
                    assert_eq!(offsets.next(1, &mut prng), Some(place), "no map: {no_map}");
                }
            }
        }
        let dear = [
            DrawOptions { ios_per_offset: 2, ..map },
            DrawOptions { percent_random: 50, ..map },
            DrawOptions { distribution: Distribution::Zipf(1.2), ..map },
        ];
        for options in dear {
            assert_eq!(Offsets::random(5, &options, &mut prng).ahead(&prng, &mut [0; 4]), 0);
        }
        assert_eq!(Offsets::sequential(5).ahead(&prng, &mut [0; 4]), 0);
    }

    #[test]
    fn skewed_draws_are_skewed_and_uniform_ones_are_not() {
        let top = |distribution| counts(distribution, true, 10_000)[..20].iter().sum::<u64>();
        assert!((2_000..2_900).contains(&top(Distribution::Uniform)));
        // Zipf 1.2 over 100 places: the first twenty hold 0.80 of the mass.
        assert!((7_600..8_400).contains(&top(Distribution::Zipf(1.2))));
        // Pareto 0.2 is 80/20.
        assert!((7_500..8_500).contains(&top(Distribution::Pareto(0.2))));
    }

    #[test]
    fn parts_get_their_shares_of_the_draws() {
        let part = |access_percent, size_percent| ZoneShare { access_percent, size_percent };
        let shares = ZoneShares::new(&[part(50, 5), part(30, 15), part(20, 80)]).expect("JESD219");
        let mut prng = Prng::new(3);
        let distribution = Distribution::Zoned(shares);
        let options = DrawOptions { distribution, no_map: false, ios_per_offset: 1, percent_random: 100 };
        let mut offsets = Offsets::random(1_000, &options, &mut prng);
        let mut counts = [0_u64; 3];
        for _ in 0..10_000 {
            let place = offsets.next(1, &mut prng).expect("places repeat");
            counts[usize::from(place >= 50) + usize::from(place >= 200)] += 1;
        }
        for (count, percent) in counts.into_iter().zip([50, 30, 20]) {
            assert!((percent * 100 - 200..percent * 100 + 200).contains(&count), "{counts:?}");
        }
        for places in [1, 2, 7, 1_000_000] {
            for percent in 0..100 {
                let (first, count) = shares.range(percent, places);
                assert!(count > 0 && first + count <= places, "{percent} of {places}: {first}, {count}");
            }
        }
    }

    #[test]
    fn a_walk_back_starts_at_the_end_and_starts_over_there() {
        let mut prng = Prng::new(1);
        // Back by two from the end of an I/O of one: as fio's read:-8k with blocks of 4k.
        let mut offsets = Offsets::backwards(5, 2);
        let walk: Vec<_> = std::iter::from_fn(|| offsets.next(1, &mut prng)).collect();
        assert_eq!(walk, [3, 2, 1, 0]);
        offsets.rewind(&mut prng);
        assert_eq!(offsets.next(1, &mut prng), Some(3));
    }

    #[test]
    fn a_sequential_walk_steps_and_ends() {
        let mut prng = Prng::new(1);
        let mut offsets = Offsets::sequential(5);
        let walk: Vec<_> = std::iter::from_fn(|| offsets.next(2, &mut prng)).collect();
        assert_eq!(walk, [0, 2, 4]);
    }
}
