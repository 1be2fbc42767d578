//! SQLite on drives: what reaches them, what is refused, and what is there after power cuts.

mod bank;
mod commits;
mod power_cuts;
