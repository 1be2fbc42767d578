//! The experiments there are.

use super::compare::Why;
use super::data::Data;
use super::lab::Lab;
use super::{cidr20, fast17, ksc17, kv, profile, wa_theory, zns};
use anyhow::bail;
use ocssd_report::{PaperTable, Report};

/// One figure or table.
pub struct Experiment {
    /// Its name.
    pub id: &'static str,
    /// Other names for the same.
    pub aliases: &'static [&'static str],
    /// What it shows.
    pub title: &'static str,
    /// Where it was published.
    pub source: &'static str,
    /// What is claimed.
    pub claim: &'static str,
    /// How it is run here, every choice included.
    pub method: &'static str,
    /// The paper's numbers.
    pub paper: &'static str,
    /// Runs it.
    pub run: fn(&mut Lab) -> anyhow::Result<Data>,
    /// Adds verdicts, pictures and tables of our rows beside the paper's.
    pub report: fn(Report, &Numbers) -> anyhow::Result<Report>,
    /// Why a number of ours is off.
    pub why: Why,
}

/// Both sides of a comparison.
pub struct Numbers {
    /// The paper's.
    pub paper: PaperTable,
    /// Ours.
    pub ours: PaperTable,
}

/// All of them.
pub static ALL: &[Experiment] = &[
    wa_theory::EXPERIMENT,
    fast17::t1::EXPERIMENT,
    fast17::f4::EXPERIMENT,
    fast17::f5::EXPERIMENT,
    fast17::f8::EXPERIMENT,
    ksc17::reads::EXPERIMENT,
    ksc17::writes::EXPERIMENT,
    ksc17::rootcause::EXPERIMENT,
    ksc17::fix::EXPERIMENT,
    ksc17::sockets::EXPERIMENT,
    cidr20::f3::EXPERIMENT,
    cidr20::placement::EXPERIMENT,
    cidr20::gc::EXPERIMENT,
    cidr20::atomicity::EXPERIMENT,
    profile::T1,
    profile::T2,
    profile::T3,
    zns::finish::EXPERIMENT,
    zns::width::EXPERIMENT,
    zns::vs_pblk::EXPERIMENT,
    kv::kinds::EXPERIMENT,
    kv::mooncake::EXPERIMENT,
    cidr20::f5::EXPERIMENT,
    cidr20::f6::EXPERIMENT,
    cidr20::units::EXPERIMENT,
    cidr20::vs::EXPERIMENT,
];

/// The experiment of this name.
///
/// # Errors
/// A sentence that lists the names there are.
pub fn find(id: &str) -> anyhow::Result<&'static Experiment> {
    let found = ALL.iter().find(|experiment| experiment.id == id || experiment.aliases.contains(&id));
    let Some(found) = found else {
        let names: Vec<&str> = ALL.iter().map(|experiment| experiment.id).collect();
        bail!("there is no experiment \"{id}\"; the experiments are: {}", names.join(", "));
    };
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_experiment_has_a_name_of_its_own_and_numbers_to_compare_with() {
        for experiment in ALL {
            let names = experiment.aliases.iter().chain([&experiment.id]);
            for name in names {
                assert!(find(name).is_ok_and(|found| found.id == experiment.id), "{name}");
            }
            assert!(PaperTable::load(experiment.paper).is_ok(), "{}", experiment.id);
        }
        let error = find("fast17-f9").map(|found| found.id).expect_err("there is none").to_string();
        assert!(error.contains("fast17-f8"), "{error}");
    }
}
