//! The table of targets in an image: two slots, written in turn, so that an update is there whole or not at all.
//!
//! Deliberately not here: what the text means (`lightnvm::media_manager`).

use super::file::ImageFile;
use super::layout::Layout;
use crate::error::DriveError;

/// What a slot begins with.
const MAGIC: [u8; 8] = *b"OCSSDLSE";
/// Bytes before the text: magic, generation, length, checksum, zeros.
const HEADER: usize = 32;

/// The newest table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Table {
    /// Grows with every update; the slot is `generation % 2`.
    pub(super) generation: u64,
    pub(super) text: String,
}

fn crc(header: &[u8], text: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&header[..20]);
    hasher.update(text);
    hasher.finalize()
}

impl Table {
    /// Writes the table to its slot and makes it survive a crash of the host.
    pub(super) fn write(&self, file: &ImageFile, layout: &Layout) -> Result<(), DriveError> {
        let length = u32::try_from(self.text.len()).unwrap_or(u32::MAX);
        let room = layout.lease_slot_bytes - u64::try_from(HEADER).expect("32 fits");
        if u64::from(length) > room {
            let reason = format!(
                "it has {room} bytes for the table of targets, but {length} are needed; remove targets"
            );
            return Err(file.unusable(reason));
        }
        let mut bytes = vec![0; HEADER];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..16].copy_from_slice(&self.generation.to_le_bytes());
        bytes[16..20].copy_from_slice(&length.to_le_bytes());
        let crc = crc(&bytes, self.text.as_bytes());
        bytes[20..24].copy_from_slice(&crc.to_le_bytes());
        bytes.extend_from_slice(self.text.as_bytes());
        let at = layout.leases_offset + self.generation % 2 * layout.lease_slot_bytes;
        let written = file.write(at, &bytes).and_then(|()| file.sync());
        written.map_err(|error| file.failed("written", error))
    }

    /// Reads the newest table, and a sentence if the other slot holds none that is sound.
    pub(super) fn read(file: &ImageFile, layout: &Layout) -> Result<(Self, Option<String>), DriveError> {
        let slots = [read_slot(file, layout, 0)?, read_slot(file, layout, 1)?];
        let newest = slots.iter().flatten().flatten().max_by_key(|table| table.generation);
        let Some(newest) = newest else {
            let reason =
                "neither copy of its table of targets is sound; restore the image from a copy".to_owned();
            return Err(file.unusable(reason));
        };
        let damage = slots.iter().find_map(|slot| slot.as_ref().err());
        let note = damage.map(|damage| {
            format!(
                "{damage}; an update was interrupted or the image is damaged, and the older table is used"
            )
        });
        Ok((newest.clone(), note))
    }
}

/// A slot's table, nothing if it was never written, or what is wrong with it.
fn read_slot(
    file: &ImageFile,
    layout: &Layout,
    slot: u64,
) -> Result<Result<Option<Table>, String>, DriveError> {
    let at = layout.leases_offset + slot * layout.lease_slot_bytes;
    let mut header = [0; HEADER];
    file.read(at, &mut header).map_err(|error| file.failed("read", error))?;
    if header == [0; HEADER] {
        return Ok(Ok(None));
    }
    let bad = |what: &str| Ok(Err(format!("the table of targets at byte {at} {what}")));
    let number = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("four bytes"));
    let length = number(16);
    let whole = u64::try_from(HEADER).expect("32 fits") + u64::from(length);
    if header[..8] != MAGIC || whole > layout.lease_slot_bytes {
        return bad("has a damaged beginning");
    }
    let mut text = vec![0; usize::try_from(length).expect("32 bits fit an index")];
    let text_at = at + u64::try_from(HEADER).expect("32 fits");
    file.read(text_at, &mut text).map_err(|error| file.failed("read", error))?;
    if number(20) != crc(&header, &text) {
        return bad("has a wrong checksum");
    }
    let generation = u64::from_le_bytes(header[8..16].try_into().expect("eight bytes"));
    match String::from_utf8(text) {
        Ok(text) if generation % 2 == slot && generation < u64::MAX => {
            Ok(Ok(Some(Table { generation, text })))
        }
        _ => bad("has text or a generation that cannot be"),
    }
}
