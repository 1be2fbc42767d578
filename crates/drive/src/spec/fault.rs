//! Explicit faults: `[[fault]] kind = "early_close" at = "g0/p1/c5/s32" times = 1`.
//!
//! Deliberately not here: what a fault does (`flash`) and seeded rates, which are settings like any other.

use super::entry::Entry;
use super::problem::BadSetting;
use super::value::quoted;
use ocssd_flash::{FailedOp, FaultKind, ScheduledFault};
use ocssd_lightnvm::{GenericAddress, Geometry, Ppa, Status};
use std::fmt::Write as _;

/// The status of a command that fails as such, unless another is asked for (chosen: every command may end with it, and it says
/// nothing of the media).
const FAILED_STATUS: Status = Status::ABORT_REQUESTED;

const KINDS: [(&str, FaultKind); 11] = [
    ("write_next_unit", FaultKind::WriteNextUnit),
    ("early_close", FaultKind::EarlyClose),
    ("unrecovered_read", FaultKind::UnrecoveredRead),
    ("high_ecc", FaultKind::HighEcc),
    ("reset_failure", FaultKind::ResetFailure),
    ("latency_spike", FaultKind::LatencySpike),
    ("transient_read", FaultKind::TransientRead),
    ("failed_read", FaultKind::Failed(FailedOp::Read, FAILED_STATUS)),
    ("failed_write", FaultKind::Failed(FailedOp::Write, FAILED_STATUS)),
    ("failed_reset", FaultKind::Failed(FailedOp::Reset, FAILED_STATUS)),
    ("failed_flush", FaultKind::Failed(FailedOp::Flush, FAILED_STATUS)),
];

const KIND_EXPECTED: &str = "must be \"write_next_unit\", \"early_close\", \"unrecovered_read\", \"high_ecc\", \
                             \"reset_failure\", \"latency_spike\", \"transient_read\", \"failed_read\", \"failed_write\", \"failed_reset\" \
                             or \"failed_flush\"";
const AT_EXPECTED: &str =
    "must be a chunk such as \"g0/p1/c5\", or one of its sectors such as \"g0/p1/c5/s32\"";
const STATUS_EXPECTED: &str =
    "must be a status that is no success, as \"006h\", and the kind one that starts with failed_";
const TIMES_EXPECTED: &str = "must be a whole number from 1 to 4294967295";

/// Most explicit faults of a drive. Chosen: the drive looks through them at each command to their chunks.
pub(super) const FAULTS_MAX: usize = 4096;

/// A fault as written.
#[derive(Clone, Debug)]
pub(super) struct FaultEntry {
    pub(super) index: usize,
    pub(super) place: String,
    /// Names without `fault[0].`, and what was written.
    pub(super) fields: Vec<(String, Entry)>,
}

/// A fault by the names of its place, which mean the same when the drive's counts change.
#[derive(Clone, Debug)]
pub(super) struct NamedFault {
    pub(super) place: String,
    pub(super) index: usize,
    kind: FaultKind,
    at: GenericAddress,
    whole_chunk: bool,
    times: u32,
}

impl FaultEntry {
    /// Reads the fault; whether its place exists is not looked at yet.
    pub(super) fn read(&self) -> Result<NamedFault, BadSetting> {
        let (mut kind, mut at, mut times, mut status) = (None, None, 1, None);
        for (name, entry) in &self.fields {
            let text = entry.value.text();
            match name.as_str() {
                "kind" => {
                    let known = KINDS.iter().find(|(name, _)| Some(*name) == text);
                    kind = Some(known.ok_or_else(|| entry.bad(KIND_EXPECTED))?.1);
                }
                "at" => {
                    let text = text.ok_or_else(|| entry.bad(AT_EXPECTED))?;
                    let address: GenericAddress = text.parse().map_err(|_| entry.bad(AT_EXPECTED))?;
                    at = Some((address, text.matches('/').count() == 2));
                }
                "times" => {
                    let given = entry.value.number().filter(|&times: &u32| times > 0);
                    times = given.ok_or_else(|| entry.bad(TIMES_EXPECTED))?;
                }
                "status" => {
                    let given =
                        text.and_then(|text| u16::from_str_radix(text.trim_end_matches('h'), 16).ok());
                    let given = given.map(Status).filter(|status| (1..=0x7FF).contains(&status.0));
                    status = Some((given.ok_or_else(|| entry.bad(STATUS_EXPECTED))?, entry));
                }
                _ => {
                    let sentence = format!(
                        "{} is no setting of a fault, which has kind, at, times and status",
                        entry.key
                    );
                    return Err(BadSetting { place: entry.place.clone(), sentence });
                }
            }
        }
        let index = self.index;
        let missing = |name: &str, expected: &str| BadSetting {
            place: self.place.clone(),
            sentence: format!("fault[{index}].{name} is missing, but {expected}"),
        };
        let kind = kind.ok_or_else(|| missing("kind", KIND_EXPECTED))?;
        let kind = match (kind, status) {
            (FaultKind::Failed(op, _), Some((status, _))) => FaultKind::Failed(op, status),
            (_, Some((_, entry))) => return Err(entry.bad(STATUS_EXPECTED)),
            (kind, None) => kind,
        };
        let (at, whole_chunk) = at.ok_or_else(|| missing("at", AT_EXPECTED))?;
        Ok(NamedFault { place: self.place.clone(), index, kind, at, whole_chunk, times })
    }
}

impl NamedFault {
    /// The names of a fault's place. `None` if the drive has no such chunk.
    pub(super) fn of(fault: &ScheduledFault, geometry: &Geometry, index: usize, place: &str) -> Option<Self> {
        let exists = fault.chunk.0 < geometry.chunk_count();
        exists.then(|| Self {
            place: place.to_owned(),
            index,
            kind: fault.kind,
            at: geometry.generic(Ppa::new(fault.chunk, fault.sector.unwrap_or(0))),
            whole_chunk: fault.sector.is_none(),
            times: fault.times,
        })
    }

    /// The fault on a drive of this (sound) geometry.
    pub(super) fn resolve(&self, geometry: &Geometry) -> Result<ScheduledFault, BadSetting> {
        let chunk = geometry.chunk_at(self.at).filter(|_| self.at.sector < geometry.sectors_per_chunk);
        let Some(chunk) = chunk else {
            let sentence = format!(
                "fault[{}].at is {}, but the drive has g0..g{}, p0..p{}, c0..c{} and s0..s{}",
                self.index,
                self.at,
                geometry.groups - 1,
                geometry.pus_per_group - 1,
                geometry.chunks_per_pu - 1,
                geometry.sectors_per_chunk - 1
            );
            return Err(BadSetting { place: self.place.clone(), sentence });
        };
        let sector = (!self.whole_chunk).then_some(self.at.sector);
        Ok(ScheduledFault { kind: self.kind, chunk, sector, times: self.times })
    }

    /// The fault as TOML.
    pub(super) fn show(&self, text: &mut String) {
        let (kind, status) = match self.kind {
            FaultKind::Failed(op, status) => (FaultKind::Failed(op, FAILED_STATUS), Some(status)),
            kind => (kind, None),
        };
        let name = KINDS.iter().find(|(_, named)| *named == kind).expect("every kind has a name").0;
        let GenericAddress { group, pu, chunk, .. } = self.at;
        let at = if self.whole_chunk { format!("g{group}/p{pu}/c{chunk}") } else { self.at.to_string() };
        writeln!(text, "\n[[fault]]\nkind = {}\nat = {}\ntimes = {}", quoted(name), quoted(&at), self.times)
            .expect("a string takes any text");
        if let Some(Status(code)) = status {
            writeln!(text, "status = {}", quoted(&format!("{code:03X}h"))).expect("a string takes any text");
        }
    }
}
