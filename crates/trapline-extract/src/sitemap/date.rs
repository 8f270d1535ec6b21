//! Dates as sitemaps and feeds write them: W3C's profile of ISO 8601, RFC 2822, and what people make of the two.
//!
//! A date without a zone is in UTC, one without a day the first of its month, and so on. What is before 1970 counts as 1970:
//! it is old, and nobody needs to know how old.

use trapline_core::Timestamp;

/// Reads a date.
pub(super) fn read(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    let ms = if text.starts_with(|first: char| first.is_ascii_digit()) && !has_month_name(text) {
        iso(text)?
    } else {
        mail(text)?
    };
    Some(Timestamp::from_millis(u64::try_from(ms.max(0)).unwrap_or(0)))
}

/// `2026`, `2026-05`, `2026-05-01`, `2026-05-01T12:00`, `2026-05-01 12:00:00.123 +02:00`, `20260501`, with `/` or `.` for `-`.
fn iso(text: &str) -> Option<i64> {
    let split = text.find(|byte: char| byte == 'T' || byte == 't' || byte == ' ');
    let (date, time) = match split {
        Some(place) => (&text[..place], text[place + 1..].trim_start()),
        None => (text, ""),
    };
    let (year, month, day) = if date.len() == 8 && date.bytes().all(|byte| byte.is_ascii_digit()) {
        (number(&date[..4])?, number(&date[4..6])?, number(&date[6..])?)
    } else {
        let mut parts = date.split(['-', '/', '.']);
        let year = parts.next().filter(|year| year.len() == 4).and_then(number)?;
        let month = parts.next().map_or(Some(1), number)?;
        let day = parts.next().map_or(Some(1), number)?;
        if parts.next().is_some() {
            return None;
        }
        (year, month, day)
    };
    Some(midnight(year, month, day)? + clock(time)?)
}

/// `Fri, 01 May 2026 12:00:00 GMT`, with or without day of the week, seconds and zone.
fn mail(text: &str) -> Option<i64> {
    let text = text.split_once(',').map_or(text, |(_, rest)| rest).trim();
    let mut words = text.splitn(2, |byte: char| byte == ' ' || byte == '-');
    let first = words.next()?;
    let rest = words.next()?.trim_start();
    let mut words = rest.splitn(2, |byte: char| byte == ' ' || byte == '-');
    let (day, month) = (number(first)?, month_of(words.next()?)?);
    let rest = words.next()?.trim_start();
    let (year, time) = rest.split_once(' ').unwrap_or((rest, ""));
    let year = match year.len() {
        4 => number(year)?,
        2 => number(year).map(|year| if year < 70 { 2000 + year } else { 1900 + year })?,
        _ => return None,
    };
    Some(midnight(year, month, day)? + clock(time)?)
}

/// Milliseconds from midnight in UTC; a zone can make it less than none.
fn clock(text: &str) -> Option<i64> {
    let text = text.trim();
    if text.is_empty() {
        return Some(0);
    }
    let end = text.find(|byte: char| !(byte.is_ascii_digit() || matches!(byte, ':' | '.' | ','))).unwrap_or(text.len());
    let (time, zone) = text.split_at(end);
    let (time, fraction) = time.split_once(['.', ',']).unwrap_or((time, ""));
    let mut parts = time.split(':');
    let hours = parts.next().and_then(number)?;
    let minutes = parts.next().map_or(Some(0), number)?;
    let seconds = parts.next().map_or(Some(0), number)?;
    if hours > 24 || minutes > 59 || seconds > 60 || parts.next().is_some() {
        return None;
    }
    let fraction: String = fraction.chars().chain("000".chars()).take(3).collect();
    let ms = number(&fraction)?;
    Some(((hours * 60 + minutes) * 60 + seconds) * 1_000 + ms - zone_minutes(zone)? * 60_000)
}

/// Minutes ahead of UTC.
fn zone_minutes(zone: &str) -> Option<i64> {
    let zone = zone.trim();
    if let Some(digits) = zone.strip_prefix(['+', '-']) {
        let digits: String = digits.chars().filter(|character| *character != ':').collect();
        let minutes = match digits.len() {
            1 | 2 => number(&digits)? * 60,
            4 if digits.is_ascii() => number(&digits[..2])? * 60 + number(&digits[2..])?,
            _ => return None,
        };
        let sign = if zone.starts_with('-') { -1 } else { 1 };
        return (minutes <= 24 * 60).then_some(sign * minutes);
    }
    match zone.to_ascii_uppercase().as_str() {
        "" | "Z" | "UT" | "UTC" | "GMT" => Some(0),
        "EST" | "CDT" => Some(-5 * 60),
        "EDT" => Some(-4 * 60),
        "CST" | "MDT" => Some(-6 * 60),
        "MST" | "PDT" => Some(-7 * 60),
        "PST" => Some(-8 * 60),
        "CET" => Some(60),
        "CEST" => Some(2 * 60),
        _ => None,
    }
}

fn number(text: &str) -> Option<i64> {
    let digits = (1..=4).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok())?
}

fn month_of(word: &str) -> Option<i64> {
    const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let start = word.get(..3)?;
    let place = MONTHS.iter().position(|month| start.eq_ignore_ascii_case(month))?;
    i64::try_from(place + 1).ok()
}

/// Whether there are letters where a month could be: not at the end, where a zone is, nor a single one between date and time.
fn has_month_name(text: &str) -> bool {
    text.split(|byte: char| !byte.is_ascii_alphabetic()).any(|word| month_of(word).is_some())
}

/// Milliseconds from 1970 to the beginning of a day.
fn midnight(year: i64, month: i64, day: i64) -> Option<i64> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days_of_month = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => return None,
    };
    if !(1..=days_of_month).contains(&day) {
        return None;
    }
    // Years begin in March here, so that the odd day is the last.
    let year = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    Some((year * 365 + leap_days + day_of_year - 719_468) * 86_400_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<u64>) {
        assert_eq!(read(text).map(Timestamp::as_millis), expected, "{text}");
    }

    #[test]
    fn dates_are_read_as_people_write_them() {
        let day = 1_777_593_600_000; // 2026-05-01
        let noon = day + 12 * 3_600_000;
        for text in ["2026-05-01", "2026-05", " 2026-5-1 ", "2026/05/01", "2026.05.01", "20260501", "1 May 2026"] {
            check(text, Some(day));
        }
        for text in [
            "2026-05-01T12:00Z",
            "2026-05-01T12:00:00Z",
            "2026-05-01T12:00:00",
            "2026-05-01 12:00:00",
            "2026-05-01t12:00:00.000z",
            "2026-05-01T14:00:00+02:00",
            "2026-05-01T14:00:00+0200",
            "2026-05-01T14:00:00 +02",
            "2026-05-01T07:00:00-05:00",
            "Fri, 01 May 2026 12:00:00 GMT",
            "Fri, 1 May 26 12:00 UT",
            "Friday, 01-May-26 12:00:00 GMT",
            "01 May 2026 08:00:00 EDT",
            "Fri, 01 May 2026 14:00:00 +0200",
        ] {
            check(text, Some(noon));
        }
        check("2026-05-01T12:00:00.1239Z", Some(noon + 123));
        check("2000-02-29", Some(951_782_400_000));
        check("1969-12-31", Some(0));
        check("2026", Some(1_767_225_600_000));
        check("1970-01-01T01:00:00+02:00", Some(0));
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in [
            "", "x", "now", "2026-13-01", "2026-02-29", "2026-00-01", "26-05-01", "2026-05-01T25:00", "2026-05-01-01",
            "2026-05-01T12:61", "2026-05-01T12:00 FOO", "+2026", "2026-05-0१", "99999-01-01", "Fri, May 2026", "1 Mäy 2026",
            "2026-05-01T12:00+99:00", "May", ",", "1 May", "1 May 2026 1:2:3:4", "é", "12é-05", "0000000é",
        ] {
            check(text, None);
        }
    }
}
