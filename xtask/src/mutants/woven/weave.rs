//! Weaving mutants into a file: each expression becomes a choice between what was written and what its mutants say.
//!
//! ```text
//! a < b                    (if is_shown(7) { (a) <= (b) } else if is_shown(8) { (a) == (b) } else { a < b })
//! !x                       (if is_shown(9) { x } else { !x })
//! fn f() -> u32 { … }      fn f() -> u32 { if is_shown(10) { return 0; } … }
//! Some(x) if g => …        Some(x) if (is_shown(11) || !is_shown(12) && (g)) => …
//! "a" => …, _ => …         "a" if !is_shown(13) => …, _ => …
//! S { a, ..b }             (if is_shown(14) { S { ..b } } else { S { a, ..b } })
//! ```
//!
//! A mutant holds no other one, for one is shown at a time: so the text grows by what is mutated, once for each level. What cannot
//! choose at run time is left out: a `const fn` that must be one, a chain with `let`.

use super::change::{Change, Genre};
use anyhow::{Context, Result};
use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};
use syn::{
    Arm, Block, Expr, ExprBinary, ExprMatch, ExprStruct, ExprUnary, ImplItemFn, ItemFn, Signature,
    TraitItemFn,
    spanned::Spanned,
    visit::{self, Visit},
};

/// Name of the function that tells which mutant is shown, as every crate that gets mutants knows it.
const IS_SHOWN: &str = "::ocssd_base::mutant_switch::is_shown";

/// A file with its mutants in it.
#[derive(Default)]
pub struct Woven {
    /// Its text.
    pub text: String,
    /// Where each mutant's own text lies in it.
    pub at: Vec<(Range<usize>, u32)>,
    /// Where a choice lies, from its first mutant to its end, and whose it is; inner ones behind outer ones.
    pub around: Vec<(Range<usize>, Vec<u32>)>,
}

impl Woven {
    /// The mutants that a compiler's complaint about a place is about: of whose own text it is part, or else those of the
    /// innermost choice around it.
    pub fn mutants_at(&self, place: &Range<usize>) -> Vec<u32> {
        let touches = |range: &Range<usize>| range.start < place.end && place.start < range.end;
        let own: Vec<u32> = self.at.iter().filter(|(range, _)| touches(range)).map(|&(_, id)| id).collect();
        let is_around = |range: &Range<usize>| range.start <= place.start && place.end <= range.end;
        match own {
            own if !own.is_empty() => own,
            _ => {
                let around = self.around.iter().filter(|(range, _)| is_around(range));
                around.min_by_key(|(range, _)| range.len()).map_or(Vec::new(), |(_, ids)| ids.clone())
            }
        }
    }
}

/// Something put into the text, before what stands at `at`.
struct Insert {
    at: usize,
    /// At one place ends stand before beginnings: inner ends before outer ones, outer beginnings before inner ones.
    order: (bool, i64),
    pieces: Vec<(String, Option<u32>)>,
    /// The choice it begins or ends.
    choice: Option<(usize, bool)>,
}

struct Weaver<'a> {
    text: &'a str,
    /// Changes of operators, fields, guards and arms, by the place where they begin.
    by_start: BTreeMap<(Genre, usize), Vec<(u32, &'a Change)>>,
    /// Those of whole functions, by the place and the end.
    of_bodies: Vec<(Range<usize>, u32, &'a Change)>,
    kept_const: &'a BTreeSet<String>,
    /// How many functions around this place are `const` and stay so.
    const_depth: u32,
    inserts: Vec<Insert>,
    choices: Vec<Vec<u32>>,
    /// `const` of functions, taken away.
    blanked: Vec<Range<usize>>,
}

/// Puts changes, each with its number, into a file. Functions named in `kept_const` stay `const` and get none.
///
/// Errors: the text is not Rust, or a change has no place in it.
pub fn weave(text: &str, changes: &[(u32, &Change)], kept_const: &BTreeSet<String>) -> Result<Woven> {
    let lines: Vec<usize> =
        std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let mut weaver = Weaver {
        text,
        by_start: BTreeMap::new(),
        of_bodies: Vec::new(),
        kept_const,
        const_depth: 0,
        inserts: Vec::new(),
        choices: Vec::new(),
        blanked: Vec::new(),
    };
    for &(id, change) in changes {
        let place = change.bytes(text, &lines).with_context(|| format!("no such place: {change:?}"))?;
        if change.genre == Genre::FnValue {
            weaver.of_bodies.push((place, id, change));
        } else {
            weaver.by_start.entry((change.genre, place.start)).or_default().push((id, change));
        }
    }
    let file = syn::parse_file(text).context("a file with mutants is no Rust")?;
    weaver.visit_file(&file);
    Ok(weaver.done())
}

impl Weaver<'_> {
    fn take(&self, genre: Genre, start: usize) -> Vec<(u32, String)> {
        let changes = self.by_start.get(&(genre, start)).filter(|_| self.const_depth == 0);
        changes.map_or(Vec::new(), |all| {
            all.iter().map(|&(id, change)| (id, change.replacement.clone())).collect()
        })
    }

    /// The text of what is there.
    fn slice(&self, range: Range<usize>) -> &str {
        &self.text[range]
    }

    /// Makes an expression a choice between texts and itself.
    fn choose(&mut self, place: Range<usize>, others: &[(u32, String)]) {
        if others.is_empty() {
            return;
        }
        let mut pieces = vec![("(".to_owned(), None)];
        for (id, other) in others {
            pieces.push((format!("if {IS_SHOWN}({id}) {{ {other} }} else "), Some(*id)));
        }
        pieces.push(("{ ".to_owned(), None));
        let ids = others.iter().map(|&(id, _)| id).collect();
        self.surround(place, ids, pieces, " })");
    }

    fn surround(
        &mut self,
        place: Range<usize>,
        ids: Vec<u32>,
        before: Vec<(String, Option<u32>)>,
        after: &str,
    ) {
        let choice = self.choices.len();
        let order = i64::try_from(choice).expect("an index");
        self.choices.push(ids);
        self.inserts.push(Insert {
            at: place.start,
            order: (true, order),
            pieces: before,
            choice: Some((choice, true)),
        });
        let pieces = vec![(after.to_owned(), None)];
        self.inserts.push(Insert {
            at: place.end,
            order: (false, -order),
            pieces,
            choice: Some((choice, false)),
        });
    }

    fn enter(&mut self, signature: &Signature, block: &Block, inner: impl FnOnce(&mut Self)) {
        let stays = signature.constness.is_some() && self.kept_const.contains(&signature.ident.to_string());
        if let Some(word) = signature.constness.filter(|_| !stays) {
            self.blanked.push(word.span().byte_range());
        }
        self.const_depth += u32::from(stays);
        if self.const_depth == 0 {
            self.enter_body(block);
        }
        inner(self);
        self.const_depth -= u32::from(stays);
    }

    /// Values that a function may return at once.
    fn enter_body(&mut self, block: &Block) {
        let body = block.span().byte_range();
        // The changes of this function, not of one inside it: they begin with its first statement.
        let first = block.stmts.first().map(|statement| statement.span().byte_range().start);
        let own =
            self.of_bodies.iter().filter(|(place, ..)| Some(place.start) == first && place.end < body.end);
        let pieces: Vec<_> = own
            .map(|(_, id, change)| {
                (format!(" if {IS_SHOWN}({id}) {{ return {}; }}", change.replacement), Some(*id))
            })
            .collect();
        if !pieces.is_empty() {
            self.inserts.push(Insert { at: body.start + 1, order: (true, -1), pieces, choice: None });
        }
    }

    fn done(mut self) -> Woven {
        self.inserts.sort_by_key(|insert| (insert.at, insert.order));
        let mut woven = Woven::default();
        let mut begun = BTreeMap::new();
        let mut from = 0;
        let mut text = self.text.to_owned();
        for blank in &self.blanked {
            text.replace_range(blank.clone(), &" ".repeat(blank.len()));
        }
        for insert in self.inserts {
            woven.text += &text[from..insert.at];
            from = insert.at;
            if let Some((choice, true)) = insert.choice {
                begun.insert(choice, woven.text.len());
            }
            for (piece, id) in insert.pieces {
                let start = woven.text.len();
                woven.text += &piece;
                woven.at.extend(id.map(|id| (start..woven.text.len(), id)));
            }
            if let Some((choice, false)) = insert.choice {
                woven.around.push((begun[&choice]..woven.text.len(), self.choices[choice].clone()));
            }
        }
        woven.text += &text[from..];
        woven
    }
}

/// True if a chain of `&&` has a `let`, so that it is no expression of its own.
fn has_let(expr: &Expr) -> bool {
    match expr {
        Expr::Let(_) => true,
        Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

impl<'ast> Visit<'ast> for Weaver<'_> {
    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        self.enter(&item.sig, &item.block, |weaver| visit::visit_item_fn(weaver, item));
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        self.enter(&item.sig, &item.block, |weaver| visit::visit_impl_item_fn(weaver, item));
    }

    fn visit_trait_item_fn(&mut self, item: &'ast TraitItemFn) {
        match &item.default {
            Some(block) => self.enter(&item.sig, block, |weaver| visit::visit_trait_item_fn(weaver, item)),
            None => visit::visit_trait_item_fn(self, item),
        }
    }

    fn visit_expr_binary(&mut self, expr: &'ast ExprBinary) {
        if !has_let(&expr.left) && !has_let(&expr.right) {
            let others = self.take(Genre::BinaryOperator, expr.op.span().byte_range().start);
            let left = self.slice(expr.left.span().byte_range()).to_owned();
            let right = self.slice(expr.right.span().byte_range()).to_owned();
            let others =
                others.into_iter().map(|(id, operator)| (id, format!("({left}) {operator} ({right})")));
            let others: Vec<_> = others.collect();
            self.choose(expr.span().byte_range(), &others);
        }
        visit::visit_expr_binary(self, expr);
    }

    fn visit_expr_unary(&mut self, expr: &'ast ExprUnary) {
        let others = self.take(Genre::UnaryOperator, expr.op.span().byte_range().start);
        let operand = self.slice(expr.expr.span().byte_range()).to_owned();
        let others: Vec<_> = others.into_iter().map(|(id, _)| (id, operand.clone())).collect();
        self.choose(expr.span().byte_range(), &others);
        visit::visit_expr_unary(self, expr);
    }

    fn visit_expr_struct(&mut self, expr: &'ast ExprStruct) {
        let whole = expr.span().byte_range();
        let mut others = Vec::new();
        for field in &expr.fields {
            let place = field.span().byte_range();
            for (id, _) in self.take(Genre::StructField, place.start) {
                let rest = self.slice(place.end..whole.end);
                let rest = rest.trim_start().strip_prefix(',').unwrap_or(rest);
                others.push((id, format!("{}{rest}", self.slice(whole.start..place.start))));
            }
        }
        self.choose(whole, &others);
        visit::visit_expr_struct(self, expr);
    }

    fn visit_expr_match(&mut self, expr: &'ast ExprMatch) {
        // With an arm that may be gone, what is left may not name every value: the compiler says so of the whole.
        let of_arm = |arm: &Arm| self.take(Genre::MatchArm, arm.span().byte_range().start);
        let ids: Vec<u32> = expr.arms.iter().flat_map(of_arm).map(|(id, _)| id).collect();
        if !ids.is_empty() {
            self.surround(expr.span().byte_range(), ids, Vec::new(), "");
        }
        visit::visit_expr_match(self, expr);
    }

    fn visit_arm(&mut self, arm: &'ast Arm) {
        let pattern = arm.pat.span().byte_range();
        let gone = self.take(Genre::MatchArm, arm.span().byte_range().start);
        match &arm.guard {
            None => {
                let piece = |(id, _)| (format!(" if !{IS_SHOWN}({id})"), Some(id));
                let pieces: Vec<_> = gone.into_iter().map(piece).take(1).collect();
                self.inserts.push(Insert { at: pattern.end, order: (true, -1), pieces, choice: None });
            }
            Some((_, guard)) if !has_let(guard) => self.weave_guard(guard, &gone),
            Some(_) => {}
        }
        visit::visit_arm(self, arm);
    }
}

impl Weaver<'_> {
    fn weave_guard(&mut self, guard: &Expr, gone: &[(u32, String)]) {
        let place = guard.span().byte_range();
        let values = self.take(Genre::MatchArmGuard, place.start);
        let of = |value: &str| {
            values.iter().filter(|(_, to)| to == value).map(|&(id, _)| id).collect::<Vec<u32>>()
        };
        let (always, never) = (of("true"), of("false"));
        let ids: Vec<u32> = gone
            .iter()
            .map(|&(id, _)| id)
            .chain(always.iter().copied())
            .chain(never.iter().copied())
            .collect();
        if ids.is_empty() {
            return;
        }
        let mut pieces = vec![("(".to_owned(), None)];
        pieces.extend(gone.iter().map(|&(id, _)| (format!("!{IS_SHOWN}({id}) && "), Some(id))));
        pieces.push(("(".to_owned(), None));
        pieces.extend(always.iter().map(|&id| (format!("{IS_SHOWN}({id}) || "), Some(id))));
        pieces.extend(never.iter().map(|&id| (format!("!{IS_SHOWN}({id}) && "), Some(id))));
        pieces.push(("(".to_owned(), None));
        self.surround(place, ids, pieces, ")))");
    }
}

#[cfg(test)]
mod tests {
    use super::super::change::{Position, Span};
    use super::*;

    /// The change of the first place of `what` in `text`.
    fn change(text: &str, genre: Genre, what: &str, replacement: &str) -> Change {
        let at = text.find(what).expect("the text has it");
        let position = |at: usize| {
            let line = text[..at].matches('\n').count() + 1;
            let column = text[..at].chars().rev().take_while(|&c| c != '\n').count() + 1;
            Position { line, column }
        };
        let span = Span { start: position(at), end: position(at + what.len()) };
        Change { genre, span, replacement: replacement.to_owned() }
    }

    /// What is woven of changes that are numbered from 0; the function is called `m`, and lines do not count.
    fn woven(text: &str, changes: &[Change], kept_const: &[&str]) -> (String, Woven) {
        let numbered: Vec<(u32, &Change)> = (0..).zip(changes).collect();
        let kept_const = kept_const.iter().map(ToString::to_string).collect();
        let woven = weave(text, &numbered, &kept_const).unwrap();
        syn::parse_file(&woven.text).unwrap_or_else(|error| panic!("{error}: {}", woven.text));
        let words: Vec<&str> = woven.text.split_whitespace().collect();
        (words.join(" ").replace(IS_SHOWN, "m"), woven)
    }

    #[test]
    fn each_kind_of_change_becomes_a_choice() {
        let cases = [
            (
                "fn f() -> bool { a < b }",
                Genre::BinaryOperator,
                "<",
                "<=",
                "(if m(0) { (a) <= (b) } else { a < b })",
            ),
            ("fn f() -> bool { !g(x) }", Genre::UnaryOperator, "!", "", "(if m(0) { g(x) } else { !g(x) })"),
            ("fn f() -> u32 { g(); 7 }", Genre::FnValue, "g(); 7", "0", "if m(0) { return 0; } g(); 7"),
            (
                "fn f() { match x { 1 => g(), _ => h(), } }",
                Genre::MatchArm,
                "1 =>",
                "",
                "1 if !m(0) => g(), _ => h(),",
            ),
            (
                "fn f() { match x { y if y > 1 => g(), _ => h(), } }",
                Genre::MatchArmGuard,
                "y > 1",
                "true",
                "y if ((m(0) || (y > 1))) => g(), _ => h(),",
            ),
            (
                "fn f() -> S { S { a: 1, b, ..c } }",
                Genre::StructField,
                "a: 1",
                "",
                "(if m(0) { S { b, ..c } } else { S { a: 1, b, ..c } })",
            ),
        ];
        for (text, genre, what, replacement, expected) in cases {
            let (found, woven) = woven(text, &[change(text, genre, what, replacement)], &[]);
            let (begin, end) = (found.find(expected).unwrap_or_else(|| panic!("{found}")), expected.len());
            let around = format!("{}{}", &found[..begin], &found[begin + end..]);
            assert!(text.starts_with(&around[..begin]), "nothing else changes: {found}");
            assert_eq!(woven.at.len(), 1, "{text}");
        }
    }

    #[test]
    fn choices_may_lie_in_each_other_and_hold_several_mutants() {
        let text = "fn f() -> bool { a + b < c }";
        let changes = [
            change(text, Genre::BinaryOperator, "<", "<="),
            change(text, Genre::BinaryOperator, "<", "=="),
            change(text, Genre::BinaryOperator, "+", "-"),
            change(text, Genre::FnValue, "a + b < c", "true"),
        ];
        let (found, woven) = woven(text, &changes, &[]);
        let expected = "fn f() -> bool { if m(3) { return true; } (if m(0) { (a + b) <= (c) } else if m(1) { (a + b) == (c) } \
                        else { (if m(2) { (a) - (b) } else { a + b }) < c }) }";
        assert_eq!(found, expected);
        let place = woven.text.find("(a + b) ==").unwrap();
        assert_eq!(woven.mutants_at(&(place..place + 3)), [1], "a complaint inside a mutant is about it");
        let place = woven.text.rfind("a + b }").unwrap();
        assert_eq!(
            woven.mutants_at(&(place..place + 5)),
            [2],
            "and one beside mutants about those of the innermost choice"
        );
        assert!(woven.mutants_at(&(0..2)).is_empty());
    }

    #[test]
    fn what_cannot_choose_at_run_time_is_left_as_it_is() {
        let text = "const fn f() -> bool { a < b }\nfn g() { if a && let Some(x) = y {} }";
        let changes =
            [change(text, Genre::BinaryOperator, "<", ">"), change(text, Genre::BinaryOperator, "&&", "||")];
        let (found, kept) = woven(text, &changes, &["f"]);
        assert_eq!((found.as_str(), kept.at.len()), (&*text.replace('\n', " "), 0));
        let (found, freed) = woven(text, &changes, &[]);
        assert!(
            found.starts_with("fn f() -> bool { (if m(0)"),
            "a function that need not be const chooses: {found}"
        );
        assert_eq!(freed.at.len(), 1);
    }
}
