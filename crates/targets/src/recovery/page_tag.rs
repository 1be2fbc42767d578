//! Tags of sectors on a medium that keeps nothing beside them: a page is known by what it says of itself.
//!
//! A page of the log is whole in its first sector, and its checksum is judged there. A page of a checkpoint is a unit: its first
//! sector names it, and the unit is read to judge it. What is neither is content, or nothing if it is all zeroes. Content that
//! is a whole page itself, as a copy of an instance would have, cannot be told from one. Deliberately not here: what pages hold.

use super::media::Media;
use crate::mount_error::MountError;
use ocssd_ftl::checkpoint::{CheckpointPage, CheckpointPageError};
use ocssd_ftl::log::{LogEntry, LogPage};
use ocssd_ftl::{Kind, SectorTag, Sequence};
use ocssd_lightnvm::Ppa;

/// What the first sector says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Says {
    Tag(Option<SectorTag>),
    /// It begins as a page of a checkpoint does.
    Checkpoint,
}

/// True if a sector may begin a page: of the log, or of a checkpoint.
pub fn begins_page(sector: &[u8]) -> bool {
    match says(sector) {
        Says::Checkpoint => true,
        Says::Tag(tag) => tag.is_some_and(|tag| tag.kind == Kind::Log),
    }
}

/// The tag each sector would have; `None` where the media lost it, or it would have none.
pub fn read(media: &mut Media<'_>, ppas: &[Ppa]) -> Result<Vec<Option<SectorTag>>, MountError> {
    let unit = media.device.geometry().ws_opt;
    let mut said = Vec::with_capacity(ppas.len());
    media.read_pages(ppas, 1, |_, bytes| said.push(bytes.map_or(Says::Tag(None), says)))?;
    assert_eq!(said.len(), ppas.len(), "every sector was asked for");
    let is_page = |&at: &usize| said[at] == Says::Checkpoint && ppas[at].sector.is_multiple_of(unit);
    let at: Vec<usize> = (0..ppas.len()).filter(is_page).collect();
    let firsts: Vec<Ppa> = at.iter().map(|&at| ppas[at]).collect();
    media.read_pages(&firsts, unit, |index, bytes| {
        if let Some(Ok((page, _))) = bytes.map(CheckpointPage::decode) {
            said[at[index]] = Says::Tag(Some(tag(Kind::Map, 0, page.serial.0)));
        }
    })?;
    let tag_of = |says| if let Says::Tag(tag) = says { tag } else { Some(tag(Kind::Data, 0, 0)) };
    Ok(said.into_iter().map(tag_of).collect())
}

const fn tag(kind: Kind, block: u64, sequence: u64) -> SectorTag {
    SectorTag { kind, block, sequence: Sequence(sequence) }
}

fn says(sector: &[u8]) -> Says {
    if let Ok(page) = LogPage::<LogEntry>::decode(sector) {
        return Says::Tag(Some(tag(Kind::Log, page.lsn.0, page.generation.0)));
    }
    match CheckpointPage::decode(sector) {
        Err(CheckpointPageError::NotACheckpointPage) => {
            let is_content = sector.iter().any(|&byte| byte != 0);
            Says::Tag(is_content.then_some(tag(Kind::Data, 0, 0)))
        }
        _ => Says::Checkpoint,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_name_themselves_and_zeroes_are_nothing() {
        let mut sector = vec![0; 4096];
        assert_eq!(says(&sector), Says::Tag(None));
        assert!(!begins_page(&sector), "nothing is no page");
        sector[..4].copy_from_slice(b"OCKP");
        assert!(begins_page(&sector), "it may be one");
        assert_eq!(says(&sector), Says::Checkpoint, "the whole unit is to be judged");
        sector[..4].copy_from_slice(b"OLOG");
        assert_eq!(says(&sector), Says::Tag(Some(tag(Kind::Data, 0, 0))), "a torn page is none");
    }
}
