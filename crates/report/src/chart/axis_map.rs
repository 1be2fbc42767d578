//! Places numbers along an axis and chooses its ticks.

use super::check::as_x;
use super::number::tick;
use super::spec::{Axis, Scale};

/// A place on an axis with what is written beside it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tick {
    /// The number.
    pub value: f64,
    /// Its text.
    pub label: String,
}

/// An axis with its ends and ticks settled.
#[derive(Clone, Debug)]
pub(crate) struct AxisMap {
    scale: Scale,
    least: f64,
    greatest: f64,
    is_named: bool,
    /// In increasing order, all inside the ends.
    pub ticks: Vec<Tick>,
}

impl AxisMap {
    /// The horizontal axis of cells: half a column beyond the first and the last, so that all are whole.
    pub fn columns(axis: &Axis, data: &[f64]) -> Self {
        if !axis.categories.is_empty() {
            return Self::of_categories(axis);
        }
        let (least, greatest) = extent(data.iter().copied());
        let half = column_step(data) / 2.0;
        Self::between(axis, least - half, greatest + half)
    }

    /// The horizontal axis: ends where the data ends, and a little room.
    pub fn horizontal(axis: &Axis, data: impl Iterator<Item = f64>) -> Self {
        if !axis.categories.is_empty() {
            return Self::of_categories(axis);
        }
        let (least, greatest) = axis.range.unwrap_or_else(|| padded(axis.scale, extent(data)));
        Self::between(axis, least, greatest)
    }

    /// The vertical axis: from 0 for quantities on a linear scale, so that heights compare; ends on ticks.
    ///
    /// Rows with names are as high as each other.
    pub fn vertical(axis: &Axis, data: impl Iterator<Item = f64>) -> Self {
        if !axis.categories.is_empty() {
            return Self::of_categories(axis);
        }
        if let Some((least, greatest)) = axis.range {
            return Self::between(axis, least, greatest);
        }
        let (least, greatest) = extent(data);
        let (least, greatest) = match axis.scale {
            Scale::Linear => round_linear(least.min(0.0), greatest.max(0.0)),
            Scale::Log2 => (2.0_f64.powf(least.log2().floor()), 2.0_f64.powf(greatest.log2().ceil())),
            Scale::Log10 => (round_1_2_5(least, false), round_1_2_5(greatest, true)),
        };
        // A single number that is itself round needs room above.
        let greatest = if greatest > least { greatest } else { least * 2.0 };
        Self::between(axis, least, greatest)
    }

    fn of_categories(axis: &Axis) -> Self {
        let place = |(index, label): (usize, &String)| Tick { value: as_x(index), label: label.clone() };
        let ticks = axis.categories.iter().enumerate().map(place).collect();
        let greatest = as_x(axis.categories.len()) - 0.5;
        Self { scale: Scale::Linear, least: -0.5, greatest, is_named: true, ticks }
    }

    fn between(axis: &Axis, least: f64, greatest: f64) -> Self {
        assert!(least < greatest, "an axis has a length, found {least} to {greatest}");
        let values = if axis.ticks.is_empty() {
            match axis.scale {
                Scale::Linear => linear_ticks(least, greatest),
                Scale::Log2 => log2_ticks(least, greatest),
                Scale::Log10 => log10_ticks(least, greatest),
            }
        } else {
            axis.ticks.clone()
        };
        let slack = 1e-9 * (greatest - least);
        let mut ticks: Vec<Tick> = values
            .into_iter()
            .filter(|value| (least - slack..=greatest + slack).contains(value))
            .map(|value| Tick { value, label: tick(value) })
            .collect();
        ticks.sort_by(|a, b| a.value.total_cmp(&b.value));
        Self { scale: axis.scale, least, greatest, is_named: false, ticks }
    }

    /// Where a number lies: 0 at the least end, 1 at the greatest.
    pub fn place(&self, value: f64) -> f64 {
        let (least, greatest) = (self.measure(self.least), self.measure(self.greatest));
        (self.measure(value) - least) / (greatest - least)
    }

    /// Where bars begin: at 0 when the axis shows it, else at its lower end.
    pub fn base(&self) -> f64 {
        match self.scale {
            Scale::Linear if self.is_named => 0.0,
            Scale::Linear => self.place(0.0_f64.clamp(self.least, self.greatest)),
            Scale::Log2 | Scale::Log10 => 0.0,
        }
    }

    fn measure(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Linear => value,
            Scale::Log2 => value.log2(),
            Scale::Log10 => value.log10(),
        }
    }
}

/// The distance of the two nearest columns; 1 of a single one.
pub(crate) fn column_step(data: &[f64]) -> f64 {
    let mut places = data.to_vec();
    places.sort_by(f64::total_cmp);
    let steps = places.windows(2).map(|pair| pair[1] - pair[0]).filter(|step| *step > 1e-12);
    steps
        .fold(None, |least: Option<f64>, step| Some(least.map_or(step, |least| least.min(step))))
        .unwrap_or(1.0)
}

/// Least and greatest number; 0 and 1 when there is none.
fn extent(data: impl Iterator<Item = f64>) -> (f64, f64) {
    data.fold(None, |ends: Option<(f64, f64)>, value| {
        Some(ends.map_or((value, value), |(low, high)| (low.min(value), high.max(value))))
    })
    .unwrap_or((0.0, 1.0))
}

/// The ends moved outwards by 4 % of the length, so that markers at the ends are whole. Chosen.
fn padded(scale: Scale, (least, greatest): (f64, f64)) -> (f64, f64) {
    const ROOM: f64 = 0.04;
    // Chosen: closer than a millionth is one place; no picture tells them apart, and a double barely does.
    match scale {
        Scale::Linear => {
            let size = least.abs().max(greatest.abs());
            let is_one = greatest - least <= 1e-6 * size;
            let room = if is_one { (0.1 * size).max(0.5) } else { ROOM * (greatest - least) };
            (least - room, greatest + room)
        }
        Scale::Log2 | Scale::Log10 => {
            let is_one = greatest / least <= 1.000_001;
            let factor = if is_one { 2.0 } else { (greatest / least).powf(ROOM) };
            (least / factor, greatest * factor)
        }
    }
}

/// The step of 1, 2, 2.5 or 5 times a power of ten that cuts `length` into four to eight parts.
fn round_step(length: f64) -> f64 {
    let power = 10.0_f64.powf((length / 6.0).log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0].map(|step| step * power);
    *steps.iter().find(|step| length / **step <= 7.0).unwrap_or(&steps[4])
}

fn round_linear(least: f64, greatest: f64) -> (f64, f64) {
    if least.total_cmp(&greatest).is_eq() {
        return (0.0, 1.0);
    }
    let step = round_step(greatest - least);
    ((least / step).floor() * step, (greatest / step - 1e-9).ceil() * step)
}

fn linear_ticks(least: f64, greatest: f64) -> Vec<f64> {
    let step = round_step(greatest - least);
    let first = (least / step - 1e-9).ceil();
    // A multiple of the step, not a sum of steps, so that 0.3 is 0.3.
    (0..32)
        .map(|count| (first + f64::from(count)) * step)
        .take_while(|tick| *tick <= greatest + step * 1e-9)
        .collect()
}

fn log2_ticks(least: f64, greatest: f64) -> Vec<f64> {
    let exponents = whole_numbers(least.log2(), greatest.log2());
    let every = exponents.len().div_ceil(9).max(1);
    exponents.into_iter().step_by(every).map(f64::exp2).collect()
}

fn log10_ticks(least: f64, greatest: f64) -> Vec<f64> {
    let exponents = whole_numbers(least.log10().floor(), greatest.log10());
    let decades = (greatest / least).log10();
    // Chosen: about five to ten ticks, whatever the number of decades.
    let digits: &[f64] = if decades <= 2.5 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let every = exponents.len().div_ceil(9).max(1);
    let ticks = exponents.into_iter().step_by(every);
    ticks.flat_map(|exponent| digits.iter().map(move |digit| digit * 10.0_f64.powf(exponent))).collect()
}

/// The whole numbers from `low` to `high`, at most 2200 of them: more than the exponents a double can have.
fn whole_numbers(low: f64, high: f64) -> Vec<f64> {
    let first = (low - 1e-9).ceil();
    (0..2200).map(|count| first + f64::from(count)).take_while(|number| *number <= high + 1e-9).collect()
}

/// The nearest of 1, 2 and 5 times a power of ten that is not inside the data.
fn round_1_2_5(value: f64, upwards: bool) -> f64 {
    let power = 10.0_f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * power);
    let is_outside =
        |step: &&f64| if upwards { **step >= value * (1.0 - 1e-9) } else { **step <= value * (1.0 + 1e-9) };
    let found = if upwards { steps.iter().find(is_outside) } else { steps.iter().rev().find(is_outside) };
    *found.unwrap_or(&value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(map: &AxisMap) -> Vec<&str> {
        map.ticks.iter().map(|tick| tick.label.as_str()).collect()
    }

    #[test]
    fn linear_ticks_are_round_and_reach_over_the_data() {
        let cases: [(&[f64], &[&str]); 4] = [
            (&[550.0, 2146.0], &["0", "500", "1000", "1500", "2000", "2500"]),
            (&[0.1, 0.58], &["0", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6"]),
            (&[-3.0, 10.0], &["-4", "-2", "0", "2", "4", "6", "8", "10"]),
            (&[0.0], &["0", "0.2", "0.4", "0.6", "0.8", "1"]),
        ];
        for (data, expected) in cases {
            let map = AxisMap::vertical(&Axis::linear("y", ""), data.iter().copied());
            assert_eq!(labels(&map), expected, "{data:?}");
        }
    }

    #[test]
    fn log_ticks_are_powers_inside_the_axis() {
        let log2 = AxisMap::horizontal(&Axis::log2("x", ""), [2.0, 72.0].into_iter());
        assert_eq!(labels(&log2), ["2", "4", "8", "16", "32", "64"]);
        let log10 = AxisMap::vertical(&Axis::log10("y", ""), [0.04, 1.8].into_iter());
        assert_eq!(labels(&log10), ["0.02", "0.05", "0.1", "0.2", "0.5", "1", "2"]);
        let wide = AxisMap::vertical(&Axis::log10("y", ""), [1e-6, 1e6].into_iter());
        assert!(wide.ticks.len() <= 9 && wide.ticks.len() >= 5, "{:?}", labels(&wide));
        let one = AxisMap::vertical(&Axis::log10("y", ""), [100.0].into_iter());
        assert!(one.place(100.0).abs() < 1e-12 && one.place(200.0) > 0.99, "{one:?}");
    }

    #[test]
    fn equal_factors_are_equally_long_on_log_axes() {
        for axis in [Axis::log2("x", ""), Axis::log10("x", "")] {
            let map = AxisMap::horizontal(&axis, [1.0, 64.0].into_iter());
            let step = map.place(4.0) - map.place(2.0);
            assert!((map.place(64.0) - map.place(32.0) - step).abs() < 1e-12, "{axis:?}");
        }
    }

    #[test]
    fn given_ticks_and_categories_are_kept() {
        let threads = Axis::log2("threads", "").ticks(&[2.0, 18.0, 72.0]);
        assert_eq!(labels(&AxisMap::horizontal(&threads, [2.0, 72.0].into_iter())), ["2", "18", "72"]);
        let names = Axis::categories("percentile", &["p95", "p99"]);
        let map = AxisMap::horizontal(&names, [0.0].into_iter());
        assert_eq!(labels(&map), ["p95", "p99"]);
        assert!((map.place(0.0) - 0.25).abs() < 1e-12);
    }

    #[test]
    fn bars_begin_at_zero_or_at_the_lower_end() {
        let linear = AxisMap::vertical(&Axis::linear("y", ""), [-5.0, 5.0].into_iter());
        assert!((linear.place(0.0) - linear.base()).abs() < 1e-12 && linear.base() > 0.2);
        assert!(AxisMap::vertical(&Axis::log10("y", ""), [1.0, 5.0].into_iter()).base().abs() < 1e-12);
    }
}
