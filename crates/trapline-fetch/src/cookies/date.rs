//! Dates of cookies, which come in every shape: the forgiving reading of RFC 6265, section 5.1.1.

/// Seconds since 1970, or None if there is no date in the text. Dates before are the beginning.
pub(super) fn read(text: &str) -> Option<u64> {
    let (mut time, mut day, mut month, mut year) = (None, None, None, None);
    let between = |c: char| !(c.is_ascii_alphanumeric() || c == ':');
    for token in text.split(between).filter(|token| !token.is_empty()) {
        if time.is_none() && token.contains(':') {
            time = Some(read_time(token)?);
        } else if day.is_none() && leading_number(token, 2).is_some() {
            day = leading_number(token, 2);
        } else if month.is_none() && read_month(token).is_some() {
            month = read_month(token);
        } else if year.is_none() {
            year = leading_number(token, 4).filter(|_| token.len() >= 2);
        }
    }
    let (time, day, month, year) = (time?, day?, month?, year?);
    let year = match year {
        0..=69 => year + 2000,
        70..=99 => year + 1900,
        _ => year,
    };
    if !(1601..=9999).contains(&year) || !(1..=31).contains(&day) {
        return None;
    }
    let days = days_since_1970(year as i64, month as i64, day as i64);
    Some(u64::try_from(days * 86_400 + time).unwrap_or(0))
}

/// Seconds of the day.
fn read_time(token: &str) -> Option<i64> {
    let mut parts = token.splitn(3, ':').map(|part| leading_number(part, 2));
    let (hours, minutes, seconds) = (parts.next()??, parts.next()??, parts.next()??);
    let fits = hours < 24 && minutes < 60 && seconds < 60;
    fits.then_some(i64::from(hours) * 3600 + i64::from(minutes) * 60 + i64::from(seconds))
}

/// The number at the beginning of a text, if it has at most so many digits.
fn leading_number(text: &str, digits_max: usize) -> Option<u32> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    (1..=digits_max).contains(&digits).then(|| text[..digits].parse().ok())?
}

fn read_month(token: &str) -> Option<u32> {
    const MONTHS: [&str; 12] =
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let token = token.get(..3)?.to_ascii_lowercase();
    (1..).zip(MONTHS).find(|(_, name)| *name == token).map(|(number, _)| number)
}

/// Days of the Gregorian calendar. Years begin in March here, so that the odd day is the last.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    year * 365 + year / 4 - year / 100 + year / 400 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_every_shape_are_read() {
        for (text, expected) in [
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777)),
            ("Sunday, 06-Nov-94 08:49:37 GMT", Some(784_111_777)),
            ("Sun Nov  6 08:49:37 1994", Some(784_111_777)),
            ("06 nov 1994 8:49:37", Some(784_111_777)),
            ("1 Jan 1970 00:00:00", Some(0)),
            ("1 Jan 1650 00:00:00", Some(0)),
            ("29 Feb 2000 00:00:00", Some(951_782_400)),
            ("", None),
            ("tomorrow", None),
            ("06 Nov 1994", None),
            ("32 Nov 1994 08:49:37", None),
            ("06 Nov 1994 24:00:00", None),
            ("06 Nov 1600 08:49:37", None),
            ("99999999999999999999 Nov 1994 08:49:37", None),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }
}
