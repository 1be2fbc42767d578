//! What a controller on PCI counts.

/// Since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Commands of the admin queue.
    pub admins: u64,
    /// Commands of I/O queues.
    pub commands: u64,
    /// Completions posted.
    pub completions: u64,
    /// Completions that were no success.
    pub errors: u64,
    /// Doorbells written by register.
    pub doorbells: u64,
    /// Doorbells found in the guest's memory instead.
    pub shadow_doorbells: u64,
    /// Interrupts.
    pub interrupts: u64,
    /// Bytes of data and metadata that came from the guest: each was copied once.
    pub received_bytes: u64,
    /// Bytes of data and metadata that went to the guest: each was copied once.
    pub sent_bytes: u64,
    /// Controller and function resets.
    pub resets: u64,
    /// Times the controller gave up (CSTS.CFS).
    pub fatals: u64,
}

impl Counters {
    /// Every counter with its name.
    #[must_use]
    pub fn rows(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("admins", self.admins),
            ("commands", self.commands),
            ("completions", self.completions),
            ("errors", self.errors),
            ("doorbells", self.doorbells),
            ("shadow_doorbells", self.shadow_doorbells),
            ("interrupts", self.interrupts),
            ("received_bytes", self.received_bytes),
            ("sent_bytes", self.sent_bytes),
            ("resets", self.resets),
            ("fatals", self.fatals),
        ]
    }
}
