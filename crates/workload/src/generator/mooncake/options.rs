//! What a run of a trace is asked to be.
//!
//! Deliberately not here: the trace, and reading its file.

use super::trace::BLOCK_TOKENS;
use crate::generator::words::Words;
use ocssd_base::{Nanos, Problems};
use ocssd_lightnvm::interface::Durability;
use ocssd_lightnvm::interface::key_value::KvLimits;

/// Bytes of KV cache a token has, unless asked for otherwise (chosen: blocks of 256 KiB, within the 512 KiB that Mooncake's NVMe
/// KV executor stores at most by default, and small drives hold thousands; models have 64 KiB to 320 KiB a token).
const BYTES_PER_TOKEN: u32 = 512;
/// Of the target's capacity blocks take so many percent, unless asked for otherwise (chosen: a store that is well used, and has
/// room for keys).
const CACHE_PERCENT: u64 = 90;

/// Requests that are drawn without a trace, unless asked for otherwise (chosen: five minutes of the published one).
const REQUESTS_DRAWN: u64 = 1_000;

/// Options.
#[derive(Clone, Debug, PartialEq)]
pub struct MooncakeOptions {
    /// The file of a trace, which the caller reads; one is drawn without it.
    pub trace: Option<String>,
    /// Requests of the trace, from its first on; `None` is all of a file, and a thousand of what is drawn.
    pub requests: Option<u64>,
    /// Bytes of a token: a block has 512 tokens.
    pub bytes_per_token: u32,
    /// Bytes of blocks that are kept.
    pub cache_bytes: u64,
    /// How many times as fast as in the trace requests arrive; 0 is as fast as answers come.
    pub speed: f64,
    /// The trace is repeated, with blocks of its own each time, until so many bytes were stored; 0 is once.
    pub store_bytes: u64,
    /// When stores survive.
    pub durability: Durability,
}

impl MooncakeOptions {
    /// Reads options for a target with these limits.
    ///
    /// # Errors
    /// Every option that cannot be used, in a sentence.
    pub fn parse(text: &str, limits: &KvLimits) -> Result<Self, Problems> {
        let mut words = Words::new(text);
        let options = Self {
            trace: words.text("trace"),
            requests: Some(words.number("requests", 0, 0..=1 << 32)).filter(|&count| count > 0),
            bytes_per_token: words.number32("bytespertoken", BYTES_PER_TOKEN, 1..=1 << 20),
            cache_bytes: words.number(
                "cachebytes",
                limits.capacity_bytes / 100 * CACHE_PERCENT,
                1..=limits.capacity_bytes,
            ),
            speed: words.decimal("speed", 1.0, 0.0..=1e6),
            store_bytes: words.number("storebytes", 0, 0..=1 << 60),
            durability: words.choice(
                "durable",
                Durability::AtFlush,
                &[("reply", Durability::AtReply), ("flush", Durability::AtFlush)],
            ),
        };
        let block = u64::from(options.bytes_per_token) * u64::from(BLOCK_TOKENS);
        let most = u64::from(limits.value_bytes_max).min(options.cache_bytes);
        let expected = format!(
            "a block of {BLOCK_TOKENS} tokens must fit a value of the target and what is kept, at most {most} bytes: \
             take {} or less",
            most / u64::from(BLOCK_TOKENS)
        );
        words.require(block <= most, "bytespertoken", options.bytes_per_token, &expected);
        words.finish().map(|()| options)
    }

    /// Requests that are drawn without a trace.
    pub fn drawn(&self) -> u64 {
        self.requests.unwrap_or(REQUESTS_DRAWN)
    }

    /// Requests come at their times.
    pub const fn is_timed(&self) -> bool {
        self.speed > 0.0
    }

    /// A time of the trace as it is here.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "times of a trace are far below 2^53 ns, and not negative"
    )]
    pub fn scaled(&self, at_ms: u64) -> Nanos {
        if self.is_timed() { Nanos((at_ms as f64 * 1e6 / self.speed) as u64) } else { Nanos::ZERO }
    }
}
