//! Lines of a URLFrontier dump, read: one item a line, as its `DumpURLs` writes it. Protobuf's rules for JSON hold: names in
//! either spelling, 64-bit numbers as texts, what has its default left out, what is unknown passed over.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use trapline_core::Timestamp;

use crate::frontier_command::fields::{Fields, brief};

/// What an item says.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) struct Item {
    /// The crawl; `DEFAULT` if it names none.
    pub(in super::super) crawl: String,
    pub(in super::super) url: String,
    /// The queue, if it names one.
    pub(in super::super) key: Option<String>,
    pub(in super::super) metadata: BTreeMap<String, Vec<String>>,
    pub(in super::super) state: ItemState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum ItemState {
    /// Discovered: to be fetched.
    Discovered,
    /// Known, and to be fetched from this time on.
    From(Timestamp),
    /// Known, and never to be fetched again.
    Completed,
}

/// The name of a crawl that has none.
const DEFAULT: &str = "DEFAULT";

pub(in super::super) fn item(fields: Fields) -> Result<Item, String> {
    let mut line = fields.into_rest();
    let (mut item, is_known) = match (line.remove("known"), line.remove("discovered")) {
        (Some(known), None) => (object("known", known)?, true),
        (None, Some(discovered)) => (object("discovered", discovered)?, false),
        (Some(_), Some(_)) => {
            return Err("it has both `known` and `discovered`, and should have one".to_owned());
        }
        (None, None) => {
            return Err(
                "it has neither `known` nor `discovered`, and is no item of a URLFrontier dump".to_owned()
            );
        }
    };
    let mut info = match item.remove("info") {
        Some(info) => object("info", info)?,
        None => return Err("it has no `info`".to_owned()),
    };
    let url = text("url", info.remove("url"))?.unwrap_or_default();
    if url.is_empty() {
        return Err("its `info` has no `url`".to_owned());
    }
    let crawl = text("crawlID", info.remove("crawlID"))?.filter(|name| !name.trim().is_empty());
    let state = if is_known {
        let date = item.remove("refetchableFromDate").or_else(|| item.remove("refetchable_from_date"));
        match seconds(date)? {
            0 => ItemState::Completed,
            seconds => ItemState::From(Timestamp::from_millis(seconds.saturating_mul(1000))),
        }
    } else {
        ItemState::Discovered
    };
    Ok(Item {
        crawl: crawl.unwrap_or_else(|| DEFAULT.to_owned()),
        url,
        key: text("key", info.remove("key"))?.filter(|key| !key.is_empty()),
        metadata: metadata(info.remove("metadata"))?,
        state,
    })
}

fn object(name: &str, value: Value) -> Result<Map<String, Value>, String> {
    match value {
        Value::Object(object) => Ok(object),
        value => Err(format!("`{name}` is {}, and should be an object", brief(&value))),
    }
}

fn text(name: &str, value: Option<Value>) -> Result<Option<String>, String> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(value) => Err(format!("`{name}` is {}, and should be a text", brief(&value))),
    }
}

fn seconds(value: Option<Value>) -> Result<u64, String> {
    let value = value.unwrap_or(Value::Null);
    let seconds = match &value {
        Value::Null => Some(0),
        Value::String(text) => text.parse().ok(),
        value => value.as_u64(),
    };
    seconds.ok_or_else(|| {
        format!("`refetchableFromDate` is {}, and should be seconds since 1970, or 0", brief(&value))
    })
}

fn metadata(value: Option<Value>) -> Result<BTreeMap<String, Vec<String>>, String> {
    let metadata = match value {
        None | Some(Value::Null) => return Ok(BTreeMap::new()),
        Some(value) => object("metadata", value)?,
    };
    let lists = metadata.into_iter().map(|(name, list)| {
        let values = match object("metadata", list)?.remove("values") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(values)) => values,
            Some(value) => {
                return Err(format!("`values` is {}, and should be a list of texts", brief(&value)));
            }
        };
        let texts = values.into_iter().map(|value| {
            text("values", Some(value))?
                .ok_or_else(|| "`values` has null in it, and should have texts".to_owned())
        });
        Ok((name, texts.collect::<Result<_, String>>()?))
    });
    lists.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Item, String> {
        item(Fields::read(line)?)
    }

    #[test]
    fn items_are_read_as_protobuf_writes_them() {
        let plain = Item {
            crawl: "DEFAULT".to_owned(),
            url: "http://a.example/".to_owned(),
            key: None,
            metadata: BTreeMap::new(),
            state: ItemState::Completed,
        };
        let check = |line: &str, expected: Item| assert_eq!(read(line), Ok(expected), "{line}");
        check(r#"{"known":{"info":{"url":"http://a.example/"}}}"#, Item { ..read_plain(&plain) });
        check(
            r#"{"known":{"info":{"url":"http://a.example/","key":"a.example","metadata":{"m":{"values":["1","2"]},"n":{}},"crawlID":"c"},"refetchableFromDate":"1700000000"},"ID":"x","creationDate":"1"}"#,
            Item {
                crawl: "c".to_owned(),
                key: Some("a.example".to_owned()),
                metadata: BTreeMap::from([
                    ("m".to_owned(), vec!["1".to_owned(), "2".to_owned()]),
                    ("n".to_owned(), Vec::new()),
                ]),
                state: ItemState::From(Timestamp::from_millis(1_700_000_000_000)),
                ..read_plain(&plain)
            },
        );
        check(
            r#"{"known":{"info":{"url":"http://a.example/","crawlID":" "},"refetchable_from_date":5}}"#,
            Item { state: ItemState::From(Timestamp::from_millis(5_000)), ..read_plain(&plain) },
        );
        check(
            r#"{"discovered":{"info":{"url":"http://a.example/","key":""}}}"#,
            Item { state: ItemState::Discovered, ..read_plain(&plain) },
        );
        check(
            r#"{"known":{"info":{"url":"http://a.example/"},"refetchableFromDate":"18446744073709551615"}}"#,
            Item { state: ItemState::From(Timestamp::MAX), ..read_plain(&plain) },
        );
    }

    fn read_plain(plain: &Item) -> Item {
        Item {
            crawl: plain.crawl.clone(),
            url: plain.url.clone(),
            key: None,
            metadata: BTreeMap::new(),
            state: plain.state,
        }
    }

    #[test]
    fn what_is_no_item_is_named() {
        for (line, message) in [
            (r"{}", "it has neither `known` nor `discovered`, and is no item of a URLFrontier dump"),
            (r#"{"known":{},"discovered":{}}"#, "it has both `known` and `discovered`, and should have one"),
            (r#"{"known":1}"#, "`known` is 1, and should be an object"),
            (r#"{"known":{}}"#, "it has no `info`"),
            (r#"{"known":{"info":{}}}"#, "its `info` has no `url`"),
            (r#"{"known":{"info":{"url":1}}}"#, "`url` is 1, and should be a text"),
            (
                r#"{"known":{"info":{"url":"u"},"refetchableFromDate":-1}}"#,
                "`refetchableFromDate` is -1, and should be seconds since 1970, or 0",
            ),
            (
                r#"{"known":{"info":{"url":"u","metadata":{"a":[]}}}}"#,
                "`metadata` is [], and should be an object",
            ),
            (
                r#"{"known":{"info":{"url":"u","metadata":{"a":{"values":[null]}}}}}"#,
                "`values` has null in it, and should have texts",
            ),
        ] {
            assert_eq!(read(line), Err(message.to_owned()));
        }
    }
}
