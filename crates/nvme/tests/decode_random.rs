//! Seeded random bytes, and valid structures with a few bytes changed, through every decoder.
//!
//! The promises are asserted in `ocssd_nvme::fuzz`. `OCSSD_NVME_SEED` runs one given seed again.

use ocssd_nvme::fuzz::decode_everything;
use ocssd_nvme::identify::{
    AtomicSizes, DeallocatedRead, IdentifyController, IdentifyNamespace, LbaDataFormat, NamespaceIds,
    NamespaceList, PreferredSizes, Text,
};
use ocssd_nvme::ocssd12::{
    self, BadBlockTable, BitField, BlockFlags, FlashKind, GroupDescriptor, MediaTable, PagePair, PpaFields,
    PpaFormat,
};
use ocssd_nvme::ocssd20::{ChunkDescriptor, ChunkKind, ChunkState, ChunkType, Geometry, LbaFormat, Mccap};
use ocssd_nvme::{Lba, Sqe};

/// Rounds per seed. Chosen: the whole test takes about a second.
const ROUNDS: u32 = 10_000;

/// SplitMix64 (Steele, Lea and Flood 2014); the crate has no dependencies, so the test brings its own.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).expect("usize has at most 64 bits");
        usize::try_from(self.next() % bound).expect("below a usize")
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }
}

/// Runs `one_round` for each seed and names the seed if it panics.
fn with_seeds(one_round: fn(&mut Random)) {
    let given = std::env::var("OCSSD_NVME_SEED").ok();
    let seeds = match given {
        Some(text) => vec![text.parse().expect("OCSSD_NVME_SEED is a decimal number")],
        None => (1..=4).collect(),
    };
    for seed in seeds {
        let run = || {
            let mut random = Random(seed);
            for _ in 0..ROUNDS {
                one_round(&mut random);
            }
        };
        let result = std::panic::catch_unwind(run);
        assert!(result.is_ok(), "failed with seed {seed}; run again with OCSSD_NVME_SEED={seed}");
    }
}

#[test]
fn random_bytes_never_break_a_decoder() {
    with_seeds(|random| {
        let longest = if random.below(4) == 0 { 4200 } else { 160 };
        let mut data = vec![0; random.below(longest)];
        // Sparse data reaches further: dense random bytes fail at the first version or magic.
        let dense = random.below(2) == 0;
        for byte in &mut data {
            if dense || random.below(16) == 0 {
                *byte = random.byte();
            }
        }
        decode_everything(&data);
    });
}

#[test]
fn damaged_structures_never_break_a_decoder() {
    with_seeds(|random| {
        let mut all = examples();
        let chosen = random.below(all.len());
        let data = &mut all[chosen].1;
        for _ in 0..=random.below(6) {
            // Half of the changes hit the first 160 bytes, where most fields are.
            let span = if random.below(2) == 0 { data.len().min(160) } else { data.len() };
            data[random.below(span)] = random.byte();
        }
        if random.below(8) == 0 {
            data.truncate(random.below(data.len()));
        }
        decode_everything(data);
    });
}

#[test]
fn every_truncation_of_every_example_is_survived() {
    for (name, data) in examples() {
        let whole = decode_everything(&data);
        assert!(whole > 0, "{name} decodes");
        for end in (0..data.len().min(200)).chain([data.len() - 1]) {
            decode_everything(&data[..end]);
        }
    }
}

/// One valid encoding of every structure whose decoder can refuse, and a few commands.
fn examples() -> Vec<(&'static str, Vec<u8>)> {
    let descriptor = ChunkDescriptor {
        cs: ChunkState::Open,
        ct: ChunkType { kind: ChunkKind::SequentialWrite, size_deviates: false },
        wli: 3,
        slba: Lba(1 << 26),
        cnlb: 6144,
        wp: 24,
    };
    let flags = [BlockFlags::GOOD, BlockFlags::GROWN_BAD, BlockFlags::FACTORY_BAD];
    let ids = NamespaceIds { eui64: Some([1; 8]), nguid: Some([2; 16]), uuid: Some([3; 16]), csi: Some(0) };
    vec![
        ("geometry", geometry().encode().to_vec()),
        ("chunk descriptor", descriptor.encode().to_vec()),
        ("1.2 identify", identify12().encode().to_vec()),
        ("bad block table", BadBlockTable { revision: 1, blocks: flags.repeat(40) }.encode()),
        ("controller", controller().encode().to_vec()),
        ("namespace", namespace().encode().to_vec()),
        ("namespace identifiers", ids.encode().to_vec()),
        ("namespace list", NamespaceList::greater_than(0, &[1, 2, 300]).encode().to_vec()),
        ("flush", Sqe::flush(1).encode().to_vec()),
    ]
}

fn geometry() -> Geometry {
    let lbaf = LbaFormat { group_bits: 4, pu_bits: 3, chunk_bits: 11, sector_bits: 13 };
    Geometry {
        mjr: 2,
        mnr: 0,
        lbaf,
        mccap: Mccap { vector_copy: true, ..Mccap::default() },
        wit: 10,
        num_grp: 8,
        num_pu: 4,
        num_chk: 1474,
        clba: 6144,
        ws_min: 24,
        ws_opt: 24,
        mw_cunits: 192,
        maxoc: 0,
        maxocpu: 0,
        trdt_ns: 40_000,
        trdm_ns: 80_000,
        twrt_ns: 1_900_000,
        twrm_ns: 3_700_000,
        tcrst_ns: 7_000_000,
        tcrsm_ns: 20_000_000,
    }
}

fn identify12() -> ocssd12::Identify {
    let field = |offset, len| BitField { offset, len };
    let fields = PpaFields {
        ch: field(25, 4),
        lun: field(22, 3),
        pl: field(2, 1),
        blk: field(12, 10),
        pg: field(3, 9),
        sec: field(0, 2),
    };
    let pairs = vec![PagePair { lower_increment: 16, upper_offset: 4 }; 20];
    let group = GroupDescriptor {
        mtype: 0,
        fmtype: FlashKind::Mlc,
        num_ch: 16,
        num_lun: 8,
        num_pln: 2,
        num_blk: 1020,
        num_pg: 512,
        fpg_sz_bytes: 16_384,
        csecs_bytes: 4096,
        sos_bytes: 16,
        trdt_ns: 1,
        trdm_ns: 2,
        tprt_ns: 3,
        tprm_ns: 4,
        tbet_ns: 5,
        tbem_ns: 6,
        mpos: ocssd12::PlaneSupport::from_bits(0x0003_0303),
        mccap: ocssd12::Mccap::from_bits(0b0101),
        cpar: 1,
        media_table: MediaTable { id: [1, 2, 3, 4, 5, 6, 7, 8], pairs },
    };
    ocssd12::Identify {
        vnvmt: 0,
        cap: ocssd12::Capabilities { bbt: true, hybrid: false },
        dom: ocssd12::DeviceModel::default(),
        ppaf: PpaFormat::new(fields).expect("29 bits, no overlap"),
        groups: vec![group.clone(), group],
    }
}

fn controller() -> IdentifyController {
    IdentifyController {
        vid: 0x1D1D,
        mn: Text::new("ocssd").expect("printable"),
        sqes: 0x66,
        cqes: 0x44,
        subnqn: "nqn.2026-01.org.example:ocssd".to_owned(),
        ..IdentifyController::default()
    }
}

fn namespace() -> IdentifyNamespace {
    IdentifyNamespace {
        nsze: 1 << 31,
        ncap: 8 * 4 * 1474 * 6144,
        nuse: 0,
        nsfeat: 4,
        lbaf: vec![
            LbaDataFormat { ms_bytes: 0, lbads: 12, rp: 0 },
            LbaDataFormat { ms_bytes: 16, lbads: 12, rp: 0 },
        ],
        format_index: 1,
        extended_lba: false,
        mc: 2,
        nmic: 0,
        nsattr: 0,
        dpc: 0,
        dps: 0,
        deallocated_read: DeallocatedRead::Zeros,
        atomic: AtomicSizes { nawun: 1, nawupf: 2, nabsn: 3, nabo: 4, nabspf: 5 },
        preferred: PreferredSizes { npwg: 6, npwa: 7, npdg: 8, npda: 9, nows: 10 },
        nvmcap_bytes: 1 << 40,
        nguid: [1; 16],
        eui64: [2; 8],
        lightnvm: true,
    }
}
