//! Starting programs, with a sentence when one fails.

use anyhow::{Context, Result, ensure};
use std::process::{Command, Stdio};

/// Runs a command with this program's own input and output.
///
/// Errors: the program cannot be started, or ends with anything but success.
pub fn run(command: &mut Command) -> Result<()> {
    let shown = line(command);
    let status = command.status().with_context(|| format!("`{shown}` could not be started"))?;
    ensure!(status.success(), "`{shown}` ended with {status}; its own output above says why");
    Ok(())
}

/// Runs a command and returns what it wrote to standard output; its error output passes through.
///
/// Errors: as [`run`], and when the output is not UTF-8.
pub fn output(command: &mut Command) -> Result<String> {
    let shown = line(command);
    let done = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("`{shown}` could not be started"))?;
    ensure!(
        done.status.success(),
        "`{shown}` ended with {} after printing:\n{}",
        done.status,
        String::from_utf8_lossy(&done.stdout)
    );
    String::from_utf8(done.stdout).with_context(|| format!("`{shown}` printed something that is not UTF-8"))
}

/// Whether a command can be started and succeeds; what it prints is thrown away.
pub fn succeeds(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// The command as a person would type it: the program without its folder, then its arguments.
pub fn line(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program());
    let name = program.file_name().unwrap_or(command.get_program());
    let mut words = vec![name.to_string_lossy().into_owned()];
    words.extend(command.get_args().map(|word| word.to_string_lossy().into_owned()));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_program_is_named_with_its_arguments() {
        let error = run(Command::new("sh").args(["-c", "exit 3"])).unwrap_err().to_string();
        assert!(error.contains("`sh -c exit 3`") && error.contains('3'), "{error}");
    }

    #[test]
    fn a_program_that_does_not_exist_is_an_error_and_does_not_succeed() {
        assert!(run(&mut Command::new("no-such-program-of-ocssd")).is_err());
        assert!(!succeeds(&mut Command::new("no-such-program-of-ocssd")));
    }

    #[test]
    fn output_is_returned_only_from_success() {
        assert_eq!(output(Command::new("echo").arg("seen")).unwrap(), "seen\n");
        let error = output(Command::new("sh").args(["-c", "echo partly; exit 1"])).unwrap_err().to_string();
        assert!(error.contains("partly"), "{error}");
    }
}
