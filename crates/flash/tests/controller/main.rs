//! The controller as hosts see it: raw NVMe entries in, raw completions out, over a small drive.

mod admin;
mod beside_targets;
mod events;
mod host;
mod malformed;
mod rules;
mod scalar;
mod v12;
mod vector;
