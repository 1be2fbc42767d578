//! Tests of the module as a whole: text in, jobs or sentences out.

mod document;
mod files;
mod random;
mod refusal;
mod semantics;

use super::{JobErrors, Parsed, parse_command_line, parse_job_file};

/// Reads a job file with `SIZE=64m` in the environment and one file, `depth.fio`, to include.
fn read(text: &str) -> Result<Parsed, JobErrors> {
    let env = |name: &str| (name == "SIZE").then(|| "64m".to_owned());
    let include = |name: &str| match name {
        "depth.fio" => Ok("iodepth=4\ninclude bs.fio\n".to_owned()),
        "bs.fio" => Ok("bs=8k\n".to_owned()),
        "section.fio" => Ok("[inner]\nbs=8k\n".to_owned()),
        "wrong.fio" => Ok("\nbs=8x\n".to_owned()),
        "endless.fio" => Ok("include endless.fio\n".to_owned()),
        _ => Err("there is no such file".to_owned()),
    };
    parse_job_file(text, "t.fio", &env, &include)
}

/// Reads a command line, split at blanks; it may name `a.fio` and `b.fio`.
fn command(line: &str) -> Result<Parsed, JobErrors> {
    let args: Vec<String> = line.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect();
    let read_file = |name: &str| match name {
        "a.fio" => Ok("[global]\nbs=8k\n[a1]\nrw=read\n[a2]\nrw=write\n".to_owned()),
        "b.fio" => Ok("[b1]\nrw=randread\n[b2]\nrw=randread\n".to_owned()),
        _ => Err("there is no such file".to_owned()),
    };
    parse_command_line(&args, &|_| None, &read_file)
}

/// The jobs of a text that is valid.
pub(super) fn valid(text: &str) -> Parsed {
    read(text).unwrap_or_else(|errors| panic!("{text}\n{errors}"))
}
