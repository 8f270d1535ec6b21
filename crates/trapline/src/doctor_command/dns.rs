//! Names: who is asked, and whether an answer comes.

use std::time::Instant;

use trapline_core::parse_url;
use trapline_fetch::Dialer;

use super::Finding;
use crate::config::FileConfig;

const RESOLV_CONF: &str = "/etc/resolv.conf";

pub(super) fn look(config: &FileConfig, name: Option<&str>) -> Vec<Finding> {
    let servers = servers(config);
    let mut findings = vec![servers];
    let seed = config.crawl.seeds.iter().find_map(|seed| host_of(seed));
    if let Some(name) = name.map(str::to_owned).or(seed) {
        findings.push(look_up(config, &name));
    }
    findings
}

/// The host of a seed, which may be written without its scheme.
fn host_of(seed: &str) -> Option<String> {
    let url = parse_url(seed, None).ok().filter(url::Url::has_host);
    let url = url.or_else(|| parse_url(&format!("http://{seed}"), None).ok())?;
    url.domain().map(str::to_owned)
}

fn servers(config: &FileConfig) -> Finding {
    let overrides = match config.fetch.resolve.len() {
        0 => String::new(),
        count => format!("; {count} overrides in fetch.resolve"),
    };
    if !config.dns.name_servers.is_empty() {
        let servers: Vec<_> = config.dns.name_servers.iter().map(|server| server.0.to_string()).collect();
        return Finding::ok("dns", format!("name servers are {}{overrides}", servers.join(", ")));
    }
    let text = std::fs::read_to_string(RESOLV_CONF).unwrap_or_default();
    let servers = of_resolv_conf(&text);
    if servers.is_empty() {
        let detail = format!("{RESOLV_CONF} names no name server{overrides}");
        return Finding::warn("dns", detail, "connect this machine, or name servers in dns.name_servers");
    }
    Finding::ok("dns", format!("name servers are {} ({RESOLV_CONF}){overrides}", servers.join(", ")))
}

fn of_resolv_conf(text: &str) -> Vec<&str> {
    let mut servers = Vec::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        if words.next() == Some("nameserver") {
            servers.extend(words.next());
        }
    }
    servers
}

fn look_up(config: &FileConfig, name: &str) -> Finding {
    let advice = "is this machine connected? Name servers can be chosen in dns.name_servers, and addresses in fetch.resolve";
    let options = match config.fetch_options() {
        Ok(options) => options,
        Err((option, message)) => return Finding::fail("dns", format!("{option}: {message}"), "mend it"),
    };
    let looked = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let looked = looked.map_err(|error| error.to_string()).and_then(|runtime| {
        let dialer = Dialer::new(options.dial).map_err(|error| error.to_string())?;
        let began = Instant::now();
        let addresses = runtime.block_on(dialer.look_up(name, 443)).map_err(|error| error.to_string())?;
        Ok((dialer, addresses, began.elapsed()))
    });
    let (dialer, addresses, took) = match looked {
        Ok(looked) => looked,
        Err(error) => return Finding::fail("dns", format!("cannot look up {name}: {error}"), advice),
    };
    let told: Vec<_> = addresses.iter().map(|address| address.ip().to_string()).collect();
    let detail = format!("{name} is at {} ({:.1} ms)", told.join(", "), took.as_secs_f64() * 1e3);
    match addresses.iter().try_for_each(|address| dialer.guard().check(*address)) {
        Ok(()) => Finding::ok("dns", detail),
        Err(refusal) => {
            let detail = format!("{detail}, which would not be dialled: {refusal}");
            Finding::warn("dns", detail, "if it is yours, open its network in fetch.allow_networks")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    #[test]
    fn name_servers_are_read_as_the_system_reads_them() {
        let text = "# nameserver 192.0.2.1\nnameserver 192.0.2.53 # first\n nameserver\t2001:db8::53\nnameserver\nsearch x\n";
        assert_eq!(of_resolv_conf(text), ["192.0.2.53", "2001:db8::53"]);
    }

    #[test]
    fn a_name_is_looked_up_and_its_address_judged() {
        let mut config = FileConfig::default();
        config.fetch.resolve = vec!["shop.example=127.0.0.1".parse().unwrap()];
        config.crawl.seeds = vec!["not a url at all".to_owned(), "shop.example/x".to_owned()];
        let found = look(&config, None);
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(found[1].state, State::Warn, "{found:?}");
        assert!(found[1].detail.starts_with("shop.example is at 127.0.0.1 ("), "{found:?}");
        config.fetch.allow_networks = vec!["127.0.0.0/8".parse().unwrap()];
        assert_eq!(look_up(&config, "shop.example").state, State::Ok);
    }
}
