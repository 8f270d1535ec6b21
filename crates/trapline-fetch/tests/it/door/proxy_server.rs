//! Proxies on loopback: honest ones that pass bytes on, and hostile ones.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::Server;

/// What clients asked a proxy for, in their words.
pub(crate) type Asked = Arc<Mutex<Vec<String>>>;

/// An HTTP proxy that answers `CONNECT` and passes bytes on.
pub(crate) async fn http_proxy() -> (Server, Asked) {
    let asked = Asked::default();
    let server = Server::start({
        let asked = Arc::clone(&asked);
        move |mut stream| {
            let asked = Arc::clone(&asked);
            async move {
                let request = read_head(&mut stream).await;
                asked.lock().unwrap().push(request.clone());
                let target = request.strip_prefix("CONNECT ").and_then(|rest| rest.split(' ').next());
                let Some(target) = target else { return };
                match TcpStream::connect(target).await {
                    Ok(onward) => {
                        let answer = b"HTTP/1.1 200 Connection established\r\nVia: 1.1 test\r\n\r\n";
                        stream.write_all(answer).await.unwrap();
                        pass_on(stream, onward).await;
                    }
                    Err(_) => stream.write_all(b"HTTP/1.1 502 Bad Gateway\r\n\r\n").await.unwrap(),
                }
            }
        }
    })
    .await;
    (server, asked)
}

/// A SOCKS5 proxy; with credentials, one that insists on them.
pub(crate) async fn socks_proxy(credentials: Option<(&'static str, &'static str)>) -> (Server, Asked) {
    let asked = Asked::default();
    let server = Server::start({
        let asked = Arc::clone(&asked);
        move |stream| {
            let asked = Arc::clone(&asked);
            async move {
                let _ = serve_socks(stream, credentials, asked).await;
            }
        }
    })
    .await;
    (server, asked)
}

/// A proxy that reads the first bytes, says something and either hangs up or waits.
pub(crate) async fn saying(answer: &'static [u8], hang_up: bool) -> Server {
    Server::start(move |mut stream| async move {
        let mut first = [0; 1];
        let _ = stream.read_exact(&mut first).await;
        let _ = stream.write_all(answer).await;
        if !hang_up {
            super::hold(stream).await;
        }
    })
    .await
}

/// A proxy whose answer begins well and never ends.
pub(crate) async fn endless(beginning: &'static [u8], chunk: &'static [u8]) -> Server {
    Server::start(move |mut stream| async move {
        let _ = stream.write_all(beginning).await;
        while stream.write_all(chunk).await.is_ok() {}
    })
    .await
}

async fn serve_socks(
    mut stream: TcpStream,
    credentials: Option<(&str, &str)>,
    asked: Asked,
) -> std::io::Result<()> {
    let [5, methods] = read(&mut stream).await? else { panic!("no greeting") };
    let mut offered = vec![0; usize::from(methods)];
    stream.read_exact(&mut offered).await?;
    match credentials {
        Some((user, password)) if offered.contains(&2) => {
            stream.write_all(&[5, 2]).await?;
            let [1] = read(&mut stream).await? else { panic!("no authentication") };
            let mut given = Vec::new();
            for _ in 0..2 {
                let [length] = read(&mut stream).await?;
                let mut part = vec![0; usize::from(length)];
                stream.read_exact(&mut part).await?;
                given.push(String::from_utf8(part).unwrap());
            }
            let right = given == [user, password];
            stream.write_all(&[1, u8::from(!right)]).await?;
            if !right {
                return Ok(());
            }
        }
        Some(_) => return stream.write_all(&[5, 0xff]).await,
        None => stream.write_all(&[5, 0]).await?,
    }
    let [5, 1, 0, kind] = read(&mut stream).await? else { panic!("no request") };
    let address: IpAddr = match kind {
        1 => IpAddr::from(read::<4>(&mut stream).await?),
        4 => IpAddr::V6(Ipv6Addr::from(read::<16>(&mut stream).await?)),
        kind => panic!("a client that hands on names: {kind}"),
    };
    let target = SocketAddr::new(address, u16::from_be_bytes(read(&mut stream).await?));
    asked.lock().unwrap().push(target.to_string());
    match TcpStream::connect(target).await {
        Ok(onward) => {
            // A bound address that is a name, which some proxies answer with.
            stream.write_all(&[5, 0, 0, 3, 4, b'h', b'o', b's', b't', 0, 80]).await?;
            pass_on(stream, onward).await;
            Ok(())
        }
        Err(_) => stream.write_all(&[5, 5, 0, 1, 0, 0, 0, 0, 0, 0]).await,
    }
}

async fn read<const N: usize>(stream: &mut TcpStream) -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}

async fn read_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8(head).unwrap()
}

async fn pass_on(mut here: TcpStream, mut there: TcpStream) {
    let _ = tokio::io::copy_bidirectional(&mut here, &mut there).await;
}
