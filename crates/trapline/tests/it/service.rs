//! `trapline serve` as a process of its own, on ports that were free, killed with its test.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::folder::Folder;

/// Any free port of an address that no connection goes out from: who asks for a service that is away must not meet itself.
const ANY: &str = "127.0.7.1:0";

pub(crate) struct Service {
    child: Child,
    /// `ADDRESS:PORT` of gRPC.
    pub(crate) grpc: String,
    /// `ADDRESS:PORT` of HTTP.
    http: String,
}

impl Service {
    /// Serves a store, on any ports.
    pub(crate) fn start(store: &str, more: &[&str]) -> Self {
        Self::start_at(store, [ANY, ANY], more)
    }

    /// Serves a crawl into a folder, which may fetch from this machine; on any ports.
    pub(crate) fn start_crawling(folder: &Folder, more: &[&str]) -> Self {
        let store = format!("disk:{}/store", folder.path.display());
        Self::start_crawling_on(&store, folder, more)
    }

    /// The same, from another store.
    pub(crate) fn start_crawling_on(store: &str, folder: &Folder, more: &[&str]) -> Self {
        let out = folder.path.display().to_string();
        let mut arguments = vec!["--crawl", "--out", &out];
        for option in [
            "fetch.allow_networks=127.0.0.0/8",
            "sitemaps.follow=false",
            "fetch.contact=a@b.test",
            "pace.delay=0",
        ] {
            arguments.extend(["--set", option]);
        }
        arguments.extend(more);
        Self::start(store, &arguments)
    }

    /// Serves a store at these addresses: gRPC's and HTTP's.
    fn start_at(store: &str, listen: [&str; 2], more: &[&str]) -> Self {
        Self::of(&[&["serve", "--store", store], &listening(listen)[..], more].concat())
    }

    /// What a command line that serves does, on any ports.
    pub(crate) fn of_command_line(arguments: &[&str]) -> Self {
        Self::of(&[arguments, &listening([ANY, ANY])].concat())
    }

    fn of(arguments: &[&str]) -> Self {
        let child = Command::new(env!("CARGO_BIN_EXE_trapline"))
            .args(arguments)
            .arg("--json")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let mut service = Self { child, grpc: String::new(), http: String::new() };
        let mut line = String::new();
        let output = service.child.stdout.take().expect("it is piped");
        BufReader::new(output).read_line(&mut line).expect("it is text");
        let told: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("it serves: {line:?}"));
        let address = |port: &str| {
            let url = told[port].as_str().expect("it tells where it listens");
            url.split_once("://").expect("it is a URL").1.to_owned()
        };
        (service.grpc, service.http) = (address("grpc"), address("http"));
        service
    }

    /// As `kill -9` does.
    pub(crate) fn kill(&mut self) {
        // It may have been killed before.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Serves the same store at the same ports, after it was killed or has ended.
    pub(crate) fn start_again(&mut self, store: &str, more: &[&str]) {
        *self = Self::start_at(store, [&self.grpc.clone(), &self.http.clone()], more);
    }

    /// Tells it to end in good order, and waits until it has.
    pub(crate) fn end(&mut self) -> ExitStatus {
        kill_process(Pid::from_child(&self.child), Signal::TERM).expect("it runs");
        self.child.wait().expect("it is a child")
    }

    /// How much memory its process has taken at most.
    pub(crate) fn memory_peak_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it runs");
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.strip_suffix("kB"));
        peak.expect("the kernel tells it").trim().parse::<u64>().expect("it is a number") << 10
    }

    /// What the HTTP port answers, whole.
    pub(crate) fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.http).expect("it listens");
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.http);
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it is text");
        answer
    }
}

fn listening([grpc, http]: [&str; 2]) -> [&str; 4] {
    ["--grpc-listen", grpc, "--http-listen", http]
}

impl Drop for Service {
    fn drop(&mut self) {
        self.kill();
    }
}
