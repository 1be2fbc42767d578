//! A report as data: what was claimed, how it was run, what came out.

use crate::chart::ChartSpec;
use crate::table::Table;
use crate::verdict::Verdict;
use serde::{Deserialize, Serialize};

/// Everything one experiment has to say.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// Name of the experiment, such as `ksc17-t3`.
    pub id: String,
    /// Its title.
    pub title: String,
    /// What comes first, under a heading of its own: of an experiment, the claim in our words. Empty lines separate
    /// paragraphs, here and below.
    pub opening: Section,
    /// The few numbers that are asked for most, before everything else.
    #[serde(default)]
    pub tiles: Vec<Tile>,
    /// How it was run.
    pub method: String,
    /// Machine, commit, command, seed: what a rerun needs.
    pub header: Vec<Fact>,
    /// The claims checked.
    pub verdicts: Vec<Verdict>,
    /// Pictures.
    pub charts: Vec<ChartSpec>,
    /// Tables besides those of the charts' numbers, which every form of a report makes itself.
    pub tables: Vec<Table>,
    /// More text, after the pictures: what explains the result, what falls short.
    pub sections: Vec<Section>,
}

/// A number that stands by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tile {
    /// What it is, in two or three words.
    pub label: String,
    /// The number with its unit.
    pub value: String,
    /// Of what exactly.
    pub note: String,
}

/// One line of a report's header.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fact {
    /// What it is, such as `commit`.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// A text with a heading.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Section {
    /// Heading.
    pub title: String,
    /// Text; empty lines separate paragraphs.
    pub text: String,
}

impl Report {
    /// A report without results yet.
    pub fn new(id: &str, title: &str) -> Self {
        Self { id: id.into(), title: title.into(), ..Self::default() }
    }

    /// Sets what comes first to the claim of an experiment.
    #[must_use]
    pub fn claim(self, text: &str) -> Self {
        self.opening("Claim", text)
    }

    /// Sets what comes first.
    #[must_use]
    pub fn opening(mut self, title: &str, text: &str) -> Self {
        self.opening = Section { title: title.into(), text: text.into() };
        self
    }

    /// Adds a number that stands by itself.
    #[must_use]
    pub fn tile(mut self, tile: Tile) -> Self {
        self.tiles.push(tile);
        self
    }

    /// Sets how it was run.
    #[must_use]
    pub fn method(mut self, text: &str) -> Self {
        text.clone_into(&mut self.method);
        self
    }

    /// Adds a line to the header.
    #[must_use]
    pub fn fact(mut self, name: &str, value: &str) -> Self {
        self.header.push(Fact { name: name.into(), value: value.into() });
        self
    }

    /// Adds results of predicates.
    #[must_use]
    pub fn verdicts(mut self, verdicts: Vec<Verdict>) -> Self {
        self.verdicts.extend(verdicts);
        self
    }

    /// Adds a picture.
    #[must_use]
    pub fn chart(mut self, chart: ChartSpec) -> Self {
        self.charts.push(chart);
        self
    }

    /// Adds a table.
    #[must_use]
    pub fn table(mut self, table: Table) -> Self {
        self.tables.push(table);
        self
    }

    /// Adds a text after the pictures.
    #[must_use]
    pub fn section(mut self, title: &str, text: &str) -> Self {
        self.sections.push(Section { title: title.into(), text: text.into() });
        self
    }
}
