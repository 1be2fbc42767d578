//! All mutants in one build: each is judged by running tests, not by compiling the crate anew.
//!
//! A build of `targets` with its tests takes a minute and has fifteen thousand mutants; woven together ([`weave`]) they are
//! compiled once, and a variable says which one is shown. Which tests come by a mutant is found first ([`reach`]), so that it is
//! shown to those alone ([`court`]). Known in the literature as mutant schemata. What this cannot do is left to the other way,
//! which compiles each mutant by itself: functions that must be `const`, `let` chains, and what the borrow checker refuses in a
//! choice.

mod build;
pub mod change;
mod court;
mod reach;
mod weave;

pub use build::Build;
pub use court::Court;
pub use reach::Reach;
