//! An NVMe subsystem with targets as its namespaces, whatever carries its commands.
//!
//! The [`Subsystem`] lies on the dispatcher, with an [`Association`] for each controller: identify, log pages, features and
//! events. What is done with I/O commands is [`Commands`]: judged when they come (`plan`; `zoned`, `key_value` and `pages` for
//! namespaces that are none of blocks), carried out as jobs of the dispatcher (`execute`, `staged`, `raw`), and handed back when
//! they have ended. A transport (NVMe/TCP, PCI) brings entries and moves data.
//!
//! ```text
//!   entry ─► judge (plan) ─► Commands ─► jobs of the dispatcher
//!            Receive, Own, Ended  ◄──────────── ends of jobs
//! ```
//! Source: NVMe base 2.0, NVM, Zoned Namespace and Key Value command sets. Deliberately not here: queues and their entries,
//! pointers to data, how a controller comes and goes.

mod admin;
mod association;
mod command;
mod commands;
mod execute;
mod features;
mod identify;
mod key_value;
mod log_page;
mod moves;
mod pages;
mod plan;
mod raw;
mod staged;
mod subsystem;
mod tables;
mod zoned;

pub use admin::{EVENT_REQUESTS_MAX, Reply, is_of_raw, of_raw};
pub use association::{
    Arrival, Association, Bound, Change, IO_QUEUES_MAX, KEEP_ALIVE_GRANULARITY, Name, Purpose,
    TransportTraits,
};
pub use command::{Command, State, Transfer};
pub use commands::{Commands, Ended, Refusal, Step, note_error};
pub use execute::direction;
pub use identify::transfer_bytes_max;
pub use moves::data_bytes;
pub use plan::{CommandPlan, count};
pub(crate) use staged::NOBODY;
pub use subsystem::{Namespace, QUEUE_ENTRIES_MAX, Subsystem, SubsystemConfig, namespace};
