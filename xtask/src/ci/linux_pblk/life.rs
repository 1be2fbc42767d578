//! The life of a drive with Linux: boots, power cuts between them, and what must be true at each end.

use super::hang::{Hang, Risks, Watch};
use super::kernel::Kernel;
use super::ours::{self, Instance};
use super::qemu::Qemu;
use crate::ci::console::{Console, Heard, Word, word};
use crate::ci::served::Served;
use crate::process;
use anyhow::{Context, Result, bail, ensure};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Longest time of one boot. Chosen: an idle machine takes one or two minutes, a loaded one ten times that.
const BOOT_MAX: Duration = Duration::from_secs(2400);

/// Lives of a drive at most: one that met a hang of Linux's own is begun again. Chosen: two of six cuts made by hand led to
/// one, most lives of this test to none.
const LIVES_MAX: u32 = 3;

/// Checks that a boot of a new drive, and of one that lost its power, must at least have made.
const CHECKS_MIN: [usize; 2] = [20, 10];

/// Settings of all drives: 8 units, 64 lines of 2 MiB, media that takes little time, and some chunks bad from the factory.
const COMMON: &[&str] = &[
    "payload=bytes",
    "groups=4",
    "pus_per_group=2",
    "chunks_per_pu=64",
    "sectors_per_chunk=64",
    "media.read=2us",
    "media.program=5us",
    "media.erase=9us",
    "link.command=1us",
    "faults.factory_bad=1%",
];

/// Units of all drives.
const UNITS: u32 = 8;

/// How a boot ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The machine loses its power; the drive keeps its own.
    MachineCut,
    /// Both lose it.
    DriveCut,
    /// The target is removed, the machine is switched off.
    Stopped,
}

/// A drive and what happens to it.
pub struct Drive {
    /// Name of its files, and what chooses it.
    pub name: &'static str,
    /// The revision it speaks.
    pub(super) revision: &'static str,
    /// What it has beyond [`COMMON`].
    pub(super) settings: &'static [&'static str],
    /// Whether pblk must have met failing writes and resets.
    pub(super) has_faults: bool,
    /// Its boots, by their ends.
    pub(super) boots: &'static [End],
}

/// The drives of the test.
pub const DRIVES: &[Drive] = &[
    Drive {
        name: "ocssd-2.0",
        // With a window of sectors that cannot be read yet Linux's pblk does not recover all; see docs/linux-pblk.md.
        revision: "2.0",
        settings: &["mw_cunits=0"],
        has_faults: false,
        boots: &[End::MachineCut, End::DriveCut, End::Stopped],
    },
    Drive {
        name: "ocssd-1.2",
        // What a 1.2 host relies on.
        revision: "1.2",
        settings: &["mw_cunits=0", "capabilities.multiple_resets=true", "capabilities.early_reset=true"],
        has_faults: false,
        boots: &[End::MachineCut, End::DriveCut, End::Stopped],
    },
    Drive {
        name: "bad-media",
        // Media faults that Linux's pblk gets over; docs/linux-pblk.md says which it does not, and why. Each place is written
        // while the device is filled, or reset while it is overwritten, so that none is met after the first removal.
        revision: "2.0",
        settings: &[
            "mw_cunits=0",
            r#"fault={kind="early_close", at="g1/p1/c5/s24"}"#,
            r#"fault={kind="early_close", at="g0/p0/c17/s40"}"#,
            r#"fault={kind="early_close", at="g2/p0/c30/s8"}"#,
            r#"fault={kind="write_next_unit", at="g1/p0/c11/s56"}"#,
            r#"fault={kind="write_next_unit", at="g2/p0/c24/s56"}"#,
            r#"fault={kind="reset_failure", at="g3/p0/c3"}"#,
            r#"fault={kind="reset_failure", at="g0/p1/c14"}"#,
            r#"fault={kind="reset_failure", at="g2/p1/c22"}"#,
        ],
        has_faults: true,
        // A drive that is started again meets its faults again: its power is not cut.
        boots: &[End::MachineCut, End::Stopped],
    },
];

/// All that a life needs.
pub struct Bench {
    /// The `ocssd` command.
    pub program: PathBuf,
    /// The machine.
    pub qemu: Qemu,
    /// Its kernel.
    pub kernel: Kernel,
    /// Its programs.
    pub initrd: PathBuf,
    /// Where images, sockets and transcripts lie.
    pub folder: PathBuf,
}

/// What came of a boot.
struct Boot<'a> {
    passed: usize,
    sum: Option<String>,
    /// The instance as it was recovered after a power cut.
    recovered: Option<Instance>,
    /// The instance as it was removed.
    removed: Option<Instance>,
    /// Gets every line as it comes.
    transcript: &'a mut File,
}

impl Bench {
    /// Makes the drive and leads it through its boots; writes the transcript, also of what failed. If Linux hangs of its
    /// own, once more with another seed.
    ///
    /// Errors: a check failed, a machine or the server did not do what they should, or Linux hung in every life.
    pub fn lead(&self, drive: &Drive) -> Result<()> {
        let file = self.folder.join(format!("{}.txt", drive.name));
        let start = Instant::now();
        let unwritten = || format!("{} could not be written", file.display());
        let mut transcript = File::create(&file).with_context(unwritten)?;
        let mut life = 1;
        let led = loop {
            writeln!(transcript, "# {}, life {life}: {}", drive.name, drive.settings.join(" "))
                .with_context(unwritten)?;
            let led = self.boots(drive, life, &mut transcript);
            let Some(hang) = hang_to_get_over(&led, life) else { break led };
            println!("{}, life {life}: {hang}. The drive begins another life, with another seed", drive.name);
            writeln!(transcript, "\n# {hang}\n").with_context(unwritten)?;
            life += 1;
        };
        let passed =
            led.with_context(|| format!("drive {}; its transcript is {}", drive.name, file.display()))?;
        println!(
            "{}: {passed} checks passed in {} boots, {:.0} s",
            drive.name,
            drive.boots.len(),
            start.elapsed().as_secs_f64()
        );
        Ok(())
    }

    fn boots(&self, drive: &Drive, life: u32, transcript: &mut File) -> Result<usize> {
        let image = self.folder.join(format!("{}.img", drive.name));
        self.format(drive, life, &image)?;
        let socket = self.folder.join("drive.sock");
        let (listen, drive_file) = (format!("unix:{}", socket.display()), image.display().to_string());
        let serve = ["--vfio-user", &listen, "--drive", &drive_file];
        let (mut server, _) = Served::start(&self.program, &serve)?;
        let (mut passed, mut sum, mut removed) = (0, None, None);
        // What our reader made of the drive after the power cut before.
        let mut ours: Option<Instance> = None;
        for (index, end) in drive.boots.iter().copied().enumerate() {
            writeln!(transcript, "\n## boot {}, ends: {end:?}", index + 1)?;
            let (sum_before, transcript) = (sum.take(), &mut *transcript);
            let mut boot = Boot { passed: 0, sum: sum_before, recovered: None, removed: None, transcript };
            let done = self.boot(&mut boot, &socket, drive, index == 0, end);
            done.with_context(|| format!("boot {}", index + 1))?;
            let least = CHECKS_MIN[usize::from(index > 0)];
            ensure!(boot.passed >= least, "only {} of at least {least} checks were made", boot.passed);
            passed += boot.passed;
            (sum, removed) = (boot.sum, boot.removed);
            if let Some(ours) = ours.take() {
                let linux = boot.recovered.context("the guest did not say what it recovered")?;
                ours::compare("after the power cut", &ours, &linux)?;
                passed += 1;
            }
            if end == End::DriveCut {
                server.kill()?;
                // Of a copy: Linux shall find the drive as the cut left it.
                let copy = self.folder.join("ours.img");
                fs::copy(&image, &copy).with_context(|| format!("{} could not be made", copy.display()))?;
                ours = Some(ours::read(&self.program, &copy, &self.folder, drive.revision)?);
                fs::remove_file(&copy).with_context(|| format!("{} could not be removed", copy.display()))?;
                (server, _) = Served::start(&self.program, &serve)?;
            }
        }
        let counted = server.stop()?;
        writeln!(transcript, "\n## the server\n{counted}")?;
        let linux = removed.context("the guest did not say what it removed")?;
        ours::compare(
            "at the end",
            &ours::read(&self.program, &image, &self.folder, drive.revision)?,
            &linux,
        )?;
        passed += 1;
        fs::remove_file(&image).with_context(|| format!("{} could not be removed", image.display()))?;
        Ok(passed)
    }

    /// A fresh image. The first life has the seed of the preset.
    pub(super) fn format(&self, drive: &Drive, life: u32, image: &Path) -> Result<()> {
        if image.exists() {
            fs::remove_file(image).with_context(|| format!("{} could not be removed", image.display()))?;
        }
        let mut command = Command::new(&self.program);
        command.arg("format").arg(image).args(["--drive", "tiny"]);
        command.args(["--set", &format!("revision={}", drive.revision)]);
        for setting in COMMON.iter().chain(drive.settings) {
            command.args(["--set", setting]);
        }
        if life > 1 {
            command.args(["--set", &format!("seed={life}")]);
        }
        process::output(&mut command).map(drop)
    }

    /// One boot, followed until its end.
    fn boot(
        &self,
        boot: &mut Boot<'_>,
        socket: &Path,
        drive: &Drive,
        is_fresh: bool,
        end: End,
    ) -> Result<()> {
        let words = format!(
            "ocssd_units={UNITS} ocssd_fresh={} ocssd_again={} ocssd_faults={} ocssd_sum={}",
            u8::from(is_fresh),
            u8::from(end != End::Stopped),
            u8::from(drive.has_faults),
            boot.sum.take().unwrap_or_default()
        );
        let mut machine = self.qemu.machine(&self.kernel.image, &self.initrd, socket, &words);
        let mut console = Console::start(&mut machine, BOOT_MAX)?;
        let risks = Risks { is_after_cut: !is_fresh, has_faults: drive.has_faults };
        let said = follow(&mut console, boot, Watch::new(risks, Watch::PATIENCE))?;
        let told = console.told();
        // The power is cut here: the machine is killed as it is.
        drop(console);
        match said {
            Some(Word::Cut) if end != End::Stopped => {
                ensure!(boot.sum.is_some(), "the guest told no sum");
                Ok(())
            }
            Some(Word::End) if end == End::Stopped => Ok(()),
            _ => bail!("the guest stopped before its end; it said:\n{told}"),
        }
    }
}

/// The hang that a life ended by, if another may begin.
fn hang_to_get_over(led: &Result<usize>, life: u32) -> Option<Hang> {
    let hang = led.as_ref().err()?.downcast_ref::<Hang>()?;
    (life < LIVES_MAX).then_some(*hang)
}

/// Reads until the guest says how it ends, stops without that, or hangs.
fn follow(console: &mut Console, boot: &mut Boot<'_>, mut watch: Watch) -> Result<Option<Word<'static>>> {
    let mut ended = None;
    loop {
        let heard = console.next_line_by(watch.deadline())?;
        if let Some(hang) = watch.hang(Instant::now()) {
            return Err(hang.into());
        }
        let line = match heard {
            Heard::Line(line) => line,
            Heard::End => return Ok(ended),
            Heard::Nothing => continue,
        };
        writeln!(boot.transcript, "{line}")?;
        let word = word(line);
        watch.hear(line, &word, Instant::now());
        match word {
            Word::Passed => boot.passed += 1,
            Word::Failed(name) => {
                let name = name.to_owned();
                // Why follows; then it switches itself off.
                while let Some(line) = console.next_line()? {
                    writeln!(boot.transcript, "{line}")?;
                }
                bail!("failed in the guest: {name}; it said:\n{}", console.told());
            }
            Word::Cut => return Ok(Some(Word::Cut)),
            Word::End => ended = Some(Word::End),
            Word::Value("sum", sum) => boot.sum = Some(sum.to_owned()),
            Word::Value("recovered", text) => boot.recovered = Some(Instance::said(text)?),
            Word::Value("removed", text) => boot.removed = Some(Instance::said(text)?),
            Word::Value(..)
            | Word::Restart
            | Word::Kill
            | Word::KillZones
            | Word::ServeZones
            | Word::Nothing => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_life_ends_stopped_and_only_once() {
        for drive in DRIVES {
            let stops = drive.boots.iter().filter(|end| **end == End::Stopped).count();
            assert_eq!((stops, drive.boots.last()), (1, Some(&End::Stopped)), "{}", drive.name);
        }
    }

    #[test]
    fn only_a_hang_of_linuxs_own_begins_another_life() {
        let hung = || Err(anyhow::Error::from(Hang::NoFreeLine).context("boot 2"));
        for life in 1..LIVES_MAX {
            assert_eq!(hang_to_get_over(&hung(), life), Some(Hang::NoFreeLine), "life {life}");
        }
        assert_eq!(hang_to_get_over(&hung(), LIVES_MAX), None);
        assert_eq!(hang_to_get_over(&Err(anyhow::anyhow!("no free lines").context("boot 2")), 1), None);
        assert_eq!(hang_to_get_over(&Ok(40), 1), None);
    }

    #[test]
    fn a_guest_that_says_so_and_then_nothing_hangs() {
        let name = std::env::temp_dir().join(format!("ocssd-hang-test-{}", std::process::id()));
        let mut transcript = File::create(&name).unwrap();
        let mut followed = |says: &str, risks, patience| {
            let mut command = Command::new("sh");
            let mut console = Console::start(
                command.args(["-c", &format!("{says}; exec tail -f /dev/null")]),
                Duration::from_secs(60),
            );
            let (sum, recovered, removed) = (None, None, None);
            let mut boot = Boot { passed: 0, sum, recovered, removed, transcript: &mut transcript };
            let ended = follow(console.as_mut().unwrap(), &mut boot, Watch::new(risks, patience));
            (boot.passed, ended.map_err(|error| error.downcast_ref::<Hang>().copied()))
        };
        let none = Risks::default();
        let (at_once, cut) = (Duration::ZERO, || Ok(Some(Word::Cut)));
        for (words, risks, hang) in [
            ("failed to GC line 3", Risks { is_after_cut: true, ..none }, Hang::LineWithoutEmeta),
            ("data I/O submission failed: 3", Risks { has_faults: true, ..none }, Hang::WriteBeyondChunk),
        ] {
            let says = format!("echo @ok a; echo {words}");
            assert_eq!(followed(&says, risks, at_once), (1, Err(Some(hang))));
            let goes_on = format!("{says}; echo @ok b; echo @cut");
            assert_eq!(followed(&goes_on, none, at_once), (2, cut()), "{words}: nothing led there");
            assert_eq!(followed(&goes_on, risks, Watch::PATIENCE), (2, cut()), "{words}: it went on");
            let ends = "echo @ok a; echo failed; exit";
            assert_eq!(followed(ends, risks, at_once), (1, Ok(None)));
        }
        fs::remove_file(&name).unwrap();
    }

    #[test]
    fn both_revisions_and_both_cuts_are_tried() {
        for revision in ["2.0", "1.2"] {
            assert!(DRIVES.iter().any(|drive| drive.revision == revision), "{revision}");
        }
        for cut in [End::MachineCut, End::DriveCut] {
            assert!(DRIVES.iter().any(|drive| drive.boots.contains(&cut)), "{cut:?}");
        }
    }
}
