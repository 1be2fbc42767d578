//! What is profiled: a file or device, or a virtual drive below pblk.

use crate::args::{EngineArg, ProfileArgs};
use crate::drive_facts::fastest_read;
use crate::lease::lease;
use ocssd_drive::{OpenDrive, OpenOptions, Source};
use ocssd_engine::{Caller, Host, VirtualClock};
use ocssd_flash::{Flash, FlashCounters};
use ocssd_lightnvm::Buffers;
use ocssd_lightnvm::block::{BlockTarget, CounterValue};
use ocssd_lightnvm::media_manager::UnitSelection;
use ocssd_measure::lint::MEDIA_READ_ROW;
use ocssd_measure::profile::{DeviceUnderTest, DriveState, Effort, FileUnderTest, HostUnderTest};
use ocssd_measure::storage::{Engine, Subject, SubjectOptions, SystemRoot};
use ocssd_targets::named_target::NamedTarget;
use ocssd_workload::host_cpu::{HostCpu, HostCpuConfig};
use ocssd_workload::results::Row;
use std::path::{Path, PathBuf};

/// Bytes of a temporary file: of the short one, and of the others. Reads of the long one span more than the gigabyte of memory
/// that a drive is guessed to have (rule L09).
const QUICK_BYTES: u64 = 1 << 30;
const BYTES: u64 = 8 << 30;
/// Of the free space, no more than a quarter is taken without being asked for (chosen).
const FREE_SHARE: u64 = 4;

/// A file or a device.
pub fn real(args: &ProfileArgs, effort: Effort) -> anyhow::Result<FileUnderTest> {
    let path = args.target.clone().unwrap_or_else(|| PathBuf::from("."));
    let bytes = args.size.or_else(|| path.is_dir().then(|| default_bytes(&path, effort)));
    let options = SubjectOptions {
        path,
        bytes,
        overwrite: args.overwrite,
        serial: args.serial.clone(),
        direct: !args.buffered,
    };
    let system = SystemRoot::default();
    let subject = Subject::open(&options, &system)?;
    let engine = match args.engine {
        EngineArg::Best => Engine::Best,
        EngineArg::Uring => Engine::Uring,
        EngineArg::Threads => Engine::Threads,
    };
    Ok(FileUnderTest::new(subject, system, engine)?)
}

fn default_bytes(directory: &Path, effort: Effort) -> u64 {
    let bytes = if effort == Effort::Quick { QUICK_BYTES } else { BYTES };
    let free = ocssd_measure::storage::free_bytes(directory).unwrap_or(bytes * FREE_SHARE);
    bytes.min(free / FREE_SHARE).max(ocssd_measure::storage::BYTES_MIN)
}

/// What a virtual drive and the translation layer on it show.
fn state(flash: &Flash, target: &dyn BlockTarget) -> DriveState {
    let FlashCounters { unit_busy, sectors_written, sectors_copied, .. } = flash.counters();
    let counters = target.counters();
    let written = counters.iter().find_map(|counter| match (counter.name, counter.value) {
        ("user_written_sectors", CounterValue::Count(count)) => Some(count),
        _ => None,
    });
    let geometry = &flash.config().geometry;
    let sector_bytes = u64::from(geometry.sector_bytes);
    DriveState {
        groups: geometry.groups,
        unit_busy,
        host_bytes: written.unwrap_or_default() * sector_bytes,
        media_bytes: (sectors_written + sectors_copied) * sector_bytes,
        counters,
    }
}

/// A virtual drive, of which at most `bytes` are used, below a host whose processors cost time if there is one.
pub fn virtual_drive(
    name: &str,
    ftl: &str,
    bytes: Option<u64>,
    processors: Option<HostCpuConfig>,
) -> anyhow::Result<Box<dyn DeviceUnderTest>> {
    let source = Source::named(name)?;
    let OpenDrive { flash, mut media_manager, image, spec, .. } =
        crate::open_drive::open_drive(&source, &OpenOptions::default())?;
    if image.is_some() {
        anyhow::bail!("{name} is an image, and a profile would overwrite it; name a preset or a .toml file");
    }
    let media_read = fastest_read(&spec.config);
    let geometry = spec.config.geometry;
    let named_target =
        NamedTarget::named(ftl, &UnitSelection::All, &geometry, &media_manager, crate::kinds::find)
            .map_err(anyhow::Error::msg)?;
    lease(&named_target, &mut media_manager, "profile", &[], ["", "the drive is leased already"])?;
    let mut buffers = Buffers::new(flash.payload_format());
    let mut clock = VirtualClock::default();
    let mut device = flash;
    let mut caller = Caller { device: &mut device, clock: &mut clock, buffers: &mut buffers, cut_at: None };
    let kind = crate::kinds::find(&named_target.kind).map_err(anyhow::Error::msg)?;
    let made = kind.make(&mut caller, &named_target.spec()).map_err(anyhow::Error::msg)?;
    if made.target.zones().is_some() || named_target.kind == "null" {
        anyhow::bail!("--ftl {ftl} is no block device of its own on this drive; use pblk or block_ssd");
    }
    let mut host: Host<Flash, VirtualClock> = Host::new(device, clock, buffers);
    let description = vec![
        Row::new("target", format!("emulated:{name}")),
        Row::new("kind", format!("a virtual drive below {ftl}, in virtual time")),
        Row::new("shape", format!("{} groups x {} units", geometry.groups, geometry.pus_per_group)),
        Row::new("capacity_bytes", geometry.capacity_bytes().to_string()),
        Row::new(MEDIA_READ_ROW, media_read.0.to_string()),
    ];
    let target = match processors {
        None => host.add(made.target),
        Some(processors) => host.add(Box::new(HostCpu::new(made.target, processors)?)),
    };
    let mut device = HostUnderTest::new(host, target, description, state);
    if let Some(bytes) = bytes {
        device.shrink_to(bytes);
    }
    Ok(Box::new(device))
}
