//! `ocssd lint`: whether results may be believed.

use crate::Outcome;
use crate::args::LintArgs;
use crate::table;
use anyhow::{Context, anyhow};
use ocssd_measure::lint::{
    Evidence, Judgement, Report, Rule, Selection, Severity, find_rule, lint as judge, read,
};
use ocssd_workload::results::fold::fold;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

/// Most findings of one rule, and most files, shown as text (chosen: all of a small set; `--json` has every one).
const SHOWN: usize = 12;

/// Carries out the verb; `Failed` if something at or above the level was found.
pub fn lint(args: &LintArgs, as_json: bool) -> anyhow::Result<Outcome> {
    if let Some(name) = &args.explain {
        explain(find_rule(name).map_err(|sentence| anyhow!(sentence))?, as_json);
        return Ok(Outcome::Good);
    }
    let selection = Selection::new(&args.rule, &args.ignore).map_err(|sentence| anyhow!(sentence))?;
    let files = args.files.iter().map(|path| load(path)).collect::<anyhow::Result<Vec<_>>>()?;
    let report = judge(&files, &args.facts.settings(args.ceiling), &selection);
    if as_json {
        table::print_json(&as_value(&files, &report, args.level));
    } else {
        print(&files, &report, args.level);
    }
    let is_bad = report.worst().is_some_and(|worst| worst >= args.level);
    Ok(if is_bad { Outcome::Failed } else { Outcome::Good })
}

/// Reads a result; `-` is standard input.
fn load(path: &Path) -> anyhow::Result<Evidence> {
    if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes).context("standard input cannot be read")?;
        return Ok(read("standard input", &bytes)?);
    }
    let bytes = std::fs::read(path).with_context(|| {
        format!("{}: expected a file that can be read; give the path of a result", path.display())
    })?;
    Ok(read(&path.display().to_string(), &bytes)?)
}

fn explain(rule: &Rule, as_json: bool) {
    if as_json {
        table::print_json(&rule_as_value(rule));
        return;
    }
    table::line(&format!("{} {}: {} at worst\n", rule.id, rule.name, rule.severity));
    for (title, text) in
        [("holds", rule.holds), ("means", rule.means), ("what to do", rule.remedy), ("needs", rule.needs)]
    {
        table::line(&format!("{:11} {text}", format!("{title}:")));
    }
}

fn rule_as_value(rule: &Rule) -> Value {
    json!({ "id": rule.id, "name": rule.name, "severity": rule.severity.word(),
        "holds": rule.holds, "means": rule.means, "remedy": rule.remedy,
        "needs": rule.needs })
}

fn verdict(report: &Report, level: Severity) -> String {
    let counts: Vec<String> = [Severity::Fail, Severity::Warn, Severity::Label]
        .into_iter()
        .map(|severity| format!("{} {severity}", report.count(severity)))
        .collect();
    let word = if report.worst().is_some_and(|worst| worst >= level) { "findings" } else { "clean" };
    let (unjudged, asked) = unjudged_rules(report);
    let unjudged = match unjudged {
        0 => String::new(),
        _ => format!("; {unjudged} of {asked} rules not judged: the results do not say what they need"),
    };
    format!("verdict: {word} at level {level} ({}){unjudged}", counts.join(", "))
}

/// How many rules lacked something everywhere they could have been held, and how many rules were asked.
fn unjudged_rules(report: &Report) -> (usize, usize) {
    let mut rules: BTreeMap<&str, (bool, bool)> = BTreeMap::new();
    for one in &report.judged {
        let (lacked, held) = rules.entry(one.rule.id).or_default();
        match one.judgement {
            Judgement::NotJudged(_) => *lacked = true,
            Judgement::Pass | Judgement::Finding(..) => *held = true,
            Judgement::NotApplicable(_) => {}
        }
    }
    (rules.values().filter(|(lacked, held)| *lacked && !*held).count(), rules.len())
}

fn print(files: &[Evidence], report: &Report, level: Severity) {
    table::line(&fold(&verdict(report, level)));
    let is_many = files.len() > SHOWN;
    if is_many {
        let cells: usize = files.iter().map(|file| file.cells.len()).sum();
        table::line(&format!("{} files, {cells} cells", files.len()));
    }
    for file in files {
        if !is_many || !file.notes.is_empty() {
            table::line(&format!("{}: {}, {} cells", file.name, file.format.word(), file.cells.len()));
        }
        file.notes.iter().for_each(|note| table::line(&format!("  note: {note}")));
        let own = file.own.as_ref().and_then(|run| run.bad_verdict.as_ref());
        own.iter().for_each(|verdict| table::line(&format!("  note: the run's own verdict is {verdict}")));
    }
    let rules = found_rules(report);
    if !rules.is_empty() {
        table::line("");
        print_findings(files, report, &rules);
    }
    for rule in rules {
        table::line(&format!(
            "\n{} {}: {}\n  means: {}\n  do: {}",
            rule.id, rule.name, rule.holds, rule.means, rule.remedy
        ));
    }
    let unknown = not_judged(report);
    if !unknown.is_empty() {
        table::line("\nnot judged, of the cells:");
        table::print(&["rule", "cells", "missing"], &unknown);
    }
}

/// Rules with findings, by number.
fn found_rules(report: &Report) -> Vec<&'static Rule> {
    let mut rules: Vec<&'static Rule> = report.findings().map(|(judged, ..)| judged.rule).collect();
    rules.dedup_by_key(|rule| rule.id);
    rules
}

fn print_findings(files: &[Evidence], report: &Report, rules: &[&'static Rule]) {
    let mut rows = Vec::new();
    for rule in rules {
        let of_rule: Vec<_> = report.findings().filter(|(judged, ..)| judged.rule.id == rule.id).collect();
        for (judged, severity, sentence) in of_rule.iter().take(SHOWN) {
            let cell = &report.cell(files, judged).name;
            let place =
                if files.len() > 1 { format!("{}: {cell}", files[judged.file].name) } else { cell.clone() };
            rows.push(vec![severity.to_string(), rule.id.to_owned(), place, (*sentence).to_owned()]);
        }
        if of_rule.len() > SHOWN {
            let more = format!("and {} more; --json has all", of_rule.len() - SHOWN);
            rows.push(vec![String::new(), rule.id.to_owned(), String::new(), more]);
        }
    }
    table::print(&["level", "rule", "cell", "finding"], &rows);
}

/// What was not judged, counted by rule and reason.
fn not_judged(report: &Report) -> Vec<Vec<String>> {
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for one in &report.judged {
        if let Judgement::NotJudged(missing) = &one.judgement {
            *counts.entry((one.rule.id, missing)).or_default() += 1;
        }
    }
    let row = |((rule, missing), count): (&(&str, &str), &usize)| {
        vec![(*rule).to_owned(), count.to_string(), (*missing).to_owned()]
    };
    counts.iter().map(row).collect()
}

fn as_value(files: &[Evidence], report: &Report, level: Severity) -> Value {
    let judged: Vec<Value> = report
        .judged
        .iter()
        .map(|one| {
            let (outcome, sentence) = match &one.judgement {
                Judgement::Pass => ("pass", None),
                Judgement::Finding(severity, sentence) => (severity.word(), Some(sentence)),
                Judgement::NotJudged(missing) => ("not_judged", Some(missing)),
                Judgement::NotApplicable(why) => ("not_applicable", Some(why)),
            };
            json!({ "rule": one.rule.id, "file": files[one.file].name, "cell": report.cell(files, one).name,
                "outcome": outcome, "sentence": sentence })
        })
        .collect();
    let files: Vec<Value> = files
        .iter()
        .map(|file| {
            json!({ "name": file.name, "format": file.format.word(), "cells": file.cells.len(), "notes": file.notes,
                "own_verdict": file.own.as_ref().and_then(|run| run.bad_verdict.as_ref()) })
        })
        .collect();
    let rules: Vec<Value> = found_rules(report).into_iter().map(rule_as_value).collect();
    json!({
        "verdict": if report.worst().is_some_and(|worst| worst >= level) { "findings" } else { "clean" },
        "level": level.word(),
        "rules_asked": unjudged_rules(report).1,
        "rules_not_judged": unjudged_rules(report).0,
        "fail": report.count(Severity::Fail),
        "warn": report.count(Severity::Warn),
        "label": report.count(Severity::Label),
        "files": files,
        "judged": judged,
        "rules": rules,
    })
}
