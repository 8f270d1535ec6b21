//! What a strategy is told when it is chosen: names with values.

use std::str::FromStr;
use std::time::Duration;

use regex::Regex;
use trapline_core::parse_duration;
use trapline_frontier::nearest;

/// Arguments, of which a strategy takes what it knows. What is left over in the end is a mistake.
#[derive(Debug)]
pub struct Arguments {
    given: Vec<(String, String)>,
    /// The names that were asked for.
    known: Vec<&'static str>,
}

/// An argument that a strategy cannot do with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentError {
    /// It knows none of that name.
    #[error("has no argument `{name}`{hint}")]
    Unknown {
        /// The name given.
        name: String,
        /// The nearest name, or those that there are.
        hint: String,
    },
    /// The value cannot be meant.
    #[error("cannot do with {name}={value}: {why}")]
    Wrong {
        /// The name.
        name: &'static str,
        /// The value given.
        value: String,
        /// What would do.
        why: String,
    },
    /// What may be said once was said twice.
    #[error("was given `{0}` twice")]
    Twice(&'static str),
}

impl Arguments {
    pub(super) fn new(given: &[(String, String)]) -> Self {
        Self { given: given.to_vec(), known: Vec::new() }
    }

    /// Takes all values of a name, in order.
    pub fn all(&mut self, name: &'static str) -> Vec<String> {
        self.known.push(name);
        let (taken, left) = std::mem::take(&mut self.given).into_iter().partition(|(given, _)| given == name);
        self.given = left;
        let taken: Vec<(String, String)> = taken;
        taken.into_iter().map(|(_, value)| value).collect()
    }

    /// Takes the value of a name, if it was given.
    pub fn one(&mut self, name: &'static str) -> Result<Option<String>, ArgumentError> {
        let mut all = self.all(name);
        if all.len() > 1 { Err(ArgumentError::Twice(name)) } else { Ok(all.pop()) }
    }

    /// Takes a number, or whatever else can be read from a text.
    pub fn number<T: FromStr>(&mut self, name: &'static str, usual: T) -> Result<T, ArgumentError> {
        let Some(value) = self.one(name)? else { return Ok(usual) };
        value.parse().map_err(|_| wrong(name, &value, "it is no number that fits"))
    }

    /// Takes a duration, such as `2h`.
    pub fn duration(&mut self, name: &'static str, usual: Duration) -> Result<Duration, ArgumentError> {
        let Some(value) = self.one(name)? else { return Ok(usual) };
        parse_duration(&value).map_err(|error| wrong(name, &value, &error.to_string()))
    }

    /// Takes regular expressions.
    pub fn patterns(&mut self, name: &'static str) -> Result<Vec<Regex>, ArgumentError> {
        let read = |value: String| Regex::new(&value).map_err(|error| wrong(name, &value, &short(&error)));
        self.all(name).into_iter().map(read).collect()
    }

    /// Nothing must be left.
    pub(super) fn end(self) -> Result<(), ArgumentError> {
        let Some((name, _)) = self.given.into_iter().next() else { return Ok(()) };
        let hint = match (nearest(&name, &self.known), self.known.as_slice()) {
            (Some(near), _) => format!("; did you mean `{near}`?"),
            (None, []) => "; it takes none".to_owned(),
            (None, known) => format!("; there are {}", known.join(", ")),
        };
        Err(ArgumentError::Unknown { name, hint })
    }
}

/// A value that cannot be meant.
pub(super) fn wrong(name: &'static str, value: &str, why: &str) -> ArgumentError {
    ArgumentError::Wrong { name, value: value.to_owned(), why: why.to_owned() }
}

/// What is wrong with a regular expression, on one line.
pub(super) fn short(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.trim_start_matches("error: ").to_owned()
}
