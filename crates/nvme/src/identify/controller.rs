//! Identify Controller (CNS 01h), 4096 bytes.
//!
//! Only fields that say something about these drives; all others are zero. Source: NVMe base 1.4 figure 247.

use super::text::Text;
use crate::wire::{ShortInput, array_at, fixed, put, u16_at, u32_at};
use std::fmt;

/// PCI vendor of the open-channel drives that Linux knew (CNEX Labs; QEMU used it too).
pub const VENDOR_OCSSD: u16 = 0x1D1D;

/// Longest SUBNQN, bytes (NVMe base 1.4 section 7.9: 223 and a zero byte).
const NQN_BYTES_MAX: usize = 223;

/// What a controller says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdentifyController {
    /// PCI vendor.
    pub vid: u16,
    /// PCI subsystem vendor.
    pub ssvid: u16,
    /// Serial number.
    pub sn: Text<20>,
    /// Model number.
    pub mn: Text<40>,
    /// Firmware revision.
    pub fr: Text<8>,
    /// Recommended arbitration burst, as a power of two.
    pub rab: u8,
    /// IEEE OUI, lowest byte first.
    pub ieee: [u8; 3],
    /// Whether the subsystem has several ports or controllers.
    pub cmic: u8,
    /// Maximum data transfer: 2^mdts pages of the controller's smallest page size; 0 is unlimited.
    pub mdts: u8,
    /// Controller identifier.
    pub cntlid: u16,
    /// Version: 0x0001_0400 is 1.4.0.
    pub ver: u32,
    /// Optional asynchronous events.
    pub oaes: u32,
    /// Controller attributes.
    pub ctratt: u32,
    /// Controller type: 1 is I/O.
    pub cntrltype: u8,
    /// Optional admin commands.
    pub oacs: u16,
    /// Abort command limit, 0-based as on the wire.
    pub acl: u8,
    /// Asynchronous event request limit, 0-based as on the wire.
    pub aerl: u8,
    /// Firmware slots.
    pub frmw: u8,
    /// Log page attributes. Bit 2: Get Log Page takes an offset and a 32-bit length.
    pub lpa: u8,
    /// Error log page entries, 0-based as on the wire.
    pub elpe: u8,
    /// Power states, 0-based as on the wire.
    pub npss: u8,
    /// Keep alive granularity in 100 ms; 0 is not supported.
    pub kas: u16,
    /// Submission entry sizes: maximum 7:4 and required 3:0 as powers of two; 66h is 64 bytes.
    pub sqes: u8,
    /// Completion entry sizes: maximum 7:4 and required 3:0 as powers of two; 44h is 16 bytes.
    pub cqes: u8,
    /// Most outstanding commands per queue (fabrics).
    pub maxcmd: u16,
    /// Number of namespaces.
    pub nn: u32,
    /// Optional NVM commands. Bit 2: Dataset Management.
    pub oncs: u16,
    /// Volatile write cache. Bit 0: present.
    pub vwc: u8,
    /// AWUN, 0-based: blocks that no other command sees a part of, in every namespace.
    pub awun: u16,
    /// AWUPF, 0-based: the same after a power cut or an error.
    pub awupf: u16,
    /// SGL support.
    pub sgls: u32,
    /// NVM subsystem qualified name, at most 223 bytes.
    pub subnqn: String,
    /// Fields that only fabrics use.
    pub fabrics: FabricsLimits,
}

/// The fabrics part of Identify Controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FabricsLimits {
    /// I/O queue command capsule size in 16 bytes.
    pub ioccsz: u32,
    /// I/O queue response capsule size in 16 bytes.
    pub iorcsz: u32,
    /// In-capsule data offset in 16 bytes.
    pub icdoff: u16,
    /// Controller attributes of fabrics.
    pub fcatt: u8,
    /// Most SGL data block descriptors per command; 0 is unlimited.
    pub msdbd: u8,
}

/// Why bytes are not an Identify Controller structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControllerError {
    /// The input ends too early.
    Short(ShortInput),
    /// SUBNQN is not UTF-8.
    NotText,
    /// SUBNQN is too long.
    Long {
        /// Its length.
        found_bytes: usize,
    },
}

impl fmt::Display for ControllerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short(short) => short.fmt(f),
            Self::NotText => f.write_str(
                "SUBNQN (bytes 1023:768) of Identify Controller should be UTF-8 text, but it is not; the structure is damaged",
            ),
            Self::Long { found_bytes } => write!(
                f,
                "SUBNQN (bytes 1023:768) of Identify Controller should have at most {NQN_BYTES_MAX} bytes, but it has \
                 {found_bytes}; shorten the name"
            ),
        }
    }
}

impl std::error::Error for ControllerError {}

impl IdentifyController {
    /// Size on the wire, bytes.
    pub const BYTES: usize = 4096;

    /// From bytes.
    ///
    /// # Errors
    /// [`ControllerError`], in the order of its variants.
    pub fn decode(bytes: &[u8]) -> Result<Self, ControllerError> {
        let bytes = fixed::<{ Self::BYTES }>("Identify Controller", bytes).map_err(ControllerError::Short)?;
        Ok(Self {
            vid: u16_at(bytes, 0),
            ssvid: u16_at(bytes, 2),
            sn: Text::from_bytes(array_at(bytes, 4)),
            mn: Text::from_bytes(array_at(bytes, 24)),
            fr: Text::from_bytes(array_at(bytes, 64)),
            rab: bytes[72],
            ieee: array_at(bytes, 73),
            cmic: bytes[76],
            mdts: bytes[77],
            cntlid: u16_at(bytes, 78),
            ver: u32_at(bytes, 80),
            oaes: u32_at(bytes, 92),
            ctratt: u32_at(bytes, 96),
            cntrltype: bytes[111],
            oacs: u16_at(bytes, 256),
            acl: bytes[258],
            aerl: bytes[259],
            frmw: bytes[260],
            lpa: bytes[261],
            elpe: bytes[262],
            npss: bytes[263],
            kas: u16_at(bytes, 320),
            sqes: bytes[512],
            cqes: bytes[513],
            maxcmd: u16_at(bytes, 514),
            nn: u32_at(bytes, 516),
            oncs: u16_at(bytes, 520),
            vwc: bytes[525],
            awun: u16_at(bytes, 526),
            awupf: u16_at(bytes, 528),
            sgls: u32_at(bytes, 536),
            subnqn: decode_subnqn(&bytes[768..1024])?,
            fabrics: FabricsLimits {
                ioccsz: u32_at(bytes, 1792),
                iorcsz: u32_at(bytes, 1796),
                icdoff: u16_at(bytes, 1800),
                fcatt: bytes[1802],
                msdbd: bytes[1803],
            },
        })
    }

    /// The 4096 bytes.
    ///
    /// # Panics
    /// If `subnqn` is longer than 223 bytes or holds a zero byte.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let nqn = self.subnqn.as_bytes();
        assert!(nqn.len() <= NQN_BYTES_MAX, "SUBNQN has at most {NQN_BYTES_MAX} bytes, not {}", nqn.len());
        assert!(!nqn.contains(&0), "SUBNQN ends at its first zero byte");
        let mut bytes = [0; Self::BYTES];
        put(&mut bytes, 4, &self.sn.to_bytes());
        put(&mut bytes, 24, &self.mn.to_bytes());
        put(&mut bytes, 64, &self.fr.to_bytes());
        put(&mut bytes, 72, &[self.rab, self.ieee[0], self.ieee[1], self.ieee[2], self.cmic, self.mdts]);
        bytes[111] = self.cntrltype;
        put(&mut bytes, 258, &[self.acl, self.aerl, self.frmw, self.lpa, self.elpe, self.npss]);
        put(&mut bytes, 512, &[self.sqes, self.cqes]);
        bytes[525] = self.vwc;
        put(&mut bytes, 768, nqn);
        put(&mut bytes, 1802, &[self.fabrics.fcatt, self.fabrics.msdbd]);
        self.put_words(&mut bytes);
        bytes
    }

    /// Places the fields of 16 and 32 bits.
    fn put_words(&self, bytes: &mut [u8; Self::BYTES]) {
        let words = [
            (0, self.vid),
            (2, self.ssvid),
            (78, self.cntlid),
            (256, self.oacs),
            (320, self.kas),
            (514, self.maxcmd),
            (520, self.oncs),
            (526, self.awun),
            (528, self.awupf),
            (1800, self.fabrics.icdoff),
        ];
        for (offset, word) in words {
            put(bytes, offset, &word.to_le_bytes());
        }
        let dwords = [
            (80, self.ver),
            (92, self.oaes),
            (96, self.ctratt),
            (516, self.nn),
            (536, self.sgls),
            (1792, self.fabrics.ioccsz),
            (1796, self.fabrics.iorcsz),
        ];
        for (offset, dword) in dwords {
            put(bytes, offset, &dword.to_le_bytes());
        }
    }
}

/// The text up to the first zero byte.
fn decode_subnqn(field: &[u8]) -> Result<String, ControllerError> {
    let found_bytes = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    let text = std::str::from_utf8(&field[..found_bytes]).map_err(|_| ControllerError::NotText)?;
    if found_bytes > NQN_BYTES_MAX {
        return Err(ControllerError::Long { found_bytes });
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes() -> [u8; 4096] {
        let mut bytes = [0; 4096];
        bytes[..4].copy_from_slice(&[0x1D, 0x1D, 0xF4, 0x1A]);
        bytes[4..72].fill(b' ');
        bytes[4..7].copy_from_slice(b"S/N");
        bytes[24..29].copy_from_slice(b"ocssd");
        bytes[64..67].copy_from_slice(b"1.0");
        let single = [(72, 1), (73, 2), (74, 3), (75, 4), (76, 5), (77, 7), (78, 8), (81, 4), (82, 1)];
        let more = [(92, 9), (96, 10), (111, 1), (256, 11), (258, 12), (259, 13), (260, 14), (261, 15)];
        let rest = [(262, 16), (263, 17), (320, 18), (512, 0x66), (513, 0x44), (514, 19), (516, 20)];
        let last = [(520, 21), (525, 1), (526, 28), (528, 29), (536, 22), (1792, 23), (1796, 24), (1800, 25)];
        let fabrics = [(1802, 26), (1803, 27)];
        for (offset, value) in single.into_iter().chain(more).chain(rest).chain(last).chain(fabrics) {
            bytes[offset] = value;
        }
        bytes[768..776].copy_from_slice(b"nqn.test");
        bytes
    }

    #[test]
    fn every_field_sits_where_the_table_puts_it() {
        let id = IdentifyController::decode(&bytes()).expect("a valid structure");
        assert_eq!((id.vid, id.ssvid), (VENDOR_OCSSD, 0x1AF4));
        assert_eq!((id.sn.to_string(), id.mn.to_string()), ("S/N".to_owned(), "ocssd".to_owned()));
        assert_eq!((id.fr.to_string(), id.subnqn.as_str()), ("1.0".to_owned(), "nqn.test"));
        assert_eq!((id.rab, id.ieee, id.cmic, id.mdts), (1, [2, 3, 4], 5, 7));
        assert_eq!((id.cntlid, id.ver, id.oaes, id.ctratt, id.cntrltype), (8, 0x0001_0400, 9, 10, 1));
        assert_eq!((id.oacs, id.acl, id.aerl, id.frmw, id.lpa), (11, 12, 13, 14, 15));
        assert_eq!((id.elpe, id.npss, id.kas, id.sqes, id.cqes), (16, 17, 18, 0x66, 0x44));
        assert_eq!((id.maxcmd, id.nn, id.oncs, id.vwc, id.sgls), (19, 20, 21, 1, 22));
        assert_eq!((id.awun, id.awupf), (28, 29));
        let fabrics = FabricsLimits { ioccsz: 23, iorcsz: 24, icdoff: 25, fcatt: 26, msdbd: 27 };
        assert_eq!(id.fabrics, fabrics);
        assert_eq!(id.encode(), bytes());
    }

    #[test]
    fn damaged_names_are_refused_with_a_sentence() {
        let mut not_text = bytes();
        not_text[768] = 0xFF;
        let mut long = bytes();
        long[768..992].fill(b'x');
        for (bytes, says) in [(not_text, "UTF-8"), (long, "it has 224")] {
            let error = IdentifyController::decode(&bytes).expect_err(says).to_string();
            assert!(error.contains(says), "{error}");
        }
        assert!(matches!(IdentifyController::decode(&[]), Err(ControllerError::Short(_))));
    }
}
