//! What options can be: texts that mean something, numbers, switches, lists.
//!
//! How each is read and written, the mistakes included. Which options there are is said in `sections/`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use toml::de::DeValue;
use trapline_core::{format_duration, parse_duration};
use trapline_frontier::nearest;

use super::reading::{Given, Reading};
use crate::size;

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

/// Texts that their own types read and write.
macro_rules! by_text {
    ($($kind:ty: $form:literal;)*) => {
        $(impl Text for $kind {
            const FORM: &'static str = $form;

            fn of(text: &str) -> Result<Self, String> {
                parsed(text)
            }

            fn text(&self) -> String {
                self.to_string()
            }
        })*
    };
}

fn parsed<T: FromStr<Err: fmt::Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

by_text! {
    String: "a text in quotes";
    trapline_core::QueueKeyPolicy: "host, domain or buckets:N, in quotes";
    trapline_fetch::HostPattern: "a host in quotes, such as \"example.org\" or \"*.example.org\"";
    trapline_fetch::Network: "a network in quotes, such as \"10.0.0.0/8\"";
    trapline_fetch::Override: "host=address in quotes, such as \"shop.example=127.0.0.1:8080\"";
    trapline_fetch::Proxy: "the URL of a proxy in quotes, such as \"http://proxy.example:3128\"";
}

impl Text for PathBuf {
    const FORM: &'static str = "a path in quotes";

    fn of(text: &str) -> Result<Self, String> {
        if text.is_empty() { Err("a path has at least one letter".to_owned()) } else { Ok(text.into()) }
    }

    fn text(&self) -> String {
        self.display().to_string()
    }
}

impl Text for Duration {
    const FORM: &'static str = "a duration in quotes, such as \"250ms\" or \"2h\"";
    const NUMBERS: bool = true;

    fn of(text: &str) -> Result<Self, String> {
        parse_duration(text).map_err(|error| error.to_string())
    }

    fn text(&self) -> String {
        format_duration(*self)
    }
}

/// An amount of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Size(pub(crate) u64);

impl Size {
    pub(crate) const fn kib(count: u64) -> Self {
        Self(count << 10)
    }

    pub(crate) const fn mib(count: u64) -> Self {
        Self(count << 20)
    }

    /// As many as memory can have, if it is more.
    pub(crate) fn in_memory(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl Text for Size {
    const FORM: &'static str = "an amount of bytes in quotes, such as \"64KiB\" or \"10GiB\"";
    const NUMBERS: bool = true;

    fn of(text: &str) -> Result<Self, String> {
        size::parse(text).map(Self)
    }

    fn text(&self) -> String {
        size::format(self.0)
    }
}

impl Text for regex::Regex {
    const FORM: &'static str = "a regular expression in single quotes, such as '/page/\\d+$'";

    fn of(text: &str) -> Result<Self, String> {
        regex::Regex::new(text).map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => format!("the regular expression `{text}` is too large"),
            error => {
                // The library draws a picture over several lines; the last one says what is wrong.
                let told = error.to_string();
                let reason = told.lines().last().unwrap_or_default().trim_start_matches("error: ");
                format!("`{text}` is not a regular expression: {reason}")
            }
        })
    }

    fn text(&self) -> String {
        self.as_str().to_owned()
    }
}

/// Finds one of several by its name.
pub(crate) fn chosen<T: Copy>(text: &str, names: &[(&'static str, T)]) -> Result<T, String> {
    if let Some((_, value)) = names.iter().find(|(name, _)| *name == text) {
        return Ok(*value);
    }
    let known: Vec<_> = names.iter().map(|(name, _)| *name).collect();
    let near = nearest(text, &known).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    Err(format!("`{text}` is not one of {}{near}", known.join(", ")))
}

/// The name of one of several.
pub(crate) fn name_of<T: Copy + PartialEq>(value: T, names: &[(&'static str, T)]) -> String {
    names.iter().find(|(_, one)| *one == value).map_or("", |(name, _)| name).to_owned()
}

/// Values that are one of several names.
macro_rules! by_name {
    ($($kind:ty: $form:literal;)*) => {
        $(impl Text for $kind {
            const FORM: &'static str = $form;

            fn of(text: &str) -> Result<Self, String> {
                chosen(text, &<$kind>::NAMES)
            }

            fn text(&self) -> String {
                name_of(*self, &<$kind>::NAMES)
            }
        })*
    };
}

by_name! {
    trapline_core::ClassPolicy: "priority, score, depth, depth_first or cost, in quotes";
    trapline_core::CostPolicy: "zero, unit or wag, in quotes";
    trapline_frontier::Order: "fifo, lifo or date, in quotes";
    trapline_frontier::Pace: "settle or claim, in quotes";
}

/// A choice of our own: an enum with a name for each of its values.
macro_rules! choice {
    (
        $(#[doc = $about:literal])*
        $kind:ident: $form:literal {
            $($(#[doc = $doc:literal])* $variant:ident = $name:literal,)*
        }
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum $kind {
            $($(#[doc = $doc])* $variant,)*
        }

        impl $kind {
            const NAMES: &'static [(&'static str, Self)] = &[$(($name, Self::$variant)),*];
        }

        impl $crate::config::value::Text for $kind {
            const FORM: &'static str = $form;

            fn of(text: &str) -> Result<Self, String> {
                $crate::config::value::chosen(text, Self::NAMES)
            }

            fn text(&self) -> String {
                $crate::config::value::name_of(*self, Self::NAMES)
            }
        }
    };
}

pub(crate) use choice;

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
