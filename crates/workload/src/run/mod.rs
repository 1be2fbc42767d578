//! Jobs as a source of requests: what to ask next, when, and whether the right content came back.
//!
//! A [`JobPlan`] resolves jobs against the targets they run on; a [`Runner`] is the source that carries it out, after a
//! [`LayOut`] has written what the jobs will read. Every clone of a job is a worker with its own randomness.
//!
//! Deliberately not here: the loop (`engine`), reading job files (`job`), showing results (`results`).

mod aim;
mod blocks;
mod content;
mod early_resets;
mod files;
mod flow;
mod latency_search;
mod lay_out;
mod meanwhile;
mod minimum_rate;
mod offsets;
mod oracle;
mod permutation;
mod plan;
mod plan_replay;
mod plan_zones;
mod priorities;
mod rate;
mod region;
mod replay;
mod replies;
mod report;
mod round_watch;
mod rounds;
mod runner;
mod shared;
mod sizes;
mod slots;
mod slowest;
mod steady_state;
mod strides;
mod turns;
mod watch;
mod worker;
mod worker_profile;
mod zones;

pub use latency_search::{Drained, LatencySearch, SearchStep};
pub use lay_out::LayOut;
pub use meanwhile::Stage;
pub use plan::{JobPlan, PlanError, PlannedJob, TargetShape};
pub use rounds::{Rounds, RoundsState, Window};
pub use runner::{Progress, Runner, Tally};
pub use slowest::{SlowIo, Slowest};
pub use steady_state::SteadyState;
