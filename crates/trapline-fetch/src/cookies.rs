//! Cookies, for crawls that need them: kept in memory, bounded, and sent to nobody but those who set them.
//!
//! The rules are those of RFC 6265: host-only and domain cookies, paths, `Secure`, expiry, and the prefixes `__Secure-` and
//! `__Host-` of its successor. A domain that is a public suffix gets none. `HttpOnly` and `SameSite` speak of scripts and
//! frames, of which there are none here.

mod date;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::HeaderValue;
use trapline_core::registrable_domain;
use url::{Host, Url};

use crate::head::Headers;

/// Bounds on cookies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CookieOptions {
    /// How many cookies one host or domain may set. The oldest one makes room. Defaults to 50.
    pub per_domain_max: usize,
    /// How many cookies there may be altogether. The oldest one makes room. Defaults to 10,000.
    pub total_max: usize,
    /// How many bytes name, value and path of a cookie may have together. Longer ones are not kept. Defaults to 4096.
    pub cookie_bytes_max: usize,
    /// How long a cookie is kept at most, whatever it says itself. Defaults to 30 days.
    pub lifetime_max: Duration,
}

impl Default for CookieOptions {
    fn default() -> Self {
        Self {
            per_domain_max: 50,
            total_max: 10_000,
            cookie_bytes_max: 4096,
            lifetime_max: Duration::from_secs(30 * 86_400),
        }
    }
}

/// How many bytes of cookies a request may carry.
const HEADER_BYTES_MAX: usize = 8 << 10;

/// The cookies of a fetcher.
pub(crate) struct Jar {
    options: CookieOptions,
    cookies: Mutex<Cookies>,
}

#[derive(Default)]
struct Cookies {
    /// By the host that set them, or the domain they are for.
    domains: BTreeMap<String, Vec<Cookie>>,
    /// When each came, by number, to find the oldest.
    ages: BTreeMap<u64, String>,
    next: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Cookie {
    age: u64,
    name: String,
    value: String,
    path: String,
    host_only: bool,
    secure: bool,
    expires: Option<u64>,
}

impl Jar {
    pub(crate) fn new(options: CookieOptions) -> Self {
        Self { options, cookies: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Cookies> {
        self.cookies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The `Cookie` header for a URL, if there is one.
    pub(crate) fn header(&self, url: &Url) -> Option<HeaderValue> {
        self.header_at(url, now_s())
    }

    /// Keeps what a response set.
    pub(crate) fn store(&self, url: &Url, headers: &Headers) {
        self.store_at(url, headers, now_s());
    }

    fn header_at(&self, url: &Url, now: u64) -> Option<HeaderValue> {
        let host = url.host_str()?.trim_end_matches('.').to_ascii_lowercase();
        let secure = url.scheme() == "https";
        let cookies = self.lock();
        let mut fitting: Vec<&Cookie> = Vec::new();
        for (domain, whole) in domains_of(url, &host) {
            let of_domain = cookies.domains.get(domain).into_iter().flatten();
            fitting.extend(of_domain.filter(|cookie| {
                (whole || !cookie.host_only)
                    && (secure || !cookie.secure)
                    && cookie.expires.is_none_or(|expires| expires > now)
                    && path_matches(url.path(), &cookie.path)
            }));
        }
        // Longer paths first, and older ones before younger ones.
        fitting.sort_by_key(|cookie| (std::cmp::Reverse(cookie.path.len()), cookie.age));
        let mut text = String::new();
        for cookie in fitting {
            if text.len() + cookie.name.len() + cookie.value.len() + 3 > HEADER_BYTES_MAX {
                break;
            }
            if !text.is_empty() {
                text.push_str("; ");
            }
            text.push_str(&cookie.name);
            text.push('=');
            text.push_str(&cookie.value);
        }
        let mut value = HeaderValue::from_str(&text).ok().filter(|_| !text.is_empty())?;
        value.set_sensitive(true);
        Some(value)
    }

    fn store_at(&self, url: &Url, headers: &Headers, now: u64) {
        // More than a domain may have need not be read.
        for value in headers.all("set-cookie").take(self.options.per_domain_max.saturating_mul(2)) {
            let Some((domain, cookie)) = self.read(url, value, now) else { continue };
            let from_https = url.scheme() == "https";
            self.lock().keep(&domain, cookie, from_https, &self.options, now);
        }
    }

    /// One `Set-Cookie` line. None if it is broken, too long, or not for the host that sent it.
    fn read(&self, url: &Url, value: &[u8], now: u64) -> Option<(String, Cookie)> {
        let text = std::str::from_utf8(value).ok()?;
        if text.bytes().any(|byte| byte < b' ' && byte != b'\t' || byte == 0x7f) {
            return None;
        }
        let mut parts = text.split(';');
        let (name, value) = parts.next()?.split_once('=')?;
        let (name, value) = (name.trim(), value.trim());
        if name.is_empty() {
            return None;
        }
        let host = url.host_str()?.trim_end_matches('.').to_ascii_lowercase();
        let (mut domain, mut path, mut secure) = (None, None, false);
        let (mut expires, mut max_age) = (None, None);
        for part in parts {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let value = value.trim();
            match key.trim().to_ascii_lowercase().as_str() {
                "expires" => expires = date::read(value).or(expires),
                "max-age" => max_age = read_max_age(value, now).or(max_age),
                "domain" if !value.is_empty() => {
                    domain = Some(value.strip_prefix('.').unwrap_or(value).to_ascii_lowercase());
                }
                "path" => path = Some(value.to_owned()),
                "secure" => secure = true,
                _ => {}
            }
        }
        let from_https = url.scheme() == "https";
        let (domain, host_only) = match domain {
            None => (host.clone(), true),
            Some(domain) if domain == host => {
                // Nobody may set cookies for all of `co.uk`, but whoever is at home there may for itself.
                (domain, !matches!(url.host(), Some(Host::Domain(_))) || registrable_domain(&host).is_none())
            }
            Some(domain) if is_below(&host, &domain) && registrable_domain(&domain).is_some() => {
                (domain, false)
            }
            Some(_) => return None,
        };
        let path = path.filter(|path| path.starts_with('/')).unwrap_or_else(|| default_path(url.path()));
        if name.len() + value.len() + path.len() > self.options.cookie_bytes_max {
            return None;
        }
        let lower = name.to_ascii_lowercase();
        let bad_prefix = (lower.starts_with("__secure-") && !secure)
            || (lower.starts_with("__host-") && !(secure && host_only && path == "/"));
        if bad_prefix || (secure && !from_https) {
            return None;
        }
        let latest = now.saturating_add(self.options.lifetime_max.as_secs());
        let expires = max_age.or(expires).map_or(latest, |expires| expires.min(latest));
        let cookie = Cookie {
            age: 0,
            name: name.to_owned(),
            value: value.to_owned(),
            path,
            host_only,
            secure,
            expires: Some(expires),
        };
        Some((domain, cookie))
    }
}

impl Cookies {
    fn keep(
        &mut self,
        domain: &str,
        mut cookie: Cookie,
        from_https: bool,
        options: &CookieOptions,
        now: u64,
    ) {
        let of_domain = self.domains.entry(domain.to_owned()).or_default();
        let same = |known: &Cookie| {
            known.name == cookie.name && known.path == cookie.path && known.host_only == cookie.host_only
        };
        if let Some(place) = of_domain.iter().position(same) {
            // Whoever sits on the line of a plain connection must not put another in the place of a secure one.
            if of_domain[place].secure && !from_https {
                return;
            }
            // A cookie that is set again keeps its age.
            let known = of_domain.remove(place);
            self.ages.remove(&known.age);
            cookie.age = known.age;
        } else {
            cookie.age = self.next;
            self.next += 1;
        }
        if cookie.expires.is_some_and(|expires| expires > now) {
            self.ages.insert(cookie.age, domain.to_owned());
            of_domain.push(cookie);
        }
        if of_domain.len() > options.per_domain_max
            && let Some(oldest) = of_domain.iter().map(|cookie| cookie.age).min()
        {
            self.forget(oldest);
        }
        while self.ages.len() > options.total_max {
            let Some((&oldest, _)) = self.ages.first_key_value() else { break };
            self.forget(oldest);
        }
        if self.domains.get(domain).is_some_and(Vec::is_empty) {
            self.domains.remove(domain);
        }
    }

    fn forget(&mut self, age: u64) {
        let Some(domain) = self.ages.remove(&age) else { return };
        if let Some(of_domain) = self.domains.get_mut(&domain) {
            of_domain.retain(|cookie| cookie.age != age);
            if of_domain.is_empty() {
                self.domains.remove(&domain);
            }
        }
    }
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// The host itself, and the domains above it that can have cookies.
fn domains_of<'h>(url: &Url, host: &'h str) -> impl Iterator<Item = (&'h str, bool)> + use<'h> {
    let is_name = matches!(url.host(), Some(Host::Domain(_)));
    let above = host.match_indices('.').map(move |(dot, _)| (&host[dot + 1..], false));
    std::iter::once((host, true)).chain(above.filter(move |_| is_name))
}

fn is_below(host: &str, domain: &str) -> bool {
    host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'))
        && host.parse::<std::net::IpAddr>().is_err()
}

fn default_path(path: &str) -> String {
    match path.rfind('/') {
        None | Some(0) => "/".to_owned(),
        Some(last) => path[..last].to_owned(),
    }
}

fn path_matches(path: &str, of_cookie: &str) -> bool {
    path.strip_prefix(of_cookie)
        .is_some_and(|rest| rest.is_empty() || of_cookie.ends_with('/') || rest.starts_with('/'))
}

/// When a cookie with this `Max-Age` expires. Anything below one second is the past.
fn read_max_age(text: &str, now: u64) -> Option<u64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    if text.starts_with('-') {
        return Some(0);
    }
    let seconds = digits.parse::<u64>().unwrap_or(u64::MAX);
    Some(if seconds == 0 { 0 } else { now.saturating_add(seconds) })
}

#[cfg(test)]
mod tests;
