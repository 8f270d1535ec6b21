//! A caller that speaks HTTP/2 and says what it likes: bytes that are no message, to whom it likes, read when it likes.

use std::net::{SocketAddr, TcpStream as StdTcpStream};
use std::time::Duration;

use h2::client::{Builder, ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use http::{HeaderMap, Method, Request, StatusCode};
use hyper::body::Bytes;
use percent_encoding::percent_decode_str;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tonic::Code;

/// Longer than any answer takes.
const LONG: Duration = Duration::from_secs(30);

pub(super) struct Caller {
    requests: SendRequest<Bytes>,
    connection: JoinHandle<()>,
    /// Keeps the connection open, for the other side, when it is carried no more.
    socket: StdTcpStream,
}

/// What came of a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) http: StatusCode,
    /// None if nothing says so.
    pub(super) code: Option<Code>,
    pub(super) message: String,
}

impl Caller {
    pub(super) async fn connect(address: SocketAddr) -> Self {
        Self::with(address, &Builder::new()).await
    }

    /// One that has room for so many bytes it has not read.
    pub(super) async fn with_window(address: SocketAddr, bytes: u32) -> Self {
        let mut builder = Builder::new();
        builder.initial_window_size(bytes).initial_connection_window_size(bytes);
        Self::with(address, &builder).await
    }

    async fn with(address: SocketAddr, builder: &Builder) -> Self {
        let stream = TcpStream::connect(address).await.unwrap().into_std().unwrap();
        let socket = stream.try_clone().unwrap();
        let stream = TcpStream::from_std(stream).unwrap();
        let (requests, connection) = builder.handshake(stream).await.unwrap();
        let connection = tokio::spawn(async {
            let _ = connection.await;
        });
        Self { requests, connection, socket }
    }

    /// Begins a call as clients of gRPC do.
    pub(super) async fn open(&mut self, path: &str) -> (ResponseFuture, SendStream<Bytes>) {
        self.begin(request(path)).await
    }

    async fn begin(&mut self, request: Request<()>) -> (ResponseFuture, SendStream<Bytes>) {
        // There may be as many calls as there may be.
        let mut requests =
            tokio::time::timeout(LONG, self.requests.clone().ready()).await.expect("a call ends").unwrap();
        requests.send_request(request, false).unwrap()
    }

    /// Calls with these bytes, which may be none that make sense.
    pub(super) async fn call(&mut self, path: &str, body: Vec<u8>) -> Answer {
        self.call_with(request(path), body).await
    }

    pub(super) async fn call_with(&mut self, request: Request<()>, body: Vec<u8>) -> Answer {
        let (response, mut sending) = self.begin(request).await;
        // Who is refused early need not hear all.
        let _ = sending.send_data(body.into(), true);
        tokio::time::timeout(LONG, answer(response)).await.expect("there is an answer")
    }

    /// Is gone, and the other side does not hear of it: nothing is read or written any more.
    pub(super) async fn vanish(self) -> StdTcpStream {
        self.connection.abort();
        let _ = self.connection.await;
        self.socket
    }
}

pub(super) fn request(path: &str) -> Request<()> {
    let uri = format!("http://localhost{path}");
    let request = Request::builder().method(Method::POST).uri(uri);
    request.header("content-type", "application/grpc").header("te", "trailers").body(()).unwrap()
}

/// A message as gRPC frames it.
pub(super) fn framed(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap();
    [&[0][..], &length.to_be_bytes(), message].concat()
}

async fn answer(response: ResponseFuture) -> Answer {
    let response = response.await.unwrap();
    let http = response.status();
    let headers = response.headers().clone();
    let trailers = trailers(response.into_body()).await;
    let all = [&headers, &trailers];
    let find = |name| all.iter().find_map(|headers| headers.get(name));
    let message = find("grpc-message").map(|value| percent_decode_str(value.to_str().unwrap()));
    Answer {
        http,
        code: find("grpc-status").map(|value| Code::from_bytes(value.as_bytes())),
        message: message.map(|text| text.decode_utf8_lossy().into_owned()).unwrap_or_default(),
    }
}

async fn trailers(mut body: RecvStream) -> HeaderMap {
    while let Some(data) = body.data().await {
        // A stream that is reset has no trailers.
        let Ok(data) = data else { return HeaderMap::new() };
        let _ = body.flow_control().release_capacity(data.len());
    }
    body.trailers().await.ok().flatten().unwrap_or_default()
}
