//! An entry of the log of a page store, in as many bytes as any entry has.
//!
//! Kind 1 byte, page or session 8, then a spot 5, another 5, bytes 3; or a number of 8. A page is a run of `PagePart` entries, the
//! first of which says so. Deliberately not here: what an entry does (`map`).

use super::extent::{Extent, PART_BYTES_MAX, SPOT_MAX, Spot};
use ocssd_ftl::log::{Count, ENTRY_BYTES, Record, TransactionId};
use ocssd_lightnvm::interface::log_structured::{PageId, SessionId, Wsn};

/// What a flush changed, or garbage collection, or that a transaction ends here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A page is what lies here, and whatever `Next` entries follow.
    First(PageId, Extent),
    /// A page goes on here.
    Next(PageId, Extent),
    /// A page is not there any more.
    Deleted(PageId),
    /// What lay at the extent is at the spot, if the page still has it when this is applied.
    Moved(PageId, Extent, Spot),
    /// A session is so far.
    Session(SessionId, Wsn),
    /// A session ended.
    Closed(SessionId),
    /// The entries before this one are true from now on, all of them or none.
    Commit(TransactionId, Count),
}

const FIRST: u8 = 1;
const NEXT: u8 = 2;
const DELETED: u8 = 3;
const MOVED: u8 = 4;
const SESSION: u8 = 5;
const CLOSED: u8 = 6;
const COMMIT: u8 = 7;

fn put(out: &mut [u8], number: u64) {
    let bytes = number.to_le_bytes();
    assert!(bytes[out.len()..].iter().all(|&byte| byte == 0), "{number} does not fit {} bytes", out.len());
    out.copy_from_slice(&bytes[..out.len()]);
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |high, &byte| high << 8 | u64::from(byte))
}

impl Record for Entry {
    fn encode(&self) -> [u8; ENTRY_BYTES] {
        let mut bytes = [0; ENTRY_BYTES];
        let nothing = Extent { spot: Spot(0), bytes: 0 };
        let (kind, name, extent, last) = match *self {
            Self::First(page, extent) => (FIRST, page.0, extent, 0),
            Self::Next(page, extent) => (NEXT, page.0, extent, 0),
            Self::Deleted(page) => (DELETED, page.0, nothing, 0),
            Self::Moved(page, extent, to) => (MOVED, page.0, extent, to.0),
            Self::Session(session, wsn) => (SESSION, session.0, nothing, wsn.0),
            Self::Closed(session) => (CLOSED, session.0, nothing, 0),
            Self::Commit(transaction, entries) => (COMMIT, transaction.0, nothing, u64::from(entries)),
        };
        bytes[0] = kind;
        put(&mut bytes[1..9], name);
        if matches!(kind, SESSION | COMMIT) {
            put(&mut bytes[9..17], last);
        } else {
            assert!(
                extent.spot.0 <= SPOT_MAX && extent.bytes <= PART_BYTES_MAX,
                "{self:?} is too far or long"
            );
            put(&mut bytes[9..14], extent.spot.0);
            put(&mut bytes[14..19], last);
            put(&mut bytes[19..22], u64::from(extent.bytes));
        }
        bytes
    }

    fn decode(bytes: &[u8; ENTRY_BYTES]) -> Option<Self> {
        let (name, large) = (number(&bytes[1..9]), number(&bytes[9..17]));
        let part = u32::try_from(number(&bytes[19..22])).ok()?;
        let extent = Extent { spot: Spot(number(&bytes[9..14])), bytes: part };
        Some(match bytes[0] {
            FIRST => Self::First(PageId(name), extent),
            NEXT => Self::Next(PageId(name), extent),
            DELETED => Self::Deleted(PageId(name)),
            MOVED => Self::Moved(PageId(name), extent, Spot(number(&bytes[14..19]))),
            SESSION => Self::Session(SessionId(name), Wsn(large)),
            CLOSED => Self::Closed(SessionId(name)),
            COMMIT => Self::Commit(TransactionId(name), u32::try_from(large).ok()?),
            _ => return None,
        })
    }

    fn commit(transaction: TransactionId, entries: Count) -> Self {
        Self::Commit(transaction, entries)
    }

    fn as_commit(&self) -> Option<(TransactionId, Count)> {
        if let Self::Commit(transaction, entries) = *self { Some((transaction, entries)) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back_with_the_largest_numbers() {
        let extent = Extent { spot: Spot(SPOT_MAX), bytes: PART_BYTES_MAX };
        let (page, session) = (PageId(u64::MAX), SessionId(u64::MAX - 1));
        for entry in [
            Entry::First(page, extent),
            Entry::Next(page, extent),
            Entry::Deleted(page),
            Entry::Moved(page, extent, Spot(SPOT_MAX - 1)),
            Entry::Session(session, Wsn(u64::MAX)),
            Entry::Closed(session),
            Entry::Commit(TransactionId(u64::MAX), u32::MAX),
        ] {
            assert_eq!(Entry::decode(&entry.encode()), Some(entry));
        }
        assert_eq!(Entry::decode(&[0; ENTRY_BYTES]), None);
        assert_eq!(Entry::commit(TransactionId(3), 4).as_commit(), Some((TransactionId(3), 4)));
    }
}
