//! A generated web, served on a loopback address: every host by its name, at one port.
//!
//! It answers what the web says, in a tenth of the time. No more of HTTP than a crawler needs.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use trapline_sim::{Page, Random, Response, Web};

use crate::moment;

/// No request is longer.
const REQUEST_BYTES_MAX: usize = 16 << 10;

/// Hosts take so many times less time than in the simulation.
const HASTE: u32 = 10;

/// A web that is being served.
pub(super) struct WebServer {
    pub(super) address: SocketAddr,
    /// How many requests there were.
    pub(super) requests: Arc<AtomicU64>,
}

impl WebServer {
    /// Serves a web on a free port of this machine, until the runtime ends.
    pub(super) async fn start(web: Arc<Web>) -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let requests = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&requests);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (web, requests) = (Arc::clone(&web), Arc::clone(&counted));
                tokio::spawn(async move {
                    // A client that goes away is no trouble of ours.
                    let _ = talk(stream, &web, &requests).await;
                });
            }
        });
        Ok(Self { address, requests })
    }
}

async fn talk(mut stream: TcpStream, web: &Web, requests: &AtomicU64) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut bytes = Vec::new();
    loop {
        let end = loop {
            if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
            if bytes.len() > REQUEST_BYTES_MAX || stream.read_buf(&mut bytes).await? == 0 {
                return Ok(());
            }
        };
        let number = requests.fetch_add(1, Ordering::Relaxed);
        let head: Vec<u8> = bytes.drain(..end).collect();
        let (took, answer) = answer(web, &String::from_utf8_lossy(&head), number);
        tokio::time::sleep(took / HASTE).await;
        stream.write_all(answer.as_bytes()).await?;
    }
}

/// How long it takes and what comes back.
fn answer(web: &Web, head: &str, number: u64) -> (Duration, String) {
    let path = head.split(' ').nth(1).unwrap_or("/");
    let host = head.lines().find_map(|line| line.strip_prefix("host: ").or(line.strip_prefix("Host: ")));
    let host = host.unwrap_or_default().trim();
    if path == "/robots.txt" {
        return (Duration::ZERO, response("200 OK", "content-type: text/plain\r\n", &robots(web, host)));
    }
    // The web knows its pages by the addresses that they would have on the real one.
    let url = format!("https://{host}{path}");
    let fetched = web.fetch(&url, moment::now(), &mut Random::new(number));
    let text = match fetched.response {
        Response::Page { bytes, links, .. } => {
            let html = "content-type: text/html; charset=utf-8\r\n";
            response("200 OK", html, &page(&url, &links, usize::try_from(bytes).unwrap_or(0)))
        }
        Response::Redirect { to } => {
            response("301 Moved Permanently", &format!("location: {}\r\n", plain(&to)), "")
        }
        Response::NotFound => response("404 Not Found", "", "there is no such page"),
        Response::Broken => response("500 Internal Server Error", "", "this page is broken"),
        Response::Unavailable { .. } => {
            response("503 Service Unavailable", "retry-after: 1\r\n", "down at present")
        }
        Response::Disallowed => response("403 Forbidden", "", "robots.txt had said so"),
    };
    (fetched.took, text)
}

fn response(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n{body}", body.len())
}

/// The same address without TLS, which a demo has no certificates for.
fn plain(url: &str) -> String {
    url.replacen("https://", "http://", 1)
}

fn page(url: &str, links: &[String], bytes: usize) -> String {
    let mut page = format!("<!doctype html><title>{url}</title>\n<ul>\n");
    for link in links {
        page += &format!("<li><a href=\"{}\">{link}</a>\n", plain(link));
    }
    page += "</ul>\n<p>";
    while page.len() < bytes {
        page += "All work and no play makes a dull page. ";
    }
    page
}

/// Every page of the host that is not to be fetched.
fn robots(web: &Web, host: &str) -> String {
    let mut text = "User-agent: *\n".to_owned();
    let index = web.hosts().iter().position(|its| its.name() == host);
    let Some((index, pages)) = index.map(|index| (index, web.hosts()[index].pages())) else { return text };
    for number in 0..pages {
        let page = Page { host: u32::try_from(index).unwrap_or(u32::MAX), number };
        let url = web.url(page);
        let disallowed =
            matches!(web.fetch(&url, moment::now(), &mut Random::new(0)).response, Response::Disallowed);
        if let (true, Some((_, path))) =
            (disallowed, url.strip_prefix("https://").and_then(|url| url.split_once('/')))
        {
            text += &format!("Disallow: /{path}$\n");
        }
    }
    text
}
