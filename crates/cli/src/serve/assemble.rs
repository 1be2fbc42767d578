//! A drive with its targets, in real time, and what clients are to see of them.

use crate::args::ServeArgs;
use crate::drive_failure::with_cause;
use crate::lease::lease;
use anyhow::{Context, anyhow, bail};
use ocssd_base::Nanos;
use ocssd_drive::{Image, OpenDrive, OpenOptions, Source};
use ocssd_engine::{Caller, Clock, Host, VirtualClock, WallClock};
use ocssd_export::reactor::ServedHost;
use ocssd_export::{Export, Exports, ServedTarget};
use ocssd_flash::Flash;
use ocssd_lightnvm::block::BlockTarget;
use ocssd_lightnvm::interface::{AnyTarget, Interface};
use ocssd_lightnvm::media_manager::{MediaManager, UnitSelection};
use ocssd_lightnvm::{Buffers, Geometry, Payload, TargetId};
use ocssd_nvme::identify::Uuid;
use ocssd_targets::named_target::NamedTarget;
use ocssd_targets::registry::Kind;

/// A drive with mounted targets, of any interfaces.
pub struct Mounted {
    device: Flash,
    now: Nanos,
    buffers: Buffers,
    targets: Vec<AnyTarget>,
    exports: Exports,
    notes: Vec<String>,
    uuid: Uuid,
    image: Option<Image>,
}

impl Mounted {
    /// It has block devices alone.
    pub fn has_blocks_alone(&self) -> bool {
        self.exports.iter().all(Export::is_block)
    }

    /// Ready to be served, with targets of blocks alone: those who serve them look at no other interface.
    ///
    /// # Panics
    /// If a target is of another interface.
    pub fn with_blocks(self) -> Assembled<dyn BlockTarget> {
        self.with_targets(|target| {
            target.into_block().expect("the caller has looked: there are blocks alone")
        })
    }

    /// Ready to be served, with targets of any interfaces.
    pub fn with_any(self) -> Assembled<AnyTarget> {
        self.with_targets(Box::new)
    }

    fn with_targets<T: ServedTarget + ?Sized>(self, of: impl Fn(AnyTarget) -> Box<T>) -> Assembled<T> {
        let Self { device, now, buffers, targets, exports, notes, uuid, image } = self;
        let mut host = Host::new(device, WallClock::starting_at(now), buffers);
        host.device_mut().watch_waits();
        let targets = targets.into_iter().map(|target| host.add(of(target))).collect();
        Assembled { host, targets, exports, notes, uuid, image }
    }
}

/// Everything ready to be served.
pub struct Assembled<T: ServedTarget + ?Sized> {
    /// The drive with its targets.
    pub host: ServedHost<Flash, T>,
    /// The targets, in order.
    pub targets: Vec<TargetId>,
    /// What clients see of them, in the same order.
    pub exports: Exports,
    /// What the user should know.
    pub notes: Vec<String>,
    /// What the drive's names are made of.
    pub uuid: Uuid,
    /// The image; kept open, and locked, as long as it is served.
    pub image: Option<Image>,
}

/// What to do about units that are another's: of the image, or of another export.
const ADVICE: [&str; 2] = [
    "serve it by its name, as --target NAME, choose other units, or end the lease with `ocssd target remove`",
    "two exports want the same parallel units; give each its own, as --export a=pblk@pu:0-3 --export b=pblk@pu:4-7",
];

/// Blocks every client can use: most take 512 bytes for granted.
const SMALL_BLOCK: &str = "512";

/// Opens the drive and mounts the targets.
pub fn assemble(args: &ServeArgs) -> anyhow::Result<Mounted> {
    check_kinds(args)?;
    let OpenDrive { flash, mut media_manager, image, spec, uuid } = open(args)?;
    let geometry = &spec.config.geometry;
    let named_targets = named_targets(args, geometry, &media_manager)?;
    for (name, named_target) in &named_targets {
        check_reach(args, name, &named_target.kind)?;
    }
    let kept: Vec<String> = media_manager.list().iter().map(|lease| lease.name.clone()).collect();
    let mut buffers = Buffers::new(flash.payload_format());
    let (mut device, mut clock) = (flash, VirtualClock::default());
    let (mut targets, mut exports, mut notes) = (Vec::new(), Vec::new(), Vec::new());
    for (number, (name, named_target)) in named_targets.iter().enumerate() {
        lease(named_target, &mut media_manager, &format!("serve{number}"), &kept, ADVICE)?;
        let kind = crate::kinds::find(&named_target.kind).map_err(anyhow::Error::msg)?;
        let mut caller =
            Caller { device: &mut device, clock: &mut clock, buffers: &mut buffers, cut_at: None };
        let target = kind.make_any(&mut caller, &named_target.spec());
        let target = target.map_err(|sentence| with_cause(sentence, &device))?;
        notes.extend(target.notes);
        let export = export(name, named_target, &target.target, geometry, args.read_only)?;
        let part = u32::try_from(number + 1).expect("a host has at most 256 targets");
        exports.push(Export { uuid: uuid.of_part(part), ..export });
        targets.push(target.target);
    }
    let exports = Exports::new(exports).map_err(anyhow::Error::msg)?;
    Ok(Mounted { device, now: clock.now(), buffers, targets, exports, notes, uuid, image })
}

/// The drive, with real bytes: clients read what they wrote.
pub(super) fn open(args: &ServeArgs) -> anyhow::Result<OpenDrive> {
    let source = Source::named(&args.drive)?;
    let mut settings = args.set.clone();
    if !matches!(source, Source::Image(_)) {
        // First, so that who says otherwise is told why not.
        settings.insert(0, "payload=bytes".to_owned());
    }
    let mut drive =
        crate::open_drive::open_drive(&source, &OpenOptions { settings, ..OpenOptions::default() })?;
    drive.flash.take_memory_ahead(args.memory);
    if drive.spec.config.payload != Payload::Bytes {
        bail!(
            "{} keeps stamps of 16 bytes instead of what is written, so clients would not read what they wrote; make an \
             image with `ocssd format FILE --set payload=bytes`, or leave out --set payload=stamp",
            args.drive
        );
    }
    Ok(drive)
}

/// The exports asked for: each a name and its target.
fn named_targets(
    args: &ServeArgs,
    geometry: &Geometry,
    manager: &MediaManager,
) -> anyhow::Result<Vec<(String, NamedTarget)>> {
    if args.export.is_empty() {
        let named_target = NamedTarget::named(
            args.target(),
            args.place.as_ref().unwrap_or(&UnitSelection::All),
            geometry,
            manager,
            crate::kinds::find,
        )?;
        return Ok(vec![(String::new(), with_small_blocks(named_target, geometry))]);
    }
    let one = |text: &String| {
        let (name, rest) = text.split_once('=').with_context(|| {
            format!("an export is written NAME=TARGET[@UNITS], as log=pblk@pu:0-3, but \"{text}\" was given")
        })?;
        let (target, place) = rest.split_once('@').unwrap_or((rest, "all"));
        let place: UnitSelection = place.parse().map_err(anyhow::Error::msg)?;
        let named_target = NamedTarget::named(target, &place, geometry, manager, crate::kinds::find);
        let named_target = named_target.map_err(|error| anyhow!("export \"{name}\": {error}"))?;
        Ok((name.to_owned(), with_small_blocks(named_target, geometry)))
    };
    args.export.iter().map(one).collect()
}

/// What can be said of kinds before the drive is opened; an image's own names are known only then.
fn check_kinds(args: &ServeArgs) -> anyhow::Result<()> {
    let alone = args.export.is_empty().then_some(("", args.target()));
    let named = args.export.iter().filter_map(|text| text.split_once('='));
    for (name, target) in alone.into_iter().chain(named) {
        let kind = target.split([':', '@']).next().unwrap_or(target);
        if crate::kinds::find(kind).is_ok() {
            check_reach(args, name, kind)?;
        }
    }
    Ok(())
}

/// Somebody can come to the export: block devices are reached by every protocol, others by those that speak of what they have.
fn check_reach(args: &ServeArgs, name: &str, kind: &str) -> anyhow::Result<()> {
    let interface = crate::kinds::find(kind).map_err(anyhow::Error::msg)?.make_of().interface();
    let has_nvme = !args.nvme_tcp.is_empty() || !args.slot.vfio_user.is_empty();
    match interface {
        Interface::KeyValue if !args.redis.resp.is_empty() => Ok(()),
        Interface::KeyValue if !has_nvme => bail!(
            "export \"{name}\": the target {kind} speaks of {interface}, which are served over NVMe/TCP, vfio-user and in Redis' \
             protocol; say --nvme-tcp ADDRESS:PORT, --vfio-user unix:/PATH or --resp tcp:ADDRESS:PORT, or serve a block device, as pblk"
        ),
        Interface::Zoned | Interface::Log | Interface::Table if !has_nvme => bail!(
            "export \"{name}\": the target {kind} speaks of {interface}, which are served over NVMe/TCP and vfio-user only; say \
             --nvme-tcp ADDRESS:PORT or --vfio-user unix:/PATH, or serve a block device, as pblk"
        ),
        Interface::Block | Interface::Zoned | Interface::KeyValue | Interface::Log | Interface::Table => {
            Ok(())
        }
    }
}

/// The same with blocks of 512 bytes, if it can have them and nothing else is asked for.
fn with_small_blocks(mut named_target: NamedTarget, geometry: &Geometry) -> NamedTarget {
    let can =
        crate::kinds::find(&named_target.kind).is_ok_and(Kind::overwrites) && geometry.sector_bytes > 512;
    if can && named_target.options.iter().all(|(name, _)| name != "block_bytes") {
        named_target.options.push(("block_bytes".to_owned(), SMALL_BLOCK.to_owned()));
    }
    named_target
}

fn export(
    name: &str,
    named_target: &NamedTarget,
    target: &AnyTarget,
    geometry: &Geometry,
    read_only: bool,
) -> anyhow::Result<Export> {
    let made = Export::of(name, &named_target.describe(), target, geometry.sector_bytes, read_only);
    let mut export = made.map_err(anyhow::Error::msg)?;
    // pblk as it was writes zeroes as any data.
    let faithful = named_target.options.iter().any(|(name, value)| name == "mode" && value == "faithful");
    export.fast_zero &= !faithful;
    Ok(export)
}
