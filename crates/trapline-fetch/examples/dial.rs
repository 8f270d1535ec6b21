//! Which address would be dialled for a URL, and what is in the way? Connects, says what happened, and hangs up.
//!
//! `cargo run -p trapline-fetch --example dial -- [--allow-network N] [--allow-port P] [--override O] [--name-server S]
//! [--proxy URL] [--lenient HOST] URL…`

use std::error::Error;
use std::process::ExitCode;

use trapline_core::parse_url;
use trapline_fetch::{Destination, DialError, DialOptions, Dialed, Dialer};

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let done = runtime.map_err(Into::into).and_then(|runtime| runtime.block_on(run()));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("dial: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn Error>> {
    let mut options = DialOptions::default();
    let mut urls = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--allow-network" => options.guard.allow_networks.push(value()?.parse()?),
            "--allow-port" => drop(options.guard.allow_ports.insert(value()?.parse()?)),
            "--override" => options.dns.overrides.push(value()?.parse()?),
            "--name-server" => options.dns.name_servers.push(value()?.parse()?),
            "--proxy" => options.proxy = Some(value()?.parse()?),
            "--lenient" => options.lenient_tls_hosts.push(value()?.parse()?),
            url => urls.push(url.to_owned()),
        }
    }
    let dialer = Dialer::new(options)?;
    for url in urls {
        match dial(&dialer, &url).await {
            Ok(dialed) => println!("{url}\n  {}", told(&dialed)),
            Err(error) => println!("{url}\n  {}: {}\n  {}", error.kind(), error, error.detail()),
        }
    }
    Ok(())
}

async fn dial(dialer: &Dialer, url: &str) -> Result<Dialed, DialError> {
    // What is no URL has no destination either.
    let blank = || parse_url("about:blank", None);
    let url = parse_url(url, None).or_else(|_| blank()).expect("about:blank is a URL");
    dialer.dial(&Destination::of_url(&url)?).await
}

fn told(dialed: &Dialed) -> String {
    let mut text = format!("connected to {}, {:?}", dialed.address, dialed.protocol);
    if dialed.target != dialed.address {
        text += &format!(", a proxy that leads to {}", dialed.target);
    }
    if let Some(facts) = &dialed.tls {
        text += &format!(", {} {}", facts.version, if facts.verified { "verified" } else { "not verified" });
        for problem in &facts.problems {
            text += &format!(", {}", problem.as_str());
        }
    }
    text
}
