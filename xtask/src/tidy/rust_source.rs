//! Tells code from comments from literals in a Rust file, and test code from the rest.
//!
//! A scanner over characters, not a parser. It knows line comments, nested block comments, strings with escapes, raw
//! strings, byte and C strings, and character literals against lifetimes. It does not expand macros: braces inside a
//! macro's arguments count like any others, which rustfmt's balanced style makes harmless.

/// What a character is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Anything the compiler reads that is not a literal.
    Code,
    /// A comment with its delimiters.
    Comment,
    /// A string or character literal with its quotes.
    Literal,
}

/// A Rust file taken apart. All three vectors have one entry per line of the file.
pub struct RustSource {
    /// Each line with comments and literals replaced by spaces.
    pub code: Vec<String>,
    /// Each line with everything but comments replaced by spaces.
    pub comments: Vec<String>,
    /// Characters on each line that are not part of a literal.
    pub chars_outside_literals: Vec<usize>,
    /// Whether the line is test code: inside a `#[cfg(test)]` item, or in a file that is all tests.
    pub is_test: Vec<bool>,
}

impl RustSource {
    /// Takes `text` apart; `path` decides whether the whole file is tests.
    pub fn new(path: &str, text: &str) -> Self {
        let chars: Vec<char> = text.chars().collect();
        let classes = Scanner { chars: &chars, at: 0, classes: Vec::with_capacity(chars.len()) }.scan();
        let code = mask(&chars, &classes, Class::Code);
        let comments = mask(&chars, &classes, Class::Comment);
        let chars_outside_literals = count_outside_literals(&chars, &classes);
        let is_test = test_lines(path, &code);
        assert_eq!(code.len(), comments.len(), "{path}: both masks keep every newline");
        assert_eq!(code.len(), chars_outside_literals.len(), "{path}: one count per line");
        Self { code, comments, chars_outside_literals, is_test }
    }

    /// The lines of code with their numbers from 1.
    pub fn code_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.code.iter().enumerate().map(|(index, line)| (index + 1, line.as_str()))
    }
}

/// Lines of `chars` in which only characters of `kept` remain; the others are spaces.
fn mask(chars: &[char], classes: &[Class], kept: Class) -> Vec<String> {
    let masked: String = chars
        .iter()
        .zip(classes)
        .map(|(&c, &class)| if c == '\n' || class == kept { c } else { ' ' })
        .collect();
    masked.split('\n').map(str::to_string).collect()
}

fn count_outside_literals(chars: &[char], classes: &[Class]) -> Vec<usize> {
    let mut counts = vec![0];
    for (&c, &class) in chars.iter().zip(classes) {
        if c == '\n' {
            counts.push(0);
        } else if class != Class::Literal {
            *counts.last_mut().expect("starts with one line") += 1;
        }
    }
    counts
}

/// Marks the lines of test code.
fn test_lines(path: &str, code: &[String]) -> Vec<bool> {
    let is_all_tests = path.contains("/tests/") || path.ends_with("/tests.rs");
    let mut is_test = vec![is_all_tests; code.len()];
    for (index, line) in code.iter().enumerate() {
        let Some(column) = line.find("#[cfg(test)]") else { continue };
        let after = column + "#[cfg(test)]".len();
        let end = item_end(code, index, after).map_or(code.len() - 1, |(line, _)| line);
        is_test[index..=end].fill(true);
    }
    is_test
}

/// Where the item that starts at (`line`, byte `column`) of the masked `code` ends: its matching `}`, or the `;`
/// of an item without body. Both indices from 0; the second says whether there was a body.
///
/// `None` when the file ends first.
pub fn item_end(code: &[String], line: usize, column: usize) -> Option<(usize, bool)> {
    let mut nesting = 0_usize; // of ( and [, in which neither ; nor { belongs to the item itself
    let mut braces = 0_usize;
    for (index, text) in code.iter().enumerate().skip(line) {
        let start = if index == line { column } else { 0 };
        for c in text[start..].chars() {
            match c {
                '(' | '[' if braces == 0 => nesting += 1,
                ')' | ']' if braces == 0 => nesting = nesting.saturating_sub(1),
                ';' if braces == 0 && nesting == 0 => return Some((index, false)),
                '{' if nesting == 0 => braces += 1,
                '}' if nesting == 0 && braces <= 1 => return Some((index, true)),
                '}' if nesting == 0 => braces -= 1,
                _ => {}
            }
        }
    }
    None
}

/// Byte positions at which `word` stands in `line` as a whole word.
pub fn word_positions<'a>(line: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    line.match_indices(word).map(|(at, _)| at).filter(move |&at| {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

/// Walks the characters once and classifies each.
struct Scanner<'a> {
    chars: &'a [char],
    at: usize,
    classes: Vec<Class>,
}

impl Scanner<'_> {
    fn scan(mut self) -> Vec<Class> {
        while let Some(c) = self.peek(0) {
            match c {
                '/' if self.peek(1) == Some('/') => self.line_comment(),
                '/' if self.peek(1) == Some('*') => self.block_comment(),
                '"' => self.string(),
                'r' if self.raw_string_hashes().is_some() => self.raw_string(),
                '\'' if self.is_char_literal() => self.char_literal(),
                _ => self.take(1, Class::Code),
            }
        }
        assert_eq!(self.classes.len(), self.chars.len(), "every character gets exactly one class");
        self.classes
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    /// Gives the next `count` characters, or as many as are left, the same class.
    fn take(&mut self, count: usize, class: Class) {
        let count = count.min(self.chars.len() - self.at);
        self.classes.extend(std::iter::repeat_n(class, count));
        self.at += count;
    }

    fn line_comment(&mut self) {
        while self.peek(0).is_some_and(|c| c != '\n') {
            self.take(1, Class::Comment);
        }
    }

    fn block_comment(&mut self) {
        let mut depth = 0_usize;
        while self.at < self.chars.len() {
            match (self.peek(0), self.peek(1)) {
                (Some('/'), Some('*')) => {
                    depth += 1;
                    self.take(2, Class::Comment);
                }
                (Some('*'), Some('/')) => {
                    depth -= 1;
                    self.take(2, Class::Comment);
                    if depth == 0 {
                        return;
                    }
                }
                _ => self.take(1, Class::Comment),
            }
        }
    }

    fn string(&mut self) {
        self.take(1, Class::Literal);
        while let Some(c) = self.peek(0) {
            match c {
                '\\' => self.take(2, Class::Literal),
                '"' => return self.take(1, Class::Literal),
                _ => self.take(1, Class::Literal),
            }
        }
    }

    /// The number of `#` when a raw string starts at the current `r`. `None` for an identifier, also for `r#type`.
    fn raw_string_hashes(&self) -> Option<usize> {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let mut before = self.chars[..self.at].iter().rev();
        let is_prefixed = match before.next() {
            Some('b' | 'c') => before.next().is_some_and(|&c| is_part(c)),
            Some(&c) => is_part(c),
            None => false,
        };
        let hashes = self.chars[self.at + 1..].iter().take_while(|&&c| c == '#').count();
        (!is_prefixed && self.peek(1 + hashes) == Some('"')).then_some(hashes)
    }

    fn raw_string(&mut self) {
        let hashes = self.raw_string_hashes().expect("the caller saw a raw string here");
        self.take(2 + hashes, Class::Literal);
        while let Some(c) = self.peek(0) {
            let closes = c == '"' && (1..=hashes).all(|ahead| self.peek(ahead) == Some('#'));
            if closes {
                return self.take(1 + hashes, Class::Literal);
            }
            self.take(1, Class::Literal);
        }
    }

    /// `'a'` and `'\n'` are literals; `'a` before anything but a quote is a lifetime.
    fn is_char_literal(&self) -> bool {
        self.peek(1) == Some('\\') || self.peek(2) == Some('\'')
    }

    fn char_literal(&mut self) {
        self.take(1, Class::Literal);
        while let Some(c) = self.peek(0) {
            match c {
                '\\' => self.take(2, Class::Literal),
                '\'' => return self.take(1, Class::Literal),
                _ => self.take(1, Class::Literal),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code_of(text: &str) -> String {
        RustSource::new("a.rs", text).code.join("\n")
    }

    #[test]
    fn only_code_remains_in_the_code_mask() {
        let cases = [
            ("let a = 1; // note {", "let a = 1;          "),
            ("a /* { /* } */ */ b", "a                 b"),
            (r#"f("{ \" }")"#, "f(        )"),
            (r##"f(r#"{ " }"#)"##, "f(          )"),
            (r#"f(br"\")"#, "f(b    )"),
            ("let r#type = 'x';", "let r#type =    ;"),
            (r"m('\'', '{', b'}')", "m(    ,    , b   )"),
            ("fn f<'a>(x: &'a str) {}", "fn f<'a>(x: &'a str) {}"),
            ("for\"x\"", "for   "),
            ("a // \"\nb", "a     \nb"),
        ];
        for (text, expected) in cases {
            assert_eq!(code_of(text), expected, "{text}");
        }
    }

    #[test]
    fn unfinished_literals_and_comments_end_with_the_file() {
        for text in ["\"abc", "/* abc", "r#\"abc", "'\\", "\"a\\"] {
            assert_eq!(code_of(text).trim(), "", "{text}");
        }
    }

    #[test]
    fn strings_over_lines_keep_the_line_count() {
        let source = RustSource::new("a.rs", "let a = \"one\ntwo {\";\nlet b = 2;");
        assert_eq!(source.code, ["let a =     ", "      ;", "let b = 2;"]);
        assert_eq!(source.chars_outside_literals, [8, 1, 10]);
    }

    #[test]
    fn cfg_test_items_are_test_lines_and_end_where_they_end() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n  fn b() { let c = '}'; }\n}\nfn d() {}\n";
        let source = RustSource::new("crates/x/src/a.rs", text);
        assert_eq!(source.is_test, [false, true, true, true, true, false, false]);
        let outline = RustSource::new("crates/x/src/a.rs", "#[cfg(test)]\nmod tests;\nfn d() {}");
        assert_eq!(outline.is_test, [true, true, false]);
    }

    #[test]
    fn files_of_tests_are_all_test_lines() {
        for path in ["crates/x/tests/a.rs", "crates/x/src/tests.rs", "crates/x/src/tests/b.rs"] {
            assert_eq!(RustSource::new(path, "fn a() {}").is_test, [true], "{path}");
        }
    }

    #[test]
    fn words_are_found_whole() {
        let found: Vec<usize> = word_positions("assert!(a); debug_assert!(b); assert_x", "assert").collect();
        assert_eq!(found, [0]);
    }
}
