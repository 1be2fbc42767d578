//! The listener thread blocks on the socket, and tells the server what the guest says.

use super::message::{Answer, Change, MESSAGES_MAX, Message, ServerEnd};
use crate::pci_nvme::{BAR0, BAR0_BYTES, CONFIG, CONFIG_BYTES, VECTORS};
use crate::reactor::{Endpoint, Listener};
use rustix::event::{EventfdFlags, eventfd};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;
use vfio_bindings::bindings::vfio::vfio_region_info;
use vfio_user::{DmaMapFlags, DmaUnmapFlags, IrqInfo, ServerBackend, ServerRegion};

/// Regions and interrupts of a PCI function (`linux/vfio.h`): BAR0 to BAR5, ROM, configuration space, VGA; INTx, MSI,
/// MSI-X, errors, requests.
const REGIONS: u32 = 9;
const INTERRUPTS: u32 = 5;
const MSIX: u32 = 2;
/// `VFIO_REGION_INFO_FLAG_READ` and `_WRITE`.
const READABLE_WRITABLE: u32 = 0b11;
/// `VFIO_IRQ_INFO_EVENTFD` and `_NORESIZE`.
const BY_EVENTFD: u32 = 0b1001;
/// `VFIO_IRQ_SET_DATA_*` and `_ACTION_*`.
const DATA_NONE: u32 = 1;
const DATA_EVENTFD: u32 = 1 << 2;
const ACTION_MASK: u32 = 1 << 3;
const ACTION_UNMASK: u32 = 1 << 4;
const ACTION_TRIGGER: u32 = 1 << 5;
/// Doorbells begin here in BAR0, and end with their page.
const DOORBELLS: std::ops::Range<u64> = 0x1000..0x2000;
/// After a guest that could not be accepted, for want of room in the system (chosen: it does not go away at once).
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);
/// Most bytes a guest may read or write of a region at once: more than any region has.
const ACCESS_MAX: usize = 1 << 16;

/// The socket, listened on, and the thread behind it.
pub struct ListenerThread {
    listener: Listener,
    pub(super) server_end: ServerEnd,
    /// What the thread needs, until it begins.
    keeper: Option<(Keeper, vfio_user::Server)>,
    pub(super) bell: Arc<OwnedFd>,
}

impl ListenerThread {
    /// Listens (mode 0600, as [`Listener::bind`] does). Nobody answers yet: `Self::begin`.
    ///
    /// # Errors
    /// As the system says, or if the endpoint is no unix socket.
    pub fn open(endpoint: &Endpoint) -> io::Result<Self> {
        let listener = Listener::bind(endpoint)?;
        let Listener::Unix { socket, .. } = &listener else {
            let sentence = format!("{endpoint} is no unix socket, and memory is shared through nothing else");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, sentence));
        };
        let socket = socket.try_clone()?;
        socket.set_nonblocking(false)?;
        let bell = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let (messages, to_server) = sync_channel(MESSAGES_MAX);
        let (answer, answers) = sync_channel(1);
        let keeper = Keeper { messages, answers, bell: Arc::clone(&bell) };
        let server = vfio_user::Server::from_owned_fd(OwnedFd::from(socket), true, interrupts(), regions());
        let server_end = ServerEnd { messages: to_server, answers: answer };
        Ok(Self { listener, server_end, keeper: Some((keeper, server)), bell })
    }

    /// Answers from a thread of its own, which ends when the server is gone and its guest too, or with the process. It begins
    /// with the serving, so that it is bound by whatever the program has given up until then.
    pub(super) fn begin(&mut self) -> io::Result<()> {
        let Some((mut keeper, server)) = self.keeper.take() else { return Ok(()) };
        thread::Builder::new().name("vfio-user".to_owned()).spawn(move || keeper.keep(&server))?;
        Ok(())
    }

    /// Where it is.
    #[must_use]
    pub const fn endpoint(&self) -> &Endpoint {
        self.listener.endpoint()
    }
}

impl Drop for ListenerThread {
    /// Nobody comes in any more; the thread that waits for somebody ends.
    fn drop(&mut self) {
        if let Listener::Unix { socket, .. } = &self.listener {
            let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Both);
        }
    }
}

fn regions() -> Vec<ServerRegion> {
    let region = |index| {
        let size = match index {
            BAR0 => BAR0_BYTES,
            CONFIG => u64::try_from(CONFIG_BYTES).expect("4096"),
            _ => 0,
        };
        let flags = if size > 0 { READABLE_WRITABLE } else { 0 };
        let argsz = u32::try_from(size_of::<vfio_region_info>()).expect("small");
        let region_info = vfio_region_info { argsz, flags, index, size, ..Default::default() };
        ServerRegion { region_info, sparse_areas: Vec::new(), mmap_fd: None }
    };
    (0..REGIONS).map(region).collect()
}

fn interrupts() -> Vec<IrqInfo> {
    let one = |index| {
        let (flags, count) = if index == MSIX { (BY_EVENTFD, u32::from(VECTORS)) } else { (0, 0) };
        IrqInfo { index, flags, count }
    };
    (0..INTERRUPTS).map(one).collect()
}

/// The thread's own.
struct Keeper {
    messages: SyncSender<Message>,
    answers: Receiver<Answer>,
    bell: Arc<OwnedFd>,
}

fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the server has stopped")
}

fn invalid(sentence: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, sentence)
}

impl Keeper {
    /// Serves guests, one after the other, until the server is gone.
    fn keep(&mut self, server: &vfio_user::Server) {
        loop {
            // What the crate takes for impossible, a guest can still send: then it is dropped, and the next may come.
            let run = catch_unwind(AssertUnwindSafe(|| server.run(self)));
            let sentence = match run {
                Ok(Ok(())) => None,
                // The socket was shut down: the server has stopped.
                Ok(Err(vfio_user::Error::SocketAccept(error)))
                    if error.kind() == io::ErrorKind::InvalidInput =>
                {
                    return;
                }
                Ok(Err(vfio_user::Error::SocketAccept(error))) => {
                    if self
                        .call(Message::Say { sentence: format!("no guest can be accepted: {error}") })
                        .is_err()
                    {
                        return;
                    }
                    thread::sleep(ACCEPT_PAUSE);
                    continue;
                }
                Ok(Err(error)) => Some(format!("a guest was dropped: {error}")),
                Err(_) => Some("a guest was dropped: its message makes no sense".to_owned()),
            };
            if self.call(Message::Gone { sentence }).is_err() {
                return;
            }
        }
    }

    fn send(&self, message: Message) -> io::Result<()> {
        self.messages.send(message).map_err(|_| gone())?;
        // A bell that has been rung as often as it counts is heard all the same.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
        Ok(())
    }

    fn call(&self, message: Message) -> Answer {
        self.send(message)?;
        self.answers.recv().map_err(|_| gone())?
    }
}

impl ServerBackend for Keeper {
    fn region_read(&mut self, region: u32, offset: u64, data: &mut [u8]) -> io::Result<()> {
        if data.len() > ACCESS_MAX {
            return Err(invalid("more was read at once than any region has"));
        }
        let bytes = self.call(Message::Read { region, offset, count: data.len() })?;
        data.copy_from_slice(&bytes);
        Ok(())
    }

    fn region_write(&mut self, region: u32, offset: u64, data: &[u8]) -> io::Result<()> {
        if data.len() > ACCESS_MAX {
            return Err(invalid("more was written at once than any region has"));
        }
        let awaited = region != BAR0 || !DOORBELLS.contains(&offset);
        let write = Message::Write { region, offset, bytes: data.to_vec(), awaited };
        if awaited { self.call(write).map(drop) } else { self.send(write) }
    }

    fn dma_map(
        &mut self,
        flags: DmaMapFlags,
        offset: u64,
        address: u64,
        size: u64,
        fd: Option<File>,
    ) -> io::Result<()> {
        let file = fd.map(|file| (file, offset));
        let writable = flags.contains(DmaMapFlags::WRITE);
        self.call(Message::Map { at: address, bytes: size, file, writable }).map(drop)
    }

    fn dma_unmap(&mut self, flags: DmaUnmapFlags, address: u64, size: u64) -> io::Result<()> {
        let range = (!flags.contains(DmaUnmapFlags::UNMAP_ALL)).then_some((address, size));
        self.call(Message::Unmap { range }).map(drop)
    }

    fn reset(&mut self) -> io::Result<()> {
        self.call(Message::Reset).map(drop)
    }

    fn set_irqs(&mut self, index: u32, flags: u32, start: u32, count: u32, fds: Vec<File>) -> io::Result<()> {
        if index != MSIX {
            // There is nothing to switch off in what the function does not have.
            return if count == 0 && fds.is_empty() { Ok(()) } else { Err(invalid("there is only MSI-X")) };
        }
        // No vectors at all: MSI-X is switched off.
        let (start, count) = if count == 0 { (0, VECTORS.into()) } else { (start, count) };
        let change = match (flags & !(DATA_NONE | DATA_EVENTFD), flags & DATA_EVENTFD != 0) {
            (ACTION_TRIGGER, true) => Change::Files(fds),
            (ACTION_TRIGGER, false) if count == u32::from(VECTORS) && start == 0 => Change::Files(Vec::new()),
            (ACTION_TRIGGER, false) => Change::Trigger,
            (ACTION_MASK, false) => Change::Mask,
            (ACTION_UNMASK, false) => Change::Unmask,
            _ => return Err(invalid("interrupts cannot be changed so")),
        };
        self.call(Message::Interrupts { start, count, change }).map(drop)
    }
}
