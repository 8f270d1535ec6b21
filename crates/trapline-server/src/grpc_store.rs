//! A store behind the network: the same six verbs, done by a service somewhere else, whose clock rules.
//!
//! What one message has no room for goes in several: candidates part by part; of a settlement, first links with a renewal of its lease,
//! which is stale if the lease is, then the settlement with the last of them. If something breaks in between there are links without their
//! parent done, never the reverse.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use prost::Message;
use tokio::runtime::{Builder, Runtime};
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Request, Response, Status};
use trapline_core::{Candidate, Timestamp};
use trapline_frontier::{
    Admission, Answer, Claimed, ErrorKind, Outcome, Page, Scan, Settled, Settlement, Stats, Steer, Steered,
    Store, StoreError, Want,
};

use crate::frontier_service::BATCH_MAX;
use crate::grpc_parts::{
    BYTES_MAX, is_fit, parts_of_candidates, parts_of_links, parts_of_settlements, size_of_settlement,
};
use crate::proto::v1;
use crate::wire::{Unreadable, candidate, claim, error, rows, scan, settle, stats, steer};
use v1::frontier_client::FrontierClient;

/// Answers are bounded by the service; this is against one that is none.
const ANSWER_BYTES_MAX: usize = 256 << 20;

/// How long a look at the service's clock is good for.
const CLOCK_GOOD_FOR: Duration = Duration::from_secs(60);

/// While the links of a page are on their way, its lease lasts so long.
const RENEWED_FOR: Duration = Duration::from_secs(60);

/// No verb takes that long.
const PATIENCE: Duration = Duration::from_secs(120);

const PORT: u16 = 7071;

/// How to reach a service.
#[derive(Clone, Default)]
pub struct GrpcAddress {
    /// `HOST:PORT`.
    pub authority: String,
    /// Whether TLS is spoken; always, but to `grpc://`.
    pub tls: bool,
    /// Certificates of authorities to trust instead of the machine's, as PEM.
    pub ca: Option<Vec<u8>>,
    /// The certificate to show, and its key, as PEM.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
    /// The token to show. Not in clear over the network: only with TLS, or on this machine.
    pub token: Option<String>,
}

impl fmt::Debug for GrpcAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrpcAddress")
            .field("authority", &self.authority)
            .field("tls", &self.tls)
            .finish_non_exhaustive()
    }
}

impl GrpcAddress {
    /// Reads `grpc://HOST[:PORT]`, or `grpcs://` with TLS.
    pub fn parse(url: &str) -> Result<Self, String> {
        if url.contains('@') {
            // Shown to nobody: what stands before it is most likely a secret.
            return Err(
                "the URL of a service has no user and no password in it: put the token into the variable \
                        TRAPLINE_TOKEN, and write grpc://HOST:PORT, or grpcs:// with TLS"
                    .to_owned(),
            );
        }
        let wrong = |why: &str| {
            let url = url.split('?').next().unwrap_or_default();
            format!("`{url}` names no service: {why}; write grpc://HOST:PORT, or grpcs:// with TLS")
        };
        let (scheme, rest) = url.split_once("://").ok_or_else(|| wrong("`://` is missing"))?;
        let tls = match scheme {
            "grpc" => false,
            "grpcs" => true,
            _ => return Err(wrong("it begins otherwise")),
        };
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        let parsed: http::uri::Authority =
            authority.parse().map_err(|_| wrong("what follows is no host with a port"))?;
        let authority = match parsed.port_u16() {
            Some(_) => authority.to_owned(),
            None if parsed.as_str().len() == parsed.host().len() => format!("{authority}:{PORT}"),
            None => return Err(wrong("its port is none")),
        };
        Ok(Self { authority, tls, ..Self::default() })
    }

    fn is_local(&self) -> bool {
        let host = self.authority.rsplit_once(':').map_or(&*self.authority, |(host, _)| host);
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        host == "localhost" || bare.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}

type Client = FrontierClient<InterceptedService<Channel, Bearer>>;

/// A store that a service keeps. Clones of its connection serve any number of callers at once.
pub struct GrpcStore {
    client: Client,
    /// Where it is, for messages.
    at: String,
    /// A runtime of its own: callers may have another one, or none. Always there until the end.
    runtime: Option<Runtime>,
    clock: Mutex<Option<Seen>>,
}

/// One look at the service's clock.
#[derive(Clone, Copy)]
struct Seen {
    here: Instant,
    there: Timestamp,
}

impl GrpcStore {
    /// A store at this address. Nothing is asked yet: the connection is made with the first verb, and again whenever it breaks.
    pub fn connect(address: &GrpcAddress) -> Result<Self, StoreError> {
        let trouble = |why: &dyn fmt::Display| {
            StoreError::new(
                ErrorKind::Invalid,
                format!("grpc store: cannot connect to {}: {why}", address.authority),
            )
        };
        if address.token.is_some() && !address.tls && !address.is_local() {
            return Err(trouble(
                &"a token is not sent over a network in clear; use grpcs:// or leave the token out",
            ));
        }
        let scheme = if address.tls { "https" } else { "http" };
        let mut endpoint = Endpoint::from_shared(format!("{scheme}://{}", address.authority))
            .map_err(|error| trouble(&error))?
            .connect_timeout(Duration::from_secs(10))
            .timeout(PATIENCE)
            .tcp_nodelay(true)
            .http2_keep_alive_interval(Duration::from_secs(30))
            .keep_alive_timeout(Duration::from_secs(20));
        if address.tls {
            let tls = match &address.ca {
                Some(ca) => ClientTlsConfig::new().ca_certificate(Certificate::from_pem(ca)),
                None => ClientTlsConfig::new().with_native_roots(),
            };
            let tls = match &address.identity {
                Some((certificate, key)) => tls.identity(Identity::from_pem(certificate, key)),
                None => tls,
            };
            endpoint = endpoint.tls_config(tls).map_err(|error| trouble(&error))?;
        }
        let token = match &address.token {
            Some(token) => {
                let value = format!("Bearer {token}").parse::<MetadataValue<Ascii>>();
                let mut value = value.map_err(|_| trouble(&"its token has characters that no token has"))?;
                value.set_sensitive(true);
                Some(value)
            }
            None => None,
        };
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("grpc-store")
            .enable_all()
            .build()
            .map_err(|error| trouble(&error))?;
        let channel = {
            let _inside = runtime.enter();
            endpoint.connect_lazy()
        };
        let client = FrontierClient::with_interceptor(channel, Bearer(token))
            .max_decoding_message_size(ANSWER_BYTES_MAX);
        Ok(Self { client, at: address.authority.clone(), runtime: Some(runtime), clock: Mutex::default() })
    }

    /// Asks, on the store's own runtime.
    async fn call<T, F>(&self, attempted: &str, ask: impl FnOnce(Client) -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<Response<T>, Status>> + Send + 'static,
        T: Send + 'static,
    {
        let runtime = self.runtime.as_ref().expect("it is there until the store is dropped");
        match runtime.spawn(ask(self.client.clone())).await {
            Ok(Ok(answer)) => Ok(answer.into_inner()),
            Ok(Err(status)) => Err(error::store_error(attempted, &self.at, &status)),
            Err(_) => {
                Err(error::store_error(attempted, &self.at, &Status::unavailable("the call was given up")))
            }
        }
    }

    fn fits(&self, attempted: &str, request: &impl Message) -> Result<(), StoreError> {
        let bytes = request.encoded_len();
        if bytes <= BYTES_MAX {
            return Ok(());
        }
        let why = format!(
            "the batch has {bytes} bytes, and at most {BYTES_MAX} are taken at once; nothing was done: send it in parts"
        );
        Err(error::store_error(attempted, &self.at, &Status::invalid_argument(why)))
    }

    async fn admit_now(&self, request: v1::AdmitRequest) -> Result<Vec<Admission>, StoreError> {
        self.fits("admit", &request)?;
        let answer = self.call("admit", |mut client| async move { client.admit(request).await }).await?;
        self.understood("admit", answer.admissions.into_iter().map(candidate::read_admission).collect())
    }

    async fn settle_now(&self, request: v1::SettleRequest) -> Result<Vec<Settled>, StoreError> {
        self.fits("settle", &request)?;
        let answer = self.call("settle", |mut client| async move { client.settle(request).await }).await?;
        self.understood("settle", answer.settled.into_iter().map(settle::read_settled).collect())
    }

    /// Settlements of which each fits.
    async fn settle_parts(
        &self,
        crawl: &str,
        now: Timestamp,
        batch: Vec<Settlement>,
    ) -> Result<Vec<Settled>, StoreError> {
        let mut settled = Vec::with_capacity(batch.len());
        for part in parts_of_settlements(batch).into_iter().filter(|part| !part.is_empty()) {
            settled.extend(self.settle_now(settle_request(crawl, now, &part)).await?);
        }
        Ok(settled)
    }

    /// One that does not fit: most of its links go before it.
    async fn settle_large(
        &self,
        crawl: &str,
        now: Timestamp,
        mut settlement: Settlement,
    ) -> Result<Settled, StoreError> {
        let links = std::mem::take(&mut settlement.links);
        let mut parts = parts_of_links(links, size_of_settlement(&settlement));
        settlement.links = parts.pop().unwrap_or_default();
        let mut ahead = Vec::new();
        for links in parts {
            let renewal = Outcome::Renew { lease: RENEWED_FOR };
            let renewal = Settlement { links, ..Settlement::new(settlement.lease, renewal) };
            let renewed = self.settle_one(crawl, now, renewal).await?;
            if renewed.answer == Answer::Stale {
                return Ok(renewed);
            }
            ahead.extend(renewed.links);
        }
        let mut settled = self.settle_one(crawl, now, settlement).await?;
        if settled.answer != Answer::Stale {
            ahead.append(&mut settled.links);
            settled.links = ahead;
        }
        Ok(settled)
    }

    async fn settle_one(
        &self,
        crawl: &str,
        now: Timestamp,
        settlement: Settlement,
    ) -> Result<Settled, StoreError> {
        let settled = self.settle_now(settle_request(crawl, now, &[settlement])).await?.pop();
        settled.ok_or_else(|| {
            error::store_error("settle", &self.at, &Status::unimplemented("a settlement was not answered"))
        })
    }

    fn understood<T>(&self, attempted: &str, read: Result<T, Unreadable>) -> Result<T, StoreError> {
        let what = "the answer cannot be understood: is the service as new as this?";
        read.map_err(|_| error::store_error(attempted, &self.at, &Status::unimplemented(what)))
    }

    fn clock(&self) -> MutexGuard<'_, Option<Seen>> {
        self.clock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn look(&self) -> Result<Seen, StoreError> {
        let asked = Instant::now();
        let answer = self
            .call("ask for the time", |mut client| async move { client.now(v1::NowRequest {}).await })
            .await?;
        let here = asked + asked.elapsed() / 2;
        Ok(Seen { here, there: Timestamp::from_millis(answer.now_ms) })
    }
}

impl Drop for GrpcStore {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // It may be dropped where nobody may wait.
            runtime.shutdown_background();
        }
    }
}

/// Shows the token with each call.
#[derive(Clone)]
struct Bearer(Option<MetadataValue<Ascii>>);

impl Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(token) = &self.0 {
            request.metadata_mut().insert("authorization", token.clone());
        }
        Ok(request)
    }
}

fn admit_request(crawl: &str, now: Timestamp, batch: &[Candidate]) -> v1::AdmitRequest {
    v1::AdmitRequest {
        crawl: crawl.to_owned(),
        candidates: batch.iter().map(candidate::write).collect(),
        now_ms: Some(now.as_millis()),
    }
}

fn settle_request(crawl: &str, now: Timestamp, batch: &[Settlement]) -> v1::SettleRequest {
    v1::SettleRequest {
        crawl: crawl.to_owned(),
        settlements: batch.iter().map(settle::write).collect(),
        now_ms: Some(now.as_millis()),
    }
}

#[async_trait]
impl Store for GrpcStore {
    async fn admit(
        &self,
        crawl: &str,
        now: Timestamp,
        batch: &[Candidate],
    ) -> Result<Vec<Admission>, StoreError> {
        let request = admit_request(crawl, now, batch);
        if request.encoded_len() <= BYTES_MAX && batch.len() <= BATCH_MAX {
            return self.admit_now(request).await;
        }
        let mut admissions = Vec::with_capacity(batch.len());
        for part in parts_of_candidates(batch.to_vec()) {
            admissions.extend(self.admit_now(admit_request(crawl, now, &part)).await?);
        }
        Ok(admissions)
    }

    async fn claim(&self, crawl: Option<&str>, now: Timestamp, want: &Want) -> Result<Claimed, StoreError> {
        let request = claim::write(crawl, now, want);
        let answer = self.call("claim", |mut client| async move { client.claim(request).await }).await?;
        self.understood("claim", claim::read_claimed(answer))
    }

    async fn settle(
        &self,
        crawl: &str,
        now: Timestamp,
        batch: Vec<Settlement>,
    ) -> Result<Vec<Settled>, StoreError> {
        let request = settle_request(crawl, now, &batch);
        let links: usize = batch.iter().map(|settlement| settlement.links.len()).sum();
        if request.encoded_len() <= BYTES_MAX && batch.len() + links <= BATCH_MAX {
            return self.settle_now(request).await;
        }
        let mut settled = Vec::with_capacity(batch.len());
        let mut together = Vec::new();
        for settlement in batch {
            if is_fit(&settlement) {
                together.push(settlement);
                continue;
            }
            settled.extend(self.settle_parts(crawl, now, std::mem::take(&mut together)).await?);
            settled.push(self.settle_large(crawl, now, settlement).await?);
        }
        settled.extend(self.settle_parts(crawl, now, together).await?);
        Ok(settled)
    }

    async fn steer(&self, crawl: &str, now: Timestamp, steer: Steer) -> Result<Steered, StoreError> {
        let request = v1::SteerRequest {
            crawl: crawl.to_owned(),
            target: Some(steer::write(&steer)),
            now_ms: Some(now.as_millis()),
        };
        self.fits("steer", &request)?;
        let answer = self.call("steer", |mut client| async move { client.steer(request).await }).await?;
        Ok(steer::read_steered(answer))
    }

    async fn scan(&self, crawl: &str, now: Timestamp, scan: &Scan) -> Result<Page, StoreError> {
        let request = v1::ScanRequest {
            crawl: crawl.to_owned(),
            query: Some(scan::write(&scan.query)),
            cursor: scan.cursor,
            limit: Some(scan.limit as u64),
            now_ms: Some(now.as_millis()),
        };
        self.fits("scan", &request)?;
        let answer = self.call("scan", |mut client| async move { client.scan(request).await }).await?;
        self.understood("scan", rows::read(answer))
    }

    async fn stats(&self, crawl: &str, now: Timestamp) -> Result<Stats, StoreError> {
        let request = v1::StatsRequest { crawl: crawl.to_owned(), now_ms: Some(now.as_millis()) };
        let answer = self.call("count", |mut client| async move { client.stats(request).await }).await?;
        Ok(stats::read(answer))
    }

    async fn now(&self) -> Result<Option<Timestamp>, StoreError> {
        let seen = *self.clock();
        let seen = match seen.filter(|seen| seen.here.elapsed() < CLOCK_GOOD_FOR) {
            Some(seen) => seen,
            None => {
                // Where it does not answer, the last look has to do.
                let looked = self.look().await;
                let looked = match (looked, seen) {
                    (Ok(looked), _) | (Err(_), Some(looked)) => looked,
                    (Err(error), None) => return Err(error),
                };
                *self.clock() = Some(looked);
                looked
            }
        };
        Ok(Some(seen.there + seen.here.elapsed()))
    }

    async fn flush(&self) -> Result<(), StoreError> {
        self.call("flush", |mut client| async move { client.flush(v1::FlushRequest {}).await })
            .await
            .map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_or_told_what_is_wrong_with_them() {
        let read = |url| GrpcAddress::parse(url).map(|address| (address.authority, address.tls));
        let reads =
            |url, authority: &str, tls| assert_eq!(read(url), Ok((authority.to_owned(), tls)), "{url}");
        reads("grpc://localhost:7000", "localhost:7000", false);
        reads("grpc://localhost", "localhost:7071", false);
        reads("grpcs://[::1]:1/", "[::1]:1", true);
        reads("grpc://[::1]", "[::1]:7071", false);
        for (url, why) in [
            ("grpc:x", "`://` is missing"),
            ("http://x", "it begins otherwise"),
            ("grpc://", "no host"),
            ("grpc://a:b", "its port is none"),
            ("grpc://secret@a", "TRAPLINE_TOKEN"),
            ("grpc://a b", "no host with a port"),
            ("grpc://a:70000", "its port is none"),
        ] {
            let error = read(url).expect_err(url);
            assert!(error.contains(why) && !error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn a_token_does_not_go_over_a_network_in_clear() {
        let connect = |authority: &str, tls| {
            let token = Some("hidden".to_owned());
            let authority = authority.to_owned();
            GrpcStore::connect(&GrpcAddress { authority, tls, token, ..GrpcAddress::default() }).map(|_| ())
        };
        let error = connect("192.0.2.1:7071", false).unwrap_err().to_string();
        assert!(error.contains("use grpcs://") && !error.contains("hidden"), "{error}");
        assert!(connect("127.0.0.1:1", false).is_ok() && connect("[::1]:1", false).is_ok());
        assert!(connect("localhost:1", false).is_ok() && connect("192.0.2.1:7071", true).is_ok());
    }
}
