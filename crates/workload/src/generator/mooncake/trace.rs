//! Mooncake's public traces: requests to servers of language models, with the blocks of tokens each one's prompt has.
//!
//! A line is `{"timestamp": ms, "input_length": tokens, "output_length": tokens, "hash_ids": [..]}`. An id stands for a block of
//! 512 tokens and all before it, so two prompts that begin alike begin with the same ids; the last block has what is left (FAST'25
//! artifact of Mooncake, README and `traces/`). Deliberately not here: files, and what is asked of a store (`mod`).

use serde_json::Value;

/// Tokens of a block (FAST'25 artifact).
pub const BLOCK_TOKENS: u32 = 512;
/// Tokens of a prompt at most (chosen: ten times the longest context that is sold).
const TOKENS_MAX: u64 = 10_000_000;
/// Ids are less than this, so that those of a repetition can be told apart.
pub const IDS_MAX: u64 = 1 << 40;

/// A request to the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceRequest {
    /// When it arrives, in milliseconds from the start.
    pub at_ms: u64,
    /// Tokens of its prompt.
    pub input_tokens: u32,
    /// Tokens that the model answers.
    pub output_tokens: u32,
    /// Blocks of its prompt, in order.
    pub blocks: Vec<u64>,
}

impl TraceRequest {
    /// Tokens of its block of this number, from 0 on.
    #[must_use]
    pub fn tokens_of(&self, block: usize) -> u32 {
        let before = u64::try_from(block).expect("an index") * u64::from(BLOCK_TOKENS);
        let left = u64::from(self.input_tokens).saturating_sub(before).clamp(1, u64::from(BLOCK_TOKENS));
        u32::try_from(left).expect("at most a block")
    }
}

/// A trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// In the order of their arrival.
    pub requests: Vec<TraceRequest>,
}

impl Trace {
    /// Reads a trace, one request a line.
    ///
    /// # Errors
    /// The first line that is none, in a sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut requests: Vec<TraceRequest> = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            if line.trim().is_empty() {
                continue;
            }
            let request = read_line(line).map_err(|problem| {
                format!(
                    "line {number} of the trace: {problem}; a line is {{\"timestamp\": ms, \"input_length\": tokens, \
                     \"output_length\": tokens, \"hash_ids\": [..]}}"
                )
            })?;
            if let Some(before) = requests.last().filter(|before| before.at_ms > request.at_ms) {
                return Err(format!(
                    "line {number} of the trace: timestamp {} is before the {} of the line above; sort the lines by timestamp",
                    request.at_ms, before.at_ms
                ));
            }
            requests.push(request);
        }
        if requests.is_empty() {
            return Err("the trace has no request".to_owned());
        }
        Ok(Self { requests })
    }

    /// As its file.
    #[must_use]
    pub fn to_jsonl(&self) -> String {
        let line = |request: &TraceRequest| {
            let ids: Vec<String> = request.blocks.iter().map(u64::to_string).collect();
            format!(
                "{{\"timestamp\": {}, \"input_length\": {}, \"output_length\": {}, \"hash_ids\": [{}]}}\n",
                request.at_ms,
                request.input_tokens,
                request.output_tokens,
                ids.join(", ")
            )
        };
        self.requests.iter().map(line).collect()
    }
}

fn read_line(line: &str) -> Result<TraceRequest, String> {
    let value: Value = serde_json::from_str(line).map_err(|error| format!("it is no JSON: {error}"))?;
    let number = |name: &str, most: u64| {
        let found = value.get(name).ok_or_else(|| format!("it has no \"{name}\""))?;
        // Some of Mooncake's tools write times as 3000.0.
        let whole =
            found.as_u64().or_else(|| found.as_f64().filter(|time| time.fract() == 0.0).and_then(whole));
        whole
            .filter(|&number| number <= most)
            .ok_or_else(|| format!("\"{name}\" must be a whole number up to {most}, but is {found}"))
    };
    let tokens = |name| number(name, TOKENS_MAX).map(|tokens| u32::try_from(tokens).expect("checked"));
    let ids = value.get("hash_ids").and_then(Value::as_array).ok_or("it has no list \"hash_ids\"")?;
    let blocks: Option<Vec<u64>> = ids.iter().map(|id| id.as_u64().filter(|&id| id < IDS_MAX)).collect();
    Ok(TraceRequest {
        at_ms: number("timestamp", 1 << 50)?,
        input_tokens: tokens("input_length")?,
        output_tokens: tokens("output_length")?,
        blocks: blocks
            .filter(|blocks| !blocks.is_empty())
            .ok_or_else(|| format!("\"hash_ids\" must be whole numbers below {IDS_MAX}, one at least"))?,
    })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "within 53 bits, and not negative"
)]
fn whole(number: f64) -> Option<u64> {
    (0.0..9e15).contains(&number).then_some(number as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_as_mooncake_publishes_them_are_read_and_written_again() {
        let text = "{\"timestamp\": 0, \"input_length\": 915, \"output_length\": 355, \"hash_ids\": [0, 462]}\n\
                    {\"timestamp\": 3000, \"input_length\": 512, \"output_length\": 0, \"hash_ids\": [7]}\n";
        let trace = Trace::parse(text).expect("two requests");
        let first = &trace.requests[0];
        assert_eq!((first.at_ms, first.output_tokens, first.blocks.as_slice()), (0, 355, &[0, 462][..]));
        assert_eq!((first.tokens_of(0), first.tokens_of(1), trace.requests[1].tokens_of(0)), (512, 403, 512));
        assert_eq!(trace.to_jsonl(), text);
        let float = text.replace("3000,", "3000.0,");
        assert_eq!(Trace::parse(&float), Ok(trace));
    }

    #[test]
    fn what_is_no_trace_is_refused_with_its_line() {
        let good = "{\"timestamp\": 5, \"input_length\": 1, \"output_length\": 1, \"hash_ids\": [1]}\n";
        for (line, says) in [
            ("{\"timestamp\": 5", "no JSON"),
            ("{\"input_length\": 1, \"output_length\": 1, \"hash_ids\": []}", "no \"timestamp\""),
            (&good.replace(": 5", ": -5"), "\"timestamp\" must be a whole number"),
            (&good.replace("[1]", "[1.5]"), "whole numbers below"),
            (&good.replace("[1]", "[]"), "one at least"),
            (&good.replace("[1]", "3"), "no list \"hash_ids\""),
            (&good.replace(": 5", ": 4"), "sort the lines"),
        ] {
            let error = Trace::parse(&format!("{good}{line}")).expect_err(line);
            assert!(error.starts_with("line 2 of the trace: ") && error.contains(says), "{error}");
        }
        assert!(Trace::parse("\n").is_err_and(|error| error.contains("no request")));
    }
}
