//! Requests.

use std::borrow::Cow;

use trapline_core::Request;

use super::Unreadable;
use crate::proto::v1;

pub(crate) fn write(request: &Request) -> v1::Request {
    let Request {
        url,
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
    let header = |(name, value): &(String, Vec<u8>)| v1::Header { name: name.clone(), value: value.clone() };
    let cookie = |(name, value): &(String, String)| v1::Cookie { name: name.clone(), value: value.clone() };
    v1::Request {
        url: url.clone(),
        method: if method == "GET" { String::new() } else { method.clone().into_owned() },
        headers: headers.iter().map(header).collect(),
        cookies: cookies.iter().map(cookie).collect(),
        body: body.clone(),
        metadata: metadata
            .iter()
            .map(|(name, values)| (name.clone(), v1::Values { values: values.clone() }))
            .collect(),
        opaque: opaque.clone(),
        priority: priority.map(i32::from),
        score: *score,
        depth: *depth,
        depth_limit: *depth_limit,
        via: via.clone(),
        hop_path: hop_path.clone(),
        redirects: redirects.clone(),
        retries: *retries,
        dont_filter: *dont_filter,
        seed: seed.clone(),
        fingerprint: fingerprint.clone(),
    }
}

pub(crate) fn read(request: v1::Request) -> Result<Request, Unreadable> {
    let v1::Request {
        url,
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
    let priority = match priority {
        Some(given) => Some(
            i8::try_from(given)
                .map_err(|_| Unreadable::beyond("priority", given, "from -128 to 127, higher first"))?,
        ),
        None => None,
    };
    Ok(Request {
        url,
        method: if method.is_empty() { Cow::Borrowed("GET") } else { Cow::Owned(method) },
        headers: headers.into_iter().map(|header| (header.name, header.value)).collect(),
        cookies: cookies.into_iter().map(|cookie| (cookie.name, cookie.value)).collect(),
        body,
        metadata: metadata.into_iter().map(|(name, values)| (name, values.values)).collect(),
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
    })
}

/// One that must be there.
pub(super) fn given(request: Option<v1::Request>) -> Result<Request, Unreadable> {
    read(request.ok_or_else(|| Unreadable::lacks("a `request`"))?)
}
