//! Writes XML and HTML with everything escaped.

use std::fmt::Write;

/// Text under construction; elements are closed in the reverse order of opening.
#[derive(Default)]
pub(crate) struct Markup {
    text: String,
    open: Vec<&'static str>,
}

impl Markup {
    /// Opens an element.
    pub fn open(&mut self, name: &'static str, attributes: &[(&str, &str)]) -> &mut Self {
        self.tag(name, attributes, ">");
        self.open.push(name);
        self
    }

    /// Closes the element opened last.
    pub fn close(&mut self) -> &mut Self {
        let name = self.open.pop().expect("every close has its open");
        self.write(format_args!("</{name}>"))
    }

    /// An element without content.
    pub fn empty(&mut self, name: &'static str, attributes: &[(&str, &str)]) -> &mut Self {
        self.tag(name, attributes, "/>");
        self
    }

    /// A piece of text. The unit `us` of rows, sentences and commands' output is shown as µs.
    pub fn text(&mut self, text: &str) -> &mut Self {
        self.text.push_str(&escaped(&with_micro_sign(text)));
        self
    }

    /// An element with a text in it.
    pub fn element(&mut self, name: &'static str, attributes: &[(&str, &str)], text: &str) -> &mut Self {
        self.open(name, attributes).text(text).close()
    }

    /// A line break, for readers of the source.
    pub fn newline(&mut self) -> &mut Self {
        self.text.push('\n');
        self
    }

    /// Text that is markup already: from this type, or a constant of ours.
    pub fn raw(&mut self, markup: &str) -> &mut Self {
        self.text.push_str(markup);
        self
    }

    /// The whole text. Panics when an element is still open.
    pub fn finish(self) -> String {
        assert!(self.open.is_empty(), "elements left open: {:?}", self.open);
        self.text
    }

    fn tag(&mut self, name: &str, attributes: &[(&str, &str)], end: &str) {
        self.write(format_args!("<{name}"));
        for (key, value) in attributes {
            self.write(format_args!(" {key}=\"{}\"", escaped(value)));
        }
        self.text.push_str(end);
    }

    fn write(&mut self, arguments: std::fmt::Arguments<'_>) -> &mut Self {
        self.text.write_fmt(arguments).expect("writing to a String cannot fail");
        self
    }
}

/// The text with the word `us` as µs. "10us" is left alone: so options are typed, and reports show commands.
fn with_micro_sign(text: &str) -> String {
    let is_letter = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    let (mut out, mut from) = (String::with_capacity(text.len()), 0);
    for (at, word) in text.match_indices("us") {
        let (before, after) = (text[..at].chars().next_back(), text[at + word.len()..].chars().next());
        if !before.is_some_and(is_letter) && !after.is_some_and(is_letter) {
            out.push_str(&text[from..at]);
            out.push_str("µs");
            from = at + word.len();
        }
    }
    out.push_str(&text[from..]);
    out
}

/// The text with `& < > " '` as entities and without the control characters XML forbids.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' | '\r' => out.push(c),
            // XML 1.0, section 2.2: neither control characters nor these two are characters.
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// A length or coordinate with at most two decimals, and never a negative zero.
pub(crate) fn px(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_attributes_cannot_become_markup() {
        let mut markup = Markup::default();
        markup.element("a", &[("b", "\"><script>'")], "</a>&\u{0}\u{1b}");
        assert_eq!(
            markup.finish(),
            "<a b=\"&quot;&gt;&lt;script&gt;&#39;\">&lt;/a&gt;&amp;\u{fffd}\u{fffd}</a>"
        );
    }

    #[test]
    fn microseconds_have_their_sign_and_other_words_do_not() {
        let cases = [
            ("us", "µs"),
            ("1.5 us", "1.5 µs"),
            ("latency (us), 3 us of 4", "latency (µs), 3 µs of 4"),
            ("bus, user, status, thinktime=10us, us-east", "bus, user, status, thinktime=10us, us-east"),
            ("", ""),
        ];
        for (text, expected) in cases {
            assert_eq!(with_micro_sign(text), expected, "{text}");
        }
    }

    #[test]
    fn lengths_are_short() {
        let cases =
            [(1.0, "1"), (1.005, "1"), (0.126, "0.13"), (-0.001, "0"), (120.0, "120"), (-2.5, "-2.5")];
        for (value, expected) in cases {
            assert_eq!(px(value), expected, "{value}");
        }
    }
}
