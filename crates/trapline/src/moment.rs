//! The clock of this process, and points in time as people write them: in UTC, or from now on.

use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use trapline_core::{Civil, Timestamp, parse_duration, parse_utc};

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
    Civil::from(at).to_string()
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
    parse_utc(text).ok_or_else(|| {
        format!(
            "`{text}` is not a time: write 2026-05-01T12:00:00Z, or a duration from now, such as 90s or 2h"
        )
    })
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
