//! Commands supported and effects (LID 05h), 4096 bytes: a dword per opcode, admin commands first.
//!
//! Source: NVMe base 1.4 figures 196 and 197.

use crate::wire::{ShortInput, bit, fixed, flag, put, u32_at};

/// What a command does besides its work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommandEffects {
    /// CSUPP, bit 0: the controller has it.
    pub supported: bool,
    /// LBCC, bit 1: it changes content.
    pub changes_content: bool,
}

impl CommandEffects {
    /// A command that changes no content.
    pub const SUPPORTED: Self = Self { supported: true, changes_content: false };
    /// A command that changes content.
    pub const CHANGES: Self = Self { supported: true, changes_content: true };

    fn from_dword(dword: u32) -> Self {
        Self { supported: bit(dword, 0), changes_content: bit(dword, 1) }
    }

    fn to_dword(self) -> u32 {
        flag(self.supported, 0) | flag(self.changes_content, 1)
    }
}

/// The page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectsLog {
    /// Admin commands by opcode.
    pub admin: Box<[CommandEffects; 256]>,
    /// I/O commands by opcode.
    pub io: Box<[CommandEffects; 256]>,
}

impl Default for EffectsLog {
    /// Nothing is supported.
    fn default() -> Self {
        let none = [CommandEffects::default(); 256];
        Self { admin: Box::new(none), io: Box::new(none) }
    }
}

impl EffectsLog {
    /// Size on the wire, bytes.
    pub const BYTES: usize = 4096;

    /// From the first 4096 bytes.
    ///
    /// # Errors
    /// [`ShortInput`] if there are fewer.
    pub fn decode(bytes: &[u8]) -> Result<Self, ShortInput> {
        let bytes = fixed::<{ Self::BYTES }>("the command effects log page", bytes)?;
        let mut log = Self::default();
        for opcode in 0..256 {
            log.admin[opcode] = CommandEffects::from_dword(u32_at(bytes, 4 * opcode));
            log.io[opcode] = CommandEffects::from_dword(u32_at(bytes, 1024 + 4 * opcode));
        }
        Ok(log)
    }

    /// The 4096 bytes.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        for opcode in 0..256 {
            put(&mut bytes, 4 * opcode, &self.admin[opcode].to_dword().to_le_bytes());
            put(&mut bytes, 1024 + 4 * opcode, &self.io[opcode].to_dword().to_le_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn admin_commands_come_first_and_io_commands_at_byte_1024() {
        let mut bytes = [0; 4096];
        bytes[4 * 6] = 1;
        bytes[1024 + 4] = 3;
        bytes[1024 + 4 * 255] = 1;
        let log = EffectsLog::decode(&bytes).expect("4096 bytes");
        assert_eq!((log.admin[6], log.io[1]), (CommandEffects::SUPPORTED, CommandEffects::CHANGES));
        assert_eq!((log.io[255], log.io[254]), (CommandEffects::SUPPORTED, CommandEffects::default()));
        assert_eq!(log.encode(), bytes);
        assert!(EffectsLog::decode(&bytes[1..]).is_err());
    }
}
