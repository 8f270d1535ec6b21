//! Websites for tests: healthy ones, and ones that do what a script says, byte by byte.

use std::sync::Arc;
use std::time::Duration;

use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use trapline_core::parse_url;
use trapline_fetch::{FetchOptions, FetchRequest, Fetched, Fetcher, Limits, Roots};

use crate::door::{Server, open_options};

/// One thing that a server does on a connection.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Reads a request, up to the empty line.
    Read,
    Send(Vec<u8>),
    /// Sends byte by byte, with a pause after each.
    Drip(Vec<u8>, Duration),
    /// Sends the same again and again, as long as anybody takes it.
    Endless(Vec<u8>),
    /// Says nothing until the other side hangs up.
    Hold,
    /// Closes in a way that the other side sees as an error.
    Reset,
}

pub(crate) fn send(text: impl AsRef<[u8]>) -> Step {
    Step::Send(text.as_ref().to_vec())
}

/// A server that goes through the same steps on each connection, and then closes it.
pub(crate) async fn scripted(steps: Vec<Step>) -> Server {
    let steps = Arc::new(steps);
    Server::start(move |stream| {
        let steps = Arc::clone(&steps);
        async move {
            let _ = play(stream, &steps).await;
        }
    })
    .await
}

async fn play(mut stream: TcpStream, steps: &[Step]) -> std::io::Result<()> {
    for step in steps {
        match step {
            Step::Read => {
                read_head(&mut stream).await?;
            }
            Step::Send(bytes) => stream.write_all(bytes).await?,
            Step::Drip(bytes, pause) => {
                for byte in bytes {
                    stream.write_all(&[*byte]).await?;
                    tokio::time::sleep(*pause).await;
                }
            }
            Step::Endless(bytes) => loop {
                stream.write_all(bytes).await?;
            },
            Step::Hold => {
                tokio::io::copy(&mut stream, &mut tokio::io::sink()).await?;
            }
            Step::Reset => return stream.set_zero_linger(),
        }
    }
    stream.shutdown().await?;
    // A close with unread bytes would be a reset.
    tokio::io::copy(&mut stream, &mut tokio::io::sink()).await.map(|_| ())
}

/// A request's head, as text; empty once the other side has hung up.
pub(crate) async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> std::io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if stream.read(&mut byte).await? == 0 {
            break;
        }
        head.push(byte[0]);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

/// Answers requests for as long as they come on a connection.
pub(crate) async fn answer_all<S, F>(mut stream: S, answer: impl Fn(String) -> F) -> std::io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
    F: Future<Output = Vec<u8>>,
{
    loop {
        let head = read_head(&mut stream).await?;
        if head.is_empty() {
            return Ok(());
        }
        let answer = answer(head).await;
        stream.write_all(&answer).await?;
    }
}

/// A server that answers requests, by what it makes of their heads.
pub(crate) async fn answering(answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Server {
    let answer = Arc::new(answer);
    Server::start(move |stream| {
        let answer = Arc::clone(&answer);
        async move {
            let _ = answer_all(stream, |head| {
                let answered = answer(&head);
                async move { answered }
            })
            .await;
        }
    })
    .await
}

/// A server that answers every request with this page.
pub(crate) async fn healthy(page: &'static str) -> Server {
    answering(move |_| ok("", page)).await
}

/// A response with more header lines and a body.
pub(crate) fn ok(headers: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    response("200 OK", headers, body)
}

pub(crate) fn response(status: &str, headers: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let mut all =
        format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n{headers}\r\n", body.len()).into_bytes();
    all.extend_from_slice(body);
    all
}

/// Options for loopback, with limits of tenths of seconds.
pub(crate) fn options() -> FetchOptions {
    FetchOptions {
        dial: open_options(),
        limits: Limits {
            first_byte_timeout: Duration::from_millis(1000),
            idle_timeout: Duration::from_millis(700),
            total_timeout: Duration::from_millis(4000),
            rate_min_bytes_per_s: 100,
            rate_window: Duration::from_millis(1200),
            encoded_bytes_max: 1 << 20,
            decoded_bytes_max: 2 << 20,
            ..Limits::default()
        },
        ..FetchOptions::default()
    }
}

pub(crate) fn fetcher() -> Fetcher {
    Fetcher::new(options()).unwrap()
}

pub(crate) fn request(url: &str) -> FetchRequest {
    FetchRequest::get(parse_url(url, None).unwrap())
}

pub(crate) fn page(server: &Server, path: &str) -> FetchRequest {
    request(&format!("http://{}{path}", server.address))
}

pub(crate) fn text(fetched: &Fetched) -> &str {
    std::str::from_utf8(&fetched.body).unwrap()
}

/// A certificate for names, which a fetcher can be told to believe.
pub(crate) struct Certificate(CertifiedKey<KeyPair>);

impl Certificate {
    pub(crate) fn new(names: &[&str]) -> Self {
        Self(
            generate_simple_self_signed(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
                .unwrap(),
        )
    }

    pub(crate) fn believed(&self) -> Roots {
        Roots::Only(vec![self.0.cert.der().clone()])
    }

    pub(crate) fn acceptor(&self, protocols: &[&[u8]]) -> TlsAcceptor {
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.0.signing_key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![self.0.cert.der().clone()], key)
            .unwrap();
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        TlsAcceptor::from(Arc::new(config))
    }
}

/// A server behind TLS.
pub(crate) async fn encrypted<F>(
    certificate: &Certificate,
    protocols: &[&[u8]],
    serve: impl Fn(tokio_rustls::server::TlsStream<TcpStream>) -> F + Send + Sync + 'static,
) -> Server
where
    F: Future<Output = ()> + Send + 'static,
{
    let (acceptor, serve) = (certificate.acceptor(protocols), Arc::new(serve));
    Server::start(move |stream| {
        let (acceptor, serve) = (acceptor.clone(), Arc::clone(&serve));
        async move {
            if let Ok(stream) = acceptor.accept(stream).await {
                serve(stream).await;
            }
        }
    })
    .await
}

/// Options under which every name leads to a server.
pub(crate) fn leading_to(mut options: FetchOptions, server: &Server) -> FetchOptions {
    options.dial.dns.overrides = vec![format!("*={}", server.address).parse().unwrap()];
    options
}
