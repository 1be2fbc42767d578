//! KSC'17: "Performance Analysis Based on Write Buffer and Thread Configuration in Open Channel SSD Platforms".
//!
//! `point` is one cell of its tables under any factors; `reads` and `writes` are tables 2 and 3, `rootcause` changes one
//! factor at a time, `fix` compares write paths, `sockets` gives reads
//! beyond one socket a cost that is fitted.

pub mod fix;
mod point;
pub mod reads;
pub mod rootcause;
pub mod sockets;
pub mod writes;

use super::compare::FITTED;

/// What was counted beside a number; a number of two threads, to which a cost of the host is fitted, says so.
fn noted(threads: u32, counted: &str) -> String {
    if threads == 2 { format!("{FITTED}; {counted}") } else { counted.to_owned() }
}

/// How reads are run.
const METHOD_READS: &str = "Westlake as table 1 of the paper has it, 8 channels, but of 8 units, as its author's drive had \
    that month and as its reads wait beyond 18 threads; pblk in faithful mode with the buffer as asked for (32 MiB is half of what the drive needs and is forced with small_write_buffer). Each thread is a fio job of 4 KiB \
    at depth 1 on a virtual host of four sockets of 18 cores, as many cores online as threads (preset e7-8870v3-x4; its costs \
    are FAST'17's and guesses), and 12 us more for a read that sleeps: this cost is fitted to the reads of two threads. All threads \
    share 1 GiB, which is written once in order and three times over at random before, so that the buffer holds blocks from anywhere \
    and the media have them in no order. In order, each thread has a part of the region. 200 ms unmeasured, so that the buffer has drained, then 300 ms.\n\n\
    The paper states neither block size, depth, region nor the state of the drive; 4 KiB at depth 1 and 1 GiB are what its \
    latencies fit.";

/// How writes are run.
const METHOD_WRITES: &str = "Westlake as table 1 of the paper has it, 8 channels of 16 units, fresh; pblk in faithful mode with the \
    buffer as asked for (32 MiB is half of what the drive needs and is forced with small_write_buffer). Each thread is a fio job \
    of 4 KiB at depth 1 on a virtual host of four sockets of 18 cores, as many cores online as threads (preset e7-8870v3-x4; its \
    costs are FAST'17's and guesses, but for 0.4 us of a write, which are fitted to the writes of two threads). All threads share 1 GiB; in order, each has a part of it. 512 MiB \
    are written first, so that a line is open: the faithful mode writes a head to each of its 128 chunks, one after the other, \
    which takes 90 ms each 2 GiB and is left out. Then 200 ms unmeasured, so that the buffer is full, and 300 ms measured.\n\n\
    The paper does not state the block size. 4 KiB is chosen: with 2 threads a buffer of 64 MiB or more took 1.6 to 1.75 GB/s, \
    which is 5 us a write of 4 KiB, what such a core takes.";

/// How the fix is run.
const METHOD_FIX: &str = "As ksc17-t3, with three write paths. baseline: pblk as Linux had it, whose writers without room retry. \
    fair_four_writers: the same ring, but writers sleep in a queue until there is room, and four threads write out. improved: the \
    improved mode (no in-order release, units written independently, one stream) with the same host; it refuses 32 and 64 MiB, \
    which the drive's read window does not fit, and is run with 128 and 256.";

/// Why the plateau of writes is below the paper's.
const STARVED_WRITER: &str = "the writer shares its core with a spinner, so a command costs 32 us and not 16 (its starved time equals \
    its CPU time), and as its heads and tails are written too, less comes out than the paper's plateau";
