//! What a server counts.
//!
//! Deliberately not here: what targets and drive count; they say it themselves.

/// Why a connection ended other than by a disconnect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// Bytes that are no request.
    Garbage,
    /// A length nobody may ask for.
    Oversized,
    /// The handshake took too long.
    SlowGreeting,
    /// Nothing moved for too long while others waited, or for much too long.
    Stalled,
    /// It moved too little while it held more memory than its part and others waited for some.
    Slow,
    /// TLS failed.
    Tls,
    /// The client was gone in the middle of something.
    Vanished,
    /// There were as many connections as are allowed.
    Crowded,
    /// The address is not on the list of those allowed.
    NotAllowed,
    /// It did not keep its association alive.
    Silent,
}

/// Every reason, with its name in reports.
pub const DROP_REASONS: [(DropReason, &str); 10] = [
    (DropReason::Garbage, "garbage"),
    (DropReason::Oversized, "oversized"),
    (DropReason::SlowGreeting, "slow_greeting"),
    (DropReason::Stalled, "stalled"),
    (DropReason::Slow, "slow"),
    (DropReason::Tls, "tls"),
    (DropReason::Vanished, "vanished"),
    (DropReason::Crowded, "crowded"),
    (DropReason::NotAllowed, "not_allowed"),
    (DropReason::Silent, "silent"),
];

/// What was counted since the start. Requests are clients', not jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Connections accepted.
    pub connections: u64,
    /// Most at once.
    pub connections_max: u64,
    /// Connections dropped, by reason as in [`DROP_REASONS`].
    pub dropped: [u64; DROP_REASONS.len()],
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Flushes.
    pub flushes: u64,
    /// Trims.
    pub trims: u64,
    /// Writes of zeroes.
    pub zeroes: u64,
    /// Requests to read ahead.
    pub caches: u64,
    /// Questions about what holds data.
    pub maps: u64,
    /// Commands of the raw drive.
    pub raws: u64,
    /// NVMe commands of admin queues, and those that make and end queues.
    pub admins: u64,
    /// NVMe associations made.
    pub associations: u64,
    /// Times data that was announced was asked for (R2T).
    pub asked: u64,
    /// Digests of data that were wrong.
    pub digest_errors: u64,
    /// Requests with FUA.
    pub fuas: u64,
    /// Requests that ended with an error.
    pub errors: u64,
    /// Bytes of payload received.
    pub received_bytes: u64,
    /// Bytes of them that were copied between the socket and the buffer the target reads: received behind a header into
    /// memory of the connection, or decrypted.
    pub received_copied_bytes: u64,
    /// Bytes of payload sent.
    pub sent_bytes: u64,
    /// Bytes of them that were copied between the buffer the target filled and the socket: encrypted.
    pub sent_copied_bytes: u64,
    /// Calls that receive.
    pub receives: u64,
    /// Calls that send.
    pub sends: u64,
    /// Calls that wait for sockets.
    pub waits: u64,
    /// Kicks of guests: they had asked for something while nobody looked.
    pub kicks: u64,
    /// Times guests were told that something has ended.
    pub calls: u64,
}

impl Stats {
    /// A connection was dropped.
    pub fn note_dropped(&mut self, reason: DropReason) {
        let place = DROP_REASONS.iter().position(|(other, _)| *other == reason);
        self.dropped[place.expect("every reason has a place")] += 1;
    }

    /// How often connections were dropped for this.
    #[must_use]
    pub fn dropped_for(&self, reason: DropReason) -> u64 {
        let counts = DROP_REASONS.iter().zip(self.dropped);
        counts.filter(|((other, _), _)| *other == reason).map(|(_, count)| count).sum()
    }

    /// Every counter with its name, in a fixed order.
    #[must_use]
    pub fn rows(&self) -> Vec<(String, u64)> {
        let mut rows: Vec<(String, u64)> = [
            ("connections", self.connections),
            ("connections_max", self.connections_max),
            ("reads", self.reads),
            ("writes", self.writes),
            ("flushes", self.flushes),
            ("trims", self.trims),
            ("zeroes", self.zeroes),
            ("caches", self.caches),
            ("maps", self.maps),
            ("raws", self.raws),
            ("admins", self.admins),
            ("associations", self.associations),
            ("asked", self.asked),
            ("digest_errors", self.digest_errors),
            ("fuas", self.fuas),
            ("errors", self.errors),
            ("received_bytes", self.received_bytes),
            ("received_copied_bytes", self.received_copied_bytes),
            ("sent_bytes", self.sent_bytes),
            ("sent_copied_bytes", self.sent_copied_bytes),
            ("receives", self.receives),
            ("sends", self.sends),
            ("waits", self.waits),
            ("kicks", self.kicks),
            ("calls", self.calls),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        let dropped = DROP_REASONS.iter().zip(self.dropped);
        rows.extend(dropped.map(|((_, name), count)| (format!("dropped_{name}"), count)));
        rows
    }

    /// Copies per byte of payload between socket and target's buffer: of writes, and of reads. `None` before any.
    #[must_use]
    pub fn copies_per_byte(&self) -> (Option<f64>, Option<f64>) {
        let ratio = |part: u64, whole: u64| (whole > 0).then(|| as_f64(part) / as_f64(whole));
        (
            ratio(self.received_copied_bytes, self.received_bytes),
            ratio(self.sent_copied_bytes, self.sent_bytes),
        )
    }
}

/// A count as a float, for a quotient people read.
#[allow(clippy::cast_precision_loss, reason = "a quotient for people; 53 bits are enough")]
fn as_f64(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_drop_has_a_reason_and_a_row() {
        let mut stats = Stats::default();
        for (reason, _) in DROP_REASONS {
            stats.note_dropped(reason);
            assert_eq!(stats.dropped_for(reason), 1);
        }
        let rows = stats.rows();
        assert_eq!(
            rows.iter().filter(|(name, count)| name.starts_with("dropped_") && *count == 1).count(),
            DROP_REASONS.len()
        );
    }

    #[test]
    fn copies_are_counted_per_byte_that_moved() {
        assert_eq!(Stats::default().copies_per_byte(), (None, None));
        let stats = Stats { received_bytes: 4, received_copied_bytes: 1, sent_bytes: 9, ..Stats::default() };
        assert_eq!(stats.copies_per_byte(), (Some(0.25), Some(0.0)));
    }
}
