//! The fields of a JSON object that somebody wrote: taken one by one, with mistakes named. What nobody takes is a
//! mistake too, so that a slip of the hand is not passed over in silence.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value};
use trapline_core::{Timestamp, parse_duration};

use super::{bytes, moment};

/// The fields that were not taken yet.
#[derive(Debug)]
pub(super) struct Fields {
    rest: Map<String, Value>,
    /// What was looked for, for those who wrote something else.
    known: Vec<&'static str>,
}

impl Fields {
    /// Reads a JSON object.
    pub(super) fn read(line: &str) -> Result<Self, String> {
        match serde_json::from_str(line).map_err(|error| format!("it is not JSON: {error}"))? {
            Value::Object(object) => Ok(object.into()),
            _ => Err("it is JSON, but not an object".to_owned()),
        }
    }

    /// Takes a value out; null counts as not given.
    pub(super) fn value(&mut self, name: &'static str) -> Option<Value> {
        self.known.push(name);
        self.rest.remove(name).filter(|value| !value.is_null())
    }

    pub(super) fn text(&mut self, name: &'static str) -> Result<Option<String>, String> {
        self.value(name).map(|value| text(name, value)).transpose()
    }

    pub(super) fn needed_text(&mut self, name: &'static str) -> Result<String, String> {
        self.text(name)?.ok_or_else(|| format!("it has no `{name}`"))
    }

    pub(super) fn flag(&mut self, name: &'static str) -> Result<bool, String> {
        match self.value(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(value) => Err(format!("`{name}` is {}, and should be true or false", brief(&value))),
        }
    }

    pub(super) fn number<N: TryFrom<i128>>(&mut self, name: &'static str) -> Result<Option<N>, String> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let number = value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from));
        match number.and_then(|number| N::try_from(number).ok()) {
            Some(number) => Ok(Some(number)),
            None => Err(format!("`{name}` is {}, and should be a whole number that fits", brief(&value))),
        }
    }

    pub(super) fn duration(&mut self, name: &'static str) -> Result<Option<Duration>, String> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        parse_duration(&text).map(Some).map_err(|error| format!("`{name}`: {error}"))
    }

    pub(super) fn time(&mut self, name: &'static str, now: Timestamp) -> Result<Option<Timestamp>, String> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        moment::read(&text, now).map(Some).map_err(|error| format!("`{name}`: {error}"))
    }

    pub(super) fn list(&mut self, name: &'static str) -> Result<Vec<Value>, String> {
        match self.value(name) {
            None => Ok(Vec::new()),
            Some(Value::Array(values)) => Ok(values),
            Some(value) => Err(format!("`{name}` is {}, and should be a list", brief(&value))),
        }
    }

    pub(super) fn texts(&mut self, name: &'static str) -> Result<Vec<String>, String> {
        self.list(name)?.into_iter().map(|value| text(name, value)).collect()
    }

    /// An object of texts, or a list of pairs where a name comes twice.
    pub(super) fn pairs(&mut self, name: &'static str) -> Result<Vec<(String, String)>, String> {
        match self.value(name) {
            None => Ok(Vec::new()),
            Some(Value::Object(object)) => {
                object.into_iter().map(|(key, value)| Ok((key, text(name, value)?))).collect()
            }
            Some(Value::Array(values)) => values.into_iter().map(|value| pair(name, value)).collect(),
            Some(value) => {
                Err(format!("`{name}` is {}, and should be an object or a list of pairs", brief(&value)))
            }
        }
    }

    /// The same with values that may be bytes.
    pub(super) fn byte_pairs(&mut self, name: &'static str) -> Result<Vec<(String, Vec<u8>)>, String> {
        let pairs = match self.value(name) {
            None => return Ok(Vec::new()),
            Some(Value::Object(object)) => {
                object.into_iter().map(|(key, value)| Value::Array(vec![Value::String(key), value])).collect()
            }
            Some(Value::Array(pairs)) => pairs,
            Some(value) => {
                return Err(format!(
                    "`{name}` is {}, and should be an object or a list of pairs",
                    brief(&value)
                ));
            }
        };
        let pairs = pairs.into_iter().map(|pair| {
            let (key, value) = split_pair(name, pair)?;
            Ok((text(name, key)?, bytes_of(name, value)?))
        });
        pairs.collect()
    }

    /// Bytes: a text, or `{"hex":"00ff"}`.
    pub(super) fn bytes(&mut self, name: &'static str) -> Result<Option<Vec<u8>>, String> {
        self.value(name).map(|value| bytes_of(name, value)).transpose()
    }

    /// Another object.
    pub(super) fn object(&mut self, name: &'static str) -> Result<Option<Self>, String> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::Object(object)) => Ok(Some(object.into())),
            Some(value) => Err(format!("`{name}` is {}, and should be an object", brief(&value))),
        }
    }

    /// Whether a field is there that was not taken yet.
    pub(super) fn has(&self, name: &str) -> bool {
        self.rest.contains_key(name)
    }

    /// What was not taken, as it is.
    pub(super) fn into_rest(self) -> Map<String, Value> {
        self.rest
    }

    /// A time to the millisecond: as people write it, or the milliseconds since 1970.
    pub(super) fn instant(&mut self, name: &'static str) -> Result<Option<Timestamp>, String> {
        match self.value(name) {
            None => Ok(None),
            Some(value) => match (value.as_u64(), value.as_str().and_then(trapline_core::parse_utc)) {
                (Some(millis), _) => Ok(Some(Timestamp::from_millis(millis))),
                (None, Some(at)) => Ok(Some(at)),
                (None, None) => Err(format!(
                    "`{name}` is {}, and should be a time such as \"2026-05-01T12:00:00.000Z\", or milliseconds since 1970",
                    brief(&value)
                )),
            },
        }
    }

    /// An object of lists of texts; a text alone is a list of one.
    pub(super) fn lists(&mut self, name: &'static str) -> Result<BTreeMap<String, Vec<String>>, String> {
        let object = match self.value(name) {
            None => return Ok(BTreeMap::new()),
            Some(Value::Object(object)) => object,
            Some(value) => return Err(format!("`{name}` is {}, and should be an object", brief(&value))),
        };
        let lists = object.into_iter().map(|(key, value)| {
            let values = if let Value::Array(values) = value { values } else { vec![value] };
            let texts: Result<Vec<_>, _> = values.into_iter().map(|value| text(name, value)).collect();
            Ok((key, texts?))
        });
        lists.collect()
    }

    /// Nothing may be left.
    pub(super) fn end(self) -> Result<(), String> {
        match self.rest.keys().next() {
            None => Ok(()),
            Some(name) => Err(format!("`{name}` means nothing here; fields are {}", self.known.join(", "))),
        }
    }
}

impl From<Map<String, Value>> for Fields {
    fn from(rest: Map<String, Value>) -> Self {
        Self { rest, known: Vec::new() }
    }
}

fn text(name: &str, value: Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text),
        value => Err(format!("`{name}` has {}, where a text should be", brief(&value))),
    }
}

fn pair(name: &str, value: Value) -> Result<(String, String), String> {
    let (key, value) = split_pair(name, value)?;
    Ok((text(name, key)?, text(name, value)?))
}

fn split_pair(name: &str, value: Value) -> Result<(Value, Value), String> {
    match value {
        Value::Array(pair) => match <[Value; 2]>::try_from(pair) {
            Ok([key, value]) => Ok((key, value)),
            Err(_) => Err(format!("`{name}` has something in it that is not a pair")),
        },
        value => Err(format!("`{name}` has {}, where a pair should be", brief(&value))),
    }
}

fn bytes_of(name: &str, value: Value) -> Result<Vec<u8>, String> {
    let told = if value.is_string() { String::new() } else { brief(&value) };
    bytes::read(value)
        .ok_or_else(|| format!("`{name}` has {told}, where a text or {{\"hex\":\"00ff\"}} should be"))
}

/// As much of a value as a message can bear.
pub(super) fn brief(value: &Value) -> String {
    const CHARS: usize = 80;
    let text = value.to_string();
    match text.char_indices().nth(CHARS) {
        None => text,
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_named_with_what_would_fit() {
        let check = |json: &str, take: fn(&mut Fields) -> Result<(), String>, message: &str| {
            let result =
                Fields::read(json).and_then(|mut fields| take(&mut fields).and_then(|()| fields.end()));
            assert_eq!(result, Err(message.to_owned()), "{json}");
        };
        check(r#"{"a":1}"#, |f| f.text("a").map(drop), "`a` has 1, where a text should be");
        check(r"{}", |f| f.needed_text("a").map(drop), "it has no `a`");
        check(
            r#"{"a":300}"#,
            |f| f.number::<u8>("a").map(drop),
            "`a` is 300, and should be a whole number that fits",
        );
        check(
            r#"{"a":1.5}"#,
            |f| f.number::<u8>("a").map(drop),
            "`a` is 1.5, and should be a whole number that fits",
        );
        check(r#"{"a":"yes"}"#, |f| f.flag("a").map(drop), "`a` is \"yes\", and should be true or false");
        check(r#"{"a":"b"}"#, |f| f.list("a").map(drop), "`a` is \"b\", and should be a list");
        check(r#"{"a":[["b"]]}"#, |f| f.pairs("a").map(drop), "`a` has something in it that is not a pair");
        check(
            r#"{"deph":1}"#,
            |f| f.text("url").and(f.number::<u32>("depth")).map(drop),
            "`deph` means nothing here; fields are url, depth",
        );
    }
}
