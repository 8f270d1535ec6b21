//! What the configuration says of fetching, as the fetcher takes it.

use trapline_fetch::{
    AddressPaceOptions, CookieOptions, Credentials, DialOptions, DnsOptions, FetchOptions, GuardOptions,
    HostRule, Limits, OriginCredentials, PoolOptions, RobotsOptions, Roots, Route, certificates_of_pem,
};

use super::file_config::FileConfig;

impl FileConfig {
    /// How pages are fetched. Reads the files of certificates that are named; what is wrong is told with its option.
    pub(crate) fn fetch_options(&self) -> Result<FetchOptions, (&'static str, String)> {
        let fetch = &self.fetch;
        let usual = FetchOptions::default();
        Ok(FetchOptions {
            dial: self.dial_options()?,
            user_agent: fetch.user_agent.clone().unwrap_or(usual.user_agent),
            contact: fetch.contact.clone(),
            headers: fetch.headers.clone(),
            hosts: self.host_rules(),
            credentials: self.credentials(),
            cookies: self.cookies.keep.then_some(CookieOptions {
                per_domain_max: self.cookies.per_domain_max,
                total_max: self.cookies.total_max,
                cookie_bytes_max: self.cookies.cookie_bytes_max.in_memory(),
                lifetime_max: self.cookies.lifetime_max,
            }),
            limits: self.fetch_limits(),
            pool: PoolOptions {
                idle_per_origin_max: self.connect.idle_per_origin_max,
                idle_max: self.connect.idle_max,
                idle_timeout: self.connect.idle_timeout,
                lifetime: self.connect.lifetime,
                streams_max: self.connect.streams_max,
            },
            bandwidth_bytes_per_s: fetch.bandwidth.map(|size| size.0),
            address_pace: AddressPaceOptions {
                concurrency_max: fetch.address_concurrency,
                gap_min: fetch.address_gap,
                wait_max: fetch.address_wait_max,
            },
            keep_raw: usual.keep_raw,
            http1_only: fetch.http1_only,
        })
    }

    /// The processors of a crawl's chains.
    pub(crate) fn chain_names(&self) -> trapline_crawl::ChainNames {
        let chains = &self.chains;
        trapline_crawl::ChainNames {
            candidate: chains.candidate.clone(),
            fetch: chains.fetch.clone(),
            disposition: chains.disposition.clone(),
        }
    }

    /// How robots.txt files are fetched and remembered.
    pub(crate) fn robots_options(&self) -> RobotsOptions {
        let robots = &self.robots;
        RobotsOptions {
            agents: robots.agents.clone(),
            lifetime: robots.lifetime,
            failure_wait: robots.failure_wait,
            failure_wait_max: robots.failure_wait_max,
            timeout: robots.timeout,
            redirects_max: robots.redirects_max,
            bytes_max: robots.bytes_max.in_memory(),
            hosts_max: robots.hosts_max,
            memory_bytes_max: robots.memory_bytes_max.in_memory(),
        }
    }

    fn dial_options(&self) -> Result<DialOptions, (&'static str, String)> {
        let (fetch, connect) = (&self.fetch, &self.connect);
        Ok(DialOptions {
            guard: GuardOptions {
                allow_networks: fetch.allow_networks.clone(),
                allow_ports: fetch.allow_ports.iter().copied().collect(),
                nat64_prefixes: fetch.nat64_prefixes.clone(),
            },
            dns: self.dns_options(),
            proxy: fetch.proxy.clone(),
            roots: self.roots()?,
            // Said by the rules for hosts.
            lenient_tls_hosts: Vec::new(),
            connect_timeout: connect.address_timeout,
            connect_timeout_total: connect.addresses_timeout,
            connect_attempt_delay: connect.attempt_delay,
            connect_attempts_max: connect.attempts_max,
            proxy_timeout: connect.proxy_timeout,
            tls_timeout: connect.tls_timeout,
            timeout: connect.timeout,
        })
    }

    fn dns_options(&self) -> DnsOptions {
        let dns = &self.dns;
        DnsOptions {
            name_servers: dns.name_servers.iter().map(|server| server.0).collect(),
            overrides: self.fetch.resolve.clone(),
            families: dns.families,
            attempt_timeout: dns.attempt_timeout,
            attempts_max: dns.attempts_max,
            timeout: dns.timeout,
            second_family_wait: dns.second_family_wait,
            lookups_max: dns.lookups_max,
            names_max: dns.names_max,
            addresses_max: dns.addresses_max,
            chain_max: dns.chain_max,
            ttl_min: dns.ttl_min,
            ttl_max: dns.ttl_max,
            negative_ttl_min: dns.negative_ttl_min,
            negative_ttl_max: dns.negative_ttl_max,
            failure_ttl: dns.failure_ttl,
        }
    }

    fn roots(&self) -> Result<Roots, (&'static str, String)> {
        let mut certificates = Vec::new();
        for path in &self.fetch.roots {
            let wrong = |reason: &dyn std::fmt::Display| {
                ("fetch.roots", format!("cannot read certificates from {}: {reason}", path.display()))
            };
            let pem = std::fs::read(path).map_err(|error| wrong(&error))?;
            certificates.extend(certificates_of_pem(&pem).map_err(|error| wrong(&error))?);
        }
        match (self.fetch.system_roots, certificates.is_empty()) {
            (true, true) => Ok(Roots::System),
            (true, false) => Ok(Roots::SystemAnd(certificates)),
            (false, false) => Ok(Roots::Only(certificates)),
            (false, true) => Err((
                "fetch.system_roots",
                "without the system's authorities, name others in fetch.roots".to_owned(),
            )),
        }
    }

    fn fetch_limits(&self) -> Limits {
        let limits = &self.limits;
        Limits {
            first_byte_timeout: limits.first_byte_timeout,
            idle_timeout: limits.idle_timeout,
            total_timeout: limits.total_timeout,
            rate_min_bytes_per_s: limits.rate_min.0,
            rate_window: limits.rate_window,
            header_bytes_max: limits.header_bytes_max.in_memory(),
            header_count_max: limits.header_count_max,
            informational_max: limits.informational_max,
            encoded_bytes_max: limits.encoded_bytes_max.0,
            decoded_bytes_max: limits.decoded_bytes_max.in_memory(),
            ratio_max: limits.ratio_max,
            ratio_free_bytes: limits.ratio_free_bytes.in_memory(),
            codings_max: limits.codings_max,
            zstd_window_bytes_max: limits.zstd_window_bytes_max.0,
            raw_bytes_max: Limits::default().raw_bytes_max,
        }
    }

    fn host_rules(&self) -> Vec<HostRule> {
        let rule = |host: &super::sections::HostOverride| HostRule {
            hosts: host.hosts.clone(),
            user_agent: host.user_agent.clone(),
            headers: host.headers.clone(),
            first_byte_timeout: host.first_byte_timeout,
            idle_timeout: host.idle_timeout,
            total_timeout: host.total_timeout,
            lenient_tls: host.lenient_tls,
            route: host.proxy.as_ref().map_or(Route::Usual, |proxy| proxy.0.clone()),
            http1_only: host.http1_only,
        };
        self.lists.host.iter().map(rule).collect()
    }

    fn credentials(&self) -> Vec<OriginCredentials> {
        let login = |login: &super::sections::OriginLogin| OriginCredentials {
            origin: login.origin.0.clone(),
            credentials: Credentials::new(&login.user, &login.password.0),
        };
        self.lists.credentials.iter().map(login).collect()
    }
}
