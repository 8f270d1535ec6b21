//! HTTP for crawlers: one guarded door to the network, a cap on everything, and a record of what happened.
//!
//! Every outgoing connection goes through `Dialer`, which alone opens sockets and looks at the address that it really dials.
//! Redirects are answers, not journeys: who fetches decides what becomes of them.

mod address_pace;
mod bandwidth;
mod connection;
mod cookies;
mod credentials;
mod deadline;
mod decode;
mod dial;
mod dial_error;
mod dns;
mod exchange;
mod fetch_error;
mod fetched;
mod fetcher;
mod for_crawl;
mod guard;
mod head;
mod idle;
mod options;
mod outgoing;
mod pool;
mod proxy;
mod request;
mod robots_cache;
mod robots_notes;
mod stream;
mod tap;
mod tls;
mod vigil;

pub use address_pace::AddressPaceOptions;
pub use cookies::CookieOptions;
pub use credentials::Credentials;
pub use decode::{Coding, Codings, DecodeFault};
pub use dial::{
    Destination, DialCounts, DialOptions, DialTimes, Dialed, Dialer, DialerError, Protocol, Route,
};
pub use dial_error::{DialError, DialErrorKind};
pub use dns::{DnsOptions, Families, Override, OverrideError};
pub use fetch_error::{FetchError, FetchErrorKind};
pub use fetched::{FetchSizes, FetchTimes, Fetched, Oddity, RawResponse, Redirect, Truncated};
pub use fetcher::Fetcher;
pub use guard::{
    Carried, GLOBAL_UNICAST_V6, Guard, GuardError, GuardOptions, Network, NetworkError, Refusal,
    RefusalReason, SPECIAL_V4, SPECIAL_V6, SpecialRange, carried, dangerous_port, dangerous_ports,
    special_range,
};
pub use head::{Header, Headers};
pub use options::{FetchOptions, FetcherError, HostRule, Limits, OriginCredentials};
pub use pool::PoolOptions;
pub use proxy::{Proxy, ProxyError, ProxyKind, ThroughProxy};
pub use request::{FetchRequest, Validators};
pub use robots_cache::{RobotsCache, RobotsFile, RobotsOptions, RobotsSource, RobotsStanding};
pub use robots_notes::RobotsNotes;
pub use stream::Stream;
pub use tls::{Offer, Roots, TlsError, TlsFacts, TlsProblem, certificates_of_pem};
pub use trapline_core::{HostPattern, HostPatternError};
