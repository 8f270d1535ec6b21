//! SOCKS version 5 (RFC 1928), with user name and password (RFC 1929).
//!
//! Only `CONNECT`, and only to addresses: names are never handed on.

use std::net::{IpAddr, SocketAddr};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{broken, failed};
use crate::credentials::Credentials;
use crate::dial_error::{DialError, DialErrorKind};

const VERSION: u8 = 5;
const NO_AUTHENTICATION: u8 = 0;
const USER_AND_PASSWORD: u8 = 2;
const NOTHING_FITS: u8 = 0xff;

/// Asks the proxy to connect to an address. Every part of its answers has a length known beforehand, so that nothing is read
/// that belongs to the server behind it.
pub(super) async fn connect(
    stream: &mut TcpStream,
    target: SocketAddr,
    credentials: Option<&Credentials>,
) -> Result<(), DialError> {
    let greeting: &[u8] = match credentials {
        Some(_) => &[VERSION, 2, NO_AUTHENTICATION, USER_AND_PASSWORD],
        None => &[VERSION, 1, NO_AUTHENTICATION],
    };
    stream.write_all(greeting).await.map_err(|error| broken(&error))?;
    let [version, method] = read(stream).await?;
    if version != VERSION {
        return Err(failed("the proxy does not speak SOCKS version 5"));
    }
    match (method, credentials) {
        (NO_AUTHENTICATION, _) => {}
        (USER_AND_PASSWORD, Some(credentials)) => authenticate(stream, credentials).await?,
        (NOTHING_FITS | USER_AND_PASSWORD, _) => {
            let detail = "the SOCKS proxy accepts none of the offered ways to authenticate";
            return Err(DialError::new(DialErrorKind::ProxyAuthentication, detail));
        }
        _ => return Err(failed("the SOCKS proxy chose a way to authenticate that was not offered")),
    }
    ask(stream, target).await
}

async fn authenticate(stream: &mut TcpStream, credentials: &Credentials) -> Result<(), DialError> {
    let mut request = vec![1];
    for part in [credentials.user(), credentials.password()] {
        let length =
            u8::try_from(part.len()).map_err(|_| failed("user name or password is too long for SOCKS"))?;
        request.push(length);
        request.extend_from_slice(part);
    }
    stream.write_all(&request).await.map_err(|error| broken(&error))?;
    match read(stream).await? {
        [1, 0] => Ok(()),
        [1, _] => {
            let detail = "the SOCKS proxy did not accept user name and password";
            Err(DialError::new(DialErrorKind::ProxyAuthentication, detail))
        }
        _ => Err(failed("the SOCKS proxy answered user name and password with something else")),
    }
}

async fn ask(stream: &mut TcpStream, target: SocketAddr) -> Result<(), DialError> {
    let mut request = vec![VERSION, 1, 0];
    match target.ip() {
        IpAddr::V4(address) => {
            request.push(1);
            request.extend_from_slice(&address.octets());
        }
        IpAddr::V6(address) => {
            request.push(4);
            request.extend_from_slice(&address.octets());
        }
    }
    request.extend_from_slice(&target.port().to_be_bytes());
    stream.write_all(&request).await.map_err(|error| broken(&error))?;

    let [version, reply, _, kind] = read(stream).await?;
    if version != VERSION {
        return Err(failed("the SOCKS proxy's answer has another version"));
    }
    if reply != 0 {
        let detail = format!("the SOCKS proxy did not connect to {target}: {}", reply_text(reply));
        return Err(DialError::new(DialErrorKind::ProxyRefused, detail));
    }
    // Where the proxy connects from does not matter, but has to be read.
    let rest = match kind {
        1 => 4 + 2,
        4 => 16 + 2,
        3 => {
            let [length] = read(stream).await?;
            usize::from(length) + 2
        }
        _ => return Err(failed("the SOCKS proxy's answer has an unknown kind of address")),
    };
    let mut bound = [0; 257];
    stream.read_exact(&mut bound[..rest]).await.map_err(|error| broken(&error))?;
    Ok(())
}

async fn read<const N: usize>(stream: &mut TcpStream) -> Result<[u8; N], DialError> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).await.map_err(|error| broken(&error))?;
    Ok(bytes)
}

fn reply_text(reply: u8) -> &'static str {
    match reply {
        1 => "general failure",
        2 => "not allowed by its rules",
        3 => "network unreachable",
        4 => "host unreachable",
        5 => "connection refused",
        6 => "time to live expired",
        7 => "command not supported",
        8 => "kind of address not supported",
        _ => "unknown reason",
    }
}
