//! Each number in a sentence: what it is, and what it means.

use super::cell::{Cell, Order, size_word};
use super::open_loop::sentence;
use super::record::{CellRecord, Profile};
use super::schedule::MIXES;
use super::statistics::{DepthPoint, Knee, knee};

/// A sentence and what it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    /// One or two words.
    pub about: &'static str,
    /// The sentence.
    pub sentence: String,
}

/// `81.2 us`, `1.25 ms`.
#[must_use]
pub fn time_word(nanos: f64) -> String {
    match nanos {
        _ if nanos >= 1e9 => format!("{:.2} s", nanos / 1e9),
        _ if nanos >= 1e6 => format!("{:.2} ms", nanos / 1e6),
        _ if nanos >= 1e3 => format!("{:.1} us", nanos / 1e3),
        _ => format!("{nanos:.0} ns"),
    }
}

/// `123.4 MB/s`: decimal, as links and datasheets count.
#[must_use]
pub fn rate_word(bytes_per_second: f64) -> String {
    if bytes_per_second >= 1e9 {
        format!("{:.2} GB/s", bytes_per_second / 1e9)
    } else {
        format!("{:.1} MB/s", bytes_per_second / 1e6)
    }
}

fn interval(record: &CellRecord) -> String {
    record.mean_ns.percent().map_or_else(
        || "measured once".to_owned(),
        |percent| format!("95 % interval of {} runs: ±{percent:.1} %", record.mean_ns.count),
    )
}

/// Widest interval of a mean, in percent, that a sentence is still built on (chosen: half as wide again as the differences
/// that sentences speak of).
const NOISE_MAX: f64 = 30.0;

/// A sentence that explains nothing, if a cell it would rest on varied too much between repetitions.
fn noisy(about: &'static str, records: &[&CellRecord]) -> Option<Explained> {
    let width = |record: &&&CellRecord| record.mean_ns.percent().unwrap_or_default();
    let worst = records.iter().max_by(|a, b| width(a).total_cmp(&width(b)))?;
    let percent = width(&worst);
    (percent > NOISE_MAX).then(|| Explained {
        about,
        sentence: format!(
            "Not explained: {} differ by ±{percent:.0} % between runs (95 % interval), more than what there is to explain. \
             Something else used the machine or the drive, or runs were too short: give more --time, more --repetitions, or a \
             quieter machine.",
            worst.cell.label()
        ),
    })
}

/// The curve over depth, sorted.
#[must_use]
pub fn depth_curve(profile: &Profile) -> Vec<DepthPoint> {
    let mut points: Vec<DepthPoint> = profile
        .cells
        .iter()
        .filter(|record| Cell { depth: 1, ..record.cell } == Cell::BASE)
        .map(|record| DepthPoint {
            depth: record.cell.depth,
            iops: record.iops.value,
            latency_ns: record.mean_ns.value,
        })
        .collect();
    points.sort_by_key(|point| point.depth);
    points
}

/// The knee of the curve over depth.
#[must_use]
pub fn depth_knee(profile: &Profile) -> Option<Knee> {
    knee(&depth_curve(profile))
}

/// All sentences, in the order of the report's experiments.
#[must_use]
pub fn explain(profile: &Profile) -> Vec<Explained> {
    let all = [
        one_read(profile),
        sizes(profile),
        mixes(profile),
        depths(profile),
        open_loop(profile),
        burst(profile),
        filling(profile),
    ];
    let mut all: Vec<Explained> = all.into_iter().flatten().collect();
    // One cell that varied is one sentence, whatever would have rested on it.
    all.dedup_by(|one, before| one.sentence == before.sentence);
    all
}

fn one_read(profile: &Profile) -> Option<Explained> {
    let record = profile.find(Cell::BASE)?;
    if let Some(noisy) = noisy("one read", &[record]) {
        return Some(noisy);
    }
    let tail =
        [99.99, 99.9, 99.0].into_iter().find_map(|percent| Some((percent, record.percentile(percent)?)));
    let tail = tail.map_or_else(
        || "there are too few samples for its tail".to_owned(),
        |(percent, value)| format!("{percent} % take less than {}", time_word(value)),
    );
    let sentence = format!(
        "One random read of 4 KiB at a time takes {} on average ({}); {tail}. Nothing waits in a queue, so this is what one \
         access costs, and its {:.0} IOPS are one over that: they say nothing of what the drive can do at once.",
        time_word(record.mean_ns.value),
        interval(record),
        record.iops.value
    );
    Some(Explained { about: "one read", sentence })
}

fn sizes(profile: &Profile) -> Option<Explained> {
    let mut records: Vec<&CellRecord> =
        profile.cells.iter().filter(|record| Cell { bytes: 4096, ..record.cell } == Cell::BASE).collect();
    records.sort_by_key(|record| record.cell.bytes);
    let (small, large) = (records.first()?, records.last()?);
    if records.len() < 3 {
        return None;
    }
    if let Some(noisy) = noisy("access size", &[small, large]) {
        return Some(noisy);
    }
    let extra = large.mean_ns.value - small.mean_ns.value;
    let bytes = as_f64(large.cell.bytes - small.cell.bytes);
    let stream = if extra > 0.0 {
        format!("about {}", rate_word(bytes / extra * 1e9))
    } else {
        "no measurable rate".to_owned()
    };
    let sentence = format!(
        "From {} to {} a read's time grows from {} to {}: a fixed cost, and {stream} for the bytes beyond it. So larger I/Os \
         always have fewer IOPS ({:.0} and {:.0}) and more bytes per second ({} and {}); neither alone is \"bandwidth\".",
        size_word(small.cell.bytes),
        size_word(large.cell.bytes),
        time_word(small.mean_ns.value),
        time_word(large.mean_ns.value),
        small.iops.value,
        large.iops.value,
        rate_word(small.bytes_per_second.value),
        rate_word(large.bytes_per_second.value)
    );
    Some(Explained { about: "access size", sentence })
}

fn mixes(profile: &Profile) -> Option<Explained> {
    let of = |percent: u8| profile.find(Cell::random(4096, percent, 1)).map(|record| record.mean_ns.value);
    let (reads, writes) = (of(100)?, of(0)?);
    let records: Vec<&CellRecord> =
        MIXES.iter().filter_map(|&percent| profile.find(Cell::random(4096, percent, 1))).collect();
    if let Some(noisy) = noisy("mix", &records) {
        return Some(noisy);
    }
    let mixed: Vec<String> = MIXES
        .iter()
        .filter(|percent| **percent % 100 != 0)
        .filter_map(|&percent| {
            let share = f64::from(percent) / 100.0;
            let (found, expected) = (of(percent)?, share * reads + (1.0 - share) * writes);
            Some(format!(
                "{percent}/{} takes {}, {:+.0} % against its parts",
                100 - percent,
                time_word(found),
                100.0 * (found / expected - 1.0)
            ))
        })
        .collect();
    let why = if writes < reads {
        "Writes end when the drive has them in its buffer, before they are on media, and so are faster than reads, which must \
         wait for the media."
    } else {
        "Writes are slower than reads here: nothing answers before it has stored them."
    };
    let sentence = format!(
        "A read of 4 KiB takes {}, a write {}. {why} If both did not touch each other, a mix would take the weighted mean: {}. \
         More than that is the drive's own interference; less is impossible without a cache that the writes fill.",
        time_word(reads),
        time_word(writes),
        mixed.join("; ")
    );
    Some(Explained { about: "mix", sentence })
}

fn depths(profile: &Profile) -> Option<Explained> {
    let (curve, knee) = (depth_curve(profile), depth_knee(profile)?);
    let (first, last) = (curve.first()?, curve.last()?);
    let at = |depth: u32| profile.find(Cell { depth, ..Cell::BASE });
    let records: Vec<&CellRecord> =
        [first.depth, knee.depth, last.depth].into_iter().filter_map(at).collect();
    if let Some(noisy) = noisy("queue depth", &records) {
        return Some(noisy);
    }
    if knee.depth == last.depth {
        let sentence = format!(
            "From depth 1 to {} throughput grows from {:.0} to {:.0} IOPS and had not stopped growing: the knee lies beyond.",
            last.depth, first.iops, last.iops
        );
        return Some(Explained { about: "queue depth", sentence });
    }
    let sentence = format!(
        "From depth 1 to {} throughput grows from {:.0} to {:.0} IOPS. The knee is at depth {}: {:.0} IOPS at {}, nine tenths of \
         the most. By the lines of no waiting and of full throughput it would be at {:.1}, which is how much the drive does at \
         once. Beyond it more depth is only more waiting: at depth {} a read takes {}. IOPS x latency is the depth at every \
         point (Little), so latency cannot fall as depth grows unless the depth was never there.",
        last.depth,
        first.iops,
        last.iops,
        knee.depth,
        knee.iops,
        time_word(knee.latency_ns),
        knee.crossing,
        last.depth,
        time_word(last.latency_ns)
    );
    Some(Explained { about: "queue depth", sentence })
}

fn open_loop(profile: &Profile) -> Option<Explained> {
    let curve = depth_curve(profile);
    let sentence = sentence(&profile.open, |iops| closed_latency(&curve, iops))?;
    Some(Explained { about: "load", sentence })
}

/// Mean latency of a closed loop at a throughput, along the lines between depths that rise.
fn closed_latency(curve: &[DepthPoint], iops: f64) -> Option<f64> {
    let (low, high) = curve
        .windows(2)
        .map(|pair| (pair[0], pair[1]))
        .find(|(low, high)| low.iops <= iops && iops <= high.iops && low.iops < high.iops)?;
    Some(low.latency_ns + (high.latency_ns - low.latency_ns) * (iops - low.iops) / (high.iops - low.iops))
}

fn burst(profile: &Profile) -> Option<Explained> {
    let rounds = profile.rounds.as_ref()?;
    let share = 100.0 * as_f64(rounds.written) / as_f64(profile.bytes.max(1));
    let sentence = match (rounds.burst_and_sustained(), rounds.is_steady()) {
        (Some((burst, sustained)), true) => format!(
            "Random writes of 4 KiB began at {burst:.0} IOPS (burst) and came to rest at {sustained:.0} (sustained), {:.2} of \
             that, after {} rounds and {share:.0} % of the range. A datasheet's number is the second one.",
            sustained / burst.max(1e-9),
            rounds.iops.len()
        ),
        (Some((burst, sustained)), false) => format!(
            "Random writes of 4 KiB began at {burst:.0} IOPS and were at {sustained:.0} in the last rounds, but they did not come \
             to rest: {}. Call all writes here a burst.",
            why_not(profile)
        ),
        (None, _) => format!(
            "Random writes had only {} rounds, too few to say what lasts: give more --time.",
            rounds.iops.len()
        ),
    };
    Some(Explained { about: "burst and sustained", sentence })
}

/// Why random writes are not called steady; a sentence for the linter too.
#[must_use]
pub fn why_not(profile: &Profile) -> String {
    let Some(rounds) = &profile.rounds else { return "nothing was written".to_owned() };
    let share = 100.0 * as_f64(rounds.written) / as_f64(profile.bytes.max(1));
    let volume = rounds.written < rounds.rule.floor_bytes;
    let Some(window) = rounds.window else {
        return format!("only {} rounds, and {share:.0} % of the range written", rounds.iops.len());
    };
    let form = format!(
        "the last rounds range over {:.0} % (at most {:.0}) with a line of {:+.0} % (at most {:.0})",
        window.excursion_percent,
        rounds.rule.excursion_percent,
        window.slope_percent,
        rounds.rule.slope_percent
    );
    if volume { format!("{form}, and only {share:.0} % of the range were written") } else { form }
}

fn filling(profile: &Profile) -> Option<Explained> {
    let fill = profile.fill.as_ref()?;
    let rates = &fill.series.bytes_per_second;
    let ends = rates.first().zip(rates.last()).filter(|_| rates.len() >= 3);
    let history = ends.map_or_else(String::new, |(first, last)| {
        format!(" ({} in the first second, {} in the last)", rate_word(*first), rate_word(*last))
    });
    let sentence = format!(
        "Writing {} in order took {:.1} s: {}{history}. A rate that falls shows where a cache of the drive was full.",
        size_word(fill.bytes),
        fill.took.as_secs_f64(),
        rate_word(fill.bytes_per_second())
    );
    Some(Explained { about: "sequential writes", sentence })
}

#[expect(clippy::cast_precision_loss, reason = "bytes of a drive, to be divided")]
const fn as_f64(number: u64) -> f64 {
    number as f64
}

/// A line of the table of cells: label, IOPS, bytes per second, mean, percentiles, samples. Blank where samples do not carry it.
#[must_use]
pub fn cell_row(record: &CellRecord) -> Vec<String> {
    let width = |percent: Option<f64>| percent.map_or_else(String::new, |percent| format!("{percent:.1}"));
    let mut row = vec![
        record.cell.label(),
        format!("{:.0}", record.iops.value),
        width(record.iops.percent()),
        format!("{:.2}", record.bytes_per_second.value / 1e6),
        format!("{:.1}", record.mean_ns.value / 1e3),
        width(record.mean_ns.percent()),
    ];
    row.extend(PERCENTILES.map(|percent| {
        record.percentile(percent).map_or_else(String::new, |nanos| format!("{:.1}", nanos / 1e3))
    }));
    row.push(record.latency.count().to_string());
    row
}

/// Percentiles of the table.
pub const PERCENTILES: [f64; 5] = [50.0, 99.0, 99.9, 99.99, 99.999];

/// The head of that table.
pub const CELL_COLUMNS: [&str; 12] = [
    "cell",
    "IOPS",
    "±%",
    "MB/s",
    "mean us",
    "±%",
    "p50 us",
    "p99 us",
    "p99.9 us",
    "p99.99 us",
    "p99.999 us",
    "samples",
];

/// In the order of the experiments: size, mix, depth, the rest.
#[must_use]
pub fn in_order(profile: &Profile) -> Vec<&CellRecord> {
    let mut records: Vec<&CellRecord> = profile.cells.iter().collect();
    records.sort_by_key(|record| place_in_order(record.cell));
    records
}

/// The place of a cell in the order of the experiments.
pub(super) fn place_in_order(cell: Cell) -> (u8, u64, u8, u32) {
    let kind = match cell {
        _ if cell.order == Order::Sequential => 3,
        _ if cell.depth == 1 && cell.read_percent == 100 => 0,
        _ if cell.depth == 1 && cell.bytes == 4096 => 1,
        _ if cell.bytes == 4096 && cell.read_percent == 100 => 2,
        _ => 4,
    };
    (kind, cell.bytes, 100 - cell.read_percent, cell.depth)
}
