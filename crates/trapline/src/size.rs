//! Amounts of bytes as people write them: `512MiB`, `10GiB`, plain `0`; and as they read them.

/// Units by name, the largest first.
const UNITS: [(&str, u64); 5] =
    [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

/// Reads an amount of bytes. Units may be written in any case; one is needed, but for 0.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let wrong = || {
        format!(
            "`{text}` is not an amount of bytes: write digits and a unit (B, KiB, MiB, GiB or TiB), such as 512MiB or 10GiB, or \
             plain 0"
        )
    };
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    if number.is_empty() {
        return Err(wrong());
    }
    let unit = match UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)) {
        Some((_, bytes)) => *bytes,
        None if unit.is_empty() && number.bytes().all(|digit| digit == b'0') => 1,
        None => return Err(wrong()),
    };
    let bytes = number.parse().ok().and_then(|number: u64| number.checked_mul(unit));
    bytes.ok_or_else(|| format!("`{text}` is more bytes than can be counted"))
}

/// Writes an amount of bytes in the largest unit that keeps it whole, the way [`parse`] reads it.
pub(crate) fn format(bytes: u64) -> String {
    let unit = UNITS.iter().find(|(_, unit)| bytes.is_multiple_of(*unit));
    match unit {
        Some((name, unit)) if bytes > 0 => format!("{}{name}", bytes / unit),
        _ => "0".to_owned(),
    }
}

/// Tells people about how many bytes those are: `1.5 GiB`.
pub(crate) fn about(bytes: u64) -> String {
    let unit = UNITS.iter().find(|(_, unit)| bytes >= *unit && *unit > 1);
    unit.map_or_else(
        || format!("{bytes} B"),
        |(name, unit)| format!("{:.1} {name}", bytes as f64 / *unit as f64),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_units() {
        for (text, bytes) in [
            ("0", 0),
            ("0GiB", 0),
            ("100B", 100),
            ("64KiB", 65_536),
            ("512MiB", 512 << 20),
            ("512mib", 512 << 20),
            ("10GiB", 10 << 30),
            ("2TiB", 2 << 40),
            ("18446744073709551615B", u64::MAX),
        ] {
            assert_eq!(parse(text), Ok(bytes), "{text}");
            assert_eq!(parse(&format(bytes)), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn amounts_are_written_in_the_largest_unit() {
        for (bytes, text) in
            [(0, "0"), (1, "1B"), (1500, "1500B"), (65_536, "64KiB"), (16 << 20, "16MiB"), (1 << 40, "1TiB")]
        {
            assert_eq!(format(bytes), text);
        }
    }

    #[test]
    fn people_are_told_about_how_much_it_is() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1 << 20, "1.0 MiB"),
            ((1 << 30) + (1 << 29), "1.5 GiB"),
            (u64::MAX, "16777216.0 TiB"),
        ] {
            assert_eq!(about(bytes), text);
        }
    }

    #[test]
    fn what_is_no_amount_is_told() {
        for text in ["", "1", "GiB", "-1GiB", "1.5GiB", "1GB", "1 GiB", "1G", "1GiBs", "٣GiB"] {
            let message = format!(
                "`{text}` is not an amount of bytes: write digits and a unit (B, KiB, MiB, GiB or TiB), such as 512MiB or \
                 10GiB, or plain 0"
            );
            assert_eq!(parse(text), Err(message));
        }
        for text in ["18446744073709551616B", "99999999999TiB"] {
            assert_eq!(parse(text), Err(format!("`{text}` is more bytes than can be counted")));
        }
    }
}
