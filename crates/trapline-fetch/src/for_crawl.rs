//! The fetcher and the cache of robots.txt as a crawl asks for them.

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method};
use trapline_core::Timestamp;
use trapline_crawl::ports::{Fetch, Robots, RobotsWord};
use trapline_crawl::{
    ErrorClass, RawExchange, RedirectTo, Response, ResponseError, ResponseTimes, WebRequest,
};
use trapline_extract::Rules;
use url::Url;

use crate::dial::Protocol;
use crate::fetch_error::{FetchError, FetchErrorKind};
use crate::fetched::{Fetched, Redirect, Truncated};
use crate::fetcher::Fetcher;
use crate::request::{FetchRequest, Validators};
use crate::robots_cache::{RobotsCache, RobotsFile, RobotsStanding};

#[async_trait]
impl Fetch for Fetcher {
    async fn fetch(&self, request: &WebRequest) -> Response {
        match outgoing(request) {
            Ok(request) => response(Fetcher::fetch(self, &request).await),
            Err(message) => {
                let kind = FetchErrorKind::RequestRefused.as_str();
                let error = ResponseError { kind, message, class: ErrorClass::Refused };
                Response { error: Some(error), ..Response::default() }
            }
        }
    }
}

/// The request as the fetcher wants it. Headers and methods come from whoever admitted the URL: they may be anything.
fn outgoing(request: &WebRequest) -> Result<FetchRequest, String> {
    let mut outgoing = FetchRequest::get(request.url.clone());
    if request.method != "GET" {
        outgoing.method = Method::from_bytes(request.method.as_bytes())
            .map_err(|_| format!("`{}` is no method", request.method))?;
    }
    for (name, value) in &request.headers {
        let bad = || format!("the header `{name}` cannot be sent");
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?;
        outgoing.headers.append(name, HeaderValue::from_bytes(value).map_err(|_| bad())?);
    }
    outgoing.body = request.body.clone().into();
    if request.etag.is_some() || request.last_modified.is_some() {
        let validators =
            Validators { etag: request.etag.clone(), last_modified: request.last_modified.clone() };
        outgoing.validators = Some(validators);
    }
    outgoing.decoded_bytes_max = request.decoded_bytes_max;
    Ok(outgoing)
}

fn response(fetched: Fetched) -> Response {
    let times = fetched.times;
    Response {
        status: fetched.status,
        headers: fetched
            .headers
            .iter()
            .map(|header| (header.name.into_owned(), Bytes::copy_from_slice(header.value)))
            .collect(),
        body: fetched.body,
        redirect: fetched.redirect.map(|redirect| match redirect {
            Redirect::To(url) => RedirectTo::Url(url),
            Redirect::Refused(scheme) => RedirectTo::Nowhere(format!("a redirect to a `{scheme}:` URL")),
            Redirect::Nowhere => RedirectTo::Nowhere("a redirect without a URL".to_owned()),
        }),
        not_modified: fetched.not_modified,
        truncated: fetched.truncated.map(Truncated::as_str),
        address: fetched.address.map(|address| address.to_string()),
        protocol: fetched.protocol.map(|protocol| match protocol {
            Protocol::H1 => "HTTP/1.1",
            Protocol::H2 => "HTTP/2",
        }),
        times: ResponseTimes {
            dns: times.dns,
            connect: times.connect,
            tls: times.tls,
            first_byte: times.first_byte,
            total: times.total,
        },
        encoded_bytes: fetched.sizes.encoded_bytes,
        raw: fetched.raw.map(|raw| RawExchange {
            request: raw.request,
            head: raw.head,
            body: raw.body,
            complete: raw.complete,
            exact: raw.exact,
            server: raw.server,
        }),
        error: fetched.error.as_ref().map(error),
    }
}

fn error(error: &FetchError) -> ResponseError {
    let class = if error.is_refusal() { ErrorClass::Refused } else { ErrorClass::Passing };
    ResponseError { kind: error.kind().as_str(), message: error.to_string(), class }
}

#[async_trait]
impl Robots for RobotsCache {
    async fn ask(&self, now: Timestamp, url: &Url) -> RobotsWord {
        word(&self.of(now, url).await.0, url)
    }

    async fn ask_most_favored(&self, now: Timestamp, url: &Url) -> RobotsWord {
        let file = self.of(now, url).await.0;
        let each = file.rules_of_each(self.agents());
        // The first that may, with all that is said to it.
        let rules = each.iter().find(|rules| rules.check(url).allowed).unwrap_or(&file.rules);
        word_of(&file, rules, url)
    }

    async fn known(&self, now: Timestamp, url: &Url) -> Option<RobotsWord> {
        RobotsCache::known(self, now, url).await.map(|file| word(&file, url))
    }
}

fn word(file: &RobotsFile, url: &Url) -> RobotsWord {
    word_of(file, &file.rules, url)
}

/// What a file says by some of its rules.
fn word_of(file: &RobotsFile, rules: &Rules, url: &Url) -> RobotsWord {
    let decision = rules.check(url);
    let unreachable = file.standing == RobotsStanding::Unreachable;
    let trouble = file.trouble.as_ref();
    RobotsWord {
        trouble: trouble.map(|trouble| trouble.message.clone()),
        error: trouble.and_then(|trouble| trouble.error),
        refused: trouble.is_some_and(|trouble| trouble.refused),
        allowed: decision.allowed,
        line: decision.line.map(|line| format!("line {}: {line}", line.number)),
        crawl_delay: rules.crawl_delay(),
        unreachable_until: unreachable.then_some(file.until),
        fetched: file.fetched,
        sitemaps: file.sitemaps(url),
    }
}
