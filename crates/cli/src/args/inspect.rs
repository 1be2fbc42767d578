//! The arguments of `ocssd inspect`: what to show of a drive, and of the files on an image.

use clap::{Args, Subcommand};
use ocssd_lightnvm::GenericAddress;
use ocssd_lightnvm::media_manager::UnitSelection;
use std::path::PathBuf;

/// `ocssd inspect`.
#[derive(Args, Debug)]
pub struct InspectArgs {
    /// A preset, a .toml file or an image
    pub drive: String,
    /// What to show
    #[command(subcommand)]
    pub what: Option<InspectVerb>,
}

/// What to inspect.
#[derive(Clone, Debug, Subcommand)]
pub enum InspectVerb {
    /// Model, shape, media and settings (this if nothing is said)
    Drive,
    /// Every field of the geometry
    Geometry,
    /// The chunk table; by default only chunks that are not FREE
    Chunks {
        /// Also FREE chunks
        #[arg(long)]
        all: bool,
    },
    /// One chunk: g0/p1/c2
    Chunk {
        /// The chunk
        at: GenericAddress,
    },
    /// How resets are spread over the drive
    Wear,
    /// The targets and their parallel units
    Targets,
    /// The settings as a drive file
    Toml,
    /// Zones on an image: state, write pointer, capacity, units, wear. They are mounted, and what a power cut left is put in order
    Zones(ZonesArgs),
    /// Files of RocksDB or an object store on an image: room (if nothing else is said), names, copies
    Tables(TablesArgs),
}

/// `ocssd inspect IMAGE zones`.
#[derive(Args, Clone, Debug)]
pub struct ZonesArgs {
    /// A target of the image, or zns with its options [default: the image's only target of kind zns]
    #[arg(long, value_name = "NAME[:OPTIONS]")]
    pub target: Option<String>,
    /// Units of a target that is not the image's own: all, group:0, pu:0-3
    #[arg(long, value_name = "UNITS", default_value = "all")]
    pub place: UnitSelection,
    /// Also EMPTY zones
    #[arg(long)]
    pub all: bool,
}

/// `ocssd inspect IMAGE tables`.
#[derive(Args, Clone, Debug)]
pub struct TablesArgs {
    /// What the store is opened with, as after lightlsm://, without drive=: on=group:0,target=db
    #[arg(long, value_name = "OPTIONS", default_value = "", hide_default_value = true)]
    pub store: String,
    /// What to do
    #[command(subcommand)]
    pub what: Option<TablesVerb>,
}

/// What to do with the files of an image. Each mounts the store as its user would: what a power cut left open is put in order.
#[derive(Clone, Debug, Subcommand)]
pub enum TablesVerb {
    /// How full it is, and what target and drive did since the mount (this if nothing is said)
    Df,
    /// Files and directories, with bytes, time of change, and the table each lies in
    List {
        /// The directory
        #[arg(default_value = "/")]
        path: String,
    },
    /// A file's bytes, to standard output
    Dump {
        /// The file, as /db/CURRENT
        path: String,
    },
    /// Copy files to a folder of this machine, which is made
    Backup {
        /// The folder
        folder: PathBuf,
        /// The directory whose files are copied
        #[arg(long, default_value = "/")]
        path: String,
    },
    /// Copy a folder of this machine to the image; files that are there are not replaced
    Restore {
        /// The folder
        folder: PathBuf,
        /// The directory that gets them; it is made
        #[arg(long, default_value = "/")]
        path: String,
    },
}
