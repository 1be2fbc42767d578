//! `ocssd simulate`: seeds that keep every promise, one seed, its timeline, and input that cannot be used.

use crate::program::Program;

/// A seed of a tiny world in which pblk keeps every promise.
const ONE: &str = "simulate --size tiny --seed 1";

#[test]
fn a_range_of_seeds_says_what_it_exercised() {
    let program = Program::new();
    let arguments = "simulate --size tiny --seeds 0..4 --jobs 2";
    let value = program.json(&format!("{arguments} --json"));
    assert_eq!((&value["verdict"], &value["seeds"]["to"]), (&"pass".into(), &4.into()), "{value}");
    for (group, name) in
        [("power cuts", "in_flight"), ("requests", "writes"), ("checks", "audits"), ("target", "flushes")]
    {
        assert!(value["counts"][group][name].as_u64() > Some(0), "{group} {name}: {value}");
    }
    assert!(value["speed"]["seeds_per_second"].as_f64() > Some(0.0), "{value}");
    assert!(value["failures"].as_array().is_some_and(Vec::is_empty), "{value}");
    let one = program.json("simulate --size tiny --seeds 0..4 --jobs 1 --json");
    assert_eq!(one["counts"], value["counts"], "the number of threads changed what was exercised");
    let text = program.good(arguments);
    for words in ["power cuts", "seeds/s", "verdict: pass: every promise was kept in 4 seeds"] {
        assert!(text.contains(words), "no {words:?} in:\n{text}");
    }
}

#[test]
fn a_time_ends_seeds_without_an_end() {
    let value = Program::new().json("simulate --size tiny --time 300ms --json");
    assert_eq!(value["stopped"], "the time was over", "{value}");
    assert!(value["seeds"]["to"].as_u64() > Some(0), "{value}");
}

#[test]
fn one_seed_shows_its_plan_and_the_steps_left() {
    let program = Program::new();
    let whole = program.good(ONE);
    for words in ["drive: ", "target: on ", "steps 0-", "read and compare everything", "verdict: pass"] {
        assert!(whole.contains(words), "no {words:?} in:\n{whole}");
    }
    let some = program.json(&format!("{ONE} --only 3,5-7 --json"));
    let named = some["steps"].to_string();
    assert!(named.contains("step 3:") && !named.contains("step 8"), "{some}");
    assert!(some["counts"]["requests"]["writes"].as_u64() <= Some(4), "{some}");
}

#[test]
fn a_part_of_a_plan_can_be_left_out() {
    let program = Program::new();
    let cuts = |arguments: &str| {
        let value = program.json(&format!("simulate --size tiny --seed 2 --json{arguments}"));
        assert_eq!(value["verdict"], "pass", "{value}");
        let cuts = &value["counts"]["power cuts"];
        let again = ["in_mount", "after_mount"].map(|name| cuts[name].as_u64().unwrap_or(0));
        (cuts["in_flight"].as_u64(), again.iter().sum::<u64>())
    };
    let (whole, less) = (cuts(""), cuts(" --without mount-cuts"));
    assert!(whole.1 > 0 && less.1 == 0 && less.0 > Some(0), "{whole:?}, then {less:?}");
}

#[test]
fn a_timeline_is_json_with_commands_requests_and_power_cuts() {
    let program = Program::new();
    let text = program.good(&format!("{ONE} --trace a.json"));
    assert!(text.contains("timeline: a.json"), "{text}");
    let bytes = std::fs::read(program.path("a.json")).expect("it was written");
    let trace: serde_json::Value = serde_json::from_slice(&bytes).expect("it is JSON");
    let events = trace["traceEvents"].as_array().expect("a list of events");
    for category in ["command", "mount", "request", "power_cut", "step"] {
        assert!(events.iter().any(|event| event["cat"] == category), "no {category} in the timeline");
    }
}

#[test]
fn what_cannot_be_simulated_is_refused_with_a_sentence() {
    let program = Program::new();
    for (arguments, words) in [
        ("--target linear", "in order, zone by zone"),
        ("--target null", "keeps nothing"),
        ("--target ftl", "the targets are: linear, pblk, "),
        ("--seeds 5", "seeds are two numbers"),
        ("--seeds 9..3", "must be larger"),
        ("--time 30", "as 30s, 10min or 2h"),
        ("--time 0s", "as 30s, 10min or 2h"),
        ("--jobs 0", "--jobs <N>"),
        ("--jobs 99999", "at most 1024 threads"),
        ("--size huge", "possible values: tiny, any"),
        ("--seed x", "--seed <N>"),
        ("--seed 1 --only 4-2", "as 3,17-20"),
        ("--seed 1 --size tiny --only 99999", "names step 99999"),
        ("--seed 1 --seeds 0..3", "cannot be used with"),
        ("--only 3", "required arguments were not provided"),
        ("--without high-ecc", "required arguments were not provided"),
        ("--seeds 0..3 --without high-ecc", "cannot be used with"),
        ("--seeds 0..3 --only 3", "cannot be used with"),
        ("--time 1s --trace a.json", "cannot be used with"),
        ("--seed 1 --without power", "those that can be left out are mount-cuts"),
        ("--seed 1 --size tiny --without high-ecc", "has no high-ecc to leave out"),
        ("--trace a.json", "required arguments were not provided"),
        ("--keep-going 0", "--keep-going <N>"),
        ("--seed 1 --size tiny --trace none/a.json", "name another file"),
    ] {
        let answer = program.run(&format!("simulate {arguments}"));
        assert_eq!(answer.code, 2, "{arguments} said:\n{}{}", answer.out, answer.err);
        assert!(answer.err.contains(words), "{arguments} does not say {words:?}:\n{}", answer.err);
        assert!(!answer.err.contains("panicked"), "{arguments} panicked:\n{}", answer.err);
        assert_eq!(answer.out, "", "{arguments} printed a result");
    }
}

#[test]
fn help_and_manual_have_examples() {
    let program = Program::new();
    for arguments in ["simulate --help", "man simulate"] {
        let text = program.good(arguments).replace('\\', "");
        assert!(text.contains("ocssd simulate --size tiny --seed 17 --only 3,17-20"), "{arguments}:\n{text}");
    }
    assert!(
        program.good("completions bash").contains("--keep-going"),
        "the completions do not know the verb"
    );
}

#[test]
fn every_cut_of_a_short_workload_is_counted() {
    let program = Program::new();
    let value = program.json("simulate --exhaustive --seed 3 --steps 6 --quiet --json");
    assert_eq!(value["verdict"], "pass", "{value}");
    let (events, states) = (value["events"].as_u64(), value["states"].as_u64());
    assert!(events > Some(5) && states > events, "{value}");
    let text = program.good("simulate --exhaustive --seeds 3..4 --steps 3");
    assert!(text.contains("a power cut after each") && text.contains("verdict: pass"), "{text}");
    for wrong in ["--seed 1 --steps 3", "--exhaustive --only 3 --seed 1", "--exhaustive --steps 0"] {
        let answer = program.run(&format!("simulate {wrong}"));
        assert_eq!(answer.code, 2, "{wrong} was taken: {}", answer.out);
    }
}
