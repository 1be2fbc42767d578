//! A zone and the ways it changes, a power cut among them.
//!
//! Deliberately not here: what of these changes survives (`survivors`).

use ocssd_lightnvm::interface::zoned::{ZoneExtension, ZoneGeometry, ZoneState};
use std::collections::BTreeMap;

/// A zone: what of it is written, in order, and its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    /// Its state.
    pub state: ZoneState,
    /// Up to the write pointer, the content of each block; `None` if it was committed and not written.
    pub blocks: Vec<Option<Vec<u8>>>,
    /// What is written of its random write area, by the block's number in the zone; none lies before the pointer.
    pub ahead: BTreeMap<u64, Vec<u8>>,
    /// It has an area: it was opened with one, and no power cut came since.
    pub has_area: bool,
    /// The extension of its descriptor.
    pub extension: Option<ZoneExtension>,
}

/// A change of a zone that survives or does not. Opening and closing never does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ZoneChange {
    /// These blocks were written at its write pointer.
    Written(Vec<Vec<u8>>),
    /// These blocks were written to its area, which moved its write pointer or left it where it was.
    Placed {
        /// The first one's number in the zone.
        at: u64,
        /// The blocks.
        blocks: Vec<Vec<u8>>,
        /// Where the write pointer is then.
        pointer: u64,
    },
    /// Its area was committed, so that these are its blocks up to the write pointer.
    Committed(Vec<Option<Vec<u8>>>),
    /// It became full.
    Finished,
    /// It became empty.
    Reset,
    /// Its descriptor got this extension.
    Described(ZoneExtension),
    /// It became offline.
    WentOffline,
}

impl Zone {
    /// An empty one.
    pub const EMPTY: Self = Self {
        state: ZoneState::Empty,
        blocks: Vec::new(),
        ahead: BTreeMap::new(),
        has_area: false,
        extension: None,
    };

    /// Blocks before the write pointer.
    #[must_use]
    pub fn written(&self) -> u64 {
        u64::try_from(self.blocks.len()).expect("a length fits 64 bits")
    }

    /// The content of a block; `None` if it was not written.
    #[must_use]
    pub fn block(&self, number: u64) -> Option<&Vec<u8>> {
        let nth = usize::try_from(number).expect("a simulated zone is small");
        self.blocks.get(nth).and_then(Option::as_ref).or_else(|| self.ahead.get(&number))
    }

    /// Where what is written ends.
    fn end(&self) -> u64 {
        self.ahead.last_key_value().map_or(0, |(&last, _)| last + 1).max(self.written())
    }

    /// Moves the write pointer, if that is not behind `pointer` already.
    fn commit(&mut self, pointer: u64) {
        for number in self.written()..pointer {
            self.blocks.push(self.ahead.remove(&number));
        }
        let first = self.ahead.first_key_value().map_or(u64::MAX, |(&first, _)| first);
        assert!(first >= self.written(), "block {first} lies before the pointer and is not committed");
    }

    /// The zone is full if its pointer is at the capacity, and open otherwise.
    fn sort_state(&mut self, geometry: &ZoneGeometry) {
        if self.written() == geometry.capacity_blocks {
            (self.state, self.has_area) = (ZoneState::Full, false);
        } else if !self.state.is_open() {
            self.state = ZoneState::ImplicitlyOpened;
        }
    }

    /// Carries out a change.
    pub fn change(&mut self, change: &ZoneChange, geometry: &ZoneGeometry) {
        match change {
            ZoneChange::Written(blocks) => {
                self.blocks.extend(blocks.iter().cloned().map(Some));
                self.sort_state(geometry);
            }
            ZoneChange::Placed { at, blocks, pointer } => {
                // What was committed since is as the commit says.
                let written = self.written();
                let ahead = (*at..).zip(blocks).filter(|&(number, _)| number >= written);
                self.ahead.extend(ahead.map(|(number, content)| (number, content.clone())));
                self.commit(*pointer);
                self.sort_state(geometry);
            }
            ZoneChange::Committed(blocks) => {
                self.blocks.extend(blocks.iter().skip(self.blocks.len()).cloned());
                self.ahead = self.ahead.split_off(&self.written());
                self.sort_state(geometry);
            }
            ZoneChange::Finished => {
                self.commit(self.end());
                (self.state, self.has_area) = (ZoneState::Full, false);
            }
            ZoneChange::Reset => *self = Self::EMPTY,
            ZoneChange::WentOffline => *self = Self { state: ZoneState::Offline, ..Self::EMPTY },
            ZoneChange::Described(extension) => {
                (self.state, self.extension) = (ZoneState::Closed, Some(*extension));
            }
        }
    }

    /// The zone after a power cut: nothing is open, what its area held is committed, and what has neither block nor extension
    /// is empty.
    #[must_use]
    pub fn after_cut(mut self, geometry: &ZoneGeometry) -> Self {
        self.has_area = false;
        if let Some(area) = geometry.area.filter(|_| !self.ahead.is_empty()) {
            let end = self.end().next_multiple_of(u64::from(area.granularity));
            self.commit(end.min(geometry.capacity_blocks));
        }
        if self.state.is_active() && self.written() == geometry.capacity_blocks {
            self.state = ZoneState::Full;
        }
        if self.state.is_active() {
            let is_empty = self.blocks.is_empty() && self.extension.is_none();
            self.state = if is_empty { ZoneState::Empty } else { ZoneState::Closed };
        }
        self
    }
}
