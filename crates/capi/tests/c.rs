//! The library as C and C++ programs have it: installed by `cargo xtask install-c`, found by pkg-config, compiled with all
//! warnings as errors, and run under valgrind.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Warnings are errors, and nothing but the standard.
const STRICT: [&str; 5] = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-g"];

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    root.expect("the crate lies in a folder of the repository").to_path_buf()
}

/// Runs a command and returns what it printed.
fn run(command: &mut Command) -> String {
    let done = command.output().unwrap_or_else(|error| {
        panic!("{command:?}: {error}; `cargo xtask test --only packages` installs what tests need")
    });
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        done.status.success(),
        "{command:?} ended with {}\n{}{}",
        done.status,
        text(&done.stdout),
        text(&done.stderr)
    );
    text(&done.stdout)
}

/// A folder of this test's own.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).expect("cargo's folder for tests can be written to");
    folder
}

/// Where the library was installed: once for all tests.
fn prefix() -> &'static Path {
    static PREFIX: OnceLock<PathBuf> = OnceLock::new();
    PREFIX.get_or_init(|| {
        let prefix = folder("c-prefix");
        let mut cargo = Command::new(env!("CARGO"));
        cargo.current_dir(root()).args([
            "run",
            "--quiet",
            "--package",
            "xtask",
            "--",
            "install-c",
            "--profile",
            "dev",
        ]);
        run(cargo.arg("--prefix").arg(&prefix));
        prefix
    })
}

/// Words that pkg-config gives for the library.
fn flags(asked: &[&str]) -> Vec<String> {
    let mut command = Command::new("pkg-config");
    command.env("PKG_CONFIG_PATH", prefix().join("lib/pkgconfig")).args(asked).arg("ocssd");
    run(&mut command).split_whitespace().map(str::to_owned).collect()
}

/// Compiles a source of the repository as `compiler` and `standard` say, against the shared library.
fn compile(source: &str, compiler: &str, standard: &str) -> PathBuf {
    let name = format!("{}-{compiler}", source.replace(['/', '.'], "-"));
    let program = folder("c-programs").join(name);
    let language = if compiler == "g++" { "c++" } else { "c" };
    let mut command = Command::new(compiler);
    command.arg(standard).args(STRICT).args(["-x", language]).arg(root().join(source)).args(["-x", "none"]);
    command.arg("-o").arg(&program).args(flags(&["--cflags", "--libs"])).arg("-lpthread");
    run(&mut command);
    program
}

/// Runs a program under valgrind: wrong accesses and leaks are failures.
fn valgrind(program: &Path, arguments: &[&Path]) -> String {
    let mut command = Command::new("valgrind");
    command.args([
        "--quiet",
        "--error-exitcode=99",
        "--leak-check=full",
        "--show-leak-kinds=definite,indirect",
    ]);
    command.args(["--errors-for-leak-kinds=definite,indirect", "--fair-sched=yes"]);
    let known = root().join("crates/capi/tests/valgrind.supp");
    command.arg(format!("--suppressions={}", known.display()));
    run(command.arg(program).args(arguments).env("LD_LIBRARY_PATH", prefix().join("lib")))
}

fn passes(source: &str, arguments: &[&Path]) {
    valgrind(&compile(source, "gcc", "-std=c11"), arguments);
}

#[test]
fn the_header_is_c11_and_cpp17() {
    for (compiler, standard) in [("gcc", "-std=c11"), ("g++", "-std=c++17")] {
        let program = compile("crates/capi/tests/c/header.c", compiler, standard);
        run(Command::new(program).env("LD_LIBRARY_PATH", prefix().join("lib")));
    }
}

#[test]
fn drives_open_and_close_and_what_cannot_be_opened_says_why() {
    passes("crates/capi/tests/c/drives.c", &[&folder("c-images")]);
}

#[test]
fn raw_commands_reach_the_drive_and_what_is_wrong_is_refused() {
    passes("crates/capi/tests/c/passthrough.c", &[]);
}

#[test]
fn block_targets_keep_what_is_written_and_stand_beside_raw_commands() {
    passes("crates/capi/tests/c/targets.c", &[]);
}

#[test]
fn zones_are_written_managed_and_reported_and_what_is_wrong_is_refused() {
    passes("crates/capi/tests/c/zoned.c", &[]);
}

#[test]
fn pages_are_flushed_once_and_in_order_and_what_is_wrong_is_refused() {
    passes("crates/capi/tests/c/pages.c", &[]);
}

#[test]
fn keys_are_stored_listed_and_changed_together_and_what_is_wrong_is_refused() {
    passes("crates/capi/tests/c/keys.c", &[]);
}

#[test]
fn tables_are_published_edited_together_and_listed_and_what_is_wrong_is_refused() {
    passes("crates/capi/tests/c/tables.c", &[]);
}

#[test]
fn transactions_are_seen_at_their_commit_and_what_is_wrong_is_refused() {
    passes("crates/capi/tests/c/transactions.c", &[]);
}

#[test]
fn drives_share_nothing_and_one_drive_is_for_one_thread_at_a_time() {
    passes("crates/capi/tests/c/threads.c", &[]);
}

#[test]
fn the_examples_do_what_they_say() {
    let vector = valgrind(&compile("examples/c/vector.c", "gcc", "-std=c11"), &[]);
    assert!(vector.contains("read back 32 sectors") && vector.contains("chunk 0: open"), "{vector}");
    let block = valgrind(&compile("examples/c/block.c", "gcc", "-std=c11"), &[]);
    assert!(block.contains("1024 writes") && block.contains("all read back"), "{block}");
    let zones = valgrind(&compile("examples/c/zones.c", "gcc", "-std=c11"), &[]);
    let transactions = valgrind(&compile("examples/c/transactions.c", "gcc", "-std=c11"), &[]);
    assert!(
        transactions.contains("200 commits") && transactions.contains("\n0 of 1000 pages"),
        "{transactions}"
    );
    let pages = valgrind(&compile("examples/c/pages.c", "gcc", "-std=c11"), &[]);
    assert!(
        pages.contains("the session is at 4") && pages.contains("4070 pages of 8387847 bytes, all read back"),
        "{pages}"
    );
    let keys = valgrind(&compile("examples/c/keys.c", "gcc", "-std=c11"), &[]);
    assert!(keys.contains("200 accounts have 20000") && keys.contains("25165824 bytes came back"), "{keys}");
    let tables = valgrind(&compile("examples/c/tables.c", "gcc", "-std=c11"), &[]);
    assert!(
        tables.contains("8 tables became one") && tables.contains("every key has its last value"),
        "{tables}"
    );
    assert!(zones.contains("2048 appends") && zones.contains("896 records read back"), "{zones}");
}

#[test]
fn the_benchmark_runs() {
    let program = compile("crates/capi/benches/read.c", "gcc", "-std=c11");
    let printed = run(Command::new(program).arg("50").env("LD_LIBRARY_PATH", prefix().join("lib")));
    assert_eq!(printed.matches("ns per read").count(), 6, "{printed}");
}

#[test]
fn a_program_linked_with_the_static_library_needs_no_other() {
    let library = prefix().join("lib/libocssd.a");
    let program = folder("c-programs").join("static");
    let mut command = Command::new("gcc");
    command.args(["-std=c11", "-o"]).arg(&program).arg(root().join("crates/capi/tests/c/header.c"));
    let needed = flags(&["--static", "--cflags", "--libs"]).into_iter().filter(|flag| flag != "-locssd");
    run(command.arg(library).args(needed));
    run(&mut Command::new(program));
}
