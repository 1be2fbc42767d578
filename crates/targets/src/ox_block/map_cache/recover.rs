//! The map as a mount finds it: whole in the checkpoint, or in pages on media.
//!
//! Pages are read once, a batch at a time, to know what is valid. Each is taken from the checkpoint or from where the log says that
//! it lies, whichever has the newer transaction, and what the log has beyond that is applied. Those that changed by it stay in
//! memory, and others as far as there is room. A page that the media lost is lost for the blocks of which the log says nothing.
//! Deliberately not here: finding checkpoint and log (`recovery`), how entries are applied (`super::super::map`).

use super::super::map;
use super::image::{CHANGED, HOMES};
use super::pages::{MapPages, PageNumber, pages_of};
use super::{entry_bytes, lost_place, new_l2p, page_bytes, page_codec, page_size};
use crate::mount_error::MountError;
use crate::ox::canary::Canary;
use crate::ox::options::Options;
use crate::recovery::found::Known;
use crate::recovery::media::Media;
use ocssd_base::usize_of;
use ocssd_ftl::checkpoint::{SectionName, Sections};
use ocssd_ftl::log::{LogEntry, Transaction, TransactionId};
use ocssd_ftl::{ChunkIndex, InstanceGeometry, L2p, Mapped, PhysicalAddress, ShardSize, ValidMap};
use ocssd_lightnvm::{Geometry, Ppa};
use std::collections::{BTreeMap, BTreeSet};

/// The section of a whole map: its entries, in order.
pub const MAP: SectionName = *b"map     ";
/// Pages read at a time (chosen: as many as a batch of a mount has commands).
const BATCH: usize = 64;

/// The map of an instance, as recovery knows it.
#[derive(Debug)]
pub struct BlockMap {
    pub l2p: L2p,
    /// What is in pages; none of a map that is all in memory.
    pub pages: Option<MapPages>,
    found: Option<FoundPages>,
    /// What is valid, if pages were read.
    valid: Option<ValidMap>,
    /// It was whole, and is in pages from now on.
    is_new_in_pages: bool,
}

/// Pages as checkpoint and log tell of them.
#[derive(Debug, Default)]
struct FoundPages {
    homes: Vec<u64>,
    /// Pages that the log says were written after the checkpoint.
    moved: BTreeSet<PageNumber>,
    /// The entries of those that had changed at the checkpoint.
    changed: BTreeMap<PageNumber, Vec<u8>>,
    /// The newest transaction of the checkpoint.
    applied: TransactionId,
    /// What the log has, within a page each, in order.
    entries: Vec<(PageNumber, TransactionId, LogEntry)>,
}

impl FoundPages {
    fn home(&self, page: PageNumber) -> Option<PhysicalAddress> {
        Some(PhysicalAddress(self.homes[page.index()])).filter(|place| place.0 != u64::MAX)
    }

    /// A page must be read: the checkpoint has it not, or not as the log says it is.
    fn is_read(&self, page: PageNumber) -> bool {
        self.home(page).is_some() && (self.moved.contains(&page) || !self.changed.contains_key(&page))
    }
}

impl BlockMap {
    /// The map of a new instance.
    pub fn fresh(geometry: &Geometry, shape: &InstanceGeometry, blocks: u64, options: &Options) -> Self {
        let size = page_size(geometry, shape, options).expect("it was looked at before");
        Self {
            l2p: new_l2p(shape, blocks, size.map_or_else(ShardSize::default, |(size, _)| size)),
            pages: size.map(|(size, most)| MapPages::new(blocks, size, most)),
            found: None,
            valid: None,
            is_new_in_pages: false,
        }
    }

    /// The map in a checkpoint of transactions up to `applied`.
    ///
    /// # Errors
    /// A sentence, if there is none that fits.
    pub fn load(
        sections: &Sections,
        geometry: &Geometry,
        shape: &InstanceGeometry,
        (blocks, applied): (u64, TransactionId),
        options: &Options,
    ) -> Result<Self, String> {
        if let Ok(homes) = sections.get(HOMES) {
            let changed = sections.get(CHANGED).map_err(|error| error.to_string())?;
            return Self::of_pages((homes, changed), geometry, shape, (blocks, applied), options);
        }
        let mut map = Self::fresh(geometry, shape, blocks, options);
        let whole = sections.get(MAP).map_err(|error| error.to_string())?;
        map.l2p.decode(0, whole).map_err(|error| error.to_string())?;
        map.is_new_in_pages = map.pages.is_some();
        Ok(map)
    }

    fn of_pages(
        (homes, changed): (&[u8], &[u8]),
        geometry: &Geometry,
        shape: &InstanceGeometry,
        (blocks, applied): (u64, TransactionId),
        options: &Options,
    ) -> Result<Self, String> {
        let torn = || "where pages of the map lie should be said for each, but is not".to_owned();
        let mut numbers = homes.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
        let size =
            numbers.next().and_then(|size| ShardSize::new(u32::try_from(size).ok()?)).ok_or_else(torn)?;
        let homes: Vec<u64> = numbers.collect();
        let is_there = |&home: &u64| home == u64::MAX || home < shape.places();
        if homes.len() != usize_of(pages_of(blocks, size)) || !homes.iter().all(is_there) {
            return Err(torn());
        }
        // Whatever the options say of its size, it is this instance's.
        let cache = options.map_cache_bytes.unwrap_or(u64::MAX);
        let bytes = u32::try_from(size.sectors()).expect("a page is small") * entry_bytes(shape);
        let own = Options { map_cache_bytes: Some(cache), map_page_bytes: Some(bytes), ..options.clone() };
        let mut map = Self::fresh(geometry, shape, blocks, &own);
        let mut found = FoundPages { homes, applied, ..FoundPages::default() };
        let mut rest = changed;
        while let Some((number, after)) = rest.split_first_chunk::<4>() {
            let page = PageNumber(u32::from_le_bytes(*number));
            if page.index() >= found.homes.len() {
                return Err(torn());
            }
            let bytes = page_bytes(&map.l2p, page);
            found.changed.insert(page, after.get(..bytes).ok_or_else(torn)?.to_vec());
            rest = &after[bytes..];
        }
        map.found = Some(found);
        Ok(map)
    }

    /// What an instance whose map is in pages keeps, whatever the options say.
    ///
    /// # Errors
    /// A sentence, if the options ask for pages of another size.
    pub fn take_over(&self, options: &mut Options) -> Result<(), String> {
        let Some(pages) = self.pages.as_ref().filter(|_| self.valid.is_some()) else { return Ok(()) };
        let bytes = u32::try_from(pages.size().sectors()).expect("a page is small") * self.l2p.entry_bytes();
        if let Some(asked) = options.map_page_bytes.filter(|&asked| asked != bytes) {
            return Err(format!(
                "pages of this instance's map have {bytes} bytes, but map_page_bytes asks for {asked}: leave it out, or give \
                 {bytes}"
            ));
        }
        options.map_page_bytes = Some(bytes);
        options.map_cache_bytes = Some(options.map_cache_bytes.unwrap_or(u64::MAX));
        Ok(())
    }

    /// Makes a transaction true; false if it names what the instance does not have.
    pub fn replay(
        &mut self,
        transaction: &Transaction<LogEntry>,
        shape: &InstanceGeometry,
        options: &Options,
    ) -> bool {
        let Self { l2p, found, .. } = self;
        let blocks = l2p.sectors();
        let pages = found
            .as_ref()
            .map_or(u64::from(u32::MAX), |found| u64::try_from(found.homes.len()).expect("few"));
        let (own, others): (Vec<LogEntry>, Vec<LogEntry>) = transaction
            .entries
            .iter()
            .partition(|entry| matches!(entry, LogEntry::Write { lba, .. } if *lba >= blocks));
        if !map::fits(&own, blocks + pages, shape.places()) || !map::fits(&others, blocks, shape.places()) {
            return false;
        }
        match found {
            None => map::replay(l2p, &others, options.has_canary(Canary::MovesStale)),
            Some(found) => {
                own.iter().for_each(|entry| found.page_is_at(entry, blocks));
                let clip = |entry| within_pages(entry, l2p.shard_size());
                let parts =
                    others.into_iter().flat_map(clip).map(|(page, part)| (page, transaction.id, part));
                found.entries.extend(parts);
            }
        }
        true
    }

    /// Reads pages, and applies what the log has.
    ///
    /// # Errors
    /// If the drive fails.
    pub fn complete(
        &mut self,
        media: &mut Media<'_>,
        known: &Known<'_>,
        options: &Options,
    ) -> Result<(), MountError> {
        let Some(mut found) = self.found.take() else {
            self.all_changed();
            return Ok(());
        };
        // Entries of a page stay in their order.
        found.entries.sort_by_key(|&(page, ..)| page);
        let mut valid = ValidMap::by_chunks(known.shape);
        let all: Vec<PageNumber> =
            (0..u32::try_from(found.homes.len()).expect("few")).map(PageNumber).collect();
        for batch in all.chunks(BATCH) {
            let read: Vec<PageNumber> = batch.iter().copied().filter(|&page| found.is_read(page)).collect();
            let mut contents = read_batch(media, known, &found, &read)?;
            for &page in batch {
                let content = contents.remove(&page);
                self.recover_page(page, (content, read.contains(&page)), &mut found, options);
                self.account(page, known, &mut valid);
            }
        }
        assert!(found.entries.is_empty() || !all.is_empty(), "the log changes a map without pages");
        self.valid = Some(valid);
        Ok(())
    }

    /// A map that was whole is in pages from now on, none of which is on media.
    fn all_changed(&mut self) {
        let Some(pages) = self.pages.as_mut().filter(|_| self.is_new_in_pages) else { return };
        for page in (0..pages.count()).map(PageNumber) {
            pages.arrived(page, false);
            pages.changed(page);
        }
    }

    /// The entries of a page: those of the checkpoint or those on media, and what came after.
    fn recover_page(
        &mut self,
        page: PageNumber,
        (content, was_read): (Option<(TransactionId, Vec<u8>)>, bool),
        found: &mut FoundPages,
        options: &Options,
    ) {
        let Self { l2p, pages, .. } = self;
        let pages = pages.as_mut().expect("it is in pages");
        if let Some(home) = found.home(page) {
            pages.move_home(page, home);
        }
        let kept = found.changed.remove(&page).map(|bytes| (found.applied, bytes));
        let is_kept =
            kept.as_ref().is_some_and(|(at, _)| content.as_ref().is_none_or(|(newer, _)| newer < at));
        let newest = if is_kept { kept } else { content };
        let blocks = l2p.shard_sectors(page.index());
        let bytes_of = page_bytes(l2p, page);
        let decoded =
            newest.and_then(|(at, bytes)| l2p.decode(blocks.start, &bytes[..bytes_of]).ok().map(|()| at));
        let is_lost = decoded.is_none() && was_read;
        if is_lost && !options.has_canary(Canary::LostPageAsZeroes) {
            // The last of the places that the map was made for.
            let lost = Mapped::Media(lost_place(l2p.places() - 1));
            for block in blocks {
                l2p.set(block, lost);
            }
        }
        // Of a lost page nobody knows how new it was: the log has all that came after the checkpoint.
        let since = decoded.unwrap_or(TransactionId(0));
        let first = found.entries.partition_point(|&(other, ..)| other < page);
        let own = found.entries[first..].iter().take_while(|&&(other, ..)| other == page);
        let newer: Vec<LogEntry> =
            own.filter(|&&(_, id, _)| id > since).map(|&(_, _, entry)| entry).collect();
        map::replay(l2p, &newer, options.has_canary(Canary::MovesStale));
        pages.arrived(page, false);
        if is_kept || is_lost || !newer.is_empty() {
            pages.changed(page);
        }
    }

    /// Notes what a page makes valid. What lies where nothing is can only be named by a map whose log the media lost.
    fn account(&mut self, page: PageNumber, known: &Known<'_>, valid: &mut ValidMap) {
        let Self { l2p, pages, .. } = self;
        let (pages, lost) = (pages.as_mut().expect("it is in pages"), lost_place(known.shape.places()));
        let is_readable = |place: PhysicalAddress| {
            let (chunk, sector) = known.shape.chunk_of(place);
            sector < known.survey.readable(known.geometry, chunk)
        };
        for block in l2p.shard_sectors(page.index()) {
            match l2p.get(block) {
                Mapped::Media(place) if place != lost && !is_readable(place) => {
                    l2p.set(block, Mapped::Media(lost));
                    pages.changed(page);
                }
                Mapped::Media(place) if place != lost => valid.set(place),
                _ => {}
            }
        }
        match pages.home(page) {
            Some(home) if is_readable(home) => valid.set(home),
            Some(_) => {
                pages.forget_home(page);
                pages.changed(page);
            }
            None => {}
        }
        if !pages.is_changed(page) && pages.here() > pages.most() && pages.leave(page) {
            l2p.forget_shard(page.index());
        }
    }

    /// What is valid on media.
    pub fn valid(&self, shape: &InstanceGeometry) -> ValidMap {
        self.valid.clone().unwrap_or_else(|| {
            let (mut valid, lost) = (ValidMap::by_chunks(shape), lost_place(shape.places()));
            self.l2p.for_each_media(|_, place| {
                if place != lost {
                    valid.set(place);
                }
            });
            valid
        })
    }

    /// Chunks that pages lie in.
    pub fn page_chunks(&self, shape: &InstanceGeometry) -> BTreeSet<ChunkIndex> {
        let homes = self.pages.iter().flat_map(MapPages::homes);
        homes.map(|(_, place)| shape.chunk_of(place).0).collect()
    }

    /// True if pages take room from now on that they did not before.
    pub const fn is_new_in_pages(&self) -> bool {
        self.is_new_in_pages
    }
}

impl FoundPages {
    /// The log says where pages lie.
    fn page_is_at(&mut self, entry: &LogEntry, blocks: u64) {
        let LogEntry::Write { lba, place, count } = *entry else { unreachable!("{entry:?} is no page") };
        assert!(lba >= blocks, "block {lba} is no page of a map of {blocks} blocks");
        for (page, place) in (lba - blocks..).zip(place.0..).take(usize_of(count)) {
            let page = PageNumber(u32::try_from(page).expect("it was looked at"));
            self.homes[page.index()] = place;
            self.moved.insert(page);
        }
    }
}

/// An entry in parts that lie within a page each.
fn within_pages(entry: LogEntry, size: ShardSize) -> Vec<(PageNumber, LogEntry)> {
    let (LogEntry::Write { lba, count, .. }
    | LogEntry::Move { lba, count, .. }
    | LogEntry::Discard { lba, count }) = entry
    else {
        unreachable!("{entry:?} is no change")
    };
    let (mut parts, mut done) = (Vec::new(), 0);
    while done < count {
        let first = lba + u64::from(done);
        let room = size.sectors() - first % size.sectors();
        let some = u32::try_from(room.min(u64::from(count - done))).expect("no more than the count");
        let by = |place: PhysicalAddress| PhysicalAddress(place.0 + u64::from(done));
        let part = match entry {
            LogEntry::Write { place, .. } => LogEntry::Write { lba: first, place: by(place), count: some },
            LogEntry::Move { from, to, .. } => {
                LogEntry::Move { lba: first, from: by(from), to: by(to), count: some }
            }
            _ => LogEntry::Discard { lba: first, count: some },
        };
        parts.push((PageNumber(u32::try_from(first >> size.bits()).expect("it was looked at")), part));
        done += some;
    }
    parts
}

/// The entries of pages as they lie on media, those that the media did not lose.
fn read_batch(
    media: &mut Media<'_>,
    known: &Known<'_>,
    found: &FoundPages,
    pages: &[PageNumber],
) -> Result<BTreeMap<PageNumber, (TransactionId, Vec<u8>)>, MountError> {
    let readable = |&page: &PageNumber| {
        let place = found.home(page).expect("it is read");
        let (chunk, sector) = known.shape.chunk_of(place);
        (sector < known.survey.readable(known.geometry, chunk)).then(|| (page, known.shape.ppa(place)))
    };
    let asked: Vec<(PageNumber, Ppa)> = pages.iter().filter_map(readable).collect();
    let firsts: Vec<Ppa> = asked.iter().map(|&(_, ppa)| ppa).collect();
    let mut contents = BTreeMap::new();
    media.read_runs(&firsts, 1, |index, buffers, buffer| {
        let page = asked[index].0;
        let content = buffer.and_then(|buffer| {
            let applied = page_codec::decode(page, (buffer, 0), buffers)?;
            Some((applied, buffers.whole(buffer, 0, 1).to_vec()))
        });
        if let Some(content) = content {
            contents.insert(page, content);
        }
    })?;
    Ok(contents)
}
