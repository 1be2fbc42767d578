//! The command line: one definition for parsing, help, completions and the manual page.

mod conform;
mod experiment;
mod inspect;
mod plot;
mod resp;
mod sandbox;
mod slot;
mod workload;

use conform::CONFORM_HELP;
pub use conform::ConformArgs;
pub use experiment::ExperimentVerb;
pub use inspect::{InspectArgs, InspectVerb, TablesArgs, TablesVerb, ZonesArgs};
use plot::PLOT_HELP;
pub use plot::PlotArgs;
pub use resp::{DurabilityArg, RespArgs};
pub use sandbox::SandboxArgs;
pub use slot::{PciIdArg, SlotArgs};
use workload::WORKLOAD_HELP;
pub use workload::{AskArgs, BesideArg, ToolArg, WorkloadArgs};

use crate::drive_facts::DriveFacts;
use crate::live::{Every, parse_every};
use crate::serve::DeviceSocket;
use crate::simulate::{Seeds, Steps, parse_time};
use clap::{Args, Parser, Subcommand, ValueEnum};
use ocssd_export::nvme_tcp::Copies;
use ocssd_export::reactor::{AddressRange, Endpoint};
use ocssd_lightnvm::media_manager::UnitSelection;
use ocssd_measure::lint::Severity;
use ocssd_measure::profile::Cell;
use ocssd_sim::part::PlanPart;
use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

/// Open-Channel SSDs in user space.
#[derive(Debug, Parser)]
#[command(
    name = "ocssd",
    version,
    about = "Open-Channel SSDs in user space: virtual drives, fio workloads, honest measurement",
    after_help = "Exit status: 0 success; 1 the run failed, or its result must not be used; 2 the input cannot be used; \
                  130 a signal ended it, and what there was is kept.\n\n\
                  Examples:\n  ocssd run\n  ocssd run --name=r --rw=randread --bs=4k --iodepth=32 --size=1g\n  \
                  ocssd presets",
    disable_help_subcommand = true
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Verb,
    /// Print JSON for programs instead of text for people
    #[arg(long, global = true)]
    pub json: bool,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run fio jobs on a drive: job files, fio options, or the quickstart job if nothing is named
    #[command(after_help = RUN_HELP)]
    Run(RunArgs),
    /// Ask targets of keys, tables, pages or zones in the words of YCSB, db_bench, a page store, or fio's zbd
    #[command(after_help = WORKLOAD_HELP)]
    Workload(WorkloadArgs),
    /// Make an image: a drive that keeps its data in a file
    Format(FormatArgs),
    /// Show a drive: geometry, chunks, wear, targets
    Inspect(InspectArgs),
    /// Lease parallel units of an image to named targets
    #[command(subcommand)]
    Target(TargetVerb),
    /// List the drives that can be asked for by name
    Presets,
    /// List the kinds of targets, and the options of each
    Targets,
    /// Say what a status means: 2F2h, 0x2f2, or 754 in decimal with --decimal
    Explain {
        /// The status, in hexadecimal with or without 0x or h
        status: String,
        /// The number is decimal
        #[arg(long)]
        decimal: bool,
    },
    /// Run the papers' figures and tables again, with the papers' numbers beside ours
    #[command(subcommand)]
    Experiment(ExperimentVerb),
    /// Look for broken promises of a target: drawn drives, requests, media faults and power cuts, in virtual time
    #[command(after_help = SIMULATE_HELP)]
    Simulate(SimulateArgs),
    /// Serve a drive to programs, in real time: as blocks, zones and keys, to clients of Redis, or itself to a virtual machine
    #[command(after_help = SERVE_HELP)]
    Serve(Box<ServeArgs>),
    /// Draw how long the I/Os of kept results took, by percentile: ours, or fio's json+
    #[command(after_help = PLOT_HELP)]
    Plot(PlotArgs),
    /// Say whether results may be believed: ours, fio's JSON, and published tables, by seventeen rules
    #[command(after_help = LINT_HELP)]
    Lint(LintArgs),
    /// Measure what a drive really does: access size, mix and depth on a temporary file, a file, a device or a virtual drive
    #[command(after_help = PROFILE_HELP)]
    Profile(ProfileArgs),
    /// Ask a zoned NVMe device what a host may and may not, and compare it with the model of the simulator
    #[command(after_help = CONFORM_HELP)]
    Conform(ConformArgs),
    /// List every fio option: carried out, noted, or refused
    Options,
    /// Print shell completions
    Completions {
        /// For which shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page, of the program or of one verb
    Man {
        /// The verb
        verb: Option<String>,
    },
}

const RUN_HELP: &str = "\
Everything that is not an option above is fio's: job files, or options such as --name=a --rw=randread --bs=4k.
`ocssd options` lists them. --output FILE and --output-format normal|json|json+ are fio's too.

Examples:
  ocssd run
  ocssd run --seed 7 --name=r --rw=randread --bs=4k --iodepth=32 --size=1g
  ocssd run --target pblk --name=w --rw=randwrite --bs=4k --iodepth=32 --size=1g
  ocssd run --target pblk --print units --verbose --name=w --rw=write --size=64m
  ocssd run --name=r --rw=randread --size=8m --ocssd=place=pu:0 --beside 'zbd rw=write --place pu:1'
  ocssd format drive.img --drive qemu
  ocssd run --drive drive.img --name=w --rw=write --bs=64k --size=256m
  ocssd run --drive drive.img --clock wall --name=r --rw=randread --size=64m";

const SIMULATE_HELP: &str = "\
Without options: seeds from 0 on, for a minute, on all processors. A seed is a drive, the target's options, requests,
faults and power cuts; the same seed is the same run on every machine. docs/simulate.md says how to read a failure.

Exit status: 0 every promise was kept; 1 a failure was found; 2 the input cannot be used; 130 a signal ended it (Ctrl-C), and
every promise was kept until then.

Examples:
  ocssd simulate
  ocssd simulate --size tiny --time 10min
  ocssd simulate --seeds 0..2000 --jobs 4 --keep-going 5
  ocssd simulate --size tiny --seed 17
  ocssd simulate --size tiny --seed 17 --only 3,17-20 --trace seed17.json";

const SERVE_HELP: &str = "\
It serves until SIGINT or SIGTERM: then what is asked already is answered, targets write out what they hold, and the image
is closed. SIGUSR1 prints what was counted so far. docs/serve.md has a command for each client.

Examples:
  ocssd serve --nbd unix:ocssd.sock
  ocssd serve --nbd tcp:127.0.0.1:10809 --drive drive.img
  ocssd serve --nbd unix:ocssd.sock --export log=pblk@pu:0-3 --export data=pblk:mode=faithful@pu:4-63
  ocssd serve --nbd tcp:0.0.0.0:10809 --beyond-loopback --tls-certificate server.pem --tls-key server.key
  ocssd serve --nvme-tcp 127.0.0.1:4420 --raw westlake
  ocssd serve --fuse mnt --drive drive.img
  ocssd serve --vfio-user unix:drive.sock --drive drive.img
  ocssd serve --vfio-user unix:zones.sock --export z=zns@pu:0-63 --export m=pblk@pu:64-127
  ocssd serve --nvme-tcp 0.0.0.0:4420 --beyond-loopback --allow 10.0.0.0/8 --host nqn.2014-08.org.nvmexpress:uuid:...
  ocssd serve --vhost-user-blk unix:disk.sock
  ocssd serve --resp tcp:127.0.0.1:6379 --target kv
  ocssd serve --export log=pblk@pu:0-3 --export data=pblk@pu:4-63 --vhost-user-blk log=unix:l --vhost-user-blk data=unix:d

  nbdinfo 'nbd+unix:///?socket=ocssd.sock'
  nvme discover -t tcp -a 127.0.0.1 -s 4420
  losetup --find --show --direct-io=on mnt/disk";

/// An address, with or without the word that other endpoints begin with.
fn tcp_endpoint(text: &str) -> Result<Endpoint, String> {
    let address = text.strip_prefix("tcp:").unwrap_or(text);
    let wanted = |_| format!("expected ADDRESS:PORT, as 127.0.0.1:4420, found \"{text}\"");
    format!("tcp:{address}").parse().map_err(wanted)
}

/// `ocssd serve`.
#[derive(Args, Debug)]
pub struct ServeArgs {
    /// Listen for NBD clients: unix:/path (mode 0600) or tcp:ADDRESS:PORT; may be repeated
    #[arg(long, value_name = "ENDPOINT", required_unless_present_any = ["nvme_tcp", "vhost_user_blk", "fuse", "vfio_user", "resp"])]
    pub nbd: Vec<Endpoint>,
    /// Mount on this empty directory: each export is a file in it, of which losetup makes a block device
    #[arg(long, value_name = "DIR")]
    pub fuse: Option<PathBuf>,
    /// Listen for NVMe/TCP hosts: ADDRESS:PORT; may be repeated
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = tcp_endpoint)]
    pub nvme_tcp: Vec<Endpoint>,
    /// Serve an export to QEMU and libblkio as a device of vhost-user-blk: [EXPORT=]unix:/path (mode 0600); may be repeated
    #[arg(long, value_name = "[EXPORT=]unix:PATH")]
    pub vhost_user_blk: Vec<DeviceSocket>,
    /// Redis' protocol.
    #[command(flatten)]
    pub redis: RespArgs,
    /// The drive in a PCI slot.
    #[command(flatten)]
    pub slot: SlotArgs,
    /// How data of NVMe hosts come to the target: in-place, or ox, by way of memory as in the OX controller [default: in-place]
    #[arg(long, value_name = "WAY", requires = "nvme_tcp")]
    pub copies: Option<Copies>,
    /// The subsystem's qualified name [default: made of the drive's seed]
    #[arg(long, value_name = "NQN", requires = "nvme_tcp")]
    pub nqn: Option<String>,
    /// Serve only the NVMe host of this name; may be repeated. A name is no proof: see --allow
    #[arg(long, value_name = "NQN", requires = "nvme_tcp")]
    pub host: Vec<String>,
    /// The address that discovery tells hosts, if they come to another: behind address translation
    #[arg(long, value_name = "ADDRESS:PORT", requires = "nvme_tcp")]
    pub advertise: Option<SocketAddr>,
    /// Another drive, served to NVMe hosts as the open-channel drive it is: a preset, a .toml file or an image
    #[arg(long, value_name = "DRIVE", requires = "nvme_tcp")]
    pub raw: Option<String>,
    /// Change a setting of that drive; may be repeated
    #[arg(long, value_name = "KEY=VALUE", requires = "raw")]
    pub raw_set: Vec<String>,
    /// Take vector commands of several addresses on it for as many that follow each other, by a convention of this server
    #[arg(long, requires = "raw")]
    pub raw_runs: bool,
    /// The drive: a preset, a .toml file or an image
    #[arg(long, default_value = ocssd_flash::presets::DEFAULT)]
    pub drive: String,
    /// Change a setting of the drive, for instance media.erase=5ms; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// The target: pblk, block_ssd, null or one of the image's, with options after a colon, as pblk:mode=faithful [default: pblk]
    #[arg(long, value_name = "NAME[:OPTION=VALUE,..]", conflicts_with = "export")]
    pub target: Option<String>,
    /// Its parallel units: all, pu:0-3,8 or group:1 [default: all]
    #[arg(long, value_name = "UNITS", conflicts_with = "export")]
    pub place: Option<UnitSelection>,
    /// An export of its own name, with its target and units; instead of --target and --place; may be repeated
    #[arg(long, value_name = "NAME=TARGET[@UNITS]")]
    pub export: Vec<String>,
    /// Refuse what would change an export
    #[arg(long)]
    pub read_only: bool,
    /// Certificates of the server in PEM form, its own first; clients must then use TLS
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_certificate: Option<PathBuf>,
    /// The key of the first of them
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub tls_key: Option<PathBuf>,
    /// Serve only clients with a certificate signed by one of these
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub tls_clients: Option<PathBuf>,
    /// Listen where other machines can reach it; needs TLS, or --allow
    #[arg(long)]
    pub beyond_loopback: bool,
    /// Serve only these addresses, as 10.0.0.0/8, and those of this machine; may be repeated
    #[arg(long, value_name = "ADDRESSES")]
    pub allow: Vec<AddressRange>,
    /// Memory for the drive's content that is taken from the system before serving, if that is not an image
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = crate::drive_facts::parse_bytes)]
    pub memory: u64,
    /// What it gives up.
    #[command(flatten)]
    pub sandbox: SandboxArgs,
    /// Connections at once; one more is closed as it comes
    #[arg(long, value_name = "N", default_value = "1024")]
    pub connections: NonZeroUsize,
    /// Give out what was counted to Prometheus, as http://ADDRESS:PORT/metrics; port 0 for any that is free
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = tcp_endpoint)]
    pub metrics: Option<Endpoint>,
    /// Show throughput, latency, and the drive's inside meanwhile; lines without a terminal, one each TIME
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    #[arg(value_parser = parse_every)]
    pub live: Option<Every>,
}

impl ServeArgs {
    /// The only target, where no exports are named.
    #[must_use]
    pub fn target(&self) -> &str {
        self.target.as_deref().unwrap_or("pblk")
    }
}

const PROFILE_HELP: &str = "\
Without TARGET: a temporary file in the current directory. A directory gets a temporary file, which has no name and is gone
when the program ends, however it ends. An existing file is only read unless --overwrite is given, a block device unless its
serial number is typed; a device with partitions, mounts or holders is never written. Ctrl-C keeps what was measured.

The result is linted as `ocssd lint` does; docs/profile.md explains the numbers.

Exit status: 0 the numbers may be used; 1 a rule says they must not, or it ended early; 2 the input cannot be used; 130 a
signal ended it.

Examples:
  ocssd profile --quick
  ocssd profile /mnt/data --compare d7-p5600
  ocssd profile /dev/nvme1n1 --serial S123456 --contract-grade
  ocssd profile --emulated z-nand --size 1GiB --compare ocssd-results/profile/result.json";

/// `ocssd profile`.
#[derive(Args, Debug)]
pub struct ProfileArgs {
    /// A directory, a file or a block device [default: the current directory]
    #[arg(value_name = "TARGET", conflicts_with = "emulated")]
    pub target: Option<PathBuf>,
    /// Profile a virtual drive in virtual time: a preset or a .toml file
    #[arg(long, value_name = "DRIVE", num_args = 0..=1, default_missing_value = ocssd_flash::presets::DEFAULT)]
    pub emulated: Option<String>,
    /// What stands between jobs and a virtual drive: pblk or block_ssd, with options after a colon
    #[arg(long, value_name = "NAME[:OPTION=VALUE,..]", default_value = "pblk")]
    pub ftl: String,
    /// Processors of the host of a virtual drive: e5-2620v3, e7-8870v3-x4, free or none, with options after a colon; none for the
    /// drive and its FTL alone
    #[arg(long, value_name = "PRESET[:NAME=VALUE,..]", default_value = crate::run::HOST_CPU_DEFAULT,
        requires = "emulated")]
    pub host_cpu: String,
    /// About a minute
    #[arg(long, conflicts_with = "full")]
    pub quick: bool,
    /// Every size with every mix and every depth: hours
    #[arg(long)]
    pub full: bool,
    /// Fill twice, rounds of a minute until steady by a stricter rule, five repetitions: as long as it takes
    #[arg(long)]
    pub contract_grade: bool,
    /// Time for everything, as 30s, 10min or 2h [default: 60s with --quick, 4h with --full, else 10min]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub time: Option<Duration>,
    /// Runs of each cell [default: 3 with --quick and --full, else 5]
    #[arg(long, value_name = "N")]
    pub repetitions: Option<NonZeroU32>,
    /// Measure this cell only, as randread-4k-qd1 or randrw70-16k-qd8; may be repeated
    #[arg(long, value_name = "CELL")]
    pub cell: Vec<Cell>,
    /// Bytes of the temporary file, or most bytes that are used [default: 1GiB with --quick, else 8GiB]
    #[arg(long, value_name = "SIZE", value_parser = crate::drive_facts::parse_bytes)]
    pub size: Option<u64>,
    /// Seed of all randomness
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// How I/O is done
    #[arg(long, value_enum, default_value = "best")]
    pub engine: EngineArg,
    /// Do not ask for direct I/O, to see what the page cache makes of it
    #[arg(long)]
    pub buffered: bool,
    /// Write TARGET although it is an existing file: what is in it is lost
    #[arg(long)]
    pub overwrite: bool,
    /// Write the device with this serial number: what is on it is lost
    #[arg(long, value_name = "NUMBER")]
    pub serial: Option<String>,
    /// Compare with a datasheet (d7-p5600), a saved result, or a virtual drive (emulated:z-nand); may be repeated
    #[arg(long, value_name = "NAME")]
    pub compare: Vec<String>,
    /// Measure nothing: put this kept result.json beside what --compare names
    #[arg(long, value_name = "FILE", requires = "compare", conflicts_with_all = ["target", "emulated"])]
    pub saved: Option<PathBuf>,
    /// The drive, as far as it is known.
    #[command(flatten)]
    pub facts: DriveFacts,
    /// Folder for result, rows, page and pictures
    #[arg(long, value_name = "DIR", default_value = "ocssd-results/profile")]
    pub out: PathBuf,
    /// Show throughput, latency, and the inside of a virtual drive meanwhile; lines without a terminal, one each TIME
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    #[arg(value_parser = parse_every)]
    pub live: Option<Every>,
    /// No progress
    #[arg(long)]
    pub quiet: bool,
}

/// How I/O is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EngineArg {
    /// `io_uring`, and threads if it is refused
    Best,
    /// `io_uring`, or an error
    #[value(name = "io_uring")]
    Uring,
    /// Threads
    Threads,
}

const LINT_HELP: &str = "\
Files given together are compared: the same workload twice, other depths, other mixes. docs/lint.md explains the rules,
and the columns of a table.

Exit status: 0 nothing at or above the level was found; 1 something was; 2 a file or an option cannot be used.

Examples:
  ocssd run
  ocssd lint ocssd-results/quickstart.json
  ocssd lint --level fail --ignore L11 --link 3.9GB/s ocssd-results/*.json
  ocssd lint --explain L01";

/// Which clock a run uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ClockArg {
    /// Simulated time, the same on every machine
    Virtual,
    /// Real time
    Wall,
}

/// What a run prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PrintArg {
    /// The table of results
    Table,
    /// The trace hash alone
    Hash,
    /// The table of results, then a table of the parallel units
    Units,
}

/// `ocssd run`.
#[derive(Args, Debug)]
pub struct RunArgs {
    /// The drive: a preset, a .toml file or an image [default: the job file's, else westlake]
    #[arg(long)]
    pub drive: Option<String>,
    /// Change a setting of the drive, for instance media.erase=5ms; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// The target for jobs that name none: linear, pblk, block_ssd or null, with options after a colon, as pblk:mode=faithful
    #[arg(long, value_name = "NAME[:OPTION=VALUE,..]")]
    pub target: Option<String>,
    /// Processors of the host for jobs that name none: e5-2620v3, e7-8870v3-x4, free or none, with options after a colon, as
    /// e7-8870v3-x4:cores=36; virtual time only [default: e5-2620v3 in virtual time; none for the drive and target alone]
    #[arg(long, value_name = "PRESET[:NAME=VALUE,..]")]
    pub host_cpu: Option<String>,
    /// Ask a target of keys, tables, pages or zones on the same drive meanwhile: a tool, its options, --target, --place and
    /// --iodepth of `ocssd workload`, as 'ycsb workload=a --place group:1'; may be repeated
    #[arg(long, value_name = "WORKLOAD")]
    pub beside: Vec<BesideArg>,
    /// Write what drive and targets counted to this file, as Prometheus reads it
    #[arg(long, value_name = "FILE")]
    pub metrics: Option<PathBuf>,
    /// The clock [default: the job file's, else virtual]
    #[arg(long, value_enum)]
    pub clock: Option<ClockArg>,
    /// Seed of all randomness
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// What to print
    #[arg(long, value_enum, default_value = "table")]
    pub print: PrintArg,
    /// Directory for the result file and logs
    #[arg(long, default_value = "ocssd-results", value_name = "DIR")]
    pub results: PathBuf,
    /// Show throughput, latency, and the inside of a virtual drive meanwhile; lines without a terminal, one each TIME
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    #[arg(value_parser = parse_every)]
    pub live: Option<Every>,
    /// Print all there is: trace hash, every column, the same jobs for fio, and what each target counted
    #[arg(long)]
    pub verbose: bool,
    /// No progress
    #[arg(long)]
    pub quiet: bool,
    /// fio job files and fio options
    #[arg(value_name = "JOB FILE or FIO OPTION", trailing_var_arg = true, allow_hyphen_values = true)]
    pub fio: Vec<String>,
}

/// How large simulated worlds are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SizeArg {
    /// One or two units of few small chunks, no media faults, power cuts all the time
    Tiny,
    /// One unit to 128, any write unit, all faults
    Any,
}

/// Arguments of `ocssd simulate` that are about many seeds, and have no meaning for one.
const OF_MANY_SEEDS: [&str; 4] = ["seeds", "jobs", "time", "keep_going"];

/// `ocssd simulate`.
#[derive(Args, Debug)]
pub struct SimulateArgs {
    /// Run one seed, and show its plan
    #[arg(long, value_name = "N", conflicts_with_all = OF_MANY_SEEDS)]
    pub seed: Option<u64>,
    /// The seeds, from A to before B, or from A on [default: 0..]
    #[arg(long, value_name = "A..B")]
    pub seeds: Option<Seeds>,
    /// The kind of target, and options that are not drawn: pblk, block_ssd, linux-pblk, ox-block, pblk:mode=faithful
    #[arg(long, default_value = "pblk", value_name = "KIND[:OPTION=VALUE,..]")]
    pub target: String,
    /// How large the worlds are
    #[arg(long, value_enum, default_value = "any")]
    pub size: SizeArg,
    /// Threads [default: one a processor]
    #[arg(long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
    /// How long, as 30s, 10min or 2h [default: 60s, or until --seeds A..B are done]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub time: Option<Duration>,
    // `requires` alone lets these by beside what --seed excludes.
    /// Carry out only these steps of the plan, as 3,17-20
    #[arg(long, value_name = "STEPS", requires = "seed", conflicts_with_all = OF_MANY_SEEDS)]
    pub only: Option<Steps>,
    /// Leave these parts out of the plan: mount-cuts, option-changes, factory-bad, unrecovered-read, high-ecc,
    /// write-next-unit, early-close, reset-failure, latency-spike, wear-out, failed-commands, transient-read,
    /// half-reset, paired-loss, misdirected-read, stale-reports, low-reports, garbled-reports, hidden-reports
    #[arg(long, value_name = "PARTS", requires = "seed", value_delimiter = ',', conflicts_with_all = OF_MANY_SEEDS)]
    pub without: Vec<PlanPart>,
    /// Write the run as a timeline for Perfetto and chrome://tracing; of a failure, the short one
    #[arg(long, value_name = "FILE", requires = "seed", conflicts_with_all = OF_MANY_SEEDS)]
    pub trace: Option<PathBuf>,
    /// Cut the power after every device event of a short workload, and again after every command of each mount; tiny worlds
    #[arg(long, conflicts_with_all = ["only", "without", "trace", "jobs", "keep_going", "size"])]
    pub exhaustive: bool,
    /// Steps of that workload
    #[arg(long, value_name = "N", default_value = "40", requires = "exhaustive")]
    pub steps: NonZeroUsize,
    /// Go on until so many seeds have failed
    #[arg(long, value_name = "N", default_value = "1")]
    pub keep_going: NonZeroUsize,
    /// No progress
    #[arg(long)]
    pub quiet: bool,
}

/// `ocssd lint`.
#[derive(Args, Debug)]
pub struct LintArgs {
    /// Results: of `ocssd run`, of fio as json or json+, or tables as CSV or JSON; - is standard input
    #[arg(value_name = "RESULT", required_unless_present = "explain")]
    pub files: Vec<PathBuf>,
    /// Hold only this rule, by number or name, as L03; may be repeated
    #[arg(long, value_name = "RULE")]
    pub rule: Vec<String>,
    /// Leave this rule out; may be repeated
    #[arg(long, value_name = "RULE")]
    pub ignore: Vec<String>,
    /// Say what a rule asks, what a finding means and what to do
    #[arg(long, value_name = "RULE", conflicts_with_all = ["files", "rule", "ignore"])]
    pub explain: Option<String>,
    /// End with 1 for findings of this level or above: label, warn or fail
    #[arg(long, default_value = "warn", value_name = "LEVEL")]
    pub level: Severity,
    /// The drive, as far as it is known.
    #[command(flatten)]
    pub facts: DriveFacts,
    /// IOPS of the same job on a target that answers at once
    #[arg(long, value_name = "IOPS")]
    pub ceiling: Option<f64>,
}

/// `ocssd format`.
#[derive(Args, Debug)]
pub struct FormatArgs {
    /// The image to make
    pub image: PathBuf,
    /// The drive: a preset or a .toml file
    #[arg(long, default_value = ocssd_flash::presets::DEFAULT)]
    pub drive: String,
    /// Change a setting of the drive; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Replace an existing file
    #[arg(long)]
    pub replace: bool,
}

/// `ocssd target`.
#[derive(Debug, Subcommand)]
pub enum TargetVerb {
    /// Lease units to a new target
    Create {
        /// The image
        image: PathBuf,
        /// The target's name
        name: String,
        /// The kind of target
        #[arg(long, default_value = "linear")]
        kind: String,
        /// all, pu:0-3,8 or group:1
        #[arg(long, default_value = "all")]
        units: String,
    },
    /// End a lease
    Remove {
        /// The image
        image: PathBuf,
        /// The target's name
        name: String,
    },
    /// List the leases
    List {
        /// The image
        image: PathBuf,
    },
}
