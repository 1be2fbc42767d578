//! fio's arithmetic: a value in parentheses, such as `(1024*4k)`, with `+ - * / % ^` on whole numbers.
//!
//! Deliberately not here: what a number's suffix means; the caller reads the single numbers.

/// The longest expression read, in bytes (chosen: longer ones are not written by people).
const LENGTH_MAX: usize = 512;
/// The deepest nesting followed (chosen; it bounds the recursion).
const DEPTH_MAX: u32 = 32;

/// Evaluates `text`, parentheses included; `number` reads one number with its suffix.
///
/// # Errors
/// A sentence when the text is no expression, divides by zero, or leaves 127 bits.
pub fn evaluate(text: &str, number: &dyn Fn(&str) -> Result<u64, String>) -> Result<i128, String> {
    if text.len() > LENGTH_MAX {
        return Err(format!("expected an expression of at most {LENGTH_MAX} characters"));
    }
    let mut parser = Parser { rest: text, depth: 0, number };
    let value = parser.sum()?;
    parser.skip_blanks();
    if parser.rest.is_empty() {
        Ok(value)
    } else {
        Err(format!(
            "expected an operator + - * / % ^ or the end of the expression, but found `{}`",
            parser.rest
        ))
    }
}

struct Parser<'a> {
    rest: &'a str,
    depth: u32,
    number: &'a dyn Fn(&str) -> Result<u64, String>,
}

impl Parser<'_> {
    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn take(&mut self, wanted: &[char]) -> Option<char> {
        self.skip_blanks();
        let found = self.rest.chars().next().filter(|c| wanted.contains(c))?;
        self.rest = &self.rest[found.len_utf8()..];
        Some(found)
    }

    fn sum(&mut self) -> Result<i128, String> {
        let mut value = self.product()?;
        while let Some(operator) = self.take(&['+', '-']) {
            let right = self.product()?;
            value =
                checked(if operator == '+' { value.checked_add(right) } else { value.checked_sub(right) })?;
        }
        Ok(value)
    }

    fn product(&mut self) -> Result<i128, String> {
        let mut value = self.power()?;
        while let Some(operator) = self.take(&['*', '/', '%']) {
            let right = self.power()?;
            if operator != '*' && right == 0 {
                return Err("expected a divisor other than 0".to_owned());
            }
            value = checked(match operator {
                '*' => value.checked_mul(right),
                '/' => value.checked_div(right),
                _ => value.checked_rem(right),
            })?;
        }
        Ok(value)
    }

    fn power(&mut self) -> Result<i128, String> {
        let base = self.atom()?;
        if self.take(&['^']).is_none() {
            return Ok(base);
        }
        self.deeper()?;
        let exponent = self.power()?;
        self.depth -= 1;
        let exponent = u32::try_from(exponent).map_err(|_| "expected an exponent of 0 or more".to_owned())?;
        checked(base.checked_pow(exponent))
    }

    fn atom(&mut self) -> Result<i128, String> {
        if self.take(&['-']).is_some() {
            self.deeper()?;
            let value = self.atom()?;
            self.depth -= 1;
            return checked(value.checked_neg());
        }
        if self.take(&['(']).is_some() {
            self.deeper()?;
            let value = self.sum()?;
            self.depth -= 1;
            return match self.take(&[')']) {
                Some(_) => Ok(value),
                None => Err("expected a closing parenthesis".to_owned()),
            };
        }
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '.').unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(end);
        if digits.is_empty() {
            return Err("expected a number in the expression".to_owned());
        }
        self.rest = rest;
        (self.number)(digits).map(i128::from)
    }

    fn deeper(&mut self) -> Result<(), String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(format!("expected at most {DEPTH_MAX} nested parentheses"));
        }
        Ok(())
    }
}

fn checked(value: Option<i128>) -> Result<i128, String> {
    value.ok_or_else(|| "expected a result of at most 127 bits".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> Result<u64, String> {
        text.parse().map_err(|_| format!("`{text}` is no number"))
    }

    #[test]
    fn operators_bind_as_in_arithmetic() {
        let cases = [
            ("(1+2*3)", 7),
            ("((1+2)*3)", 9),
            ("(2^3^2)", 512),
            ("(7 % 4 - -1)", 4),
            ("(7/2)", 3),
            ("(-3)", -3),
        ];
        for (text, expected) in cases {
            assert_eq!(evaluate(text, &plain), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_computed_says_why() {
        let deep = "(".repeat(40);
        let minus = format!("({}1)", "-".repeat(40));
        let long = format!("({})", "1+".repeat(400));
        let cases = [
            ("(1/0)", "divisor other than 0"),
            ("(1%0)", "divisor other than 0"),
            ("(2*(3)", "closing parenthesis"),
            ("(2 3)", "closing parenthesis"),
            ("(2)3", "operator"),
            ("()", "a number"),
            ("(2^-1)", "exponent of 0 or more"),
            ("(2^200)", "127 bits"),
            ("(x)", "`x` is no number"),
            (&deep, "nested"),
            (&minus, "nested"),
            (&long, "at most 512"),
        ];
        for (text, expected) in cases {
            let message = evaluate(text, &plain).expect_err(text);
            assert!(message.contains(expected), "{text}: {message}");
        }
    }
}
