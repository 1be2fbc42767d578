//! Pages of the log, of which as much is read as they fill.
//!
//! A page is a write unit, and mostly far from full: it goes out when somebody waits for it. So the first sector of each is read,
//! and all of those that say they are longer. The rest of a page takes the channel for as long as a sense or longer, and what
//! shares a channel waits for it. Deliberately not here: which pages are needed (`log_start`), what they mean (`found`).

use super::found::{Known, Pages};
use super::log_start::log_pages_from;
use super::media::Media;
use crate::mount_error::MountError;
use ocssd_base::usize_of;
use ocssd_ftl::log::{LogPage, Lsn, PageError, Record, used_bytes};
use ocssd_lightnvm::Ppa;

/// The pages of the log that may be `start` or younger.
///
/// # Errors
/// If the drive fails, or a page is of a layout that this program does not know.
pub fn read_log<E: Record>(
    media: &mut Media<'_>,
    known: &Known<'_>,
    pages: &mut Pages,
    start: Lsn,
) -> Result<Vec<LogPage<E>>, MountError> {
    let found = log_pages_from(media, known, start)?;
    let firsts: Vec<Ppa> = found.iter().map(|&(_, ppa)| ppa).collect();
    pages.log_pages_read = u64::try_from(firsts.len()).expect("an index");
    let (mut log, mut unknown) = (Vec::new(), None);
    read_used(media, &firsts, known.geometry.ws_min, |index, bytes| match bytes.map(LogPage::decode) {
        Some(Ok(page)) => {
            let newest = pages.newest_in.entry(found[index].0).or_default();
            *newest = (*newest).max(page.lsn);
            pages.newest_generation = pages.newest_generation.max(page.generation);
            log.push(page);
        }
        Some(Err(error @ PageError::Version(_))) => unknown = Some(error),
        Some(Err(PageError::NotALogPage | PageError::Corrupt)) | None => {}
    })?;
    assert!(log.len() <= firsts.len(), "{} pages in {} places", log.len(), firsts.len());
    unknown.map_or(Ok(log), |error| Err(MountError::Unreadable(error.to_string())))
}

/// Reads pages of up to `sectors` that begin there; `found` is told what each fills and perhaps more, or nothing if the media
/// failed any of that. Long ones come last.
fn read_used(
    media: &mut Media<'_>,
    firsts: &[Ppa],
    sectors: u32,
    mut found: impl FnMut(usize, Option<&[u8]>),
) -> Result<(), MountError> {
    assert!(sectors > 0, "pages of no sectors");
    let mut long = Vec::new();
    media.read_pages(firsts, 1, |index, bytes| {
        let page_bytes = bytes.map_or(0, <[u8]>::len) * usize_of(sectors);
        let used = bytes.and_then(used_bytes).filter(|&used| used <= page_bytes);
        if used > bytes.map(<[u8]>::len) {
            long.push(index);
        } else {
            found(index, bytes);
        }
    })?;
    let firsts: Vec<Ppa> = long.iter().map(|&index| firsts[index]).collect();
    media.read_pages(&firsts, sectors, |index, bytes| found(long[index], bytes))
}
