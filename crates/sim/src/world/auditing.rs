//! Audits: every target is read as a whole and held against its contract, and the state of all is checked.
//!
//! Deliberately not here: what is right (`contract`), and how a contract asks on its own (`asking`).

use super::{Stop, World};
use crate::contract::{Broken, Contract};
use ocssd_lightnvm::Target;

impl<C: Contract> World<C> {
    /// Reads everything and holds it against the contract; then the whole state of target and drive is checked.
    ///
    /// # Errors
    /// If anything is not what was promised.
    pub fn audit(&mut self) -> Result<(), Broken> {
        assert!(self.cut_at.is_none(), "the power does not go during an audit");
        self.drain()?;
        (0..self.instances.len()).try_for_each(|index| self.audit_of(index))?;
        self.tally.add("checks.audits", 1);
        self.check()
    }

    fn audit_of(&mut self, index: usize) -> Result<(), Broken> {
        self.instances[index].contract.begin_audit();
        loop {
            let now = self.now();
            while let Some(request) = self.instances[index].contract.audit(now) {
                self.submit(index, request);
            }
            let before = self.outstanding();
            if before == 0 {
                break;
            }
            if self.go(|outstanding| outstanding < before)? == Stop::Idle {
                let found = format!("{before} never will be");
                return Err(Broken::new("audit answered", "every read is answered", found));
            }
        }
        self.instances[index].contract.end_audit()?;
        self.observe(index)
    }

    /// Asserts every invariant of targets and drive, and looks whether the first target spreads wear.
    ///
    /// # Errors
    /// If it is not.
    pub fn check(&mut self) -> Result<(), Broken> {
        self.device().inner().check();
        self.tally.add("checks.whole_state", 1);
        let ids = self.instances.iter().filter_map(|instance| instance.target);
        ids.for_each(|id| self.host.target(id).check());
        let first = &self.instances[0];
        let promise = first.target.and_then(|id| first.contract.wear_promise(self.host.target(id)));
        if let Some(wear) = &mut self.wear
            && let Some(promise) = promise
        {
            let lags = wear.check(self.host.device().inner(), &promise)?;
            self.tally.add("checks.wear", 1);
            self.tally.add("checks.wear_while_something_lags", u64::from(lags));
        }
        Ok(())
    }
}
