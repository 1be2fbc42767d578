//! `ocssd inspect IMAGE zones`: what lies beneath the zones of an image.

use crate::program::Program;

/// An image whose zones were written in order, by a target it leases.
fn written() -> Program {
    let program = Program::new();
    program.good("format a.img --drive qemu");
    program.good("target create a.img z --kind zns --units all");
    program.good("workload zbd rw=write,bs=64k,io_size=64m --drive a.img --target z --quiet");
    program
}

#[test]
fn zones_are_shown_with_their_units_and_looking_changes_none() {
    let program = written();
    let zones = program.json("inspect a.img zones --json");
    let shown = zones.as_array().expect("a list");
    assert!(!shown.is_empty(), "something was written");
    for zone in shown {
        let count = |name: &str| zone[name].as_u64().expect("a count");
        assert!(
            count("chunks") > 0 && zone["units"].as_array().is_some_and(|units| !units.is_empty()),
            "{zone}"
        );
        assert!(
            count("capacity") <= count("size") && count("cycles_least") <= count("cycles_most"),
            "{zone}"
        );
        assert_eq!(count("start"), count("zone") * count("size"), "{zone}");
    }
    let again = program.json("inspect a.img zones --json");
    assert_eq!(again, zones, "looking changed a zone");
    let all = program.json("inspect a.img zones --all --json");
    assert!(all.as_array().expect("a list").len() > shown.len(), "no zone is empty");
    assert!(program.good("inspect a.img zones").contains("wptr"));
}

#[test]
fn where_no_zones_are_none_are_made() {
    let program = Program::new();
    program.good("format a.img --drive qemu");
    for (verb, says) in [
        ("inspect tiny zones", "no image"),
        ("inspect a.img zones", "no target of kind zns of its own"),
        ("inspect a.img zones --target pblk", "which has no zones"),
        ("inspect a.img zones --target zns", "none was to be made"),
    ] {
        let said = program.run(verb);
        assert!(said.err.contains(says), "{verb}: {}", said.err);
    }
    assert_eq!(program.json("inspect a.img chunks --json"), serde_json::json!([]), "something was written");
}
