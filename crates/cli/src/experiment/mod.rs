//! `ocssd experiment`: the papers' figures and tables, run again, with the papers' numbers beside ours.
//!
//! [`catalogue`] names the experiments. Each is two functions: one runs it and gives rows ([`data`]), one makes a report
//! of such rows, whether they are fresh or were kept. `world` is a drive with targets, `wrapped` a target with something
//! around its calls, `lab` what every run shares, `compare` sets our rows beside the paper's, `ratio` draws how far they
//! are, `keep` writes and reads files, `claims` makes the table of all verdicts, `verbs` is the command. Deliberately not
//! here: charts and checks (`ocssd_report`).

mod catalogue;
mod cidr20;
mod claims;
mod compare;
mod data;
mod fast17;
mod keep;
mod ksc17;
mod kv;
mod lab;
mod profile;
mod ratio;
mod verbs;
mod wa_theory;
mod world;
mod wrapped;
mod zns;

pub use verbs::experiment;
