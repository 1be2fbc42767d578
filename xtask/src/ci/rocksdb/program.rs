//! A program of RocksDB's with the plugin loaded, and what it prints.

use anyhow::{Context, Result, bail, ensure};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Which one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// Makes load.
    DbBench,
    /// Looks into databases.
    Ldb,
    /// Looks into tables.
    SstDump,
    /// Finds what a file system lost; built from source.
    DbStress(PathBuf),
}

impl Program {
    fn path(&self) -> &Path {
        match self {
            Self::DbBench => Path::new("db_bench"),
            Self::Ldb => Path::new("ldb"),
            Self::SstDump => Path::new("sst_dump"),
            Self::DbStress(path) => path,
        }
    }
}

/// Where the programs run, and with what.
pub struct Rocks {
    directory: PathBuf,
    plugin: PathBuf,
}

impl Rocks {
    /// An empty directory for their images.
    ///
    /// Errors: it cannot be made.
    pub fn new(directory: PathBuf, plugin: PathBuf) -> Result<Self> {
        ensure!(plugin.is_file(), "the plugin was built, and is not at {}", plugin.display());
        if directory.exists() {
            fs::remove_dir_all(&directory)
                .with_context(|| format!("{} cannot be emptied", directory.display()))?;
        }
        fs::create_dir_all(&directory).with_context(|| format!("{} cannot be made", directory.display()))?;
        Ok(Self { directory, plugin })
    }

    /// A file of theirs.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Writes a file the programs are given.
    ///
    /// Errors: it cannot be written.
    pub fn write(&self, name: &str, text: &str) -> Result<()> {
        fs::write(self.directory.join(name), text).with_context(|| format!("{name} cannot be written"))
    }

    /// Makes a folder the programs are given.
    ///
    /// Errors: it cannot be made.
    pub fn make_folder(&self, name: &str) -> Result<()> {
        fs::create_dir(self.directory.join(name)).with_context(|| format!("{name} cannot be made"))
    }

    /// Copies a file the programs were given, or made.
    ///
    /// Errors: it cannot be copied.
    pub fn copy(&self, from: &str, to: &str) -> Result<()> {
        let mut copy = Command::new("cp");
        crate::process::run(copy.current_dir(&self.directory).args(["--sparse=always", from, to]))
    }

    /// Cuts the end of a file off.
    ///
    /// Errors: it cannot be cut.
    pub fn shorten(&self, name: &str, bytes: u64) -> Result<()> {
        let file = fs::OpenOptions::new().write(true).open(self.directory.join(name));
        let file = file.with_context(|| format!("{name} cannot be opened"))?;
        let length = file.metadata()?.len();
        ensure!(length > bytes, "{name} has {length} bytes, too few to cut {bytes} off");
        file.set_len(length - bytes).with_context(|| format!("{name} cannot be cut"))
    }

    /// What a file has.
    ///
    /// Errors: it cannot be read.
    pub fn content(&self, name: &str) -> Result<Vec<u8>> {
        fs::read(self.directory.join(name)).with_context(|| format!("{name} cannot be read"))
    }

    /// Compiles a client of Debian's library and runs it on a store. Returns what it printed.
    ///
    /// Errors: it cannot be compiled, or does not succeed.
    pub fn client(&self, name: &str, source: &str, store: &str) -> Result<String> {
        let file = format!("{name}.cc");
        self.write(&file, source)?;
        let mut compile = Command::new("g++");
        compile.current_dir(&self.directory).args(["-std=c++17", "-w", "-o", name, &file, "-lrocksdb"]);
        crate::process::run(&mut compile).with_context(|| format!("{file} cannot be compiled"))?;
        let mut command = Command::new(self.directory.join(name));
        command.current_dir(&self.directory).env("LD_PRELOAD", &self.plugin);
        command.arg(format!("lightlsm://{store}"));
        Line { command }.succeeds()
    }

    /// RocksDB's script `db_crashtest.py`, in which `db_stress` runs on a store; with an empty folder for what is expected.
    ///
    /// Errors: the folder cannot be made.
    pub fn crash_test(&self, program: &Program, script: &Path, kind: &str, store: &str) -> Result<Line> {
        // The script starts python's own processes too, which the plugin is not for.
        let start = format!(
            "#!/bin/sh\nLD_PRELOAD='{}' exec '{}' \"$@\"\n",
            self.plugin.display(),
            program.path().display()
        );
        self.write("db_stress.sh", &start)?;
        let shell = self.directory.join("db_stress.sh");
        fs::set_permissions(&shell, fs::Permissions::from_mode(0o755))
            .context("db_stress.sh stays a text")?;
        let folder = self.directory.join(format!("crash-{}", store.replace(['=', ',', '.'], "-")));
        fs::create_dir(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
        let mut command = Command::new("python3");
        command.current_dir(&self.directory).env("TEST_TMPDIR", folder).arg(script);
        command.arg(format!("--stress_cmd={}", shell.display())).arg(kind);
        command.arg(format!("--fs_uri=lightlsm://{store}"));
        Ok(Line { command })
    }

    /// RocksDB's tests of an `Env`, on a store. One of them makes its folder on the host too. Returns what they printed.
    ///
    /// Errors: the folder cannot be made, or a test fails.
    pub fn env_tests(&self, program: &Path, store: &str) -> Result<String> {
        let folder = self.directory.join("env");
        fs::create_dir(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
        let mut command = Command::new(program);
        command.current_dir(&self.directory).env("LD_PRELOAD", &self.plugin).env("TEST_TMPDIR", folder);
        command.env("TEST_FS_URI", format!("lightlsm://{store}")).arg("--gtest_filter=CustomEnv*");
        Line { command }.succeeds()
    }

    /// RocksDB's tests of databases whose names `filter` lets pass, on a store.
    ///
    /// Errors: the folder that they name their databases by cannot be made.
    pub fn own_tests(&self, program: &Path, store: &str, filter: &str) -> Result<Line> {
        let folder = self.directory.join("own-tests");
        fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
        let mut command = Command::new(program);
        command.current_dir(&self.directory).env("LD_PRELOAD", &self.plugin).env("TEST_TMPDIR", folder);
        command.env("TEST_FS_URI", format!("lightlsm://{store}")).arg(format!("--gtest_filter={filter}"));
        Ok(Line { command })
    }

    /// A program on a store.
    pub fn program(&self, program: &Program, store: &str) -> Line {
        let mut command = Command::new(program.path());
        command.current_dir(&self.directory).env("LD_PRELOAD", &self.plugin);
        command.arg(format!("--fs_uri=lightlsm://{store}"));
        if *program != Program::SstDump {
            command.arg("--db=/db");
        }
        Line { command }
    }
}

/// A command line.
pub struct Line {
    command: Command,
}

impl Line {
    /// With these arguments too.
    pub fn args(mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.command.args(args);
        self
    }

    /// What it printed, on both ways out.
    ///
    /// Errors: it did not succeed.
    pub fn succeeds(self) -> Result<String> {
        let shown = crate::process::line(&self.command);
        let (code, told) = self.run()?;
        ensure!(code == Some(0), "`{shown}` ended with {code:?} after printing:\n{told}");
        Ok(told)
    }

    /// What it printed when it was refused.
    ///
    /// Errors: it succeeded, or crashed instead of ending.
    pub fn fails(self) -> Result<String> {
        let shown = crate::process::line(&self.command);
        match self.run()? {
            (Some(0), told) => bail!("`{shown}` should be refused, but succeeded after printing:\n{told}"),
            (None, told) => bail!("`{shown}` should end, but crashed after printing:\n{told}"),
            (Some(_), told) => Ok(told),
        }
    }

    /// The exit code, `None` after a signal, and what was printed.
    ///
    /// Errors: it cannot be started.
    pub fn run(mut self) -> Result<(Option<i32>, String)> {
        let shown = crate::process::line(&self.command);
        let done = self.command.output().with_context(|| format!("`{shown}` could not be started"))?;
        let told = [done.stdout, done.stderr].concat();
        Ok((done.status.code(), String::from_utf8_lossy(&told).into_owned()))
    }

    /// Starts it; what it prints as errors and progress comes by a pipe.
    ///
    /// Errors: it cannot be started.
    pub fn start(mut self) -> Result<Child> {
        let shown = crate::process::line(&self.command);
        let started = self.command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
        started.with_context(|| format!("`{shown}` could not be started"))
    }
}
