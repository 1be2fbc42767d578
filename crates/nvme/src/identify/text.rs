//! Fixed-length text fields: serial number, model number, firmware revision.
//!
//! ASCII, left aligned, padded with spaces (NVMe base 1.4 section 1.5). Any bytes decode, as some drives pad with
//! zeros.

use std::fmt;

/// Text of exactly `N` bytes on the wire.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Text<const N: usize>([u8; N]);

/// The text cannot stand in such a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextError {
    /// Room in the field, bytes.
    pub room_bytes: usize,
    /// The text.
    pub found: String,
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { room_bytes, found } = self;
        write!(
            f,
            "this field holds at most {room_bytes} printable ASCII characters, but the text is {found:?} ({} bytes); \
             shorten it",
            found.len()
        )
    }
}

impl std::error::Error for TextError {}

impl<const N: usize> Text<N> {
    /// The field holding `text`.
    ///
    /// # Errors
    /// [`TextError`] if it is longer than `N` bytes or not printable ASCII.
    pub fn new(text: &str) -> Result<Self, TextError> {
        let printable = text.bytes().all(|byte| (0x20..0x7F).contains(&byte));
        if text.len() > N || !printable {
            return Err(TextError { room_bytes: N, found: text.to_owned() });
        }
        let mut bytes = [b' '; N];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Ok(Self(bytes))
    }

    /// The field with these bytes, whatever they are.
    pub fn from_bytes(bytes: [u8; N]) -> Self {
        Self(bytes)
    }

    /// The field's bytes.
    pub fn to_bytes(self) -> [u8; N] {
        self.0
    }
}

/// The text without its padding; unprintable bytes show as `?`.
impl<const N: usize> fmt::Display for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.0.iter().rposition(|byte| !matches!(byte, b' ' | 0)).map_or(0, |last| last + 1);
        for byte in &self.0[..end] {
            let shown = if (0x20..0x7F).contains(byte) { char::from(*byte) } else { '?' };
            fmt::Write::write_char(f, shown)?;
        }
        Ok(())
    }
}

impl<const N: usize> fmt::Debug for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Text(\"{self}\")")
    }
}

impl<const N: usize> Default for Text<N> {
    fn default() -> Self {
        Self([b' '; N])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_padded_with_spaces_and_shown_without() {
        let text = Text::<8>::new("ocssd").expect("five of eight");
        assert_eq!(text.to_bytes(), *b"ocssd   ");
        assert_eq!(text.to_string(), "ocssd");
        assert_eq!(Text::from_bytes(*b"a\x01b\0\0").to_string(), "a?b");
        assert_eq!(Text::<4>::default().to_string(), "");
    }

    #[test]
    fn long_or_unprintable_text_is_refused() {
        for text in ["123456789", "tab\there", "\u{e9}"] {
            let error = Text::<8>::new(text).expect_err(text).to_string();
            assert!(error.contains("at most 8"), "{error}");
        }
    }
}
