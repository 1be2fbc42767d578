//! The machines that OX's FTLs have in common: buffer units of data, a write-ahead log with group commit, checkpoints, space,
//! garbage collection in marked groups, resets, and the mount that puts all of it together again.
//!
//! [`Ox`] is an FTL made of them; what it maps, and which requests it takes, a [`Store`] says (`ox_block`: blocks of a sector;
//! `eleos`: pages of any length). Each procedure is a file: buffer units (`write_buffer`, `program`), transactions (`commit`,
//! `group_commit`, `pages`), `checkpoint`, garbage collection (`collect`, `retry`), resets (`reset`, of what `space` says is dead),
//! ends (`stop`), `mount`; `state` owns the parts. Deliberately not here: maps, requests, what entries of the log mean.

pub mod canary;
pub mod checkpoint;
pub mod collect;
pub mod commit;
pub mod flight;
mod group_commit;
#[cfg(test)]
mod kept_sizes;
pub mod mount;
pub mod options;
mod pages;
pub mod program;
mod reset;
pub mod retry;
pub mod sizes;
pub mod space;
pub mod state;
pub mod stats;
pub mod stop;
pub mod store;
pub mod write_buffer;

pub use state::Ox;
pub use store::Store;
