//! What an FTL of one's own is assembled from, beside the parts of `ocssd_ftl`: what has to do with requests, commands and mounts.
//!
//! [`scan`] finds what lies on the units, [`BlockIo`] has the requests and the commands, [`UnitWriter`] what is on its way to
//! media. Deliberately not here: the map, which sectors are valid, garbage collection (the FTL's own).

pub use crate::block_io::{BlockIo, Change, Ended};
pub use crate::tag_scan::{Scanned, scan};
pub use crate::unit_writer::{ReadableSector, UnitProgram, UnitWriter, append_point};
