//! Job files as text: sections, options with their lines, includes, comments, and our extension lines.
//!
//! Source: fio 3.33 HOWTO, "Job file format", and its behaviour: everything from the first `;` or `#` of a line is
//! a comment, and a section whose name starts with `global` is global. Deliberately not here: what an option means.

use super::error::{JobErrors, Note, Place};
use super::variable;

/// The most files included in one source (chosen; it bounds what a file that includes itself can cost).
const INCLUDES_MAX: u32 = 16;
/// The deepest nesting of includes (chosen).
const INCLUDE_DEPTH_MAX: u32 = 4;

/// One option as written.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Where.
    pub place: Place,
    /// The name as typed.
    pub name: String,
    /// The text after `=`, with environment variables replaced; `None` for an option given alone.
    pub value: Option<String>,
}

/// One section as written, or a job of a command line.
#[derive(Clone, Debug)]
pub struct Section {
    /// Where it starts.
    pub place: Place,
    /// The job's name, or `global`.
    pub name: String,
    /// Whether it sets defaults for the jobs after it.
    pub global: bool,
    /// fio stonewalls the first job of every job file but the first.
    pub stonewalled: bool,
    /// The options in order.
    pub entries: Vec<Entry>,
    /// The settings of extension lines in order.
    pub extension: Vec<Entry>,
}

impl Section {
    /// An empty section.
    pub fn new(name: &str, place: Place) -> Self {
        let global = name.starts_with("global");
        let name = if global { "global" } else { name }.to_owned();
        let (entries, extension) = (Vec::new(), Vec::new());
        Self { place, name, global, stonewalled: false, entries, extension }
    }
}

/// What reading a job file needs from outside.
pub struct Surroundings<'a> {
    /// The environment.
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// Reads an included file.
    pub read_file: &'a dyn Fn(&str) -> Result<String, String>,
}

/// Reads the text of one job file into sections.
struct Reader<'a> {
    surroundings: &'a Surroundings<'a>,
    sections: Vec<Section>,
    includes: u32,
    errors: &'a mut JobErrors,
    notes: &'a mut Vec<Note>,
}

/// Reads `text`, the content of the job file called `name`. Errors and notes are added to the lists given.
pub fn read_sections(
    text: &str,
    name: &str,
    surroundings: &Surroundings<'_>,
    errors: &mut JobErrors,
    notes: &mut Vec<Note>,
) -> Vec<Section> {
    let start = Place { file: name.to_owned(), line: 0 };
    // What stands before the first section: only extension settings are allowed there, and they are global.
    let sections = vec![Section::new("global", start)];
    let mut reader = Reader { surroundings, sections, includes: 0, errors, notes };
    reader.read(text, name, 0);
    reader.sections
}

impl Reader<'_> {
    fn read(&mut self, text: &str, file: &str, depth: u32) {
        for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
            let line_number = u32::try_from(index + 1).unwrap_or(u32::MAX);
            let place = Place { file: file.to_owned(), line: line_number };
            let (content, comment) = split_comment(line);
            if let Some(settings) = extension_text(comment) {
                self.extension_line(settings, &place);
            }
            let content = content.trim();
            if content.starts_with('[') {
                self.header(content, place, depth);
            } else if let Some(target) = include_target(content) {
                self.include(target, &place, depth);
            } else if !content.is_empty() {
                self.option(content, place, depth);
            }
        }
    }

    fn current(&mut self) -> &mut Section {
        self.sections.last_mut().expect("there is a section from the start")
    }

    fn header(&mut self, content: &str, place: Place, depth: u32) {
        if depth > 0 {
            self.errors.push_general(&place, "", "an included file may have options only, no [sections]");
            return;
        }
        match content.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((name, rest)) if !name.trim().is_empty() && rest.trim().is_empty() => {
                if name.starts_with("global") && name != "global" {
                    self.notes.push(Note {
                        job: name.to_owned(),
                        option: "name".to_owned(),
                        value: name.to_owned(),
                        sentence: "is read as [global], as fio does for every name that starts so".to_owned(),
                    });
                }
                self.sections.push(Section::new(name.trim(), place));
            }
            _ => {
                let message = format!("expected a section such as [job1], but found `{content}`");
                self.errors.push_general(&place, "", message);
                // What follows belongs to a section whose name is not known, not to the one before.
                self.sections.push(Section::new("?", place));
            }
        }
    }

    fn option(&mut self, content: &str, place: Place, depth: u32) {
        if depth == 0 && self.sections.len() == 1 {
            let message = format!("`{content}` stands before the first section; write [global] above it");
            self.errors.push_general(&place, "", message);
            return;
        }
        let (name, value) = match content.split_once('=') {
            Some((name, value)) => (name.trim(), Some(value.trim())),
            None => (content, None),
        };
        if let Some(entry) = self.entry(name, value, place) {
            self.current().entries.push(entry);
        }
    }

    /// An entry with its variables replaced.
    fn entry(&mut self, name: &str, value: Option<&str>, place: Place) -> Option<Entry> {
        let section = self.current().name.clone();
        let mut sink = variable::Sink { errors: self.errors, notes: self.notes, section: &section };
        let value = match value {
            Some(text) => Some(variable::expand(name, text, &place, self.surroundings.env, &mut sink)?),
            None => None,
        };
        Some(Entry { place, name: name.to_owned(), value })
    }

    fn extension_line(&mut self, settings: &str, place: &Place) {
        for setting in settings.split_whitespace() {
            let (name, value) =
                setting.split_once('=').map_or((setting, None), |(name, value)| (name, Some(value)));
            if let Some(entry) = self.entry(name, value, place.clone()) {
                self.current().extension.push(entry);
            }
        }
    }

    fn include(&mut self, target: &str, place: &Place, depth: u32) {
        let section = self.current().name.clone();
        if self.sections.len() == 1 {
            self.errors.push_general(
                place,
                "",
                "`include` stands before the first section; write [global] above it",
            );
            return;
        }
        self.includes += 1;
        if depth >= INCLUDE_DEPTH_MAX || self.includes > INCLUDES_MAX {
            let message = format!(
                "expected at most {INCLUDES_MAX} includes nested {INCLUDE_DEPTH_MAX} deep; does `{target}` include itself?"
            );
            self.errors.push_general(place, &section, message);
            return;
        }
        match (self.surroundings.read_file)(target) {
            Ok(text) => self.read(&text, target, depth + 1),
            Err(reason) => {
                self.errors.push_general(place, &section, format!("cannot include `{target}`: {reason}"));
            }
        }
    }
}

/// The content of a line, and its comment without the mark.
fn split_comment(line: &str) -> (&str, &str) {
    line.split_once([';', '#']).unwrap_or((line, ""))
}

/// What follows `ocssd:` in a comment.
fn extension_text(comment: &str) -> Option<&str> {
    comment.trim_start().strip_prefix("ocssd:")
}

fn include_target(content: &str) -> Option<&str> {
    let rest = content.strip_prefix("include")?;
    let target = rest.trim();
    (rest.starts_with([' ', '\t']) && !target.is_empty() && !target.starts_with('=')).then_some(target)
}
