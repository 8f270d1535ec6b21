//! What options can be: texts, numbers, switches, lists. How each is read and written, the mistakes included.
//!
//! Which texts mean something is said in `texts.rs`, and which options there are in `sections/`.

use http::{HeaderMap, HeaderName, HeaderValue};
use toml::de::DeValue;

use super::reading::{Given, Reading};

/// Something that an option can be.
pub(crate) trait Value: Sized {
    /// Reads it, or notes what is wrong.
    fn read(value: &Given<'_>, reading: &mut Reading<'_>) -> Option<Self>;

    /// Writes it as TOML.
    fn write(&self) -> String;
}

/// A value that is a text in quotes.
pub(crate) trait Text: Sized {
    /// What it is called where something else stands in its place, with an example.
    const FORM: &'static str;

    /// Whether numbers are read too, as if they stood in quotes.
    const NUMBERS: bool = false;

    fn of(text: &str) -> Result<Self, String>;

    fn text(&self) -> String;
}

impl<T: Text> Value for T {
    fn read(value: &Given<'_>, reading: &mut Reading<'_>) -> Option<Self> {
        let read = match value.get_ref() {
            DeValue::String(text) => T::of(text),
            DeValue::Integer(number) if T::NUMBERS => T::of(number.as_str()),
            other => Err(misfit(other, T::FORM)),
        };
        read.map_err(|message| reading.wrong(value.span(), message)).ok()
    }

    fn write(&self) -> String {
        quoted(&self.text())
    }
}

/// What is told where a value of another kind was expected.
pub(crate) fn misfit(value: &DeValue<'_>, form: &str) -> String {
    let kind = match value {
        DeValue::String(text) => return format!("`{text}` does not fit: write {form}"),
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    };
    format!("here stands {kind}: write {form}")
}

/// A text as TOML writes it, on one line.
pub(crate) fn quoted(text: &str) -> String {
    // A literal spares regular expressions their second backslashes.
    let plain = |c: char| !c.is_control() && c != '\'';
    if text.contains(['\\', '"']) && text.chars().all(plain) {
        return format!("'{text}'");
    }
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

impl Value for bool {
    fn read(value: &Given<'_>, reading: &mut Reading<'_>) -> Option<Self> {
        match value.get_ref() {
            DeValue::Boolean(yes) => return Some(*yes),
            DeValue::String(text) if reading.is_bare() && text == "true" => return Some(true),
            DeValue::String(text) if reading.is_bare() && text == "false" => return Some(false),
            other => reading.wrong(value.span(), misfit(other, "true or false, without quotes")),
        }
        None
    }

    fn write(&self) -> String {
        self.to_string()
    }
}

/// Whole numbers that are not negative.
macro_rules! whole_numbers {
    ($($kind:ty),*) => {
        $(impl Value for $kind {
            fn read(value: &Given<'_>, reading: &mut Reading<'_>) -> Option<Self> {
                let form = format!("a whole number from 0 to {}, without quotes", <$kind>::MAX);
                let (read, text) = match value.get_ref() {
                    DeValue::Integer(number) => {
                        (<$kind>::from_str_radix(number.as_str(), number.radix()).ok(), number.to_string())
                    }
                    DeValue::String(text) if reading.is_bare() => (text.parse().ok(), text.to_string()),
                    other => {
                        reading.wrong(value.span(), misfit(other, &form));
                        return None;
                    }
                };
                if read.is_none() {
                    reading.wrong(value.span(), format!("`{text}` does not fit: write {form}"));
                }
                read
            }

            fn write(&self) -> String {
                self.to_string()
            }
        })*
    };
}

whole_numbers!(u8, u16, u32, u64, usize);

impl Value for f64 {
    fn read(value: &Given<'_>, reading: &mut Reading<'_>) -> Option<Self> {
        let text = match value.get_ref() {
            DeValue::Float(number) => number.as_str(),
            DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
            DeValue::String(text) if reading.is_bare() => text,
            _ => "",
        };
        let read = text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
        if read.is_none() {
            let message =
                misfit(value.get_ref(), "a number that is not negative, such as 1.5, without quotes");
            reading.wrong(value.span(), message);
        }
        read
    }

    fn write(&self) -> String {
        // With a point, so that it is seen to be allowed.
        format!("{self:?}")
    }
}

/// What stands for nothing: TOML has no word for it.
const NONE: &str = "none";

impl<T: Value> Value for Option<T> {
    fn read(value: &Given<'_>, reading: &mut Reading<'_>) -> Option<Self> {
        match value.get_ref() {
            DeValue::String(text) if text == NONE => Some(None),
            _ => T::read(value, reading).map(Some),
        }
    }

    fn write(&self) -> String {
        self.as_ref().map_or_else(|| quoted(NONE), T::write)
    }
}

impl<T: Value> Value for Vec<T> {
    fn read(value: &Given<'_>, reading: &mut Reading<'_>) -> Option<Self> {
        match value.get_ref() {
            DeValue::Array(entries) => {
                let mut read = Vec::new();
                for (place, entry) in entries.iter().enumerate() {
                    let name = format!("[{}]", place + 1);
                    read.extend(reading.within(&name, |reading| T::read(entry, reading)));
                }
                (read.len() == entries.len()).then_some(read)
            }
            DeValue::String(text) if reading.is_bare() && text.trim().is_empty() => Some(Vec::new()),
            DeValue::String(text) if reading.is_bare() && text.starts_with('[') => {
                reading.unfold(text, value.span(), Self::read)
            }
            _ if reading.is_bare() => T::read(value, reading).map(|one| vec![one]),
            other => {
                reading
                    .wrong(value.span(), misfit(other, "a list in brackets, such as [\"a\", \"b\"] or []"));
                None
            }
        }
    }

    fn write(&self) -> String {
        let entries: Vec<_> = self.iter().map(T::write).collect();
        let line = format!("[{}]", entries.join(", "));
        if line.len() <= 90 {
            return line;
        }
        let lines: Vec<_> = entries.iter().map(|entry| format!("    {entry},\n")).collect();
        format!("[\n{}]", lines.concat())
    }
}

impl Value for HeaderMap {
    fn read(value: &Given<'_>, reading: &mut Reading<'_>) -> Option<Self> {
        let form = "headers in braces, such as { Accept-Language = \"de\" } or {}";
        let table = match value.get_ref() {
            DeValue::Table(table) => table,
            DeValue::String(text) if reading.is_bare() && text.starts_with('{') => {
                return reading.unfold(text, value.span(), Self::read);
            }
            other => {
                reading.wrong(value.span(), misfit(other, form));
                return None;
            }
        };
        let mut headers = HeaderMap::new();
        for (key, value) in table {
            reading.within(key.get_ref(), |reading| {
                let Ok(name) = key.get_ref().parse::<HeaderName>() else {
                    return reading.wrong(key.span(), "this is not the name of a header");
                };
                let Some(text) = String::read(value, reading) else { return };
                match HeaderValue::from_str(&text) {
                    Ok(value) => drop(headers.append(name, value)),
                    Err(_) => reading.wrong(value.span(), "a header cannot have control characters"),
                }
            });
        }
        (headers.len() == table.len()).then_some(headers)
    }

    fn write(&self) -> String {
        if self.is_empty() {
            return "{}".to_owned();
        }
        let pairs = self.iter().map(|(name, value)| {
            format!("{} = {}", quoted(name.as_str()), quoted(&String::from_utf8_lossy(value.as_bytes())))
        });
        format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
    }
}
