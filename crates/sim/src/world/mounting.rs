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

impl<C: Contract> World<C> {
    /// Mounts a target; `cut` may take the power away before it is done. One that is refused while the drive failed commands as
    /// such is tried again.
    ///
    /// # Errors
    /// If the target is not what it was.
    pub fn mount(&mut self, how: &dyn Mount<C::Target>, cut: Option<MountCut>) -> Result<Mounted, Broken> {
        for _ in 1..MOUNTS_MAX {
            let before = self.failed;
            let mounted = self.mount_once(how, cut)?;
            if !matches!(mounted, Mounted::Refused(_)) || self.failed == before {
                return Ok(mounted);
            }
            self.tally.add("mount.refused_by_the_drive", 1);
        }
        self.mount_once(how, cut)
    }

    fn mount_once(&mut self, how: &dyn Mount<C::Target>, cut: Option<MountCut>) -> Result<Mounted, Broken> {
        assert!(self.target.is_none(), "a target is mounted already");
        self.host.buffers_mut().reclaim();
        self.device_mut().inner_mut().begin_instance();
        // A mount reads to learn whose each sector is: what comes from another place looks as good.
        self.device_mut().inner_mut().let_reads_be_misdirected(false);
        let mut device = Fused::new(self.host.caller(), cut, &mut self.journal);
        let made = how.mount(&mut device);
        let (sent, is_cut) = (device.sent, device.is_cut);
        self.tally.add("mount.commands", sent);
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
        let good = good_chunks(self.device().inner(), &self.units);
        self.chunks_at_first.get_or_insert(good);
        let before = self.chunks_at_last.replace(good);
        self.contract.mounted(
            &target,
            self.host.buffers_mut(),
            before.is_some_and(|before| good < before),
        )?;
        self.target = Some(self.host.add(target));
        Ok(Mounted::Up)
    }
}
