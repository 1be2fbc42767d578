//! The page of a profile in a real browser: it draws, its script works, nothing is on its console.
//!
//! Needs Debian's package `chromium`; the test says so when it is missing. Page and screenshot stay in the target folder, to be
//! looked at.

#[path = "../../report/tests/chromium/mod.rs"]
mod chromium;

use chromium::{console, left_behind};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Presses the first legend entry there is, points at a marker of every picture, and leaves what happened as attributes.
const PROBE: &str = r#"<script>
const out = document.documentElement;
const pictures = [...document.querySelectorAll(".wide svg")];
out.dataset.pictures = pictures.length;
let tips = 0;
for (const svg of pictures) {
  const mark = svg.querySelector(".series .pt");
  if (!mark) continue;
  const box = mark.getBoundingClientRect();
  const at = { clientX: box.left + box.width / 2, clientY: box.top + box.height / 2, bubbles: true };
  svg.dispatchEvent(new PointerEvent("pointermove", at));
  if (document.getElementById("tip").textContent !== "") tips += 1;
  svg.dispatchEvent(new PointerEvent("pointerleave"));
}
out.dataset.tips = tips;
out.dataset.overflow = out.scrollWidth > innerWidth;
</script></body>"#;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("profile-page")
}

fn open(page: &Path, arguments: &[&str]) -> Output {
    chromium::open(&folder().join("browser"), page, arguments)
}

#[test]
fn every_picture_of_a_profile_draws_and_answers() {
    std::fs::create_dir_all(folder()).expect("the target folder can be written");
    let arguments = "profile --emulated qemu --ftl pblk:over_provisioning_percent=20 --size 33554432 --quick --time 300ms --repetitions 2 --quiet --compare d7-p5600 --out .";
    let run =
        Command::new(env!("CARGO_BIN_EXE_ocssd")).args(arguments.split(' ')).current_dir(folder()).output();
    let run = run.expect("the program was built for this test");
    assert!(matches!(run.status.code(), Some(0 | 1)), "{}", String::from_utf8_lossy(&run.stderr));
    let page = std::fs::read_to_string(folder().join("report.html")).expect("a page is kept");
    let probed = folder().join("probed.html");
    std::fs::write(&probed, page.replace("</body>", PROBE)).expect("the target folder can be written");
    for size in ["--window-size=1100,900", "--window-size=500,900"] {
        let output = open(&probed, &[size, "--dump-dom"]);
        assert_eq!(console(&output), [""; 0], "{size}");
        let seen = String::from_utf8_lossy(&output.stdout);
        assert_eq!(left_behind(&seen, "overflow"), "false", "{size}: nothing is wider than the window");
        if size.contains("1100") {
            let pictures: usize = left_behind(&seen, "pictures").parse().expect("a number");
            assert!(pictures >= 10, "{pictures} pictures");
            assert_eq!(left_behind(&seen, "tips"), pictures.to_string(), "every picture answers the pointer");
        }
    }
    let picture = folder().join("page.png");
    let shot = format!("--screenshot={}", picture.display());
    let output = open(&folder().join("report.html"), &["--window-size=1100,6500", &shot]);
    assert_eq!(console(&output), [""; 0]);
    assert!(std::fs::metadata(&picture).is_ok_and(|about| about.len() > 50_000), "more than an empty page");
}
