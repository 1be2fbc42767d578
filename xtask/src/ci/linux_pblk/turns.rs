//! A drive that Linux's pblk and our `linux-pblk` write in turn: what one leaves the other mounts, reads equal and overwrites.
//!
//! Our turns go through `ocssd serve --nbd`: an ext4 with a file at the start of the device, then fio, which overwrites the
//! rest until garbage is collected, and discards. They end by a shutdown, or by a kill of the server after a flush, which for
//! the image is a power cut. Linux's turns are boots (`turn.sh`). After each turn the map, by its checksum, and all blocks, by
//! their MD5, must be the same for both.

use super::life::{Bench, Drive};
use super::ours::{self, Instance};
use crate::ci::console::{Console, Word, word};
use crate::ci::served::Served;
use crate::process;
use anyhow::{Context, Result, bail, ensure};
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// What a boot does.
pub const TURN: &str = include_str!("turn.sh");

/// Longest time of a boot: as of the other lives.
const BOOT_MAX: Duration = Duration::from_secs(2400);

/// Where fio's part of the device begins, behind the ext4, in MiB.
const FIO_AT_MIB: u32 = 24;
/// What fio writes in a turn that must be verified, in MiB.
const FIO_SIZE_MIB: u32 = 24;

/// Who writes in a turn, and how it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Linux makes an instance.
    LinuxFirst,
    /// Linux mounts what we left, checks it, and removes it.
    Linux,
    /// The same, but its power is cut, and the drive's.
    LinuxCut,
    /// We write and shut down.
    Ours,
    /// We make an instance, write and shut down.
    OursFirst,
    /// We write, flush, and lose the power.
    OursCut,
}

/// The drives of the test, and their turns.
pub const DRIVES: &[(Drive, &[Turn])] = &[
    (
        drive("turns-2.0", "2.0", &["mw_cunits=0"]),
        &[Turn::LinuxFirst, Turn::Ours, Turn::LinuxCut, Turn::OursCut, Turn::Linux],
    ),
    (
        drive(
            "turns-1.2",
            "1.2",
            &["mw_cunits=0", "capabilities.multiple_resets=true", "capabilities.early_reset=true"],
        ),
        &[Turn::OursFirst, Turn::Linux, Turn::OursCut, Turn::Linux],
    ),
];

const fn drive(name: &'static str, revision: &'static str, settings: &'static [&'static str]) -> Drive {
    Drive { name, revision, settings, has_faults: false, boots: &[] }
}

/// What there is between turns.
struct Play<'a> {
    bench: &'a Bench,
    drive: &'a Drive,
    image: PathBuf,
    transcript: File,
    /// The sum of our file in the ext4.
    sum: String,
    /// What the last turn left, as its writer sees it.
    left: Option<Instance>,
    checks: usize,
}

/// Leads a drive through its turns; how many checks passed.
///
/// Errors: a check failed, or a machine or a server did not do what they should.
pub fn lead(bench: &Bench, drive: &Drive, turns: &[Turn]) -> Result<()> {
    let started = Instant::now();
    let file = bench.folder.join(format!("{}.txt", drive.name));
    let transcript =
        File::create(&file).with_context(|| format!("{} could not be written", file.display()))?;
    let image = bench.folder.join(format!("{}.img", drive.name));
    bench.format(drive, 1, &image)?;
    let mut play = Play { bench, drive, image, transcript, sum: String::new(), left: None, checks: 0 };
    for (index, turn) in turns.iter().copied().enumerate() {
        writeln!(play.transcript, "\n## turn {}: {turn:?}", index + 1)?;
        let done = play.take(turn);
        done.with_context(|| {
            format!(
                "drive {}, turn {} ({turn:?}); its transcript is {}",
                drive.name,
                index + 1,
                file.display()
            )
        })?;
    }
    fs::remove_file(&play.image)?;
    println!(
        "{}: {} checks passed in {} turns, {:.0} s",
        drive.name,
        play.checks,
        turns.len(),
        started.elapsed().as_secs_f64()
    );
    Ok(())
}

impl Play<'_> {
    fn take(&mut self, turn: Turn) -> Result<()> {
        match turn {
            Turn::LinuxFirst | Turn::Linux | Turn::LinuxCut => self.linux(turn),
            Turn::Ours | Turn::OursFirst | Turn::OursCut => self.ours(turn),
        }
    }

    fn tell(&mut self, line: &str) -> Result<()> {
        writeln!(self.transcript, "{line}")?;
        Ok(())
    }

    /// What the writer before left must be what the next one finds.
    fn compare(&mut self, what: &str, found: &Instance) -> Result<()> {
        if let Some(left) = self.left.take() {
            ours::compare(what, &left, found)?;
            self.tell(&format!("# {what}: map {}, blocks {}, as left", found.map, found.device))?;
            self.checks += 2;
        }
        Ok(())
    }

    /// What our reader makes of a copy of the drive.
    fn read_copy(&self) -> Result<Instance> {
        let copy = self.bench.folder.join(format!("{}-copy.img", self.drive.name));
        fs::copy(&self.image, &copy).with_context(|| format!("{} could not be made", copy.display()))?;
        let found = ours::read(&self.bench.program, &copy, &self.bench.folder, self.drive.revision)?;
        fs::remove_file(&copy)?;
        Ok(found)
    }

    /// A boot of Linux with the drive.
    fn linux(&mut self, turn: Turn) -> Result<()> {
        let socket = self.bench.folder.join("turn.sock");
        let (listen, image) = (format!("unix:{}", socket.display()), self.image.display().to_string());
        let (server, _) = Served::start(&self.bench.program, &["--vfio-user", &listen, "--drive", &image])?;
        let name = match turn {
            Turn::LinuxFirst => "first",
            Turn::LinuxCut => "cut",
            _ => "ours",
        };
        let words = format!(
            "ocssd_units=8 ocssd_turn={name} ocssd_sum={} ocssd_fio_at={FIO_AT_MIB}m ocssd_fio_size={FIO_SIZE_MIB}m",
            self.sum
        );
        let Bench { qemu, kernel, initrd, .. } = self.bench;
        let mut machine = qemu.machine(&kernel.image, initrd, &socket, &words);
        let mut console = Console::start(&mut machine, BOOT_MAX)?;
        let end = self.follow(&mut console)?;
        drop(console);
        match (turn, end) {
            (Turn::LinuxCut, Some(Word::Cut)) => {
                server.kill()?;
                // What Linux would recover is not known: we recover it, and Linux mounts that.
                self.left = None;
                Ok(())
            }
            (Turn::LinuxFirst | Turn::Linux, Some(Word::End)) => {
                let counted = server.stop()?;
                self.tell(&counted)?;
                let linux = self.left.take().context("the guest did not say what it removed")?;
                let found = self.read_copy()?;
                self.left = Some(linux);
                self.compare("what Linux removed, as we read it", &found)
            }
            _ => bail!("the guest stopped before its end"),
        }
    }

    /// Reads what the guest says until it ends.
    fn follow(&mut self, console: &mut Console) -> Result<Option<Word<'static>>> {
        let mut ended = None;
        while let Some(line) = console.next_line()? {
            let line = line.to_owned();
            self.tell(&line)?;
            match word(&line) {
                Word::Passed => self.checks += 1,
                Word::Failed(name) => {
                    let name = name.to_owned();
                    while let Some(line) = console.next_line()? {
                        writeln!(self.transcript, "{line}")?;
                    }
                    bail!("failed in the guest: {name}; it said:\n{}", console.told());
                }
                Word::Cut => return Ok(Some(Word::Cut)),
                Word::End => ended = Some(Word::End),
                Word::Value("recovered", text) => {
                    let found = Instance::said(text)?;
                    self.compare("what we left, as Linux recovers it", &found)?;
                }
                Word::Value("removed", text) => self.left = Some(Instance::said(text)?),
                Word::Value(..)
                | Word::Restart
                | Word::Kill
                | Word::KillZones
                | Word::ServeZones
                | Word::Nothing => {}
            }
        }
        Ok(ended)
    }

    /// A turn of our target, behind NBD.
    fn ours(&mut self, turn: Turn) -> Result<()> {
        let socket = self.bench.folder.join("turn-ours.sock");
        let listen = format!("unix:{}", socket.display());
        let target = match turn {
            Turn::OursFirst => "linux-pblk:create=yes,seed=7",
            _ => "linux-pblk",
        };
        let image = self.image.display().to_string();
        let serve = ["--nbd", &listen, "--drive", &image, "--target", target];
        let (server, said) = Served::start(&self.bench.program, &serve)?;
        self.tell(&said)?;
        let uri = format!("nbd+unix:///?socket={}", socket.display());
        if turn != Turn::OursCut {
            // Of the whole device, for garbage collection; then it is discarded where the ext4 comes.
            self.fio(&uri, &["--name=noise", "--rw=randwrite", "--bs=16k", "--size=100%", "--randseed=3"])?;
            self.fio(&uri, &["--name=trim", "--rw=trim", "--bs=64k", &format!("--size={FIO_AT_MIB}m")])?;
            self.file_system(&uri)?;
        }
        let (at, size) = (format!("--offset={FIO_AT_MIB}m"), format!("--size={FIO_SIZE_MIB}m"));
        let job = ["--name=ours", "--rw=randwrite", "--bs=4k", "--iodepth=16", "--verify=crc32c", &at, &size];
        self.fio(&uri, &[&job[..], &["--end_fsync=1"]].concat())?;
        if turn == Turn::OursCut {
            server.kill()?;
        } else {
            let counted = server.stop()?;
            self.tell(&counted)?;
        }
        self.left = Some(self.read_copy()?);
        Ok(())
    }

    /// fio on our target.
    fn fio(&mut self, uri: &str, arguments: &[&str]) -> Result<()> {
        let mut command = Command::new("fio");
        command
            .args(["--ioengine=nbd", &format!("--uri={uri}"), "--thread", "--verify_state_save=0"])
            .args(arguments);
        let said = process::output(&mut command)?;
        let line = said.lines().find(|line| line.contains("err=")).unwrap_or("fio said nothing");
        ensure!(line.contains("err= 0"), "fio failed: {said}");
        let line = format!("# {}", line.trim());
        self.checks += 1;
        self.tell(&line)
    }

    /// An ext4 with a file, at the start of the device.
    fn file_system(&mut self, uri: &str) -> Result<()> {
        let folder = self.bench.folder.join("turn-files");
        fs::create_dir_all(&folder)?;
        let file = folder.join("ours");
        process::run(
            Command::new("dd")
                .args(["if=/dev/urandom", "bs=64k", "count=40", "status=none"])
                .arg(format!("of={}", file.display())),
        )?;
        let sum = process::output(Command::new("md5sum").arg(&file))?;
        self.sum = sum.split_whitespace().next().context("md5sum says a sum")?.to_owned();
        let image = self.bench.folder.join("turn-ext4.img");
        if image.exists() {
            fs::remove_file(&image)?;
        }
        let mut make = Command::new("/sbin/mke2fs");
        make.args(["-q", "-t", "ext4", "-b", "4096", "-d"])
            .arg(&folder)
            .arg(&image)
            .arg(format!("{FIO_AT_MIB}M"));
        process::run(&mut make)?;
        process::run(Command::new("nbdcopy").arg(&image).arg(uri))?;
        fs::remove_file(&image)?;
        fs::remove_dir_all(&folder)?;
        self.checks += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linux_has_the_last_word_after_each_end_of_ours() {
        let all = || DRIVES.iter().flat_map(|(_, turns)| turns.iter().zip(turns.iter().skip(1)));
        for end in [Turn::Ours, Turn::OursFirst, Turn::OursCut] {
            assert!(
                all().any(|(one, next)| *one == end && matches!(next, Turn::Linux | Turn::LinuxCut)),
                "{end:?}"
            );
        }
        assert!(all().any(|(one, next)| *one == Turn::LinuxCut && *next == Turn::OursCut));
        assert!(DRIVES.iter().all(|(_, turns)| turns.last() == Some(&Turn::Linux)));
    }
}
