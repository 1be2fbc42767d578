//! Everything a page store holds, and the ways it changes.

use ocssd_lightnvm::interface::log_structured::{PageId, SessionId, Wsn};
use std::collections::BTreeMap;

/// All pages, and how far each session is. A session of which nothing is left is as one that was never flushed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogImage {
    /// Open sessions, with the last flush that is applied.
    pub sessions: BTreeMap<SessionId, Wsn>,
    /// Pages.
    pub pages: BTreeMap<PageId, Vec<u8>>,
}

/// What happens to a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogChange {
    /// It began.
    Opened,
    /// It ended.
    Closed,
    /// It flushed: pages with their content, `None` of deleted ones.
    Flushed(Wsn, Vec<(PageId, Option<Vec<u8>>)>),
}

impl LogImage {
    /// Carries out a change of a session.
    pub fn change(&mut self, session: SessionId, change: &LogChange) {
        match change {
            LogChange::Opened => {
                self.sessions.insert(session, Wsn(0));
            }
            LogChange::Closed => {
                self.sessions.remove(&session);
            }
            LogChange::Flushed(wsn, pages) => {
                self.sessions.insert(session, *wsn);
                for (page, content) in pages {
                    match content {
                        Some(content) => self.pages.insert(*page, content.clone()),
                        None => self.pages.remove(page),
                    };
                }
            }
        }
    }

    /// Bytes of all pages.
    #[must_use]
    pub fn live_bytes(&self) -> u64 {
        self.pages.values().map(|content| content.len() as u64).sum()
    }

    /// How far a session is; 0 if it is not open.
    #[must_use]
    pub fn applied(&self, session: SessionId) -> Wsn {
        self.sessions.get(&session).copied().unwrap_or_default()
    }
}
