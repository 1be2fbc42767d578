//! The manual page ocssd(3), from the header: what its comments say, in the markup of man(7).
//!
//! The header's form is cbindgen's: one block comment at the beginning, then lines of comment and what they are about, up to a
//! `;` at the end of a line or, of a struct, up to the line that begins with `}`.

use anyhow::{Result, ensure};

/// A comment and what it is about.
#[derive(Debug, PartialEq, Eq)]
struct Item {
    comment: Vec<String>,
    declaration: Vec<String>,
}

/// The manual page.
///
/// Errors: the header has no first comment, or nothing is declared in it.
pub fn of_header(header: &str) -> Result<String> {
    let items = items(header);
    let first = items.first().filter(|item| item.comment.len() > 1);
    ensure!(first.is_some() && items.len() > 1, "the header begins with a comment, and declares something");
    let (functions, types): (Vec<&Item>, Vec<&Item>) =
        items[1..].iter().filter(|item| !item.declaration.is_empty()).partition(|item| item.is_function());
    let mut page = String::from(".TH OCSSD 3 \"\" ocssd \"C library\"\n");
    page += ".SH NAME\nocssd \\- virtual open\\-channel SSDs in your process\n.SH SYNOPSIS\n.nf\n";
    page += "#include <ocssd.h>\n\ncc program.c $(pkg\\-config \\-\\-cflags \\-\\-libs ocssd)\n\n";
    functions.iter().for_each(|item| page += &item.code());
    page += ".fi\n.SH DESCRIPTION\n";
    page += &paragraphs(&items[0].comment[1..]);
    page += ".SH FUNCTIONS\n";
    functions.iter().for_each(|item| page += &item.section());
    page += ".SH TYPES AND CONSTANTS\n";
    types.iter().for_each(|item| page += &item.section());
    page += ".SH SEE ALSO\nocssd(1), pkg\\-config(1)\n";
    Ok(page)
}

impl Item {
    fn is_function(&self) -> bool {
        let first = &self.declaration[0];
        first.contains('(') && !first.starts_with("typedef") && !first.starts_with('#')
    }

    /// What a reader looks for: the name that is declared.
    fn name(&self) -> &str {
        let (first, last) = (&self.declaration[0], &self.declaration[self.declaration.len() - 1]);
        let place = if self.is_function() {
            first.split('(').next().unwrap_or(first)
        } else if first.starts_with('#') {
            first.split_whitespace().nth(1).unwrap_or(first)
        } else if first.contains("(*") {
            first.split("(*").nth(1).and_then(|rest| rest.split(')').next()).unwrap_or(first)
        } else {
            last.trim_end_matches(';')
        };
        place.rsplit([' ', '*']).next().unwrap_or(place)
    }

    fn code(&self) -> String {
        self.declaration.iter().map(|line| escaped(line) + "\n").collect()
    }

    fn section(&self) -> String {
        let code = format!(".nf\n{}.fi\n", self.code());
        format!(".SS {}\n{code}.PP\n{}", escaped(self.name()), paragraphs(&self.comment))
    }
}

/// Takes the header apart. The first item is the block comment at its beginning, about nothing but the whole.
fn items(header: &str) -> Vec<Item> {
    let (block, rest) = header.split_once("*/").unwrap_or(("", header));
    let about = block.lines().map(|line| line.trim_start_matches(['/', '*', ' ']).trim_end().to_owned());
    let mut found = vec![Item { comment: about.collect(), declaration: Vec::new() }];
    let mut lines = rest.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(first) = line.strip_prefix("//") else { continue };
        let mut comment = vec![first.trim().to_owned()];
        while let Some(next) = lines.next_if(|line| line.starts_with("//")) {
            comment.push(next.trim_start_matches('/').trim().to_owned());
        }
        let mut declaration = Vec::new();
        let is_struct = lines.peek().is_some_and(|line| line.ends_with('{'));
        while let Some(line) = lines.next_if(|line| !line.trim().is_empty()) {
            declaration.push(line.to_owned());
            let ends =
                if is_struct { line.starts_with('}') } else { line.ends_with(';') || line.starts_with('#') };
            if ends {
                break;
            }
        }
        found.push(Item { comment, declaration });
    }
    found
}

/// Text in paragraphs: empty lines divide them.
fn paragraphs(lines: &[String]) -> String {
    let mut text = String::new();
    for line in lines {
        if line.is_empty() {
            if !text.is_empty() && !text.ends_with(".PP\n") {
                text += ".PP\n";
            }
        } else {
            text += &escaped(line);
            text.push('\n');
        }
    }
    text.strip_suffix(".PP\n").map_or(text.clone(), str::to_owned)
}

/// A line as man(7) takes it literally.
fn escaped(line: &str) -> String {
    let line = line.replace('\\', "\\e").replace('-', "\\-");
    // A dot or quote at the beginning of a line would be a request.
    if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "/* t.h: things.\n *\n * About -all- of it. */\n\n#ifndef T_H\n\n// A number.\n#define T_A 1\n\n\
        // A shape.\ntypedef struct t_shape {\n    // Its size.\n    int size;\n} t_shape;\n\n\
        // Told.\ntypedef void (*t_told)(int a);\n\n// Does it.\n//\n// .Errors: -EINVAL.\nint t_do(const t_shape *shape,\n\
        \x20        int a);\n";

    #[test]
    fn a_header_comes_apart_into_comments_and_what_they_are_about() {
        let found = items(HEADER);
        let names: Vec<&str> = found[1..].iter().map(Item::name).collect();
        assert_eq!(names, ["T_A", "t_shape", "t_told", "t_do"]);
        assert_eq!(found[4].declaration.len(), 2);
    }

    #[test]
    fn the_page_has_everything_and_nothing_is_taken_for_markup() {
        let page = of_header(HEADER).unwrap();
        for part in
            ["About \\-all\\- of it.", ".SS t_do\n", "\\&.Errors: \\-EINVAL.", "int size;", ".SH SEE ALSO"]
        {
            assert!(page.contains(part), "{part}\n{page}");
        }
        assert!(of_header("int t;\n").is_err());
    }
}
