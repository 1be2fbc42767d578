//! fio's job options as printed in its JSON: strings, only those that were set, aliases as the user wrote them.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::size;
use crate::lint::{Cell, Order};

/// Options that are not part of what is measured: names, times, output; and those compared by value (mix, depth, size).
const NOT_WORKLOAD: [&str; 32] = [
    "name",
    "description",
    "runtime",
    "time_based",
    "ramp_time",
    "startdelay",
    "group_reporting",
    "new_group",
    "stonewall",
    "wait_for_previous",
    "wait_for",
    "exitall",
    "rw",
    "rwmixread",
    "rwmixwrite",
    "iodepth",
    "bs",
    "write_bw_log",
    "write_iops_log",
    "write_lat_log",
    "write_hist_log",
    "log_avg_msec",
    "log_hist_msec",
    "per_job_logs",
    "percentile_list",
    "clat_percentiles",
    "lat_percentiles",
    "slat_percentiles",
    "randseed",
    "loops",
    "number_ios",
    "disk_util",
];

/// Names of the same option.
const ALIASES: [(&str, &str); 4] = [
    ("readwrite", "rw"),
    ("blocksize", "bs"),
    ("steadystate", "ss"),
    ("bs_unaligned", "blocksize_unaligned"),
];

/// Engines that never see the page cache: they talk to the device, or there is none.
const PAST_THE_CACHE: [&str; 5] = ["spdk", "xnvme", "io_uring_cmd", "sg", "null"];

/// The options of one job, those of `[global]` included.
pub(super) struct Options(BTreeMap<String, String>);

impl Options {
    /// `None` if the job does not list any: then nothing is known, not even that defaults hold.
    pub(super) fn of(global: Option<&Value>, job: Option<&Value>) -> Option<Self> {
        let job = job?.as_object()?;
        let mut all = BTreeMap::new();
        let empty = Map::new();
        for (name, value) in global.and_then(Value::as_object).unwrap_or(&empty).iter().chain(job) {
            let known =
                ALIASES.iter().find(|(alias, _)| alias == name).map_or(name.as_str(), |(_, name)| name);
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            all.insert(known.to_owned(), text);
        }
        Some(Self(all))
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// A switch; fio takes one without a value as set.
    pub(super) fn is_set(&self, name: &str) -> bool {
        self.get(name).is_some_and(|text| !matches!(text.trim(), "0" | "false"))
    }

    fn number(&self, name: &str) -> Option<f64> {
        self.get(name)?.trim().parse().ok()
    }

    fn whole(&self, name: &str, default: u64) -> Option<u64> {
        self.get(name).map_or(Some(default), size::bytes)
    }

    /// Jobs a section stands for.
    pub(super) fn numjobs(&self) -> Option<u64> {
        self.whole("numjobs", 1)
    }

    /// I/Os one job keeps outstanding.
    pub(super) fn iodepth(&self) -> Option<u64> {
        self.whole("iodepth", 1)
    }

    /// Everything that makes a workload another one.
    pub(super) fn workload(&self) -> String {
        let parts: Vec<String> = self
            .0
            .iter()
            .filter(|(name, _)| !NOT_WORKLOAD.contains(&name.as_str()))
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        parts.join(" ")
    }

    /// Writes what the options say into `cell`. fio's defaults hold for what is not set.
    pub(super) fn describe(&self, cell: &mut Cell) {
        let rw = self.get("rw").unwrap_or("read").split(':').next().unwrap_or_default().trim().to_owned();
        cell.order = Some(if rw.starts_with("rand") { Order::Random } else { Order::Sequential });
        cell.read_percent = self.read_percent(&rw);
        if cell.read_percent.is_none() {
            cell.workload += &format!(" rw={rw}");
        }
        let engine = self.get("ioengine").unwrap_or("psync").to_owned();
        let passes_by = PAST_THE_CACHE.iter().any(|name| engine.contains(name));
        let is_direct = self.is_set("direct") || self.get("buffered").is_some_and(|text| text.trim() == "0");
        cell.direct = Some(passes_by || is_direct);
        cell.polls = Some(
            self.is_set("hipri")
                || self.is_set("sqthread_poll")
                || engine.contains("spdk")
                || engine.contains("xnvme"),
        );
        cell.engine = Some(engine);
        let is_rated = ["rate", "rate_iops", "rate_process"].iter().any(|name| self.get(name).is_some());
        cell.open_loop = Some(is_rated);
        cell.rate_iops = self.get("rate_iops").and_then(size::bytes).map(whole_as_float);
        cell.is_poisson = self.get("rate_process").is_some_and(|text| text.trim() == "poisson");
        let brakes = ["thinktime", "latency_target", "flow", "rate_min"];
        cell.throttled_by =
            brakes.into_iter().find(|name| self.get(name).is_some_and(|text| text != "0")).map(str::to_owned);
        cell.footprint_bytes = self.get("size").and_then(size::bytes);
        cell.verifies = Some(self.get("verify").is_some_and(|text| !matches!(text, "0" | "null")));
        cell.ramp = Some(self.get("ramp_time").is_some_and(|text| text != "0"));
    }

    fn read_percent(&self, rw: &str) -> Option<f64> {
        match rw {
            "read" | "randread" => Some(100.0),
            "write" | "randwrite" => Some(0.0),
            "rw" | "readwrite" | "randrw" => {
                let writes = self.number("rwmixwrite").map(|percent| 100.0 - percent);
                Some(self.number("rwmixread").or(writes).unwrap_or(50.0))
            }
            _ => None,
        }
    }
}

/// A count as a float; counts here are far below 2^53.
#[expect(clippy::cast_precision_loss, reason = "rates are compared to a percent")]
pub(super) fn whole_as_float(count: u64) -> f64 {
    count as f64
}
