//! The equations: how long work takes, given how many share what.
//!
//! Everything is an integer of nanoseconds, rounded up. Deliberately not here: who waits for whom (`lock`, `cores`).

use super::config::HostCpuConfig;
use super::hosted::Work;
use ocssd_base::Nanos;

/// Bytes of a page, the unit of copies and of places in pblk's ring.
const PAGE_BYTES: u64 = 4096;

/// Who is at the ring lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Crowd {
    /// Threads that retry.
    pub spinners: u32,
    /// Sockets with a thread that writes.
    pub sockets: u32,
}

/// The parameters, and what follows from them.
#[derive(Clone, Debug)]
pub(super) struct Costs {
    config: HostCpuConfig,
    sector_bytes: u64,
}

impl Costs {
    /// For a target on sectors of so many bytes.
    pub fn new(config: HostCpuConfig, sector_bytes: u32) -> Self {
        Self { config, sector_bytes: u64::from(sector_bytes) }
    }

    pub const fn config(&self) -> &HostCpuConfig {
        &self.config
    }

    /// Pages that `bytes` touch at least.
    pub const fn pages(&self, bytes: u64) -> u64 {
        bytes.div_ceil(PAGE_BYTES)
    }

    /// Pages that `sectors` touch at least.
    pub fn pages_of_sectors(&self, sectors: u32) -> u64 {
        self.pages(u64::from(sectors) * self.sector_bytes)
    }

    /// Sectors that `bytes` touch at least.
    pub const fn sectors(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.sector_bytes)
    }

    pub const fn submit(&self, work: Work) -> Nanos {
        match work {
            Work::Read => Nanos(self.config.read_submit_ns.0 + self.config.ftl_read_ns.0),
            Work::Write { .. } => Nanos(self.config.write_submit_ns.0 + self.config.ftl_write_ns.0),
            Work::Other | Work::Shutdown => self.config.other_submit_ns,
        }
    }

    /// Copying pages to or from the ring, when threads run on so many sockets. The part of the ring another socket wrote
    /// last is `(n - 1) / n`.
    pub fn copy(&self, pages: u64, sockets: u32) -> Nanos {
        let (local, remote) =
            (u64::from(self.config.copy_resident_percent), u64::from(self.config.copy_remote_percent));
        let sockets = self.sockets_that_matter(sockets);
        let percent_times_sockets =
            if self.is_resident() { local + remote * (sockets - 1) } else { 100 * sockets };
        part(self.config.copy_page_ns * pages, percent_times_sockets, 100 * sockets)
    }

    /// One hold to test for room.
    pub fn test_hold(&self, crowd: Crowd) -> Nanos {
        self.config.lock_test_ns + self.transfer(crowd.sockets)
    }

    /// One hold to take the places of so many pages.
    pub fn store_hold(&self, pages: u64, crowd: Crowd) -> Nanos {
        self.config.lock_page_ns * pages + self.transfer(crowd.sockets)
    }

    /// One hold of the map's lock, to look up so many pages.
    pub fn look_up_hold(&self, pages: u64, crowd: Crowd) -> Nanos {
        self.config.map_lock_page_ns * pages + self.transfer(crowd.sockets)
    }

    /// What a read takes longer when so many sockets have reads.
    pub fn sockets_of_reads(&self, sockets: u32) -> Nanos {
        self.config.read_socket_ns * (self.sockets_that_matter(sockets) - 1)
    }

    /// What whoever comes to the lock waits for spinners it finds there: `max(S h h / (h + z), S h - z)`, the mean number
    /// at the lock times a hold, below and above saturation.
    pub fn spinner_wait(&self, crowd: Crowd) -> Nanos {
        let hold = self.test_hold(crowd).0;
        if !self.config.lock || crowd.spinners == 0 || hold == 0 {
            return Nanos::ZERO;
        }
        let (spinners, away) = (u64::from(crowd.spinners), self.config.yield_ns.0);
        let below = (spinners * hold * hold).div_ceil(hold + away);
        Nanos(below.max((spinners * hold).saturating_sub(away)))
    }

    /// From one retry of a spinner to its next: `max((h + z) ceil(S / cores), S h)`.
    pub fn retry_period(&self, crowd: Crowd) -> Nanos {
        let hold = self.test_hold(crowd).0;
        let turns = u64::from(crowd.spinners.div_ceil(self.config.cores)).max(1);
        let alone = (hold + self.config.yield_ns.0) * turns;
        let queued = if self.config.lock { hold * u64::from(crowd.spinners) } else { 0 };
        Nanos(alone.max(queued))
    }

    /// The writer's CPU for a command, when threads run on so many sockets.
    pub fn writer_command(&self, pages: u64, sockets: u32) -> Nanos {
        let sockets = self.sockets_that_matter(sockets);
        let remote = if self.is_resident() {
            part(self.config.writer_remote_page_ns * pages, sockets - 1, sockets)
        } else {
            Nanos::ZERO
        };
        self.config.writer_command_ns + self.config.writer_page_ns * pages + remote
    }

    /// The garbage collector's CPU for a read.
    pub fn gc_command(&self, pages: u64) -> Nanos {
        self.config.gc_command_ns + self.config.gc_page_ns * pages
    }

    /// Sockets that hold the first `threads` threads.
    pub fn sockets_of(&self, threads: u32) -> u32 {
        threads.clamp(1, self.config.cores).div_ceil(self.config.cores_per_socket)
    }

    /// A lock comes from another socket `(n - 1) / n` of the times.
    fn transfer(&self, sockets: u32) -> Nanos {
        let sockets = self.sockets_that_matter(sockets);
        part(self.config.transfer_ns, sockets - 1, sockets)
    }

    fn sockets_that_matter(&self, sockets: u32) -> u64 {
        if self.config.cross_socket { u64::from(sockets.max(1)) } else { 1 }
    }

    const fn is_resident(&self) -> bool {
        self.config.cache_residency
            && self.config.ring_bytes > 0
            && self.config.ring_bytes <= self.config.l3_bytes
    }
}

const fn part(whole: Nanos, of: u64, out_of: u64) -> Nanos {
    Nanos((whole.0 * of).div_ceil(out_of))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs(change: impl FnOnce(&mut HostCpuConfig)) -> Costs {
        let mut config = HostCpuConfig::e7_8870v3_x4();
        change(&mut config);
        Costs::new(config, 4096)
    }

    #[test]
    fn a_lone_thread_waits_for_nobody() {
        let costs = costs(|_| ());
        let alone = Crowd { spinners: 0, sockets: 1 };
        assert_eq!(costs.spinner_wait(alone), Nanos::ZERO);
        assert_eq!((costs.test_hold(alone), costs.store_hold(4, alone)), (Nanos(50), Nanos(240)));
    }

    #[test]
    fn the_wait_grows_with_spinners_and_sockets_and_saturates() {
        let costs = costs(|_| ());
        let wait = |spinners, sockets| costs.spinner_wait(Crowd { spinners, sockets }).0;
        // h = 50, z = 500: the lock is full at 11 spinners.
        assert_eq!([1, 10, 11, 12, 40].map(|s| wait(s, 1)), [5, 46, 50, 100, 1500]);
        // h = 50 + 200 * 3 / 4.
        assert_eq!(wait(40, 4), 40 * 200 - 500);
        assert_eq!(costs.retry_period(Crowd { spinners: 40, sockets: 1 }), Nanos(2_000));
        assert_eq!(costs.retry_period(Crowd { spinners: 4, sockets: 1 }), Nanos(550));
    }

    #[test]
    fn each_factor_can_be_taken_out() {
        let crowd = Crowd { spinners: 40, sockets: 4 };
        assert_eq!(costs(|c| c.lock = false).spinner_wait(crowd), Nanos::ZERO);
        assert_eq!(costs(|c| c.cross_socket = false).test_hold(crowd), Nanos(50));
        let small = |c: &mut HostCpuConfig| c.ring_bytes = 32 << 20;
        let with = costs(small);
        assert_eq!([1, 2, 4].map(|n| with.copy(1, n).0), [240, 620, 810]);
        assert_eq!([1, 2].map(|n| with.writer_command(16, n).0), [16_000, 24_000]);
        let large = costs(|c| c.ring_bytes = 64 << 20);
        assert_eq!((large.copy(1, 4), large.writer_command(16, 4)), (Nanos(400), Nanos(16_000)));
        let apart = costs(|c| (c.ring_bytes, c.cache_residency) = (32 << 20, false));
        assert_eq!((apart.copy(1, 4), apart.writer_command(16, 4)), (Nanos(400), Nanos(16_000)));
    }

    #[test]
    fn a_read_pays_for_its_look_up_and_for_every_socket_beyond_the_first() {
        let set = |c: &mut HostCpuConfig| (c.map_lock_page_ns, c.read_socket_ns) = (Nanos(60), Nanos(1_000));
        let with = costs(set);
        let hold = |sockets| with.look_up_hold(2, Crowd { spinners: 0, sockets }).0;
        assert_eq!([1, 2, 4].map(hold), [120, 220, 270]);
        assert_eq!([0, 1, 2, 4].map(|sockets| with.sockets_of_reads(sockets).0), [0, 0, 1_000, 3_000]);
        let alone = costs(|c| {
            set(c);
            c.cross_socket = false;
        });
        assert_eq!(alone.sockets_of_reads(4), Nanos::ZERO);
    }

    #[test]
    fn blocks_are_counted_in_pages_and_threads_in_sockets() {
        let costs = Costs::new(HostCpuConfig::e7_8870v3_x4(), 512);
        assert_eq!([0, 1, 8, 9].map(|blocks| costs.pages_of_sectors(blocks)), [0, 1, 1, 2]);
        assert_eq!([0, 1, 512, 513].map(|bytes| costs.sectors(bytes)), [0, 1, 1, 2]);
        assert_eq!([0, 1, 18, 19, 72, 500].map(|threads| costs.sockets_of(threads)), [1, 1, 1, 2, 4, 4]);
    }
}
