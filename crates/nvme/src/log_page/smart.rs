//! SMART / health information (LID 02h), 512 bytes.
//!
//! Source: NVMe base 1.4 figure 194.

use crate::wire::{ShortInput, fixed, put, u16_at, u32_at, u128_at};

/// The drive's health. What a drive does not measure is zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SmartLog {
    /// Critical warning bits: 0 spare low, 1 temperature, 2 reliability degraded, 3 read only, 4 volatile backup
    /// failed.
    pub critical_warning: u8,
    /// Composite temperature, kelvin.
    pub temperature_kelvin: u16,
    /// Spare left, percent.
    pub available_spare: u8,
    /// Spare at which the drive warns, percent.
    pub available_spare_threshold: u8,
    /// Life used, percent; may exceed 100 and stops at 255.
    pub percentage_used: u8,
    /// Data read, in units of 1000 times 512 bytes, rounded up.
    pub data_units_read: u128,
    /// Data written, in units of 1000 times 512 bytes, rounded up.
    pub data_units_written: u128,
    /// Read commands completed.
    pub host_read_commands: u128,
    /// Write commands completed.
    pub host_write_commands: u128,
    /// Time with a command in progress, minutes.
    pub controller_busy_minutes: u128,
    /// Power cycles.
    pub power_cycles: u128,
    /// Hours powered on.
    pub power_on_hours: u128,
    /// Times power went without notice.
    pub unsafe_shutdowns: u128,
    /// Times data could not be recovered.
    pub media_errors: u128,
    /// Entries ever made in the error log.
    pub error_log_entries: u128,
    /// Minutes above the warning temperature.
    pub warning_temperature_minutes: u32,
    /// Minutes above the critical temperature.
    pub critical_temperature_minutes: u32,
}

impl SmartLog {
    /// Size on the wire, bytes.
    pub const BYTES: usize = 512;

    /// From the first 512 bytes.
    ///
    /// # Errors
    /// [`ShortInput`] if there are fewer.
    pub fn decode(bytes: &[u8]) -> Result<Self, ShortInput> {
        let bytes = fixed::<{ Self::BYTES }>("the SMART log page", bytes)?;
        Ok(Self {
            critical_warning: bytes[0],
            temperature_kelvin: u16_at(bytes, 1),
            available_spare: bytes[3],
            available_spare_threshold: bytes[4],
            percentage_used: bytes[5],
            data_units_read: u128_at(bytes, 32),
            data_units_written: u128_at(bytes, 48),
            host_read_commands: u128_at(bytes, 64),
            host_write_commands: u128_at(bytes, 80),
            controller_busy_minutes: u128_at(bytes, 96),
            power_cycles: u128_at(bytes, 112),
            power_on_hours: u128_at(bytes, 128),
            unsafe_shutdowns: u128_at(bytes, 144),
            media_errors: u128_at(bytes, 160),
            error_log_entries: u128_at(bytes, 176),
            warning_temperature_minutes: u32_at(bytes, 192),
            critical_temperature_minutes: u32_at(bytes, 196),
        })
    }

    /// The 512 bytes.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[0] = self.critical_warning;
        put(&mut bytes, 1, &self.temperature_kelvin.to_le_bytes());
        put(&mut bytes, 3, &[self.available_spare, self.available_spare_threshold, self.percentage_used]);
        let counters = [
            self.data_units_read,
            self.data_units_written,
            self.host_read_commands,
            self.host_write_commands,
            self.controller_busy_minutes,
            self.power_cycles,
            self.power_on_hours,
            self.unsafe_shutdowns,
            self.media_errors,
            self.error_log_entries,
        ];
        for (index, counter) in counters.into_iter().enumerate() {
            put(&mut bytes, 32 + 16 * index, &counter.to_le_bytes());
        }
        put(&mut bytes, 192, &self.warning_temperature_minutes.to_le_bytes());
        put(&mut bytes, 196, &self.critical_temperature_minutes.to_le_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_sits_where_the_table_puts_it() {
        let mut bytes = [0; 512];
        bytes[..6].copy_from_slice(&[4, 0x36, 0x01, 90, 10, 55]);
        for (value, offset) in (1..).zip((32..192).step_by(16)) {
            bytes[offset] = value;
        }
        bytes[47] = 0x80;
        bytes[192] = 11;
        bytes[196] = 12;
        let log = SmartLog::decode(&bytes).expect("512 bytes");
        assert_eq!((log.critical_warning, log.temperature_kelvin), (4, 310));
        assert_eq!((log.available_spare, log.available_spare_threshold, log.percentage_used), (90, 10, 55));
        assert_eq!((log.data_units_read, log.data_units_written), (1 << 127 | 1, 2));
        assert_eq!((log.host_read_commands, log.host_write_commands), (3, 4));
        assert_eq!((log.controller_busy_minutes, log.power_cycles, log.power_on_hours), (5, 6, 7));
        assert_eq!((log.unsafe_shutdowns, log.media_errors, log.error_log_entries), (8, 9, 10));
        assert_eq!((log.warning_temperature_minutes, log.critical_temperature_minutes), (11, 12));
        assert_eq!(log.encode(), bytes);
        assert!(SmartLog::decode(&bytes[..511]).is_err());
    }
}
