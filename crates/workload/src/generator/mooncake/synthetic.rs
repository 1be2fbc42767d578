//! A trace of the shape of Mooncake's, drawn: conversations that go on, all behind one system prompt.
//!
//! Requests come in bursts three seconds apart. A request goes on with an earlier conversation, a recent one more likely, or begins
//! one. A conversation that goes on has the whole blocks of its last prompt, then ids of its own: what it was answered and what the
//! user adds. The first block is the same in all. The constants are fitted to `conversation_trace.jsonl` (FAST'25 artifact), which
//! has 10 requests a burst, prompts of 12 035 tokens in the mean whose logarithm varies by 1.2, answers of 343, two minutes between
//! the turns in the middle, and 36.6 of 100 blocks that an earlier request had. Deliberately not here: the time of day, and
//! documents that several conversations share.

use super::trace::{BLOCK_TOKENS, Trace, TraceRequest};
use ocssd_base::Prng;

/// Milliseconds between bursts, and requests of one in the mean.
const BURST_MS: u64 = 3_000;
const BURST_REQUESTS: u64 = 10;
/// Requests of a thousand that go on with a conversation (fitted to the blocks that are known; published are 387, but some of them
/// share a document only).
const GO_ON: u64 = 360;
/// Tokens of a first prompt, and what a turn adds beside the answer before it: mean and deviation of the logarithm, bounds.
const PROMPT: Lognormal = Lognormal { mean: 8.5, deviation: 1.28, least: 600, most: 120_000 };
const TURN: Lognormal = Lognormal { mean: 6.6, deviation: 1.5, least: 8, most: 60_000 };
const ANSWER: Lognormal = Lognormal { mean: 5.6, deviation: 0.7, least: 1, most: 2_000 };
/// Conversations of which one goes on (chosen: with ten requests a burst, two minutes to the middle of them).
const RECENT: usize = 1_400;

struct Lognormal {
    mean: f64,
    deviation: f64,
    least: u32,
    most: u32,
}

impl Lognormal {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    fn draw(&self, prng: &mut Prng) -> u32 {
        // Twelve uniform draws less six: nearly normal, with nothing but sums, so equal everywhere.
        let normal: f64 = (0..12).map(|_| prng.unit_f64()).sum::<f64>() - 6.0;
        let drawn = normal.mul_add(self.deviation, self.mean).exp();
        drawn.clamp(f64::from(self.least), f64::from(self.most)) as u32
    }
}

/// A conversation: its last prompt and answer.
struct Conversation {
    tokens: u32,
    answer: u32,
    blocks: Vec<u64>,
}

/// Draws `count` requests.
#[must_use]
pub fn synthetic(count: u64, prng: &Prng) -> Trace {
    let mut prng = prng.split("mooncake");
    let mut recent: Vec<Conversation> = Vec::new();
    let (mut requests, mut at_ms, mut next) = (Vec::new(), 0, 1);
    let mut burst = 0;
    for _ in 0..count {
        if burst == 0 {
            at_ms = if requests.is_empty() { 0 } else { at_ms + BURST_MS };
            burst = 1 + prng.below(2 * BURST_REQUESTS - 1);
        }
        burst -= 1;
        let goes_on = !recent.is_empty() && prng.below(1000) < GO_ON;
        let (before, tokens) = if goes_on {
            // The younger half of them twice as likely.
            let all = u64::try_from(recent.len()).expect("few");
            let nth = prng.below(all).max(prng.below(all));
            let last = recent.remove(usize::try_from(nth).expect("an index"));
            let tokens = last.tokens.saturating_add(last.answer).saturating_add(TURN.draw(&mut prng));
            let whole = usize::try_from(last.tokens / BLOCK_TOKENS).expect("32 bits fit an index");
            (last.blocks[..whole].to_vec(), tokens)
        } else {
            (vec![0], PROMPT.draw(&mut prng))
        };
        let mut blocks = before;
        let count = usize::try_from(tokens.div_ceil(BLOCK_TOKENS)).expect("32 bits fit an index");
        while blocks.len() < count {
            blocks.push(next);
            next += 1;
        }
        let answer = ANSWER.draw(&mut prng);
        requests.push(TraceRequest {
            at_ms,
            input_tokens: tokens,
            output_tokens: answer,
            blocks: blocks.clone(),
        });
        recent.push(Conversation { tokens, answer, blocks });
        if recent.len() > RECENT {
            recent.remove(0);
        }
    }
    Trace { requests }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Blocks, and those of them that an earlier request has, too.
    fn shared(trace: &Trace) -> (u64, u64) {
        let (mut known, mut all, mut found) = (BTreeSet::new(), 0, 0);
        for block in trace.requests.iter().flat_map(|request| &request.blocks) {
            all += 1;
            found += u64::from(!known.insert(*block));
        }
        (all, found)
    }

    #[test]
    fn it_has_the_shape_of_the_published_trace() {
        let trace = synthetic(12_031, &Prng::new(1));
        let count = u32::try_from(trace.requests.len()).expect("few");
        let (mut tokens, mut answers) = (0.0, 0.0);
        for request in &trace.requests {
            let blocks = usize::try_from(request.input_tokens.div_ceil(BLOCK_TOKENS)).expect("few");
            assert_eq!(request.blocks.len(), blocks, "seed 1: {request:?}");
            assert_eq!(request.blocks[0], 0, "seed 1: one system prompt is before all");
            tokens += f64::from(request.input_tokens) / f64::from(count);
            answers += f64::from(request.output_tokens) / f64::from(count);
        }
        let (all, found) = shared(&trace);
        #[expect(clippy::cast_precision_loss, reason = "some hundred thousand")]
        let share = found as f64 / all as f64;
        // conversation_trace.jsonl has 12 035 tokens, 343 of answers, 24.0 blocks a request and 36.6 % of them known.
        assert!((10_500.0..13_500.0).contains(&tokens), "seed 1: {tokens} tokens of a prompt");
        assert!((300.0..390.0).contains(&answers), "seed 1: {answers} tokens of an answer");
        assert!((0.33..0.40).contains(&share), "seed 1: {share} of the blocks are known");
        let last = trace.requests.last().expect("some").at_ms;
        assert!((3_300_000..3_900_000).contains(&last), "seed 1: it ends at {last} ms");
    }

    #[test]
    fn it_reads_back_and_follows_from_its_seed() {
        let trace = synthetic(50, &Prng::new(7));
        assert_eq!(Trace::parse(&trace.to_jsonl()), Ok(trace.clone()));
        assert_eq!(synthetic(50, &Prng::new(7)), trace);
        assert_ne!(synthetic(50, &Prng::new(8)), trace);
    }
}
