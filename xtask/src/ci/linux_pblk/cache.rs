//! Where what takes long to make is kept: outside the repository, so that a clean build and a second clone find it.
//!
//! `$XDG_CACHE_HOME/ocssd/linux-pblk`, which is `~/.cache/ocssd/linux-pblk` if the variable is not set. Each part lies in a
//! folder with a note of what it was made of, written last: an interrupted making is begun anew. Removing the folder is
//! always safe, and is how newer versions of the packages are taken.

use anyhow::{Context, Result};
use std::env;
use std::fs;
use std::path::PathBuf;

/// A part of the cache.
pub struct Part {
    /// Where it lies.
    pub folder: PathBuf,
}

/// The cache itself.
///
/// Errors: there is no home, or it cannot be written.
pub fn folder() -> Result<PathBuf> {
    let base = env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let folder =
        base.or_else(home).context("neither HOME nor XDG_CACHE_HOME is set")?.join("ocssd/linux-pblk");
    fs::create_dir_all(&folder).with_context(|| format!("{} could not be made", folder.display()))?;
    Ok(folder)
}

impl Part {
    /// A part by name; it may not be there.
    pub fn new(cache: &std::path::Path, name: &str) -> Self {
        Self { folder: cache.join(name) }
    }

    /// The version of what lies there, if it was made by this recipe.
    pub fn made_by(&self, recipe: &str) -> Option<String> {
        let note = fs::read_to_string(self.note()).ok()?;
        let (version, rest) = note.split_once('\n')?;
        (rest == recipe).then(|| version.to_owned())
    }

    /// Empties it, to be made.
    ///
    /// Errors: it cannot be emptied.
    pub fn begin(&self) -> Result<()> {
        if self.folder.exists() {
            fs::remove_dir_all(&self.folder)
                .with_context(|| format!("{} could not be removed", self.folder.display()))?;
        }
        fs::create_dir_all(&self.folder)
            .with_context(|| format!("{} could not be made", self.folder.display()))
    }

    /// Says that it is made.
    ///
    /// Errors: the disk is full.
    pub fn end(&self, version: &str, recipe: &str) -> Result<()> {
        let text = format!("{version}\n{recipe}");
        fs::write(self.note(), text)
            .with_context(|| format!("{} could not be written", self.note().display()))
    }

    fn note(&self) -> PathBuf {
        self.folder.join("made-of")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_there_when_it_was_ended_and_the_recipe_is_the_same() {
        let place = env::temp_dir().join(format!("ocssd-cache-test-{}", std::process::id()));
        let part = Part::new(&place, "part");
        assert_eq!(part.made_by("a\nb"), None);
        part.begin().unwrap();
        assert_eq!(part.made_by("a\nb"), None);
        part.end("1.2-3", "a\nb").unwrap();
        assert_eq!(part.made_by("a\nb").as_deref(), Some("1.2-3"));
        assert_eq!(part.made_by("a\nc"), None);
        part.begin().unwrap();
        assert_eq!(part.made_by("a\nb"), None);
        fs::remove_dir_all(&place).unwrap();
    }
}
