//! What the host's CPUs are like: every cost with its source, the presets, and what can be wrong.
//!
//! FAST'17 measured pblk on a null device: a 4 KiB read 1.97 us without and 2.32 us with it, a write 2.0 and 2.9 us. How
//! these divide is chosen here, their sums are not. What is called a guess was measured by nobody known.
//! Deliberately not here: reading settings (`parse`), the equations (`costs`).

use ocssd_base::{Nanos, Problems};

/// Most cores (chosen: far above any host of the papers).
pub const CORES_MAX: u32 = 1024;
/// Most writer threads (chosen: one for every parallel unit of half a Westlake drive).
pub const WRITERS_MAX: u32 = 64;
/// Most requests in flight (chosen: what pblk here takes, sixteen times).
pub const REQUESTS_MAX: u32 = 1 << 16;
/// Longest single cost; it keeps the equations within 64 bits.
const COST_MAX: Nanos = Nanos::from_millis(10);
/// Largest factor on a copy, in percent.
const PERCENT_MAX: u32 = 10_000;

/// What a write does while there is no room for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Waiting {
    /// Takes the lock, tests, lets go, yields, and again, as pblk did (Linux `pblk-cache.c`): it occupies its core and the lock.
    BusyRetry,
    /// Sleeps until there is room.
    #[default]
    Fair,
}

/// What the host's CPUs are like. Times are of one core that nobody shares; a page is 4 KiB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostCpuConfig {
    /// Cores online, 1..=[`CORES_MAX`], from the first socket up. KSC'17: as many as threads.
    pub cores: u32,
    /// Cores of a socket, at least 1.
    pub cores_per_socket: u32,
    /// Third-level cache of a socket in bytes; 0 if unknown, then copies cost the same everywhere.
    pub l3_bytes: u64,
    /// The target's write buffer in bytes, which only its owner knows; 0 if unknown, then as for `l3_bytes`.
    pub ring_bytes: u64,
    /// Requests in flight before more are refused, 1..=[`REQUESTS_MAX`].
    pub requests_max: u32,

    /// CPU of a read, generator and block layer included, up to where it sleeps or has its data.
    pub read_submit_ns: Nanos,
    /// CPU of a write, without lock and copy.
    pub write_submit_ns: Nanos,
    /// CPU on top for a read, if the target is an FTL that the host runs.
    pub ftl_read_ns: Nanos,
    /// The same for a write, without lock and copy.
    pub ftl_write_ns: Nanos,
    /// CPU of a flush, discard, zeroing, zone reset or shutdown.
    pub other_submit_ns: Nanos,
    /// CPU to copy a page from or to the ring, in memory.
    pub copy_page_ns: Nanos,
    /// CPU of interrupt and context switch for a request that slept.
    pub completion_ns: Nanos,
    /// Time until a woken thread runs; costs no CPU.
    pub wake_up_ns: Nanos,

    /// The ring lock is held so long to test for room.
    pub lock_test_ns: Nanos,
    /// The ring lock is held so long to take the place of each page and evict what was there.
    pub lock_page_ns: Nanos,
    /// A spinner is away from the lock so long between two tests.
    pub yield_ns: Nanos,
    /// A contended cache line takes so long from another socket.
    pub transfer_ns: Nanos,

    /// The lock of the map is held so long by a read for each page it looks up. A write's part of it is in `lock_page_ns`.
    pub map_lock_page_ns: Nanos,
    /// A read takes so much longer for each socket beyond the first that has reads.
    pub read_socket_ns: Nanos,

    /// A copy into a ring that lies in this socket's cache, in percent of `copy_page_ns`.
    pub copy_resident_percent: u32,
    /// A copy into a ring that lies in another socket's cache, in percent of `copy_page_ns`.
    pub copy_remote_percent: u32,
    /// What the writer, or the drive's transfer behind it, takes longer for a page that lies in another socket's cache.
    pub writer_remote_page_ns: Nanos,

    /// Writer threads, 1..=[`WRITERS_MAX`]; each has its own parallel units. pblk: 1.
    pub writers: u32,
    /// CPU of the writer for a command that is not for a request's own buffer.
    pub writer_command_ns: Nanos,
    /// The same, for each page of it.
    pub writer_page_ns: Nanos,
    /// CPU of the garbage collector for each of its reads.
    pub gc_command_ns: Nanos,
    /// The same, for each page of it.
    pub gc_page_ns: Nanos,

    /// Factor: what a write without room does.
    pub waiting: Waiting,
    /// Factor: spinners slow down what shares their core.
    pub spinner_starvation: bool,
    /// Factor: sockets matter, to the lock and to copies.
    pub cross_socket: bool,
    /// Factor: it matters whether the ring fits a socket's cache.
    pub cache_residency: bool,
    /// Factor: the ring lock is one resource. Without it holds cost their time, and nobody waits.
    pub lock: bool,
}

impl HostCpuConfig {
    /// Cores that cost nothing: for tests, and to set single costs.
    #[must_use]
    pub const fn free() -> Self {
        Self {
            cores: 1,
            cores_per_socket: 1,
            l3_bytes: 0,
            ring_bytes: 0,
            requests_max: 4096,
            read_submit_ns: Nanos::ZERO,
            write_submit_ns: Nanos::ZERO,
            ftl_read_ns: Nanos::ZERO,
            ftl_write_ns: Nanos::ZERO,
            other_submit_ns: Nanos::ZERO,
            copy_page_ns: Nanos::ZERO,
            completion_ns: Nanos::ZERO,
            wake_up_ns: Nanos::ZERO,
            lock_test_ns: Nanos::ZERO,
            lock_page_ns: Nanos::ZERO,
            yield_ns: Nanos::ZERO,
            transfer_ns: Nanos::ZERO,
            map_lock_page_ns: Nanos::ZERO,
            read_socket_ns: Nanos::ZERO,
            copy_resident_percent: 100,
            copy_remote_percent: 100,
            writer_remote_page_ns: Nanos::ZERO,
            writers: 1,
            writer_command_ns: Nanos::ZERO,
            writer_page_ns: Nanos::ZERO,
            gc_command_ns: Nanos::ZERO,
            gc_page_ns: Nanos::ZERO,
            waiting: Waiting::Fair,
            spinner_starvation: true,
            cross_socket: true,
            cache_residency: true,
            lock: true,
        }
    }

    /// The host of FAST'17, one socket of an E5-2620 v3: what it measured of requests, and nothing else. A read takes 1.97 us
    /// and a write 2.0 us without pblk, 2.32 and 2.9 us with it, on a device that answers at once; interrupts, wake-ups, lock and
    /// copy are in these sums. Threads of the FTL cost nothing: the paper says 4 % of a processor and not what for.
    #[must_use]
    pub const fn e5_2620v3() -> Self {
        Self {
            cores: 6,
            cores_per_socket: 6,
            l3_bytes: 15 << 20,
            read_submit_ns: Nanos(1_970),
            ftl_read_ns: Nanos(350),
            write_submit_ns: Nanos(2_000),
            ftl_write_ns: Nanos(900),
            // A write without pblk.
            other_submit_ns: Nanos(2_000),
            ..Self::free()
        }
    }

    /// The same host before a target whose FTL it does not run.
    #[must_use]
    pub const fn without_ftl(self) -> Self {
        Self { ftl_read_ns: Nanos::ZERO, ftl_write_ns: Nanos::ZERO, ..self }
    }

    /// The host of KSC'17 with pblk's waiting: four sockets of an E7-8870 v3 (experiments/ksc17-t2), all 72 cores
    /// online. Costs are of FAST'17's host, whose cores run at about the same clock.
    #[must_use]
    pub const fn e7_8870v3_x4() -> Self {
        Self {
            cores: 72,
            cores_per_socket: 18,
            l3_bytes: 45 << 20,
            // The stack, and pblk on top of it.
            read_submit_ns: Nanos(1_970),
            ftl_read_ns: Nanos(350),
            write_submit_ns: Nanos(2_000),
            // Together with test, page and copy of a 4 KiB write 1.3 us, and 3.3 us with the stack. FAST'17 measured 2.9 us; the
            // 0.4 us on top are fitted to KSC'17's writes of two threads (4.7 us a write, of which a thread waits 1.4).
            ftl_write_ns: Nanos(790),
            // A write without pblk: 2.0 us.
            other_submit_ns: Nanos(2_000),
            // Chosen: 4 KiB at 10 GB/s, one core of that generation reading and writing memory.
            copy_page_ns: Nanos(400),
            // Guesses: an interrupt with a context switch, and the way from one core to another.
            completion_ns: Nanos(1_500),
            wake_up_ns: Nanos(1_500),
            // Guesses: an uncontended atomic and some loads; a map entry and two counters per page.
            lock_test_ns: Nanos(50),
            lock_page_ns: Nanos(60),
            // Guess: a pass through the scheduler.
            yield_ns: Nanos(500),
            // Guess: a modified line from another socket over one link.
            transfer_ns: Nanos(200),
            // Guesses for hypothesis H1 of experiments/ksc17-rootcause: a cache against memory, against another socket's cache,
            // and 64 lines snooped at 150 ns with about ten under way.
            copy_resident_percent: 60,
            copy_remote_percent: 250,
            writer_remote_page_ns: Nanos(1_000),
            // 16 us for 64 KiB: FAST'17's one writer moved 3.95 GB/s, so it took at most 16.6 us. How it divides is a guess: half
            // of it per command, since larger commands are said to help.
            writer_command_ns: Nanos(8_000),
            writer_page_ns: Nanos(500),
            // Guesses: a vector read, and a copy with a look at the map per page.
            gc_command_ns: Nanos(5_000),
            gc_page_ns: Nanos(500),
            waiting: Waiting::BusyRetry,
            ..Self::free()
        }
    }

    /// Sockets with a core online.
    #[must_use]
    pub const fn sockets(&self) -> u32 {
        self.cores.div_ceil(self.cores_per_socket)
    }

    /// Whether the numbers make a host.
    ///
    /// # Errors
    /// Every number that does not, with what it may be.
    pub fn check(&self) -> Result<(), Problems> {
        let mut problems = Problems::default();
        for (name, found, max) in [
            ("cores", self.cores, CORES_MAX),
            ("cores_per_socket", self.cores_per_socket, CORES_MAX),
            ("requests_max", self.requests_max, REQUESTS_MAX),
            ("writers", self.writers, WRITERS_MAX),
            ("copy_resident_percent", self.copy_resident_percent, PERCENT_MAX),
            ("copy_remote_percent", self.copy_remote_percent, PERCENT_MAX),
        ] {
            problems.require((1..=max).contains(&found), name, found, &format!("it must be 1 to {max}"));
        }
        for (name, cost) in self.times() {
            let sentence = format!("it must be at most {}, which is {COST_MAX}", COST_MAX.0);
            problems.require(cost <= COST_MAX, name, cost.0, &sentence);
        }
        problems.into_result()
    }

    const fn times(&self) -> [(&'static str, Nanos); 19] {
        [
            ("read_submit_ns", self.read_submit_ns),
            ("write_submit_ns", self.write_submit_ns),
            ("ftl_read_ns", self.ftl_read_ns),
            ("ftl_write_ns", self.ftl_write_ns),
            ("other_submit_ns", self.other_submit_ns),
            ("copy_page_ns", self.copy_page_ns),
            ("completion_ns", self.completion_ns),
            ("wake_up_ns", self.wake_up_ns),
            ("lock_test_ns", self.lock_test_ns),
            ("lock_page_ns", self.lock_page_ns),
            ("yield_ns", self.yield_ns),
            ("transfer_ns", self.transfer_ns),
            ("map_lock_page_ns", self.map_lock_page_ns),
            ("read_socket_ns", self.read_socket_ns),
            ("writer_remote_page_ns", self.writer_remote_page_ns),
            ("writer_command_ns", self.writer_command_ns),
            ("writer_page_ns", self.writer_page_ns),
            ("gc_command_ns", self.gc_command_ns),
            ("gc_page_ns", self.gc_page_ns),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_presets_are_sound_and_add_up_to_what_was_measured() {
        assert_eq!(HostCpuConfig::free().check(), Ok(()));
        let host = HostCpuConfig::e7_8870v3_x4();
        assert_eq!(host.check(), Ok(()));
        assert_eq!((host.sockets(), host.cores), (4, 72));
        let write = host.write_submit_ns
            + host.ftl_write_ns
            + host.lock_test_ns
            + host.lock_page_ns
            + host.copy_page_ns;
        assert_eq!(write, Nanos(3_300), "FAST'17's 2.9 us, and 0.4 us fitted");
        let with = HostCpuConfig::e5_2620v3();
        assert_eq!((with.check(), with.cores), (Ok(()), 6));
        let sums = |host: &HostCpuConfig| {
            [host.read_submit_ns + host.ftl_read_ns, host.write_submit_ns + host.ftl_write_ns]
        };
        assert_eq!(sums(&with), [Nanos(2_320), Nanos(2_900)], "FAST'17, with pblk");
        assert_eq!(sums(&with.without_ftl()), [Nanos(1_970), Nanos(2_000)], "FAST'17, without");
        assert_eq!(
            host.writer_command_ns + host.writer_page_ns * 16,
            Nanos(16_000),
            "FAST'17: at most 16.6 us"
        );
    }

    #[test]
    fn every_number_out_of_bounds_is_named() {
        let wrong = HostCpuConfig {
            cores: 0,
            writers: WRITERS_MAX + 1,
            yield_ns: COST_MAX + Nanos(1),
            copy_remote_percent: 0,
            ..HostCpuConfig::free()
        };
        let said = wrong.check().expect_err("four numbers are wrong").to_string();
        for part in
            ["cores is 0", "writers is 65, but it must be 1 to 64", "yield_ns is 10000001", "percent is 0"]
        {
            assert!(said.contains(part), "{said}");
        }
    }
}
