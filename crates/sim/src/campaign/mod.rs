//! Many seeds on many threads, with one result that does not depend on how many threads there were.
//!
//! Seeds are handed out in order and what came of them is taken in order, so a campaign is always about the seeds from
//! its first to its last without a gap. `search` runs the threads, `seed` one seed. Deliberately not here: how a failure
//! is made short (`shrink`), and how a campaign is shown.

mod cpu;
mod outcome;
mod search;
mod seed;

pub use outcome::{Found, Outcome, Progress, Stopped};
pub use search::{Campaign, cuts, search, search_until};
pub use seed::{ATTEMPTS, Simulated, Unfit, fitting, run_asked, run_seed};
