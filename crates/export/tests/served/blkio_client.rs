//! A client of vhost-user-blk that is somebody else's: libblkio's driver (crate `blkio`), in this process.

use blkio::{Blkio, Blkioq, Completion, MemoryRegion, ReqFlags};
use ocssd_export::reactor::Endpoint;
use std::fs::File;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::time::Duration;
use vm_memory::{Bytes, FileOffset, MmapRegion, VolatileMemory};

/// Why things in these tests do not fail.
const SOUND: &str = "the server serves a sound frontend";

/// Memory that is shared with the server.
const MEMORY_BYTES: usize = 8 << 20;

/// A disk as a program sees it.
pub struct Disk {
    // Queues go before what they are queues of.
    pub queues: Vec<Blkioq>,
    pub blkio: Blkio,
    memory: MmapRegion<()>,
}

/// A device that is connected and not started.
pub fn connect(endpoint: &Endpoint, read_only: bool) -> blkio::Result<Blkio> {
    let Endpoint::Unix(path) = endpoint else { panic!("vhost-user is spoken over unix sockets") };
    let mut blkio = Blkio::new("virtio-blk-vhost-user")?;
    blkio.set_str("path", path.to_str().expect("the path is text"))?;
    blkio.set_bool("read-only", read_only)?;
    blkio.connect()?;
    Ok(blkio)
}

impl Disk {
    pub fn open(endpoint: &Endpoint, queues: i32) -> Self {
        Self::start(connect(endpoint, false).expect(SOUND), queues)
    }

    pub fn start(mut blkio: Blkio, queues: i32) -> Self {
        blkio.set_i32("num-queues", queues).expect(SOUND);
        let started = blkio.start().expect(SOUND);
        let file = rustix::fs::memfd_create("buffers", rustix::fs::MemfdFlags::empty()).expect(SOUND);
        let file = File::from(file);
        file.set_len(u64::try_from(MEMORY_BYTES).expect(SOUND)).expect(SOUND);
        let fd = file.as_raw_fd();
        let memory = MmapRegion::from_file(FileOffset::new(file, 0), MEMORY_BYTES).expect(SOUND);
        let addr = memory.as_ptr().addr();
        let region = MemoryRegion { addr, iova: 0, len: MEMORY_BYTES, fd, fd_offset: 0, flags: 0 };
        blkio.map_mem_region(&region).expect(SOUND);
        Self { queues: started.queues, blkio, memory }
    }

    /// Puts bytes into shared memory.
    pub fn put(&self, at: usize, bytes: &[u8]) {
        self.memory.get_slice(at, bytes.len()).expect(SOUND).write_slice(bytes, 0).expect(SOUND);
    }

    /// What lies in shared memory.
    pub fn get(&self, at: usize, bytes: usize) -> Vec<u8> {
        let mut found = vec![0; bytes];
        self.memory.get_slice(at, bytes).expect(SOUND).read_slice(&mut found, 0).expect(SOUND);
        found
    }

    pub fn ask_read(&mut self, queue: usize, start: u64, at: usize, bytes: usize, tag: usize) {
        assert!(at + bytes <= MEMORY_BYTES);
        let place = self.memory.as_ptr().wrapping_add(at);
        self.queues[queue].read(start, place, bytes, tag, ReqFlags::empty());
    }

    pub fn ask_write(&mut self, queue: usize, start: u64, at: usize, bytes: usize, tag: usize) {
        assert!(at + bytes <= MEMORY_BYTES);
        let place = self.memory.as_ptr().wrapping_add(at);
        self.queues[queue].write(start, place, bytes, tag, ReqFlags::empty());
    }

    /// Waits for `count` requests of a queue; their tags and results.
    pub fn wait(&mut self, queue: usize, count: usize) -> Vec<(usize, i32)> {
        self.try_wait(queue, count, Duration::from_secs(60)).expect(SOUND)
    }

    /// Waits for `count` requests of a queue, but not for ever.
    #[allow(unsafe_code, reason = "the library fills completions without saying so in their type")]
    pub fn try_wait(
        &mut self,
        queue: usize,
        count: usize,
        mut patience: Duration,
    ) -> blkio::Result<Vec<(usize, i32)>> {
        let mut places: Vec<MaybeUninit<Completion>> =
            (0..count.max(1)).map(|_| MaybeUninit::uninit()).collect();
        let found = self.queues[queue].do_io(&mut places[..], count, Some(&mut patience), None)?;
        assert!(found <= places.len());
        let ended = places.into_iter().take(found).map(|place| {
            // SAFETY: `do_io` has returned `found`, and says that it filled that many from the front.
            let completion = unsafe { place.assume_init() };
            (completion.user_data, completion.ret)
        });
        Ok(ended.collect())
    }

    /// One write, which ends before this does.
    pub fn write(&mut self, start: u64, bytes: &[u8]) -> i32 {
        self.put(0, bytes);
        self.ask_write(0, start, 0, bytes.len(), 7);
        self.wait(0, 1)[0].1
    }

    /// One read.
    pub fn read(&mut self, start: u64, bytes: usize) -> Vec<u8> {
        self.ask_read(0, start, 0, bytes, 8);
        assert_eq!(self.wait(0, 1), [(8, 0)]);
        self.get(0, bytes)
    }

    pub fn flush(&mut self) -> i32 {
        self.queues[0].flush(9, ReqFlags::empty());
        self.wait(0, 1)[0].1
    }
}
