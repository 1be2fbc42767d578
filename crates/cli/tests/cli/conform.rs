//! `ocssd conform` on zones that `ocssd serve` has: nothing is written unasked, and every answer is the model's.

use crate::program::Program;
use crate::serve::Served;

/// The name of the subsystem.
const NQN: &str = "nqn.2014-08.org.nvmexpress:test";

#[test]
fn served_zones_answer_as_the_model_does_once_their_serial_number_was_typed() {
    let program = Program::new();
    crate::namespaces::format(&program);
    let served = Served::start_at(
        &program,
        &format!("--nvme-tcp 127.0.0.1:0 --drive x.img --nqn {NQN} --export z=zns:area_units=2@pu:0-3"),
    );
    let address = served.serving["nvme"]["addresses"][0].as_str().expect("it says where");
    let conform = format!("conform --zns {address} --nqn {NQN}");
    let refused = program.run(&conform);
    assert_eq!(refused.code, 2, "{}", refused.err);
    let serial = refused.err.split("type --serial ").nth(1).and_then(|rest| rest.split_whitespace().next());
    let serial = serial.expect("it says what to type");
    assert_eq!(program.run(&format!("{conform} --serial {serial}0")).code, 2, "another device's");
    for seed in 1..4 {
        let arguments = format!("{conform} --serial {serial} --requests 500 --seed {seed} --json");
        let found = program.json(&arguments);
        assert_eq!(found["differences"], serde_json::json!([]), "seed {seed}: {found:#}");
        let asked = found["asked"].as_array().expect("kinds");
        let sum = |what: &str| asked.iter().map(|kind| kind[what].as_u64().expect("a count")).sum::<u64>();
        assert!(sum("succeeded") > 150 && sum("refused") > 50, "seed {seed}: {found:#}");
    }
    let absent = program.run(&format!("{conform} --serial {serial} --nsid 9"));
    assert!(absent.code == 2 && absent.err.contains("--nsid"), "{}", absent.err);
    served.stop();
    assert_eq!(program.run(&conform).code, 2, "nobody serves it");
}
