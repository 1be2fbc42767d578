//! What a device says once it itself has failed, as a full file system below an image makes it: one line, once.
//!
//! Clients are told by the status of each request; whoever runs the server reads the cause here. Deliberately not here: what
//! a failure ends, which is the device's and the targets' to know.

use super::server::Server;
use crate::served_target::ServedTarget;
use ocssd_lightnvm::Device;

/// The sentence of a device that has failed. Asked after every round, so it costs nothing while there is none.
pub type FailureOf<D> = for<'a> fn(&'a D) -> Option<&'a str>;

/// What was told of one device.
#[derive(Debug, Default)]
pub struct Told(Option<String>);

impl Told {
    /// The sentence, if it was not told yet.
    pub fn news(&mut self, sentence: Option<&str>) -> Option<String> {
        if sentence.is_none() || self.0.as_deref() == sentence {
            return None;
        }
        self.0 = sentence.map(str::to_owned);
        self.0.clone()
    }
}

impl<D: Device, T: ServedTarget + ?Sized> Server<D, T> {
    /// Tells of a failure of the device, in its own words.
    pub fn tell_failures(&mut self, failure_of: FailureOf<D>) {
        self.failure_of = Some(failure_of);
    }

    /// Tells what the devices say since the last round.
    pub(super) fn tell_failure(&mut self) {
        let sentence = self.failure_of.and_then(|failure_of| failure_of(self.host.device()));
        let raw = self.dispatcher.raw.as_ref().and_then(|raw| raw.drive.failure());
        for news in [self.told.0.news(sentence), self.told.1.news(raw)].into_iter().flatten() {
            (self.log)(&news);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_is_told_once_and_another_again() {
        let mut told = Told::default();
        assert_eq!(told.news(None), None);
        assert_eq!(told.news(Some("no room")).as_deref(), Some("no room"));
        assert_eq!(told.news(Some("no room")), None);
        assert_eq!(told.news(Some("no disk")).as_deref(), Some("no disk"));
        assert_eq!(told.news(None), None);
    }
}
