//! One measurement: an FTL, its spare, and a skew.

use super::super::lab::Size;
use super::super::world::{Instance, World};
use anyhow::Context;
use ocssd_base::Nanos;
use ocssd_flash::{Config, presets};
use ocssd_lightnvm::Geometry;

/// Units and sectors of a chunk of the drive.
const UNITS: u32 = 8;
const CHUNK_SECTORS: u32 = 64;

/// Which pblk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ftl {
    /// As Linux had it.
    Faithful,
    /// The improved one, with a policy for victims and one for streams, by the names of its options.
    Improved {
        /// The name in the rows.
        model: &'static str,
        /// Option `victim`.
        victim: &'static str,
        /// Option `classification`.
        classification: &'static str,
        /// Lines it keeps open.
        streams: u32,
    },
}

const fn improved(
    model: &'static str,
    victim: &'static str,
    classification: &'static str,
    streams: u32,
) -> Ftl {
    Ftl::Improved { model, victim, classification, streams }
}

impl Ftl {
    /// One stream, greedy: pblk's policies.
    pub const GREEDY: Self = improved("greedy", "greedy", "none", 1);
    /// The improved mode as it comes.
    pub const COST_BENEFIT_GC_STREAM: Self = improved("cost_benefit_gc_stream", "cost-benefit", "user-gc", 2);
    /// The table of policies.
    pub const POLICIES: [Self; 6] = [
        Self::GREEDY,
        improved("cost_benefit", "cost-benefit", "none", 1),
        improved("greedy_gc_stream", "greedy", "user-gc", 2),
        Self::COST_BENEFIT_GC_STREAM,
        improved("greedy_sepbit", "greedy", "sepbit", 6),
        improved("cost_benefit_sepbit", "cost-benefit", "sepbit", 6),
    ];

    /// The name in the rows.
    pub const fn model(self) -> &'static str {
        match self {
            Self::Faithful => "pblk_faithful",
            Self::Improved { model, .. } => model,
        }
    }

    /// What the papers' rows of this model say of the size of a block.
    pub const fn pages_per_block(self) -> &'static str {
        "128"
    }

    const fn streams(self) -> u32 {
        match self {
            Self::Faithful => 1,
            Self::Improved { streams, .. } => streams,
        }
    }

    fn target(self, spare_percent: u32) -> Instance {
        let instance = Instance::new("pblk", 0..UNITS)
            .with("over_provisioning_percent", spare_percent)
            .with("checkpoint_interval_bytes", 0);
        match self {
            Self::Faithful => instance.with("mode", "faithful"),
            Self::Improved { victim, classification, .. } => {
                instance.with("victim", victim).with("classification", classification)
            }
        }
    }
}

/// Where writes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skew {
    /// Everywhere alike.
    Uniform,
    /// 80 % to a fifth.
    Hot80,
    /// 90 % to a tenth.
    Hot90,
    /// By rank, with exponent 0.99.
    Zipf,
}

impl Skew {
    /// The name in the rows.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Hot80 => "80/20",
            Self::Hot90 => "90/10",
            Self::Zipf => "zipf 0.99",
        }
    }

    /// The fio jobs that write so much of `blocks` blocks.
    fn jobs(self, blocks: u64, overwrites: u64) -> (String, &'static [usize]) {
        let head = "[global]\nioengine=libaio\ndirect=1\nbs=4k\nrw=randwrite\nnorandommap\niodepth=32\n";
        let total = blocks * overwrites;
        let one =
            |more: &str| format!("{head}[all]\nsize={}\nio_size={}\n{more}", blocks * 4096, total * 4096);
        let two = |hot_parts: u64, parts: u64| {
            // `hot_parts` of `parts` writes go to one part of `parts` of the data, or one fifth of them.
            let hot = blocks / parts;
            let (hot_ios, cold_ios) = (total * hot_parts / parts, total * (parts - hot_parts) / parts);
            format!(
                "{head}[hot]\nsize={}\nio_size={}\nflow={hot_parts}\n[cold]\noffset={}\nsize={}\nio_size={}\nflow={}\n",
                hot * 4096,
                hot_ios * 4096,
                hot * 4096,
                (blocks - hot) * 4096,
                cold_ios * 4096,
                parts - hot_parts,
            )
        };
        match self {
            Self::Uniform => (one(""), &[0]),
            Self::Hot80 => (two(4, 5), &[0, 0]),
            Self::Hot90 => (two(9, 10), &[0, 0]),
            Self::Zipf => (one("random_distribution=zipf:0.99\n"), &[0]),
        }
    }
}

/// What came out.
pub struct Found {
    /// Sectors of data and fill programmed for each one users wrote.
    pub write_amplification: f64,
    /// Mapped blocks over data sectors of lines that were neither free nor open.
    pub effective: f64,
    free_lines: f64,
    counted: [u64; 4],
}

impl Found {
    /// What was counted.
    pub fn note(&self) -> String {
        let [user, gc, padded, superseded] = self.counted;
        format!(
            "user {user}; collected {gc}; fill {padded}; superseded in the buffer {superseded}; lines free {:.1}",
            self.free_lines
        )
    }
}

/// Many short lines; media times short, since only counts matter (all chosen).
fn drive(lines: u32) -> anyhow::Result<Config> {
    let mut config = presets::find("westlake").context("a preset to begin with")?.config();
    let geometry = Geometry::example(4, UNITS / 4, lines, CHUNK_SECTORS, 8);
    config.geometry = Geometry { mw_cunits: 8, times: config.geometry.times, ..geometry };
    config.media.planes = 2;
    config.media.read = vec![Nanos::from_micros(10)];
    config.media.program = vec![Nanos::from_micros(50)];
    config.media.erase = Nanos::from_micros(100);
    config.wear.endurance = u32::MAX / 256;
    Ok(config)
}

const COUNTERS: [&str; 4] =
    ["user_written_sectors", "gc_written_sectors", "padded_sectors", "superseded_sectors"];

fn counters(world: &World) -> [u64; 4] {
    COUNTERS.map(|name| world.counter(0, name).unwrap_or(0))
}

/// Fills, warms up, and measures.
pub fn measure(ftl: Ftl, spare_percent: u32, skew: Skew, size: Size, seed: u64) -> anyhow::Result<Found> {
    let lines = size.pick(512, 1024);
    let mut world = World::new(drive(lines)?, &[ftl.target(spare_percent)])?;
    let blocks = world.blocks(0);
    let fill = format!(
        "[fill]\nioengine=libaio\ndirect=1\nrw=write\nbs=64k\niodepth=8\nsize={}\n",
        blocks / 16 * 16 * 4096
    );
    world.run(&fill, &[0], seed)?;
    let (warm, on) = skew.jobs(blocks, size.pick(2, 3));
    world.run(&warm, on, seed)?;
    let before = counters(&world);
    let (mut looks, mut free) = (0_u64, 0_u64);
    let (measured, on) = skew.jobs(blocks, size.pick(1, 2));
    world.watch(&measured, on, seed + 1, &mut |world| {
        looks += 1;
        free += world.counter(0, "lines_free").unwrap_or(0);
    })?;
    let after = counters(&world);
    let mapped = world.counter(0, "mapped_sectors").context("pblk counts what is mapped")?;
    let mut counted = [0; 4];
    counted
        .iter_mut()
        .zip(after.iter().zip(before))
        .for_each(|(place, (after, before))| *place = after - before);
    let [user, gc, padded, superseded] = counted;
    let line_sectors = blocks as f64 / (f64::from(100 - spare_percent) / 100.0) / f64::from(lines);
    let free_lines = free as f64 / looks.max(1) as f64;
    let used = f64::from(lines) - free_lines - f64::from(ftl.streams()) / 2.0;
    Ok(Found {
        write_amplification: (user + gc + padded - superseded) as f64 / user as f64,
        effective: mapped as f64 / (used * line_sectors),
        free_lines,
        counted,
    })
}
