//! Lines that fit a terminal: sentences folded between words, commands so that they can still be pasted.
//!
//! Deliberately not here: the size of the terminal. Output is the same wherever it goes.

/// The widest line, in characters: that of a terminal nobody has made wider (DEC's VT100).
pub const COLUMNS: usize = 80;

/// How lines of a folded sentence begin, but the first.
const INDENT: &str = "  ";

/// A sentence in lines of at most [`COLUMNS`]; a word that is longer has a line of its own.
#[must_use]
pub fn fold(text: &str) -> String {
    fold_with(text, "")
}

/// A command in lines of at most [`COLUMNS`] that a shell takes for one. It is cut only at blanks outside quotes.
#[must_use]
pub fn fold_command(text: &str) -> String {
    fold_with(text, " \\")
}

fn fold_with(text: &str, end: &str) -> String {
    text.lines().map(|line| fold_line(line, end)).collect::<Vec<_>>().join("\n")
}

fn fold_line(line: &str, end: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut current = String::new();
    let words = words(line, !end.is_empty());
    for (index, word) in words.iter().enumerate() {
        let room = if index + 1 == words.len() { COLUMNS } else { COLUMNS - end.len() };
        let blank = usize::from(!current.trim().is_empty());
        if blank == 1 && current.chars().count() + 1 + word.chars().count() > room {
            lines.push(format!("{current}{end}"));
            current = INDENT.to_owned();
        } else if blank == 1 {
            current.push(' ');
        }
        current.push_str(word);
    }
    lines.push(current);
    lines.join("\n")
}

/// The words of a line; in a command what stands in single quotes is no end of one. Blanks at the start belong to the first.
fn words(line: &str, quotes: bool) -> Vec<String> {
    let mut words = Vec::new();
    let (mut word, mut is_quoted) = (String::new(), false);
    for letter in line.chars() {
        is_quoted ^= quotes && letter == '\'';
        if letter == ' ' && !is_quoted && !word.trim().is_empty() {
            words.push(std::mem::take(&mut word));
        } else if letter != ' ' || is_quoted || words.is_empty() {
            word.push(letter);
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_wider_than_a_terminal_and_no_word_is_lost() {
        for count in 1..60 {
            let text: Vec<String> = (0..count).map(|k| "x".repeat(1 + k * 7 % 11)).collect();
            let text = text.join(" ");
            let folded = fold(&text);
            assert!(folded.lines().all(|line| line.chars().count() <= COLUMNS), "{folded}");
            assert_eq!(folded.split_whitespace().collect::<Vec<_>>().join(" "), text);
        }
    }

    #[test]
    fn a_command_stays_one_command() {
        let quoted = format!("'{}'", "a  b ".repeat(6));
        let command =
            format!("ocssd run {} --name=x {quoted} {}", "--set=a.b=c ".repeat(9).trim(), "z".repeat(30));
        let folded = fold_command(&command);
        assert!(folded.lines().count() > 2 && folded.lines().all(|line| line.len() <= COLUMNS), "{folded}");
        let shell = |text: &str| {
            let output = std::process::Command::new("sh")
                .args(["-c", &text.replacen("ocssd", "printf %s,", 1)])
                .output();
            String::from_utf8(output.expect("there is a shell").stdout).expect("it says text")
        };
        assert_eq!(shell(&folded), shell(&command));
    }

    #[test]
    fn a_word_wider_than_a_terminal_stands_alone() {
        let wide = "y".repeat(100);
        assert_eq!(fold(&format!("a {wide} b")), format!("a\n  {wide}\n  b"));
        assert_eq!(fold("  indented text"), "  indented text");
        assert_eq!(fold(""), "");
    }
}
