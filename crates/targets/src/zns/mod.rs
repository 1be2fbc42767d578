//! `zns`: zones on an open-channel drive, each a set of chunks the target chooses (NVMe's Zoned Namespace command set).
//!
//! A zone is striped over the units its width names: all, one group's, or a few. Chunks are bound to a zone when it is
//! written, a stripe at a time, and let go of at a reset; nothing is ever collected. So what the target keeps of a zone is a
//! row of columns (four bytes a chunk), logged when it is bound and checkpointed; where a block lies is arithmetic.
//! The limits on open and active zones follow from the write buffer: an open zone needs a write unit for each unit it
//! is striped over.
//!
//! A part of a write unit that a flush must make durable goes to *tails*: chunks where such parts of all zones lie one after
//! the other, until the unit is written in its own place.
//!
//! Each procedure is a file: what requests mean for a zone (`judge`, `manage`), `write` into units (`buffer_units`), or into the
//! zone's random write `area` (`place`), where units go (`stripe`, `unit_load`) and what is kept of that (`zone`, `segments`,
//! `columns`), `program`, `tails`, reads (`direct_read`, `read`, `retry`), what is logged (`journal`, `log_pages`),
//! `extension`s of descriptors, `checkpoint`, `reset`, zones that have no chunk left (`give_up`), chunks that are moved for their
//! wear (`level`), ends (`stop`), `mount`; `state` owns the parts, `target` is what the host sees.
//! Deliberately not here: conventional zones, which the interface does not have.

mod area;
mod buffer_units;
mod canary;
mod checkpoint;
mod columns;
mod describe;
mod direct_read;
mod extension;
mod flight;
mod give_up;
mod held_units;
mod journal;
mod judge;
#[cfg(test)]
mod kept_sizes;
mod level;
mod log_pages;
mod manage;
mod mount;
mod options;
mod place;
mod program;
mod read;
mod requests;
mod reset;
mod retry;
mod segments;
mod sizes;
mod space;
mod state;
mod stats;
mod stop;
mod stripe;
mod tails;
mod target;
mod unit_load;
mod write;
mod writer;
mod zone;

#[cfg(feature = "canaries")]
pub use canary::Canary;
pub use mount::MountReport;
pub use options::{Finish, Metadata, Options, Partial, Width};
pub use state::Zns;
pub use stats::ZnsStats;
