//! What a database lies on: a kind of target with tables, made by name, whose commands are counted.
//!
//! Deliberately not here: the drive (`database`).

use super::super::wrapped::{Around, Wrapped};
use crate::kinds;
use anyhow::{anyhow, bail};
use ocssd_lightnvm::counter::{Counter, CounterValue};
use ocssd_lightnvm::interface::table::TableTarget;
use ocssd_lightnvm::{BlockingDevice, Out, PuId};
use ocssd_targets::linear::Layout;
use ocssd_targets::registry::{MakeOf, TargetOptions, TargetSpec};

/// A kind of target and its options.
#[derive(Clone)]
pub struct Ground {
    kind: &'static str,
    options: TargetOptions,
}

impl Ground {
    /// A kind as it is by default.
    pub const fn new(kind: &'static str) -> Self {
        Self { kind, options: Vec::new() }
    }

    /// `lightlsm` as the paper's figures have it: room for 160 tables, and half of the chunks for stripes that are not full.
    pub fn of_paper(placement: &str) -> Self {
        let ground = Self::new("lightlsm").with("placement", placement);
        ground.with("tables_max", "160").with("spare_percent", "50")
    }

    /// With an option.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.options.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Makes it over these units.
    ///
    /// # Errors
    /// A sentence, if there is no such kind with tables, or drive and options do not fit it.
    pub fn make(
        &self,
        device: &mut dyn BlockingDevice,
        units: &[PuId],
    ) -> anyhow::Result<Box<dyn TableTarget>> {
        let kind = kinds::find(self.kind).map_err(anyhow::Error::msg)?;
        let MakeOf::Table(make) = kind.make_of() else {
            bail!("a database needs tables, and {} speaks of {}", self.kind, kind.make_of().interface());
        };
        let spec = TargetSpec { units, layout: Layout::Striped, options: &self.options };
        let made = make(device, &spec).map_err(|sentence| anyhow!("{}: {sentence}", self.kind))?;
        Ok(Box::new(Wrapped::new(made.target, CommandCount::default())))
    }
}

/// Counts commands as they leave a target.
#[derive(Default)]
struct CommandCount(u64);

impl Around for CommandCount {
    fn around<R, T>(&mut self, out: &mut Out<R>, call: impl FnOnce(&mut Out<R>) -> T) -> T {
        let before = out.commands().len();
        let result = call(out);
        self.0 += (out.commands().len() - before) as u64;
        result
    }

    fn counters(&self) -> Vec<Counter> {
        let about = "Commands given to the drive.";
        vec![Counter { name: "commands", about, value: CounterValue::Count(self.0) }]
    }
}

#[cfg(test)]
mod tests {
    use super::super::rig;
    use super::*;
    use ocssd_base::Nanos;
    use ocssd_lightnvm::{Geometry, Payload};

    #[test]
    fn a_ground_is_a_kind_with_tables_and_its_options_are_read() {
        let make = |ground: &Ground| {
            let mut config = rig::drive(&Geometry::example(1, 2, 16, 384, 24), Nanos(1)).expect("a drive");
            config.payload = Payload::Bytes;
            let mut rig: rig::Rig<dyn TableTarget> =
                rig::host(rig::format(config).expect("a drive"), Nanos::ZERO);
            let units = rig::units(rig.device());
            ground.make(&mut rig.caller(), &units).map(|_| ()).map_err(|error| error.to_string())
        };
        assert_eq!(make(&Ground::new("lightlsm").with("placement", "vertical")), Ok(()));
        assert_eq!(make(&Ground::new("table-block").with("over", "block_ssd")), Ok(()));
        for (ground, says) in [
            (Ground::new("pblk"), "a database needs tables, and pblk speaks of blocks"),
            (Ground::new("lightlsm").with("over", "pblk"), "no option \"over\""),
            (Ground::new("lightsm"), "lightlsm"),
        ] {
            let error = make(&ground).expect_err(says);
            assert!(error.contains(says), "{error}");
        }
    }
}
