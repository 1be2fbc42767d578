//! A drive with a block target in this process, asked for one thing at a time.
//!
//! Under virtual time waiting is a jump. The power of the drive may be made to go at a time, in whatever is on its way then;
//! afterwards nothing is answered until [`Blocks::restart`], which mounts what is left. Deliberately not here: files.

use ocssd_base::{Nanos, Prng, usize_of};
use ocssd_drive::{Image, OpenDrive};
use ocssd_engine::{Caller, Clock, DriveClock, Host, Requests, RunEnd, VirtualClock, WallClock};
use ocssd_flash::{Flash, FlashCounters};
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest, BlockTarget};
use ocssd_lightnvm::counter::Counter;
use ocssd_lightnvm::transaction::{BlockTransaction, TransactionPart, TransactionRefusal};
use ocssd_lightnvm::{BufId, Buffers, Status, Tag, TargetId};
use ocssd_table_store::{ErrorKind, StoreError, StoreOptions, lease_target, open_drive};
use ocssd_targets::named_target::NamedTarget;
use ocssd_targets::registry;

/// Bytes of a block: what the volume is made of, and the sector of most drives.
pub const BLOCK_BYTES: usize = 4_096;
/// Blocks of one request (chosen: 256 KiB; longer writes are several, which are on their way together).
const REQUEST_BLOCKS_MAX: usize = 64;
/// The only target of the host.
const TARGET: TargetId = TargetId(0);

/// A block of content.
pub type Block = Box<[u8; BLOCK_BYTES]>;

/// A number of bytes or blocks that are in memory, or could be.
#[must_use]
pub fn in_memory(count: u64) -> usize {
    usize::try_from(count).expect("an address space holds a file of the volume")
}

/// An empty block.
#[must_use]
pub fn zeroes() -> Block {
    Box::new([0; BLOCK_BYTES])
}

/// When the power goes, and what draws which pages of torn units survive.
#[derive(Clone, Debug)]
struct Cut {
    at: Nanos,
    prng: Prng,
}

/// Why a commit was not carried out; nothing of it is there.
#[derive(Debug)]
pub enum NotCommitted {
    /// It is more than the target does at once, or the target has no place for one more now.
    TooLong,
    /// The drive failed.
    Failed(StoreError),
}

/// The drive.
pub struct Blocks {
    /// `None` only while it is restarted.
    host: Option<Host<Flash, DriveClock, dyn BlockTarget>>,
    named: NamedTarget,
    /// Keeps the image locked.
    image: Option<Image>,
    cut: Option<Cut>,
    is_off: bool,
    tag: u32,
    notes: Vec<String>,
    /// Blocks given to the target, and flushes asked for.
    pub written: u64,
    /// Flushes asked for.
    pub flushes: u64,
}

fn failed(sentence: impl Into<String>) -> StoreError {
    StoreError::new(ErrorKind::Io, sentence)
}

fn invalid(sentence: impl Into<String>) -> StoreError {
    StoreError::new(ErrorKind::Invalid, sentence)
}

/// Mounts the target.
fn mount(
    flash: &mut Flash,
    named: &NamedTarget,
    clock: &mut DriveClock,
    buffers: &mut Buffers,
    cut_at: Option<Nanos>,
) -> Result<(Box<dyn BlockTarget>, Vec<String>), StoreError> {
    let kind = registry::find(&named.kind).map_err(invalid)?;
    let mut caller = Caller { device: flash, clock, buffers, cut_at };
    let made = kind.make(&mut caller, &named.spec()).map_err(invalid)?;
    let bytes = usize_of(made.target.block_bytes());
    if made.target.zones().is_some() {
        return Err(invalid(format!(
            "target {}: a volume needs blocks that can be written in any order, and it has zones; use ox-block or pblk",
            named.kind
        )));
    }
    if bytes != BLOCK_BYTES {
        return Err(invalid(format!(
            "target {}: a volume needs blocks of {BLOCK_BYTES} bytes, and it has blocks of {bytes}; leave block_bytes out, or use another drive",
            named.kind
        )));
    }
    Ok((made.target, made.notes))
}

impl Blocks {
    /// Opens the drive and mounts the target that the options name.
    ///
    /// # Errors
    /// If there is no such drive, another process has it, or an option cannot be.
    pub fn open(options: &StoreOptions) -> Result<Self, StoreError> {
        if options.power_cut.is_some() || options.flushed != ocssd_table_store::Flushed::default() {
            return Err(invalid("the options power_cut and flush are for RocksDB's logs; leave them out"));
        }
        if options.is_served() {
            return Err(invalid(
                "SQLite's volumes lie on a drive of this process; name an image instead of a server",
            ));
        }
        let mut open = open_drive(options)?;
        let named = lease_target(&open, options, "sqlite")?;
        let mut buffers = Buffers::new(open.flash.payload_format());
        let mut clock = DriveClock::Virtual(VirtualClock::default());
        let (target, notes) = mount(&mut open.flash, &named, &mut clock, &mut buffers, None)?;
        if options.is_wall_clock() {
            clock = DriveClock::Wall(Box::new(WallClock::starting_at(clock.now())));
        }
        let OpenDrive { flash, image, .. } = open;
        let mut host = Host::new(flash, clock, buffers);
        host.add(target);
        let (written, flushes) = (0, 0);
        let host = Some(host);
        Ok(Self { host, named, image, cut: None, is_off: false, tag: 0, notes, written, flushes })
    }

    fn host(&mut self) -> &mut Host<Flash, DriveClock, dyn BlockTarget> {
        self.host.as_mut().expect("the drive is there but while it is restarted")
    }

    fn seen(&self) -> &Host<Flash, DriveClock, dyn BlockTarget> {
        self.host.as_ref().expect("the drive is there but while it is restarted")
    }

    /// The kind of target.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.named.kind
    }

    /// What the mount said.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Blocks of the target.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.seen().target(TARGET).block_count()
    }

    /// Blocks that one transaction may write; 0 of a target without transactions.
    pub fn transaction_blocks(&mut self) -> usize {
        let transactions = self.host().target_mut(TARGET).transactions();
        transactions.map_or(0, |transactions| usize_of(transactions.limits().blocks))
    }

    /// Why no transaction can be begun, if none can; none may be open.
    pub fn refuses_transactions(&mut self) -> Option<TransactionRefusal> {
        let begun = self.host().target_mut(TARGET).transactions()?.begin();
        match begun {
            Ok(transaction) => {
                self.end(transaction, TransactionPart::Abort).err().map(|_| TransactionRefusal::NotOpen)
            }
            Err(refusal) => Some(refusal),
        }
    }

    /// The drive's time.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.seen().clock().now()
    }

    /// What media and target counted.
    #[must_use]
    pub fn counts(&self) -> (FlashCounters, Vec<Counter>) {
        (self.seen().device().counters(), self.seen().target(TARGET).counters())
    }

    /// The power will go at `at`; `seed` draws which pages of torn units survive.
    pub fn cut_power_at(&mut self, at: Nanos, seed: u64) {
        self.cut = Some(Cut { at, prng: Prng::new(seed) });
    }

    /// True between the power cut and [`Self::restart`].
    #[must_use]
    pub const fn is_off(&self) -> bool {
        self.is_off
    }

    /// The power is there again: the target is mounted anew from what the media hold. A cut that was set meanwhile may come during
    /// the mount; then the power is off again.
    ///
    /// # Errors
    /// If it cannot be mounted, or the power was cut.
    pub fn restart(&mut self) -> Result<(), StoreError> {
        assert!(self.is_off, "a drive is restarted after its power was cut");
        let host = self.host.take().expect("the drive is there but while it is restarted");
        let mut clock = host.clock().clone();
        let mut flash = host.into_device();
        let mut buffers = Buffers::new(flash.payload_format());
        let cut_at = self.cut.as_ref().map(|cut| cut.at);
        let made = mount(&mut flash, &self.named, &mut clock, &mut buffers, cut_at);
        let is_cut = made.is_err() && cut_at.is_some_and(|at| at <= clock.now());
        let mut host = Host::new(flash, clock, buffers);
        let made = made.map(|(target, notes)| {
            host.add(target);
            self.notes = notes;
        });
        (self.host, self.is_off) = (Some(host), made.is_err());
        if is_cut { Err(self.power_goes()) } else { made }
    }

    /// Asks for all of these, and waits until all are answered.
    fn ask(&mut self, asked: &[BlockRequest]) -> Result<Vec<BlockReply>, StoreError> {
        if self.is_off {
            return Err(failed("the drive has no power"));
        }
        let stop_at = self.cut.as_ref().map_or(Nanos::MAX, |cut| cut.at);
        let mut requests = Requests::default();
        asked.iter().for_each(|&request| requests.push(request));
        match self.host().run(&mut requests, stop_at) {
            RunEnd::Finished => Ok(requests.take_replies()),
            RunEnd::Stopped => Err(self.power_goes()),
            RunEnd::Stuck => panic!("requests to a target are answered"),
        }
    }

    fn power_goes(&mut self) -> StoreError {
        let Cut { at, mut prng } = self.cut.take().expect("only a cut stops the drive");
        let cut = self.host().device_mut().power_cut(at, &mut prng);
        self.is_off = true;
        failed(format!("the power was cut at {at}: {cut:?}"))
    }

    fn request(&mut self, op: BlockOp, block: u64, count: usize, buffer: Option<BufId>) -> BlockRequest {
        self.tag = self.tag.wrapping_add(1) & 0x7f_ffff;
        let count = u32::try_from(count).expect("a request is short");
        BlockRequest { tag: Tag(self.tag), op, block, count, buffer }
    }

    /// A buffer for `count` blocks. Sizes are powers of two, so that buffers are used again.
    fn take(&mut self, count: usize) -> BufId {
        let buffers = self.host().buffers_mut();
        let blocks = u32::try_from(count.next_power_of_two()).expect("a request is short");
        let block_bytes = u32::try_from(BLOCK_BYTES).expect("small");
        let sectors = buffers.format().sectors_of_blocks(blocks, block_bytes);
        buffers.take(sectors)
    }

    /// Reads whole blocks from `block` on.
    ///
    /// # Errors
    /// If the drive fails.
    pub fn read(&mut self, block: u64, into: &mut [u8]) -> Result<(), StoreError> {
        assert!(into.len().is_multiple_of(BLOCK_BYTES), "{} bytes are no blocks", into.len());
        let mut asked = Vec::new();
        for (nth, part) in into.chunks(REQUEST_BLOCKS_MAX * BLOCK_BYTES).enumerate() {
            let count = part.len() / BLOCK_BYTES;
            let buffer = self.take(count);
            let at = block + (nth * REQUEST_BLOCKS_MAX) as u64;
            asked.push(self.request(BlockOp::Read, at, count, Some(buffer)));
        }
        let replies = self.ask(&asked)?;
        for (part, request) in into.chunks_mut(REQUEST_BLOCKS_MAX * BLOCK_BYTES).zip(&asked) {
            let buffer = request.buffer.expect("a read has one");
            part.copy_from_slice(self.host().buffers_mut().bytes(buffer, 0, part.len()));
            self.host().buffers_mut().give_back(buffer);
        }
        successful("read", &replies)
    }

    /// Requests that write these blocks, neighbours together.
    fn writes(&mut self, blocks: &[(u64, Block)]) -> Vec<BlockRequest> {
        let mut asked = Vec::new();
        let mut left = blocks;
        while let Some((first, _)) = left.first() {
            let are_neighbours = |(nth, (block, _)): &(usize, &(u64, Block))| *block == first + *nth as u64;
            let run = left.iter().enumerate().take(REQUEST_BLOCKS_MAX).take_while(are_neighbours).count();
            let buffer = self.take(run);
            for (nth, (_, content)) in left[..run].iter().enumerate() {
                let to = self.host().buffers_mut().bytes_mut(buffer, nth * BLOCK_BYTES, BLOCK_BYTES);
                to.copy_from_slice(&content[..]);
            }
            asked.push(self.request(BlockOp::Write { fua: false }, *first, run, Some(buffer)));
            left = &left[run..];
        }
        self.written += blocks.len() as u64;
        asked
    }

    fn ask_writes(&mut self, asked: &[BlockRequest]) -> Result<(), StoreError> {
        let replies = self.ask(asked)?;
        for request in asked {
            self.host().buffers_mut().give_back(request.buffer.expect("a write has one"));
        }
        successful("write", &replies)
    }

    /// Writes blocks, by ascending address; they are durable after a flush, each as a whole.
    ///
    /// # Errors
    /// If the drive fails.
    pub fn write(&mut self, blocks: &[(u64, Block)]) -> Result<(), StoreError> {
        let asked = self.writes(blocks);
        self.ask_writes(&asked)
    }

    /// Makes everything durable that was written before, on the disk of an image too.
    ///
    /// # Errors
    /// If the drive or the image's disk fails.
    pub fn flush(&mut self) -> Result<(), StoreError> {
        self.flushes += 1;
        let asked = [self.request(BlockOp::Flush, 0, 0, None)];
        successful("flush", &self.ask(&asked)?)?;
        self.sync_image()
    }

    fn sync_image(&mut self) -> Result<(), StoreError> {
        if self.image.is_none() {
            return Ok(());
        }
        let synced = self.host().device_mut().sync();
        synced.map_err(|error| failed(format!("the image could not be kept: {error}")))
    }

    /// Writes blocks, by ascending address, as one transaction: all of them or none, as durable as a write of the target.
    ///
    /// # Errors
    /// Why none.
    pub fn commit(&mut self, blocks: &[(u64, Block)]) -> Result<(), NotCommitted> {
        if blocks.len() > self.transaction_blocks() {
            return Err(NotCommitted::TooLong);
        }
        if self.is_off {
            return Err(NotCommitted::Failed(failed("the drive has no power")));
        }
        let asked = self.writes(blocks);
        let begun = self.host().target_mut(TARGET).transactions().expect("it has transactions").begin();
        let transaction = match begun {
            Ok(transaction) => transaction,
            Err(refusal) => {
                asked.iter().filter_map(|request| request.buffer).for_each(|buffer| {
                    self.host().buffers_mut().give_back(buffer);
                });
                return Err(match refusal {
                    TransactionRefusal::TooMany => NotCommitted::TooLong,
                    other => NotCommitted::Failed(failed(format!("begin a transaction: {other}"))),
                });
            }
        };
        for request in &asked {
            self.join(transaction, request.tag, TransactionPart::Write).map_err(NotCommitted::Failed)?;
        }
        let written = self.ask_writes(&asked);
        let end = if written.is_ok() { TransactionPart::Commit } else { TransactionPart::Abort };
        let ended = self.end(transaction, end);
        written.and(ended).map_err(NotCommitted::Failed)
    }

    fn end(&mut self, transaction: BlockTransaction, end: TransactionPart) -> Result<(), StoreError> {
        if self.is_off {
            return Err(failed("the drive has no power"));
        }
        let asked = [self.request(BlockOp::Flush, 0, 0, None)];
        self.join(transaction, asked[0].tag, end)?;
        successful("end a transaction", &self.ask(&asked)?)
    }

    fn join(&mut self, name: BlockTransaction, tag: Tag, part: TransactionPart) -> Result<(), StoreError> {
        let transactions = self.host().target_mut(TARGET).transactions();
        let joined = transactions.expect("it has transactions").join(name, tag, part);
        joined.map_err(|refusal| failed(format!("write within a transaction: {refusal}")))
    }

    /// The target puts away what it keeps, and an image is complete. Nothing may be asked afterwards.
    ///
    /// # Errors
    /// If the drive or the image's disk fails.
    pub fn close(&mut self) -> Result<(), StoreError> {
        let asked = [self.request(BlockOp::Shutdown, 0, 0, None)];
        successful("shut the target down", &self.ask(&asked)?)?;
        self.host().settle();
        if self.image.is_some() {
            let closed = self.host().device_mut().close();
            closed.map_err(|error| failed(format!("the image could not be kept: {error}")))?;
        }
        Ok(())
    }
}

fn successful(doing: &str, replies: &[BlockReply]) -> Result<(), StoreError> {
    let Some(reply) = replies.iter().find(|reply| !reply.status.is_success()) else { return Ok(()) };
    let kind = match reply.status {
        Status::CAPACITY_EXCEEDED => ErrorKind::NoSpace,
        _ => ErrorKind::Io,
    };
    Err(StoreError::new(kind, format!("{doing}: the drive answered with status {}", reply.status)))
}
