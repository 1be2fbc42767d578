//! Leases of parallel units to the targets of one run of the program, which end with it.
//!
//! Deliberately not here: leases that an image keeps (`target`).

use anyhow::{Context, bail};
use ocssd_lightnvm::media_manager::{MediaManager, UnitSelection};
use ocssd_targets::named_target::NamedTarget;

/// Leases the units of a target for as long as the program runs; a lease of the image stands already. `kept` are the image's.
///
/// # Errors
/// If the units are another's; `advice` says what to change.
pub fn lease(
    target: &NamedTarget,
    manager: &mut MediaManager,
    name: &str,
    kept: &[String],
    advice: [&str; 2],
) -> anyhow::Result<()> {
    if target.lease.is_some() || target.units.is_empty() {
        return Ok(());
    }
    let taken =
        manager.list().iter().find(|lease| lease.units.iter().any(|unit| target.units.contains(unit)));
    if let Some(taken) = taken.filter(|taken| kept.contains(&taken.name)) {
        let units = UnitSelection::of(&taken.units);
        let [instead, _] = advice;
        let instead = instead.replace("NAME", &taken.name);
        bail!("the image leases {units} to its target \"{}\"; {instead}", taken.name);
    }
    manager.create(name, &target.kind, &target.units).with_context(|| advice[1].to_owned())?;
    Ok(())
}
