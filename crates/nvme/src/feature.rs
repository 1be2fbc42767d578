//! Feature identifiers of Set Features and Get Features.
//!
//! Deliberately not here: the contents of the open-channel features, which are [`crate::ocssd20::ErrorRecovery`] and
//! [`crate::ocssd20::MediaFeedback`]. Source: NVMe base 1.4 figure "Feature Identifiers"; OCSSD 2.0 section 3.4.

/// A feature identifier (FID).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FeatureId(pub u8);

impl FeatureId {
    /// Arbitration.
    pub const ARBITRATION: Self = Self(0x01);
    /// Power management.
    pub const POWER_MANAGEMENT: Self = Self(0x02);
    /// Temperature threshold.
    pub const TEMPERATURE_THRESHOLD: Self = Self(0x04);
    /// Error recovery: time limit and DULBE. Mandatory on OCSSD 2.0.
    pub const ERROR_RECOVERY: Self = Self(0x05);
    /// Volatile write cache.
    pub const VOLATILE_WRITE_CACHE: Self = Self(0x06);
    /// Number of queues.
    pub const NUMBER_OF_QUEUES: Self = Self(0x07);
    /// Interrupt coalescing.
    pub const INTERRUPT_COALESCING: Self = Self(0x08);
    /// Interrupt vector configuration.
    pub const INTERRUPT_VECTOR: Self = Self(0x09);
    /// Write atomicity.
    pub const WRITE_ATOMICITY: Self = Self(0x0A);
    /// Which asynchronous events are sent.
    pub const ASYNC_EVENT_CONFIGURATION: Self = Self(0x0B);
    /// Keep alive timer.
    pub const KEEP_ALIVE_TIMER: Self = Self(0x0F);
    /// Key Value Configuration: bit 0 (EDNEK) makes it an error to delete a key that does not exist (KV command set).
    pub const KEY_VALUE_CONFIGURATION: Self = Self(0x20);
    /// OCSSD 2.0 media feedback.
    pub const MEDIA_FEEDBACK: Self = Self(0xCA);
}

/// Which value of a feature Get Features asks for (CDW10 bits 10:8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Select {
    /// 000b: the value in force.
    #[default]
    Current,
    /// 001b: the value after a factory reset.
    Default,
    /// 010b: the value after a power cycle.
    Saved,
    /// 011b: what the feature can do (saveable, per namespace, changeable).
    SupportedCapabilities,
    /// 100b to 111b.
    Reserved(u8),
}

impl Select {
    /// From the three bits; higher bits are ignored.
    pub fn from_bits(bits: u8) -> Self {
        match bits & 7 {
            0 => Self::Current,
            1 => Self::Default,
            2 => Self::Saved,
            3 => Self::SupportedCapabilities,
            reserved => Self::Reserved(reserved),
        }
    }

    /// The three bits.
    pub fn to_bits(self) -> u8 {
        match self {
            Self::Current => 0,
            Self::Default => 1,
            Self::Saved => 2,
            Self::SupportedCapabilities => 3,
            Self::Reserved(bits) => bits & 7,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn select_round_trips() {
        for bits in 0..8 {
            assert_eq!(Select::from_bits(bits).to_bits(), bits);
        }
    }
}
