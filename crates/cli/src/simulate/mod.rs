//! `ocssd simulate`: drives, requests, faults and power cuts drawn from seeds, and whether a target keeps its promises.
//!
//! [`ask`] is what is asked for; `many` runs seeds until one fails or the time is over, `one` runs one seed, `every_cut` one
//! workload with every power cut. `failure`
//! makes a failing run short and tells it, `summary` and `marks` say what was exercised. Deliberately not here: the
//! simulator (`ocssd_sim`).

mod ask;
mod every_cut;
mod failure;
mod many;
mod marks;
mod one;
mod plan;
mod progress;
mod steps;
mod summary;

use crate::Outcome;
use crate::args::SimulateArgs;
pub use ask::{Seeds, parse_time};
pub use steps::Steps;

/// Carries out the verb.
pub fn simulate(args: &SimulateArgs, as_json: bool) -> anyhow::Result<Outcome> {
    let (kind, fixed) = ask::target(&args.target)?;
    if args.exhaustive {
        return every_cut::every_cut(args, kind, &fixed, as_json);
    }
    match args.seed {
        Some(seed) => one::one(args, kind, &fixed, seed, as_json),
        None => many::many(args, kind, &fixed, as_json),
    }
}
