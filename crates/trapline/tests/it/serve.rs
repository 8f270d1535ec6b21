//! `trapline serve` from outside: it serves beside other commands, and ends in good order.

use std::process::Command;

use prost::bytes::{Buf, BufMut};
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::transport::Endpoint;
use tonic::{Code, Request, Status};

use crate::folder::Folder;
use crate::operate::ask;
use crate::service::Service;

#[test]
fn a_service_works_beside_commands_and_ends_when_it_is_told_to() {
    let folder = Folder::new("serve");
    let mut service = Service::start(&folder.url(), &[]);
    assert!(service.get("/healthz").starts_with("HTTP/1.1 200 "));
    assert!(service.get("/readyz").starts_with("HTTP/1.1 200 "));
    assert_eq!(ask(&folder, &["admit"], "http://a.example/\n", 0)[0]["added"], 1);
    assert_eq!(ask(&folder, &["stats"], "", 0)[0]["urls"]["pending"], 1);
    let metrics = service.get("/metrics");
    assert!(metrics.contains("trapline_urls{state=\"pending\"} 1\n"), "{metrics}");

    assert_eq!(service.end().code(), Some(0));
    assert!(!folder.path.join("socket").exists(), "the folder is free");
    assert_eq!(ask(&folder, &["stats"], "", 0)[0]["urls"]["pending"], 1);
}

#[test]
fn an_open_door_is_refused_with_what_to_do() {
    let output = Command::new(env!("CARGO_BIN_EXE_trapline"))
        .args(["serve", "--store", "memory:", "--grpc-listen", "0.0.0.0:7071"])
        .output()
        .expect("the binary runs");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.starts_with("trapline serve: will not listen at 0.0.0.0:7071 (--grpc-listen): "), "{told}");
    assert!(told.contains("--tls-cert FILE --tls-key FILE") && told.contains("--tokens FILE"), "{told}");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_service_that_nobody_could_connect_to_is_refused() {
    for (count, why) in
        [("0", "it has to be 1 or more: with 0 nobody could connect"), ("x", "a number from 1")]
    {
        let output = Command::new(env!("CARGO_BIN_EXE_trapline"))
            .args(["serve", "--store", "memory:", "--max-connections", count])
            .output()
            .expect("the binary runs");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(told.contains("--max-connections") && told.contains(why), "{told}");
        assert_eq!(output.status.code(), Some(2));
    }
}

/// Sends bytes as they are.
#[derive(Default)]
struct Raw;

impl Codec for Raw {
    type Encode = Vec<u8>;
    type Decode = ();
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, bytes: Vec<u8>, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put_slice(&bytes);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = ();
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<()>, Status> {
        buffer.advance(buffer.remaining());
        Ok(Some(()))
    }
}

/// An empty candidate is two bytes long, and takes half a kilobyte once it is made.
#[tokio::test]
async fn a_call_takes_no_more_memory_than_its_bytes() {
    let service = Service::start("memory:", &[]);
    let endpoint = Endpoint::from_shared(format!("http://{}", service.grpc)).unwrap();
    let mut client = Grpc::new(endpoint.connect().await.unwrap());
    let before = service.memory_peak_bytes();
    for (path, part) in [
        ("/trapline.v1.Frontier/Admit", [0x12, 0]),
        ("/trapline.v1.Frontier/Settle", [0x12, 0]),
        ("/urlfrontier.URLFrontier/PutDiscovered", [0x12, 0]),
    ] {
        client.ready().await.unwrap();
        let message = Request::new(part.repeat(2_000_000));
        let path = path.parse().unwrap();
        let answer = client.unary(message, path, Raw).await;
        assert_eq!(answer.unwrap_err().code(), Code::InvalidArgument);
    }
    let taken = (service.memory_peak_bytes() - before) >> 20;
    println!("{taken} MiB");
    assert!(taken < 64, "{taken} MiB for messages of 4 MiB");
}
