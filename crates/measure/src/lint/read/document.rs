//! Which kind of file it is, and where its JSON begins and ends.

use serde_json::{Deserializer, Value};

use super::error::{ReadError, ReadProblem};
use super::{fio, table};
use crate::lint::Evidence;

/// Most characters of a file that an error shows (chosen: they fit a line).
const SHOWN: usize = 40;

/// Reads a result.
///
/// Takes fio's JSON and JSON+ (also with lines before or after it, as fio prints warnings, and several objects, as with
/// `--status-interval`: the last counts), results of `ocssd run`, and tables as CSV or as a JSON list of objects.
///
/// # Errors
/// A sentence that says what was expected and found.
pub fn read(name: &str, bytes: &[u8]) -> Result<Evidence, ReadError> {
    let text = std::str::from_utf8(bytes).map_err(|error| ReadProblem::NotText(error.valid_up_to()));
    text.and_then(|text| read_text(name, text))
        .map_err(|problem| ReadError { name: name.to_owned(), problem })
}

fn read_text(name: &str, text: &str) -> Result<Evidence, ReadProblem> {
    let text = text.trim_start_matches('\u{feff}');
    let Some(start) = json_start(text) else {
        return if table::is_table(text) {
            table::from_csv(name, text)
        } else {
            Err(ReadProblem::NotAResult(beginning(text)))
        };
    };
    let mut notes = Vec::new();
    let before = text[..start].lines().filter(|line| !line.trim().is_empty()).count();
    if before > 0 {
        notes.push(format!("{before} lines before the JSON were passed over"));
    }
    let (value, skipped) = last_value(&text[start..])?;
    if skipped > 0 {
        notes.push(format!("{skipped} earlier interim results were passed over"));
    }
    let mut evidence = match &value {
        Value::Array(rows) => table::from_rows(name, rows)?,
        Value::Object(root) => fio::from_object(name, root)?,
        other => return Err(ReadProblem::OtherJson(kind(other))),
    };
    evidence.notes.extend(notes);
    Ok(evidence)
}

/// The first line that begins an object, or a list at the beginning of the text.
fn json_start(text: &str) -> Option<usize> {
    let blank = text.len() - text.trim_start().len();
    if text[blank..].starts_with(['{', '[']) {
        return Some(blank);
    }
    text.match_indices('\n').map(|(at, _)| at + 1).find(|&at| text[at..].starts_with('{'))
}

/// The last whole value, and how many stand before it.
fn last_value(text: &str) -> Result<(Value, usize), ReadProblem> {
    let mut stream = Deserializer::from_str(text).into_iter::<Value>();
    let (mut last, mut count, mut end) = (None, 0_usize, 0);
    while let Some(item) = stream.next() {
        match item {
            Ok(value) => {
                (last, count, end) = (Some(value), count + 1, stream.byte_offset());
            }
            // What follows a result and is no JSON was printed after it.
            Err(_) if last.is_some() && !text[end..].trim_start().starts_with(['{', '[']) => break,
            Err(error) => return Err(ReadProblem::BrokenJson(error.to_string())),
        }
    }
    let last = last.ok_or_else(|| ReadProblem::BrokenJson("nothing".to_owned()))?;
    Ok((last, count - 1))
}

fn beginning(text: &str) -> String {
    let line: String = text.trim().lines().next().unwrap_or_default().chars().take(SHOWN).collect();
    if line.is_empty() { "an empty file".to_owned() } else { format!("text that begins `{line}`") }
}

/// A JSON value in two words.
pub(super) fn kind(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "true or false".to_owned(),
        Value::Number(_) => "a number".to_owned(),
        Value::String(_) => "a string".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(members) if members.is_empty() => "an empty object".to_owned(),
        Value::Object(members) => {
            let keys: Vec<&str> = members.keys().take(4).map(String::as_str).collect();
            format!("an object with the keys {}", keys.join(", "))
        }
    }
}
