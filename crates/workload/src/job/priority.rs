//! I/O priorities: `prio`, `prioclass`, and the `cmdprio` options, which give some I/Os another one.
//!
//! The drive has one priority for what the host asks, as an NVMe controller without weighted arbitration has: priorities
//! change nothing there. They are drawn, and latencies are reported for each, so that a job file that has them says here what
//! it says elsewhere. Source: HOWTO, `prio` to `cmdprio_bssplit` and `log_prio`; ioprio_set(2).

use super::list::share_of_size;
use super::number::{KbBase, parse_integer};
use super::pattern::ByDirection;

/// Classes of ioprio_set(2): none, real time, best effort, idle.
const CLASS_MAX: u64 = 3;
/// Levels of ioprio_set(2), 0 the highest.
const LEVEL_MAX: u64 = 7;
/// Bits of the level in Linux' ioprio value (`IOPRIO_CLASS_SHIFT`).
const CLASS_SHIFT: u32 = 13;

/// Linux' ioprio value: the class in the three highest bits, the level below.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct IoPriority(pub u16);

impl IoPriority {
    /// A class up to 3 and a level up to 7.
    ///
    /// # Panics
    /// If one is higher.
    #[must_use]
    pub fn new(class: u8, level: u8) -> Self {
        assert!(
            u64::from(class) <= CLASS_MAX && u64::from(level) <= LEVEL_MAX,
            "class {class}, level {level}"
        );
        Self(u16::from(class) << CLASS_SHIFT | u16::from(level))
    }

    /// 0 none, 1 real time, 2 best effort, 3 idle.
    #[must_use]
    pub const fn class(self) -> u16 {
        self.0 >> CLASS_SHIFT
    }

    /// 0 to 7, 0 the highest.
    #[must_use]
    pub const fn level(self) -> u16 {
        self.0 & ((1 << CLASS_SHIFT) - 1)
    }
}

/// A share of the I/Os of a size, and their priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriorityShare {
    /// Of I/Os of this many bytes; `None`: of any.
    pub bytes: Option<u64>,
    /// Percent of them, at most 100.
    pub percent: u8,
    /// Their priority; `None`: that of `cmdprio_class` and `cmdprio`.
    pub priority: Option<IoPriority>,
}

/// All options about priorities.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PriorityOptions {
    /// `prioclass`.
    pub class: u8,
    /// `prio`.
    pub level: u8,
    /// `cmdprio_class`; fio's default is 1 where some I/Os have a priority of their own.
    pub command_class: ByDirection<Option<u8>>,
    /// `cmdprio`.
    pub command_level: ByDirection<u8>,
    /// `cmdprio_percentage` or `cmdprio_bssplit`: which I/Os have it. Empty for none; trims have none.
    pub shares: ByDirection<Vec<PriorityShare>>,
}

impl PriorityOptions {
    /// The priority of I/Os that have none of their own.
    #[must_use]
    pub fn base(&self) -> IoPriority {
        IoPriority::new(self.class, self.level)
    }

    /// True if some I/Os may have a priority of their own.
    #[must_use]
    pub fn are_drawn(&self) -> bool {
        [&self.shares.read, &self.shares.write].iter().any(|shares| !shares.is_empty())
    }

    /// The priority of a share of a direction's I/Os.
    #[must_use]
    pub fn of_share(&self, share: &PriorityShare, is_read: bool) -> IoPriority {
        let (class, level) = if is_read {
            (self.command_class.read, self.command_level.read)
        } else {
            (self.command_class.write, self.command_level.write)
        };
        share.priority.unwrap_or_else(|| IoPriority::new(class.unwrap_or(1), level))
    }
}

fn at_most(text: &str, max: u64, what: &str) -> Result<u8, String> {
    let number = parse_integer(text, KbBase::Binary)?;
    let small = u8::try_from(number).ok().filter(|_| number <= max);
    small.ok_or_else(|| format!("expected {what} from 0 to {max}, but it is {number}"))
}

/// `prioclass`, `cmdprio_class`.
///
/// # Errors
/// If it is none of ioprio_set(2).
pub fn parse_class(text: &str) -> Result<u8, String> {
    at_most(text, CLASS_MAX, "a class")
}

/// `prio`, `cmdprio`.
///
/// # Errors
/// If it is none of ioprio_set(2).
pub fn parse_level(text: &str) -> Result<u8, String> {
    at_most(text, LEVEL_MAX, "a level")
}

/// `cmdprio_percentage` of one direction; 0 is no share.
///
/// # Errors
/// If it is above 100.
pub fn parse_percentage(text: &str) -> Result<Vec<PriorityShare>, String> {
    let percent = at_most(text, 100, "a percentage")?;
    Ok((percent > 0).then_some(PriorityShare { bytes: None, percent, priority: None }).into_iter().collect())
}

/// `cmdprio_bssplit` of one direction: `64k/25/1/1:64k/75/3/2:1024k/0`.
///
/// # Errors
/// A sentence naming the part that is wrong; also if the shares of a size are more than 100.
pub fn parse_priority_split(text: &str, kb_base: KbBase) -> Result<Vec<PriorityShare>, String> {
    let mut shares: Vec<PriorityShare> = Vec::new();
    for entry in text.split(':').filter(|entry| !entry.trim().is_empty()) {
        let parts: Vec<&str> = entry.split('/').map(str::trim).collect();
        let (bytes, percent) = share_of_size(&parts, entry, kb_base)?;
        let priority = match parts[..] {
            [_, _] => None,
            [_, _, class, level] => Some(IoPriority::new(parse_class(class)?, parse_level(level)?)),
            _ => {
                return Err(format!(
                    "expected size/percent or size/percent/class/level, as 64k/25/1/1, but found `{entry}`"
                ));
            }
        };
        shares.push(PriorityShare { bytes: Some(bytes), percent, priority });
        let of_size = shares.iter().filter(|share| share.bytes == Some(bytes));
        let sum: u32 = of_size.map(|share| u32::from(share.percent)).sum();
        if sum > 100 {
            return Err(format!("gives I/Os of {bytes} bytes {sum} percent of shares, more than 100"));
        }
    }
    shares.retain(|share| share.percent > 0);
    Ok(shares)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_priority_is_linuxs_number() {
        let idle = IoPriority::new(3, 2);
        assert_eq!((idle.0, idle.class(), idle.level()), (0x6002, 3, 2));
        assert_eq!(IoPriority::default(), IoPriority::new(0, 0));
    }

    #[test]
    fn splits_are_those_of_fio() {
        let parse = |text: &str| parse_priority_split(text, KbBase::Binary);
        let share = |bytes, percent, priority| PriorityShare { bytes: Some(bytes), percent, priority };
        assert_eq!(parse("64k/100:1024k/0"), Ok(vec![share(65_536, 100, None)]));
        let own = |class, level| Some(IoPriority::new(class, level));
        assert_eq!(
            parse("64k/25/1/1:64k/75/3/2:1024k/0"),
            Ok(vec![share(65_536, 25, own(1, 1)), share(65_536, 75, own(3, 2))])
        );
        assert_eq!(parse(""), Ok(Vec::new()));
    }

    #[test]
    fn what_no_kernel_takes_is_refused() {
        let refused = |text: &str| parse_priority_split(text, KbBase::Binary).expect_err(text);
        assert!(refused("64k").contains("size/percent"));
        assert!(refused("64k/20/1").contains("64k/25/1/1"));
        assert!(refused("64k/20/4/0").contains("a class from 0 to 3"));
        assert!(refused("64k/20/1/8").contains("a level from 0 to 7"));
        assert!(refused("64k/60:64k/60").contains("120 percent"));
        assert!(parse_percentage("101").is_err_and(|why| why.contains("from 0 to 100")));
        assert_eq!(parse_percentage("0"), Ok(Vec::new()));
    }
}
