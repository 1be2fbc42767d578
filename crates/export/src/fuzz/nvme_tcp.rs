//! Any bytes as what an NVMe/TCP host sends: from the first byte on, or as the queue of a host that began soundly.

use super::{BYTES_MAX, drain, finish, work};
use crate::dispatcher::Dispatcher;
use crate::memory_disk::MemoryDisks;
use crate::nvme_subsystem::{Subsystem, SubsystemConfig};
use crate::nvme_tcp::Session;
use crate::nvme_tcp::host::{Host, transported};
use crate::protocol::{Phase, Protocol, ProtocolError};
use ocssd_lightnvm::interface::AnyTarget;
use ocssd_nvme::Sqe;
use ocssd_nvme::fabrics::{Connect, ConnectData, DISCOVERY_NQN, DYNAMIC_CNTLID, PropertySet, offset};
use ocssd_nvme::identify::Uuid;

const NQN: &str = "nqn.2014-08.org.nvmexpress:fuzz";

/// Plays a host that sends `data`, cut, timed and begun as its first bytes say, to disks and to `others` behind them: targets of
/// other interfaces that need no drive. Returns how many bytes the target answered.
///
/// # Panics
/// If the target breaks a promise.
pub fn nvme_tcp_host(data: &[u8], others: Vec<(&str, AnyTarget)>) -> usize {
    let Some((&[shape, pace], data)) = data.split_first_chunk::<2>() else { return 0 };
    let pieces = if shape & 1 == 0 { [1, 0, 2] } else { [8, 4, 4] };
    let (mut dispatcher, mut disks) =
        MemoryDisks::beside(&[("", 1 << 12), ("a", 8), ("b-ro", 64)], others, pieces);
    if shape & 2 != 0 {
        disks.bad = 3..5;
    }
    let config =
        SubsystemConfig { nqn: NQN.to_owned(), uuid: Uuid::of_seed(1), ..SubsystemConfig::default() };
    dispatcher.subsystem = Some(Subsystem::new(config).expect("a sound name"));
    let host = Host::new(shape & 4 != 0, shape & 8 != 0);
    let mut admin = Session::new(0, 0, None);
    let mut queue = Session::new(1, 0, None);
    let subnqn = if shape & 0x40 == 0 { NQN } else { DISCOVERY_NQN };
    let begun = begin(shape >> 4 & 3, &host, subnqn);
    let answered = if shape >> 4 & 3 == 3 {
        // The association is there, and this is one of its I/O queues.
        play(&mut admin, &begin(2, &host, NQN), 255, &mut dispatcher, &mut disks);
        let hello = [host.hello(), host.connect(0, connect(1), &connect_data(NQN, 1))].concat();
        play(&mut queue, &[&hello, data].concat(), pace, &mut dispatcher, &mut disks)
    } else {
        play(&mut admin, &[&begun, data].concat(), pace, &mut dispatcher, &mut disks)
    };
    queue.release(&mut dispatcher);
    finish(&mut admin, &mut dispatcher, &mut disks);
    assert_eq!(
        dispatcher.subsystem.map(|subsystem| subsystem.association_count()),
        Some(0),
        "an association outlived its host"
    );
    answered
}

fn connect(qid: u16) -> Connect {
    Connect { recfmt: 0, qid, sqsize: 31, no_flow_control: qid > 0, kato_ms: 0 }
}

fn connect_data(subnqn: &str, cntlid: u16) -> ConnectData {
    ConnectData { hostid: [1; 16], cntlid, subnqn: subnqn.to_owned(), hostnqn: "nqn.host".to_owned() }
}

/// What a sound host begins with: nothing, a greeting, or all until its controller is ready.
fn begin(steps: u8, host: &Host, subnqn: &str) -> Vec<u8> {
    let enable = Sqe::property_set(PropertySet { is_long: false, offset: offset::CC, value: 0x46_0061 });
    match steps {
        0 => Vec::new(),
        1 => host.hello(),
        _ => [
            host.hello(),
            host.connect(0, connect(0), &connect_data(subnqn, DYNAMIC_CNTLID)),
            host.command(&transported(enable, 0), &[]),
        ]
        .concat(),
    }
}

/// Sends it all, or until the target has enough of it.
fn play(
    session: &mut Session,
    data: &[u8],
    pace: u8,
    dispatcher: &mut Dispatcher,
    disks: &mut MemoryDisks,
) -> usize {
    let data = &data[..data.len().min(BYTES_MAX)];
    let (mut at, mut answered, mut turn) = (0, 0, usize::from(pace));
    while session.phase() != Phase::Leaving {
        turn = turn.wrapping_mul(5).wrapping_add(usize::from(pace) | 1);
        let Ok(given) = give(session, &data[at..], turn, dispatcher) else { break };
        assert!(given <= data.len() - at, "more was taken than came");
        at += given;
        let worked = work(session, dispatcher, disks, turn);
        while let Some((connection, _)) = dispatcher.poll_call() {
            assert!(connection < 2, "a connection that is not there was called");
        }
        let ended = session.judge(dispatcher).is_err();
        let sent = drain(session, dispatcher);
        answered += sent;
        if ended
            || given + worked + sent == 0 && session.payload_space().is_none()
            || at == data.len() && worked + sent == 0
        {
            break;
        }
    }
    answered + drain(session, dispatcher)
}

fn give(
    session: &mut Session,
    data: &[u8],
    turn: usize,
    dispatcher: &mut Dispatcher,
) -> Result<usize, ProtocolError> {
    match session.payload_space() {
        Some(space) if turn & 2 == 0 => {
            let count = space.count.min(data.len());
            dispatcher.buffers.bytes_mut(space.buffer, space.first, count).copy_from_slice(&data[..count]);
            if count > 0 {
                session.on_payload(count, dispatcher);
            }
            Ok(count)
        }
        _ => {
            let count = (1 + turn % 300).min(data.len()).min(session.text_wanted().max(1));
            session.on_bytes(&data[..count], dispatcher)
        }
    }
}
