//! Targets beyond blocks, asked in the words of known tools.

use crate::program::Program;

#[test]
fn what_cannot_be_asked_is_refused_with_a_sentence() {
    let program = Program::new();
    for (arguments, words) in [
        ("ycsb --target pblk", "speaks of blocks, but ycsb asks for keys and values"),
        ("zbd --target pblk", "but zbd asks for zones"),
        ("db_bench --target ox-block", "but db_bench asks for tables"),
        ("page-store --target linear", "but page-store asks for log-structured pages"),
        ("ycsb --target ftl", "there is no target \"ftl\"; the targets are: linear, pblk"),
        ("iozone", "possible values: ycsb, mooncake, db_bench, lsm, page-store, zbd"),
        ("ycsb --iodepth 0", "--iodepth <N>"),
    ] {
        let answer = program.run(&format!("workload {arguments} --drive tiny"));
        assert_eq!(answer.code, 2, "{arguments} said:\n{}{}", answer.out, answer.err);
        assert!(answer.err.contains(words), "{arguments} does not say {words:?}:\n{}", answer.err);
        assert_eq!(answer.out, "", "{arguments} printed a result");
    }
}

/// The verdict is `fail` and says each of `words`.
fn fails(arguments: &str, words: &[&str]) {
    let said = Program::new().run(&format!("workload {arguments} --quiet"));
    assert_eq!(said.code, 1, "{arguments} said:\n{}{}", said.out, said.err);
    let verdict = said.verdict();
    for word in words {
        assert!(verdict.contains(word), "{arguments} does not say {word:?}: {verdict}");
    }
}

/// A tree with the usual options needs tables of 64 MiB. Numbers of both sides say by how much it does not fit.
#[test]
fn a_tree_that_does_not_fit_the_drive_says_what_it_needs_and_what_there_is() {
    fails(
        "lsm --drive tiny",
        &[
            "create: the table would be longer",
            "it may come to 67625344 bytes, and the target takes 1703936;",
            "write_buffer_size",
        ],
    );
    let small = "write_buffer_size=64k target_file_size_base=64k";
    fails(
        &format!("lsm --drive tiny benchmarks=fillseq {small}"),
        &["keeps no more tables", "the tree has ", " that are published", "the target keeps 8 with"],
    );
}

#[test]
fn keys_and_values_are_asked_in_the_words_of_ycsb() {
    let program = Program::new();
    for workload in ["a", "b", "c", "d", "e", "f"] {
        let options = "recordcount=300,operationcount=300,maxscanlength=5,durable=reply";
        let said = program
            .good(&format!("workload ycsb workload={workload},{options} --drive qemu --target kv --quiet"));
        assert!(said.starts_with("verdict: pass"), "{workload}: {said}");
    }
}

#[test]
fn a_phase_that_took_no_time_is_no_result() {
    let said = Program::new()
        .run("workload ycsb workload=a,recordcount=20,operationcount=20 --drive qemu --target kv --quiet");
    assert_eq!(said.code, 1, "{}{}", said.out, said.err);
    assert!(said.out.starts_with("verdict: fail: it took no time, so there is no rate"), "{}", said.out);
}

#[test]
fn processors_of_the_host_take_time_where_they_are_asked_for() {
    let ycsb = "workload ycsb workload=a,recordcount=20,operationcount=20 --drive qemu --target kv --quiet";
    let said = Program::new().good(&format!("{ycsb} --host-cpu e5-2620v3"));
    assert!(said.starts_with("verdict: pass"), "buffers answer, and asking takes time: {said}");
    assert!(said.contains("host_cpu e5-2620v3"), "{said}");
    for (asked, words) in [
        (format!("{ycsb} --host-cpu e5-2620v3 --clock wall"), "only virtual time can do"),
        (format!("{ycsb} --host-cpu i386"), "i386"),
        (
            "workload lsm benchmarks=fillrandom num=10 --host-cpu free".to_owned(),
            "a tree of lsm has processors of its own",
        ),
    ] {
        let said = Program::new().run(&asked);
        assert!(
            said.code == 2 && said.err.contains(words),
            "{asked}: {} {}{}",
            said.code,
            said.out,
            said.err
        );
    }
}
