//! `grpc://HOST[:PORT]`, and `grpcs://HOST[:PORT][?ca=FILE&cert=FILE&key=FILE]` with TLS: a store that a service keeps.
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
    /// Files with the certificate to show, and its key.
    cert: Option<&'a str>,
    key: Option<&'a str>,
}

pub(super) fn parse(url: &str) -> Result<GrpcUrl<'_>, String> {
    let (service, options) = url.split_once('?').unwrap_or((url, ""));
    let tls = GrpcAddress::parse(service)?.tls;
    let (mut ca, mut cert, mut key) = (None, None, None);
    for option in options.split('&').filter(|option| !option.is_empty()) {
        // What stands behind an unknown name may be a secret.
        let (name, file) = option.split_once('=').unwrap_or((option, ""));
        let option = match name {
            "ca" => &mut ca,
            "cert" => &mut cert,
            "key" => &mut key,
            _ => {
                return Err(format!(
                    "`{service}`: the option `{name}` is not known; there are ca=FILE, cert=FILE and key=FILE. A token goes into the \
                     variable {TOKEN}"
                ));
            }
        };
        if file.is_empty() {
            return Err(format!("`{service}`: `{name}` names no file; write {name}=FILE"));
        }
        if !tls {
            return Err(format!(
                "`{service}`: there are no certificates without TLS; write grpcs:// or leave out {name}={file}"
            ));
        }
        *option = Some(file);
    }
    if cert.is_some() != key.is_some() {
        return Err(format!("`{service}`: a certificate and its key go together; write cert=FILE&key=FILE"));
    }
    Ok(GrpcUrl { service, ca, cert, key })
}

impl GrpcUrl<'_> {
    /// A store there. Whether the service answers is seen with the first verb.
    pub(super) fn open(&self) -> Result<Arc<dyn Store>, String> {
        let mut address = GrpcAddress::parse(self.service)?;
        let read = |file: &str| {
            std::fs::read(file).map_err(|error| format!("{}: cannot read {file}: {error}", self.service))
        };
        address.ca = self.ca.map(read).transpose()?;
        if let Some((cert, key)) = self.cert.zip(self.key) {
            address.identity = Some((read(cert)?, read(key)?));
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
        let (ca, cert, key) = (None, None, None);
        assert_eq!(parse("grpc://h:1"), Ok(GrpcUrl { service: "grpc://h:1", ca, cert, key }));
        let ca = Some("a/b.pem");
        assert_eq!(parse("grpcs://h?ca=a/b.pem"), Ok(GrpcUrl { service: "grpcs://h", ca, cert, key }));
        let (cert, key) = (Some("c"), Some("k"));
        assert_eq!(
            parse("grpcs://h?key=k&ca=a/b.pem&cert=c"),
            Ok(GrpcUrl { service: "grpcs://h", ca, cert, key })
        );
        assert_eq!(parse("grpc://H").unwrap().place(), "grpc://h:7071");
        for (url, told) in [
            ("grpc://h?ca=x", "write grpcs://"),
            ("grpcs://h?cert=x", "write cert=FILE&key=FILE"),
            ("grpcs://h?ca=", "write ca=FILE"),
            ("grpc://h?token=secret", "TRAPLINE_TOKEN"),
            ("grpc:h", "write grpc://HOST:PORT"),
        ] {
            let error = parse(url).expect_err(url);
            assert!(error.contains(told) && !error.contains("secret"), "{error}");
        }
        let error = parse("grpcs://h?ca=/nowhere/x").unwrap().open().err().unwrap();
        assert!(error.contains("cannot read /nowhere/x"), "{error}");
    }
}
