//! Write amplification in closed form: what a simulation of garbage collection must come close to.
//!
//! Uniformly random single-page writes unless said otherwise. `T` pages exist, `U` of them are exported;
//! utilisation `rho = U/T`, and `a = T/U`. Sources: Menon (1995) and Robinson (1996) for first-in first-out;
//! Desnoyers, "Analytic modeling of SSD write performance" (SYSTOR 2012) for greedy; Xiang and Kurkoski (2011) agree in
//! the limit of large blocks. Compare with the *effective* utilisation: pages of open, reserved and metadata blocks are
//! not spare.

/// Exported pages over physical pages; above 0 and below 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Utilisation(f64);

impl Utilisation {
    /// From a fraction; nothing unless it is above 0 and below 1.
    pub fn new(exported_over_physical: f64) -> Option<Self> {
        (exported_over_physical > 0.0 && exported_over_physical < 1.0).then_some(Self(exported_over_physical))
    }

    /// From over-provisioning in pblk's sense: percent of the physical pages that are not exported.
    pub fn from_spare_percent(spare_percent: f64) -> Option<Self> {
        Self::new(1.0 - spare_percent / 100.0)
    }

    /// What is left when `reserved` of `lines` lines can never hold collectable data; nothing when no spare remains.
    pub fn without_reserve(self, lines: u32, reserved: u32) -> Option<Self> {
        let usable = lines.checked_sub(reserved).filter(|usable| *usable > 0)?;
        Self::new(self.0 * f64::from(lines) / f64::from(usable))
    }

    /// The fraction.
    pub fn get(self) -> f64 {
        self.0
    }
}

/// The principal branch of Lambert's W: the `w >= -1` with `w e^w = x`.
///
/// Bounds: `x >= -1/e`. Halley's iteration; error below 1e-12 except within 1e-9 of the branch point.
pub fn lambert_w0(x: f64) -> f64 {
    let branch_point = -(-1.0_f64).exp();
    assert!(x >= branch_point - 1e-15, "W0 is real from -1/e = {branch_point}, found {x}");
    // A series about the branch point below 0, the logarithm above: both near enough for Halley.
    let mut w = if x < 0.0 {
        let p = (2.0 * (std::f64::consts::E * x + 1.0)).max(0.0).sqrt();
        -1.0 + p - p * p / 3.0
    } else {
        x.ln_1p()
    };
    // Chosen: Halley triples the digits each time, so ten steps are ample; 50 bounds the loop.
    for _ in 0..50 {
        let exponential = w.exp();
        let residual = w * exponential - x;
        let slope = exponential * (w + 1.0);
        if slope.abs() < 1e-12 {
            break;
        }
        let step = residual / (slope - (w + 2.0) * residual / (2.0 * (w + 1.0)));
        w -= step;
        if step.abs() < 1e-14 {
            break;
        }
    }
    w
}

/// Fraction of valid pages in a block when first-in first-out collects it: the `v < 1` with `v = exp(-a (1 - v))`.
///
/// Also that of least-recently-used, and of greedy as blocks grow large.
pub fn fifo_valid_fraction(utilisation: Utilisation) -> f64 {
    let a = 1.0 / utilisation.0;
    -utilisation.0 * lambert_w0(-a * (-a).exp())
}

/// Pages written to media per page written by the user, first-in first-out: `1 / (1 - v)`.
pub fn fifo_write_amplification(utilisation: Utilisation) -> f64 {
    1.0 / (1.0 - fifo_valid_fraction(utilisation))
}

/// The same for greedy selection and blocks of `pages_per_block` pages (Desnoyers). Bounds: at least 1 page.
pub fn greedy_write_amplification(utilisation: Utilisation, pages_per_block: u32) -> f64 {
    assert!(pages_per_block > 0, "a block has at least one page");
    let pages = f64::from(pages_per_block);
    let a = 1.0 / utilisation.0;
    let stretched = (1.0 + 1.0 / (2.0 * pages)) * a;
    let valid_pages = 0.5 - pages / a * lambert_w0(-stretched * (-stretched).exp());
    pages / (pages - valid_pages + 1.0)
}

/// Data of two temperatures, each uniformly random in itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TwoTemperatures {
    /// Share of the data that is hot; above 0 and below 1.
    pub hot_data: f64,
    /// Share of the writes that go to it; above 0 and below 1.
    pub hot_writes: f64,
}

/// The best that two perfectly separated streams can do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BestSplit {
    /// Share of the spare pages that the hot stream gets.
    pub hot_spare: f64,
    /// Write amplification of both streams together.
    pub write_amplification: f64,
}

/// Splits the spare pages between a hot and a cold stream so that write amplification is least.
///
/// Golden-section search over the one share; the sum of the two amplifications is convex in it. Error below 1e-6.
pub fn two_stream_optimum(utilisation: Utilisation, skew: TwoTemperatures) -> BestSplit {
    for share in [skew.hot_data, skew.hot_writes] {
        assert!(
            share > 0.0 && share < 1.0,
            "a share of two temperatures lies between 0 and 1, found {share}"
        );
    }
    let ratio = (5.0_f64.sqrt() - 1.0) / 2.0;
    // Chosen: a stream without spare never frees anything, so the search keeps off both ends.
    let (mut low, mut high) = (1e-6, 1.0 - 1e-6);
    // Chosen: 0.618^60 is 3e-13, below what the sum can resolve.
    for _ in 0..60 {
        let (left, right) = (high - ratio * (high - low), low + ratio * (high - low));
        if split_write_amplification(utilisation, skew, left)
            < split_write_amplification(utilisation, skew, right)
        {
            high = right;
        } else {
            low = left;
        }
    }
    let hot_spare = f64::midpoint(low, high);
    let write_amplification = split_write_amplification(utilisation, skew, hot_spare);
    BestSplit { hot_spare, write_amplification }
}

/// Write amplification when the hot stream gets the share `hot_spare` of the spare pages.
fn split_write_amplification(utilisation: Utilisation, skew: TwoTemperatures, hot_spare: f64) -> f64 {
    let spare = 1.0 - utilisation.0;
    let stream = |data: f64, spare_share: f64| {
        let exported = data * utilisation.0;
        let own = Utilisation::new(exported / (exported + spare_share * spare));
        fifo_write_amplification(own.expect("both parts are positive, so the fraction is inside 0 and 1"))
    };
    skew.hot_writes * stream(skew.hot_data, hot_spare)
        + (1.0 - skew.hot_writes) * stream(1.0 - skew.hot_data, 1.0 - hot_spare)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rho(value: f64) -> Utilisation {
        Utilisation::new(value).expect("the cases are inside 0 and 1")
    }

    #[test]
    fn lambert_w_inverts_its_definition() {
        for x in [-0.367_8, -0.3, -0.1, -1e-9, 0.0, 0.5, 1.0, 100.0] {
            let w = lambert_w0(x);
            assert!((w * w.exp() - x).abs() < 1e-10 * x.abs().max(1.0) && w >= -1.0, "W0({x}) = {w}");
        }
        assert!((lambert_w0(1.0) - 0.567_143_290_409_784).abs() < 1e-14);
    }

    #[test]
    fn fifo_solves_its_fixed_point() {
        for value in [0.01, 0.3, 0.7, 0.89, 0.99, 0.999] {
            let v = fifo_valid_fraction(rho(value));
            assert!((v - (-(1.0 - v) / value).exp()).abs() < 1e-9 && v < 1.0, "rho {value}: v {v}");
        }
    }

    #[test]
    fn greedy_comes_closer_to_fifo_as_blocks_grow_and_is_never_worse() {
        for value in [0.5, 0.7, 0.89, 0.93] {
            let fifo = fifo_write_amplification(rho(value));
            let greedy: Vec<f64> =
                [16, 64, 512, 65_536].map(|pages| greedy_write_amplification(rho(value), pages)).to_vec();
            assert!(greedy.is_sorted() && greedy[3] < fifo, "rho {value}: {greedy:?} {fifo}");
            assert!((fifo - greedy[3]) / fifo < 1e-3, "rho {value}: {greedy:?} {fifo}");
        }
    }

    #[test]
    fn separation_of_equal_temperatures_gains_nothing() {
        let skew = TwoTemperatures { hot_data: 0.3, hot_writes: 0.3 };
        let best = two_stream_optimum(rho(0.89), skew);
        assert!((best.write_amplification - fifo_write_amplification(rho(0.89))).abs() < 1e-5, "{best:?}");
        assert!((best.hot_spare - 0.3).abs() < 1e-3, "{best:?}");
    }

    #[test]
    fn reserved_lines_take_from_the_spare() {
        let pblk = Utilisation::from_spare_percent(11.0).expect("11 % is valid");
        let left = pblk.without_reserve(100, 2).expect("9 % are left");
        assert!((left.get() - 0.89 * 100.0 / 98.0).abs() < 1e-12);
        assert_eq!(pblk.without_reserve(100, 11), None);
        assert_eq!(pblk.without_reserve(100, 100), None);
        assert_eq!((Utilisation::new(0.0), Utilisation::new(1.0)), (None, None));
    }
}
