//! Mounts: of fresh media and of what a target left, with the power going meanwhile, or the drive failing commands.
//!
//! Deliberately not here: the target's life after that.

use super::{Mount, Mounted, World};
use crate::contract::{Broken, Contract};
use crate::journal::Event;
use crate::power::{Fused, MountCut};
use crate::seen::good_chunks;

/// Mounts tried while the drive fails commands as such (chosen: where half of all flushes fail, one of two mounts works).
const MOUNTS_MAX: u32 = 100;

/// The count of commands that mounts sent.
const COMMANDS: &str = "mount.commands";

impl<C: Contract> World<C> {
    /// Mounts the targets one after the other, each as its place in `how` says; `cut` may take the power away before the first is
    /// done, or the one in which so many commands of all were sent. One that is refused while the drive failed commands as such
    /// is tried again.
    ///
    /// # Errors
    /// If a target is not what it was.
    ///
    /// # Panics
    /// If `how` is not as long as there are targets.
    pub fn mount(&mut self, how: &[&dyn Mount<C::Target>], cut: Option<MountCut>) -> Result<Mounted, Broken> {
        assert_eq!(how.len(), self.instances.len(), "as many are mounted as there are");
        let mut cut = cut;
        for (index, how) in how.iter().enumerate() {
            let before = self.tally.of(COMMANDS);
            let mounted = self.mount_one(index, *how, cut)?;
            if mounted != Mounted::Up {
                return Ok(mounted);
            }
            let sent = self.tally.of(COMMANDS) - before;
            cut = cut.map(|cut| MountCut { commands: cut.commands.saturating_sub(sent), ..cut });
        }
        Ok(Mounted::Up)
    }

    fn mount_one(
        &mut self,
        index: usize,
        how: &dyn Mount<C::Target>,
        cut: Option<MountCut>,
    ) -> Result<Mounted, Broken> {
        for _ in 1..MOUNTS_MAX {
            if index == 0 {
                // Of what the last targets had, and mounts that were refused.
                self.host.buffers_mut().reclaim();
            }
            let before = self.failed;
            let mounted = self.mount_once(index, how, cut)?;
            if !matches!(mounted, Mounted::Refused(_)) || self.failed == before {
                return Ok(mounted);
            }
            self.tally.add("mount.refused_by_the_drive", 1);
        }
        self.mount_once(index, how, cut)
    }

    fn mount_once(
        &mut self,
        index: usize,
        how: &dyn Mount<C::Target>,
        cut: Option<MountCut>,
    ) -> Result<Mounted, Broken> {
        assert!(self.instances[index].target.is_none(), "a target is mounted already");
        if index == 0 {
            // What the drive did not carry out for the first is still so when the second is mounted.
            self.device_mut().inner_mut().begin_instance();
            let stale = self.device().inner().stale_reports();
            self.tally.add("faults.reports_stale", u64::from(stale));
            let hidden = self.device().inner().hidden_reports();
            if hidden > 0 {
                // Few worlds have any; those of others are told as they were.
                self.tally.add("faults.reports_hidden", u64::from(hidden));
            }
        }
        // A mount reads to learn whose each sector is: what comes from another place looks as good.
        self.device_mut().inner_mut().let_reads_be_misdirected(false);
        let mut device = Fused::new(self.host.caller(), cut, &mut self.journal);
        let made = how.mount(&mut device);
        let (sent, is_cut) = (device.sent, device.is_cut);
        self.tally.add(COMMANDS, sent);
        self.device_mut().inner_mut().let_reads_be_misdirected(true);
        self.tell_harm();
        self.tell_failures();
        if is_cut {
            return Ok(Mounted::PowerCut);
        }
        let target = match made {
            Ok(target) => target,
            Err(sentence) => return Ok(Mounted::Refused(sentence)),
        };
        self.journal.note(self.now(), || Event::Mounted);
        let Self { host, instances, .. } = self;
        let instance = &mut instances[index];
        let good = good_chunks(host.device().inner(), &instance.units);
        instance.chunks_at_first.get_or_insert(good);
        let before = instance.chunks_at_last.replace(good);
        let chunks = good.cmp(&before.unwrap_or(good));
        instance.contract.mounted(&target, host.buffers_mut(), chunks)?;
        let id = host.add(target);
        assert_eq!(id.index(), index, "targets are mounted in order");
        instance.target = Some(id);
        Ok(Mounted::Up)
    }
}
