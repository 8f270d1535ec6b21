//! The clock of this process, and points in time as people write them: in UTC, or from now on.

use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use trapline_core::{Timestamp, parse_duration};

const DAY_MS: u64 = 86_400_000;

/// What a clock said that is followed instead of the machine's, and when.
static FOLLOWED: OnceLock<(Timestamp, Instant)> = OnceLock::new();

/// Follows another clock from now on: that of a store which others use too. The first one that is followed stays it.
pub(crate) fn follow(says: Timestamp) {
    let _ = FOLLOWED.set((says, Instant::now()));
}

/// What the clock says: the machine's, or the one that is followed.
pub(crate) fn now() -> Timestamp {
    if let Some((said, then)) = FOLLOWED.get() {
        return *said + then.elapsed();
    }
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// Writes a time as RFC 3339 does, to the millisecond.
pub(crate) fn write(at: Timestamp) -> String {
    let (days, ms) = (at.as_millis() / DAY_MS, at.as_millis() % DAY_MS);
    let (year, month, day) = date(days);
    let (hours, minutes, seconds) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}.{:03}Z", ms % 1_000)
}

/// Points in time that a store wrote into a sentence, as dates. It knows no calendar, and counts from 1970.
pub(crate) fn dated(sentence: &str) -> String {
    /// The year 2001: what is before is no point in time but how long something takes.
    const EARLIEST: u64 = 1_000_000_000_000;
    let word = |word: &str| {
        let bare = word.trim_end_matches([',', ';', '.']);
        let at = parse_duration(bare).ok().and_then(|since| u64::try_from(since.as_millis()).ok());
        match at.filter(|at| *at >= EARLIEST) {
            Some(at) => format!("{}{}", write(Timestamp::from_millis(at)), &word[bare.len()..]),
            None => word.to_owned(),
        }
    };
    sentence.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// Reads `2026-05-01T12:00:00Z`, with or without fractions of a second, or a duration from now.
pub(crate) fn read(text: &str, now: Timestamp) -> Result<Timestamp, String> {
    if let Ok(duration) = parse_duration(text) {
        return Ok(now + duration);
    }
    read_utc(text).ok_or_else(|| {
        format!(
            "`{text}` is not a time: write 2026-05-01T12:00:00Z, or a duration from now, such as 90s or 2h"
        )
    })
}

/// Reads `2026-05-01T12:00:00Z`, with or without fractions of a second.
pub(crate) fn read_utc(text: &str) -> Option<Timestamp> {
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
    let days = days(year, month, day);
    // The 31st of a month without one is another day.
    if self::date(days) != (year, month, day) {
        return None;
    }
    Some(Timestamp::from_millis(days * DAY_MS + hours * 3_600_000 + minutes * 60_000 + seconds * 1_000 + ms))
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

/// The date that is so many days after the beginning of 1970.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_store_wrote_of_times_is_dated() {
        for (said, expected) in [
            (
                "served again at 1777636800000ms, when the period ends",
                "served again at 2026-05-01T12:00:00.000Z, when the period ends",
            ),
            ("blocked until 20574d", "blocked until 2026-05-01T00:00:00.000Z"),
            ("it waits 60s and 3d, h2 5", "it waits 60s and 3d, h2 5"),
            ("", ""),
        ] {
            assert_eq!(dated(said), expected);
        }
    }

    #[test]
    fn times_are_written_and_read_alike() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_709_164_800_001, "2024-02-29T00:00:00.001Z"),
            (1_767_225_599_999, "2025-12-31T23:59:59.999Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(write(Timestamp::from_millis(ms)), text);
            assert_eq!(read(text, Timestamp::ZERO), Ok(Timestamp::from_millis(ms)), "{text}");
        }
        write(Timestamp::MAX);
    }

    #[test]
    fn times_are_also_durations_from_now() {
        let now = Timestamp::from_millis(1_000);
        assert_eq!(read("0", now), Ok(now));
        assert_eq!(read("2s", now), Ok(Timestamp::from_millis(3_000)));
        assert_eq!(read("1970-01-01T00:00:05Z", now), Ok(Timestamp::from_millis(5_000)));
        assert_eq!(read("1970-01-01T00:00:05.25Z", now), Ok(Timestamp::from_millis(5_250)));
        for bad in [
            "",
            "soon",
            "2026-05-01",
            "2026-05-01T12:00:00",
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00.+1Z",
            "1969-12-31T23:59:59Z",
            "99999999999999999999-01-01T00:00:00Z",
        ] {
            let error = read(bad, now).unwrap_err();
            assert!(error.contains("is not a time: write 2026-05-01T12:00:00Z"), "{error}");
        }
    }
}
