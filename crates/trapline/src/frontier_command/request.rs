//! Requests as JSON: how `admit`, the links of `settle` and `import` read them, and how `claim`, lists and `export` write
//! them. What is written can be read again, byte by byte.

use std::borrow::Cow;

use serde_json::{Value, json};
use trapline_core::Request;

use super::bytes;
use super::fields::Fields;
use super::output::Row;

/// Reads a request. What the object does not say is as in `start`, whose URL does not count.
pub(super) fn read(fields: &mut Fields, start: Request) -> Result<Request, String> {
    Ok(Request {
        url: fields.needed_text("url")?,
        method: fields.text("method")?.map_or(start.method, Cow::Owned),
        headers: fields.byte_pairs("headers")?,
        cookies: fields.pairs("cookies")?,
        body: fields.bytes("body")?.unwrap_or_default(),
        metadata: fields.lists("metadata")?,
        opaque: fields.bytes("opaque")?.unwrap_or(start.opaque),
        priority: fields.number("priority")?.or(start.priority),
        score: score(fields)?.or(start.score),
        depth: fields.number("depth")?.unwrap_or(start.depth),
        depth_limit: fields.number("depth_limit")?.or(start.depth_limit),
        via: fields.text("via")?.or(start.via),
        hop_path: fields.text("hop_path")?.unwrap_or(start.hop_path),
        redirects: fields.texts("redirects")?,
        retries: fields.number("retries")?.unwrap_or(start.retries),
        dont_filter: fields.flag("dont_filter")?,
        seed: fields.text("seed")?.or(start.seed),
        fingerprint: fields.bytes("fingerprint")?.or(start.fingerprint),
    })
}

fn score(fields: &mut Fields) -> Result<Option<f32>, String> {
    let Some(value) = fields.value("score") else { return Ok(None) };
    match value.as_f64().filter(|score| (0.0..=1.0).contains(score)) {
        Some(score) => Ok(Some(score as f32)),
        None => Err(format!("`score` is {}, and should be from 0.0 to 1.0", super::fields::brief(&value))),
    }
}

/// What a request says besides its URL, as [`read`] reads it. What is as usual is left out.
pub(super) fn write(request: &Request) -> Row {
    let Request {
        url: _,
        method,
        headers,
        cookies,
        body,
        metadata,
        opaque,
        priority,
        score,
        depth,
        depth_limit,
        via,
        hop_path,
        redirects,
        retries,
        dont_filter,
        seed,
        fingerprint,
    } = request;
    let mut row = Row::new();
    let mut tell = |name, is_usual: bool, value: &dyn Fn() -> Value| {
        if !is_usual {
            row.push((name, value()));
        }
    };
    let pairs = || headers.iter().map(|(name, value)| json!([name, bytes::write(value)])).collect::<Vec<_>>();
    tell("method", method == "GET", &|| json!(method));
    tell("headers", headers.is_empty(), &|| json!(pairs()));
    tell("cookies", cookies.is_empty(), &|| json!(cookies));
    tell("body", body.is_empty(), &|| bytes::write(body));
    tell("metadata", metadata.is_empty(), &|| json!(metadata));
    tell("opaque", opaque.is_empty(), &|| bytes::write(opaque));
    tell("priority", priority.is_none(), &|| json!(priority));
    tell("score", score.is_none(), &|| json!(score));
    tell("depth", *depth == 0, &|| json!(depth));
    tell("depth_limit", depth_limit.is_none(), &|| json!(depth_limit));
    tell("via", via.is_none(), &|| json!(via));
    tell("hop_path", hop_path.is_empty(), &|| json!(hop_path));
    tell("redirects", redirects.is_empty(), &|| json!(redirects));
    tell("retries", *retries == 0, &|| json!(retries));
    tell("dont_filter", !dont_filter, &|| json!(true));
    tell("seed", seed.is_none(), &|| json!(seed));
    tell("fingerprint", fingerprint.is_none(), &|| {
        fingerprint.as_ref().map_or(Value::Null, |print| bytes::write(print))
    });
    row
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::output::as_object;
    use super::*;

    fn again(request: &Request) -> Request {
        let mut row = vec![("url", json!(request.url))];
        row.extend(write(request));
        let mut fields = Fields::read(&as_object(&row)).expect("it is JSON");
        let read = read(&mut fields, Request::get("")).expect("it can be read");
        fields.end().expect("everything is read");
        read
    }

    #[test]
    fn what_is_written_is_read_again_byte_by_byte() {
        let full = Request {
            url: "http://a.example/ä\u{0}\"".to_owned(),
            method: "POST".into(),
            headers: vec![("a".to_owned(), vec![0, 255]), ("a".to_owned(), b"text".to_vec())],
            cookies: vec![("c".to_owned(), "d".to_owned()), ("c".to_owned(), String::new())],
            body: vec![0, 159, 146, 150],
            metadata: BTreeMap::from([("k".to_owned(), vec!["a".to_owned()]), (String::new(), Vec::new())]),
            opaque: vec![128, 4, 149],
            priority: Some(-128),
            score: Some(0.1),
            depth: u32::MAX,
            depth_limit: Some(0),
            via: Some(String::new()),
            hop_path: "LLE".to_owned(),
            redirects: vec![String::new(), "http://c.example/".to_owned()],
            retries: 3,
            dont_filter: true,
            seed: Some("http://s.example/".to_owned()),
            fingerprint: Some(Vec::new()),
        };
        assert_eq!(again(&full), full);
        let plain = Request::get("http://a.example/");
        assert_eq!(write(&plain), Row::new());
        assert_eq!(again(&plain), plain);
    }
}
