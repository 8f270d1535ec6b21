//! The service's certificate, and the authority that its callers' certificates must come from.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

/// Where it is all written, as PEM.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The certificate, and those between it and its authority.
    pub cert: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// The authority of callers' certificates; None asks them for none.
    pub client_ca: Option<PathBuf>,
}

/// Makes of them what connections on a port need; `alpn` is what is spoken there.
pub(crate) fn config(files: &TlsFiles, alpn: &[u8]) -> Result<Arc<ServerConfig>, String> {
    let provider = Arc::new(ring::default_provider());
    let chain = certificates(&files.cert)?;
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|error| format!("cannot read the key in {}: {error}", files.key.display()))?;
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("cannot do TLS: {error}"))?;
    let builder = match &files.client_ca {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for certificate in certificates(path)? {
                roots.add(certificate).map_err(|error| {
                    format!("{}: not an authority's certificate: {error}", path.display())
                })?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            builder
                .with_client_cert_verifier(verifier.map_err(|error| format!("{}: {error}", path.display()))?)
        }
    };
    let mut config = builder.with_single_cert(chain, key).map_err(|error| {
        format!("{} and {} do not fit: {error}", files.cert.display(), files.key.display())
    })?;
    config.alpn_protocols = vec![alpn.to_vec()];
    Ok(Arc::new(config))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let cannot = |error: &dyn std::fmt::Display| {
        format!("cannot read the certificates in {}: {error}", path.display())
    };
    let read: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(path).map_err(|error| cannot(&error))?.collect();
    let read = read.map_err(|error| cannot(&error))?;
    if read.is_empty() { Err(cannot(&"there is none; it must be PEM")) } else { Ok(read) }
}
