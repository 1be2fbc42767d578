//! How associations end: closings, silence, resets, lost connections; and how hosts come again.

use crate::nvme_tcp::host::{Answer, transported};
use crate::nvme_tcp::testing::{NQN, World, completion, connect, data};
use crate::protocol::Protocol;
use crate::stats::DropReason;
use ocssd_base::Nanos;
use ocssd_lightnvm::Status;
use ocssd_lightnvm::block::BlockOp;
use ocssd_nvme::fabrics::ConnectStatus;
use ocssd_nvme::sqe::ReadWrite;
use ocssd_nvme::{AdminOpcode, Lba, Sqe};

fn io(slba: u64, block_count: u32) -> ReadWrite {
    ReadWrite { slba: Lba(slba), block_count, limited_retry: false, force_unit_access: false }
}

fn keep_alive() -> Sqe {
    Sqe { opcode: AdminOpcode::KEEP_ALIVE.0, ..Sqe::default() }
}

#[test]
fn a_silent_host_loses_its_association_and_all_its_queues() {
    let mut world = World::new();
    let (admin, line, cntlid) = world.ready((false, false));
    world.dispatcher.now = Nanos::from_millis(5900);
    world.judge(line);
    world.judge(admin);
    assert!(!world.is_closed(admin), "it may be silent for 5 s and the granularity of 1 s");
    assert!(world.ask(admin, keep_alive()).status.status.is_success());
    world.dispatcher.now = Nanos::from_millis(11_000);
    world.judge(admin);
    assert!(!world.is_closed(admin));
    // A command on any queue is a sign of life.
    assert!(world.ask(line, Sqe::flush(1)).status.status.is_success());
    world.dispatcher.now = Nanos::from_millis(16_900);
    world.judge(line);
    world.judge(admin);
    assert!(!world.is_closed(admin));
    world.dispatcher.now = Nanos::from_millis(17_100);
    world.judge(admin);
    world.say(admin, &[]);
    assert_eq!(world.lines[admin].end.as_ref().map(|end| end.reason), Some(DropReason::Silent));
    assert!(
        world.is_closed(line) && world.dispatcher.subsystem.as_ref().unwrap().association(cntlid).is_none()
    );
    world.end();
}

#[test]
fn a_host_that_promised_nothing_may_be_silent() {
    let mut world = World::new();
    let line = world.greeted(false, false);
    let forever = ocssd_nvme::fabrics::Connect { kato_ms: 0, ..connect(0) };
    assert!(world.connect(line, forever, &data(NQN, 0xFFFF)).status.status.is_success());
    world.dispatcher.now = Nanos::from_secs(1_000_000);
    world.judge(line);
    assert!(!world.is_closed(line));
    world.end();
}

#[test]
fn a_lost_admin_queue_ends_all_and_a_lost_io_queue_ends_itself() {
    let mut world = World::new();
    let (admin, line, cntlid) = world.ready((false, false));
    world.hang_up(line);
    assert!(world.ask(admin, keep_alive()).status.status.is_success());
    let again = world.greeted(false, false);
    assert!(world.connect(again, connect(1), &data(NQN, cntlid)).status.status.is_success());
    world.hang_up(admin);
    assert!(world.is_closed(again));
    let (_, _, other) = world.ready((false, false));
    assert_ne!(other, cntlid, "who comes again gets a new number");
    let late = world.greeted(false, false);
    let refused = world.connect(late, connect(1), &data(NQN, cntlid)).status.status;
    assert_eq!(refused, ConnectStatus::InvalidParameters { offset: 16, in_data: true }.status());
    world.end();
}

#[test]
fn disconnect_ends_a_queue_after_its_answer() {
    let mut world = World::new();
    let (admin, line, cntlid) = world.ready((true, true));
    assert_eq!(world.ask(admin, Sqe::disconnect()).status.status, Status::COMMAND_SEQUENCE_ERROR);
    assert!(world.ask(line, Sqe::disconnect()).status.status.is_success());
    assert!(world.is_closed(line) && !world.is_closed(admin));
    assert!(world.dispatcher.subsystem.as_ref().unwrap().association(cntlid).unwrap().queues.is_empty());
    world.end();
}

#[test]
fn a_reset_closes_the_io_queues_forgets_event_requests_and_leaves_the_admin_queue() {
    let mut world = World::new();
    let (admin, line, cntlid) = world.ready((false, false));
    let pdu = world.lines[admin].host.command(&transported(Sqe::async_event_request(), 0), &[]);
    assert_eq!(world.say(admin, &pdu), []);
    // A write that was asked for its data and never gets it.
    let pdu = world.lines[line].host.command(&transported(Sqe::write(1, io(0, 8)), 4096), &[]);
    assert!(matches!(world.say(line, &pdu)[..], [Answer::Ask { .. }]));
    world.set_cc(admin, 0x46_0060);
    assert!(world.is_closed(line) && world.csts(admin) == 0);
    assert_eq!(world.dispatcher.pool.lent(), 0);
    assert!(world.lines[admin].session.commands.is_empty());
    world.set_cc(admin, 0x46_0061);
    let again = world.greeted(false, false);
    assert!(world.connect(again, connect(1), &data(NQN, cntlid)).status.status.is_success());
    assert!(world.read(again, Sqe::read(1, io(0, 1)), 512).is_ok());
    world.end();
}

#[test]
fn a_shutdown_makes_everything_durable_and_then_says_so() {
    let mut world = World::new();
    let (admin, line, _) = world.ready((false, false));
    assert!(world.write(line, Sqe::write(1, io(0, 1)), &[7; 512]).status.status.is_success());
    world.set_cc(admin, 0x46_4061);
    assert_eq!(world.csts(admin), 1 | 2 << 2);
    let flushes = world.disks.log.iter().filter(|(_, op)| *op == BlockOp::Flush).count();
    assert_eq!(flushes, 2, "one of each export");
    world.end();
}

#[test]
fn whatever_a_host_was_doing_when_it_went_nothing_of_it_is_kept() {
    for cut in 0..400 {
        let mut world = World::with([2, 2, 3], &[]);
        let (_, line, _) = world.ready((true, true));
        let host = &world.lines[line].host;
        let mut bytes = host.command(&transported(Sqe::read(1, io(0, 512)), 256 << 10), &[]);
        bytes.extend(host.command(&transported(Sqe::write(1, io(0, 8)).with_cid(1), 4096), &[]));
        bytes.extend(host.command(
            &crate::nvme_tcp::host::in_capsule(Sqe::write(1, io(0, 1)).with_cid(2), 512),
            &[5; 512],
        ));
        bytes.truncate(bytes.len() * cut / 400);
        world.say(line, &bytes);
        world.end();
    }
}

#[test]
fn a_stopping_target_answers_what_was_asked_and_refuses_what_comes_then() {
    let mut world = World::new();
    let (admin, line, _) = world.ready((false, false));
    let pdu = world.lines[line].host.command(&transported(Sqe::write(1, io(0, 1)), 512), &[]);
    let [Answer::Ask { cid, tag, .. }] = world.say(line, &pdu)[..] else { panic!("it asks") };
    world.lines.iter_mut().for_each(|line| line.session.on_stop());
    assert!(world.lines[admin].session.is_idle() && !world.lines[line].session.is_idle());
    let refused = world.ask(line, Sqe::flush(1)).status;
    assert_eq!((refused.status, refused.dnr), (Status::NAMESPACE_NOT_READY, false));
    let pdu = world.lines[line].host.data(cid, tag, 0, &[9; 512], true);
    assert!(completion(&world.say(line, &pdu)).status.status.is_success());
    assert!(world.lines[line].session.is_idle());
    world.end();
}
