//! Any bytes as an image, or as a piece of one that is sound otherwise: checksums would keep random bytes out.

use super::create::Existing;
use super::handle::Image;
use super::header::{HEADER_BYTES, Header, encode_crc};
use super::layout::{PAGE, padded};
use super::opening::{Access, Damage};
use super::record;
use crate::open::{OpenDrive, OpenOptions};
use crate::spec::DriveSpec;
use ocssd_lightnvm::ChunkId;
use ocssd_nvme::identify::Uuid;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Largest file that is tried. Chosen: several times the smallest image.
const BYTES_MAX: usize = 1 << 20;

/// A file that is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        Self(std::env::temp_dir().join(format!("ocssd-fuzz-{}-{count}.img", std::process::id())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Nothing is wrong if the test removed it first.
        drop(std::fs::remove_file(&self.0));
    }
}

/// The settings of the sound image: half of the smallest preset with the smallest sectors.
fn sound_spec() -> DriveSpec {
    let mut spec = DriveSpec::preset("tiny").expect("the preset exists");
    spec.apply_all(&["sector_bytes=512", "chunks_per_pu=8"]).expect("the smallest sector, and few chunks");
    spec
}

/// The bytes of a sound image.
fn sound() -> &'static [u8] {
    static SOUND: OnceLock<Vec<u8>> = OnceLock::new();
    SOUND.get_or_init(|| {
        let scratch = Scratch::new();
        drop(
            Image::create(&scratch.0, &sound_spec(), Existing::Replace)
                .expect("the temporary directory takes files"),
        );
        std::fs::read(&scratch.0).expect("it was just written")
    })
}

fn index(offset: u64) -> usize {
    usize::try_from(offset).expect("smaller than a megabyte")
}

/// Opens `data` as an image; its first byte says which piece of an image the rest is. Returns true if it was accepted.
///
/// # Panics
/// If an accepted image is not sound, is not accepted a second time, or an error has no words.
pub fn open_image(data: &[u8]) -> bool {
    let Some((&kind, data)) = data.split_first() else { return false };
    let data = &data[..data.len().min(BYTES_MAX)];
    let scratch = Scratch::new();
    std::fs::write(&scratch.0, assemble(kind, data)).expect("the temporary directory takes files");
    let open =
        |access, damage| Image::open(&scratch.0, &OpenOptions { access, damage, settings: Vec::new() });
    let mut accepted = false;
    // Accepting damage repairs it in the file, so what is accepted once must be accepted strictly afterwards.
    for (access, damage) in [
        (Access::Inspect, Damage::Refuse),
        (Access::Inspect, Damage::Accept),
        (Access::Write, Damage::Accept),
        (Access::Write, Damage::Refuse),
    ] {
        match open(access, damage) {
            Ok(drive) => {
                accepted = true;
                check(&drive, &scratch.0);
            }
            Err(error) => {
                assert!(!error.to_string().is_empty(), "an error without words");
                assert!(!accepted, "accepted once, and then: {error}");
            }
        }
    }
    accepted
}

fn check(drive: &OpenDrive, path: &Path) {
    drive.flash.check();
    assert_eq!(drive.image.as_ref().map(Image::path), Some(path));
    for chunk in (0..drive.spec.config.geometry.chunk_count()).map(ChunkId) {
        let pointer = drive.flash.chunk(chunk).write_pointer.unwrap_or(0);
        let marks = drive.flash.unreadable(chunk);
        let beyond = (0u32..).zip(marks).any(|(word, bits)| {
            let below = pointer.saturating_sub(word * 64).min(64);
            below < 64 && bits >> below != 0
        });
        assert!(!beyond, "chunk {} has marks above its write pointer", chunk.0);
    }
}

/// The file that `data` makes.
fn assemble(kind: u8, data: &[u8]) -> Vec<u8> {
    if kind == 0 {
        return data.to_vec();
    }
    let mut image = sound().to_vec();
    let header = Header::decode(image.first_chunk().expect("a page")).expect("it is sound");
    let layout = header.layout;
    match kind {
        1 => {
            let page = image.first_chunk_mut::<HEADER_BYTES>().expect("a page");
            for (byte, change) in page.iter_mut().zip(data) {
                *byte ^= change;
            }
            encode_crc(page);
        }
        2 => {
            let length = data.len().min(index(padded(layout.settings_bytes).expect("small")));
            let end = index(PAGE) + index(padded(layout.settings_bytes).expect("small"));
            image[index(PAGE)..end].fill(0);
            image[index(PAGE)..][..length].copy_from_slice(&data[..length]);
            let settings_crc = crc32fast::hash(&image[index(PAGE)..end]);
            let settings_bytes = u64::try_from(length).expect("small");
            let layout = super::layout::Layout { settings_bytes, ..layout };
            image[..HEADER_BYTES]
                .copy_from_slice(&Header { layout, settings_crc, uuid: Uuid::of_seed(1) }.encode());
        }
        3 => {
            let table =
                &mut image[index(layout.records_offset)..][..ChunkId(layout.chunks).index() * record::BYTES];
            for (place, piece) in table.chunks_exact_mut(record::BYTES).zip(data.chunks(record::BYTES - 4)) {
                place[..piece.len()].copy_from_slice(piece);
                let crc = crc32fast::hash(&place[..record::BYTES - 4]);
                place[record::BYTES - 4..].copy_from_slice(&crc.to_le_bytes());
            }
        }
        _ => {
            let length = image.len();
            for patch in data.chunks_exact(4) {
                let at = usize::from(patch[0]) | usize::from(patch[1]) << 8 | usize::from(patch[2]) << 16;
                image[at % length] ^= patch[3];
            }
        }
    }
    image
}
