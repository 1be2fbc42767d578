//! The messages of vhost-user, carried out on the device.
//!
//! `vhost` reads them from the socket, checks their form and answers; this says what they do. Descriptors that come with them
//! are kept as changes for the frontend to take, which has the poller. A message that cannot be carried out ends the connection,
//! with a sentence. Deliberately not here: when a message may be carried out (`message`,
//! `frontend`).

use super::config::{self, CONFIG_BYTES, QUEUES_MAX, WRITEBACK_OFFSET, feature};
use super::device::Device;
use super::inflight::Shape;
use super::memory::{Place, REGIONS_MAX};
use super::message::Barrier;
use super::ring::{Parts, Ring};
use ocssd_base::usize_of;
use std::fs::File;
use std::io;
use vhost::vhost_user::message::{
    VhostTransferStateDirection, VhostTransferStatePhase, VhostUserConfigFlags, VhostUserInflight,
    VhostUserLog, VhostUserMemoryRegion, VhostUserProtocolFeatures, VhostUserShMemConfig, VhostUserSharedMsg,
    VhostUserSingleMemoryRegion, VhostUserVringAddrFlags, VhostUserVringState,
};
use vhost::vhost_user::{Error, GpuBackend, Result, VhostUserBackendReqHandlerMut};
use vhost::{VhostUserMemoryRegionBase, vhost_user};

/// A descriptor of a ring that came, or went.
#[derive(Debug)]
pub enum Change {
    /// By which the guest says that something has come.
    Kick(usize, Option<File>),
    /// By which the guest is told that something has ended.
    Call(usize, Option<File>),
    /// By which the frontend is told that the ring is broken.
    Err(usize, Option<File>),
}

/// The device, and what its frontend said that is not the device's.
#[derive(Debug)]
pub struct Backend {
    /// The device.
    pub device: Device,
    /// Descriptors that were not taken yet.
    pub changes: Vec<Change>,
    /// A frontend has said that it owns the device: the greeting is over.
    pub owned: bool,
}

/// What a frontend must hear before it is let go.
fn wrong(sentence: impl Into<String>) -> Error {
    Error::ReqHandlerError(io::Error::other(sentence.into()))
}

impl Backend {
    /// Of a device that nobody has set up.
    #[must_use]
    pub const fn new(device: Device) -> Self {
        Self { device, changes: Vec::new(), owned: false }
    }

    fn place(&self, index: u32) -> Result<usize> {
        let place = usize::try_from(index).ok().filter(|place| *place < self.device.rings.len());
        place.ok_or_else(|| wrong(format!("there are {QUEUES_MAX} rings, and ring {index} was named")))
    }

    fn ring(&mut self, index: u32) -> Result<&mut Ring> {
        let place = self.place(index)?;
        Ok(&mut self.device.rings[place])
    }

    /// A ring that may be changed: one that does not run.
    fn still_ring(&mut self, index: u32) -> Result<&mut Ring> {
        let ring = self.ring(index)?;
        if ring.started {
            return Err(wrong(format!("ring {index} runs; stop it before it is changed")));
        }
        Ok(ring)
    }

    fn reset(&mut self) {
        for (place, ring) in self.device.rings.iter_mut().enumerate() {
            ring.stop();
            ring.forget();
            ring.enabled = false;
            self.changes.push(Change::Kick(place, None));
        }
        (self.device.features, self.device.writeback) = (0, true);
    }

    fn refused<T>(&self, what: &str) -> Result<T> {
        Err(wrong(format!("{what} was asked for, which was not offered")))
    }

    fn add(&mut self, region: &VhostUserMemoryRegion, file: File) -> Result<()> {
        let place =
            Place { guest: region.guest_phys_addr, user: region.user_addr, bytes: region.memory_size };
        self.device.memory.add(place, file, region.mmap_offset).map_err(wrong)
    }

    /// Takes nothing from the rings a message is about. True if their requests have ended.
    pub fn pause(&mut self, barrier: Barrier) -> bool {
        let rings = self.concerned(barrier);
        rings.fold(true, |idle, ring| {
            ring.paused = true;
            idle && ring.is_idle()
        })
    }

    /// The message was carried out.
    pub fn go_on(&mut self, barrier: Barrier) {
        self.concerned(barrier).for_each(|ring| ring.paused = false);
    }

    fn concerned(&mut self, barrier: Barrier) -> impl Iterator<Item = &mut Ring> {
        let is_concerned = move |place: usize| match barrier {
            Barrier::None => false,
            Barrier::Ring(ring) => place == usize_of(ring),
            Barrier::All => true,
        };
        let rings = self.device.rings.iter_mut().enumerate();
        rings.filter(move |(place, _)| is_concerned(*place)).map(|(_, ring)| ring)
    }
}

/// What is offered beside what `vhost` does itself (REPLY_ACK).
fn protocol_features() -> VhostUserProtocolFeatures {
    VhostUserProtocolFeatures::MQ
        | VhostUserProtocolFeatures::CONFIG
        | VhostUserProtocolFeatures::CONFIGURE_MEM_SLOTS
        | VhostUserProtocolFeatures::RESET_DEVICE
        | VhostUserProtocolFeatures::INFLIGHT_SHMFD
}

impl VhostUserBackendReqHandlerMut for Backend {
    fn set_owner(&mut self) -> Result<()> {
        self.owned = true;
        Ok(())
    }

    fn reset_owner(&mut self) -> Result<()> {
        self.reset();
        Ok(())
    }

    fn reset_device(&mut self) -> Result<()> {
        self.reset();
        Ok(())
    }

    fn get_features(&mut self) -> Result<u64> {
        Ok(config::features(self.device.export()))
    }

    fn set_features(&mut self, features: u64) -> Result<()> {
        let offered = config::features(self.device.export());
        if features & !offered != 0 {
            let unknown = features & !offered;
            return Err(wrong(format!("features {unknown:#x} were asked for, which were not offered")));
        }
        self.device.features = features;
        // A driver that knows no flush is promised that what has ended is durable (VIRTIO 1.2, 5.2.6.2). What one that may
        // choose has chosen stays when its frontend sets up the rings again.
        if features & feature::CONFIG_WCE == 0 {
            self.device.writeback = features & feature::FLUSH != 0;
        }
        // Without protocol features rings are enabled from the start.
        if features & feature::PROTOCOL_FEATURES == 0 {
            self.device.rings.iter_mut().for_each(|ring| ring.enabled = true);
        }
        Ok(())
    }

    fn set_mem_table(
        &mut self,
        regions: &[VhostUserMemoryRegion],
        files: Vec<File>,
        _postcopy: Option<bool>,
    ) -> Result<Option<Vec<VhostUserMemoryRegionBase>>> {
        self.device.memory.clear();
        for (region, file) in regions.iter().zip(files) {
            self.add(region, file)?;
        }
        Ok(None)
    }

    fn set_vring_num(&mut self, index: u32, num: u32) -> Result<()> {
        self.still_ring(index)?.set_size(num).map_err(wrong)
    }

    fn set_vring_addr(
        &mut self,
        index: u32,
        _flags: VhostUserVringAddrFlags,
        descriptor: u64,
        used: u64,
        available: u64,
        _log: u64,
    ) -> Result<()> {
        let memory = &self.device.memory;
        let guest = |user: u64| {
            let found = memory.guest_of(user);
            found
                .ok_or_else(|| wrong(format!("a ring lies at {user:#x} of the frontend, where no memory is")))
        };
        let parts =
            Parts { descriptors: guest(descriptor)?, available: guest(available)?, used: guest(used)? };
        self.still_ring(index)?.set_parts(parts).map_err(wrong)
    }

    fn set_vring_base(&mut self, index: u32, base: u32) -> Result<()> {
        let base = u16::try_from(base).map_err(|_| wrong(format!("ring {index} cannot begin at {base}")))?;
        self.still_ring(index)?.set_next(base);
        Ok(())
    }

    fn get_vring_base(&mut self, index: u32) -> Result<VhostUserVringState> {
        let place = self.place(index)?;
        let ring = &mut self.device.rings[place];
        ring.stop();
        let next = ring.next();
        self.changes.extend([Change::Kick(place, None), Change::Call(place, None)]);
        Ok(VhostUserVringState::new(index, u32::from(next)))
    }

    fn set_vring_kick(&mut self, index: u8, fd: Option<File>) -> Result<()> {
        let place = self.place(index.into())?;
        let Some(file) = fd else {
            return Err(wrong(
                "a ring came without a descriptor for kicks; rings are not polled for ever here",
            ));
        };
        self.changes.push(Change::Kick(place, Some(file)));
        let event_idx = self.device.features & feature::EVENT_IDX != 0;
        let Device { memory, rings, .. } = &mut self.device;
        if rings[place].started {
            return Ok(());
        }
        rings[place].start(memory.mapped(), event_idx).map_err(wrong)
    }

    fn set_vring_call(&mut self, index: u8, fd: Option<File>) -> Result<()> {
        let place = self.place(index.into())?;
        self.changes.push(Change::Call(place, fd));
        Ok(())
    }

    fn set_vring_err(&mut self, index: u8, fd: Option<File>) -> Result<()> {
        let place = self.place(index.into())?;
        self.changes.push(Change::Err(place, fd));
        Ok(())
    }

    fn get_protocol_features(&mut self) -> Result<VhostUserProtocolFeatures> {
        Ok(protocol_features())
    }

    fn set_protocol_features(&mut self, features: u64) -> Result<()> {
        let offered = (protocol_features() | VhostUserProtocolFeatures::REPLY_ACK).bits();
        match features & !offered {
            0 => Ok(()),
            unknown => {
                Err(wrong(format!("protocol features {unknown:#x} were asked for, which were not offered")))
            }
        }
    }

    fn get_queue_num(&mut self) -> Result<u64> {
        Ok(QUEUES_MAX.into())
    }

    fn set_vring_enable(&mut self, index: u32, enable: bool) -> Result<()> {
        let ring = self.ring(index)?;
        (ring.enabled, ring.paused) = (enable, false);
        Ok(())
    }

    fn get_config(&mut self, offset: u32, size: u32, _flags: VhostUserConfigFlags) -> Result<Vec<u8>> {
        let space = config::space(self.device.export(), self.device.writeback);
        let part = config::part(&space, offset, size);
        part.map(<[u8]>::to_vec).ok_or_else(|| {
            wrong(format!(
                "bytes {offset} to {offset}+{size} of a configuration of {CONFIG_BYTES} were asked for"
            ))
        })
    }

    fn set_config(&mut self, offset: u32, bytes: &[u8], _flags: VhostUserConfigFlags) -> Result<()> {
        let is_writeback = usize::try_from(offset) == Ok(WRITEBACK_OFFSET) && bytes.len() == 1;
        if !is_writeback || bytes[0] > 1 {
            return Err(wrong(format!(
                "{} bytes of the configuration at {offset} cannot be set",
                bytes.len()
            )));
        }
        self.device.writeback = bytes[0] == 1;
        Ok(())
    }

    fn set_gpu_socket(&mut self, _gpu_backend: GpuBackend) -> Result<()> {
        self.refused("a display")
    }

    fn get_shared_object(&mut self, _uuid: VhostUserSharedMsg) -> Result<File> {
        self.refused("a shared object")
    }

    fn get_inflight_fd(&mut self, inflight: &VhostUserInflight) -> Result<(VhostUserInflight, File)> {
        let shape = Shape { rings: inflight.num_queues, size: inflight.queue_size };
        shape.check().map_err(wrong)?;
        let file = shape.file().map_err(wrong)?;
        Ok((VhostUserInflight::new(shape.bytes(), 0, shape.rings, shape.size), file))
    }

    fn set_inflight_fd(&mut self, inflight: &VhostUserInflight, file: File) -> Result<()> {
        if self.device.has_driver() {
            return Err(wrong("memory for requests in flight came while a ring runs; stop it before"));
        }
        let shape = Shape { rings: inflight.num_queues, size: inflight.queue_size };
        let logs = shape.map(file, inflight.mmap_size, inflight.mmap_offset).map_err(wrong)?;
        let mut logs = logs.into_iter();
        self.device.rings.iter_mut().for_each(|ring| ring.log = logs.next());
        Ok(())
    }

    fn get_max_mem_slots(&mut self) -> Result<u64> {
        Ok(u64::try_from(REGIONS_MAX).expect("few"))
    }

    fn add_mem_region(
        &mut self,
        region: &VhostUserSingleMemoryRegion,
        file: File,
        _postcopy: Option<bool>,
    ) -> Result<Option<VhostUserMemoryRegionBase>> {
        self.add(region, file)?;
        Ok(None)
    }

    fn remove_mem_region(&mut self, region: &VhostUserSingleMemoryRegion) -> Result<()> {
        let (guest, bytes) = (region.guest_phys_addr, region.memory_size);
        self.device.memory.remove(guest, bytes).map_err(wrong)
    }

    fn set_device_state_fd(
        &mut self,
        _direction: VhostTransferStateDirection,
        _phase: VhostTransferStatePhase,
        _file: File,
    ) -> Result<Option<File>> {
        self.refused("a transfer of state")
    }

    fn check_device_state(&mut self) -> Result<()> {
        self.refused("a transfer of state")
    }

    fn get_shmem_config(&mut self) -> vhost_user::Result<VhostUserShMemConfig> {
        self.refused("shared memory")
    }

    fn set_log_base(&mut self, _log: &VhostUserLog, _file: File) -> Result<()> {
        self.refused("a log of writes")
    }
}
