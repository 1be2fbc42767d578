//! A browser without a window, for tests of pages. Those of other crates name this file by its path.

use std::path::Path;
use std::process::{Command, Output};

/// Starts the browser on a page and waits for it. What it keeps lies in the folder `profile`; two that run at once need two.
pub fn open(profile: &Path, page: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new("chromium");
    // The page is our own, so no sandbox is needed, and as root there is none.
    command.args([
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--enable-logging=stderr",
        "--log-level=0",
    ]);
    command.args([
        "--hide-scrollbars",
        "--disable-background-networking",
        "--no-first-run",
        "--timeout=20000",
    ]);
    command.arg(format!("--user-data-dir={}", profile.display()));
    command.args(arguments).arg(format!("file://{}", page.display()));
    command.output().unwrap_or_else(|error| {
        panic!("expected the program `chromium` to open a page with, found {error}: install Debian's package `chromium`")
    })
}

/// Lines the page wrote to its console, and complaints of the browser about the page.
pub fn console(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stderr);
    text.lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned).collect()
}

/// The value of an attribute that a probe left.
pub fn left_behind<'a>(page: &'a str, name: &str) -> &'a str {
    let start = format!("data-{name}=\"");
    let at = page
        .find(&start)
        .unwrap_or_else(|| panic!("the probe left no {name}: {}", &page[..page.len().min(400)]));
    page[at + start.len()..].split('"').next().expect("a split has a first part")
}
