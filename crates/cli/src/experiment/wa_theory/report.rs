//! Verdicts and pictures of write amplification.

use super::super::catalogue::Numbers;
use super::SPARE;
use super::point::Skew;
use ocssd_report::closed_form::{Utilisation, fifo_write_amplification};
use ocssd_report::{Axis, ChartSpec, Panel, PaperTable, Point, Report, Role, Series, Style, Table, Verdict};

/// Farther from the closed form than this, and theory does not hold, in percent (chosen).
const THEORY_PERCENT: f64 = 3.0;
/// Models of the table of policies, in its order.
const POLICIES: [&str; 6] = [
    "greedy",
    "cost_benefit",
    "greedy_gc_stream",
    "cost_benefit_gc_stream",
    "greedy_sepbit",
    "cost_benefit_sepbit",
];

/// A measurement under uniform writes, and theory for it.
struct Uniform {
    model: String,
    spare: u32,
    effective: f64,
    measured: f64,
    theory: f64,
}

impl Uniform {
    fn percent(&self) -> f64 {
        (self.measured / self.theory - 1.0) * 100.0
    }
}

/// Adds everything.
pub fn report(report: Report, numbers: &Numbers) -> anyhow::Result<Report> {
    let uniform = uniform(&numbers.ours);
    let mut report = report.verdicts(verdicts(&uniform, &numbers.ours)).chart(theory_chart(&uniform));
    if let Some(chart) = policy_chart(numbers) {
        report = report.chart(chart);
    }
    Ok(report.table(theory_table(&uniform)))
}

fn value(table: &PaperTable, model: &str, utilisation: &str, skew: &str, metric: &str) -> Option<f64> {
    let keys = [("model", model), ("utilisation", utilisation), ("skew", skew), ("metric", metric)];
    table.select(&keys).first().map(|row| row.value)
}

fn uniform(ours: &PaperTable) -> Vec<Uniform> {
    let mut found = Vec::new();
    for model in ours.distinct("model") {
        for (spare, utilisation) in SPARE {
            let get = |metric| value(ours, model, utilisation, Skew::Uniform.name(), metric);
            let (Some(measured), Some(effective)) =
                (get("write_amplification"), get("effective_utilisation"))
            else {
                continue;
            };
            let Some(rho) = Utilisation::new(effective) else { continue };
            let theory = fifo_write_amplification(rho);
            found.push(Uniform { model: model.to_owned(), spare, effective, measured, theory });
        }
    }
    found
}

fn verdicts(uniform: &[Uniform], ours: &PaperTable) -> Vec<Verdict> {
    // Closed forms are of one stream; first-in first-out and greedy are the same for large blocks.
    let claim = "With one stream and greedy victims, uniform writes amplify within 3 % of the closed form for the effective \
                 spare space.";
    let (uniform, others): (Vec<&Uniform>, Vec<&Uniform>) =
        uniform.iter().partition(|one| one.model != "cost_benefit_gc_stream");
    let worst = uniform.iter().max_by(|a, b| a.percent().abs().total_cmp(&b.percent().abs()));
    let theory = match worst {
        None => Verdict::not_evaluated("WA1", claim, "no uniform writes were measured"),
        Some(worst) => {
            let within = uniform.iter().filter(|one| one.percent().abs() <= THEORY_PERCENT).count();
            let sentence = format!(
                "{within} of {} within 3 %; farthest: {} with {} % spare, {:.2} measured, {:.2} in theory, {:+.1} %",
                uniform.len(),
                worst.model,
                worst.spare,
                worst.measured,
                worst.theory,
                worst.percent()
            );
            Verdict::decided("WA1", claim, within == uniform.len(), sentence)
        }
    };
    vec![theory, streams_pay(ours), victims_do_not(ours), nothing_to_tell_apart(&others)]
}

fn nothing_to_tell_apart(found: &[&Uniform]) -> Verdict {
    let claim = "Ours: where there is nothing to tell apart, cost-benefit with two streams costs at most 3 % over that closed form.";
    if found.is_empty() {
        return Verdict::not_evaluated("WA4", claim, "two streams were not measured with uniform writes");
    }
    let told: Vec<String> =
        found.iter().map(|one| format!("{} %: {:+.1} %", one.spare, one.percent())).collect();
    let holds = found.iter().all(|one| one.percent() <= THEORY_PERCENT);
    Verdict::decided("WA4", claim, holds, format!("by spare, {}", told.join(", ")))
}

/// Every skew and spare that has both models: their names, and how much less the second amplifies.
fn gains(ours: &PaperTable, from: &str, to: &str) -> Vec<(String, f64)> {
    let mut gains = Vec::new();
    for (spare, utilisation) in SPARE {
        for skew in [Skew::Hot80, Skew::Hot90, Skew::Zipf] {
            let get = |model| value(ours, model, utilisation, skew.name(), "write_amplification");
            if let (Some(from), Some(to)) = (get(from), get(to)) {
                gains.push((format!("{} {spare} %", skew.name()), (1.0 - to / from) * 100.0));
            }
        }
    }
    gains
}

fn told(gains: &[(String, f64)]) -> String {
    let list: Vec<String> = gains.iter().map(|(name, gain)| format!("{name}: {gain:.0} %")).collect();
    list.join(", ")
}

fn streams_pay(ours: &PaperTable) -> Verdict {
    let claim = "Under skew, a stream for collected data with cost-benefit saves a tenth or more over one stream and greedy.";
    let gains = gains(ours, "greedy", "cost_benefit_gc_stream");
    if gains.is_empty() {
        return Verdict::not_evaluated("WA2", claim, "no skewed writes were measured");
    }
    Verdict::decided(
        "WA2",
        claim,
        gains.iter().all(|(_, gain)| *gain >= 10.0),
        format!("saves {}", told(&gains)),
    )
}

fn victims_do_not(ours: &PaperTable) -> Verdict {
    let claim = "With one stream, cost-benefit saves less than a twentieth over greedy.";
    let gains = gains(ours, "greedy", "cost_benefit");
    if gains.is_empty() {
        return Verdict::not_evaluated("WA3", claim, "cost-benefit with one stream was not measured");
    }
    Verdict::decided(
        "WA3",
        claim,
        gains.iter().all(|(_, gain)| *gain < 5.0),
        format!("saves {}", told(&gains)),
    )
}

fn theory_chart(uniform: &[Uniform]) -> ChartSpec {
    let least = uniform.iter().map(|one| one.effective).fold(0.8, f64::min);
    let most = uniform.iter().map(|one| one.effective).fold(0.93, f64::max);
    let curve = (0..=12_u32).filter_map(|step| {
        let rho = least + (most - least) * f64::from(step) / 12.0;
        Some(Point::new(rho, fifo_write_amplification(Utilisation::new(rho)?)))
    });
    let mut panel =
        Panel::new("uniform writes").series(Series::new("closed form", Role::Paper, curve.collect()));
    let mut names: Vec<&str> = uniform.iter().map(|one| one.model.as_str()).collect();
    names.dedup();
    for name in names {
        let points = uniform.iter().filter(|one| one.model == name);
        let points = points
            .map(|one| Point::new(one.effective, one.measured).noted(&format!("{} % spare", one.spare)));
        panel = panel.series(Series::new(name, Role::Ours, points.collect()).style(Style::Markers));
    }
    ChartSpec::new(
        "Write amplification against the closed form",
        Axis::linear("effective utilisation", ""),
        Axis::linear("write amplification", "x"),
    )
    .subtitle("Each point has the spare that is left when free, open and reserved lines are taken off.")
    .source("Closed form: first-in first-out, large blocks (Menon, Robinson; Xiang and Kurkoski).")
    .panel(panel)
}

/// Policies side by side, the small simulator's numbers beside ours.
fn policy_chart(numbers: &Numbers) -> Option<ChartSpec> {
    let short = ["G", "CB", "G gc", "CB gc", "G sep", "CB sep"];
    let mut chart = ChartSpec::new(
        "Write amplification by policy under skew",
        Axis::categories("victim policy and streams", &short),
        Axis::linear("write amplification", "x"),
    )
    .subtitle("Victims: G greedy, CB cost-benefit. gc: collected data has its own stream. sep: SepBIT, six streams.")
    .source("Paper: a small independent simulator, 1 024 blocks of 128 pages.");
    for skew in [Skew::Hot80, Skew::Hot90, Skew::Zipf] {
        let mut panel = Panel::new(skew.name());
        for (spare, utilisation) in &SPARE[1..] {
            let ours = policy_points(&numbers.ours, utilisation, skew);
            if ours.is_empty() {
                continue;
            }
            let name = format!("{spare} %");
            let paper = policy_points(&numbers.paper, utilisation, skew);
            panel = panel.series(Series::new(&name, Role::Paper, paper)).series(Series::new(
                &name,
                Role::Ours,
                ours,
            ));
        }
        if !panel.series.is_empty() {
            chart = chart.panel(panel);
        }
    }
    (!chart.panels.is_empty()).then_some(chart)
}

fn policy_points(table: &PaperTable, utilisation: &str, skew: Skew) -> Vec<Point> {
    let point = |(index, model): (u32, &&str)| {
        let value = value(table, model, utilisation, skew.name(), "write_amplification")?;
        Some(Point::new(f64::from(index), value))
    };
    (0..).zip(&POLICIES).filter_map(point).collect()
}

fn theory_table(uniform: &[Uniform]) -> Table {
    let columns = ["target", "spare", "effective utilisation", "measured", "closed form", "off by"];
    let mut table = Table::new("Uniform writes against the closed form of the effective spare", &columns);
    for one in uniform {
        table.push(vec![
            one.model.clone(),
            format!("{} %", one.spare),
            format!("{:.4}", one.effective),
            format!("{:.3}", one.measured),
            format!("{:.3}", one.theory),
            format!("{:+.1} %", one.percent()),
        ]);
    }
    table
}
