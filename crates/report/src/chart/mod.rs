//! A chart as data: what to draw, not how.
//!
//! `spec` holds the description, `check` refuses what cannot be drawn honestly, `axis_map` places numbers on paper and
//! `number` writes them. Deliberately not here: colours, fonts, pixels.

mod axis_map;
mod check;
mod number;
mod spec;

pub(crate) use axis_map::{AxisMap, Tick, column_step};
pub use check::ChartError;
pub(crate) use check::as_x;
pub(crate) use number::{exact, with_unit};
pub use spec::{Annotation, Axis, ChartSpec, Mark, Panel, Point, Role, Rule, Scale, Series, Style};
