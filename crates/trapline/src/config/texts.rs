//! Texts in quotes that mean something: durations, sizes, patterns, one of several names.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use trapline_core::{format_duration, parse_duration};
use trapline_frontier::nearest;

use super::value::Text;
use crate::size;

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
    trapline_fetch::HostPattern: "a host in quotes, such as \"example.org\", \"domain:example.org\", \"*.example.org\" or \"192.0.2.1\"";
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
    trapline_crawl::candidate::FingerprintFunction: "sha1, md5 or hostname_local, in quotes";
    trapline_crawl::disposition::CanonicalSolver: "first_url, last_url or declared, in quotes";
    trapline_crawl::RobotsPolicy: "obey, robots_txt, most_favored or ignore, in quotes";
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
                $crate::config::texts::chosen(text, Self::NAMES)
            }

            fn text(&self) -> String {
                $crate::config::texts::name_of(*self, Self::NAMES)
            }
        }
    };
}

pub(crate) use choice;
