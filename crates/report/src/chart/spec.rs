//! The description of a chart and its builders.

use crate::verdict::{Outcome, Verdict};
use serde::{Deserialize, Serialize};

/// A chart: one or more panels over the same axes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChartSpec {
    /// What the chart shows, in a few words; not empty.
    pub title: String,
    /// What a reader must know to read it; may be empty.
    #[serde(default)]
    pub subtitle: String,
    /// Where the numbers are from; may be empty.
    #[serde(default)]
    pub source: String,
    /// Horizontal axis of every panel.
    pub x: Axis,
    /// Vertical axis of every panel that has none of its own.
    pub y: Axis,
    /// What the colours of [`Style::Cells`] say; a chart of cells has it, and no other.
    #[serde(default)]
    pub colour: Option<Axis>,
    /// At least one; several are small multiples.
    pub panels: Vec<Panel>,
}

/// How numbers become distances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Equal steps are equally long.
    #[default]
    Linear,
    /// Every doubling is equally long; numbers above 0 only.
    Log2,
    /// Every factor of ten is equally long; numbers above 0 only.
    Log10,
}

/// One axis.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// What is measured; not empty.
    pub label: String,
    /// Its unit; empty for a plain number.
    #[serde(default)]
    pub unit: String,
    /// Linear unless said otherwise.
    #[serde(default)]
    pub scale: Scale,
    /// Least and greatest number shown; from the data when absent. Data outside is refused, never cut off.
    #[serde(default)]
    pub range: Option<(f64, f64)>,
    /// Where to put ticks; chosen when empty.
    #[serde(default)]
    pub ticks: Vec<f64>,
    /// Names for the numbers 0, 1, 2 and so on, for an axis that has no order. A vertical axis has them only below cells.
    #[serde(default)]
    pub categories: Vec<String>,
}

/// One of several charts side by side.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Panel {
    /// What sets it apart from the others; may be empty when it is alone.
    #[serde(default)]
    pub title: String,
    /// A vertical axis of its own, when the shared one does not fit.
    #[serde(default)]
    pub y: Option<Axis>,
    /// What is drawn.
    pub series: Vec<Series>,
    /// Lines across the panel, such as a limit from a model.
    #[serde(default)]
    pub rules: Vec<Rule>,
    /// Lines upwards, such as where a phase begins.
    #[serde(default)]
    pub marks: Vec<Mark>,
    /// Sentences under the panel, such as results of predicates.
    #[serde(default)]
    pub annotations: Vec<Annotation>,
}

/// Whose numbers a series holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Measured here: solid.
    Ours,
    /// Published: hollow and dashed.
    Paper,
}

impl Role {
    /// The word in legends and tables.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Paper => "paper",
        }
    }
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Style {
    /// Markers joined by straight lines.
    #[default]
    Line,
    /// Markers alone.
    Markers,
    /// Bars side by side, from the axis.
    Bars,
    /// Level until the next point: cumulative distributions, states over time.
    Steps,
    /// A heat map: a field for each point, whose colour is its `value`. Blank without one.
    Cells,
}

/// Numbers of one name from one side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Series {
    /// Name in the legend. The same name has the same hue everywhere in a chart, ours and paper alike.
    pub name: String,
    /// Whose numbers.
    pub role: Role,
    /// How to draw them.
    #[serde(default)]
    pub style: Style,
    /// In the order they are joined; at least one.
    pub points: Vec<Point>,
}

/// One number at one place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Point {
    /// Place on the horizontal axis; an index when that axis has categories.
    pub x: f64,
    /// The number.
    pub y: f64,
    /// Lower end of its error interval.
    #[serde(default)]
    pub low: Option<f64>,
    /// Upper end of its error interval.
    #[serde(default)]
    pub high: Option<f64>,
    /// What the colour of a cell says; a cell without it is blank, and its note should say why.
    #[serde(default)]
    pub value: Option<f64>,
    /// Anything to know about this number; often empty.
    #[serde(default)]
    pub note: String,
}

/// A line across a panel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Where it crosses the vertical axis.
    pub y: f64,
    /// What it is.
    pub label: String,
}

/// A line upwards, with its name at the upper end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mark {
    /// Where it stands on the horizontal axis.
    pub x: f64,
    /// What begins there.
    pub label: String,
}

/// A sentence under a panel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Annotation {
    /// The result it reports, when it is one: its sign. The text should name it too, since a sign is easily missed.
    #[serde(default)]
    pub outcome: Option<Outcome>,
    /// The sentence.
    pub text: String,
}

impl ChartSpec {
    /// A chart without panels yet.
    pub fn new(title: &str, x: Axis, y: Axis) -> Self {
        let (subtitle, source) = (String::new(), String::new());
        Self { title: title.into(), subtitle, source, x, y, colour: None, panels: Vec::new() }
    }

    /// A heat map without panels yet: `colour` says what its colours mean.
    pub fn cells(title: &str, x: Axis, y: Axis, colour: Axis) -> Self {
        Self { colour: Some(colour), ..Self::new(title, x, y) }
    }

    /// Sets what a reader must know.
    #[must_use]
    pub fn subtitle(mut self, text: &str) -> Self {
        text.clone_into(&mut self.subtitle);
        self
    }

    /// Sets where the numbers are from.
    #[must_use]
    pub fn source(mut self, text: &str) -> Self {
        text.clone_into(&mut self.source);
        self
    }

    /// Adds a panel.
    #[must_use]
    pub fn panel(mut self, panel: Panel) -> Self {
        self.panels.push(panel);
        self
    }

    /// Names of the series, each once, in order of appearance. The index is the hue.
    pub(crate) fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for series in self.panels.iter().flat_map(|panel| &panel.series) {
            if !names.contains(&series.name.as_str()) {
                names.push(&series.name);
            }
        }
        names
    }

    /// Every number that a colour stands for.
    pub(crate) fn values(&self) -> impl Iterator<Item = f64> {
        let series = self.panels.iter().flat_map(|panel| &panel.series);
        series.flat_map(|series| &series.points).filter_map(|point| point.value)
    }

    /// The vertical axis of a panel.
    pub(crate) fn y_of<'a>(&'a self, panel: &'a Panel) -> &'a Axis {
        panel.y.as_ref().unwrap_or(&self.y)
    }
}

impl Axis {
    /// A linear axis over the data.
    pub fn linear(label: &str, unit: &str) -> Self {
        Self { label: label.into(), unit: unit.into(), ..Self::default() }
    }

    /// An axis of doublings.
    pub fn log2(label: &str, unit: &str) -> Self {
        Self { scale: Scale::Log2, ..Self::linear(label, unit) }
    }

    /// An axis of factors of ten.
    pub fn log10(label: &str, unit: &str) -> Self {
        Self { scale: Scale::Log10, ..Self::linear(label, unit) }
    }

    /// An axis of names; point `x` is the index into them.
    pub fn categories(label: &str, names: &[&str]) -> Self {
        let categories = names.iter().map(|&name| name.to_owned()).collect();
        Self { categories, ..Self::linear(label, "") }
    }

    /// Sets the ends.
    #[must_use]
    pub fn range(mut self, least: f64, greatest: f64) -> Self {
        self.range = Some((least, greatest));
        self
    }

    /// Sets the ticks.
    #[must_use]
    pub fn ticks(mut self, ticks: &[f64]) -> Self {
        self.ticks = ticks.to_vec();
        self
    }

    /// The label with its unit.
    pub(crate) fn caption(&self) -> String {
        if self.unit.is_empty() { self.label.clone() } else { format!("{} ({})", self.label, self.unit) }
    }
}

impl Panel {
    /// An empty panel.
    pub fn new(title: &str) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    /// Adds a series.
    #[must_use]
    pub fn series(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    /// Adds a line across.
    #[must_use]
    pub fn rule(mut self, y: f64, label: &str) -> Self {
        self.rules.push(Rule { y, label: label.into() });
        self
    }

    /// Adds a line upwards.
    #[must_use]
    pub fn mark(mut self, x: f64, label: &str) -> Self {
        self.marks.push(Mark { x, label: label.into() });
        self
    }

    /// Adds the result of a predicate below.
    #[must_use]
    pub fn verdict(mut self, verdict: &Verdict) -> Self {
        let text = format!("{} {}: {}", verdict.id, verdict.outcome.word(), verdict.sentence);
        self.annotations.push(Annotation { outcome: Some(verdict.outcome), text });
        self
    }

    /// Adds a sentence below.
    #[must_use]
    pub fn note(mut self, text: &str) -> Self {
        self.annotations.push(Annotation { outcome: None, text: text.into() });
        self
    }
}

impl Series {
    /// Joined markers; see [`Series::style`] for the other ways.
    pub fn new(name: &str, role: Role, points: Vec<Point>) -> Self {
        Self { name: name.into(), role, style: Style::Line, points }
    }

    /// Sets how it is drawn.
    #[must_use]
    pub fn style(mut self, style: Style) -> Self {
        self.style = style;
        self
    }
}

impl Point {
    /// A number without error or note.
    pub fn new(x: f64, y: f64) -> Self {
        Self { x, y, low: None, high: None, value: None, note: String::new() }
    }

    /// A field of a heat map: column, row, and what its colour says.
    pub fn cell(x: f64, y: f64, value: Option<f64>) -> Self {
        Self { value, ..Self::new(x, y) }
    }

    /// Sets the error interval.
    #[must_use]
    pub fn between(mut self, low: f64, high: f64) -> Self {
        (self.low, self.high) = (Some(low), Some(high));
        self
    }

    /// Sets the note.
    #[must_use]
    pub fn noted(mut self, note: &str) -> Self {
        note.clone_into(&mut self.note);
        self
    }
}
