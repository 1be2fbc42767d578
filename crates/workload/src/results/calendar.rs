//! Seconds since 1970 as fio's `time`: `Sat Nov 21 22:10:30 2026`, always in UTC.
//!
//! A date library would bring time zones and parsing for this one line.

const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [(&str, u64); 12] = [
    ("Jan", 31),
    ("Feb", 28),
    ("Mar", 31),
    ("Apr", 30),
    ("May", 31),
    ("Jun", 30),
    ("Jul", 31),
    ("Aug", 31),
    ("Sep", 30),
    ("Oct", 31),
    ("Nov", 30),
    ("Dec", 31),
];
/// Days in 400 Gregorian years, after which the calendar repeats, weekdays included.
const DAYS_PER_400_YEARS: u64 = 146_097;

/// `unix_secs` as the C library's `ctime` writes it, without the line end. Cost: at most 400 steps.
pub(super) fn ctime(unix_secs: u64) -> String {
    let (days, second) = (unix_secs / 86_400, unix_secs % 86_400);
    let weekday = WEEKDAYS[usize::try_from(days % 7).expect("below 7")];
    let mut year = 1970 + days / DAYS_PER_400_YEARS * 400;
    let mut day = days % DAYS_PER_400_YEARS;
    while day >= 365 + leap_day(year) {
        day -= 365 + leap_day(year);
        year += 1;
    }
    let mut months =
        MONTHS.iter().map(|&(name, length)| (name, length + if name == "Feb" { leap_day(year) } else { 0 }));
    let month = months.find(|&(_, length)| {
        let is_in_month = day < length;
        day -= if is_in_month { 0 } else { length };
        is_in_month
    });
    let (month, _) = month.expect("the day is in this year");
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{weekday} {month} {:2} {hour:02}:{minute:02}:{second:02} {year}", day + 1)
}

fn leap_day(year: u64) -> u64 {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    u64::from(is_leap)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_c_library() {
        // From `date -u -d @N "+%a %b %e %T %Y"`.
        let dates = [
            (0, "Thu Jan  1 00:00:00 1970"),
            (1_795_299_030, "Sat Nov 21 22:10:30 2026"),
            (951_782_399, "Mon Feb 28 23:59:59 2000"),
            (951_782_400, "Tue Feb 29 00:00:00 2000"),
            (4_107_542_399, "Sun Feb 28 23:59:59 2100"),
            (4_107_542_400, "Mon Mar  1 00:00:00 2100"),
            (1_735_689_599, "Tue Dec 31 23:59:59 2024"),
            (16_725_225_600, "Fri Jan  1 00:00:00 2500"),
        ];
        for (unix_secs, expected) in dates {
            assert_eq!(ctime(unix_secs), expected);
        }
    }
}
