//! Connections that rest between two requests: used again if nothing has happened to them, and only then.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Method;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::watch;
use tokio::task::coop;
use trapline_fetch::{FetchRequest, Fetcher};

use crate::door::Server;
use crate::web::{
    Certificate, answer_all, encrypted, healthy, leading_to, ok, options, page, read_head, request, text,
};

/// What a server does on a connection after its first answer.
#[derive(Clone, Copy, Debug)]
enum Meanwhile {
    Nothing,
    HangUp,
    Say(&'static [u8]),
}

/// How far a test has come, for a server and its visitor.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Scene {
    First,
    Between,
    Second,
}

type Stage = watch::Sender<Scene>;

/// Waits until so many connections rest and no others are idle.
pub(crate) async fn resting(fetcher: &Fetcher, count: usize) {
    let latest = Instant::now() + Duration::from_secs(10);
    while (fetcher.resting_connections(), fetcher.idle_connections()) != (count, count) {
        let (rest, idle) = (fetcher.resting_connections(), fetcher.idle_connections());
        assert!(Instant::now() < latest, "{rest} of {idle} rest, not {count}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn serve(mut stream: impl AsyncRead + AsyncWrite + Unpin, meanwhile: Meanwhile, stage: Stage) {
    if read_head(&mut stream).await.is_err() || stream.write_all(&ok("", "page")).await.is_err() {
        return;
    }
    let mut scenes = stage.subscribe();
    if scenes.wait_for(|scene| *scene >= Scene::Between).await.is_err() {
        return;
    }
    let done = match meanwhile {
        Meanwhile::Nothing => Ok(()),
        Meanwhile::HangUp => stream.shutdown().await,
        Meanwhile::Say(bytes) => stream.write_all(bytes).await,
    };
    stage.send_replace(Scene::Second);
    if done.is_ok() {
        let _ = answer_all(stream, |_| async { ok("", "page") }).await;
    }
}

/// A server, plain or behind TLS, and a fetcher with an URL that leads there.
async fn website(tls: bool, meanwhile: Meanwhile, stage: &Stage) -> (Server, Fetcher, FetchRequest) {
    let stage = stage.clone();
    let mut options = options();
    let server = if tls {
        let certificate = Certificate::new(&["a.example"]);
        options.dial.roots = certificate.believed();
        encrypted(&certificate, &[b"http/1.1"], move |stream| serve(stream, meanwhile, stage.clone())).await
    } else {
        Server::start(move |stream| serve(stream, meanwhile, stage.clone())).await
    };
    let fetcher = Fetcher::new(leading_to(options, &server)).unwrap();
    (server, fetcher, request(if tls { "https://a.example/" } else { "http://a.example/" }))
}

/// A request that is never sent twice.
fn once(request: &FetchRequest) -> FetchRequest {
    FetchRequest { method: Method::POST, body: Bytes::from_static(b"once"), ..request.clone() }
}

/// Fetches, lets the connection rest while the server does something, fetches again. Answers whether the connection was used
/// again and how many there were.
async fn fetch_twice(tls: bool, meanwhile: Meanwhile) -> (bool, usize) {
    let stage = Stage::new(Scene::First);
    let (server, fetcher, request) = website(tls, meanwhile, &stage).await;
    let fetched = fetcher.fetch(&request).await;
    assert_eq!((text(&fetched), fetcher.resting_connections()), ("page", 0), "{:?}", fetched.error);
    resting(&fetcher, 1).await;
    stage.send_replace(Scene::Between);
    stage.subscribe().wait_for(|scene| *scene == Scene::Second).await.unwrap();
    // What the server did is on its way: loopback needs a moment.
    tokio::time::sleep(Duration::from_millis(50)).await;
    let fetched = fetcher.fetch(&once(&request)).await;
    assert_eq!((text(&fetched), fetched.retried), ("page", false), "{meanwhile:?}: {:?}", fetched.error);
    (fetched.reused, server.visitors().await)
}

#[tokio::test]
async fn a_connection_that_rested_is_used_again() {
    for tls in [false, true] {
        assert_eq!(fetch_twice(tls, Meanwhile::Nothing).await, (true, 1), "{tls}");
    }
}

#[tokio::test]
async fn a_connection_can_rest_again_and_again() {
    let server = healthy("page").await;
    let mut options = options();
    options.keep_raw = true;
    let fetcher = Fetcher::new(options).unwrap();
    for round in 0..3 {
        let fetched = fetcher.fetch(&page(&server, "/")).await;
        assert_eq!((text(&fetched), fetched.reused), ("page", round > 0));
        assert_eq!(fetched.raw.as_ref().unwrap().body, "page");
        resting(&fetcher, 1).await;
    }
    assert_eq!(server.visitors().await, 1);
}

#[tokio::test]
async fn a_connection_that_is_closed_while_it_rests_is_not_even_tried() {
    for tls in [false, true] {
        assert_eq!(fetch_twice(tls, Meanwhile::HangUp).await, (false, 2), "{tls}");
    }
}

#[tokio::test]
async fn a_connection_on_which_something_is_said_while_it_rests_is_not_used_again() {
    for tls in [false, true] {
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong";
        for words in [&answer[..], b"\r\n", b"x"] {
            assert_eq!(fetch_twice(tls, Meanwhile::Say(words)).await, (false, 2), "{tls} {words:?}");
        }
    }
}

/// The other half would be lost when it rests.
#[tokio::test]
async fn a_connection_with_half_of_a_request_on_it_is_not_kept() {
    let server = Server::start(|mut stream| async move {
        let _ = read_head(&mut stream).await;
        let _ = stream.write_all(&ok("", "early")).await;
        // Reads no more, and does not hang up.
        std::future::pending::<()>().await;
    })
    .await;
    let fetcher = Fetcher::new(options()).unwrap();
    let body = Bytes::from(vec![b'x'; 32 << 20]);
    let fetched = fetcher.fetch(&FetchRequest { body, ..once(&page(&server, "/")) }).await;
    assert_eq!((text(&fetched), fetcher.idle_connections()), ("early", 0), "{:?}", fetched.error);
}

/// Uses up what a task may read in one turn, without ending the turn.
async fn spend_the_turn() {
    std::future::poll_fn(|cx| {
        while coop::has_budget_remaining() {
            let _ = std::pin::pin!(coop::consume_budget()).poll(cx);
        }
        std::task::Poll::Ready(())
    })
    .await;
}

#[tokio::test]
async fn a_connection_is_looked_at_also_by_a_task_that_has_read_enough_for_its_turn() {
    for rested in [false, true] {
        for meanwhile in
            [Meanwhile::HangUp, Meanwhile::Say(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")]
        {
            let stage = Stage::new(Scene::First);
            let (server, fetcher, request) = website(false, meanwhile, &stage).await;
            assert_eq!(text(&fetcher.fetch(&request).await), "page");
            if rested {
                resting(&fetcher, 1).await;
            }
            stage.send_replace(Scene::Between);
            stage.subscribe().wait_for(|scene| *scene == Scene::Second).await.unwrap();
            // As above: loopback needs a moment.
            tokio::time::sleep(Duration::from_millis(50)).await;
            spend_the_turn().await;
            let fetched = fetcher.fetch(&once(&request)).await;
            assert_eq!(
                (text(&fetched), fetched.reused),
                ("page", false),
                "{meanwhile:?}: {:?}",
                fetched.error
            );
            assert_eq!(server.visitors().await, 2);
        }
    }
}
