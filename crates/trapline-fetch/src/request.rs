//! What to fetch.

use bytes::Bytes;
use http::{HeaderMap, Method};
use trapline_frontier::PageRecord;
use url::Url;

/// One request.
#[derive(Clone, Debug)]
pub struct FetchRequest {
    /// What to fetch. Its fragment is not sent, and neither are user name and password in it: credentials belong to
    /// [`FetchOptions::credentials`](crate::FetchOptions::credentials).
    pub url: Url,
    /// How. `GET` by default.
    pub method: Method,
    /// More headers, in place of the fetcher's of the same name. `Authorization` and `Cookie` are allowed here, because the URL is
    /// known; they are not sent if the certificate is wrong.
    pub headers: HeaderMap,
    /// What to send.
    pub body: Bytes,
    /// What the last visit found: the page is to be sent only if it is another by now.
    pub validators: Option<Validators>,
    /// Another cap on the decoded body than the fetcher's. If it is a higher one, as many bytes may come before decoding, too.
    pub decoded_bytes_max: Option<usize>,
}

/// What a server said about the version of a page that we know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Validators {
    /// Its `ETag`.
    pub etag: Option<String>,
    /// Its `Last-Modified`, as it was written.
    pub last_modified: Option<String>,
}

impl FetchRequest {
    /// Gets a URL, which should come from `trapline_core::parse_url`.
    pub fn get(url: Url) -> Self {
        Self {
            url,
            method: Method::GET,
            headers: HeaderMap::new(),
            body: Bytes::new(),
            validators: None,
            decoded_bytes_max: None,
        }
    }

    /// Gets the page only if it is another than at the last visit.
    #[must_use]
    pub fn unless_as_in(self, page: &PageRecord) -> Self {
        let validators =
            Validators { etag: page.visit.etag.clone(), last_modified: page.visit.last_modified.clone() };
        Self { validators: Some(validators), ..self }
    }

    /// Whether the request may be sent again if nobody knows what became of it.
    pub(crate) fn is_idempotent(&self) -> bool {
        self.method.is_idempotent()
    }
}
