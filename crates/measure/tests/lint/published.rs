//! The course report's ten rows, as shipped, against what is wrong with them.

use crate::made::words;
use ocssd_measure::lint::Settings;

const ROWS: &str = include_str!("../../../../examples/lint/report-2024.csv");

fn said(id: &str) -> Vec<&'static str> {
    words(id, &Settings::default(), &[ROWS.to_owned()])
}

#[test]
fn little_flags_all_rows_but_one_and_that_one_is_no_replicate() {
    let little = said("L01");
    assert_eq!(
        little,
        ["warn", "warn", "fail", "pass", "fail", "fail", "fail", "fail", "fail", "fail"],
        "T2 100/0 is the fourth row; its rho is 0.956"
    );
    let replicate = said("L04");
    let found: Vec<usize> = (0..10).filter(|&row| replicate[row] == "fail").collect();
    assert_eq!(found, [0, 3, 7], "the cell measured three times");
}

#[test]
fn other_rules_find_what_the_critique_says_row_by_row() {
    let rows = |id: &str| {
        (0..10).filter(|&row| !matches!(said(id)[row], "unknown" | "apart" | "pass")).collect::<Vec<_>>()
    };
    assert_eq!(rows("L03"), [0, 1, 2, 6], "reads from the page cache, and a write that is no system call");
    assert_eq!(rows("L05"), [4, 5], "both mixes lie below their parts");
    assert_eq!(rows("L06"), [9], "latency falls from depth 10 to 100");
    assert_eq!(rows("L16"), (0..10).collect::<Vec<_>>(), "bandwidth is called IOPS");
    for id in ["L02", "L07", "L08", "L09", "L10", "L11", "L12", "L13", "L14", "L15"] {
        assert_eq!(rows(id), Vec::<usize>::new(), "{id}: the report does not say enough");
    }
}
