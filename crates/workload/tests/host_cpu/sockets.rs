//! How many sockets threads pay for: those that the threads in flight are spread over, whatever ran before.

use super::threads::Threads;
use super::{Buffered, Fixed, WRITE, buffers};
use ocssd_base::Nanos;
use ocssd_engine::{Clock, Host, RunEnd, VirtualClock};
use ocssd_lightnvm::block::BlockOp;
use ocssd_workload::host_cpu::{HostCpu, HostCpuConfig, StatsHandle, Waiting};

/// Threads on the paper's host, with a ring that fits a cache; reads find their data in memory.
struct Bench {
    host: Host<Fixed, VirtualClock>,
    threads: Threads,
    stats: StatsHandle,
}

impl Bench {
    fn new(op: BlockOp, read_submit_ns: Nanos) -> Self {
        let device = Fixed::new(Nanos(30_000));
        let buffers = buffers(&device);
        let inner = Buffered { read_ns: Nanos::ZERO, ..Buffered::new() };
        let (ring_bytes, waiting) = (1 << 20, Waiting::Fair);
        let config = HostCpuConfig {
            ring_bytes,
            waiting,
            read_submit_ns,
            ..HostCpuConfig::e7_8870v3_x4().without_ftl()
        };
        let target = HostCpu::new(Box::new(inner), config).expect("sound parameters");
        let stats = target.stats();
        let mut host: Host<_, _> = Host::new(device, VirtualClock::default(), buffers);
        host.add(Box::new(target));
        Self { host, threads: Threads::new(0, op, 1), stats }
    }

    fn run(&mut self, expected: RunEnd) {
        let stop_at = self.host.clock().now() + Nanos::from_millis(2);
        assert_eq!(self.host.run(&mut self.threads, stop_at), expected);
    }

    /// A job that is over before the next begins, at the same time.
    fn job(&mut self, threads: u32) {
        (self.threads.stay, self.threads.idle) = (u32::MAX, (0..threads).collect());
        self.run(RunEnd::Stopped);
        self.threads.stay = 0;
        self.run(RunEnd::Stuck);
    }

    /// What so many threads, of which each always has a request, are seen to pay from now on: the times of reads, but for the
    /// first of each thread, and the writer's for each of its commands.
    fn pay(&mut self, threads: u32) -> (Vec<Nanos>, Nanos) {
        self.threads.replies.clear();
        let before = self.stats.read().writers[0];
        self.run(RunEnd::Stopped);
        let now = self.stats.read().writers[0];
        let commands = (now.commands - before.commands).max(1);
        let cpu = now.cpu_ns.0 - before.cpu_ns.0;
        assert_eq!(cpu % commands, 0, "every command costs the same");
        let mut times = Vec::new();
        for thread in 0..threads {
            let own = self.threads.replies.iter().filter(|(_, tag)| tag.0 == thread);
            let ends: Vec<Nanos> = own.map(|&(at, _)| at).collect();
            assert!(self.threads.op != BlockOp::Read || ends.len() > 100, "thread {thread} does not run");
            times.extend(ends.windows(2).map(|pair| pair[1] - pair[0]));
        }
        times.sort_unstable();
        times.dedup();
        (times, Nanos(cpu / commands))
    }
}

/// Threads, what copying a page read costs them, and a command of 16 pages the writer: of each page a copy, and what is in the
/// cache of another of `n` sockets `(n - 1) / n` of the times.
const COSTS: [(u32, u64, u64); 4] = [
    (2, 240, 16_000),
    (18, 240, 16_000),
    (19, 240 / 2 + 1_000 / 2, 16_000 + 16_000 / 2),
    (72, 240 / 4 + 1_000 * 3 / 4, 16_000 + 16_000 * 3 / 4),
];

#[test]
fn busy_threads_pay_for_their_sockets_at_every_time_and_not_for_those_of_jobs_before() {
    // Each has a core and all begin at once, so all end at once, again and again. With nothing to do before it, a copy begins
    // while other threads have ended and not begun again.
    for submit in [Nanos(2_320), Nanos::ZERO] {
        for (before, (threads, copy, command)) in
            [0, 2, 72].into_iter().flat_map(|before| COSTS.map(|costs| (before, costs)))
        {
            for op in [BlockOp::Read, WRITE] {
                let mut bench = Bench::new(op, submit);
                if before > 0 {
                    bench.job(before);
                }
                (bench.threads.stay, bench.threads.idle) = (u32::MAX, (0..threads).collect());
                let paid = bench.pay(threads);
                let label = format!("{threads} threads after {before}, {submit} before a copy");
                match op {
                    BlockOp::Read => assert_eq!(paid.0, [submit + Nanos(copy)], "{label}"),
                    _ => assert_eq!(paid.1, Nanos(command), "{label}"),
                }
            }
        }
    }
}

#[test]
fn threads_that_outlive_others_pay_for_their_own_sockets_alone() {
    for op in [BlockOp::Read, WRITE] {
        let submit = Nanos(2_320);
        let mut bench = Bench::new(op, submit);
        bench.threads.idle = (0..72).collect();
        bench.run(RunEnd::Stopped);
        bench.threads.stay = 2;
        bench.run(RunEnd::Stopped);
        let (threads, copy, command) = COSTS[0];
        let paid = bench.pay(threads);
        match op {
            BlockOp::Read => assert_eq!(paid.0, [submit + Nanos(copy)]),
            _ => assert_eq!(paid.1, Nanos(command)),
        }
    }
}
