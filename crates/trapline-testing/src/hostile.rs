//! Servers that waste a crawler's time. What they do to a single fetch is tested where fetching is; these are for crawls.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How a server wastes time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Manner {
    /// Takes requests and never answers.
    Tarpit,
    /// Sends a page without end, ten bytes a second.
    Drip,
    /// Answers 503, always.
    Failing,
    /// Sends half of a page, and then nothing.
    Stalling,
    /// Resets each connection when a request has come.
    Resetting,
}

impl Manner {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Tarpit, Self::Drip, Self::Failing, Self::Stalling, Self::Resetting];
}

/// A server on a loopback address of its own. It is gone when dropped, and its connections with it.
#[derive(Debug)]
pub struct HostileServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    listening: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    is_over: AtomicBool,
    requests: AtomicU64,
    /// To be closed at the end: threads wait in them.
    connections: Mutex<Vec<TcpStream>>,
}

impl HostileServer {
    /// Starts one.
    pub fn start(address: Ipv4Addr, manner: Manner) -> Result<Self, String> {
        let failed = |error| format!("cannot listen at {address}: {error}");
        let listener = TcpListener::bind((address, 0)).map_err(failed)?;
        let address = listener.local_addr().map_err(|error| format!("a server has no address: {error}"))?;
        let shared = Arc::new(Shared::default());
        let listening = Some(std::thread::spawn({
            let shared = Arc::clone(&shared);
            move || listen(&listener, manner, &shared)
        }));
        Ok(Self { address, shared, listening })
    }

    /// The URL of its root.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// How many requests came.
    pub fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::Relaxed)
    }
}

impl Drop for HostileServer {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        // It waits for a connection; here is one.
        let _ = TcpStream::connect(self.address);
        if let Some(listening) = self.listening.take() {
            let _ = listening.join();
        }
        for stream in self.shared.connections.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }
}

fn listen(listener: &TcpListener, manner: Manner, shared: &Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept() {
        if shared.is_over.load(Ordering::Relaxed) {
            return;
        }
        if manner != Manner::Resetting
            && let Ok(stream) = stream.try_clone()
        {
            shared.connections.lock().unwrap_or_else(PoisonError::into_inner).push(stream);
        }
        let shared = Arc::clone(shared);
        std::thread::spawn(move || {
            // The client hung up, which is what it should do.
            let _ = waste(stream, manner, &shared);
        });
    }
}

fn waste(mut stream: TcpStream, manner: Manner, shared: &Shared) -> std::io::Result<()> {
    if manner == Manner::Resetting {
        // A close with unread bytes is a reset.
        stream.peek(&mut [0])?;
        shared.requests.fetch_add(1, Ordering::Relaxed);
        return Ok(());
    }
    while read_head(&mut stream)? {
        shared.requests.fetch_add(1, Ordering::Relaxed);
        let page = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n";
        match manner {
            Manner::Tarpit | Manner::Resetting => {}
            Manner::Failing => {
                stream.write_all(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")?;
            }
            Manner::Stalling => {
                stream.write_all(format!("{page}Content-Length: 1000\r\n\r\n<p>half").as_bytes())?;
            }
            Manner::Drip => {
                stream.write_all(format!("{page}\r\n").as_bytes())?;
                while !shared.is_over.load(Ordering::Relaxed) {
                    stream.write_all(b".")?;
                    std::thread::park_timeout(Duration::from_millis(100));
                }
            }
        }
    }
    Ok(())
}

/// Reads a request up to the empty line; false once the client has hung up.
fn read_head(stream: &mut TcpStream) -> std::io::Result<bool> {
    let mut last = [0; 4];
    let mut byte = [0];
    while last != *b"\r\n\r\n" {
        if stream.read(&mut byte)? == 0 {
            return Ok(false);
        }
        last.rotate_left(1);
        last[3] = byte[0];
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes of a request, as far as it comes.
    fn ask(manner: Manner, bytes: usize) -> (std::io::Result<usize>, String) {
        let server = HostileServer::start(Ipv4Addr::LOCALHOST, manner).unwrap();
        let mut stream = TcpStream::connect(server.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut text = vec![0; bytes];
        let mut length = 0;
        let ended = loop {
            match stream.read(&mut text[length..]) {
                Ok(more @ 1..) => length += more,
                ended => break ended,
            }
        };
        assert_eq!(server.requests(), 1);
        (ended, String::from_utf8_lossy(&text[..length]).into_owned())
    }

    #[test]
    fn each_wastes_time_in_its_manner() {
        use std::io::ErrorKind::{ConnectionReset, WouldBlock};
        let silent = |ended: std::io::Result<usize>| ended.is_err_and(|error| error.kind() == WouldBlock);
        let (ended, text) = ask(Manner::Tarpit, 1000);
        assert!(silent(ended) && text.is_empty(), "{text}");
        let (ended, text) = ask(Manner::Stalling, 1000);
        assert!(silent(ended) && text.ends_with("<p>half"), "{text}");
        let (ended, text) = ask(Manner::Failing, 1000);
        assert!(silent(ended) && text.starts_with("HTTP/1.1 503"), "{text}");
        // As much as is read, and no end of it.
        let (ended, text) = ask(Manner::Drip, 47);
        assert!(ended.is_ok() && text.ends_with("\r\n\r\n..."), "{text}");
        let (ended, _) = ask(Manner::Resetting, 1000);
        assert!(ended.is_err_and(|error| error.kind() == ConnectionReset));
    }
}
