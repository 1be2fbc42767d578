//! What any bytes must survive: reading them as a job file and as a command line.

use super::equivalent::equivalent_arguments;
use super::parse::{parse_command_line, parse_job_file};
use super::{Job, equivalent_command};

/// Reads `data` both ways and checks what must hold for any input; used by the fuzzer and by the seeded test.
///
/// # Panics
/// If a returned list of errors is empty, or a job's equivalent command line does not give the same job again.
pub fn fuzz_parse(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let env = |name: &str| (name.len() == 1).then(|| "4k".to_owned());
    // Every include is the file itself, so that nesting and self-inclusion are met.
    let include =
        |name: &str| if name == "missing" { Err("it is missing".to_owned()) } else { Ok(text.to_string()) };
    let arguments: Vec<String> = text.lines().map(str::to_owned).collect();
    let from_file = parse_job_file(&text, "fuzz.fio", &env, &include);
    let from_arguments = parse_command_line(&arguments, &env, &include);
    for outcome in [from_file, from_arguments] {
        match outcome {
            Ok(parsed) => parsed.jobs.iter().for_each(check_job),
            Err(errors) => {
                assert!(!errors.0.is_empty() && !errors.to_string().is_empty(), "an error without words")
            }
        }
    }
}

/// A job's own command line gives the same job.
fn check_job(job: &Job) {
    assert!(equivalent_command(job).starts_with("fio "), "a command of fio");
    // Variables are replaced once, and another job or a log is not on this job's command line.
    if job.options.wait_for.is_some() || job.name.starts_with("global") || !job.options.replay.logs.is_empty()
    {
        return;
    }
    let arguments = equivalent_arguments(job);
    if arguments.iter().any(|argument| argument.contains('$')) {
        return;
    }
    let nothing = |_: &str| None;
    let again = parse_command_line(&arguments, &nothing, &|_| Err("there are no files".to_owned()));
    let again = again.unwrap_or_else(|errors| panic!("{arguments:?} is refused: {errors}"));
    assert_eq!(again.jobs.len(), 1, "{arguments:?}");
    assert_eq!(format!("{:?}", again.jobs[0].options), format!("{:?}", job.options), "{arguments:?}");
}
