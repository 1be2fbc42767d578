//! A plan in words: what a seed means, and its steps, requests in a row on one line.

use super::steps::Steps;
use ocssd_sim::plan::{Step, WorldPlan};

/// Steps in a row that are told on one line.
struct Row {
    first: usize,
    last: usize,
    what: String,
}

/// Those steps of a plan that are in `only`, one line each, requests in a row on one.
pub fn steps_in_words(plan: &WorldPlan, only: &Steps) -> Vec<String> {
    let mut rows: Vec<(bool, Row)> = Vec::new();
    for (index, step) in plan.steps.iter().enumerate().filter(|&(index, _)| only.contains(index)) {
        let is_request = matches!(step, Step::Request { .. });
        match rows.last_mut() {
            Some((true, row)) if is_request && row.last + 1 == index => row.last = index,
            _ => rows.push((is_request, Row { first: index, last: index, what: step.to_string() })),
        }
    }
    rows.into_iter().map(|(_, row)| row.in_words()).collect()
}

impl Row {
    fn in_words(&self) -> String {
        let Self { first, last, what } = self;
        if first == last {
            return format!("step {first}: {what}");
        }
        format!("steps {first}-{last}: {} requests", last - first + 1)
    }
}

/// Every step.
pub fn all_steps(plan: &WorldPlan) -> Steps {
    Steps::of(&(0..plan.steps.len()).collect::<Vec<usize>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_sim::swarm::{Size, draw};

    #[test]
    fn requests_in_a_row_are_one_line() {
        let mut plan = draw(1, 0, Size::Tiny, "pblk");
        let request = Step::Request { draw: 1, turn: true };
        plan.steps =
            vec![request.clone(), request.clone(), Step::Quiesce, request.clone(), request, Step::Audit];
        let told = |indices: &[usize]| steps_in_words(&plan, &Steps::of(indices)).join("; ");
        assert_eq!(
            told(&[0, 1, 2, 3, 5]),
            "steps 0-1: 2 requests; step 2: wait for every reply; step 3: a request; step 5: read and compare everything"
        );
        assert_eq!(told(&[0, 3, 4]), "step 0: a request; steps 3-4: 2 requests");
        assert_eq!(all_steps(&plan).to_string(), "0-5");
    }
}
