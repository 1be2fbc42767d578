//! The host's CPUs from `name=value` pairs: a preset first, then what is different.
//!
//! Deliberately not here: where the pairs come from.

use super::config::{HostCpuConfig, Waiting};
use ocssd_base::{Nanos, Problem, Problems};

/// Every parameter, in the order they are listed to a user.
const NAMES: &[&str] = &[
    "cores",
    "cores_per_socket",
    "l3_bytes",
    "ring_bytes",
    "requests_max",
    "read_submit_ns",
    "write_submit_ns",
    "ftl_read_ns",
    "ftl_write_ns",
    "other_submit_ns",
    "copy_page_ns",
    "completion_ns",
    "wake_up_ns",
    "lock_test_ns",
    "lock_page_ns",
    "yield_ns",
    "transfer_ns",
    "map_lock_page_ns",
    "read_socket_ns",
    "copy_resident_percent",
    "copy_remote_percent",
    "writer_remote_page_ns",
    "writers",
    "writer_command_ns",
    "writer_page_ns",
    "gc_command_ns",
    "gc_page_ns",
    "busy_retry",
    "spinner_starvation",
    "cross_socket",
    "cache_residency",
    "lock",
];

/// What a preset may be called.
const PRESETS: &str = "it must be e5-2620v3, e7-8870v3-x4, free or none";

/// Where a parameter lies.
enum Place<'a> {
    Count(&'a mut u32),
    Bytes(&'a mut u64),
    Time(&'a mut Nanos),
    Switch(&'a mut bool),
    Waiting(&'a mut Waiting),
}

impl HostCpuConfig {
    /// A preset by name: `e5-2620v3`, `e7-8870v3-x4`, `free` (every cost zero), or `none`, which is no model at all.
    ///
    /// # Errors
    /// If there is none of that name.
    pub fn preset(name: &str) -> Result<Option<Self>, Problem> {
        match name {
            "none" => Ok(None),
            "free" => Ok(Some(Self::free())),
            "e5-2620v3" => Ok(Some(Self::e5_2620v3())),
            "e7-8870v3-x4" => Ok(Some(Self::e7_8870v3_x4())),
            _ => Err(problem("preset", name, PRESETS)),
        }
    }

    /// Reads pairs of name and value. The first names the `preset`; with `none` there is nothing more to set. The result
    /// was checked.
    ///
    /// # Errors
    /// What is wrong with the first bad pair, or everything that is wrong with the whole.
    pub fn parse<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Option<Self>, Problems> {
        let one = |problem| Problems(vec![problem]);
        let mut pairs = pairs.into_iter();
        let preset = match pairs.next() {
            Some(("preset", name)) => Self::preset(name).map_err(one)?,
            Some((name, _)) => {
                return Err(one(problem(
                    "the first setting of the host's CPUs",
                    name,
                    "preset must come first",
                )));
            }
            None => None,
        };
        let Some(mut config) = preset else {
            return pairs.next().map_or(Ok(None), |(name, value)| {
                let expected = "preset=none has no costs to set: leave it out, or choose another preset";
                Err(one(problem(name, value, expected)))
            });
        };
        for (name, value) in pairs {
            config.set(name, value).map_err(one)?;
        }
        config.check()?;
        Ok(Some(config))
    }

    /// Reads `PRESET` or `PRESET:NAME=VALUE,NAME=VALUE`, as job files and command lines have it.
    ///
    /// # Errors
    /// As [`Self::parse`], or if an option is not written so.
    pub fn parse_text(text: &str) -> Result<Option<Self>, Problems> {
        let (preset, options) = text.split_once(':').unwrap_or((text, ""));
        let mut pairs = vec![("preset", preset)];
        for option in options.split(',').filter(|_| !options.is_empty()) {
            let pair = option.split_once('=').ok_or_else(|| {
                Problems(vec![problem(
                    "an option of the host's CPUs",
                    option,
                    "it must be written NAME=VALUE",
                )])
            })?;
            pairs.push(pair);
        }
        Self::parse(pairs)
    }

    /// Sets one parameter: a whole number, `true` or `false`; `busy_retry` chooses between the two ways of waiting.
    ///
    /// # Errors
    /// If there is no such parameter, or the value is not of its kind. Bounds are for [`Self::check`].
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), Problem> {
        let Some(place) = self.place(name) else {
            let expected = format!("it must be one of {}", NAMES.join(", "));
            return Err(problem("a parameter of the host's CPUs", name, &expected));
        };
        let number = || value.parse().map_err(|_| problem(name, value, "it must be a whole number"));
        let switch = || value.parse().map_err(|_| problem(name, value, "it must be true or false"));
        match place {
            Place::Count(count) => {
                let expected = "it must be a whole number below 4294967296";
                *count = u32::try_from(number()?).map_err(|_| problem(name, value, expected))?;
            }
            Place::Bytes(bytes) => *bytes = number()?,
            Place::Time(time) => *time = Nanos(number()?),
            Place::Switch(on) => *on = switch()?,
            Place::Waiting(waiting) => {
                *waiting = if switch()? { Waiting::BusyRetry } else { Waiting::Fair };
            }
        }
        Ok(())
    }

    fn place(&mut self, name: &str) -> Option<Place<'_>> {
        Some(match name {
            "cores" => Place::Count(&mut self.cores),
            "cores_per_socket" => Place::Count(&mut self.cores_per_socket),
            "l3_bytes" => Place::Bytes(&mut self.l3_bytes),
            "ring_bytes" => Place::Bytes(&mut self.ring_bytes),
            "requests_max" => Place::Count(&mut self.requests_max),
            "read_submit_ns" => Place::Time(&mut self.read_submit_ns),
            "write_submit_ns" => Place::Time(&mut self.write_submit_ns),
            "ftl_read_ns" => Place::Time(&mut self.ftl_read_ns),
            "ftl_write_ns" => Place::Time(&mut self.ftl_write_ns),
            "other_submit_ns" => Place::Time(&mut self.other_submit_ns),
            "copy_page_ns" => Place::Time(&mut self.copy_page_ns),
            "completion_ns" => Place::Time(&mut self.completion_ns),
            "wake_up_ns" => Place::Time(&mut self.wake_up_ns),
            "lock_test_ns" => Place::Time(&mut self.lock_test_ns),
            "lock_page_ns" => Place::Time(&mut self.lock_page_ns),
            "yield_ns" => Place::Time(&mut self.yield_ns),
            "transfer_ns" => Place::Time(&mut self.transfer_ns),
            "map_lock_page_ns" => Place::Time(&mut self.map_lock_page_ns),
            "read_socket_ns" => Place::Time(&mut self.read_socket_ns),
            "copy_resident_percent" => Place::Count(&mut self.copy_resident_percent),
            "copy_remote_percent" => Place::Count(&mut self.copy_remote_percent),
            "writer_remote_page_ns" => Place::Time(&mut self.writer_remote_page_ns),
            "writers" => Place::Count(&mut self.writers),
            "writer_command_ns" => Place::Time(&mut self.writer_command_ns),
            "writer_page_ns" => Place::Time(&mut self.writer_page_ns),
            "gc_command_ns" => Place::Time(&mut self.gc_command_ns),
            "gc_page_ns" => Place::Time(&mut self.gc_page_ns),
            "busy_retry" => Place::Waiting(&mut self.waiting),
            "spinner_starvation" => Place::Switch(&mut self.spinner_starvation),
            "cross_socket" => Place::Switch(&mut self.cross_socket),
            "cache_residency" => Place::Switch(&mut self.cache_residency),
            "lock" => Place::Switch(&mut self.lock),
            _ => return None,
        })
    }
}

fn problem(field: &str, found: &str, expected: &str) -> Problem {
    Problem { field: field.to_owned(), found: format!("\"{found}\""), expected: expected.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preset_comes_first_and_is_changed_by_what_follows() {
        let host = HostCpuConfig::parse([
            ("preset", "e7-8870v3-x4"),
            ("cores", "36"),
            ("busy_retry", "false"),
            ("ring_bytes", "33554432"),
            ("yield_ns", "700"),
        ]);
        let host = host.expect("sound pairs").expect("a model");
        assert_eq!((host.cores, host.sockets(), host.ring_bytes), (36, 2, 32 << 20));
        assert_eq!((host.waiting, host.yield_ns), (Waiting::Fair, Nanos(700)));
        assert_eq!(HostCpuConfig::parse([("preset", "none")]), Ok(None));
        assert_eq!(HostCpuConfig::parse([]), Ok(None));
    }

    #[test]
    fn a_text_is_a_preset_and_options_after_a_colon() {
        let read = |text| HostCpuConfig::parse_text(text);
        let host = read("e7-8870v3-x4:cores=36,writers=4").expect("sound").expect("a model");
        assert_eq!((host.cores, host.writers), (36, 4));
        assert_eq!(read("none"), Ok(None));
        assert_eq!(read("free").map(|host| host.is_some()), Ok(true));
        for (text, says) in [
            ("xeon", "e7-8870v3-x4, free or none"),
            ("free:cores", "NAME=VALUE"),
            ("free:cores=0", "1 to 1024"),
            ("none:cores=4", "choose another preset"),
            ("", "e7-8870v3-x4, free or none"),
        ] {
            let said = read(text).expect_err(says).to_string();
            assert!(said.contains(says), "{said}");
        }
    }

    #[test]
    fn wrong_pairs_say_what_would_be_right() {
        let cases: [(&[(&str, &str)], &str); 8] = [
            (&[("cores", "4")], "preset must come first"),
            (&[("preset", "xeon")], "e7-8870v3-x4, free or none"),
            (&[("preset", "none"), ("cores", "4")], "choose another preset"),
            (&[("preset", "free"), ("core", "4")], "one of cores, cores_per_socket"),
            (&[("preset", "free"), ("cores", "four")], "cores is \"four\", but it must be a whole number"),
            (&[("preset", "free"), ("cores", "4294967296")], "below 4294967296"),
            (&[("preset", "free"), ("busy_retry", "1")], "true or false"),
            (&[("preset", "free"), ("cores", "0")], "1 to 1024"),
        ];
        for (pairs, says) in cases {
            let said = HostCpuConfig::parse(pairs.iter().copied()).expect_err(says).to_string();
            assert!(said.contains(says), "{said}");
        }
    }

    #[test]
    fn every_name_listed_can_be_set() {
        let mut config = HostCpuConfig::free();
        for name in NAMES {
            let set = ["7", "false"].map(|value| config.set(name, value).is_ok());
            assert_eq!(set.iter().filter(|&&ok| ok).count(), 1, "{name} takes a number or a switch");
        }
        assert_eq!((config.gc_page_ns, config.lock, config.waiting), (Nanos(7), false, Waiting::Fair));
    }
}
