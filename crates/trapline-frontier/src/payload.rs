//! What a request is beside its URL, as bytes: nothing at all for a plain `GET` of a seed, else a protobuf message of what
//! it has (of a link: its depth and where it was found), so that what is added later can be left out by those who wrote
//! earlier.

use std::borrow::Cow;
use std::collections::BTreeMap;

use prost::Message;
use trapline_core::Request;

/// A request without its URL. Every field is left out where it has its default.
#[derive(Clone, PartialEq, Message)]
struct Rest {
    #[prost(string, optional, tag = "2")]
    method: Option<String>,
    #[prost(message, repeated, tag = "3")]
    headers: Vec<Header>,
    #[prost(message, repeated, tag = "4")]
    cookies: Vec<Cookie>,
    #[prost(bytes = "vec", tag = "5")]
    body: Vec<u8>,
    #[prost(btree_map = "string, message", tag = "6")]
    metadata: BTreeMap<String, Values>,
    #[prost(bytes = "vec", tag = "7")]
    opaque: Vec<u8>,
    #[prost(sint32, optional, tag = "8")]
    priority: Option<i32>,
    #[prost(float, optional, tag = "9")]
    score: Option<f32>,
    #[prost(uint32, tag = "10")]
    depth: u32,
    #[prost(uint32, optional, tag = "11")]
    depth_limit: Option<u32>,
    #[prost(string, optional, tag = "12")]
    via: Option<String>,
    #[prost(string, tag = "13")]
    hop_path: String,
    #[prost(string, repeated, tag = "14")]
    redirects: Vec<String>,
    #[prost(uint32, tag = "15")]
    retries: u32,
    #[prost(bool, tag = "16")]
    dont_filter: bool,
    #[prost(string, optional, tag = "17")]
    seed: Option<String>,
    #[prost(bytes = "vec", optional, tag = "18")]
    fingerprint: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
struct Header {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct Cookie {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
struct Values {
    #[prost(string, repeated, tag = "1")]
    values: Vec<String>,
}

/// The bytes of everything in a request but its URL.
pub fn encode(request: &Request) -> Vec<u8> {
    if is_plain(request) {
        return Vec::new();
    }
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
    } = request.clone();
    let rest = Rest {
        method: (method != "GET").then(|| method.into_owned()),
        headers: headers.into_iter().map(|(name, value)| Header { name, value }).collect(),
        cookies: cookies.into_iter().map(|(name, value)| Cookie { name, value }).collect(),
        body,
        metadata: metadata.into_iter().map(|(key, values)| (key, Values { values })).collect(),
        opaque,
        priority: priority.map(i32::from),
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
    };
    rest.encode_to_vec()
}

/// At most so many bytes has what [`encode`] makes of a request.
pub fn bound(request: &Request) -> usize {
    // More than tags, lengths and numbers take.
    const ITEM: usize = 32;
    if is_plain(request) {
        return 0;
    }
    let texts = |texts: &[String]| texts.iter().map(|text| text.len() + ITEM).sum::<usize>();
    let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let headers = request.headers.iter().map(|(name, value)| name.len() + value.len() + ITEM).sum::<usize>();
    let cookies = request.cookies.iter().map(|(name, value)| name.len() + value.len() + ITEM).sum::<usize>();
    let metadata =
        request.metadata.iter().map(|(key, values)| key.len() + ITEM + texts(values)).sum::<usize>();
    let fingerprint = request.fingerprint.as_ref().map_or(0, Vec::len);
    let lengths = request.method.len() + request.body.len() + request.opaque.len() + request.hop_path.len();
    let optional = text(&request.via) + text(&request.seed) + fingerprint;
    headers + cookies + metadata + texts(&request.redirects) + lengths + optional + 16 * ITEM
}

/// The request of a URL and what [`encode`] made of the rest; an error if it made no such thing.
pub fn decode(url: String, rest: &[u8]) -> Result<Request, prost::DecodeError> {
    if rest.is_empty() {
        return Ok(Request::get(url));
    }
    let rest = Rest::decode(rest)?;
    Ok(Request {
        url,
        method: rest.method.map_or(Cow::Borrowed("GET"), Cow::Owned),
        headers: rest.headers.into_iter().map(|header| (header.name, header.value)).collect(),
        cookies: rest.cookies.into_iter().map(|cookie| (cookie.name, cookie.value)).collect(),
        body: rest.body,
        metadata: rest.metadata.into_iter().map(|(key, values)| (key, values.values)).collect(),
        opaque: rest.opaque,
        priority: rest.priority.map(|priority| priority.clamp(i8::MIN.into(), i8::MAX.into()) as i8),
        score: rest.score,
        depth: rest.depth,
        depth_limit: rest.depth_limit,
        via: rest.via,
        hop_path: rest.hop_path,
        redirects: rest.redirects,
        retries: rest.retries,
        dont_filter: rest.dont_filter,
        seed: rest.seed,
        fingerprint: rest.fingerprint,
    })
}

/// Whether nothing but the URL needs to be kept.
fn is_plain(request: &Request) -> bool {
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
    method == "GET"
        && headers.is_empty()
        && cookies.is_empty()
        && body.is_empty()
        && metadata.is_empty()
        && opaque.is_empty()
        && priority.is_none()
        && score.is_none()
        && *depth == 0
        && depth_limit.is_none()
        && via.is_none()
        && hop_path.is_empty()
        && redirects.is_empty()
        && *retries == 0
        && !dont_filter
        && seed.is_none()
        && fingerprint.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every field alone, at a value that could be mistaken for its default, and all together.
    #[test]
    fn what_is_encoded_comes_back() {
        let plain = || Request::get("http://a.example/");
        let metadata = BTreeMap::from([
            ("k".to_owned(), vec!["a".to_owned(), String::new()]),
            (String::new(), Vec::new()),
        ]);
        let full = Request {
            url: "http://a.example/".to_owned(),
            method: "POST".into(),
            headers: vec![("a".to_owned(), vec![0, 255]), (String::new(), Vec::new())],
            cookies: vec![("c".to_owned(), "d".to_owned()), (String::new(), String::new())],
            body: vec![0, 159, 146, 150],
            metadata: metadata.clone(),
            opaque: vec![128, 4, 149],
            priority: Some(-128),
            score: Some(0.5),
            depth: u32::MAX,
            depth_limit: Some(7),
            via: Some("http://b.example/ä".to_owned()),
            hop_path: "LLE".to_owned(),
            redirects: vec![String::new(), "http://c.example/".to_owned()],
            retries: 3,
            dont_filter: true,
            seed: Some("http://s.example/".to_owned()),
            fingerprint: Some(vec![1]),
        };
        let cases = [
            plain(),
            full,
            Request { method: "".into(), ..plain() },
            Request { method: "get".into(), ..plain() },
            Request { priority: Some(0), ..plain() },
            Request { score: Some(0.0), ..plain() },
            Request { depth: 1, ..plain() },
            Request { depth_limit: Some(0), ..plain() },
            Request { via: Some(String::new()), ..plain() },
            Request { seed: Some(String::new()), ..plain() },
            Request { fingerprint: Some(Vec::new()), ..plain() },
            Request { metadata, ..plain() },
            Request { redirects: vec![String::new()], ..plain() },
        ];
        for request in cases {
            let rest = encode(&request);
            assert_eq!(decode(request.url.clone(), &rest), Ok(request));
        }
        assert!(encode(&plain()).is_empty());
    }

    #[test]
    fn other_bytes_are_an_error_or_a_request_never_a_panic() {
        for byte in 0..=255 {
            for rest in [vec![byte], vec![byte; 9], vec![42, byte, byte], vec![18, byte, byte]] {
                let _ = decode(String::new(), &rest);
            }
        }
    }
}
