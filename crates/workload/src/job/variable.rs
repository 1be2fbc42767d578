//! Variables in values: `${NAME}` from the environment, `$jobname`, and fio's keywords that name the machine.
//!
//! `$ncpus`, `$mb_memory` and `$pagesize` are refused: a job must mean the same on every machine.

use super::error::{JobError, JobErrors, Note, Place};

/// fio's keywords for properties of the machine (HOWTO, "Reserved keywords").
const MACHINE_KEYWORDS: [&str; 3] = ["$ncpus", "$mb_memory", "$pagesize"];
/// fio's keywords for `filename_format` that are not known before the job is cloned.
const CLONE_KEYWORDS: [&str; 3] = ["$jobnum", "$filenum", "$clientuid"];

/// Where errors and notes about a value go.
pub struct Sink<'a> {
    /// Errors.
    pub errors: &'a mut JobErrors,
    /// Notes.
    pub notes: &'a mut Vec<Note>,
    /// The section the value is in.
    pub section: &'a str,
}

/// Replaces `${NAME}` by the environment's value, or by nothing with a note. `None` after an error.
pub fn expand(
    option: &str,
    text: &str,
    place: &Place,
    env: &dyn Fn(&str) -> Option<String>,
    sink: &mut Sink<'_>,
) -> Option<String> {
    let mut result = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        result.push_str(before);
        let Some((variable, after)) = after.split_once('}') else {
            return fail(option, text, place, sink, "expected a closing brace after ${");
        };
        match env(variable) {
            Some(value) => result.push_str(&value),
            None => sink.notes.push(Note {
                job: sink.section.to_owned(),
                option: option.to_owned(),
                value: text.to_owned(),
                sentence: format!(
                    "the environment has no {variable}; nothing is put in its place, as fio does"
                ),
            }),
        }
        rest = after;
    }
    result.push_str(rest);
    if let Some(keyword) = MACHINE_KEYWORDS.iter().find(|keyword| result.contains(**keyword)) {
        let message = format!("{keyword} depends on the machine, so the job would; write the number");
        return fail(option, text, place, sink, &message);
    }
    Some(result)
}

fn fail<T>(option: &str, value: &str, place: &Place, sink: &mut Sink<'_>, message: &str) -> Option<T> {
    sink.errors.push(JobError {
        place: place.clone(),
        section: sink.section.to_owned(),
        option: option.to_owned(),
        value: value.to_owned(),
        message: message.to_owned(),
    });
    None
}

/// Replaces `$jobname` where a name is expected.
///
/// # Errors
/// A sentence for keywords that fio replaces in `filename_format` only.
pub fn with_job_name(option: &str, text: &str, job: &str) -> Result<String, String> {
    let names = [
        "filename",
        "directory",
        "description",
        "write_bw_log",
        "write_iops_log",
        "write_lat_log",
        "write_hist_log",
        "write_iolog",
        "read_iolog",
    ];
    if !names.contains(&option) {
        return Ok(text.to_owned());
    }
    if let Some(keyword) = CLONE_KEYWORDS.iter().find(|keyword| text.contains(**keyword)) {
        return Err(format!("fio replaces {keyword} in filename_format only; leave it out"));
    }
    Ok(text.replace("$jobname", job))
}
