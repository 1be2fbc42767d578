//! A report opened in a real browser: no error on its console, its script works, both sizes have their picture.
//!
//! Needs Debian's package `chromium`; the test says so when it is missing. Pages and screenshots stay in the target
//! folder, to be looked at.

mod chromium;
mod sample;
mod tables;

use chromium::{console, left_behind};
use ocssd_report::html;
use std::path::{Path, PathBuf};
use std::process::Output;

/// Presses a legend entry, points at a marker, and leaves what happened as attributes of the page.
const PROBE: &str = r#"<script>
const out = document.documentElement;
const svg = document.querySelector(getComputedStyle(document.querySelector(".wide")).display === "none"
  ? ".narrow svg" : ".wide svg");
const series = svg.querySelectorAll('.series[data-hue="0"]');
const key = svg.querySelector('.key[data-hue="0"]');
const hidden = () => [...series].every(part => getComputedStyle(part).display === "none");
out.dataset.before = hidden();
key.dispatchEvent(new MouseEvent("click", { bubbles: true }));
out.dataset.pressed = hidden() + " " + key.getAttribute("aria-pressed");
key.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
out.dataset.again = hidden();
const box = series[0].querySelector(".pt").getBoundingClientRect();
const at = { clientX: box.left + box.width / 2, clientY: box.top + box.height / 2, bubbles: true };
svg.dispatchEvent(new PointerEvent("pointermove", at));
out.dataset.tip = document.getElementById("tip").textContent.replaceAll("\n", "; ");
out.dataset.overflow = document.documentElement.scrollWidth > innerWidth;
svg.dispatchEvent(new PointerEvent("pointerleave"));
</script></body>"#;

/// The folder for pages and pictures.
fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
}

fn write(name: &str, text: &str) -> PathBuf {
    let path = folder().join(name);
    std::fs::write(&path, text).expect("the target folder can be written");
    path
}

/// Opens a page.
fn chromium(profile: &str, page: &Path, arguments: &[&str]) -> Output {
    chromium::open(&folder().join(profile), page, arguments)
}

#[test]
fn values_show_and_series_switch_without_an_error() {
    let page = html::render(&sample::report()).expect("the sample is valid").replace("</body>", PROBE);
    let path = write("probed.html", &page);
    for (profile, size) in
        [("profile-wide", "--window-size=1100,900"), ("profile-narrow", "--window-size=500,900")]
    {
        let output = chromium(profile, &path, &[size, "--dump-dom"]);
        assert!(output.status.success(), "{size}: {}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(console(&output), [""; 0], "{size}");
        let seen = String::from_utf8_lossy(&output.stdout);
        let attribute = |name| left_behind(&seen, name);
        assert_eq!(
            (attribute("before"), attribute("pressed"), attribute("again")),
            ("false", "true false", "false")
        );
        assert!(
            attribute("tip").starts_with("32 MiB (") && attribute("tip").contains("threads: 2"),
            "{}",
            attribute("tip")
        );
        assert_eq!(attribute("overflow"), "false", "{size}: nothing is wider than the window");
    }
}

#[test]
fn an_error_on_the_console_would_be_seen() {
    let path = write("broken.html", "<!DOCTYPE html><title>t</title><script>nothing.here()</script>");
    let output = chromium("profile-broken", &path, &["--dump-dom"]);
    assert!(!console(&output).is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn screenshots_are_kept_for_looking() {
    let page = html::render(&sample::report()).expect("the sample is valid");
    let path = write("report.html", &page);
    let cases: [(&str, &[&str]); 2] = [
        ("report-wide.png", &["--window-size=1100,2600"]),
        ("report-dark-narrow.png", &["--window-size=500,3600", "--blink-settings=preferredColorScheme=0"]),
    ];
    for (name, arguments) in cases {
        let picture = folder().join(name);
        let shot = format!("--screenshot={}", picture.display());
        let output = chromium("profile-shot", &path, &[arguments, &[shot.as_str()]].concat());
        assert_eq!(console(&output), [""; 0], "{name}");
        let bytes = std::fs::read(&picture).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(bytes.len() > 10_000, "{name}: more than an empty page, found {} bytes", bytes.len());
    }
}
