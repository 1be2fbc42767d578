//! How far the host may fill the queue that a connection is.
//!
//! Deliberately not here: its commands.

/// A queue.
#[derive(Debug)]
pub struct Queue {
    /// Its number; 0 is the admin queue.
    pub qid: u16,
    /// Entries.
    entries: u16,
    /// The next entry the host fills.
    head: u16,
    /// The host wants to know how far its entries are taken.
    flow_control: bool,
}

impl Queue {
    /// A queue of so many entries.
    #[must_use]
    pub fn new(qid: u16, entries: u16, flow_control: bool) -> Self {
        assert!(entries > 0, "a queue has entries");
        Self { qid, entries, head: 0, flow_control }
    }

    /// An entry was taken.
    pub const fn advance(&mut self) {
        self.head = (self.head + 1) % self.entries;
    }

    /// SQHD of a completion; FFFFh without flow control, which is what Connect is answered with then (NVMe over Fabrics
    /// 1.1 section 3.3).
    #[must_use]
    pub const fn head(&self) -> u16 {
        if self.flow_control { self.head } else { 0xFFFF }
    }

    /// The host does not want to know how far its entries are taken.
    pub const fn drop_flow_control(&mut self) {
        self.flow_control = false;
    }

    /// Reads that succeed need no completion: it would tell the host nothing (NVMe/TCP section 3.6.2.10).
    #[must_use]
    pub const fn may_omit_completion(&self) -> bool {
        !self.flow_control
    }
}
