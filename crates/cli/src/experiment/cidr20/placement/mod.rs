//! Figure 7: what copies of data cost a storage controller, with OX's copies and without them.
//!
//! `controller` is the controller, `page_host` a thread of a host, `in_process` the same target without a network.

mod controller;
mod in_process;
mod page_host;
mod show;

use super::super::catalogue::Experiment;
use super::super::data::Data;
use super::super::lab::{Lab, Size};
use super::unexplained;
use anyhow::{Context, anyhow};
use controller::{Between, Controller, Processors};
use page_host::{Line, Travel, Writer};
use serde_json::Value;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// The experiment.
pub const EXPERIMENT: Experiment = Experiment {
    id: "cidr20-f7",
    aliases: &[],
    title: "What copies of data cost a storage controller",
    source: "CIDR 2020, figure 7 and section 4.4; the controller's busy time is read from the text: saturated with 2 threads of the host",
    claim: "The storage controller is saturated with 2 host threads, because it cannot keep up with the data copies within OX: from the \
            network stack to the FTL, and from the FTL to the Open-Channel SSD.",
    method: "`ocssd serve` with eleos on a drive of 512 MiB in memory whose media are quick is the controller, on one processor; threads on \
             another write 8 MiB of pages again and again over NVMe/TCP on loopback, eight commands each at a time, durable when answered. \
             `ox`: 60 pages of 4 KiB a command, data received as OX receives them (--copies ox: messages of 60 KiB into memory of the \
             connection, put together there if TCP split them, copied to the target's buffer). `in-place`: the same received where \
             the target reads them. `staged`: in place, 8 MiB collected in the controller and flushed as one. `in-process`: flushes \
             of 60 pages in the user's process, one at a time.\n\n\
             busy is the time on the processor of the time there was: time in which others had it is left out, for the machine is \
             shared; so is it of the rate. cost is processor time for each MiB of pages, in the kernel, in the program; in-process, in \
             the target's code and in the rest (the drive's model). Copies are counted, not computed: of each byte of a page, by \
             the kernel (recv), in the connection, into memory that the target keeps, to frames, to media (what is programmed: padding, log, checkpoints and garbage collection too).",
    paper: include_str!("../../../../../../experiments/cidr20-f7/paper.csv"),
    run,
    report: show::report,
    why: unexplained,
};

/// Writers.
const WRITERS: [u16; 4] = [1, 2, 4, 8];

/// How data come to the target: its name, the server's option, and how buffers travel.
const PATHS: [(&str, &str, Travel); 3] = [
    ("ox", "ox", Travel::Commands),
    ("in-place", "in-place", Travel::Commands),
    ("staged", "in-place", Travel::Staged),
];

/// What a point came to.
struct Measured {
    between: Between,
    /// Bytes of pages that became durable.
    bytes: u64,
    /// What the server counted in all.
    counted: Value,
}

fn run(lab: &mut Lab) -> anyhow::Result<Data> {
    let mut data = lab.data(&["path", "writers", "metric"]);
    let writers: &[u16] = if lab.size == Size::Small { &WRITERS[..2] } else { &WRITERS };
    lab.expect(PATHS.len() * writers.len() + 1);
    let processors = Processors::split()?;
    let time = Duration::from_millis(lab.size.pick(200, 3_000));
    for (path, copies, travel) in PATHS {
        for &count in writers {
            lab.point(&format!("{path}, {count} writers"));
            let measured = measure(&processors, copies, travel, count, time)
                .with_context(|| format!("{path}, {count} writers"))?;
            push(&mut data, path, count, &measured);
        }
    }
    lab.point("in the user's process");
    let cost = in_process::run(lab.size.pick(200, 6_000))?;
    let keys = |metric| ["in-process", "1", metric];
    data.push(&keys("cost"), cost.total, "us", "of a processor for each MiB");
    data.push(&keys("cost_target"), cost.target, "us", "of it in the target's code");
    data.push(
        &keys("cost_drive"),
        cost.total - cost.target,
        "us",
        "the rest: the drive's model, and what asks",
    );
    let copies = [("kept", cost.kept), ("frames", 1.0), ("media", cost.media)];
    for (place, copies) in copies {
        data.push(&["in-process", "1", &format!("copies_{place}")], copies, "x", "");
    }
    data.push(&keys("copies"), copies.iter().map(|(_, copies)| copies).sum(), "x", "for each byte");
    Ok(data)
}

fn measure(
    processors: &Processors,
    copies: &str,
    travel: Travel,
    writers: u16,
    time: Duration,
) -> anyhow::Result<Measured> {
    assert!(processors.controller != processors.hosts, "hosts would take the controller's processor");
    let controller = Controller::start(&processors.controller, copies)?;
    let (admin, lines) = Line::open(&controller.address, writers)?;
    let writers: anyhow::Result<Vec<Writer>> =
        (1..).zip(lines).map(|(number, line)| Writer::new(line, travel, number)).collect();
    let writers = writers?;
    let (written, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let all_began = Barrier::new(writers.len() + 1);
    let write = &|mut writer: Writer| {
        // The first makes the pages, and all of the server's memory.
        let mut last = writer.flush().map(|_| ());
        all_began.wait();
        while last.is_ok() && !is_over.load(Ordering::Relaxed) {
            last = writer.flush().map(|bytes| {
                written.fetch_add(bytes, Ordering::Relaxed);
            });
        }
        last
    };
    let (between, bytes) = thread::scope(|scope| {
        let threads: Vec<_> = writers.into_iter().map(|writer| scope.spawn(move || write(writer))).collect();
        all_began.wait();
        thread::sleep(time / 4);
        let look = || Ok::<_, anyhow::Error>((controller.spent()?, written.load(Ordering::Relaxed)));
        let before = look();
        thread::sleep(time);
        let after = look();
        is_over.store(true, Ordering::Relaxed);
        for thread in threads {
            thread.join().map_err(|_| anyhow!("a writer saw what a controller may not send"))??;
        }
        let (before, after) = (before?, after?);
        Ok::<_, anyhow::Error>((after.0.since(before.0), after.1 - before.1))
    })?;
    drop(admin);
    Ok(Measured { between, bytes, counted: controller.stop()? })
}

/// A share of the processor is what the controller got of what it could have had.
fn push(data: &mut Data, path: &str, writers: u16, measured: &Measured) {
    let Measured { between, bytes, counted } = measured;
    let writers = writers.to_string();
    let keys = |metric| [path, writers.as_str(), metric];
    let had = between.wall.saturating_sub(between.waited).as_secs_f64();
    let (run, bytes) = (between.run.as_secs_f64(), *bytes as f64);
    let mib = bytes / f64::from(1 << 20);
    let note = format!(
        "{:.2} s on the processor in {:.2} s, in {:.2} s of which others had it",
        run,
        between.wall.as_secs_f64(),
        between.waited.as_secs_f64()
    );
    data.push(&keys("busy"), 100.0 * run / had, "%", &note);
    data.push(
        &keys("rate"),
        bytes / 1e6 / had,
        "MB/s",
        "pages, durable; of the time the processor was there",
    );
    let cost = run * 1e6 / mib;
    data.push(&keys("cost"), cost, "us", "of the controller's processor for each MiB");
    data.push(&keys("cost_kernel"), cost * between.kernel, "us", "of it in the kernel: sockets");
    data.push(&keys("cost_program"), cost * (1.0 - between.kernel), "us", "of it in the program");
    let count = |name: &str| counted["stats"][name].as_f64().unwrap_or(f64::NAN);
    let of_target = |name: &str| counted["targets"][0]["counters"][name].as_f64().unwrap_or(f64::NAN);
    let pages = of_target("page_bytes_written");
    let copies = [
        ("kernel", count("received_bytes") / pages),
        ("connection", count("received_copied_bytes") / pages),
        ("kept", of_target("content_copied_bytes") / pages),
        ("frames", 1.0),
        ("media", of_target("programmed_sectors") * 4096.0 / pages),
    ];
    for (place, copies) in copies {
        data.push(&[path, &writers, &format!("copies_{place}")], copies, "x", "");
    }
    data.push(&keys("copies"), copies.iter().map(|(_, copies)| copies).sum(), "x", "for each byte of a page");
    let calls = count("receives") + count("sends") + count("waits");
    let note = format!("{} receives, {} sends, {} waits", count("receives"), count("sends"), count("waits"));
    data.push(
        &keys("calls"),
        calls / (pages / f64::from(1 << 20)),
        "x",
        &format!("system calls for each MiB: {note}"),
    );
}
