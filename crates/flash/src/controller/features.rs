//! Set Features and Get Features: the values a host can change. None survives a power cycle.

use super::completion::{INVALID_FIELD, Refused};
use super::front_end::{Controller, NSID, NSID_ALL};
use crate::config::{Config, Revision};
use ocssd_lightnvm::Status;
use ocssd_nvme::Sqe;
use ocssd_nvme::feature::{FeatureId, Select};
use ocssd_nvme::ocssd20::{ErrorRecovery, MediaFeedback};
use ocssd_nvme::sqe::{GetFeatures, SetFeatures};

/// Chosen: I/O queues granted in each direction, less one as on the wire. More than a large host has processors.
const QUEUES_MAX: u32 = 127;

/// The values in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Features {
    power_management: u32,
    pub(super) error_recovery: ErrorRecovery,
    pub(super) write_cache: bool,
    /// Submission queues and completion queues granted, each less one.
    queues: (u32, u32),
    pub(super) async_events: u32,
    pub(super) media_feedback: MediaFeedback,
    has_volatile_cache: bool,
}

/// A cache that a power cut empties; one with power-loss protection is as good as media (VWC).
pub(super) const fn has_volatile_cache(config: &Config) -> bool {
    config.cache.sectors > 0 && !config.cache.power_loss_protection
}

/// What a feature can do, as Get Features with Select 3 says it: bit 1 per namespace, bit 2 changeable. Bit 0,
/// saveable, is never set.
const CHANGEABLE: u32 = 0b100;
const OF_NAMESPACE: u32 = 0b110;

impl Features {
    /// The values after power-on: unwritten sectors read as the drive is set, and the cache is on.
    pub(super) fn new(config: &Config) -> Self {
        Self {
            power_management: 0,
            error_recovery: ErrorRecovery { dulbe: config.dulbe, ..ErrorRecovery::default() },
            write_cache: true,
            queues: (QUEUES_MAX, QUEUES_MAX),
            async_events: 0,
            media_feedback: MediaFeedback::default(),
            has_volatile_cache: has_volatile_cache(config),
        }
    }

    /// DW0 for a value; refused if there is no such feature.
    fn get(&self, fid: FeatureId, revision: Revision) -> Result<u32, Refused> {
        match fid {
            FeatureId::POWER_MANAGEMENT => Ok(self.power_management),
            FeatureId::ERROR_RECOVERY => Ok(self.error_recovery.to_dword()),
            FeatureId::VOLATILE_WRITE_CACHE if self.has_volatile_cache => Ok(u32::from(self.write_cache)),
            FeatureId::NUMBER_OF_QUEUES => Ok(self.queues.1 << 16 | self.queues.0),
            FeatureId::ASYNC_EVENT_CONFIGURATION => Ok(self.async_events),
            FeatureId::MEDIA_FEEDBACK if revision == Revision::V20 => Ok(self.media_feedback.to_dword()),
            _ => Err(INVALID_FIELD),
        }
    }

    /// Sets a value; DW0 of the completion.
    fn set(&mut self, fid: FeatureId, value: u32) -> Result<u32, Refused> {
        match fid {
            // One power state (bits 4:0), so only the workload hint (bits 7:5) can differ; reserved bits are dropped.
            FeatureId::POWER_MANAGEMENT if value & 0x1F == 0 => self.power_management = value & 0xE0,
            FeatureId::ERROR_RECOVERY => self.error_recovery = ErrorRecovery::from_dword(value),
            FeatureId::VOLATILE_WRITE_CACHE => self.write_cache = value & 1 == 1,
            FeatureId::NUMBER_OF_QUEUES => return self.set_queues(value),
            // Only the health warnings (bits 7:0) can be sent; the others belong to notices this drive does not have.
            FeatureId::ASYNC_EVENT_CONFIGURATION if value & !0xFF == 0 => self.async_events = value,
            FeatureId::MEDIA_FEEDBACK => self.media_feedback = MediaFeedback::from_dword(value),
            _ => return Err(INVALID_FIELD),
        }
        Ok(0)
    }

    fn set_queues(&mut self, value: u32) -> Result<u32, Refused> {
        let (submission, completion) = (value & 0xFFFF, value >> 16);
        if submission == 0xFFFF || completion == 0xFFFF {
            return Err(INVALID_FIELD);
        }
        assert!(submission < 0xFFFF && completion < 0xFFFF, "the reserved value was refused");
        self.queues = (submission.min(QUEUES_MAX), completion.min(QUEUES_MAX));
        Ok(self.queues.1 << 16 | self.queues.0)
    }
}

/// Error recovery belongs to the namespace; media feedback is taken for the namespace or the controller.
fn check_namespace(fid: FeatureId, nsid: u32) -> Result<(), Refused> {
    let valid = match fid {
        FeatureId::ERROR_RECOVERY => matches!(nsid, NSID | NSID_ALL),
        _ => matches!(nsid, 0 | NSID | NSID_ALL),
    };
    if valid { Ok(()) } else { Err(Refused(Status::INVALID_NAMESPACE)) }
}

impl Controller {
    pub(super) fn set_features(&mut self, sqe: &Sqe) -> Result<u32, Refused> {
        let set = SetFeatures::of(sqe);
        let revision = self.config().revision;
        // Whether the feature exists comes first: what it cannot do says nothing about one that is not there.
        self.features.get(set.fid, revision)?;
        check_namespace(set.fid, sqe.nsid)?;
        if set.save {
            return Err(Refused(Status::FEATURE_NOT_SAVEABLE));
        }
        self.features.set(set.fid, set.value)
    }

    pub(super) fn get_features(&self, sqe: &Sqe) -> Result<u32, Refused> {
        let get = GetFeatures::of(sqe);
        let revision = self.config().revision;
        let current = self.features.get(get.fid, revision)?;
        check_namespace(get.fid, sqe.nsid)?;
        match get.select {
            Select::Current => Ok(current),
            Select::Default | Select::Saved => Features::new(self.config()).get(get.fid, revision),
            Select::SupportedCapabilities if get.fid == FeatureId::ERROR_RECOVERY => Ok(OF_NAMESPACE),
            Select::SupportedCapabilities => Ok(CHANGEABLE),
            Select::Reserved(_) => Err(INVALID_FIELD),
        }
    }
}
