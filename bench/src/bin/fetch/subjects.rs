//! Who is measured: the same requests, as many at a time, on one thread, each page read to its end and looked at.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Uri, header};
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::task::LocalSet;
use trapline_bench::measure::{Sample, Stopwatch, resident};
use trapline_core::parse_url;
use trapline_fetch::{FetchOptions, FetchRequest, Fetcher};

use crate::server::PAGE_BYTES;

pub const AT_ONCE: u64 = 16;

/// Does so many pieces of work, some at a time, after a few that do not count.
fn run<F: Future<Output = ()> + 'static>(pages: u64, fetch: impl Fn(u64) -> F + Clone + 'static) -> Sample {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    let round = |pages: u64| {
        let next = Rc::new(Cell::new(0));
        let local = LocalSet::new();
        for _ in 0..AT_ONCE {
            let (next, fetch) = (Rc::clone(&next), fetch.clone());
            local.spawn_local(async move {
                while next.get() < pages {
                    let number = next.replace(next.get() + 1);
                    fetch(number).await;
                }
            });
        }
        runtime.block_on(local);
    };
    round(pages / 10);
    let (before, _) = resident();
    let mut watch = Stopwatch::default();
    watch.time(|| round(pages));
    let (after, peak) = resident();
    Sample {
        operations: pages,
        wall: watch.wall,
        cpu: watch.cpu,
        held: after.saturating_sub(before),
        peak,
        note: String::new(),
    }
}

pub fn ours(address: SocketAddr, pages: u64) -> Sample {
    let mut options = FetchOptions::default();
    options.dial.guard.allow_networks = vec!["127.0.0.0/8".parse().expect("this is a network")];
    options.pool.idle_per_origin_max = AT_ONCE as usize;
    let fetcher = Fetcher::new(options).expect("these options can be followed");
    run(pages, move |number| {
        let fetcher = fetcher.clone();
        async move {
            let url = parse_url(&format!("http://{address}/page/{number}"), None).expect("this is a URL");
            let fetched = fetcher.fetch(&FetchRequest::get(url)).await;
            assert_eq!((fetched.status, fetched.body.len()), (Some(200), PAGE_BYTES), "{:?}", fetched.error);
        }
    })
}

pub fn hyper_util(address: SocketAddr, pages: u64) -> Sample {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let client: Client<_, Empty<Bytes>> = Client::builder(TokioExecutor::new()).build(connector);
    let mut headers = HeaderMap::new();
    headers.insert(header::USER_AGENT, HeaderValue::from_static("trapline/0.1.0"));
    headers.insert(
        header::ACCEPT,
        HeaderValue::from_static("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
    );
    headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip, deflate, br, zstd"));
    run(pages, move |number| {
        let (client, headers) = (client.clone(), headers.clone());
        async move {
            let uri: Uri = format!("http://{address}/page/{number}").parse().expect("this is a URI");
            let mut request = Request::new(Empty::new());
            *request.uri_mut() = uri;
            *request.headers_mut() = headers;
            let response = client.request(request).await.expect("the server answers");
            assert_eq!(response.status(), 200);
            let body = response.into_body().collect().await.expect("the body comes").to_bytes();
            assert_eq!(body.len(), PAGE_BYTES);
        }
    })
}
