//! TLS servers on loopback with whatever certificate a test wants.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use tokio_rustls::TlsAcceptor;
use trapline_fetch::{DialOptions, Roots};

use super::{Server, open_options};

static AUTHORITIES: AtomicUsize = AtomicUsize::new(1);

/// An authority that signs certificates.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        // Each its own name: else one looks like a forger of the other's signatures.
        let number = AUTHORITIES.fetch_add(1, Ordering::Relaxed);
        params.distinguished_name.push(DnType::CommonName, format!("authority {number}"));
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(crate) fn certificate(&self) -> CertificateDer<'static> {
        self.0.der().clone()
    }

    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    /// Options that believe this authority only, and lead every name to one server.
    pub(crate) fn believed_by(&self, server: &Server) -> DialOptions {
        let mut options = open_options();
        options.roots = Roots::Only(vec![self.certificate()]);
        options.dns.overrides = vec![format!("*={}", server.address).parse().unwrap()];
        options
    }

    /// A certificate for these names, after whatever `change` does to it.
    pub(crate) fn sign(&self, names: &[&str], change: impl FnOnce(&mut CertificateParams)) -> Identity {
        let key = KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        change(&mut params);
        let certificate = params.signed_by(&key, &self.0).unwrap().der().clone();
        Identity { certificate, key: PrivateKeyDer::Pkcs8(key.serialize_der().into()) }
    }
}

/// A server's certificate and key.
pub(crate) struct Identity {
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

impl Identity {
    pub(crate) fn self_signed(names: &[&str], authority: bool) -> Self {
        let key = KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        if authority {
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        }
        let certificate = params.self_signed(&key).unwrap().der().clone();
        Self { certificate, key: PrivateKeyDer::Pkcs8(key.serialize_der().into()) }
    }

    /// This certificate with somebody else's key: what a thief of certificates has.
    pub(crate) fn with_key_of(self, other: Self) -> Self {
        Self { certificate: self.certificate, key: other.key }
    }

    /// A server with this certificate that speaks TLS, holds the connection and says nothing.
    pub(crate) async fn serve(&self, alpn: &[&str]) -> Server {
        self.serve_versions(alpn, rustls::ALL_VERSIONS).await
    }

    pub(crate) async fn serve_versions(
        &self,
        alpn: &[&str],
        versions: &[&'static rustls::SupportedProtocolVersion],
    ) -> Server {
        let acceptor = self.acceptor(alpn, versions);
        Server::start(move |stream| {
            let acceptor = acceptor.clone();
            async move {
                if let Ok(mut stream) = acceptor.accept(stream).await {
                    let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
                }
            }
        })
        .await
    }

    fn acceptor(&self, alpn: &[&str], versions: &[&'static rustls::SupportedProtocolVersion]) -> TlsAcceptor {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        // Without the usual check that both belong together.
        let key = provider.key_provider.load_private_key(self.key.clone_key()).unwrap();
        let certified = CertifiedKey::new(vec![self.certificate.clone()], key);
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .unwrap()
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        TlsAcceptor::from(Arc::new(config))
    }
}

/// Valid once, and not any more.
pub(crate) fn expired(params: &mut CertificateParams) {
    params.not_before = date_time_ymd(2001, 1, 1);
    params.not_after = date_time_ymd(2002, 1, 1);
}

/// Valid some day.
pub(crate) fn not_yet_valid(params: &mut CertificateParams) {
    params.not_before = date_time_ymd(2200, 1, 1);
    params.not_after = date_time_ymd(2300, 1, 1);
}

pub(crate) fn unchanged(_: &mut CertificateParams) {}
