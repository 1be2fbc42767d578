//! A setting's value, wherever it was written: a drive file or a command line.
//!
//! Deliberately not here: what a value means for a setting (`field`).

use toml::de::{DeTable, DeValue};

/// A value as TOML has it. What no setting takes (dates, tables inside lists) is [`Value::Other`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// A whole number.
    Integer(i128),
    /// A number with a point or exponent, as written.
    Float(String),
    /// Text.
    Text(String),
    /// `true` or `false`.
    Flag(bool),
    /// A list.
    List(Vec<Self>),
    /// Anything else.
    Other,
}

impl Value {
    pub(crate) fn of(value: &DeValue<'_>) -> Self {
        match value {
            DeValue::String(text) => Self::Text(text.to_string()),
            DeValue::Integer(integer) => {
                i128::from_str_radix(integer.as_str(), integer.radix()).map_or(Self::Other, Self::Integer)
            }
            DeValue::Float(float) => Self::Float(float.as_str().to_owned()),
            DeValue::Boolean(flag) => Self::Flag(*flag),
            DeValue::Array(list) => Self::List(list.iter().map(|entry| Self::of(entry.get_ref())).collect()),
            DeValue::Datetime(_) | DeValue::Table(_) => Self::Other,
        }
    }

    /// A value from a command line: as in a drive file, where quotes around text may be left out.
    pub(crate) fn of_argument(text: &str) -> Self {
        let document = format!("value = {text}");
        match DeTable::parse(&document) {
            Ok(table) if table.get_ref().len() == 1 => {
                table.get_ref().get("value").map_or(Self::Other, |value| Self::of(value.get_ref()))
            }
            _ => Self::Text(text.to_owned()),
        }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// A whole number that fits the type asked for.
    pub(crate) fn number<T: TryFrom<i128>>(&self) -> Option<T> {
        if let Self::Integer(integer) = self { T::try_from(*integer).ok() } else { None }
    }
}

/// Text as TOML writes it: in quotes, with everything escaped that must be.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for symbol in text.chars() {
        match symbol {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            control if control.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(control))),
            plain => quoted.push(plain),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_is_a_toml_value_or_plain_text() {
        let table = [
            ("5", Value::Integer(5)),
            ("0x10", Value::Integer(16)),
            ("true", Value::Flag(true)),
            ("2.0", Value::Float("2.0".into())),
            ("\"5\"", Value::Text("5".into())),
            ("5ms", Value::Text("5ms".into())),
            ("", Value::Text(String::new())),
            ("[\"1us\"]", Value::List(vec![Value::Text("1us".into())])),
            ("1\nother = 2", Value::Text("1\nother = 2".into())),
            ("1979-05-27", Value::Other),
        ];
        for (text, expected) in table {
            assert_eq!(Value::of_argument(text), expected, "{text}");
        }
    }

    #[test]
    fn quoted_text_is_read_back_unchanged() {
        for text in ["", "plain", "a \"b\" \\ c", "line\nend\ttab\u{7f}\u{1}", "µ ü 漢"] {
            assert_eq!(Value::of_argument(&quoted(text)), Value::Text(text.into()), "{text:?}");
        }
    }
}
