//! A thread of a host that flushes pages to a controller over NVMe/TCP, one flush after the other.
//!
//! Deliberately not here: reads, and hosts that ask for several things at a time.

use super::controller::NQN;
use anyhow::{Context, bail, ensure};
use ocssd_base::usize_of;
use ocssd_export::nvme_tcp::host::{Answer, Host, in_capsule, transported};
use ocssd_export::nvme_tcp::wire::DATA_BYTES;
use ocssd_lightnvm::interface::Entry;
use ocssd_lightnvm::interface::log_structured::{PageEntry, PageId};
use ocssd_nvme::fabrics::{Connect, ConnectData, DYNAMIC_CNTLID, PropertySet, offset};
use ocssd_nvme::pages::{FlushPages, PageOpcode, StagePages};
use ocssd_nvme::{Cqe, Sqe};
use std::io::{Read, Write};
use std::net::TcpStream;

/// Bytes of a page.
pub const PAGE_BYTES: u32 = 4096;
/// Bytes of a command's data at most, as the controller says (MDTS).
const TRANSFER_BYTES: usize = 256 << 10;
/// Pages of a writer, which it writes again and again: a buffer of 8 MiB.
pub const PAGES: u32 = 2048;
/// Pages of a flush in one command: 240 KiB, four messages of OX, with their table in one transfer.
pub const PAGES_OF_COMMAND: u32 = 60;
/// Bytes of a page of a staged flush (chosen: so that its table, 8 KiB, travels with the command).
const STAGED_PAGE_BYTES: u32 = 16 << 10;
/// A row of a page table, and its page.
const ROW_BYTES: usize = PageEntry::BYTES + 4096;
/// Commands of a writer on their way: OX's library sends all of a buffer at once; as many keep the controller busy (chosen).
const WINDOW: u16 = 8;

/// A connection.
pub struct Line {
    stream: TcpStream,
    host: Host,
    data_max: usize,
}

/// A length as the wire has it.
fn narrow(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("a flush is short")
}

impl Line {
    /// A queue of the controller `cntlid`; gives the controller's number.
    fn connect(address: &str, qid: u16, cntlid: u16) -> anyhow::Result<(Self, u16)> {
        let stream = TcpStream::connect(address).with_context(|| format!("nobody listens at {address}"))?;
        stream.set_nodelay(true).context("small messages go at once")?;
        let mut line = Self { stream, host: Host::new(false, false), data_max: 0 };
        line.send(&line.host.hello())?;
        let Answer::Hello { data_max } = line.answer()? else { bail!("the controller does not greet") };
        line.data_max = usize::try_from(data_max).context("a length")?;
        let connect = Connect { recfmt: 0, qid, sqsize: 31, no_flow_control: false, kato_ms: 0 };
        let data =
            ConnectData { hostid: [1; 16], cntlid, subnqn: NQN.to_owned(), hostnqn: "nqn.host".to_owned() };
        line.send(&line.host.connect(0, connect, &data))?;
        let cqe = line.completion()?;
        Ok((line, u16::try_from(cqe.dw0).context("a controller's number")?))
    }

    /// The queue for administration with its controller ready, and one for each writer.
    ///
    /// # Errors
    /// What the controller does not do.
    pub fn open(address: &str, writers: u16) -> anyhow::Result<(Self, Vec<Self>)> {
        let (mut admin, cntlid) = Self::connect(address, 0, DYNAMIC_CNTLID)?;
        let enable = PropertySet { is_long: false, offset: offset::CC, value: 0x46_0061 };
        admin.ask(Sqe::property_set(enable))?;
        let queues = (1..=writers).map(|qid| Ok(Self::connect(address, qid, cntlid)?.0));
        let queues: anyhow::Result<Vec<Self>> = queues.collect();
        Ok((admin, queues?))
    }

    fn send(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        self.stream.write_all(bytes).context("the controller takes what is sent")
    }

    fn answer(&mut self) -> anyhow::Result<Answer> {
        loop {
            if let Some(answer) = self.host.poll() {
                return Ok(answer);
            }
            let mut bytes = [0; 4096];
            let count = self.stream.read(&mut bytes).context("the controller answers")?;
            ensure!(count > 0, "the controller closed the connection");
            self.host.receive(&bytes[..count]);
        }
    }

    fn completion(&mut self) -> anyhow::Result<Cqe> {
        match self.answer()? {
            Answer::Completion(cqe) if cqe.status.status.is_success() => Ok(cqe),
            other => bail!("the controller answers {other:?}"),
        }
    }

    fn ask(&mut self, sqe: Sqe) -> anyhow::Result<Cqe> {
        self.send(&self.host.command(&transported(sqe, 0), &[]))?;
        self.completion()
    }

    /// With data in its capsule.
    fn write(&mut self, sqe: Sqe, data: &[u8]) -> anyhow::Result<()> {
        self.send(&self.host.command(&in_capsule(sqe, data.len()), data))?;
        self.completion().map(drop)
    }

    /// Messages that carry so much data, made once: a writer sends the same bytes again and again.
    fn messages(&self, data: &[u8]) -> Vec<Vec<u8>> {
        let mut at = 0;
        let message = |part: &[u8]| {
            at += part.len();
            self.host.data(0, 0, at - part.len(), part, at == data.len())
        };
        data.chunks(self.data_max).map(message).collect()
    }

    /// Carries out commands, a window of them at a time; `begin` says what each is and what its data are, which lie behind the
    /// header of the first message.
    fn carry_out(
        &mut self,
        count: u16,
        messages: &mut [Vec<u8>],
        command: &dyn Fn(u16) -> Sqe,
        data: &mut dyn FnMut(u16, &mut [u8]),
    ) -> anyhow::Result<()> {
        let bytes = messages.iter().map(|message| message.len() - DATA_BYTES).sum();
        let (mut sent, mut over) = (0, 0);
        while over < count {
            while sent < count && sent - over < WINDOW {
                let sqe = transported(command(sent), bytes).with_cid(sent);
                self.send(&self.host.command(&sqe, &[]))?;
                sent += 1;
            }
            match self.answer()? {
                Answer::Ask { cid, tag, .. } => {
                    data(cid, &mut messages[0][DATA_BYTES..]);
                    for message in &mut *messages {
                        message[8..10].copy_from_slice(&cid.to_le_bytes());
                        message[10..12].copy_from_slice(&tag.to_le_bytes());
                        self.stream.write_all(message).context("the controller takes what is sent")?;
                    }
                }
                Answer::Completion(cqe) if cqe.status.status.is_success() => over += 1,
                other => bail!("the controller answers {other:?}"),
            }
        }
        Ok(())
    }
}

/// How a buffer travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Travel {
    /// In flushes of one command each, of so many pages.
    Commands,
    /// Into a stage of the controller, in commands of 256 KiB; then one flush.
    Staged,
}

/// A writer.
pub struct Writer {
    line: Line,
    travel: Travel,
    number: u32,
    /// Of the last flush.
    wsn: u64,
    /// The messages of a command's data.
    messages: Vec<Vec<u8>>,
}

impl Writer {
    /// The writer of this number, with a session of its own.
    ///
    /// # Errors
    /// What the controller does not do.
    pub fn new(mut line: Line, travel: Travel, number: u32) -> anyhow::Result<Self> {
        line.ask(Sqe::page_session(PageOpcode::OPEN_SESSION, 1, number.into()))?;
        let bytes = match travel {
            Travel::Commands => ROW_BYTES * usize_of(PAGES_OF_COMMAND),
            Travel::Staged => TRANSFER_BYTES,
        };
        let messages = line.messages(&vec![1; bytes]);
        Ok(Self { line, travel, number, wsn: 0, messages })
    }

    /// Flushes a buffer of 8 MiB, or what whole commands carry of it; gives the bytes of pages, which are durable.
    ///
    /// # Errors
    /// What the controller does not do.
    pub fn flush(&mut self) -> anyhow::Result<u64> {
        match self.travel {
            Travel::Commands => self.flush_by_command(),
            Travel::Staged => self.flush_staged(),
        }
    }

    fn flush_by_command(&mut self) -> anyhow::Result<u64> {
        let Self { line, number, wsn, messages, .. } = self;
        let flush = |nth: u16| FlushPages {
            session: u64::from(*number),
            wsn: *wsn + 1 + u64::from(nth),
            bytes: PAGES_OF_COMMAND * PAGE_BYTES,
            rows: PAGES_OF_COMMAND,
            force_unit_access: true,
            stage: None,
        };
        let first = *number * PAGES;
        let count = u16::try_from(PAGES / PAGES_OF_COMMAND).context("few")?;
        line.carry_out(count, messages, &|nth| Sqe::flush_pages(1, flush(nth)), &mut |nth, data| {
            put_table(data, first + u32::from(nth) * PAGES_OF_COMMAND, PAGES_OF_COMMAND);
        })?;
        *wsn += u64::from(count);
        Ok(u64::from(count) * u64::from(PAGES_OF_COMMAND * PAGE_BYTES))
    }

    fn flush_staged(&mut self) -> anyhow::Result<u64> {
        let Self { line, number, wsn, messages, .. } = self;
        let (stage, bytes) = (*number, PAGES * PAGE_BYTES);
        line.ask(Sqe::page_stage(PageOpcode::STAGE_OPEN, 1, StagePages { stage, bytes, offset: 0 }))?;
        let part = narrow(TRANSFER_BYTES);
        let append = |nth: u16| StagePages { stage, bytes: part, offset: part * u32::from(nth) };
        let command = |nth| Sqe::page_stage(PageOpcode::STAGE_APPEND, 1, append(nth));
        line.carry_out(u16::try_from(bytes / part).context("few")?, messages, &command, &mut |_, _| {})?;
        // A page of 16 KiB in the table: all of it in one capsule.
        let rows = bytes / STAGED_PAGE_BYTES;
        let mut table = vec![0; usize_of(rows) * PageEntry::BYTES];
        for (row, place) in (0..).zip(table.chunks_exact_mut(PageEntry::BYTES)) {
            let page = PageId(u64::from(stage * PAGES + row));
            PageEntry { page, offset: row * STAGED_PAGE_BYTES, bytes: STAGED_PAGE_BYTES }.encode(place);
        }
        *wsn += 1;
        let session = u64::from(stage);
        let flush =
            FlushPages { session, wsn: *wsn, bytes, rows, force_unit_access: true, stage: Some(stage) };
        line.write(Sqe::flush_pages(1, flush), &table)?;
        Ok(bytes.into())
    }
}

/// Writes the page table of so many pages that follow each other.
fn put_table(data: &mut [u8], first: u32, pages: u32) {
    let places = data.chunks_exact_mut(PageEntry::BYTES);
    for (row, place) in (0..pages).zip(places) {
        let page = PageId(u64::from(first + row));
        PageEntry { page, offset: row * PAGE_BYTES, bytes: PAGE_BYTES }.encode(place);
    }
}
