//! The built program, as a user runs it: in a folder of its own that is removed afterwards.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

static FOLDERS: AtomicU32 = AtomicU32::new(0);

/// A folder of one test, and the program run in it.
pub struct Program {
    folder: PathBuf,
}

/// What the program answered.
pub struct Answer {
    /// Its exit code.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Program {
    /// A fresh folder.
    pub fn new() -> Self {
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let folder =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cli-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("the build directory can be written");
        Self { folder }
    }

    /// A file of the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Writes a file of the folder.
    pub fn write(&self, name: &str, content: &[u8]) {
        std::fs::write(self.path(name), content).expect("the build directory can be written");
    }

    /// The command, ready to be started.
    pub fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ocssd"));
        command.current_dir(&self.folder).args(arguments.split_whitespace());
        command
    }

    /// Runs the program; arguments are separated by blanks.
    pub fn run(&self, arguments: &str) -> Answer {
        let output = self.command(arguments).output().expect("the program was built for this test");
        Answer::of(&output)
    }

    /// Runs the program, which must succeed, and gives its output.
    pub fn good(&self, arguments: &str) -> String {
        let answer = self.run(arguments);
        assert_eq!(answer.code, 0, "`ocssd {arguments}` said:\n{}{}", answer.out, answer.err);
        answer.out
    }

    /// Runs the program, which must succeed, and reads its output as JSON.
    pub fn json(&self, arguments: &str) -> serde_json::Value {
        let text = self.good(arguments);
        serde_json::from_str(&text)
            .unwrap_or_else(|error| panic!("`ocssd {arguments}` is no JSON: {error}\n{text}"))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // What cannot be removed is left in the build directory, which `cargo clean` empties.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Answer {
    /// The verdict of a run in one line: everything before the first blank one.
    pub fn verdict(&self) -> String {
        self.out.split("\n\n").next().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// What a program answered.
    pub fn of(output: &Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}
