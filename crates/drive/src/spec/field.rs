//! One setting: its name, what it means, how it is read into a configuration and shown again.
//!
//! Deliberately not here: the list of them (`fields`) and where a value was written (`entry`).

use super::quantity::{PARTS, RATE, TIME, Units};
use super::value::{Value, quoted};
use ocssd_base::Nanos;
use ocssd_flash::Config;

/// A setting of a drive, by the name used in drive files, on command lines and in errors.
pub struct Field {
    /// The name: `ws_opt`, or `media.erase` for `erase` in `[media]`.
    pub key: &'static str,
    /// What it is, with its unit and range.
    pub about: &'static str,
    pub(super) access: Access,
}

/// How a setting is reached. A place in the configuration is enough for most.
pub(super) enum Access {
    Count(fn(&mut Config) -> &mut u32),
    Bits(fn(&mut Config) -> &mut u8),
    Flag(fn(&mut Config) -> &mut bool),
    Time(fn(&mut Config) -> &mut Nanos),
    Times(fn(&mut Config) -> &mut Vec<Nanos>),
    Rate(fn(&mut Config) -> &mut u64),
    Parts(fn(&mut Config) -> &mut u32),
    Own(Own),
}

/// A setting with rules of its own.
pub(super) struct Own {
    /// What would be valid: completes "but ...".
    pub(super) expected: &'static str,
    /// Takes the value; `None` if it is not valid.
    pub(super) set: fn(&mut Config, &Value) -> Option<()>,
    /// The value as TOML; `None` if the setting does not apply to this drive.
    pub(super) show: fn(&Config) -> Option<String>,
}

fn quantity(units: &Units, value: &Value) -> Option<u64> {
    units.parse(value.text()?)
}

/// A list of times, one time alone, or times with commas between them in one text.
fn times(value: &Value) -> Option<Vec<Nanos>> {
    let time = |text: &str| TIME.parse(text.trim()).map(Nanos);
    match value {
        Value::Text(text) => text.split(',').map(time).collect(),
        Value::List(list) => list.iter().map(|entry| entry.text().and_then(time)).collect(),
        _ => None,
    }
}

fn put<T>(place: &mut T, value: Option<T>) -> Option<()> {
    *place = value?;
    Some(())
}

impl Field {
    /// What would be valid, to complete "`key` is ..., but ...". Ranges beyond the type are checked with the drive.
    #[must_use]
    pub fn expected(&self) -> &'static str {
        match &self.access {
            Access::Count(_) => "must be a whole number from 0 to 4294967295",
            Access::Bits(_) => "must be a whole number from 0 to 255",
            Access::Flag(_) => "must be true or false",
            Access::Time(_) => "must be a time with its unit in quotes, such as \"45.5us\" (ns, us, ms, s)",
            Access::Times(_) => {
                "must be a list of times with their units, such as [\"40us\", \"60us\"] (ns, us, ms, s)"
            }
            Access::Rate(_) => {
                "must be a rate with its unit in quotes, such as \"280MB/s\" (B/s, kB/s, MB/s, GB/s, MiB/s, GiB/s)"
            }
            Access::Parts(_) => {
                "must be a rate of faults with its unit in quotes, such as \"1000ppb\" (ppb, ppm, %)"
            }
            Access::Own(own) => own.expected,
        }
    }

    /// Takes the value; `None` if it is not of the right kind. Nothing is changed then.
    pub(super) fn set(&self, config: &mut Config, value: &Value) -> Option<()> {
        match &self.access {
            Access::Count(place) => put(place(config), value.number()),
            Access::Bits(place) => put(place(config), value.number()),
            Access::Flag(place) => {
                put(place(config), if let Value::Flag(flag) = value { Some(*flag) } else { None })
            }
            Access::Time(place) => put(place(config), quantity(&TIME, value).map(Nanos)),
            Access::Times(place) => put(place(config), times(value)),
            Access::Rate(place) => put(place(config), quantity(&RATE, value)),
            Access::Parts(place) => {
                put(place(config), quantity(&PARTS, value).and_then(|parts| u32::try_from(parts).ok()))
            }
            Access::Own(own) => (own.set)(config, value),
        }
    }

    /// The setting's value on this drive as TOML; `None` if it does not apply to it.
    #[must_use]
    pub fn show(&self, config: &Config) -> Option<String> {
        // Places are reached through `&mut`, once, so that no setting is named twice; a copy serves.
        let mut copy = config.clone();
        let time = |time: Nanos| quoted(&TIME.show(time.0));
        Some(match &self.access {
            Access::Count(place) => place(&mut copy).to_string(),
            Access::Bits(place) => place(&mut copy).to_string(),
            Access::Flag(place) => place(&mut copy).to_string(),
            Access::Time(place) => time(*place(&mut copy)),
            Access::Times(place) => {
                let list: Vec<String> = place(&mut copy).iter().map(|entry| time(*entry)).collect();
                format!("[{}]", list.join(", "))
            }
            Access::Rate(place) => quoted(&RATE.show(*place(&mut copy))),
            Access::Parts(place) => quoted(&PARTS.show((*place(&mut copy)).into())),
            Access::Own(own) => return (own.show)(config),
        })
    }
}
