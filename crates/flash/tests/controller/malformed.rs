//! Entries and buffers that are wrong, one by one and at random: refused with a status, never a panic, and never a
//! change.

use crate::host::{Buffers, Host, OOB, SECTOR, SOMEWHERE, addresses, bits, scalar, tiny, vector};
use ocssd_base::Prng;
use ocssd_flash::config::Revision;
use ocssd_flash::controller::{AdminOutcome, IoBuffers};
use ocssd_nvme::ocssd20::DsmRange;
use ocssd_nvme::sqe::{DatasetManagement, Fuse, Psdt, VectorCopy};
use ocssd_nvme::{Cqe, IoOpcode, Lba, Sqe};

/// A sound entry of each command, with buffers it can use.
fn sound(host: &Host) -> Vec<(Sqe, Buffers)> {
    let (free, closed) = (host.lbas(0, 0..4), host.lbas(2, 0..4));
    let copy =
        VectorCopy { sources: addresses(&closed), destinations: addresses(&free), limited_retry: true };
    let dsm =
        DatasetManagement { range_count: 1, deallocate: true, integral_read: false, integral_write: false };
    let range = DsmRange { cattr: 0, nlb: 32, slba: Lba(closed[0]) }.encode().to_vec();
    let list = |list: &[u64]| Buffers { list: list.to_vec(), ..Buffers::sectors(4, 1) };
    let chunks = [host.lba(2, 0), host.lba(4, 0)];
    vec![
        (Sqe::write(1, scalar(free[0], 4)), Buffers::sectors(4, 1)),
        (Sqe::read(1, scalar(closed[0], 4)), Buffers::sectors(4, 1)),
        (Sqe::dataset_management(1, dsm), Buffers { data: range, ..Buffers::default() }),
        (Sqe::vector_write(1, vector(&free)), list(&free)),
        (Sqe::vector_read(1, vector(&closed)), list(&closed)),
        (
            Sqe::vector_reset(1, addresses(&chunks), Some(SOMEWHERE)),
            Buffers { metadata: vec![0; 64], ..list(&chunks) },
        ),
        (Sqe::vector_copy(1, copy), Buffers { destinations: free.clone(), ..list(&closed) }),
    ]
}

#[test]
fn a_sound_command_becomes_refused_when_one_field_breaks() {
    type Break = (fn(&mut Sqe), fn(&Sqe) -> bool, u16, &'static str);
    let vectors = |sqe: &Sqe| sqe.opcode >= 0x90;
    let always = |_: &Sqe| true;
    let breaks: [Break; 10] = [
        (|sqe| sqe.opcode = 0x77, always, 0x4001, "opcode"),
        (|sqe| sqe.nsid = 0, always, 0x400B, "NSID 0"),
        (|sqe| sqe.nsid = 2, always, 0x400B, "NSID 2"),
        (|sqe| sqe.nsid = u32::MAX, always, 0x400B, "NSID of all"),
        (|sqe| sqe.fuse = Fuse::First, always, 0x4002, "fused"),
        (|sqe| sqe.fuse = Fuse::Reserved, always, 0x4002, "FUSE 3"),
        (|sqe| sqe.psdt = Psdt::Reserved, always, 0x4002, "PSDT 3"),
        (|sqe| sqe.cdw12 |= 64, vectors, 0x4002, "more than 64 entries"),
        (|sqe| sqe.cdw12 |= 0x8000, vectors, 0x4002, "many more than 64 entries"),
        (|sqe| sqe.cdw12 |= 1 << 20, |sqe| sqe.opcode == 0x01, 0x4002, "a directive"),
    ];
    for index in 0..7 {
        let mut host = Host::with_every_state();
        let (sqe, mut buffers) = sound(&host).swap_remove(index);
        assert_eq!(bits(&host.io(sqe, &mut buffers)), 0, "opcode {:02X}h is sound", sqe.opcode);
        for (broken, applies, status, why) in breaks.iter().filter(|(_, applies, _, _)| applies(&sqe)) {
            assert!(applies(&sqe));
            let mut host = Host::with_every_state();
            let before = host.table();
            let mut wrong = sqe;
            broken(&mut wrong);
            let (_, mut buffers) = sound(&host).swap_remove(index);
            let cqe = host.io(wrong, &mut buffers);
            assert_eq!((bits(&cqe), cqe.failed_entries()), (*status, 0), "{:02X}h: {why}", sqe.opcode);
            assert_eq!(host.table(), before, "{:02X}h: {why}", sqe.opcode);
        }
    }
}

#[test]
fn a_flush_has_a_namespace_too() {
    let mut host = Host::new(tiny());
    for (nsid, status) in [(0, 0x400B), (1, 0), (2, 0x400B), (u32::MAX, 0)] {
        assert_eq!(bits(&host.io(Sqe::flush(nsid), &mut Buffers::default())), status, "NSID {nsid}");
    }
}

#[test]
fn a_buffer_one_byte_too_short_refuses_the_command() {
    type Shorten = fn(&mut Buffers);
    let cuts: [(Shorten, &[u8], &str); 4] = [
        (|buffers| buffers.data.truncate(buffers.data.len() - 1), &[0x01, 0x02, 0x09, 0x91, 0x92], "data"),
        (
            |buffers| buffers.metadata.truncate(buffers.metadata.len() - 1),
            &[0x01, 0x02, 0x90, 0x91, 0x92],
            "metadata",
        ),
        (|buffers| buffers.list.truncate(buffers.list.len() - 1), &[0x90, 0x91, 0x92, 0x93], "list"),
        (|buffers| buffers.destinations.truncate(3), &[0x93], "destination list"),
    ];
    for index in 0..7 {
        for (shorten, opcodes, what) in &cuts {
            let mut host = Host::with_every_state();
            let (sqe, mut buffers) = sound(&host).swap_remove(index);
            if !opcodes.contains(&sqe.opcode) {
                continue;
            }
            shorten(&mut buffers);
            let before = host.table();
            let cqe = host.io(sqe, &mut buffers);
            assert_eq!(bits(&cqe), 0x4004, "{:02X}h: {what}", sqe.opcode);
            assert_eq!(host.table(), before, "{:02X}h: {what}", sqe.opcode);
        }
    }
}

#[test]
fn metadata_that_is_pointed_to_must_be_there() {
    let mut host = Host::with_every_state();
    let before = host.table();
    let at = host.lba(0, 0);
    let mut buffers = Buffers { metadata: Vec::new(), ..Buffers::sectors(4, 1) };
    let cqe = host.io(Sqe::write(1, scalar(at, 4)).with_mptr(SOMEWHERE), &mut buffers);
    assert_eq!((bits(&cqe), host.table()), (0x4004, before));
}

/// An entry of random bytes, often bent towards what the drive knows.
fn random_entry(prng: &mut Prng, revision: Revision) -> [u8; 64] {
    let mut bytes = [0; 64];
    for word in bytes.chunks_exact_mut(8) {
        word.copy_from_slice(&prng.next_u64().to_le_bytes());
    }
    let mut pick = |bound: u64| prng.below(bound);
    let known = IoOpcode::all();
    if pick(8) > 0 {
        bytes[0] = known[usize::try_from(pick(u64::try_from(known.len()).expect("few"))).expect("few")].0;
        bytes[1] = 0;
    }
    if pick(8) > 0 {
        bytes[4..8].copy_from_slice(&1u32.to_le_bytes());
    }
    if pick(4) > 0 {
        // Addresses inside or near the drive: 10 bits of 2.0, 11 of 1.2 with the same order of magnitude.
        bytes[40..48].copy_from_slice(&(pick(1100) & !3).to_le_bytes());
        bytes[56..64].copy_from_slice(&(pick(1100) & !3).to_le_bytes());
        let nlb = u32::try_from(pick(64)).expect("small");
        let planes = if revision == Revision::V12 { u32::try_from(pick(4)).expect("small") << 16 } else { 0 };
        bytes[48..52].copy_from_slice(&(nlb | planes).to_le_bytes());
        bytes[44..48].fill(0);
    }
    bytes
}

fn random_list(prng: &mut Prng) -> Vec<u64> {
    let start = prng.below(1100) & !3;
    let runs = prng.below(2) == 0;
    (0..64).map(|index| if runs { start + index } else { prng.below(1100) }).collect()
}

fn no_entry_panics_and_no_refused_one_changes_anything(revision: Revision, seed: u64) {
    let mut config = tiny();
    config.revision = revision;
    config.geometry.capabilities.multiple_resets = revision == Revision::V12;
    config.geometry.capabilities.early_reset = revision == Revision::V12;
    let mut host = Host::new(config);
    let mut prng = Prng::new(seed);
    let (mut done, mut refused) = (0, 0);
    for round in 0..1200 {
        let entry = random_entry(&mut prng, revision);
        let (list, destinations) = (random_list(&mut prng), random_list(&mut prng));
        let sectors = usize::try_from(prng.below(65)).expect("small");
        let range = DsmRange { cattr: 0, nlb: 32, slba: Lba(prng.below(34) * 32) }.encode();
        let mut data: Vec<u8> = range.into_iter().cycle().take(sectors * SECTOR).collect();
        let mut metadata = vec![1; sectors * OOB.max(32)];
        let before = host.table();
        let io = IoBuffers {
            data: &mut data,
            metadata: &mut metadata,
            lba_list: &list,
            destination_list: &destinations,
        };
        host.controller.submit(host.now, 3, &entry, io).expect("the queue is empty");
        let cqe = host.wait();
        let why = format!("seed {seed}, round {round}, {:02X}h: {:04X}h", entry[0], bits(&cqe));
        assert_eq!(cqe.cid, Sqe::decode(&entry).cid, "{why}");
        let is_reset = matches!(entry[0], 0x09 | 0x90);
        if bits(&cqe) == 0 {
            done += 1;
        } else if !is_reset {
            refused += 1;
            assert!(host.table() == before, "{why}: a refused command changed the chunks");
        }
        host.controller.flash().check();
    }
    assert!(done > 50 && refused > 100, "seed {seed}: {done} done and {refused} refused is no test of both");
}

#[test]
fn random_entries_never_panic_and_never_change_a_refusing_drive() {
    for seed in 1..=2 {
        no_entry_panics_and_no_refused_one_changes_anything(Revision::V20, seed);
        no_entry_panics_and_no_refused_one_changes_anything(Revision::V12, seed);
    }
}

#[test]
fn random_admin_entries_never_panic_and_never_change_the_chunks() {
    for seed in 1..=2 {
        let mut config = tiny();
        config.revision = if seed % 2 == 0 { Revision::V12 } else { Revision::V20 };
        config.geometry.capabilities.multiple_resets = true;
        config.geometry.capabilities.early_reset = true;
        let mut host = Host::new(config);
        let before = host.table();
        let mut prng = Prng::new(seed);
        let opcodes = [0x02, 0x06, 0x08, 0x09, 0x0A, 0x0C, 0x18, 0xE2, 0xF1, 0xF2];
        let (mut done, mut refused) = (0, 0);
        for round in 0..1200 {
            let mut entry = random_entry(&mut prng, Revision::V20);
            entry[0] = opcodes[usize::try_from(prng.below(10)).expect("small")];
            entry[40] = [0, 1, 2, 3, 5, 0xCA, 0xD0, 0x0B][usize::try_from(prng.below(8)).expect("small")];
            entry[41] &= 0x80;
            let mut data = vec![0; usize::try_from(prng.below(3)).expect("small") << 18];
            match host.controller.admin(host.now, &entry, &mut data) {
                AdminOutcome::Held => done += 1,
                AdminOutcome::Done(bytes) if Cqe::decode(&bytes).status.status.is_success() => done += 1,
                AdminOutcome::Done(_) => refused += 1,
            }
            assert!(host.controller.poll_event().is_none(), "seed {seed}, round {round}: there is no news");
        }
        assert_eq!(host.table(), before, "seed {seed}");
        assert!(
            done > 50 && refused > 100,
            "seed {seed}: {done} done and {refused} refused is no test of both"
        );
    }
}
