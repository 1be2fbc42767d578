//! An existing image: everything is read and checked before a drive is made of it.

use super::file::ImageFile;
use super::handle::Image;
use super::header::{HEADER_BYTES, Header};
use super::layout::{Layout, PAGE, SETTINGS_BYTES_MAX, padded};
use super::leases::Table;
use super::marks::{self, PageName};
use super::record::{self, Kept};
use super::store::ImageStore;
use crate::error::DriveError;
use crate::open::{OpenDrive, OpenOptions};
use crate::spec::{DriveSpec, same_shape};
use ocssd_flash::{ChunkRecord, Flash};
use ocssd_lightnvm::media_manager::MediaManager;
use ocssd_lightnvm::{ChunkId, ChunkState};
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
    /// A chunk whose record is damaged is OFFLINE; where marks are damaged every written sector is unreadable.
    Accept,
}

impl Image {
    /// Opens an image, with the drive and the table of targets it holds.
    ///
    /// Cost: reads 32 bytes a chunk, 4.2 MiB for a drive of 2 TB.
    ///
    /// # Errors
    /// A file that is no image, of another version, damaged, truncated, or in use; each with a sentence.
    pub fn open(path: &Path, options: &OpenOptions) -> Result<OpenDrive, DriveError> {
        let file = Arc::new(ImageFile::open(path, options.access == Access::Write)?);
        let (layout, kept_spec) = read_settings(&file)?;
        let mut spec = kept_spec.clone();
        spec.apply_all(&options.settings)?;
        if !same_shape(&spec.config, &kept_spec.config) {
            return Err(DriveError::Shape { path: path.to_owned() });
        }
        let (table, note) = Table::read(&file, &layout)?;
        let leases = MediaManager::from_text(&table.text, &spec.config.geometry);
        let leases = leases.map_err(|error| DriveError::Leases { path: path.to_owned(), error })?;
        let mut reading =
            Reading { file: &file, layout: &layout, options, damage: note.into_iter().collect() };
        let kept = reading.records(spec.config.wear.initial_cycles)?;
        let unreadable = reading.unreadable(&kept)?;
        let damage = reading.damage;
        let records: Vec<ChunkRecord> = kept.iter().map(|kept| kept.record).collect();
        let store = ImageStore::new(Arc::clone(&file), layout, kept);
        let flash = Flash::open_on(spec.config.clone(), Box::new(store), &records, unreadable);
        let flash = flash.map_err(|error| DriveError::Open { path: path.to_owned(), error })?;
        let image = Self { file, layout, table, damage };
        Ok(OpenDrive::new(flash, leases, Some(image), spec))
    }
}

/// Reads and checks header and settings, and that both agree with the file's size.
fn read_settings(file: &ImageFile) -> Result<(Layout, DriveSpec), DriveError> {
    let length = file.bytes()?;
    if length < PAGE {
        let reason = format!("it has {length} bytes, but an image has more than {PAGE}; name another file");
        return Err(file.unusable(reason));
    }
    let mut page = [0; HEADER_BYTES];
    file.read(0, &mut page).map_err(|error| file.failed("read", error))?;
    let Header { layout, settings_crc } = Header::decode(&page).map_err(|reason| file.unusable(reason))?;
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
        return Ok((layout, spec));
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
struct Reading<'a> {
    file: &'a ImageFile,
    layout: &'a Layout,
    options: &'a OpenOptions,
    damage: Vec<String>,
}

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
                        kept.push(Kept { record: offline, marked: false });
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

    /// The marks that hold: those of chunks in the life they were made in, below the write pointer.
    fn unreadable(&mut self, kept: &[Kept]) -> Result<Vec<(ChunkId, Vec<u64>)>, DriveError> {
        let mut unreadable = Vec::new();
        for (chunk, kept) in (0..).map(ChunkId).zip(kept) {
            if !kept.marked || kept.record.state == ChunkState::Offline {
                continue;
            }
            let (mut bits, damaged) = self.marks(chunk, kept.record.cycles)?;
            let trimmed = marks::trim(&mut bits, kept.record.write_pointer);
            if (trimmed || damaged) && self.file.writable {
                // Else a later write would lift the write pointer over marks that do not belong to it.
                let pages = marks::encode(chunk, kept.record.cycles, &bits);
                let written = self.file.write(self.layout.marks(chunk), &pages);
                written.map_err(|error| self.file.failed("written", error))?;
            }
            if bits.iter().any(|&word| word != 0) {
                unreadable.push((chunk, bits));
            }
        }
        Ok(unreadable)
    }

    /// The marks of a chunk's life, and whether some were damaged.
    fn marks(&mut self, chunk: ChunkId, life: u32) -> Result<(Vec<u64>, bool), DriveError> {
        let words =
            usize::try_from(self.layout.sectors_per_chunk.div_ceil(64)).expect("32 bits fit an index");
        let mut bits = Vec::with_capacity(words);
        let mut damaged = false;
        let mut page = [0; marks::BYTES];
        for index in 0.. {
            let at = self.layout.marks(chunk) + u64::from(index) * PAGE;
            self.file.read(at, &mut page).map_err(|error| self.file.failed("read", error))?;
            let full = usize::try_from(super::layout::MARKS_PER_PAGE / 64).expect("510");
            match marks::decode(&page, PageName { chunk, index, life }) {
                Ok(found) => bits.extend(found.unwrap_or_else(|| vec![0; full])),
                Err(what) => {
                    let sentence =
                        format!("the marks of unreadable sectors of chunk {} at byte {at} {what}", chunk.0);
                    self.found_damage(&sentence, "every sector they cover is unreadable from now on")?;
                    damaged = true;
                    bits.extend(vec![u64::MAX; full]);
                }
            }
            if bits.len() >= words {
                break;
            }
        }
        bits.truncate(words);
        Ok((bits, damaged))
    }
}
