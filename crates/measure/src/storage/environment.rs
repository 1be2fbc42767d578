//! The machine a measurement was made on, as rows of a result.

use super::guard::SystemRoot;
use super::subject::{Subject, SubjectKind};
use ocssd_workload::results::Row;

/// What is known of machine and disk.
#[must_use]
pub fn environment(system: &SystemRoot, subject: &Subject) -> Vec<Row> {
    let processor = system.text("proc/cpuinfo");
    let model = processor.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let governor = system.text("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    let iommu = if std::fs::read_dir("/sys/class/iommu").is_ok_and(|mut list| list.next().is_some()) {
        "on"
    } else {
        "none seen"
    };
    let mut rows = vec![
        Row::new("processor", model.map_or("unknown", |(_, name)| name.trim())),
        Row::new("cores", cores.to_string()),
        Row::new("kernel", system.text("proc/sys/kernel/osrelease")),
        Row::new("load average", system.text("proc/loadavg")),
        Row::new("governor", if governor.is_empty() { "not said".to_owned() } else { governor }),
        Row::new("iommu", iommu),
        Row::new("file system", &subject.file_system),
        Row::new("direct I/O asked for", if subject.direct { "yes" } else { "no" }),
        Row::new("smallest direct I/O", format!("{} bytes", subject.unit)),
    ];
    let Some(disk) = &subject.disk else {
        rows.push(Row::new("disk", "the file system does not say"));
        return rows;
    };
    let temperature = disk.temperature_millicelsius.map_or_else(String::new, |value| format!("{value} m°C"));
    for (name, value) in [
        ("disk", &disk.name),
        ("disk model", &disk.model),
        ("disk firmware", &disk.firmware),
        ("disk scheduler", &disk.scheduler),
        ("disk nr_requests", &disk.nr_requests),
        ("disk write cache", &disk.write_cache),
        ("disk rotational", &disk.rotational),
        ("disk link", &disk.link),
        ("disk temperature", &temperature),
    ] {
        rows.push(Row::new(name, if value.is_empty() { "not said" } else { value }));
    }
    rows
}

/// What was profiled, as rows of a result. The serial number is left out: results are shared.
#[must_use]
pub fn description(subject: &Subject) -> Vec<Row> {
    let kind = match subject.kind {
        SubjectKind::Temporary => "a temporary file",
        SubjectKind::File => "a file",
        SubjectKind::Device => "a block device",
    };
    let whole = std::fs::canonicalize(&subject.path).unwrap_or_else(|_| subject.path.clone());
    vec![
        Row::new("target", whole.display().to_string()),
        Row::new("kind", kind),
        Row::new("capacity_bytes", subject.bytes.to_string()),
        Row::new("writable", if subject.writable { "yes" } else { "no" }),
    ]
}
