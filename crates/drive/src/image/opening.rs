//! An existing image: everything is read and checked before a drive is made of it.

use super::file::ImageFile;
use super::handle::Image;
use super::header::{HEADER_BYTES, Header};
use super::layout::{Layout, PAGE, SETTINGS_BYTES_MAX, padded};
use super::leases::Table;
use super::marks::{self, PageName};
use super::record::{self, Kept};
use super::simulated::SimulatedFile;
use super::store::ImageStore;
use super::whole::WholeFlags;
use crate::error::DriveError;
use crate::open::{OpenDrive, OpenOptions};
use crate::spec::{DriveSpec, same_shape};
use ocssd_flash::store::Backing;
use ocssd_flash::{ChunkRecord, Flash};
use ocssd_lightnvm::media_manager::MediaManager;
use ocssd_lightnvm::{ChunkId, ChunkState};
use ocssd_nvme::identify::Uuid;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Whether an image may be changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// The drive is used; no other process has the image.
    #[default]
    Write,
    /// The drive is looked at, by any number of processes: commands that would change it fail.
    Inspect,
}

/// What to do about records and marks with wrong checksums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Damage {
    /// Open nothing, and say what is damaged.
    #[default]
    Refuse,
    /// A chunk whose record is damaged is OFFLINE; where marks or flags of whole sectors are damaged every written sector
    /// is unreadable.
    Accept,
}

impl Image {
    /// Opens an image, with the drive and the table of targets it holds.
    ///
    /// Cost: reads 32 bytes a chunk, 4.2 MiB for a drive of 2 TB, 4096 bytes for each chunk that has unreadable or whole
    /// sectors, and what was written since the last sync but one.
    ///
    /// # Errors
    /// A file that is no image, of another version, damaged, truncated, or in use; each with a sentence.
    pub fn open(path: &Path, options: &OpenOptions) -> Result<OpenDrive, DriveError> {
        Self::open_file(ImageFile::open(path, options.access == Access::Write)?, options)
    }

    /// The same of a simulated file.
    ///
    /// # Errors
    /// As [`Image::open`].
    pub fn open_simulated(file: &SimulatedFile, options: &OpenOptions) -> Result<OpenDrive, DriveError> {
        Self::open_file(ImageFile::simulated(file, options.access == Access::Write)?, options)
    }

    fn open_file(file: ImageFile, options: &OpenOptions) -> Result<OpenDrive, DriveError> {
        let file = Arc::new(file);
        let (layout, kept_spec, uuid) = read_settings(&file)?;
        let mut spec = kept_spec.clone();
        spec.apply_all(&options.settings)?;
        if !same_shape(&spec.config, &kept_spec.config) {
            return Err(DriveError::Shape { path: file.path().to_owned() });
        }
        let (table, note) = Table::read(&file, &layout)?;
        let leases = MediaManager::from_text(&table.text, &spec.config.geometry);
        let leases = leases.map_err(|error| DriveError::Leases { path: file.path().to_owned(), error })?;
        let mut reading =
            Reading { file: &file, layout: &layout, options, damage: note.into_iter().collect() };
        let mut kept = reading.records(spec.config.wear.initial_cycles)?;
        let flags = reading.whole(&kept)?;
        let taken_back = reading.take_back(&mut kept, &flags)?;
        let unreadable = reading.unreadable(&mut kept, &flags)?;
        let whole = reading.settle_whole(&kept, flags)?;
        let damage = reading.damage;
        let records: Vec<ChunkRecord> = kept.iter().map(|kept| kept.record).collect();
        let mut store = ImageStore::new(Arc::clone(&file), layout, kept, whole);
        if file.writable && (store.has_tails() || taken_back.chunks > 0) {
            // What a drive has when it is switched on, the next crash does not take. If this fails, so does every later sync, and
            // with the first of them all changes end; what is there can still be read.
            drop(store.sync());
        }
        let flash = Flash::open_on(spec.config.clone(), Box::new(store), &records, unreadable);
        let flash = flash.map_err(|error| DriveError::Open { path: file.path().to_owned(), error })?;
        let image = Self { file, layout, table, damage, taken_back };
        Ok(OpenDrive::new(flash, leases, Some(image), (spec, uuid)))
    }
}

/// Reads and checks header and settings, and that both agree with the file's size. An image that was made before there were
/// random identities has one made of its seed, as it always had.
fn read_settings(file: &ImageFile) -> Result<(Layout, DriveSpec, Uuid), DriveError> {
    let length = file.bytes()?;
    if length < PAGE {
        let reason = format!("it has {length} bytes, but an image has more than {PAGE}; name another file");
        return Err(file.unusable(reason));
    }
    let mut page = [0; HEADER_BYTES];
    file.read(0, &mut page).map_err(|error| file.failed("read", error))?;
    let Header { layout, settings_crc, uuid } =
        Header::decode(&page).map_err(|reason| file.unusable(reason))?;
    if layout.total_bytes != length {
        let expected = layout.total_bytes;
        let what = if length < expected { "truncated" } else { "longer than it was made" };
        let reason = format!(
            "it is {what}: {expected} bytes are expected, {length} were found; restore it from a copy"
        );
        return Err(file.unusable(reason));
    }
    if layout.settings_offset != PAGE || layout.settings_bytes > SETTINGS_BYTES_MAX {
        return Err(file.unusable("its header gives an impossible place for the settings".to_owned()));
    }
    let spec = read_spec(file, &layout, settings_crc)?;
    if Layout::of(&spec.config, layout.settings_bytes) == Some(layout) {
        let uuid = if uuid.is_nil() { Uuid::of_seed(spec.config.seed) } else { uuid };
        return Ok((layout, spec, uuid));
    }
    Err(file.unusable(
        "its header gives other sizes or offsets than its settings do; restore it from a copy".to_owned(),
    ))
}

fn read_spec(file: &ImageFile, layout: &Layout, crc: u32) -> Result<DriveSpec, DriveError> {
    let bytes = padded(layout.settings_bytes).expect("at most 1 MiB");
    if layout.settings_offset + bytes > layout.total_bytes {
        return Err(file.unusable("its settings reach beyond its end".to_owned()));
    }
    let mut region = vec![0; usize::try_from(bytes).expect("at most 1 MiB")];
    file.read(layout.settings_offset, &mut region).map_err(|error| file.failed("read", error))?;
    let found = crc32fast::hash(&region);
    if found != crc {
        return Err(file.unusable(format!(
            "the checksum of its settings should be {crc:08x}, but bytes {} to {} give {found:08x}; restore it from a copy",
            layout.settings_offset,
            layout.settings_offset + bytes
        )));
    }
    region.truncate(usize::try_from(layout.settings_bytes).expect("at most 1 MiB"));
    let text = String::from_utf8(region).map_err(|_| file.unusable("its settings are no text".to_owned()))?;
    Ok(DriveSpec::from_toml(&text, &format!("settings in {}", file.path().display()))?)
}

/// Records and marks on their way in.
pub(super) struct Reading<'a> {
    pub(super) file: &'a ImageFile,
    pub(super) layout: &'a Layout,
    options: &'a OpenOptions,
    damage: Vec<String>,
}

/// One bit a sector, as read from pages; `lost` are the bits of damaged pages, whose `bits` are zero.
pub(super) struct Found {
    pub(super) bits: Vec<u64>,
    pub(super) lost: Option<Vec<u64>>,
}

/// What pages of bits are called in sentences.
const MARKS: &str = "marks of unreadable sectors";
const WHOLE: &str = "flags of whole sectors";

/// Chosen: records are read 64 KiB at a time.
const RECORDS_AT_ONCE: usize = 2048;

impl Reading<'_> {
    fn found_damage(&mut self, sentence: &str, then: &str) -> Result<(), DriveError> {
        if self.options.damage == Damage::Accept {
            self.damage.push(format!("{sentence}; {then}"));
            return Ok(());
        }
        let advice = "restore the image from a copy, or open it with damaged records accepted";
        Err(self.file.unusable(format!("{sentence}; {advice}")))
    }

    /// What the file holds of every chunk.
    fn records(&mut self, initial_cycles: u32) -> Result<Vec<Kept>, DriveError> {
        let fresh = Kept::fresh(initial_cycles);
        let offline = ChunkRecord { state: ChunkState::Offline, ..fresh.record };
        let count = ChunkId(self.layout.chunks).index();
        let mut kept = Vec::with_capacity(count);
        let mut bytes = vec![0; RECORDS_AT_ONCE * record::BYTES];
        while kept.len() < count {
            let first = ChunkId(u32::try_from(kept.len()).expect("fewer than 2^32 chunks"));
            let bytes = &mut bytes[..(count - kept.len()).min(RECORDS_AT_ONCE) * record::BYTES];
            self.file
                .read(self.layout.record(first), bytes)
                .map_err(|error| self.file.failed("read", error))?;
            for (chunk, bytes) in (first.0..).map(ChunkId).zip(bytes.chunks_exact(record::BYTES)) {
                let bytes = bytes.first_chunk().expect("exact pieces");
                match Kept::decode(bytes, chunk, fresh, self.layout.sectors_per_chunk) {
                    Ok(found) => kept.push(found),
                    Err(what) => {
                        let at = self.layout.record(chunk);
                        let sentence = format!("the record of chunk {} at byte {at} {what}", chunk.0);
                        self.found_damage(&sentence, "the chunk is OFFLINE from now on")?;
                        kept.push(Kept { record: offline, ..fresh });
                    }
                }
            }
        }
        self.settle_damaged(&kept)?;
        Ok(kept)
    }

    /// A chunk taken offline for its damaged record stays so in the file.
    fn settle_damaged(&self, kept: &[Kept]) -> Result<(), DriveError> {
        if self.damage.is_empty() || !self.file.writable {
            return Ok(());
        }
        for (chunk, kept) in
            (0..).map(ChunkId).zip(kept).filter(|(_, kept)| kept.record.state == ChunkState::Offline)
        {
            let written = self.file.write(self.layout.record(chunk), &kept.encode(chunk));
            written.map_err(|error| self.file.failed("written", error))?;
        }
        Ok(())
    }

    /// The flags of whole sectors, of chunks in the life they were made in. Those at or above the write pointer stay until
    /// a write settles them: memory has what the file has.
    fn whole(&mut self, kept: &[Kept]) -> Result<BTreeMap<ChunkId, Found>, DriveError> {
        let mut whole = BTreeMap::new();
        for (chunk, kept) in (0..).map(ChunkId).zip(kept) {
            if !kept.whole || kept.record.state == ChunkState::Offline {
                continue;
            }
            if self.layout.whole_bytes == 0 {
                let reason = format!(
                    "the record of chunk {} says that it has whole sectors beside stamps, but its data are real bytes; \
                     restore the image from a copy",
                    chunk.0
                );
                return Err(self.file.unusable(reason));
            }
            let found = self.pages(WHOLE, self.layout.whole_flags(chunk), chunk, kept.record.cycles)?;
            whole.insert(chunk, found);
        }
        Ok(whole)
    }

    /// Makes damaged pages of flags sound again: what they covered is marked now.
    fn settle_whole(&self, kept: &[Kept], flags: BTreeMap<ChunkId, Found>) -> Result<WholeFlags, DriveError> {
        let mut whole = WholeFlags::default();
        for (chunk, Found { bits, lost }) in flags {
            let life = kept[chunk.index()].record.cycles;
            if lost.is_some() && self.file.writable {
                let written =
                    self.file.write(self.layout.whole_flags(chunk), &marks::encode(chunk, life, &bits));
                written.map_err(|error| self.file.failed("written", error))?;
            }
            whole.put(chunk, life, bits);
        }
        Ok(whole)
    }

    /// The marks that hold: those of chunks in the life they were made in, below the write pointer. Sectors of which it
    /// is lost whether they are whole are marked from now on.
    fn unreadable(
        &mut self,
        kept: &mut [Kept],
        flags: &BTreeMap<ChunkId, Found>,
    ) -> Result<Vec<(ChunkId, Vec<u64>)>, DriveError> {
        let mut unreadable = Vec::new();
        for (chunk, kept) in (0..).map(ChunkId).zip(kept) {
            let lost = flags.get(&chunk).and_then(|flags| flags.lost.as_ref());
            if !(kept.marked || lost.is_some()) || kept.record.state == ChunkState::Offline {
                continue;
            }
            let mut found = self.pages(MARKS, self.layout.marks(chunk), chunk, kept.record.cycles)?;
            for lost in found.lost.iter().chain(lost) {
                found.bits.iter_mut().zip(lost).for_each(|(word, lost)| *word |= lost);
            }
            let trimmed = marks::trim(&mut found.bits, kept.record.write_pointer);
            if (trimmed || found.lost.is_some() || lost.is_some()) && self.file.writable {
                // Else a later write would lift the write pointer over marks that do not belong to it.
                self.write_marks(chunk, kept, &found.bits)?;
            }
            if found.bits.iter().any(|&word| word != 0) {
                unreadable.push((chunk, found.bits));
            }
        }
        Ok(unreadable)
    }

    /// Writes a chunk's marks, and its record if that says that there are none.
    fn write_marks(&self, chunk: ChunkId, kept: &mut Kept, bits: &[u64]) -> Result<(), DriveError> {
        let pages = marks::encode(chunk, kept.record.cycles, bits);
        let mut written = self.file.write(self.layout.marks(chunk), &pages);
        if written.is_ok() && !kept.marked {
            kept.marked = true;
            written = self.file.write(self.layout.record(chunk), &kept.encode(chunk));
        }
        written.map_err(|error| self.file.failed("written", error))
    }

    /// The bits of a chunk's life from its pages at byte `at`, and those that damaged pages have lost.
    fn pages(&mut self, what: &str, at: u64, chunk: ChunkId, life: u32) -> Result<Found, DriveError> {
        let words = self.layout.words();
        let mut found = Found { bits: Vec::with_capacity(words), lost: None };
        let mut page = [0; marks::BYTES];
        for index in 0.. {
            let at = at + u64::from(index) * PAGE;
            self.file.read(at, &mut page).map_err(|error| self.file.failed("read", error))?;
            let full = usize::try_from(super::layout::MARKS_PER_PAGE / 64).expect("510");
            let begin = found.bits.len();
            match marks::decode(&page, PageName { chunk, index, life }) {
                Ok(bits) => found.bits.extend(bits.unwrap_or_else(|| vec![0; full])),
                Err(wrong) => {
                    let sentence = format!("the {what} of chunk {} at byte {at} {wrong}", chunk.0);
                    self.found_damage(&sentence, "every sector they cover is unreadable from now on")?;
                    found.bits.extend(vec![0; full]);
                    let lost = found.lost.get_or_insert_with(|| vec![0; words]);
                    lost[begin..].iter_mut().take(full).for_each(|word| *word = u64::MAX);
                }
            }
            if found.bits.len() >= words {
                break;
            }
        }
        found.bits.truncate(words);
        Ok(found)
    }
}
