//! The dialer: from a host and port to a connection on which HTTP can be spoken.
//!
//! Looks up names, opens the door, asks proxies, shakes hands, and takes the time of each. It keeps no connections and knows no requests.

mod destination;
mod door;

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use rustls::pki_types::{DnsName, ServerName};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use trapline_core::{HostPattern, plain_name};
use url::Host;

pub use self::destination::{Destination, Route};
use self::door::Door;
use crate::dial_error::{DialError, DialErrorKind};
use crate::dns::{Dns, DnsOptions};
use crate::guard::{Guard, GuardError, GuardOptions};
use crate::proxy::{Proxy, ThroughProxy};
use crate::stream::Stream;
use crate::tls::{Roots, Tls, TlsError, TlsFacts};

/// How connections are made.
#[derive(Debug, Clone)]
pub struct DialOptions {
    /// Which addresses and ports may be dialled beside the usual ones.
    pub guard: GuardOptions,
    /// How names are looked up.
    pub dns: DnsOptions,
    /// The proxy that all connections go through, unless their destination says otherwise. Its own address is
    /// judged like any other, so a proxy in your network needs `allow_networks`. Defaults to none.
    pub proxy: Option<Proxy>,
    /// Whose certificates are believed. Defaults to those of the system.
    pub roots: Roots,
    /// Hosts whose certificates may be expired, self-signed or for another host. What is wrong is still found out
    /// and told in each result. Defaults to none.
    pub lenient_tls_hosts: Vec<HostPattern>,
    /// How long one address has to answer. Defaults to 10 s.
    pub connect_timeout: Duration,
    /// How long all addresses of a host have to answer. Defaults to 20 s.
    pub connect_timeout_total: Duration,
    /// How long an address may be silent before the next one is tried beside it. Defaults to 250 ms.
    pub connect_attempt_delay: Duration,
    /// How many addresses of a host are tried. Defaults to 4.
    pub connect_attempts_max: usize,
    /// How long a proxy has to answer. Defaults to 15 s.
    pub proxy_timeout: Duration,
    /// How long a TLS handshake may take. Defaults to 10 s.
    pub tls_timeout: Duration,
    /// How long everything together may take. Defaults to 30 s.
    pub timeout: Duration,
}

impl Default for DialOptions {
    fn default() -> Self {
        Self {
            guard: GuardOptions::default(),
            dns: DnsOptions::default(),
            proxy: None,
            roots: Roots::default(),
            lenient_tls_hosts: Vec::new(),
            connect_timeout: Duration::from_secs(10),
            connect_timeout_total: Duration::from_secs(20),
            connect_attempt_delay: Duration::from_millis(250),
            connect_attempts_max: 4,
            proxy_timeout: Duration::from_secs(15),
            tls_timeout: Duration::from_secs(10),
            timeout: Duration::from_secs(30),
        }
    }
}

/// Why there is no dialer: options that cannot be followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DialerError {
    /// Of the guard.
    #[error(transparent)]
    Guard(#[from] GuardError),
    /// Of TLS.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// A connection, and all that is known of it.
#[derive(Debug)]
pub struct Dialed {
    /// The connection itself.
    pub stream: Stream,
    /// Where it leads: the address that was given to `connect`, the proxy's if there is one.
    pub address: SocketAddr,
    /// The server's address that the guard let through. Differs from `address` if a proxy is between; an HTTP proxy that
    /// reads requests itself may still go elsewhere.
    pub target: SocketAddr,
    /// What the server speaks.
    pub protocol: Protocol,
    /// How long it took.
    pub times: DialTimes,
    /// What is known of its TLS; none for plain connections.
    pub tls: Option<TlsFacts>,
    /// The proxy that is between; none for direct connections.
    pub through_proxy: Option<ThroughProxy>,
}

/// The version of HTTP that a server chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1.
    H1,
    /// HTTP/2.
    H2,
}

/// How long each step took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DialTimes {
    /// Looking up the server's name; nothing for addresses.
    pub dns: Duration,
    /// Connecting, looking up and asking a proxy included.
    pub connect: Duration,
    /// The TLS handshake; nothing for plain connections.
    pub tls: Duration,
}

/// What the door has seen since the dialer was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DialCounts {
    /// How often `connect` was called.
    pub connects: u64,
    /// How often the guard refused an address.
    pub refusals: u64,
}

/// Makes connections. The only thing in this crate that does.
pub struct Dialer {
    door: Door,
    dns: Dns,
    tls: Tls,
    proxy: Option<Proxy>,
    lenient_tls_hosts: Vec<HostPattern>,
    proxy_timeout: Duration,
    tls_timeout: Duration,
    timeout: Duration,
}

impl Dialer {
    /// A dialer with these options. Opens nothing yet.
    pub fn new(options: DialOptions) -> Result<Self, DialerError> {
        let door = Door::new(
            Guard::new(options.guard)?,
            options.connect_timeout,
            options.connect_timeout_total,
            options.connect_attempt_delay,
            options.connect_attempts_max.max(1),
        );
        Ok(Self {
            door,
            dns: Dns::new(options.dns),
            tls: Tls::new(&options.roots)?,
            proxy: options.proxy,
            lenient_tls_hosts: options.lenient_tls_hosts,
            proxy_timeout: options.proxy_timeout,
            tls_timeout: options.tls_timeout,
            timeout: options.timeout,
        })
    }

    /// Where a host name and port lead, in the order in which the addresses would be tried. Nothing is dialled, and the guard has
    /// not judged them.
    pub async fn look_up(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, DialError> {
        self.dns.addresses(host, port).await
    }

    /// Of how many names it is remembered where they lead, about.
    pub fn names_remembered(&self) -> u64 {
        self.dns.remembered()
    }

    /// The guard that judges what this dialer dials.
    pub fn guard(&self) -> &Guard {
        &self.door.guard
    }

    /// What the door has seen so far.
    pub fn counts(&self) -> DialCounts {
        let (connects, refusals) = self.door.counts();
        DialCounts { connects, refusals }
    }

    /// Whether this host's certificate may be wrong.
    pub fn is_lenient(&self, destination: &Destination) -> bool {
        destination.lenient_tls
            || self.lenient_tls_hosts.iter().any(|pattern| pattern.is_for(&destination.host))
    }

    /// Connects, directly or through a proxy, and shakes hands if the destination wants TLS.
    pub async fn dial(&self, destination: &Destination) -> Result<Dialed, DialError> {
        match timeout(self.timeout, self.dial_in_peace(destination)).await {
            Ok(dialed) => dialed,
            Err(_) => Err(DialError::new(
                DialErrorKind::DialTimeout,
                format!("no connection to {destination} within {:?}", self.timeout),
            )),
        }
    }

    async fn dial_in_peace(&self, destination: &Destination) -> Result<Dialed, DialError> {
        let mut times = DialTimes::default();
        let started = Instant::now();
        let targets = self.addresses(&destination.host, destination.port).await?;
        times.dns = started.elapsed();

        let started = Instant::now();
        let proxy = match &destination.route {
            Route::Usual => self.proxy.as_ref(),
            Route::Direct => None,
            Route::Through(proxy) => Some(proxy),
        };
        let line = match proxy {
            None => self.direct(&targets).await?,
            Some(proxy) => self.through(proxy, &targets, destination.tls).await?,
        };
        times.connect = started.elapsed();

        if !destination.tls {
            let Line { stream, address, target, through_proxy } = line;
            let stream = Stream::Tcp(stream);
            return Ok(Dialed {
                stream,
                address,
                target,
                protocol: Protocol::H1,
                times,
                tls: None,
                through_proxy,
            });
        }
        let started = Instant::now();
        let (stream, facts, protocol) = self.shake_hands(line.stream, destination).await?;
        times.tls = started.elapsed();
        let Line { address, target, through_proxy, .. } = line;
        Ok(Dialed { stream, address, target, protocol, times, tls: Some(facts), through_proxy })
    }

    async fn shake_hands(
        &self,
        stream: TcpStream,
        destination: &Destination,
    ) -> Result<(Stream, TlsFacts, Protocol), DialError> {
        let name = server_name(&destination.host)?;
        let handshake = self.tls.connect(stream, name, destination.offer, self.is_lenient(destination));
        let (stream, facts) = match timeout(self.tls_timeout, handshake).await {
            Ok(finished) => finished?,
            Err(_) => {
                let detail = format!("no TLS handshake with {destination} within {:?}", self.tls_timeout);
                return Err(DialError::new(DialErrorKind::TlsTimeout, detail));
            }
        };
        let protocol = match stream.get_ref().1.alpn_protocol() {
            Some(b"h2") => Protocol::H2,
            _ => Protocol::H1,
        };
        Ok((Stream::Tls(Box::new(stream)), facts, protocol))
    }

    /// An address in a URL is its own answer; only names are looked up.
    async fn addresses(&self, host: &Host<String>, port: u16) -> Result<Vec<SocketAddr>, DialError> {
        match host {
            Host::Ipv4(address) => Ok(vec![SocketAddr::new((*address).into(), port)]),
            Host::Ipv6(address) => Ok(vec![SocketAddr::new((*address).into(), port)]),
            Host::Domain(name) => self.dns.addresses(name, port).await,
        }
    }

    async fn direct(&self, targets: &[SocketAddr]) -> Result<Line, DialError> {
        let (stream, address) = self.door.open_first(targets).await?;
        Ok(Line { stream, address, target: address, through_proxy: None })
    }

    /// Through a proxy. The targets are judged first: what may not be dialled may not be asked for.
    async fn through(&self, proxy: &Proxy, targets: &[SocketAddr], tls: bool) -> Result<Line, DialError> {
        let mut trouble = None;
        let mut allowed = Vec::new();
        for target in targets {
            match self.door.check(*target) {
                Ok(()) => allowed.push(*target),
                Err(refusal) => {
                    trouble.get_or_insert(refusal);
                }
            }
        }
        for target in allowed.into_iter().take(self.door.attempts_max) {
            let proxies =
                self.addresses(proxy.host(), proxy.port()).await.map_err(|error| of_proxy(&error))?;
            let (mut stream, address) =
                self.door.open_first(&proxies).await.map_err(|error| of_proxy(&error))?;
            if proxy.reads_requests(tls) {
                return Ok(Line { stream, address, target, through_proxy: Some(proxy.facts(true)) });
            }
            let passed_on = match timeout(self.proxy_timeout, proxy.pass_on(&mut stream, target)).await {
                Ok(passed_on) => passed_on,
                Err(_) => {
                    let detail = format!("the proxy did not answer within {:?}", self.proxy_timeout);
                    Err(DialError::new(DialErrorKind::ProxyTimeout, detail))
                }
            };
            match passed_on {
                Ok(()) => {
                    return Ok(Line { stream, address, target, through_proxy: Some(proxy.facts(false)) });
                }
                // Another address of the host may do.
                Err(error) if error.kind() == DialErrorKind::ProxyRefused => trouble = Some(error),
                Err(error) => return Err(error),
            }
        }
        Err(trouble.unwrap_or_else(|| DialError::new(DialErrorKind::DnsNoAddress, "the host has no address")))
    }
}

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dialer")
            .field("guard", &self.door.guard)
            .field("proxy", &self.proxy)
            .finish_non_exhaustive()
    }
}

/// A connection before TLS.
struct Line {
    stream: TcpStream,
    address: SocketAddr,
    target: SocketAddr,
    through_proxy: Option<ThroughProxy>,
}

/// A proxy that cannot be reached is the operator's trouble, not the server's.
fn of_proxy(error: &DialError) -> DialError {
    let detail = format!("cannot reach the proxy: {}", error.detail());
    let kind = match error.kind() {
        DialErrorKind::ConnectTimeout | DialErrorKind::DnsTimeout => DialErrorKind::ProxyTimeout,
        _ => DialErrorKind::ProxyFailed,
    };
    DialError::new(kind, detail)
}

fn server_name(host: &Host<String>) -> Result<ServerName<'static>, DialError> {
    match host {
        Host::Ipv4(address) => Ok(ServerName::IpAddress((*address).into())),
        Host::Ipv6(address) => Ok(ServerName::IpAddress((*address).into())),
        Host::Domain(name) => {
            DnsName::try_from(plain_name(name).to_owned()).map(ServerName::DnsName).map_err(|_| {
                DialError::new(
                    DialErrorKind::TlsFailed,
                    format!("{name} is no name that a certificate can be for"),
                )
            })
        }
    }
}
