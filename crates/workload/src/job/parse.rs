//! The two ways in: a job file's text, and a fio command line.
//!
//! Files and environment come by callback, so that nothing here touches the machine.

use super::error::{JobError, JobErrors, Place};
use super::iolog::load_logs;
use super::job::Parsed;
use super::program::{ProgramClass, ProgramOptions, apply_program, program_table};
use super::resolve::Resolver;
use super::section::{Entry, Section, Surroundings, read_sections};
use super::suggest::did_you_mean;
use super::table::{Shape, find_option, option_names};
use super::variable;

const COMMAND_LINE: &str = "command line";

/// Reads the text of the job file called `name`; `env` gives environment variables, `include` the text of files.
///
/// # Errors
/// Every error of the file, each with its line.
pub fn parse_job_file(
    text: &str,
    name: &str,
    env: &dyn Fn(&str) -> Option<String>,
    include: &dyn Fn(&str) -> Result<String, String>,
) -> Result<Parsed, JobErrors> {
    let mut resolver = Resolver::default();
    let surroundings = Surroundings { env, read_file: include };
    let sections = read_sections(text, name, &surroundings, &mut resolver.errors, &mut resolver.notes);
    for section in &sections {
        resolver.take(section);
    }
    load_logs(&mut resolver, include);
    let place = Place { file: name.to_owned(), line: 0 };
    finish(resolver, ProgramOptions::default(), &place)
}

/// Reads a fio command line, without or with a leading `fio`; job files named among `args` are read by `read_file`.
///
/// As in fio, options before the first `--name` and those of `--name=global` are defaults for all that follows, jobs
/// of the command line come before those of files, and the first job of every file but the first is stonewalled.
///
/// # Errors
/// Every error of the command line and of its files; the line of one on the command line is the argument's number.
pub fn parse_command_line(
    args: &[String],
    env: &dyn Fn(&str) -> Option<String>,
    read_file: &dyn Fn(&str) -> Result<String, String>,
) -> Result<Parsed, JobErrors> {
    let surroundings = Surroundings { env, read_file };
    let mut line = CommandLine::new(&surroundings);
    line.read(args);
    line.check_named();
    let CommandLine { mut resolver, program, sections, files, .. } = line;
    for section in sections.iter().filter(|section| wanted(section, &program)) {
        resolver.take(section);
    }
    let defaults = resolver.defaults();
    let mut known = Vec::new();
    for (index, (file, place)) in files.iter().enumerate() {
        resolver.reset_defaults(&defaults);
        let text = match read_file(file) {
            Ok(text) => text,
            Err(reason) => {
                resolver.errors.push_general(
                    place,
                    "",
                    format!("cannot read the job file `{file}`: {reason}"),
                );
                continue;
            }
        };
        let mut sections =
            read_sections(&text, file, &surroundings, &mut resolver.errors, &mut resolver.notes);
        known.extend(sections.iter().filter(|section| !section.global).map(|section| section.name.clone()));
        sections.retain(|section| wanted(section, &program));
        if let Some(first) = sections.iter_mut().find(|section| !section.global) {
            first.stonewalled = index > 0;
        }
        for section in &sections {
            resolver.take(section);
        }
    }
    check_sections(&mut resolver, &program, &known);
    load_logs(&mut resolver, read_file);
    check_readonly(&mut resolver, &program);
    finish(resolver, program, &Place { file: COMMAND_LINE.to_owned(), line: 0 })
}

/// Whether a command line names no job and no job file, and has no option that one could have: what the program itself is
/// told may stand there.
#[must_use]
pub fn names_nothing(args: &[String]) -> bool {
    let surroundings = Surroundings { env: &|_| None, read_file: &|_| Err(String::new()) };
    let mut line = CommandLine::new(&surroundings);
    line.read(args);
    let is_empty = |section: &Section| section.entries.is_empty() && section.extension.is_empty();
    line.files.is_empty() && line.sections.len() == 1 && line.sections.iter().all(is_empty)
}

/// Whether `--section` leaves this section in; global ones always stay.
fn wanted(section: &Section, program: &ProgramOptions) -> bool {
    section.global || program.sections.is_empty() || program.sections.contains(&section.name)
}

fn check_sections(resolver: &mut Resolver, program: &ProgramOptions, known: &[String]) {
    for name in &program.sections {
        if !known.contains(name) && !resolver.jobs.iter().any(|job| job.name == *name) {
            let nearest = did_you_mean(name, known.iter().map(String::as_str));
            let place = Place { file: COMMAND_LINE.to_owned(), line: 0 };
            resolver.errors.push_general(&place, "", format!("no job file has a section `{name}`{nearest}"));
        }
    }
}

fn check_readonly(resolver: &mut Resolver, program: &ProgramOptions) {
    let place = Place { file: COMMAND_LINE.to_owned(), line: 0 };
    for job in
        resolver.jobs.iter().filter(|job| program.readonly && job.options.rw.operations.changes_media())
    {
        let message = format!("--readonly is given, but this job does rw={}", job.options.rw.fio_word());
        resolver.errors.push_general(&place, &job.name, message);
    }
}

fn finish(mut resolver: Resolver, program: ProgramOptions, place: &Place) -> Result<Parsed, JobErrors> {
    if resolver.jobs.is_empty() && resolver.errors.0.is_empty() {
        let message = "no job is defined; write a section such as [job1] with rw=randread, or --name=job1 --rw=randread";
        resolver.errors.push_general(place, "", message);
    }
    if !resolver.errors.0.is_empty() {
        return Err(resolver.errors);
    }
    let Resolver { jobs, notes, run, global, .. } = resolver;
    Ok(Parsed { jobs, notes, program, run, global })
}

/// A command line while it is read.
struct CommandLine<'a> {
    surroundings: &'a Surroundings<'a>,
    resolver: Resolver,
    program: ProgramOptions,
    sections: Vec<Section>,
    files: Vec<(String, Place)>,
}

impl<'a> CommandLine<'a> {
    fn new(surroundings: &'a Surroundings<'a>) -> Self {
        let start = Place { file: COMMAND_LINE.to_owned(), line: 0 };
        let sections = vec![Section::new("global", start)];
        let (resolver, program) = (Resolver::default(), ProgramOptions::default());
        Self { surroundings, resolver, program, sections, files: Vec::new() }
    }

    fn read(&mut self, args: &[String]) {
        let mut index =
            usize::from(args.first().is_some_and(|first| first == "fio" || first.ends_with("/fio")));
        let mut options_ended = false;
        while let Some(argument) = args.get(index) {
            index += 1;
            let place =
                Place { file: COMMAND_LINE.to_owned(), line: u32::try_from(index).unwrap_or(u32::MAX) };
            // fio takes one dash as well as two, and a lone dash as a file.
            let option = argument.strip_prefix("--").or_else(|| argument.strip_prefix('-'));
            match option {
                _ if options_ended => self.files.push((argument.clone(), place)),
                Some("") if argument == "--" => options_ended = true,
                None | Some("") => self.files.push((argument.clone(), place)),
                Some(option) => {
                    let next = args.get(index).filter(|next| !next.starts_with('-')).map(String::as_str);
                    index += usize::from(self.option(option, next, place));
                }
            }
        }
    }

    /// Options of jobs, where no job is named that could have them.
    fn check_named(&mut self) {
        let [global] = self.sections.as_slice() else { return };
        let Some(first) = global.entries.first().or(global.extension.first()) else { return };
        let Entry { place, name, value } = first.clone();
        if self.files.is_empty() && self.resolver.errors.0.is_empty() {
            let (option, value) = match value {
                value if !global.entries.is_empty() => (format!("--{name}"), value),
                value => ("--ocssd".to_owned(), Some(format!("{name}={}", value.unwrap_or_default()))),
            };
            let message = "is an option of jobs, but no job is named; put --name=job1 before it".to_owned();
            self.fail(&option, value.as_deref(), place, message);
        }
    }

    /// Reads one option; true if it took the next argument as its value.
    fn option(&mut self, option: &str, next: Option<&str>, place: Place) -> bool {
        let (name, value) =
            option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
        if let Some(row) = program_table().iter().find(|row| row.name == name) {
            let separate = row.takes_value && value.is_none() && next.is_some();
            let value = if separate { next } else { value };
            self.program_option(row.name, row.class, row.takes_value, value, place);
            return separate;
        }
        let known = find_option(name);
        let takes_next = name == "ocssd" || known.is_some_and(|row| row.shape != Shape::Flag);
        let separate = takes_next && value.is_none() && next.is_some();
        let value = if separate { next } else { value };
        match name {
            "ocssd" => self.extension(value, &place),
            "name" => self.start_job(value, place),
            _ => self.job_option(name, value, place),
        }
        separate
    }

    fn program_option(
        &mut self,
        name: &str,
        class: ProgramClass,
        takes_value: bool,
        value: Option<&str>,
        place: Place,
    ) {
        let outcome = match class {
            ProgramClass::Refused(sentence) => Err(format!("is refused: {sentence}")),
            _ if takes_value && value.is_none() => Err(format!("expected a value, as --{name}=..")),
            ProgramClass::Noted(sentence) => {
                self.resolver.note_program(name, value.unwrap_or_default(), sentence);
                Ok(())
            }
            ProgramClass::Implemented => apply_program(&mut self.program, name, value.unwrap_or_default()),
        };
        if let Err(message) = outcome {
            self.fail(&format!("--{name}"), value, place, message);
        }
    }

    fn fail(&mut self, option: &str, value: Option<&str>, place: Place, message: String) {
        let value = value.unwrap_or_default().to_owned();
        let (section, option) = (String::new(), option.to_owned());
        self.resolver.errors.push(JobError { place, section, option, value, message });
    }

    fn current(&mut self) -> &mut Section {
        self.sections.last_mut().expect("there is a section from the start")
    }

    fn start_job(&mut self, value: Option<&str>, place: Place) {
        match value.map(str::trim).filter(|name| !name.is_empty()) {
            Some(name) => self.sections.push(Section::new(name, place)),
            None => self.fail("--name", value, place, "expected the job's name, as --name=job1".to_owned()),
        }
    }

    fn job_option(&mut self, name: &str, value: Option<&str>, place: Place) {
        if find_option(name).is_none() {
            let known = option_names().chain(program_table().iter().map(|row| row.name)).chain(["ocssd"]);
            let nearest = did_you_mean(name, known);
            return self.fail(
                &format!("--{name}"),
                value,
                place,
                format!("fio has no option `--{name}`{nearest}"),
            );
        }
        if let Some(entry) = self.entry(name, value, place) {
            self.current().entries.push(entry);
        }
    }

    fn extension(&mut self, value: Option<&str>, place: &Place) {
        let Some(settings) = value.filter(|settings| !settings.trim().is_empty()) else {
            return self.fail(
                "--ocssd",
                value,
                place.clone(),
                "expected settings, as --ocssd='place=pu:0-3'".to_owned(),
            );
        };
        for setting in settings.split_whitespace() {
            let (name, value) =
                setting.split_once('=').map_or((setting, None), |(name, value)| (name, Some(value)));
            if let Some(entry) = self.entry(name, value, place.clone()) {
                self.current().extension.push(entry);
            }
        }
    }

    fn entry(&mut self, name: &str, value: Option<&str>, place: Place) -> Option<Entry> {
        let section = self.current().name.clone();
        let Resolver { errors, notes, .. } = &mut self.resolver;
        let mut sink = variable::Sink { errors, notes, section: &section };
        let value = match value {
            Some(text) => {
                Some(variable::expand(name, text.trim(), &place, self.surroundings.env, &mut sink)?)
            }
            None => None,
        };
        Some(Entry { place, name: name.to_owned(), value })
    }
}
