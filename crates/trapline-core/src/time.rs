//! Points in time, and the small language in which durations are written.
//!
//! Not a clock: nothing here knows what time it is.

use std::fmt;
use std::ops::Add;
use std::time::Duration;

/// A point in time, in milliseconds since an origin the caller chooses: the Unix epoch in a crawl, the
/// start of the script in a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The origin.
    pub const ZERO: Self = Self(0);
    /// Later than everything.
    pub const MAX: Self = Self(u64::MAX);

    /// The point `millis` milliseconds after the origin.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the origin.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// How long ago `earlier` was; zero if it lies ahead.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Timestamp {
    type Output = Self;

    /// Saturates: a deadline past the end of time is the end of time. Fractions of a millisecond round up,
    /// so that no delay becomes shorter than it was asked for.
    fn add(self, duration: Duration) -> Self {
        let whole = duration.as_secs().saturating_mul(1000);
        let part = u64::from(duration.subsec_nanos().div_ceil(1_000_000));
        Self(self.0.saturating_add(whole).saturating_add(part))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format_duration(Duration::from_millis(self.0)))
    }
}

const UNITS: [(&str, u64); 5] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// Reads `0`, `250ms`, `60s`, `5m`, `2h` or `3d`.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let error = || DurationError(text.to_owned());
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| error())?;
    let (_, millis) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(error)?;
    number.checked_mul(*millis).map(Duration::from_millis).ok_or_else(error)
}

/// Writes a duration in the largest unit that keeps it whole, the way [`parse_duration`] reads it.
pub fn format_duration(duration: Duration) -> String {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    if millis == 0 {
        return "0".to_owned();
    }
    let (unit, size) =
        UNITS.iter().rev().find(|(_, size)| millis % size == 0).expect("one millisecond divides everything");
    format!("{}{unit}", millis / size)
}

/// A duration that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a duration: write digits and a unit (ms, s, m, h or d), such as 250ms or 2h, or plain 0"
)]
pub struct DurationError(String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_written_alike() {
        for (text, millis) in [
            ("0", 0),
            ("1ms", 1),
            ("250ms", 250),
            ("60s", 60_000),
            ("1500ms", 1_500),
            ("5m", 300_000),
            ("2h", 7_200_000),
            ("3d", 259_200_000),
        ] {
            assert_eq!(parse_duration(text).unwrap(), Duration::from_millis(millis), "{text}");
            assert_eq!(
                parse_duration(&format_duration(Duration::from_millis(millis))).unwrap().as_millis(),
                millis.into()
            );
        }
        for bad in
            ["", "5", "s", "-1s", "1.5s", "1 s", "5min", "99999999999999999999s", "18446744073709551615d"]
        {
            let error = parse_duration(bad).unwrap_err().to_string();
            assert!(error.contains("is not a duration"), "{bad}: {error}");
        }
    }

    #[test]
    fn a_delay_never_becomes_shorter_by_rounding() {
        let half = Timestamp::from_millis(10) + Duration::from_micros(500);
        assert_eq!(half, Timestamp::from_millis(11));
        assert_eq!(Timestamp::MAX + Duration::from_secs(1), Timestamp::MAX);
    }
}
