//! A zone, the ways it changes, and every state a power cut may leave it in.

use ocssd_lightnvm::interface::zoned::{ZoneExtension, ZoneState};

/// A zone: what of it is written, in order, and its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    /// Its state.
    pub state: ZoneState,
    /// The content of each written block.
    pub blocks: Vec<Vec<u8>>,
    /// The extension of its descriptor.
    pub extension: Option<ZoneExtension>,
}

/// A change of a zone that survives or does not. Opening and closing never does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ZoneChange {
    /// These blocks were written at its write pointer.
    Written(Vec<Vec<u8>>),
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
    pub const EMPTY: Self = Self { state: ZoneState::Empty, blocks: Vec::new(), extension: None };

    /// Blocks that are written.
    #[must_use]
    pub fn written(&self) -> u64 {
        u64::try_from(self.blocks.len()).expect("a length fits 64 bits")
    }

    /// Carries out a change of a zone of `capacity` blocks.
    pub fn change(&mut self, change: &ZoneChange, capacity: u64) {
        match change {
            ZoneChange::Written(blocks) => {
                self.blocks.extend(blocks.iter().cloned());
                if self.written() == capacity {
                    self.state = ZoneState::Full;
                } else if !self.state.is_open() {
                    self.state = ZoneState::ImplicitlyOpened;
                }
            }
            ZoneChange::Finished => self.state = ZoneState::Full,
            ZoneChange::Reset => *self = Self::EMPTY,
            ZoneChange::WentOffline => *self = Self { state: ZoneState::Offline, ..Self::EMPTY },
            ZoneChange::Described(extension) => {
                (self.state, self.extension) = (ZoneState::Closed, Some(*extension));
            }
        }
    }

    /// The zone after a power cut: nothing is open, and what has neither block nor extension is empty.
    #[must_use]
    pub fn after_cut(mut self) -> Self {
        if self.state.is_active() {
            let is_empty = self.blocks.is_empty() && self.extension.is_none();
            self.state = if is_empty { ZoneState::Empty } else { ZoneState::Closed };
        }
        self
    }

    /// Every zone a power cut may leave, if the first `durable` of these changes survive it: any number of the others in order,
    /// and of the one after them any number of first blocks.
    #[must_use]
    pub fn legal(&self, changes: &[&ZoneChange], durable: usize, capacity: u64) -> Vec<Self> {
        let (mut zone, mut legal) = (self.clone(), Vec::new());
        for (nth, change) in changes.iter().enumerate() {
            if nth >= durable {
                legal.push(zone.clone().after_cut());
                if let ZoneChange::Written(blocks) = change {
                    legal.extend((1..blocks.len()).map(|count| {
                        let mut torn = zone.clone();
                        torn.change(&ZoneChange::Written(blocks[..count].to_vec()), capacity);
                        torn.after_cut()
                    }));
                }
            }
            zone.change(change, capacity);
        }
        legal.push(zone.after_cut());
        legal
    }
}
