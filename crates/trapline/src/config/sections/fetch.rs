//! `[fetch]`, `[limits]`, `[connect]`, `[dns]` and `[cookies]`: how pages are fetched.
//!
//! Names and defaults are those of `trapline_fetch`; a test holds them together.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use http::HeaderMap;
use trapline_fetch::{Families, Network, Override, Proxy};

use crate::config::options::options;
use crate::config::texts::{Size, chosen, name_of};
use crate::config::value::Text;

options! {
    /// How pages are fetched.
    Fetch {
        /// How the crawler introduces itself, as `product/version`. robots.txt is asked about the product. Defaults to none:
        /// `trapline/` and its version.
        user_agent: Option<String> = None;
        /// Whom an annoyed operator of a server can turn to: a URL or a mail address, sent behind the user agent. Set it before
        /// you crawl other people's servers. Defaults to none.
        contact: Option<String> = None;
        /// Headers of every request, in place of the usual ones: `{ Accept-Language = "de" }`. No credentials: they would go to
        /// every server; see `[[credentials]]`. Defaults to none.
        headers: HeaderMap = HeaderMap::new();
        /// The proxy that everything goes through: `http://host:port` or `socks5://host:port`, with `user:password@` if need
        /// be. One in your own network also needs `allow_networks`. Defaults to none.
        proxy: Option<Proxy> = None;
        /// Networks that may be dialled although they are not globally routable: `10.0.0.0/8` to crawl an intranet, `127.0.0.0/8` for
        /// servers on this machine. Links of strangers lead there too, then. Defaults to none.
        allow_networks: Vec<Network> = Vec::new();
        /// Ports that may be dialled although something else than a web server usually listens there. Defaults to none.
        allow_ports: Vec<u16> = Vec::new();
        /// Prefixes with which your network translates IPv6 to IPv4, such as `64:ff9b::/96`. Defaults to none.
        nat64_prefixes: Vec<Network> = Vec::new();
        /// Where names lead, instead of asking name servers: `host=address`, `host=address:port` or `*=address:port`. The
        /// addresses are judged like any others (`allow_networks`). Defaults to none.
        resolve: Vec<Override> = Vec::new();
        /// Speaks HTTP/1.1 only. Defaults to false: HTTP/2 where a server offers it.
        http1_only: bool = false;
        /// How much all fetches together may receive in a second. Defaults to none.
        bandwidth: Option<Size> = None;
        /// How many requests to one address may be under way at once, whatever the hosts; 0 for any number. Defaults to 0.
        address_concurrency: usize = 0;
        /// How long after a request to an address the next one may begin, whatever the hosts; 0 for no pause. Defaults to 0.
        address_gap: Duration = Duration::ZERO;
        /// How long a request may wait for its address before it is put off. Defaults to 1m.
        address_wait_max: Duration = Duration::from_secs(60);
        /// PEM files with certificates of authorities that are believed beside the system's. Defaults to none.
        roots: Vec<PathBuf> = Vec::new();
        /// Whether the system's authorities are believed. Defaults to true.
        system_roots: bool = true;
    }
}

options! {
    /// What one fetch may cost. A page that runs into a limit is cut short or given up, and said to be.
    Limits {
        /// How long it may take from the request to the end of the response's head. Defaults to 30s.
        first_byte_timeout: Duration = Duration::from_secs(30);
        /// How long a body may come without a byte. Defaults to 20s.
        idle_timeout: Duration = Duration::from_secs(20);
        /// How long a fetch may take, connecting included. Defaults to 5m.
        total_timeout: Duration = Duration::from_secs(300);
        /// How much of a body must come in a second, over each `rate_window`; 0 for any amount. Defaults to 100B.
        rate_min: Size = Size(100);
        /// Over how long the rate is measured. Defaults to 20s.
        rate_window: Duration = Duration::from_secs(20);
        /// How much of a body is taken after its content coding is undone. Defaults to 16MiB.
        decoded_bytes_max: Size = Size::mib(16);
        /// How much of a body is taken before that. Defaults to 16MiB.
        encoded_bytes_max: Size = Size::mib(16);
        /// How many times as long as before a body may become by decoding. Defaults to 200.
        ratio_max: u32 = 200;
        /// So much is fine whatever the ratio. Defaults to 1MiB.
        ratio_free_bytes: Size = Size::mib(1);
        /// How many content codings one in another are undone. Defaults to 2.
        codings_max: usize = 2;
        /// The largest window that Zstandard may ask for. Defaults to 8MiB.
        zstd_window_bytes_max: Size = Size::mib(8);
        /// How long the head of a response may be. Defaults to 64KiB.
        header_bytes_max: Size = Size::kib(64);
        /// How many lines it may have. Defaults to 100.
        header_count_max: usize = 100;
        /// How many informational responses (1xx) may come before the real one. Defaults to 10.
        informational_max: u32 = 10;
    }
}

options! {
    /// How connections are made, and used again.
    Connect {
        /// How long everything together may take: name, connection, proxy, TLS. Defaults to 30s.
        timeout: Duration = Duration::from_secs(30);
        /// How long one address has to answer. Defaults to 10s.
        address_timeout: Duration = Duration::from_secs(10);
        /// How long all addresses of a host have to answer. Defaults to 20s.
        addresses_timeout: Duration = Duration::from_secs(20);
        /// How long an address may be silent before the next one is tried beside it. Defaults to 250ms.
        attempt_delay: Duration = Duration::from_millis(250);
        /// How many addresses of a host are tried. Defaults to 4.
        attempts_max: usize = 4;
        /// How long a proxy has to answer. Defaults to 15s.
        proxy_timeout: Duration = Duration::from_secs(15);
        /// How long a TLS handshake may take. Defaults to 10s.
        tls_timeout: Duration = Duration::from_secs(10);
        /// How many connections of an origin may lie idle; 0 keeps none. Defaults to 4.
        idle_per_origin_max: usize = 4;
        /// How many connections may lie idle altogether. Each takes a socket. Defaults to 1024.
        idle_max: usize = 1024;
        /// How long a connection may lie idle. Defaults to 30s.
        idle_timeout: Duration = Duration::from_secs(30);
        /// How old a connection may be to be used again, so that a long crawl notices a host that has moved. Defaults to 10m.
        lifetime: Duration = Duration::from_secs(600);
        /// How many requests may be under way on one connection of HTTP/2. Defaults to 16.
        streams_max: usize = 16;
    }
}

options! {
    /// How names are looked up, and how long answers are remembered.
    Dns {
        /// Name servers to ask, as `address` or `address:port`. Defaults to none: those of the system, and its hosts file.
        name_servers: Vec<NameServer> = Vec::new();
        /// Which addresses are asked for: `both`, `v4` or `v6`. Defaults to both.
        families: Families = Families::Both;
        /// How long a name may take altogether. Defaults to 10s.
        timeout: Duration = Duration::from_secs(10);
        /// How long a name server has to answer one attempt. Defaults to 3s.
        attempt_timeout: Duration = Duration::from_secs(3);
        /// How often a question is asked before it counts as failed. Defaults to 2.
        attempts_max: usize = 2;
        /// How long addresses of one kind wait for those of the other. Defaults to 300ms.
        second_family_wait: Duration = Duration::from_millis(300);
        /// How many names are looked up at once; more wait. Defaults to 64.
        lookups_max: usize = 64;
        /// How many names are remembered. Defaults to 65536.
        names_max: u64 = 65_536;
        /// How many addresses of a kind are remembered for a name. Defaults to 8.
        addresses_max: usize = 8;
        /// Over how many aliases a name may lead, at most 8. Defaults to 8.
        chain_max: usize = 8;
        /// How long addresses are remembered at least, whatever name servers say. Defaults to 30s.
        ttl_min: Duration = Duration::from_secs(30);
        /// How long addresses are remembered at most. Defaults to 1h.
        ttl_max: Duration = Duration::from_secs(3600);
        /// How long it is remembered at least that a name has no address. Defaults to 1m.
        negative_ttl_min: Duration = Duration::from_secs(60);
        /// How long it is remembered at most that a name has no address. Defaults to 1h.
        negative_ttl_max: Duration = Duration::from_secs(3600);
        /// How long it is remembered that name servers failed or were silent. Defaults to 30s.
        failure_ttl: Duration = Duration::from_secs(30);
    }
}

const FAMILIES: [(&str, Families); 3] =
    [("both", Families::Both), ("v4", Families::V4), ("v6", Families::V6)];

impl Text for Families {
    const FORM: &'static str = "both, v4 or v6, in quotes";

    fn of(text: &str) -> Result<Self, String> {
        chosen(text, &FAMILIES)
    }

    fn text(&self) -> String {
        name_of(*self, &FAMILIES)
    }
}

/// The address of a name server, at port 53 unless another is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NameServer(pub(crate) SocketAddr);

impl Text for NameServer {
    const FORM: &'static str = "an address in quotes, such as \"192.0.2.53\" or \"[2001:db8::53]:5353\"";

    fn of(text: &str) -> Result<Self, String> {
        let bare = text.parse::<IpAddr>().map(|address| SocketAddr::new(address, 53));
        let read = bare.or_else(|_| text.parse::<SocketAddr>());
        read.map(Self)
            .map_err(|_| format!("`{text}` is not the address of a name server: write {}", Self::FORM))
    }

    fn text(&self) -> String {
        self.0.to_string()
    }
}

options! {
    /// Cookies, for sites that need them. Kept in memory as long as the crawl runs, and sent to nobody but who set them.
    Cookies {
        /// Whether cookies are kept. Defaults to false.
        keep: bool = false;
        /// How many cookies one host or domain may set. The oldest one makes room. Defaults to 50.
        per_domain_max: usize = 50;
        /// How many cookies there may be altogether. The oldest one makes room. Defaults to 10000.
        total_max: usize = 10_000;
        /// How long name and value of a cookie may be together. Longer ones are not kept. Defaults to 4KiB.
        cookie_bytes_max: Size = Size::kib(4);
        /// How long a cookie is kept at most. Defaults to 30d.
        lifetime_max: Duration = Duration::from_secs(30 * 86_400);
    }
}
