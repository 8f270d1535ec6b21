//! How much of a server's certificate is looked at, and the connector that looks.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use tokio_postgres_rustls::MakeRustlsConnect;

/// What a server has to prove before it is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Checked {
    /// Nothing: others cannot listen, but anybody could answer.
    Nothing,
    /// That somebody who is trusted signed its certificate.
    Signature,
    /// That, and that it is the host that was asked for.
    SignatureAndName,
}

/// What was chosen of TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tls {
    pub(super) checked: Checked,
    /// The file of whom to trust; None: whom the machine trusts.
    pub(super) root: Option<PathBuf>,
}

impl Tls {
    /// Makes the connector. Reads certificates only where they will be looked at.
    pub(super) fn connector(&self) -> Result<MakeRustlsConnect, String> {
        let provider = Arc::new(ring::default_provider());
        let verifier: Arc<dyn ServerCertVerifier> = match self.checked {
            Checked::Nothing => Arc::new(Lenient { provider: Arc::clone(&provider), chain: None }),
            checked => {
                let roots = Arc::new(self.roots()?);
                let chain = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider)).build();
                let chain =
                    chain.map_err(|error| format!("the root certificates cannot be used: {error}"))?;
                match checked {
                    Checked::SignatureAndName => chain,
                    _ => Arc::new(Lenient { provider: Arc::clone(&provider), chain: Some(chain) }),
                }
            }
        };
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("TLS cannot be set up: {error}"))?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        Ok(MakeRustlsConnect::new(config))
    }

    fn roots(&self) -> Result<RootCertStore, String> {
        match &self.root {
            Some(file) => roots_in(file),
            None => {
                let found = rustls_native_certs::load_native_certs();
                let mut roots = RootCertStore::empty();
                let (added, _) = roots.add_parsable_certificates(found.certs);
                if added > 0 {
                    return Ok(roots);
                }
                let why = found.errors.first().map(|error| format!(": {error}")).unwrap_or_default();
                Err(format!(
                    "this machine has no root certificates{why}; install its package ca-certificates, or name a file with \
                     `sslrootcert=FILE`"
                ))
            }
        }
    }
}

fn roots_in(file: &Path) -> Result<RootCertStore, String> {
    let shown = file.display();
    let certificates =
        CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>).map_err(
            |error| format!("the root certificates in `{shown}` (sslrootcert) cannot be read: {error}"),
        )?;
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        let added = roots.add(certificate);
        added.map_err(|error| format!("a certificate in `{shown}` (sslrootcert) cannot be used: {error}"))?;
    }
    if roots.is_empty() {
        return Err(format!(
            "there is no certificate in `{shown}` (sslrootcert); it has to be in PEM format"
        ));
    }
    Ok(roots)
}

/// Looks at less than all: at the chain of signatures, or at nothing. That the server has the certificate's key is seen to
/// in any case.
#[derive(Debug)]
struct Lenient {
    provider: Arc<CryptoProvider>,
    chain: Option<Arc<WebPkiServerVerifier>>,
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(chain) = &self.chain else { return Ok(ServerCertVerified::assertion()) };
        match chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            // The name is looked at last: whoever gets so far is well signed.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
