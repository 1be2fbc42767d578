//! `--live`: what goes on, while it goes on.
//!
//! A [`Sample`] is how things stand; [`Live`] is shown one now and then, and draws what happened since the last. `view` turns that
//! into lines, `screen` puts them on a terminal, or a line a time where there is none. Deliberately not here: measuring.

mod sample;
mod screen;
mod view;

pub use sample::{Inside, Sample};
pub use screen::{Every, Live, parse_every};
