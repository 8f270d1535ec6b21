//! The URL of a PostgreSQL store: where the server is, who asks, and what was chosen. Nothing is connected here.
//!
//! The URL is read by us and not by the driver, which knows fewer options and less about what to say of a wrong one. Passwords are in
//! no message: an address is shown without its own, and so is a URL that could not be read.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use tokio_postgres::Config;
use tokio_postgres::config::{SslMode, TargetSessionAttrs};
use trapline_core::{format_duration, parse_duration};
use trapline_frontier::{ErrorKind, StoreError, nearest};

use super::tls::{Checked, Tls};
use crate::without_password;

/// What the options of a URL are called.
const OPTIONS: [&str; 10] = [
    "application_name",
    "connect_timeout",
    "host",
    "lock_timeout",
    "pool",
    "schema",
    "sslmode",
    "sslrootcert",
    "statement_timeout",
    "target_session_attrs",
];

/// PostgreSQL cuts longer names off.
const NAME_BYTES_MAX: usize = 63;
const CONNECTIONS_MAX: usize = 1_000;
const PORT: u16 = 5432;

/// A PostgreSQL store as its URL names it.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    /// Where the server is and who asks, as the driver takes it.
    pub(super) config: Config,
    /// How it is shown: without password and options.
    shown: String,
    /// The schema that all tables are in. Defaults to `trapline`.
    pub(super) schema: String,
    /// How many connections there may be at once, besides the one that listens. Defaults to 8.
    pub(super) connections_max: usize,
    /// So long a caller waits for a connection, however often it has to be tried. Defaults to 10 s.
    pub(super) connect_timeout: Duration,
    /// So long a statement may take, zero for ever. Defaults to 30 s.
    pub(super) statement_timeout: Duration,
    /// So long a statement waits for a lock, zero for ever. Defaults to 5 s.
    pub(super) lock_timeout: Duration,
    pub(super) tls: Tls,
}

impl Address {
    /// Reads `postgres://USER:PASSWORD@HOST:PORT/DATABASE?OPTION=VALUE&…`.
    pub fn parse(url: &str) -> Result<Self, StoreError> {
        read(url).map_err(|problem| {
            let url = without_password(url);
            StoreError::new(ErrorKind::Invalid, format!("postgres store: cannot open `{url}`: {problem}"))
        })
    }

    /// The schema that all tables are in.
    pub fn schema(&self) -> &str {
        &self.schema
    }

    /// Takes a password that was kept elsewhere, if the URL has none.
    pub(super) fn or_password(mut self, password: Option<&[u8]>) -> Self {
        if let (None, Some(password)) = (self.config.get_password(), password) {
            self.config.password(password);
        }
        self
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({} schema={})", self.shown, self.schema)
    }
}

fn read(url: &str) -> Result<Address, String> {
    // Schemes may be written in any case.
    let is_ours =
        |scheme: &str| ["postgres", "postgresql"].iter().any(|our| our.eq_ignore_ascii_case(scheme));
    let rest = url.split_once("://").filter(|(scheme, _)| is_ours(scheme)).map(|(_, rest)| rest);
    let rest = rest.ok_or("write it as postgres://USER@HOST/DATABASE")?;
    let (place, options) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, database) = place.split_once('/').unwrap_or((place, ""));
    if !authority.contains('@') && rest.contains('@') {
        return Err(
            "there is an `@` behind the first `/` or `?`; inside a user's name, a password or a value write \
                    `/` as %2F, `?` as %3F, `@` as %40 and `%` as %25"
                .to_owned(),
        );
    }
    let (credentials, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (user, password) = match credentials.split_once(':') {
        Some((user, password)) => (user, Some(password)),
        None => (credentials, None),
    };
    let chosen = Chosen::read(options)?;
    let user = decoded(user, "the user's name")?;
    let database = decoded(database, "the database's name")?;
    if database.is_empty() {
        return Err("the database's name is missing; write it as postgres://USER@HOST/DATABASE".to_owned());
    }

    let mut config = Config::new();
    config.dbname(&database);
    if !user.is_empty() {
        config.user(&user);
    }
    if let Some(password) = password {
        config.password(decoded(password, "the password")?);
    }
    let hosts = match (&chosen.host, hosts) {
        (None, hosts) => hosts.to_owned(),
        (Some(host), "") => host.clone(),
        (Some(_), _) => {
            return Err("`host` is there twice: before the database's name and as an option".to_owned());
        }
    };
    let mut shown_hosts = Vec::new();
    for host in hosts.split(',') {
        let (host, port) = host_and_port(host)?;
        config.host(&host).port(port);
        shown_hosts.push(match port {
            PORT => host,
            port => format!("{host}:{port}"),
        });
    }
    // Of several servers, the one that can be written to is meant: that is what failing over is about.
    config.target_session_attrs(match (chosen.target_session_attrs, shown_hosts.len()) {
        (Some(attrs), _) => attrs,
        (None, 1) => TargetSessionAttrs::Any,
        (None, _) => TargetSessionAttrs::ReadWrite,
    });
    config.application_name(chosen.application_name.as_deref().unwrap_or("trapline"));
    config.ssl_mode(chosen.sslmode.wanted());
    // A server that vanished without a word is noticed in about a minute, not in the two hours of the kernel's own.
    config
        .keepalives_idle(Duration::from_secs(30))
        .keepalives_interval(Duration::from_secs(10))
        .keepalives_retries(3);
    config.tcp_user_timeout(Duration::from_secs(60));

    let at = if user.is_empty() { String::new() } else { format!("{user}@") };
    Ok(Address {
        shown: format!("postgres://{at}{}/{database}", shown_hosts.join(",")),
        tls: chosen.sslmode.tls(chosen.sslrootcert)?,
        schema: chosen.schema.unwrap_or_else(|| "trapline".to_owned()),
        connections_max: chosen.pool.unwrap_or(8),
        connect_timeout: chosen.connect_timeout.unwrap_or(Duration::from_secs(10)),
        statement_timeout: chosen.statement_timeout.unwrap_or(Duration::from_secs(30)),
        lock_timeout: chosen.lock_timeout.unwrap_or(Duration::from_secs(5)),
        config,
    })
}

/// What stands behind the `?`.
#[derive(Default)]
struct Chosen {
    application_name: Option<String>,
    connect_timeout: Option<Duration>,
    host: Option<String>,
    lock_timeout: Option<Duration>,
    pool: Option<usize>,
    schema: Option<String>,
    sslmode: SslChoice,
    sslrootcert: Option<PathBuf>,
    statement_timeout: Option<Duration>,
    target_session_attrs: Option<TargetSessionAttrs>,
}

impl Chosen {
    fn read(options: &str) -> Result<Self, String> {
        let mut chosen = Self::default();
        let mut seen = Vec::new();
        for option in options.split('&').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            if seen.contains(&name) {
                return Err(format!("the option `{name}` is there twice"));
            }
            seen.push(name);
            let value = decoded(value, name)?;
            let problem = |what: &str| format!("`{name}` cannot be `{value}`: {what}");
            match name {
                "application_name" => chosen.application_name = Some(value),
                "connect_timeout" => {
                    let longest = Duration::from_secs(86_400);
                    let timeout = seconds_or_duration(&value).map_err(|error| problem(&error))?;
                    if timeout.is_zero() || timeout > longest {
                        return Err(problem("write a duration up to a day, such as 10s"));
                    }
                    chosen.connect_timeout = Some(timeout);
                }
                "host" => chosen.host = Some(value),
                "lock_timeout" => {
                    chosen.lock_timeout = Some(timeout(&value).map_err(|error| problem(&error))?);
                }
                "pool" => {
                    let count = value.parse().ok().filter(|count| (1..=CONNECTIONS_MAX).contains(count));
                    let count = count.ok_or_else(|| {
                        problem(&format!(
                            "write how many connections there may be at once, 1 to {CONNECTIONS_MAX}"
                        ))
                    })?;
                    chosen.pool = Some(count);
                }
                "schema" => {
                    if !is_schema_name(&value) {
                        return Err(problem(&format!(
                            "write up to {NAME_BYTES_MAX} of a to z, 0 to 9 and _, a letter first, and not pg_"
                        )));
                    }
                    chosen.schema = Some(value);
                }
                "sslmode" => chosen.sslmode = SslChoice::read(&value).map_err(|error| problem(&error))?,
                "sslrootcert" => chosen.sslrootcert = Some(PathBuf::from(value)),
                "statement_timeout" => {
                    chosen.statement_timeout = Some(timeout(&value).map_err(|error| problem(&error))?);
                }
                "target_session_attrs" => {
                    chosen.target_session_attrs = Some(match value.as_str() {
                        "any" => TargetSessionAttrs::Any,
                        "read-write" => TargetSessionAttrs::ReadWrite,
                        _ => return Err(problem("write any or read-write")),
                    });
                }
                "password" => {
                    return Err("a password is not written as an option; write it as postgres://USER:PASSWORD@HOST/DATABASE, \
                                or keep it in the environment as PGPASSWORD"
                        .to_owned());
                }
                _ => {
                    let near = nearest(name, &OPTIONS).map(|near| format!("; did you mean `{near}`?"));
                    let near = near.unwrap_or_else(|| format!("; there are {}", OPTIONS.join(", ")));
                    return Err(format!("there is no option `{name}`{near}"));
                }
            }
        }
        Ok(chosen)
    }
}

/// How much a connection is to be trusted, in the words of PostgreSQL's own clients.
#[derive(Clone, Copy, Default)]
enum SslChoice {
    Disable,
    #[default]
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

impl SslChoice {
    fn read(text: &str) -> Result<Self, String> {
        Ok(match text {
            "disable" => Self::Disable,
            "prefer" => Self::Prefer,
            "require" => Self::Require,
            "verify-ca" => Self::VerifyCa,
            "verify-full" => Self::VerifyFull,
            _ => return Err("write one of disable, prefer, require, verify-ca, verify-full".to_owned()),
        })
    }

    fn wanted(self) -> SslMode {
        match self {
            Self::Disable => SslMode::Disable,
            Self::Prefer => SslMode::Prefer,
            Self::Require | Self::VerifyCa | Self::VerifyFull => SslMode::Require,
        }
    }

    /// As PostgreSQL's own clients do, `require` looks at the certificate's signature where a root is named.
    fn tls(self, root: Option<PathBuf>) -> Result<Tls, String> {
        let checked = match (self, &root) {
            (Self::Disable | Self::Prefer, Some(_)) => {
                return Err("`sslrootcert` does nothing without `sslmode=verify-full`".to_owned());
            }
            (Self::Disable | Self::Prefer | Self::Require, None) => Checked::Nothing,
            (Self::Require, Some(_)) | (Self::VerifyCa, _) => Checked::Signature,
            (Self::VerifyFull, _) => Checked::SignatureAndName,
        };
        // That is what PostgreSQL's own clients call the roots that the machine trusts.
        Ok(Tls { checked, root: root.filter(|root| root.as_os_str() != "system") })
    }
}

fn host_and_port(text: &str) -> Result<(String, u16), String> {
    let (host, port) = match text.rsplit_once(':') {
        // The colons of an address of IP version 6 are inside brackets.
        Some((_, behind)) if behind.contains(']') => (text, None),
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    };
    // Not shown: where the host is missing, this is the password.
    let wrong = "what is behind the `:` of the host is not a port, 1 to 65535";
    let port = match port {
        None | Some("") => PORT,
        Some(port) => port.parse().ok().filter(|port| *port != 0).ok_or(wrong)?,
    };
    let host = decoded(host, "the host's name")?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(&host).to_owned();
    if host.contains([' ', '[', ']']) {
        return Err(format!("`{host}` is not the name of a host"));
    }
    Ok((if host.is_empty() { "localhost".to_owned() } else { host }, port))
}

fn decoded(text: &str, what: &str) -> Result<String, String> {
    let decoded = percent_decode_str(text).decode_utf8();
    let decoded = decoded.map_err(|_| format!("{what} is not UTF-8 behind its percent signs"))?;
    if decoded.contains('\0') {
        Err(format!("{what} has a zero byte in it"))
    } else {
        Ok(decoded.into_owned())
    }
}

/// PostgreSQL's own clients write seconds without a unit.
fn seconds_or_duration(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(seconds) => Ok(Duration::from_secs(seconds)),
        Err(_) => parse_duration(text).map_err(|error| error.to_string()),
    }
}

/// The server keeps milliseconds in 31 bits.
fn timeout(text: &str) -> Result<Duration, String> {
    let timeout = parse_duration(text).map_err(|error| error.to_string())?;
    let longest = Duration::from_millis(i32::MAX as u64);
    if timeout > longest { Err(format!("the longest is {}", format_duration(longest))) } else { Ok(timeout) }
}

/// Names that need no quotes and are the same to everybody.
fn is_schema_name(name: &str) -> bool {
    name.len() <= NAME_BYTES_MAX
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        && !name.starts_with("pg_")
}

#[cfg(test)]
mod tests {
    use tokio_postgres::config::Host;

    use super::*;

    #[test]
    fn an_address_has_what_the_url_says() {
        let address = Address::parse(
            "postgresql://crawl%40er:se%2Fcret@db.example:6000/front?schema=two&pool=3&connect_timeout=4&statement_timeout=2m",
        );
        let address = address.unwrap();
        assert_eq!(address.config.get_user(), Some("crawl@er"));
        assert_eq!(address.config.get_password(), Some(&b"se/cret"[..]));
        assert_eq!(address.config.get_hosts(), [Host::Tcp("db.example".to_owned())]);
        assert_eq!(address.config.get_ports(), [6000]);
        assert_eq!(address.config.get_dbname(), Some("front"));
        assert_eq!(address.schema(), "two");
        assert_eq!(address.connections_max, 3);
        assert_eq!(address.connect_timeout, Duration::from_secs(4));
        assert_eq!(address.statement_timeout, Duration::from_mins(2));
        assert_eq!(address.to_string(), "postgres://crawl@er@db.example:6000/front");
        assert!(!format!("{address:?}").contains("cret"));
    }

    #[test]
    fn what_is_not_said_has_a_default() {
        let address = Address::parse("postgres://db/front").unwrap();
        assert_eq!(address.schema(), "trapline");
        assert_eq!(address.connections_max, 8);
        assert_eq!(address.config.get_ports(), [5432]);
        assert_eq!(address.config.get_ssl_mode(), SslMode::Prefer);
        assert_eq!(address.config.get_target_session_attrs(), TargetSessionAttrs::Any);
        assert_eq!(address.to_string(), "postgres://db/front");
        assert_eq!(Address::parse("PostgreSQL://db/front").unwrap(), address, "schemes have no case");
    }

    #[test]
    fn servers_can_be_several_and_behind_sockets() {
        let hosts = |url: &str| {
            let address = Address::parse(url).unwrap();
            (address.to_string(), address.config.get_hosts().to_vec(), address.config.get_ports().to_vec())
        };
        let tcp = |name: &str| Host::Tcp(name.to_owned());
        assert_eq!(
            hosts("postgres://a,b:6000/x"),
            ("postgres://a,b:6000/x".to_owned(), vec![tcp("a"), tcp("b")], vec![5432, 6000])
        );
        assert_eq!(hosts("postgres://[::1]:6000/x").1, [tcp("::1")]);
        assert_eq!(hosts("postgres:///x").1, [tcp("localhost")]);
        let socket = [Host::Unix("/run/postgresql".into())];
        assert_eq!(hosts("postgres:///x?host=/run/postgresql").1, socket);
        assert_eq!(hosts("postgres://%2Frun%2Fpostgresql/x").1, socket);
        let several = Address::parse("postgres://a,b/x").unwrap();
        assert_eq!(several.config.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
    }

    #[test]
    fn tls_is_chosen_in_the_words_of_other_clients() {
        let tls =
            |options: &str| Address::parse(&format!("postgres://h/d?{options}")).map(|address| address.tls);
        let check = |options: &str, checked, root: Option<&str>| {
            assert_eq!(tls(options).unwrap(), Tls { checked, root: root.map(PathBuf::from) }, "{options}");
        };
        check("sslmode=disable", Checked::Nothing, None);
        check("sslmode=require", Checked::Nothing, None);
        check("sslmode=require&sslrootcert=ca.pem", Checked::Signature, Some("ca.pem"));
        check("sslmode=verify-ca", Checked::Signature, None);
        check("sslmode=verify-full&sslrootcert=ca.pem", Checked::SignatureAndName, Some("ca.pem"));
        check("sslmode=verify-full&sslrootcert=system", Checked::SignatureAndName, None);
        assert!(tls("sslrootcert=ca.pem").is_err());
    }

    #[test]
    fn mistakes_are_told_without_the_password() {
        let check = |url: &str, shown: &str, problem: &str| {
            let error = Address::parse(url).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert_eq!(error.to_string(), format!("postgres store: cannot open `{shown}`: {problem}"));
        };
        check(
            "postgres://u:hush@h/d?schmea=x",
            "postgres://u@h/d?schmea=x",
            "there is no option `schmea`; did you mean `schema`?",
        );
        check(
            "postgres://u:hush@h/d?zzzzzz=x",
            "postgres://u@h/d?zzzzzz=x",
            "there is no option `zzzzzz`; there are application_name, connect_timeout, host, lock_timeout, pool, schema, \
             sslmode, sslrootcert, statement_timeout, target_session_attrs",
        );
        check(
            "postgres://u:hush@h",
            "postgres://u@h",
            "the database's name is missing; write it as postgres://USER@HOST/DATABASE",
        );
        let port = "what is behind the `:` of the host is not a port, 1 to 65535";
        check("postgres://u:hush/d", "postgres://u/d", port);
        check("postgres://h:0/d", "postgres://h:0/d", port);
        let at = "there is an `@` behind the first `/` or `?`; inside a user's name, a password or a value write \
                  `/` as %2F, `?` as %3F, `@` as %40 and `%` as %25";
        check("postgres://u:hu/sh@h/d", "postgres://u@h/d", at);
        check("postgres://u:hu?sh@h/d", "postgres://u@h/d", at);
        check(
            "postgres://u@h/d?password=hush",
            "postgres://u@h/d",
            "a password is not written as an option; write it as postgres://USER:PASSWORD@HOST/DATABASE, or keep it in the \
             environment as PGPASSWORD",
        );
        check(
            "postgres://h/d?pool=0",
            "postgres://h/d?pool=0",
            "`pool` cannot be `0`: write how many connections there may be at once, 1 to 1000",
        );
        let schema = "write up to 63 of a to z, 0 to 9 and _, a letter first, and not pg_";
        for name in ["", "1a", "A", "a-b", "pg_x"] {
            let url = format!("postgres://h/d?schema={name}");
            check(&url, &url, &format!("`schema` cannot be `{name}`: {schema}"));
        }
        check(
            "postgres://h/d?sslmode=allow",
            "postgres://h/d?sslmode=allow",
            "`sslmode` cannot be `allow`: write one of disable, prefer, require, verify-ca, verify-full",
        );
        check(
            "postgres://h/d?pool=1&pool=1",
            "postgres://h/d?pool=1&pool=1",
            "the option `pool` is there twice",
        );
        check(
            "postgres://h/d?statement_timeout=30d",
            "postgres://h/d?statement_timeout=30d",
            "`statement_timeout` cannot be `30d`: the longest is 2147483647ms",
        );
        check("postgres:db", "postgres:db", "write it as postgres://USER@HOST/DATABASE");
        check(
            "postgres://h/%ff",
            "postgres://h/%ff",
            "the database's name is not UTF-8 behind its percent signs",
        );
        check("postgres://h/%00", "postgres://h/%00", "the database's name has a zero byte in it");
    }
}
