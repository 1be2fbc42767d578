//! An image after a crash of its host: a sector that the record of its chunk counts never reached the disk.

use crate::program::Program;

fn number<const BYTES: usize>(image: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes[..BYTES].copy_from_slice(&image[at..at + BYTES]);
    u64::from_le_bytes(bytes)
}

/// Makes a hole of the last sector of the first chunk that is written beyond its last sync (docs/image.md has the places).
/// Returns the chunk's number, and how many sectors are not covered by a sync.
fn lose_a_sector(program: &Program) -> (usize, u64) {
    let path = program.path("d.img");
    let mut image = std::fs::read(&path).expect("the image was made");
    let index = |value: u64| usize::try_from(value).expect("a small image");
    let (records, data) = (index(number::<8>(&image, 72)), index(number::<8>(&image, 104)));
    let (chunks, sectors, bytes) =
        (number::<4>(&image, 16), number::<4>(&image, 20), number::<4>(&image, 24));
    for chunk in 0..index(chunks) {
        let record = records + 32 * chunk;
        let (end, synced) = (number::<4>(&image, record + 8), number::<4>(&image, record + 16));
        if end > synced {
            let at = data + index((u64::try_from(chunk).expect("it fits") * sectors + end - 1) * bytes);
            image[at..at + index(bytes)].fill(0);
            std::fs::write(&path, &image).expect("the image can be written");
            return (chunk, end - synced);
        }
    }
    panic!("no chunk has anything that was not synced");
}

#[test]
fn a_chunk_whose_content_did_not_reach_the_disk_ends_sooner_and_the_user_is_told() {
    let program = Program::new();
    program.good("format d.img --drive tiny --set payload=bytes");
    program.good("run --drive d.img --name=w --rw=write --bs=64k --size=1m");
    let (chunk, lost) = lose_a_sector(&program);
    let told = format!("{lost} sectors that were not flushed are gone from 1 chunks");
    let looked = program.run("inspect d.img chunks --all --json");
    assert!(looked.err.contains(&told), "\"{told}\" in {}", looked.err);
    // Looking changes nothing; opening for writing does, once.
    let opened = program.run("target remove d.img nobody");
    assert!(opened.err.contains(&told), "\"{told}\" in {}", opened.err);
    let again = program.run("inspect d.img chunks --all --json");
    assert_eq!((again.code, again.err.as_str()), (0, ""), "it is settled");
    let chunks: serde_json::Value = serde_json::from_str(&again.out).expect("JSON");
    let end = &chunks[chunk]["wp"];
    assert_eq!(end.as_u64(), Some(0), "chunk {chunk}, {}", again.out);
}
