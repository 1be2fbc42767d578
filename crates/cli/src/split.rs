//! `ocssd run` takes its own options and fio's, in any order: ours are moved to the front, where clap looks for them.

use clap::{Arg, ArgAction, Command};

/// The arguments with the options of `run` itself before everything that is fio's. Other verbs are left alone.
pub fn own_first(command: &Command, arguments: Vec<String>) -> Vec<String> {
    let Some(verb) =
        arguments.iter().skip(1).position(|argument| !argument.starts_with('-')).map(|at| at + 1)
    else {
        return arguments;
    };
    if arguments[verb] != "run" {
        return arguments;
    }
    let run = command.find_subcommand("run").expect("there is a verb run");
    let own: Vec<&Arg> =
        run.get_arguments().chain(command.get_arguments()).filter(|arg| !arg.is_positional()).collect();
    let (mut ours, mut fio) = (Vec::new(), Vec::new());
    let mut rest = arguments[verb + 1..].iter().cloned();
    while let Some(argument) = rest.next() {
        let name = argument.split('=').next().unwrap_or_default();
        let known = own.iter().find(|arg| is_named(arg, name));
        match known {
            Some(arg) => {
                let separate = takes_value(arg) && !argument.contains('=');
                ours.push(argument);
                if separate {
                    ours.extend(rest.next());
                }
            }
            None if argument == "--help" || argument == "-h" => ours.push(argument),
            None => fio.push(argument),
        }
    }
    arguments[..=verb].iter().cloned().chain(ours).chain(fio).collect()
}

fn is_named(arg: &Arg, name: &str) -> bool {
    name.strip_prefix("--").is_some_and(|name| arg.get_long() == Some(name))
}

fn takes_value(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Set | ArgAction::Append)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;
    use clap::CommandFactory;

    fn split(text: &str) -> String {
        own_first(&Cli::command(), text.split(' ').map(str::to_owned).collect()).join(" ")
    }

    #[test]
    fn own_options_come_first_and_fio_keeps_its_order() {
        assert_eq!(
            split("ocssd run a.fio --seed 7 --bs=4k --drive=tiny --name x --json"),
            "ocssd run --seed 7 --drive=tiny --json a.fio --bs=4k --name x"
        );
        assert_eq!(split("ocssd run --quiet --bs=4k --json a.fio"), "ocssd run --quiet --json --bs=4k a.fio");
        assert_eq!(split("ocssd inspect tiny --json"), "ocssd inspect tiny --json");
        assert_eq!(split("ocssd run --help"), "ocssd run --help");
    }
}
