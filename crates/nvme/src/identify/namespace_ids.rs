//! The namespace identification descriptor list (CNS 03h), 4096 bytes.
//!
//! ```text
//! each descriptor: byte 0 NIDT   1 NIDL   2 reserved (2)   4.. NID; the list ends where NIDL is 0
//! ```
//! Source: NVMe base 1.4 figure 246; CSI (type 4) from TP4056.

use crate::wire::{ShortInput, fixed};
use std::fmt;

/// A namespace's identifiers; each may be absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NamespaceIds {
    /// Type 1: IEEE extended unique identifier.
    pub eui64: Option<[u8; 8]>,
    /// Type 2: globally unique identifier.
    pub nguid: Option<[u8; 16]>,
    /// Type 3: UUID.
    pub uuid: Option<[u8; 16]>,
    /// Type 4: command set identifier; 0 NVM, 1 key value, 2 zoned.
    pub csi: Option<u8>,
}

/// Why bytes are not a descriptor list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamespaceIdsError {
    /// The input ends too early.
    Short(ShortInput),
    /// A descriptor of a known type has a length its type cannot have, or reaches beyond the list.
    Length {
        /// NIDT.
        kind: u8,
        /// NIDL.
        found_bytes: u8,
        /// Where the descriptor starts.
        offset: usize,
    },
    /// A type occurs twice.
    Twice {
        /// NIDT.
        kind: u8,
        /// Where it occurs again.
        offset: usize,
    },
}

impl fmt::Display for NamespaceIdsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short(short) => short.fmt(f),
            Self::Length { kind, found_bytes, offset } => write!(
                f,
                "the namespace identifier of type {kind} at byte {offset} should have the length of its type and end inside \
                 the list, but its length is {found_bytes}; the list is damaged"
            ),
            Self::Twice { kind, offset } => write!(
                f,
                "a namespace should have one identifier per type, but type {kind} comes again at byte {offset}; the list is \
                 damaged"
            ),
        }
    }
}

impl std::error::Error for NamespaceIdsError {}

impl NamespaceIds {
    /// Size on the wire, bytes.
    pub const BYTES: usize = 4096;

    /// From bytes. Types this crate does not know are skipped.
    ///
    /// # Errors
    /// [`NamespaceIdsError`] at the first descriptor that is wrong.
    pub fn decode(bytes: &[u8]) -> Result<Self, NamespaceIdsError> {
        let bytes = fixed::<{ Self::BYTES }>("the namespace identifier list", bytes)
            .map_err(NamespaceIdsError::Short)?;
        let (mut ids, mut offset) = (Self::default(), 0);
        while let Some([kind, found_bytes, _, _]) = bytes[offset..].first_chunk::<4>().copied() {
            if found_bytes == 0 {
                break;
            }
            let wrong_length = NamespaceIdsError::Length { kind, found_bytes, offset };
            let end = offset + 4 + usize::from(found_bytes);
            let nid = bytes.get(offset + 4..end).ok_or(wrong_length)?;
            let again = match kind {
                1 => ids.eui64.replace(nid.try_into().map_err(|_| wrong_length)?).is_some(),
                2 => ids.nguid.replace(nid.try_into().map_err(|_| wrong_length)?).is_some(),
                3 => ids.uuid.replace(nid.try_into().map_err(|_| wrong_length)?).is_some(),
                4 => {
                    let [csi] = *<&[u8; 1]>::try_from(nid).map_err(|_| wrong_length)?;
                    ids.csi.replace(csi).is_some()
                }
                _ => false,
            };
            if again {
                return Err(NamespaceIdsError::Twice { kind, offset });
            }
            offset = end;
        }
        Ok(ids)
    }

    /// The 4096 bytes, types ascending.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let csi = self.csi.map(|csi| [csi]);
        let parts: [(u8, Option<&[u8]>); 4] = [
            (1, self.eui64.as_ref().map(|id| &id[..])),
            (2, self.nguid.as_ref().map(|id| &id[..])),
            (3, self.uuid.as_ref().map(|id| &id[..])),
            (4, csi.as_ref().map(|id| &id[..])),
        ];
        let (mut bytes, mut offset) = ([0; Self::BYTES], 0);
        for (kind, nid) in parts {
            let Some(nid) = nid else { continue };
            bytes[offset] = kind;
            bytes[offset + 1] = u8::try_from(nid.len()).expect("identifiers have at most 16 bytes");
            bytes[offset + 4..offset + 4 + nid.len()].copy_from_slice(nid);
            offset += 4 + nid.len();
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_follow_each_other() {
        let mut bytes = [0; 4096];
        bytes[..12].copy_from_slice(&[1, 8, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
        bytes[12..16].copy_from_slice(&[3, 16, 0, 0]);
        bytes[31] = 0xEE;
        bytes[32..37].copy_from_slice(&[4, 1, 0, 0, 2]);
        let mut uuid = [0; 16];
        uuid[15] = 0xEE;
        let ids = NamespaceIds {
            eui64: Some([1, 2, 3, 4, 5, 6, 7, 8]),
            nguid: None,
            uuid: Some(uuid),
            csi: Some(2),
        };
        assert_eq!(NamespaceIds::decode(&bytes), Ok(ids));
        assert_eq!(ids.encode(), bytes);
    }

    #[test]
    fn unknown_types_are_skipped_and_the_list_may_fill_all_bytes() {
        let mut bytes = [0; 4096];
        for start in (0..4096).step_by(64) {
            bytes[start..start + 2].copy_from_slice(&[9, 60]);
        }
        assert_eq!(NamespaceIds::decode(&bytes), Ok(NamespaceIds::default()));
    }

    #[test]
    fn wrong_lengths_and_repeated_types_are_refused() {
        let mut bytes = [0; 4096];
        bytes[..2].copy_from_slice(&[1, 7]);
        let error = NamespaceIds::decode(&bytes).expect_err("EUI64 has 8 bytes").to_string();
        assert!(error.contains("type 1 at byte 0"), "{error}");
        bytes[..2].copy_from_slice(&[4, 1]);
        bytes[5..7].copy_from_slice(&[4, 1]);
        let error = NamespaceIds::decode(&bytes).expect_err("CSI twice").to_string();
        assert!(error.contains("again at byte 5"), "{error}");
        let mut beyond = [0; 4096];
        for start in (0..4000).step_by(200) {
            beyond[start..start + 2].copy_from_slice(&[9, 196]);
        }
        beyond[4000..4002].copy_from_slice(&[9, 93]);
        assert!(matches!(NamespaceIds::decode(&beyond), Err(NamespaceIdsError::Length { offset: 4000, .. })));
        assert!(matches!(NamespaceIds::decode(&[]), Err(NamespaceIdsError::Short(_))));
    }
}
