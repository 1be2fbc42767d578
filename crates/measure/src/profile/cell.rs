//! One measured point: a block size, a mix, an order and a depth; and the fio job that asks for it.

use ocssd_base::Nanos;
use ocssd_workload::job::{Job, parse_command_line};

/// Where I/Os go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Order {
    /// Anywhere.
    Random,
    /// One after the other.
    Sequential,
}

/// A point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cell {
    /// Bytes of one I/O.
    pub bytes: u64,
    /// Reads among reads and writes, in percent.
    pub read_percent: u8,
    /// I/Os outstanding.
    pub depth: u32,
    /// Where they go.
    pub order: Order,
}

/// What a job needs besides its cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobSetting {
    /// The job's name.
    pub name: String,
    /// Bytes it may touch.
    pub size: u64,
    /// How long it is measured.
    pub runtime: Nanos,
    /// How long it runs before that.
    pub ramp: Nanos,
    /// fio's `randseed`.
    pub seed: u64,
    /// fio's name of the way I/O is done.
    pub engine: &'static str,
    /// Whether direct I/O is asked for.
    pub direct: bool,
    /// What fio would be told to open.
    pub filename: String,
}

impl Cell {
    /// The cell all others differ from in one thing: 4 KiB random reads, one at a time.
    pub const BASE: Self = Self { bytes: 4096, read_percent: 100, depth: 1, order: Order::Random };

    /// Random I/O of this kind.
    #[must_use]
    pub const fn random(bytes: u64, read_percent: u8, depth: u32) -> Self {
        Self { bytes, read_percent, depth, order: Order::Random }
    }

    /// Sequential I/O of this kind.
    #[must_use]
    pub const fn sequential(bytes: u64, read_percent: u8, depth: u32) -> Self {
        Self { bytes, read_percent, depth, order: Order::Sequential }
    }

    /// True if anything is written.
    #[must_use]
    pub const fn writes(&self) -> bool {
        self.read_percent < 100
    }

    /// Bytes in flight.
    #[must_use]
    pub const fn bytes_in_flight(&self) -> u64 {
        self.bytes * self.depth as u64
    }

    /// A short name, the same everywhere: `randread-4k-qd1`, `randrw70-4k-qd1`.
    #[must_use]
    pub fn name(&self) -> String {
        let mix = match self.read_percent {
            0 | 100 => String::new(),
            percent => percent.to_string(),
        };
        format!("{}{mix}-{}-qd{}", self.rw(), short_size(self.bytes), self.depth)
    }

    /// A name for people.
    #[must_use]
    pub fn label(&self) -> String {
        let order = if self.order == Order::Random { "random" } else { "sequential" };
        let what = match self.read_percent {
            100 => "reads".to_owned(),
            0 => "writes".to_owned(),
            percent => format!("{percent}/{} reads and writes", 100 - percent),
        };
        format!("{} {order} {what}, {} at a time", size_word(self.bytes), self.depth)
    }

    const fn rw(&self) -> &'static str {
        match (self.order, self.read_percent) {
            (Order::Random, 100) => "randread",
            (Order::Random, 0) => "randwrite",
            (Order::Random, _) => "randrw",
            (Order::Sequential, 100) => "read",
            (Order::Sequential, 0) => "write",
            (Order::Sequential, _) => "rw",
        }
    }

    /// The job that measures it, read as any fio command line is, so that nothing here is beyond what fio can be asked.
    ///
    /// # Panics
    /// If our own job parser refuses what is written here.
    #[must_use]
    pub fn job(&self, setting: &JobSetting) -> Job {
        one_job(&self.words(setting))
    }

    /// The same I/O in an open loop: `rate` I/Os a second that come at random times, whether or not earlier ones have ended, with
    /// latency from when each was due.
    ///
    /// # Panics
    /// If our own job parser refuses what is written here.
    #[must_use]
    pub fn open_job(&self, setting: &JobSetting, rate: u64) -> Job {
        let mut words = self.words(setting);
        let paced = [format!("--rate_iops={rate}"), "--rate_process=poisson".to_owned()];
        // Before the file's name, which stands last.
        let last = words.len() - 1;
        words.splice(last..last, paced);
        one_job(&words)
    }

    fn words(&self, setting: &JobSetting) -> Vec<String> {
        let mut words = vec![
            format!("--name={}", setting.name),
            format!("--ioengine={}", setting.engine),
            format!("--direct={}", u8::from(setting.direct)),
            format!("--rw={}", self.rw()),
            format!("--bs={}", self.bytes),
            format!("--iodepth={}", self.depth),
            format!("--size={}", setting.size),
            "--time_based".to_owned(),
            format!("--runtime={}us", setting.runtime.0 / 1_000),
            format!("--randseed={}", setting.seed),
            // Without a map every place is drawn anew, so that a short run on a large file is as random as a long one.
            "--norandommap".to_owned(),
            "--percentile_list=1:50:90:95:99:99.9:99.99:99.999".to_owned(),
            "--lat_percentiles=1".to_owned(),
            "--clat_percentiles=0".to_owned(),
        ];
        if setting.ramp > Nanos::ZERO {
            words.push(format!("--ramp_time={}us", setting.ramp.0 / 1_000));
        }
        if self.read_percent > 0 && self.writes() {
            words.push(format!("--rwmixread={}", self.read_percent));
        }
        words.push(format!("--filename={}", setting.filename));
        words
    }
}

impl std::str::FromStr for Cell {
    type Err = String;

    /// Reads what [`Cell::name`] gives.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "a cell is written as randread-4k-qd1, randwrite-16k-qd32, randrw70-4k-qd1 or read-128k-qd32; \"{text}\" was given"
            )
        };
        let mut parts = text.split('-');
        let (Some(rw), Some(size), Some(depth), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(wrong());
        };
        let (order, kind) =
            rw.strip_prefix("rand").map_or((Order::Sequential, rw), |kind| (Order::Random, kind));
        let read_percent = match kind {
            "read" => 100,
            "write" => 0,
            mixed => mixed.strip_prefix("rw").and_then(|percent| percent.parse().ok()).ok_or_else(wrong)?,
        };
        let number = |text: &str, scale: u64| text.parse::<u64>().ok()?.checked_mul(scale);
        let bytes = match (size.strip_suffix('k'), size.strip_suffix('m')) {
            (Some(kib), _) => number(kib, 1 << 10),
            (_, Some(mib)) => number(mib, 1 << 20),
            _ => number(size, 1),
        };
        let depth = depth.strip_prefix("qd").and_then(|depth| depth.parse().ok());
        let cell =
            Self { bytes: bytes.ok_or_else(wrong)?, read_percent, depth: depth.ok_or_else(wrong)?, order };
        let is_sane = (512..=16 << 20).contains(&cell.bytes)
            && cell.bytes.is_power_of_two()
            && (1..=DEPTH_MAX).contains(&cell.depth)
            && cell.read_percent <= 100;
        // A mix of 0 or 100 has another name.
        if is_sane && cell.name() == text { Ok(cell) } else { Err(wrong()) }
    }
}

/// Deepest queue that can be asked for (chosen: four times what the sweep has).
const DEPTH_MAX: u32 = 1024;

/// Writes everything once, in order, in I/Os of 1 MiB: fio's `--rw=write`, ended by `limit` if that comes first.
pub(super) fn fill_job(setting: &JobSetting, limit: Option<Nanos>) -> Job {
    let mut words = vec![
        format!("--name={}", setting.name),
        format!("--ioengine={}", setting.engine),
        format!("--direct={}", u8::from(setting.direct)),
        "--rw=write".to_owned(),
        format!("--bs={FILL_BYTES}"),
        format!("--iodepth={FILL_DEPTH}"),
        format!("--size={}", setting.size),
        format!("--filename={}", setting.filename),
    ];
    words.extend(limit.map(|limit| format!("--runtime={}us", limit.0 / 1_000)));
    one_job(&words)
}

/// Bytes of an I/O that fills, and how many at a time (chosen: any drive is at its full rate then).
pub(super) const FILL_BYTES: u64 = 1 << 20;
pub(super) const FILL_DEPTH: u32 = 8;

fn one_job(words: &[String]) -> Job {
    let parsed = parse_command_line(words, &|_| None, &|_| Err("no files are read".to_owned()));
    let jobs = parsed.map_or_else(|errors| panic!("{errors}: {words:?}"), |parsed| parsed.jobs);
    jobs.into_iter().next().expect("one --name is one job")
}

/// `4k`, `1m`, `512`.
#[must_use]
pub fn short_size(bytes: u64) -> String {
    match bytes {
        _ if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) => format!("{}m", bytes >> 20),
        _ if bytes >= 1 << 10 && bytes.is_multiple_of(1 << 10) => format!("{}k", bytes >> 10),
        _ => bytes.to_string(),
    }
}

/// `4 KiB`, `1 MiB`, `512 B`.
#[must_use]
pub fn size_word(bytes: u64) -> String {
    match bytes {
        _ if bytes >= 1 << 30 && bytes.is_multiple_of(1 << 28) => format!("{} GiB", hundredths(bytes, 30)),
        _ if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ if bytes >= 1 << 10 && bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        _ => format!("{bytes} B"),
    }
}

fn hundredths(bytes: u64, shift: u32) -> String {
    let hundredths = (u128::from(bytes) * 100) >> shift;
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
        .trim_end_matches('0')
        .trim_end_matches('.')
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_have_names_for_files_and_for_people() {
        assert_eq!(Cell::BASE.name(), "randread-4k-qd1");
        assert_eq!(Cell::random(512, 70, 10).name(), "randrw70-512-qd10");
        assert_eq!(Cell::sequential(4 << 20, 0, 32).name(), "write-4m-qd32");
        assert_eq!(
            Cell::random(16 << 10, 50, 2).label(),
            "16 KiB random 50/50 reads and writes, 2 at a time"
        );
        assert_eq!((size_word(5 << 28), size_word(1 << 30)), ("1.25 GiB".to_owned(), "1 GiB".to_owned()));
    }

    #[test]
    fn a_name_is_read_back_and_nothing_else_is() {
        for cell in [
            Cell::BASE,
            Cell::random(512, 70, 10),
            Cell::sequential(4 << 20, 0, 32),
            Cell::random(1 << 20, 50, 256),
        ] {
            assert_eq!(cell.name().parse(), Ok(cell));
        }
        for text in [
            "",
            "randread",
            "randread-4k",
            "randread-4k-qd0",
            "randread-3k-qd1",
            "randrw100-4k-qd1",
            "randrw-4k-qd1",
            "randread-4k-qd1-x",
            "randread-4kk-qd1",
            "randread-256-qd1",
            "randread-4096-qd1",
            "write-4k-qd9999",
        ] {
            let error = text.parse::<Cell>().expect_err(text);
            assert!(error.contains("a cell is written as"), "{error}");
        }
    }

    #[test]
    fn every_cell_is_a_job_that_fio_would_take() {
        let setting = JobSetting {
            name: "r1".to_owned(),
            size: 1 << 30,
            runtime: Nanos::from_millis(1500),
            ramp: Nanos::from_millis(150),
            seed: 9,
            engine: "io_uring",
            direct: true,
            filename: "/data/it".to_owned(),
        };
        for percent in [100, 70, 50, 0] {
            let job = Cell::random(4096, percent, 16).job(&setting);
            assert_eq!((job.options.iodepth, job.options.runtime), (16, Some(Nanos::from_millis(1500))));
            assert!(job.options.time_based && job.options.norandommap);
            let mixed = percent % 100 != 0;
            assert_eq!(
                mixed,
                job.own.iter().any(|(name, value)| name == "rwmixread" && *value == percent.to_string())
            );
        }
        assert_eq!(fill_job(&setting, None).options.runtime, None);
        let open = Cell::random(4096, 100, 256).open_job(&setting, 5000);
        assert!(
            open.own.iter().any(|(name, value)| name == "rate_iops" && value == "5000"),
            "{:?}",
            open.own
        );
        assert_eq!(open.options.iodepth, 256);
    }
}
