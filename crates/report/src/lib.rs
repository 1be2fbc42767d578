//! Charts and reports of experiments, the papers' numbers beside ours, and the checks that compare them.
//!
//! - [`ChartSpec`] describes a chart as data; [`svg`], [`png`] and [`tidy_csv`] are its forms.
//! - [`Report`] is claim, method, header, verdicts, charts and tables; [`html`] makes one file of it.
//! - [`PaperTable`] reads the numbers of a paper; [`ksc`] and [`closed_form`] say what must be true of ours.
//!
//! Everything is a pure function: the same input gives the same bytes. Paper and ours share a hue per series; paper is
//! hollow and dashed, ours solid. Deliberately not here: files, clocks, running anything, and what a device is.

#![forbid(unsafe_code)]

mod chart;
pub mod closed_form;
mod font;
pub mod html;
pub mod ksc;
mod markup;
mod palette;
mod paper;
pub mod png;
mod report;
pub mod svg;
mod table;
mod tidy_csv;
mod verdict;

pub use chart::{
    Annotation, Axis, ChartError, ChartSpec, Mark, Panel, Point, Role, Rule, Scale, Series, Style,
};
pub use paper::{ErrorBound, PaperError, PaperRow, PaperTable};
pub use report::{Fact, Report, Section, Tile};
pub use table::Table;
pub use tidy_csv::tidy_csv;
pub use verdict::{Outcome, Verdict};
