//! Get Features and Set Features: the values an association can change.
//!
//! Deliberately not here: the raw drive's own features, which it answers itself.

use super::association::{Association, Bound, Features, IO_QUEUES_MAX};
use super::subsystem::{Namespace, namespace};
use crate::dispatcher::Dispatcher;
use ocssd_base::Nanos;
use ocssd_lightnvm::Status;
use ocssd_lightnvm::interface::key_value::AbsentKey;
use ocssd_nvme::Sqe;
use ocssd_nvme::feature::{FeatureId, Select};
use ocssd_nvme::sqe::{GetFeatures, SetFeatures};

/// What Get Features says of what a feature can do: it can be changed (bit 2), neither saved nor per namespace.
const CHANGEABLE: u32 = 0b100;
/// It is per namespace (bit 1).
const PER_NAMESPACE: u32 = 0b10;

impl Bound {
    pub(super) fn get_features(&self, sqe: &Sqe, dispatcher: &Dispatcher) -> Result<u32, Status> {
        let get = GetFeatures::of(sqe);
        let subsystem = dispatcher.subsystem.as_ref().expect("an association lies in a subsystem");
        let association = subsystem.association(self.cntlid).ok_or(Status::COMMAND_SEQUENCE_ERROR)?;
        check_keep_alive(association, get.fid)?;
        let kato_ms = association.kato.map_or(0, |kato| kato.0 / Nanos::from_millis(1).0);
        let kato_ms = u32::try_from(kato_ms).expect("it came as 32 bits");
        if get.fid == FeatureId::KEY_VALUE_CONFIGURATION {
            check_keys(sqe, dispatcher)?;
            let refuses = subsystem.absent_key(sqe.nsid) == AbsentKey::Refused;
            return match get.select {
                Select::Current => Ok(refuses.into()),
                Select::Default | Select::Saved => Ok(0),
                Select::SupportedCapabilities => Ok(CHANGEABLE | PER_NAMESPACE),
                Select::Reserved(_) => Err(Status::INVALID_FIELD),
            };
        }
        match get.select {
            Select::Current => value(&association.features, kato_ms, get.fid),
            Select::Default | Select::Saved => value(&Features::default(), 0, get.fid),
            Select::SupportedCapabilities => value(&association.features, 0, get.fid).map(|_| CHANGEABLE),
            Select::Reserved(_) => Err(Status::INVALID_FIELD),
        }
    }

    pub(super) fn set_features(&self, sqe: &Sqe, dispatcher: &mut Dispatcher) -> Result<u32, Status> {
        let set = SetFeatures::of(sqe);
        if set.fid == FeatureId::KEY_VALUE_CONFIGURATION {
            return set_keys(sqe, &set, dispatcher);
        }
        let subsystem = dispatcher.subsystem.as_mut().expect("an association lies in a subsystem");
        let association = subsystem.association_mut(self.cntlid).ok_or(Status::COMMAND_SEQUENCE_ERROR)?;
        check_keep_alive(association, set.fid)?;
        value(&association.features, 0, set.fid)?;
        if set.save {
            return Err(Status::FEATURE_NOT_SAVEABLE);
        }
        let features = &mut association.features;
        match set.fid {
            FeatureId::VOLATILE_WRITE_CACHE => {
                features.write_cache = set.value & 1 == 1;
                let queues: Vec<_> = association.queues.iter().map(|(_, name)| *name).collect();
                queues
                    .into_iter()
                    .for_each(|(connection, generation)| dispatcher.call(connection, generation));
            }
            FeatureId::NUMBER_OF_QUEUES => {
                let (submission, completion) = (set.value & 0xFFFF, set.value >> 16);
                // After queues are made the number stays (NVMe base 2.0 section 5.27.1.5).
                if submission == 0xFFFF || completion == 0xFFFF {
                    return Err(Status::INVALID_FIELD);
                }
                if !association.queues.is_empty() {
                    return Err(Status::COMMAND_SEQUENCE_ERROR);
                }
                let wanted = u16::try_from(submission.min(completion)).expect("16 bits");
                features.queues = (wanted + 1).min(IO_QUEUES_MAX);
                return value(features, 0, set.fid);
            }
            FeatureId::ASYNC_EVENT_CONFIGURATION => features.async_events = set.value,
            _ => association.kato = (set.value > 0).then(|| Nanos::from_millis(set.value.into())),
        }
        Ok(0)
    }
}

/// Its timer is there where hosts may promise not to be silent.
fn check_keep_alive(association: &Association, fid: FeatureId) -> Result<(), Status> {
    let is_there = fid != FeatureId::KEEP_ALIVE_TIMER || association.transport.keeps_alive;
    if is_there { Ok(()) } else { Err(Status::INVALID_FIELD) }
}

/// The namespace has keys.
fn check_keys(sqe: &Sqe, dispatcher: &Dispatcher) -> Result<(), Status> {
    match namespace(sqe.nsid, &dispatcher.exports, dispatcher.raw.is_some()) {
        Some(Namespace::KeyValue(_)) => Ok(()),
        Some(_) => Err(Status::INVALID_FIELD),
        None => Err(Status::INVALID_NAMESPACE),
    }
}

/// Feature 20h, bit 0 (EDNEK): whether it is an error to delete a key that does not exist.
fn set_keys(sqe: &Sqe, set: &SetFeatures, dispatcher: &mut Dispatcher) -> Result<u32, Status> {
    check_keys(sqe, dispatcher)?;
    if set.save {
        return Err(Status::FEATURE_NOT_SAVEABLE);
    }
    let absent = if set.value & 1 == 1 { AbsentKey::Refused } else { AbsentKey::Success };
    let subsystem = dispatcher.subsystem.as_mut().expect("an association lies in a subsystem");
    subsystem.set_absent_key(sqe.nsid, absent);
    Ok(0)
}

/// DW0 for a value.
fn value(features: &Features, kato_ms: u32, fid: FeatureId) -> Result<u32, Status> {
    match fid {
        FeatureId::VOLATILE_WRITE_CACHE => Ok(features.write_cache.into()),
        FeatureId::NUMBER_OF_QUEUES => {
            let queues = u32::from(features.queues) - 1;
            Ok(queues << 16 | queues)
        }
        FeatureId::ASYNC_EVENT_CONFIGURATION => Ok(features.async_events),
        FeatureId::KEEP_ALIVE_TIMER => Ok(kato_ms),
        _ => Err(Status::INVALID_FIELD),
    }
}
