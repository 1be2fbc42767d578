//! The fio command line that does what a job does, to be printed under its result.

use super::job::Job;

/// The arguments after `fio`, not quoted: the name first, then every setting that holds.
#[must_use]
pub fn equivalent_arguments(job: &Job) -> Vec<String> {
    let mut arguments = vec![format!("--name={}", job.name)];
    let is_base = |name: &str| name == "kb_base";
    // fio reads a command line in order, and the base must be known before the first size.
    let first = job.given.iter().filter(|(name, _)| is_base(name));
    let rest = job.given.iter().filter(|(name, _)| !is_base(name) && name != "name");
    for (name, value) in first.chain(rest) {
        arguments.push(if value.is_empty() { format!("--{name}") } else { format!("--{name}={value}") });
    }
    if job.options.stonewall && !job.given.iter().any(|(name, _)| name == "stonewall") {
        arguments.push("--stonewall".to_owned());
    }
    arguments
}

/// The command line as one line for a shell. Settings of this tool are left out and named in a comment at its end.
#[must_use]
pub fn equivalent_command(job: &Job) -> String {
    let mut line = String::from("fio");
    for argument in equivalent_arguments(job) {
        line.push(' ');
        line.push_str(&shell_quoted(&argument));
    }
    if !job.extension.given.is_empty() {
        let settings: Vec<String> =
            job.extension.given.iter().map(|(name, value)| format!("{name}={value}")).collect();
        line.push_str(&format!("  # without ocssd: {}", settings.join(" ")));
    }
    line
}

/// A word that every POSIX shell reads as this text.
fn shell_quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,%+@".contains(c);
    if text.chars().all(plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_only_when_a_shell_needs_it() {
        assert_eq!(shell_quoted("--bs=4k,8k"), "--bs=4k,8k");
        assert_eq!(shell_quoted("--description=it's"), "'--description=it'\\''s'");
        assert_eq!(shell_quoted("--size=(2*4k)"), "'--size=(2*4k)'");
    }
}
