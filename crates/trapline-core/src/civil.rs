//! Points in time as people and files write them: date and time of the Gregorian calendar, in UTC. Leap seconds do not exist here.

use std::fmt;

use crate::time::Timestamp;

const DAY_MS: u64 = 86_400_000;

/// A date and a time of day, in UTC. Displayed as RFC 3339 does, to the millisecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Civil {
    /// Such as 2026.
    pub year: u64,
    /// From 1.
    pub month: u64,
    /// From 1.
    pub day: u64,
    /// From 0 to 23.
    pub hour: u64,
    /// From 0.
    pub minute: u64,
    /// From 0.
    pub second: u64,
    /// From 0.
    pub millisecond: u64,
}

impl From<Timestamp> for Civil {
    fn from(at: Timestamp) -> Self {
        let (days, ms) = (at.as_millis() / DAY_MS, at.as_millis() % DAY_MS);
        // Years begin in March here, so that the odd day is the last.
        let days = days + 719_468;
        let (era, day_of_era) = (days / 146_097, days % 146_097);
        let year = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
        let month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        Self {
            year: era * 400 + year + u64::from(month <= 2),
            month,
            day,
            hour: ms / 3_600_000,
            minute: ms / 60_000 % 60,
            second: ms / 1_000 % 60,
            millisecond: ms % 1_000,
        }
    }
}

impl fmt::Display for Civil {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { year, month, day, hour, minute, second, millisecond } = self;
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millisecond:03}Z")
    }
}

/// Reads `2026-05-01T12:00:00Z`, with or without fractions of a second.
pub fn parse_utc(text: &str) -> Option<Timestamp> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let [year, month, day] = numbers(date, '-')?;
    let [hours, minutes, seconds] = numbers(time, ':')?;
    let fits = (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hours < 24
        && minutes < 60
        && seconds < 60;
    if !fits || fraction.is_empty() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let ms: u64 = format!("{fraction:0<3}")[..3].parse().ok()?;
    let midnight = Timestamp::from_millis(days(year, month, day) * DAY_MS);
    // The 31st of a month without one is another day.
    let date = Civil::from(midnight);
    if (date.year, date.month, date.day) != (year, month, day) {
        return None;
    }
    Some(Timestamp::from_millis(
        midnight.as_millis() + hours * 3_600_000 + minutes * 60_000 + seconds * 1_000 + ms,
    ))
}

fn numbers(text: &str, between: char) -> Option<[u64; 3]> {
    let mut parts = text.split(between).map(|part| {
        let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if digits { part.parse::<u64>().ok() } else { None }
    });
    let numbers = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(numbers)
}

/// Days from 1970 to a date of the Gregorian calendar. Years begin in March here, so that the odd day is the last.
fn days(year: u64, month: u64, day: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    year * 365 + year / 4 - year / 100 + year / 400 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_their_dates() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_709_164_800_001, "2024-02-29T00:00:00.001Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(Civil::from(Timestamp::from_millis(ms)).to_string(), text);
            assert_eq!(parse_utc(text), Some(Timestamp::from_millis(ms)));
        }
        assert!(Civil::from(Timestamp::MAX).year > 9999);
    }
}
