//! `grpc://HOST[:PORT]`, and `grpcs://HOST[:PORT][?ca=FILE]` with TLS: a store that a service keeps.
//!
//! The token to show is in the environment, where neither lists of processes nor logs have it.

use std::sync::Arc;

use trapline_frontier::Store;
use trapline_server::{GrpcAddress, GrpcStore};

/// The variable with the token.
const TOKEN: &str = "TRAPLINE_TOKEN";

/// What a URL names.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct GrpcUrl<'a> {
    /// With its scheme, without options.
    service: &'a str,
    /// A file with certificates of authorities to trust instead of the machine's.
    ca: Option<&'a str>,
}

pub(super) fn parse(url: &str) -> Result<GrpcUrl<'_>, String> {
    let (service, options) = url.split_once('?').unwrap_or((url, ""));
    let tls = GrpcAddress::parse(service)?.tls;
    let mut ca = None;
    for option in options.split('&').filter(|option| !option.is_empty()) {
        match option.split_once('=') {
            Some(("ca", file)) if !tls => {
                return Err(format!(
                    "`{url}`: there are no certificates without TLS; write grpcs:// or leave out ca={file}"
                ));
            }
            Some(("ca", file)) if !file.is_empty() => ca = Some(file),
            _ => return Err(format!("`{url}`: the option `{option}` is not known; there is ca=FILE")),
        }
    }
    Ok(GrpcUrl { service, ca })
}

impl GrpcUrl<'_> {
    /// A store there. Whether the service answers is seen with the first verb.
    pub(super) fn open(&self) -> Result<Arc<dyn Store>, String> {
        let mut address = GrpcAddress::parse(self.service)?;
        if let Some(file) = self.ca {
            let read =
                std::fs::read(file).map_err(|error| format!("{}: cannot read {file}: {error}", self.service));
            address.ca = Some(read?);
        }
        address.token =
            std::env::var(TOKEN).ok().map(|token| token.trim().to_owned()).filter(|token| !token.is_empty());
        let store = GrpcStore::connect(&address).map_err(|error| error.to_string())?;
        Ok(Arc::new(store))
    }

    /// Where it is, however its URL is written.
    pub(super) fn place(&self) -> String {
        match GrpcAddress::parse(self.service) {
            Ok(address) => format!("grpc://{}", address.authority.to_ascii_lowercase()),
            Err(_) => self.service.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_are_named_by_urls() {
        assert_eq!(parse("grpc://h:1"), Ok(GrpcUrl { service: "grpc://h:1", ca: None }));
        assert_eq!(parse("grpcs://h?ca=a/b.pem"), Ok(GrpcUrl { service: "grpcs://h", ca: Some("a/b.pem") }));
        assert_eq!(parse("grpc://H").unwrap().place(), "grpc://h:7071");
        for (url, told) in [
            ("grpc://h?ca=x", "write grpcs://"),
            ("grpcs://h?cert=x", "there is ca=FILE"),
            ("grpcs://h?ca=", "there is ca=FILE"),
            ("grpc:h", "write grpc://HOST:PORT"),
        ] {
            let error = parse(url).expect_err(url);
            assert!(error.contains(told), "{error}");
        }
        let error = parse("grpcs://h?ca=/nowhere/x").unwrap().open().err().unwrap();
        assert!(error.contains("cannot read /nowhere/x"), "{error}");
    }
}
