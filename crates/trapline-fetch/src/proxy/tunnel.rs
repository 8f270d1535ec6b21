//! HTTP `CONNECT`: asking an HTTP proxy to pass bytes on.
//!
//! The proxy's answer is read up to its empty line and not further, within a bound; what it says beside the status is
//! not looked at.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{broken, failed};
use crate::credentials::Credentials;
use crate::dial_error::{DialError, DialErrorKind};

/// A proxy's answer is a status and a few headers.
const ANSWER_BYTES_MAX: usize = 16 * 1024;

/// Asks the proxy to connect to an address.
pub(super) async fn connect(
    stream: &mut TcpStream,
    target: SocketAddr,
    credentials: Option<&Credentials>,
) -> Result<(), DialError> {
    let mut request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n").into_bytes();
    if let Some(credentials) = credentials {
        request.extend_from_slice(b"Proxy-Authorization: ");
        request.extend_from_slice(credentials.basic().as_bytes());
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"\r\n");
    stream.write_all(&request).await.map_err(|error| broken(&error))?;

    let answer = read_answer(stream).await?;
    match status(&answer) {
        Some(200..=299) => Ok(()),
        Some(407) => Err(DialError::new(
            DialErrorKind::ProxyAuthentication,
            "the HTTP proxy did not accept the credentials (status 407)",
        )),
        Some(status) => Err(DialError::new(
            DialErrorKind::ProxyRefused,
            format!("the HTTP proxy did not connect to {target} (status {status})"),
        )),
        None => Err(failed("the HTTP proxy's answer to CONNECT is not HTTP")),
    }
}

async fn read_answer(stream: &mut TcpStream) -> Result<Vec<u8>, DialError> {
    let mut answer = Vec::with_capacity(1024);
    loop {
        let searched_to = answer.len().saturating_sub(3);
        let read = stream.read_buf(&mut answer).await.map_err(|error| broken(&error))?;
        if let Some(place) = answer[searched_to..].windows(4).position(|end| end == b"\r\n\r\n") {
            // In what is tunnelled we speak first, so whatever follows is not the server's.
            let end = searched_to + place + 4;
            return if end == answer.len() {
                Ok(answer)
            } else {
                Err(failed("the HTTP proxy went on after its answer to CONNECT"))
            };
        }
        if read == 0 {
            return Err(failed("the HTTP proxy hung up in the middle of its answer to CONNECT"));
        }
        if answer.len() > ANSWER_BYTES_MAX {
            return Err(failed(format!(
                "the HTTP proxy's answer to CONNECT exceeds {ANSWER_BYTES_MAX} bytes"
            )));
        }
        if answer.len() >= 5 && !answer.starts_with(b"HTTP/") {
            return Err(failed("the HTTP proxy's answer to CONNECT is not HTTP"));
        }
    }
}

/// The status of `HTTP/1.1 200 …`.
fn status(answer: &[u8]) -> Option<u16> {
    let rest = answer.strip_prefix(b"HTTP/1.1 ").or_else(|| answer.strip_prefix(b"HTTP/1.0 "))?;
    let (digits, behind) = (rest.get(..3)?, rest.get(3)?);
    let plain = digits.iter().all(u8::is_ascii_digit) && matches!(behind, b' ' | b'\r');
    plain.then(|| digits.iter().fold(0, |number, digit| number * 10 + u16::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_has_three_digits() {
        assert_eq!(status(b"HTTP/1.1 200 Connection established\r\n\r\n"), Some(200));
        assert_eq!(status(b"HTTP/1.0 407\r\n\r\n"), Some(407));
        for answer in [
            "HTTP/1.1 20\r\n\r\n",
            "HTTP/1.1 2000\r\n\r\n",
            "HTTP/2 200 OK\r\n\r\n",
            "HTTP/1.1 -20 \r\n\r\n",
            "",
        ] {
            assert_eq!(status(answer.as_bytes()), None, "{answer}");
        }
    }
}
