//! A job while its options are read one after another; later ones overwrite earlier ones.

use super::extension::Extension;
use super::job_options::JobOptions;
use super::number::KbBase;
use super::pattern::{BlockSizes, ByDirection, SplitEntry};

/// The settings read so far, with what cannot be settled before all are read.
#[derive(Clone, Debug)]
pub struct Draft {
    /// Settings that need nothing else.
    pub options: JobOptions,
    /// The name, from the section or `name=`.
    pub name: String,
    /// `bs`.
    pub bs: ByDirection<u64>,
    /// `bsrange`; wins over `bs`, as in fio, and over an earlier `bssplit`.
    pub bsrange: ByDirection<Option<(u64, u64)>>,
    /// `bssplit`; wins over `bs`, as in fio, and over an earlier `bsrange`.
    pub bssplit: ByDirection<Option<Vec<SplitEntry>>>,
    /// `openfiles`.
    pub openfiles: Option<u32>,
    /// `randrepeat`.
    pub randrepeat: Option<bool>,
    /// `allrandrepeat`; wins over `randrepeat=0`, as in fio 3.33.
    pub allrandrepeat: bool,
    /// The extension settings.
    pub extension: Extension,
    /// Options that were given, by fio's name, with the value.
    pub given: Vec<(&'static str, String)>,
    /// Sentences to tell the user: option, value, sentence.
    pub notes: Vec<(&'static str, String, String)>,
}

impl Draft {
    /// A job with fio's defaults.
    pub fn new(name: &str) -> Self {
        Self {
            options: JobOptions::default(),
            name: name.to_owned(),
            bs: ByDirection::all(4096),
            bsrange: ByDirection::all(None),
            bssplit: ByDirection::all(None),
            openfiles: None,
            randrepeat: None,
            allrandrepeat: false,
            extension: Extension::default(),
            given: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// The last value given for `option`, or `None`.
    pub fn given(&self, option: &str) -> Option<&str> {
        self.given.iter().rev().find(|(name, _)| *name == option).map(|(_, value)| value.as_str())
    }

    /// Tells the user `sentence` about `option` as it was given.
    pub fn note(&mut self, option: &'static str, sentence: impl Into<String>) {
        let value = self.given(option).unwrap_or_default().to_owned();
        self.notes.push((option, value, sentence.into()));
    }

    /// Settles the block sizes: a split or a range wins over `bs`; there is only one of the two.
    pub fn settle_block_sizes(&mut self) {
        let one = |bs: u64, range: Option<(u64, u64)>, split: &Option<Vec<SplitEntry>>| match (split, range) {
            (Some(entries), _) => BlockSizes::Split(entries.clone()),
            (None, Some((min_bytes, max_bytes))) => BlockSizes::Range { min_bytes, max_bytes },
            (None, None) => BlockSizes::Fixed(bs),
        };
        self.options.block_sizes = ByDirection {
            read: one(self.bs.read, self.bsrange.read, &self.bssplit.read),
            write: one(self.bs.write, self.bsrange.write, &self.bssplit.write),
            trim: one(self.bs.trim, self.bsrange.trim, &self.bssplit.trim),
        };
    }
}

/// One option's value as handed to the code that carries it out.
#[derive(Clone, Copy, Debug)]
pub struct Value<'a> {
    /// The text after `=`, with variables replaced; `1` for an option given alone that may be; empty for a log's name.
    pub text: &'a str,
    /// What `k` means here.
    pub kb_base: KbBase,
}

/// Puts a value into a draft; an error is the sentence that says what is valid.
pub type Apply = fn(&mut Draft, Value<'_>) -> Result<(), String>;
