//! The server of the web, a process of its own so that what it costs does not count. It notes which pages were asked for.

use std::cell::RefCell;
use std::convert::Infallible;
use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::web::{Form, Web};

/// What was asked of it.
struct Seen {
    pages: Vec<bool>,
    different: u64,
    requests: u64,
    robots: u64,
    others: u64,
}

/// Prints its port and serves until it is killed. At 127.0.0.1 it tells what it has seen, and begins anew where that is asked for.
pub fn serve(web: Web) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let local = tokio::task::LocalSet::new();
    let Err(error) = runtime.block_on(local.run_until(listen(web)));
    Err(format!("the server failed: {error}"))
}

async fn listen(web: Web) -> std::io::Result<Infallible> {
    let socket = TcpSocket::new_v4()?;
    // All loopback addresses at once.
    socket.bind(SocketAddr::from(([0, 0, 0, 0], 0)))?;
    let listener = socket.listen(16_384)?;
    let port = listener.local_addr()?.port();
    println!("{port}");
    std::io::stdout().flush()?;
    let form = Rc::new(Form::new(port));
    let seen = Rc::new(RefCell::new(Seen::new(web)));
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let IpAddr::V4(address) = stream.local_addr()?.ip() else { continue };
        let host = web.host(address);
        tokio::task::spawn_local(keep(stream, web, host, port, Rc::clone(&form), Rc::clone(&seen)));
    }
}

async fn keep(
    mut stream: TcpStream,
    web: Web,
    host: Option<u32>,
    port: u16,
    form: Rc<Form>,
    seen: Rc<RefCell<Seen>>,
) {
    let mut request = Vec::with_capacity(4096);
    let mut answer = Vec::new();
    while let Ok(1..) = stream.read_buf(&mut request).await {
        while let Some(end) = request.windows(4).position(|window| window == b"\r\n\r\n") {
            answer.clear();
            let head = String::from_utf8_lossy(&request[..end]);
            let path = head.split(' ').nth(1).unwrap_or("/");
            match host {
                None => tell(&mut seen.borrow_mut(), web, path, &mut answer),
                Some(host) => match web.page(path) {
                    Some(page) => {
                        seen.borrow_mut().note(web, host, page);
                        form.fill(web, port, host, page, &mut answer);
                    }
                    None => {
                        let mut seen = seen.borrow_mut();
                        let count = if path == "/robots.txt" { &mut seen.robots } else { &mut seen.others };
                        *count += 1;
                        answer.extend_from_slice(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
                    }
                },
            }
            request.drain(..end + 4);
            if stream.write_all(&answer).await.is_err() {
                return;
            }
        }
    }
}

impl Seen {
    fn new(web: Web) -> Self {
        let pages = vec![false; web.total() as usize];
        Self { pages, different: 0, requests: 0, robots: 0, others: 0 }
    }

    fn note(&mut self, web: Web, host: u32, page: u32) {
        self.requests += 1;
        let place = host as usize * web.pages as usize + page as usize;
        if !std::mem::replace(&mut self.pages[place], true) {
            self.different += 1;
        }
    }
}

fn tell(seen: &mut Seen, web: Web, path: &str, answer: &mut Vec<u8>) {
    if path == "/anew" {
        *seen = Seen::new(web);
    }
    let text = format!("{} {} {} {}", seen.different, seen.requests, seen.robots, seen.others);
    answer.extend_from_slice(
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len()).as_bytes(),
    );
}
