//! A controller over NVMe/TCP.
//!
//! The host's side is a referee: a PDU that no target may send ends the program with what was wrong with it.

use super::transport::Transport;
use anyhow::{Context, bail, ensure};
use ocssd_export::nvme_tcp::host::{Answer, Host, transported};
use ocssd_nvme::fabrics::{Connect, ConnectData, DYNAMIC_CNTLID, PropertySet, offset};
use ocssd_nvme::{Cqe, Sqe};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// How long a command may take (chosen: longer than a reset of all zones of a large drive).
const PATIENCE: Duration = Duration::from_secs(60);
/// CC: enabled, all command sets of the controller, entries of 64 and 16 bytes.
const ENABLED: u64 = 0x46_0061;

/// A queue of a host.
struct Queue {
    stream: TcpStream,
    host: Host,
}

impl Queue {
    fn connect(address: &str, nqn: &str, (qid, cntlid): (u16, u16)) -> anyhow::Result<(Self, u16)> {
        let stream = TcpStream::connect(address).with_context(|| {
            format!("{address}: expected a server of NVMe/TCP; start one, or give its HOST:PORT")
        })?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut queue = Self { stream, host: Host::new(false, false) };
        queue.send(&queue.host.hello())?;
        ensure!(matches!(queue.answer()?, Answer::Hello { .. }), "{address} does not greet as NVMe/TCP does");
        let connect = Connect { recfmt: 0, qid, sqsize: 31, no_flow_control: false, kato_ms: 0 };
        let (subnqn, hostnqn) = (nqn.to_owned(), "nqn.2014-08.org.nvmexpress:ocssd-conform".to_owned());
        let data = ConnectData { hostid: [1; 16], cntlid, subnqn, hostnqn };
        queue.send(&queue.host.connect(0, connect, &data))?;
        let cqe = queue.completion()?;
        let status = cqe.status.status;
        ensure!(
            status.is_success(),
            "{address} refuses to connect to {nqn}: {status}; give its name (--nqn)"
        );
        Ok((queue, u16::try_from(cqe.dw0).context("a controller's number has 16 bits")?))
    }

    fn send(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        self.stream.write_all(bytes).context("the server closed the connection")
    }

    fn answer(&mut self) -> anyhow::Result<Answer> {
        loop {
            if let Some(answer) = self.host.poll() {
                return Ok(answer);
            }
            let mut bytes = [0; 65_536];
            let count = self.stream.read(&mut bytes).context("no answer came in a minute")?;
            ensure!(count > 0, "the server closed the connection");
            self.host.receive(&bytes[..count]);
        }
    }

    fn completion(&mut self) -> anyhow::Result<Cqe> {
        match self.answer()? {
            Answer::Completion(cqe) => Ok(cqe),
            other => bail!("a completion was expected, but {other:?} came"),
        }
    }

    /// Sends a command with data, which the server asks for.
    fn write(&mut self, sqe: Sqe, data: &[u8]) -> anyhow::Result<Cqe> {
        self.send(&self.host.command(&transported(sqe, data.len()), &[]))?;
        loop {
            match self.answer()? {
                Answer::Completion(cqe) => return Ok(cqe),
                Answer::Ask { cid, tag, offset, bytes } => {
                    let part = data.get(offset..offset + bytes);
                    let part = part.context("the server asks for more than the command has")?;
                    self.send(&self.host.data(cid, tag, offset, part, true))?;
                }
                other => bail!("data was to be asked for, but {other:?} came"),
            }
        }
    }

    /// Sends a command that brings data.
    fn read(&mut self, sqe: Sqe, bytes: usize) -> anyhow::Result<(Vec<u8>, Cqe)> {
        self.send(&self.host.command(&transported(sqe, bytes), &[]))?;
        let mut whole = Vec::new();
        loop {
            match self.answer()? {
                Answer::Completion(cqe) => return Ok((whole, cqe)),
                Answer::Data { bytes, .. } => whole.extend(bytes),
                other => bail!("data was expected, but {other:?} came"),
            }
        }
    }
}

/// A controller with its admin queue and one of I/O.
pub struct TcpController {
    admin: Queue,
    queue: Queue,
}

impl TcpController {
    /// Connects to a controller, and enables it.
    ///
    /// # Errors
    /// Nobody serves there, or not as NVMe/TCP says.
    pub fn connect(address: &str, nqn: &str) -> anyhow::Result<Self> {
        let (mut admin, cntlid) = Queue::connect(address, nqn, (0, DYNAMIC_CNTLID))?;
        let enable = PropertySet { is_long: false, offset: offset::CC, value: ENABLED };
        let status = admin.write(Sqe::property_set(enable), &[])?.status.status;
        ensure!(status.is_success(), "the controller cannot be enabled: {status}");
        let (queue, _) = Queue::connect(address, nqn, (1, cntlid))?;
        Ok(Self { admin, queue })
    }
}

impl Transport for TcpController {
    fn admin(&mut self, sqe: Sqe, bytes: usize) -> anyhow::Result<(Vec<u8>, Cqe)> {
        self.admin.read(sqe, bytes)
    }

    fn read(&mut self, sqe: Sqe, bytes: usize) -> anyhow::Result<(Vec<u8>, Cqe)> {
        self.queue.read(sqe, bytes)
    }

    fn write(&mut self, sqe: Sqe, data: &[u8]) -> anyhow::Result<Cqe> {
        self.queue.write(sqe, data)
    }
}
