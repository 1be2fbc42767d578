//! The commands: all have a key in CDW2, CDW3, CDW14 and CDW15, and its length in CDW11.
//!
//! Source: KV command set 1.0 section 3. Keys are any bytes; CDW12 and CDW13 mean nothing, whatever hosts put there.

use super::KvOpcode;
use crate::sqe::Sqe;
use crate::wire::{bit, byte, flag};

/// Bytes a command has for a key.
pub const KEY_BYTES_MAX: usize = 16;

/// SO, CDW11 bits 15:8 of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreOptions {
    /// Bit 0: only if the key exists.
    pub must_exist: bool,
    /// Bit 1: only if it does not.
    pub must_not_exist: bool,
    /// Bit 2: the value is not compressed.
    pub uncompressed: bool,
}

/// Any command of the set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyValueCommand {
    /// The key, and whatever lies behind its end.
    pub key: [u8; KEY_BYTES_MAX],
    /// KL, CDW11 bits 7:0: bytes of the key, up to 255 on the wire.
    pub key_bytes: u8,
    /// CDW10: bytes of the value of a store; room of a retrieve or list.
    pub bytes: u32,
    /// CDW11 bits 15:8, as they are.
    pub options: u8,
    /// CDW12: first byte of the value, in the vendor's commands on parts of one; means nothing in others.
    pub offset: u32,
    /// CDW13: the host's name for a stage, in the vendor's commands on one; means nothing in others.
    pub stage: u32,
}

impl KeyValueCommand {
    /// The view of an entry.
    #[must_use]
    pub fn of(sqe: &Sqe) -> Self {
        let mut key = [0; KEY_BYTES_MAX];
        let dwords = [sqe.cdw2, sqe.cdw3, sqe.cdw14, sqe.cdw15];
        key.chunks_exact_mut(4)
            .zip(dwords)
            .for_each(|(place, dword)| place.copy_from_slice(&dword.to_le_bytes()));
        let (key_bytes, options) = (byte(sqe.cdw11, 0), byte(sqe.cdw11, 1));
        Self { key, key_bytes, bytes: sqe.cdw10, options, offset: sqe.cdw12, stage: sqe.cdw13 }
    }

    /// A command about a key, without options.
    ///
    /// # Panics
    /// If the key has more than 16 bytes.
    #[must_use]
    pub fn new(name: &[u8], bytes: u32) -> Self {
        let mut key = [0; KEY_BYTES_MAX];
        key[..name.len()].copy_from_slice(name);
        let key_bytes = u8::try_from(name.len()).expect("at most 16");
        Self { key, key_bytes, bytes, options: 0, offset: 0, stage: 0 }
    }

    /// The key; `None` if it is longer than a command has room for.
    #[must_use]
    pub fn name(&self) -> Option<&[u8]> {
        self.key.get(..usize::from(self.key_bytes))
    }

    /// Its options, as those of a store.
    #[must_use]
    pub fn store_options(&self) -> StoreOptions {
        let bits = u32::from(self.options);
        StoreOptions { must_exist: bit(bits, 0), must_not_exist: bit(bits, 1), uncompressed: bit(bits, 2) }
    }

    /// The same with the options of a store.
    #[must_use]
    pub fn with_store_options(self, options: StoreOptions) -> Self {
        let StoreOptions { must_exist, must_not_exist, uncompressed } = options;
        let bits = flag(must_exist, 0) | flag(must_not_exist, 1) | flag(uncompressed, 2);
        Self { options: byte(bits, 0), ..self }
    }
}

impl Sqe {
    /// A command of the Key Value Command Set.
    #[must_use]
    pub fn key_value(opcode: KvOpcode, nsid: u32, command: KeyValueCommand) -> Self {
        let dword = |place: usize| {
            u32::from_le_bytes(command.key[4 * place..][..4].try_into().expect("four bytes of sixteen"))
        };
        Self {
            opcode: opcode.0,
            nsid,
            cdw2: dword(0),
            cdw3: dword(1),
            cdw14: dword(2),
            cdw15: dword(3),
            cdw10: command.bytes,
            cdw11: u32::from(command.key_bytes) | u32::from(command.options) << 8,
            cdw12: command.offset,
            cdw13: command.stage,
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_lies_in_four_dwords_in_order() {
        let store = KeyValueCommand::new(b"0123456789abcdef", 4096);
        let store =
            store.with_store_options(StoreOptions { must_not_exist: true, ..StoreOptions::default() });
        let bytes = Sqe::key_value(KvOpcode::STORE, 9, store).encode();
        assert_eq!((&bytes[8..16], &bytes[56..64]), (&b"01234567"[..], &b"89abcdef"[..]));
        assert_eq!((bytes[0], bytes[4], &bytes[40..46]), (1, 9, &[0, 16, 0, 0, 16, 2][..]));
        let found = KeyValueCommand::of(&Sqe::decode(&bytes));
        assert_eq!((found, found.name()), (store, Some(&b"0123456789abcdef"[..])));
        assert!(found.store_options().must_not_exist && !found.store_options().must_exist);
    }

    #[test]
    fn a_length_beyond_the_command_is_seen() {
        let sqe = Sqe { cdw11: 17, ..Sqe::default() };
        assert_eq!((KeyValueCommand::of(&sqe).key_bytes, KeyValueCommand::of(&sqe).name()), (17, None));
        assert_eq!(KeyValueCommand::new(b"", 0).name(), Some(&b""[..]));
    }
}
