//! A server that answers every request with the same page, on connections that it keeps.
//!
//! It looks for the end of a request and at nothing else: what it costs does not count, but it must not be what is waited for.

use std::io::Write;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub const PAGE_BYTES: usize = 20_000;

/// Prints its address and serves until it is killed.
pub fn serve() -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| error.to_string())?.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(|error| error.to_string())?;
        println!("{}", listener.local_addr().map_err(|error| error.to_string())?);
        let _ = std::io::stdout().flush();
        let answer: &'static [u8] = Vec::leak(answer());
        loop {
            let (stream, _) = listener.accept().await.map_err(|error| error.to_string())?;
            let _ = stream.set_nodelay(true);
            tokio::spawn(keep(stream, answer));
        }
    })
}

fn answer() -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nDate: Sun, 15 Nov 2026 12:00:00 GMT\r\nServer: bench\r\nContent-Type: text/html; charset=utf-8\r\n\
         Cache-Control: max-age=60\r\nETag: \"abcdef\"\r\nContent-Length: {PAGE_BYTES}\r\n\r\n"
    );
    let mut answer = head.into_bytes();
    answer.extend((0..PAGE_BYTES).map(|place| b'a' + (place % 23) as u8));
    answer
}

async fn keep(mut stream: TcpStream, answer: &[u8]) {
    let mut request = Vec::with_capacity(4096);
    while let Ok(1..) = stream.read_buf(&mut request).await {
        while let Some(end) = request.windows(4).position(|window| window == b"\r\n\r\n") {
            request.drain(..end + 4);
            if stream.write_all(answer).await.is_err() {
                return;
            }
        }
    }
}
