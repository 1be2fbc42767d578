//! Where this machine gets Debian from: read from its own apt configuration each time, and never written down.
//!
//! Both formats are known: one line a source (`*.list`), and paragraphs of fields (`*.sources`). Nothing here ends in a
//! message: an address may be a company's own mirror.

use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

/// Addresses of the two archives.
pub struct Archives {
    /// The main one.
    pub main: String,
    /// That of security updates, if the machine has it.
    pub security: Option<String>,
}

/// One address with one suite.
#[derive(Debug, PartialEq, Eq)]
struct Source {
    address: String,
    suite: String,
}

/// What the machine's configuration names for its own release.
///
/// Errors: this is no Debian, or its configuration has no source of its release.
pub fn find() -> Result<Archives> {
    let release = fs::read_to_string("/etc/os-release").context("/etc/os-release could not be read")?;
    let code_name = code_name(&release).context("the machine is no Debian: /etc/os-release names another")?;
    let mut sources = Vec::new();
    if let Ok(text) = fs::read_to_string("/etc/apt/sources.list") {
        sources.extend(lines(&text));
    }
    for entry in fs::read_dir("/etc/apt/sources.list.d").into_iter().flatten().filter_map(Result::ok) {
        sources.extend(of_file(&entry.path()));
    }
    choose(&sources, code_name)
        .with_context(|| format!("apt is not configured for Debian {code_name}: no source in /etc/apt"))
}

/// The archives among all sources of a machine: what else it has is not Debian's.
fn choose(sources: &[Source], code_name: &str) -> Option<Archives> {
    let of = |suites: &[&str]| {
        let found = sources.iter().find(|source| suites.contains(&source.suite.as_str()));
        found.map(|source| source.address.clone())
    };
    let security = format!("{code_name}-security");
    Some(Archives {
        main: of(&[code_name, "stable", "oldstable"])?,
        security: of(&[&security, "stable-security", "oldstable-security"]),
    })
}

fn of_file(path: &Path) -> Vec<Source> {
    let Ok(text) = fs::read_to_string(path) else { return Vec::new() };
    match path.extension().and_then(|name| name.to_str()) {
        Some("list") => lines(&text),
        Some("sources") => paragraphs(&text),
        _ => Vec::new(),
    }
}

/// `deb [options] ADDRESS SUITE COMPONENT...` a line.
fn lines(text: &str) -> Vec<Source> {
    let source = |line: &str| {
        let rest = line.trim().strip_prefix("deb ")?.trim_start();
        let rest = if rest.starts_with('[') { rest.split_once(']')?.1 } else { rest };
        let mut words = rest.split_whitespace();
        let (address, suite) = (words.next()?.to_owned(), words.next()?.to_owned());
        words.any(|component| component == "main").then_some(Source { address, suite })
    };
    text.lines().filter_map(source).collect()
}

/// Fields of which each may have several words, a paragraph a group of sources.
fn paragraphs(text: &str) -> Vec<Source> {
    let mut sources = Vec::new();
    for paragraph in text.split("\n\n") {
        let field = |name: &str| {
            let line = paragraph.lines().find_map(|line| {
                let (key, value) = line.split_once(':')?;
                key.trim().eq_ignore_ascii_case(name).then_some(value)
            });
            line.unwrap_or("").split_whitespace().collect::<Vec<_>>()
        };
        let is_off = field("Enabled").iter().any(|word| word.eq_ignore_ascii_case("no"));
        if is_off || !field("Types").contains(&"deb") || !field("Components").contains(&"main") {
            continue;
        }
        for address in field("URIs") {
            let suites = field("Suites").into_iter();
            sources.extend(suites.map(|suite| Source { address: address.into(), suite: suite.into() }));
        }
    }
    sources
}

/// The name of Debian's release.
fn code_name(release: &str) -> Option<&str> {
    let value = |key: &str| release.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    (value("ID")?.trim_matches('"') == "debian")
        .then(|| value("VERSION_CODENAME"))?
        .map(|name| name.trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(address: &str, suite: &str) -> Source {
        Source { address: address.into(), suite: suite.into() }
    }

    #[test]
    fn both_formats_are_read() {
        let old = "# deb a x main\ndeb [signed-by=/k arch=amd64] b bookworm main contrib\ndeb-src b bookworm main\ndeb c x other\n";
        assert_eq!(lines(old), [source("b", "bookworm")]);
        let new = "Types: deb deb-src\n# a remark\nURIs: b\nSuites: bookworm bookworm-updates\nComponents: main\n\n\
                   Types: deb\nURIs: c\nSuites: bookworm\nComponents: main\nEnabled: no\n\nTypes: deb\nURIs: d\nSuites: x\n";
        assert_eq!(paragraphs(new), [source("b", "bookworm"), source("b", "bookworm-updates")]);
    }

    #[test]
    fn only_the_machines_own_release_counts() {
        let sources = [source("a", "cloud-sdk"), source("b", "bookworm"), source("c", "bookworm-security")];
        let archives = choose(&sources, "bookworm").unwrap();
        assert_eq!((archives.main.as_str(), archives.security.as_deref()), ("b", Some("c")));
        assert!(choose(&sources[..1], "bookworm").is_none());
        assert!(choose(&sources[..2], "bookworm").unwrap().security.is_none());
    }

    #[test]
    fn the_release_is_debians() {
        assert_eq!(code_name("NAME=\"x\"\nVERSION_CODENAME=bookworm\nID=debian\n"), Some("bookworm"));
        assert_eq!(code_name("ID=ubuntu\nVERSION_CODENAME=jammy\n"), None);
    }
}
