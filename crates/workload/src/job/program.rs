//! fio's own program options (`--output`, `--section`, ...), which may stand anywhere on a command line.
//!
//! Source: `fio --help` of fio 3.33. Deliberately not here: doing what they ask; whoever runs the jobs does.

use super::word::choose;

/// A form of the report (fio `--output-format`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputFormat {
    /// For people.
    Normal,
    /// fio's JSON.
    Json,
    /// fio's JSON with latency bins.
    JsonPlus,
}

/// When progress is shown (fio `--eta`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Eta {
    /// On a terminal.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// What the command line asks of the program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramOptions {
    /// The file for the report, or standard output.
    pub output: Option<String>,
    /// The forms of the report, in order; empty: the program's own choice.
    pub output_formats: Vec<OutputFormat>,
    /// The sections of the job files to run; empty: all. Already carried out.
    pub sections: Vec<String>,
    /// When progress is shown.
    pub eta: Eta,
    /// Check the jobs and run nothing.
    pub parse_only: bool,
    /// Print the jobs as command lines and run nothing.
    pub showcmd: bool,
    /// Jobs that write or trim are errors. Already carried out.
    pub readonly: bool,
}

/// What is done with a program option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramClass {
    /// Set in [`ProgramOptions`].
    Implemented,
    /// Accepted, and the user is told this.
    Noted(&'static str),
    /// Refused with this sentence.
    Refused(&'static str),
}

/// One program option of fio.
#[derive(Clone, Copy, Debug)]
pub struct ProgramRow {
    /// The name without its dashes.
    pub name: &'static str,
    /// Whether a value follows.
    pub takes_value: bool,
    /// What is done with it.
    pub class: ProgramClass,
    /// What it means, in one line.
    pub doc: &'static str,
}

const fn row(name: &'static str, takes_value: bool, class: ProgramClass, doc: &'static str) -> ProgramRow {
    ProgramRow { name, takes_value, class, doc }
}

const NO_PROCESSES: ProgramClass = ProgramClass::Noted("jobs are no processes here, so it limits nothing");
const NO_NETWORK: ProgramClass =
    ProgramClass::Refused("fio's client and server are not implemented; run this tool on each machine");
const NO_TRIGGER: ProgramClass =
    ProgramClass::Refused("triggers are not implemented; stop the run by its signal");
const OWN_HELP: ProgramClass =
    ProgramClass::Refused("it asks about fio itself; see this tool's own help and its list of options");
const TABLE: [ProgramRow; 37] = [
    row("output", true, ProgramClass::Implemented, "File for the report"),
    row("output-format", true, ProgramClass::Implemented, "normal, json or json+, or several with commas"),
    row(
        "section",
        true,
        ProgramClass::Implemented,
        "Run only this section of the job files; may be repeated",
    ),
    row("eta", true, ProgramClass::Implemented, "When progress is shown: always, never or auto"),
    row("parse-only", false, ProgramClass::Implemented, "Check the jobs and run nothing"),
    row("showcmd", false, ProgramClass::Implemented, "Print the jobs as command lines and run nothing"),
    row("readonly", false, ProgramClass::Implemented, "Refuse jobs that write or trim"),
    row(
        "eta-newline",
        true,
        ProgramClass::Noted("progress has a fixed form"),
        "A new line of progress at this interval",
    ),
    row(
        "eta-interval",
        true,
        ProgramClass::Noted("progress has a fixed pace"),
        "How often progress is shown",
    ),
    row(
        "status-interval",
        true,
        ProgramClass::Noted("the report comes at the end only"),
        "Reports in between",
    ),
    row("alloc-size", true, NO_PROCESSES, "fio's shared memory"),
    row("max-jobs", true, NO_PROCESSES, "The most jobs"),
    row(
        "warnings-fatal",
        false,
        ProgramClass::Noted("what fio only warns of is an error here anyway"),
        "Warnings are errors",
    ),
    row("debug", true, ProgramClass::Refused("fio's debug output is not implemented"), "fio's debug output"),
    row(
        "minimal",
        false,
        ProgramClass::Refused("the terse form is not implemented; use --output-format=json"),
        "Terse report",
    ),
    row(
        "append-terse",
        false,
        ProgramClass::Refused("the terse form is not implemented; use --output-format=json"),
        "Terse report",
    ),
    row(
        "terse-version",
        true,
        ProgramClass::Refused("the terse form is not implemented; use --output-format=json"),
        "Terse report",
    ),
    row(
        "bandwidth-log",
        false,
        ProgramClass::Refused("not implemented yet; use write_bw_log in a job"),
        "Log of the whole bandwidth",
    ),
    row(
        "merge-blktrace-only",
        false,
        ProgramClass::Refused("recorded I/O is not implemented yet"),
        "Merge traces",
    ),
    row(
        "idle-prof",
        true,
        ProgramClass::Refused("idleness of processors is not measured"),
        "Idleness of processors",
    ),
    row(
        "inflate-log",
        true,
        ProgramClass::Refused("logs are never compressed here"),
        "Print a compressed log",
    ),
    row("aux-path", true, ProgramClass::Noted("no state files are written"), "Directory for state files"),
    row("version", false, OWN_HELP, "fio's version"),
    row("help", false, OWN_HELP, "fio's help"),
    row("cmdhelp", true, OWN_HELP, "Help for an option"),
    row("enghelp", true, OWN_HELP, "Help for an engine"),
    row("cpuclock-test", false, OWN_HELP, "Test of fio's clock"),
    row("crctest", true, OWN_HELP, "Speed of checksums"),
    row("memcpytest", true, OWN_HELP, "Speed of copies"),
    row("server", true, NO_NETWORK, "Serve fio clients"),
    row("client", true, NO_NETWORK, "Run on a fio server"),
    row("daemonize", true, NO_NETWORK, "Serve in the background"),
    row("remote-config", true, NO_NETWORK, "A job file of the server"),
    row("trigger-file", true, NO_TRIGGER, "Run a command when this file exists"),
    row("trigger-timeout", true, NO_TRIGGER, "Run a command at this time"),
    row("trigger", true, NO_TRIGGER, "The command"),
    row("trigger-remote", true, NO_TRIGGER, "The command"),
];

/// Every program option of fio, the implemented ones first.
#[must_use]
pub fn program_table() -> &'static [ProgramRow] {
    &TABLE
}

/// Sets an implemented program option.
///
/// # Errors
/// A sentence naming what is wrong with the value.
pub(super) fn apply_program(options: &mut ProgramOptions, name: &str, value: &str) -> Result<(), String> {
    match name {
        "output" => options.output = Some(value.to_owned()),
        "output-format" => {
            options.output_formats = value.split(',').map(parse_format).collect::<Result<_, _>>()?;
        }
        "section" => options.sections.push(value.to_owned()),
        "eta" => {
            options.eta =
                choose(value, &[("auto", Eta::Auto), ("always", Eta::Always), ("never", Eta::Never)])?;
        }
        "parse-only" => options.parse_only = true,
        "showcmd" => options.showcmd = true,
        "readonly" => options.readonly = true,
        other => unreachable!("the table calls `{other}` implemented, and nothing here sets it"),
    }
    Ok(())
}

fn parse_format(text: &str) -> Result<OutputFormat, String> {
    if text == "terse" {
        return Err("the terse form is not implemented; use json".to_owned());
    }
    let words =
        [("normal", OutputFormat::Normal), ("json", OutputFormat::Json), ("json+", OutputFormat::JsonPlus)];
    choose(text, &words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_implemented_row_is_carried_out_and_changes_something() {
        for row in program_table().iter().filter(|row| row.class == ProgramClass::Implemented) {
            let value = match row.name {
                "output-format" => "json,json+",
                "eta" => "never",
                _ => "x",
            };
            let mut options = ProgramOptions::default();
            apply_program(&mut options, row.name, value).expect(row.name);
            assert_ne!(options, ProgramOptions::default(), "{}", row.name);
        }
    }

    #[test]
    fn bad_values_say_what_is_valid() {
        for (name, value) in [("output-format", "xml"), ("output-format", "json,terse"), ("eta", "soon")] {
            assert!(apply_program(&mut ProgramOptions::default(), name, value).is_err(), "{name}={value}");
        }
    }
}
