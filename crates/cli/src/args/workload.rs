//! The command line of `ocssd workload`.

use super::ClockArg;
use clap::{Args, Parser, ValueEnum};
use ocssd_lightnvm::media_manager::UnitSelection;
use std::num::NonZeroUsize;
use std::str::FromStr;

pub const WORKLOAD_HELP: &str = "\
Targets that speak of keys, tables, pages or zones are asked in the words of the tools that users know; `ocssd run` is for
blocks. One request's time begins when the tool makes it.

  ycsb        keys and values: workload=a to f, recordcount, operationcount, fieldlength, requestdistribution, ...
  mooncake    keys and values: blocks of KV caches by a trace of Mooncake's: trace=FILE.jsonl, cachebytes, speed, storebytes, ...
  db_bench    tables: benchmarks=fillseq,readrandom num=100000 value_size=100, ...; no time, no threads
  lsm         tables, with time: threads, write stalls, flushes and compactions of RocksDB: benchmarks=fillseq,readrandom
              threads=4 num=100k write_buffer_size=4m, ...; processors take what was measured once
  page-store  log-structured pages: sessions, buffer, pages, page_bytes_max, rwmixread, requests, ...
  zbd         zones, as fio's zonemode=zbd: rw, bs, max_open_zones, zone_append, zone_reset_frequency, requests, ...

An option that does not exist is answered with those there are.

Examples:
  ocssd workload ycsb workload=a,recordcount=10k,operationcount=50k
  ocssd workload mooncake requests=200,speed=0
  ocssd workload db_bench benchmarks=fillseq,readrandom num=100k --iodepth 4
  ocssd workload lsm benchmarks=fillseq,readrandom threads=4 num=50k --target lightlsm:placement=vertical
  ocssd workload zbd rw=randwrite,bs=64k,io_size=256m --target zns --iodepth 16";

/// Whose words the options are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ToolArg {
    /// YCSB, on keys and values
    Ycsb,
    /// Mooncake's store of KV caches, on keys and values
    Mooncake,
    /// RocksDB's db_bench, on tables
    #[value(name = "db_bench", alias = "db-bench")]
    DbBench,
    /// RocksDB's db_bench with its time: threads, stalls, flushes and compactions
    Lsm,
    /// A log-structured page store, on sessions of flushes
    PageStore,
    /// fio's zonemode=zbd, on zones
    Zbd,
}

/// What is asked of which target: of `ocssd workload`, and beside jobs.
#[derive(Args, Clone, Debug)]
pub struct AskArgs {
    /// The tool
    #[arg(value_enum)]
    pub tool: ToolArg,
    /// Its options, as name=value, with commas between; those of db_bench and lsm with spaces
    #[arg(value_name = "OPTIONS")]
    pub options: Vec<String>,
    /// The target, with options after a colon [default: kv, lightlsm, eleos or zns, by the tool]
    #[arg(long, value_name = "NAME[:OPTION=VALUE,..]")]
    pub target: Option<String>,
    /// Its parallel units: all, pu:0-3,8 or group:1
    #[arg(long, value_name = "UNITS", default_value = "all")]
    pub place: UnitSelection,
    /// Most requests outstanding [default: 16]; lsm has threads instead
    #[arg(long, value_name = "N")]
    pub iodepth: Option<NonZeroUsize>,
}

/// A workload beside jobs, in the words of `ocssd workload`.
#[derive(Clone, Debug)]
pub struct BesideArg {
    /// As it was given.
    pub text: String,
    /// What it asks.
    pub ask: AskArgs,
}

/// Its words, without a program before them.
#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct BesideWords {
    #[command(flatten)]
    ask: AskArgs,
}

impl FromStr for BesideArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words = BesideWords::try_parse_from(text.split_whitespace()).map_err(|error| {
            let said = error.to_string();
            // Without its own usage, which is that of another command, and what clap says of values that look like options.
            let end = ["\n\nUsage:", "\n\n  tip: to pass"].iter().filter_map(|head| said.find(head)).min();
            let said = said[..end.unwrap_or(said.len())].trim_start_matches("error: ").trim_end();
            format!("{said}\n\nIts words are those of `ocssd workload`, as 'ycsb workload=a --target kv --place group:1'")
        })?;
        Ok(Self { text: text.to_owned(), ask: words.ask })
    }
}

/// `ocssd workload`.
#[derive(Args, Debug)]
pub struct WorkloadArgs {
    /// Who asks what.
    #[command(flatten)]
    pub ask: AskArgs,
    /// The drive: a preset, a .toml file or an image
    #[arg(long, default_value = ocssd_flash::presets::DEFAULT)]
    pub drive: String,
    /// Change a setting of the drive, for instance media.erase=5ms; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Processors of the host: e5-2620v3, e7-8870v3-x4, free or none, with options after a colon, as e7-8870v3-x4:cores=36;
    /// virtual time only, and not of lsm, which has its own [default: none]
    #[arg(long, value_name = "PRESET[:NAME=VALUE,..]")]
    pub host_cpu: Option<String>,
    /// Seed of all randomness
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Which clock
    #[arg(long, value_enum, default_value = "virtual")]
    pub clock: ClockArg,
    /// Show what target and drive counted, too
    #[arg(long)]
    pub verbose: bool,
    /// No progress
    #[arg(long)]
    pub quiet: bool,
}
