//! The way to an object store: requests go through a fetcher of their own, and so through the one door. Its guard lets everything pass,
//! because the operator has named the server.

use async_trait::async_trait;
use http::{HeaderName, HeaderValue, Uri, header};
use http_body_util::BodyExt;
use trapline_archive::http_client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody,
    HttpService,
};
use trapline_archive::{ClientConfigKey, ClientOptions};
use trapline_core::parse_url;
use trapline_fetch::{
    DialOptions, FetchError, FetchErrorKind, FetchOptions, FetchRequest, Fetched, Fetcher, GuardOptions,
    Limits, dangerous_ports,
};

use super::seed_source::LIST_BYTES_MAX;

/// Makes clients for an object store.
#[derive(Clone)]
pub(super) struct S3Connector(Fetcher);

impl S3Connector {
    /// With the certificates and the names of a crawl, and without its proxy.
    pub(super) fn new(dial: &DialOptions) -> Result<Self, String> {
        let networks = ["0.0.0.0/0", "::/0"].map(|all| all.parse().expect("it is a network"));
        let guard = GuardOptions {
            allow_networks: networks.into(),
            allow_ports: dangerous_ports().into_iter().collect(),
            ..dial.guard.clone()
        };
        let dial = DialOptions { guard, proxy: None, ..dial.clone() };
        let limits = Limits {
            encoded_bytes_max: LIST_BYTES_MAX as u64,
            decoded_bytes_max: LIST_BYTES_MAX,
            ..Limits::default()
        };
        let options = FetchOptions { dial, limits, ..FetchOptions::default() };
        Fetcher::new(options).map(Self).map_err(|error| error.to_string())
    }
}

impl std::fmt::Debug for S3Connector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("S3Connector")
    }
}

impl HttpConnector for S3Connector {
    fn connect(&self, options: &ClientOptions) -> trapline_archive::ObjectResult<HttpClient> {
        let allow_http =
            options.get_config_value(&ClientConfigKey::AllowHttp).is_some_and(|allowed| allowed == "true");
        Ok(HttpClient::new(Client { fetcher: self.0.clone(), allow_http }))
    }
}

/// A client of an object store.
struct Client {
    fetcher: Fetcher,
    /// Whether requests may go in the clear.
    allow_http: bool,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Client")
    }
}

#[async_trait]
impl HttpService for Client {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (parts, body) = request.into_parts();
        if parts.uri.scheme_str() != Some("https") && !self.allow_http {
            return Err(refused(format!(
                "{} is not encrypted; AWS_ALLOW_HTTP=true in the environment allows that",
                origin(&parts.uri)
            )));
        }
        let url = parse_url(&parts.uri.to_string(), None);
        let mut outgoing = FetchRequest::get(url.map_err(|error| refused(error.to_string()))?);
        outgoing.method = parts.method;
        outgoing.headers = parts.headers;
        // The fetcher writes them itself.
        outgoing.headers.remove(header::HOST);
        outgoing.headers.remove(header::CONTENT_LENGTH);
        outgoing.body = body.collect().await?.to_bytes();
        let fetched = self.fetcher.fetch(&outgoing).await;
        match (&fetched.error, fetched.status) {
            (None, Some(status)) => response(&fetched, status),
            (error, _) => Err(trouble(&parts.uri, error.as_ref())),
        }
    }
}

/// What came, decoded.
fn response(fetched: &Fetched, status: u16) -> Result<HttpResponse, HttpError> {
    if let Some(truncated) = fetched.truncated {
        return Err(HttpError::new(
            HttpErrorKind::Interrupted,
            Told(format!("the answer was cut off: {truncated}")),
        ));
    }
    let mut response = HttpResponse::new(HttpResponseBody::from(fetched.body.clone()));
    *response.status_mut() =
        http::StatusCode::from_u16(status).map_err(|error| refused(format!("status {status}: {error}")))?;
    for line in fetched.headers.iter() {
        let name = HeaderName::from_bytes(line.name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(line.value)) {
            response.headers_mut().append(name, value);
        }
    }
    response.headers_mut().remove(header::CONTENT_ENCODING);
    Ok(response)
}

fn trouble(uri: &Uri, error: Option<&FetchError>) -> HttpError {
    let Some(error) = error else { return refused("no answer".to_owned()) };
    let kind = match error.kind() {
        FetchErrorKind::Dial(_) => HttpErrorKind::Connect,
        FetchErrorKind::FirstByteTimeout | FetchErrorKind::TotalTimeout => HttpErrorKind::Timeout,
        FetchErrorKind::Closed | FetchErrorKind::Reset => HttpErrorKind::Interrupted,
        _ => HttpErrorKind::Unknown,
    };
    HttpError::new(kind, Told(format!("{}: {error} ({})", origin(uri), error.detail())))
}

fn refused(why: String) -> HttpError {
    HttpError::new(HttpErrorKind::Unknown, Told(why))
}

fn origin(uri: &Uri) -> String {
    format!(
        "{}://{}",
        uri.scheme_str().unwrap_or_default(),
        uri.authority().map_or("", |authority| authority.as_str())
    )
}

/// What went wrong, for people.
#[derive(Debug)]
struct Told(String);

impl std::fmt::Display for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Told {}
