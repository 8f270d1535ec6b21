//! TLS: strict by default, lenient for hosts that the operator names, and never silent about it.
//!
//! Works on a connection that is already there. Which hosts are treated leniently is decided by the dialer.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::dial_error::{DialError, DialErrorKind};

/// Whose certificates are believed.
#[derive(Clone, Default)]
pub enum Roots {
    /// Those that the operating system trusts.
    #[default]
    System,
    /// Those, and these beside them: for servers with certificates of one's own authority.
    SystemAnd(Vec<CertificateDer<'static>>),
    /// These, and no others.
    Only(Vec<CertificateDer<'static>>),
}

/// The certificates in a PEM file, for [`Roots`]. Other things in the file are passed over; a file without any certificate is
/// an error, because it was not meant.
pub fn certificates_of_pem(text: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    match certificates {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        Ok(_) => Err(TlsError::BadPem("it has no certificate".to_owned())),
        Err(error) => Err(TlsError::BadPem(error.to_string())),
    }
}

/// What is known of a connection's TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFacts {
    /// The version: `TLSv1.3` or `TLSv1.2`.
    pub version: &'static str,
    /// The cipher suite, by its name in the standards.
    pub cipher: String,
    /// Whether the certificate is good. False only in lenient mode.
    pub verified: bool,
    /// What is wrong with the certificate, all that was found. Empty if it is good.
    pub problems: Vec<TlsProblem>,
}

/// What is wrong with a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum TlsProblem {
    /// It is expired.
    Expired,
    /// It is not valid yet.
    NotYetValid,
    /// It is for another host.
    WrongHost,
    /// It is self-signed, or of an authority nobody knows.
    Untrusted,
    /// It was revoked.
    Revoked,
    /// Something else, such as a broken signature, or a purpose that is not that of a server.
    Invalid,
}

impl TlsProblem {
    /// Its name in results; with `tls_` before it, that of the error in strict mode. Stays as it is.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::NotYetValid => "not_yet_valid",
            Self::WrongHost => "wrong_host",
            Self::Untrusted => "untrusted",
            Self::Revoked => "revoked",
            Self::Invalid => "invalid",
        }
    }

    fn of(error: &CertificateError) -> Self {
        use CertificateError as E;
        match error {
            E::Expired | E::ExpiredContext { .. } => Self::Expired,
            E::NotValidYet | E::NotValidYetContext { .. } => Self::NotYetValid,
            E::NotValidForName | E::NotValidForNameContext { .. } => Self::WrongHost,
            E::UnknownIssuer => Self::Untrusted,
            E::Revoked => Self::Revoked,
            // An authority's own certificate in a server's place: what many self-signed ones are.
            E::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => Self::Untrusted,
            _ => Self::Invalid,
        }
    }

    fn error_kind(self) -> DialErrorKind {
        match self {
            Self::Expired => DialErrorKind::TlsExpired,
            Self::NotYetValid => DialErrorKind::TlsNotYetValid,
            Self::WrongHost => DialErrorKind::TlsWrongHost,
            Self::Untrusted => DialErrorKind::TlsUntrusted,
            Self::Revoked => DialErrorKind::TlsRevoked,
            Self::Invalid => DialErrorKind::TlsFailed,
        }
    }
}

/// Which protocols are offered to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Offer {
    /// HTTP/2, else HTTP/1.1.
    #[default]
    Both,
    /// HTTP/1.1 only.
    Http1,
}

impl Offer {
    fn alpn(self) -> Vec<Vec<u8>> {
        match self {
            Self::Both => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
            Self::Http1 => vec![b"http/1.1".to_vec()],
        }
    }
}

/// Makes TLS connections out of connections.
pub(crate) struct Tls {
    /// One that offers HTTP/2 and one that does not. Sessions are resumed among those that were verified.
    strict: [TlsConnector; 2],
    lenient: ClientConfig,
    verifier: Arc<dyn ServerCertVerifier>,
}

/// Why there is no TLS at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    /// A root certificate that the operator gave cannot be read.
    #[error("root certificate number {number} cannot be read: {reason}")]
    BadRoot {
        /// Which one, from 1.
        number: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// A file of certificates that the operator gave cannot be read.
    #[error("the PEM file cannot be read: {0}")]
    BadPem(String),
    /// The cryptography does not fit together.
    #[error("TLS cannot be set up: {0}")]
    Setup(String),
}

impl Tls {
    pub(crate) fn new(roots: &Roots) -> Result<Self, TlsError> {
        let setup = |error: &dyn fmt::Display| TlsError::Setup(error.to_string());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let store = root_store(roots)?;
        let verifier: Arc<dyn ServerCertVerifier> = if store.is_empty() {
            // A machine without certificates crawls `http:` all the same; every `https:` host is untrusted there.
            Arc::new(NobodyIsTrusted(Arc::clone(&provider)))
        } else {
            WebPkiServerVerifier::builder_with_provider(Arc::new(store), Arc::clone(&provider))
                .build()
                .map_err(|error| setup(&error))?
        };
        let config = |offer: Offer| -> Result<ClientConfig, TlsError> {
            let mut config = ClientConfig::builder_with_provider(Arc::clone(&provider))
                .with_safe_default_protocol_versions()
                .map_err(|error| setup(&error))?
                .dangerous()
                .with_custom_certificate_verifier(Arc::clone(&verifier))
                .with_no_client_auth();
            config.alpn_protocols = offer.alpn();
            Ok(config)
        };
        let connector = |offer| config(offer).map(|config| TlsConnector::from(Arc::new(config)));
        let mut lenient = config(Offer::Both)?;
        // A resumed session does not show its certificate again, and what is wrong with it must be told each time.
        lenient.resumption = Resumption::disabled();
        Ok(Self { strict: [connector(Offer::Both)?, connector(Offer::Http1)?], lenient, verifier })
    }

    /// Shakes hands with the server that should have this name.
    pub(crate) async fn connect(
        &self,
        stream: TcpStream,
        name: ServerName<'static>,
        offer: Offer,
        lenient: bool,
    ) -> Result<(TlsStream<TcpStream>, TlsFacts), DialError> {
        let problems: Problems = Arc::default();
        let connector = if lenient {
            self.lenient_connector(offer, &problems)
        } else {
            self.strict[usize::from(offer == Offer::Http1)].clone()
        };
        let shown = name.to_str().into_owned();
        let stream =
            connector.connect(name, stream).await.map_err(|error| handshake_error(&shown, &error))?;
        let session = stream.get_ref().1;
        let problems = problems.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let facts = TlsFacts {
            version: match session.protocol_version() {
                Some(rustls::ProtocolVersion::TLSv1_3) => "TLSv1.3",
                Some(rustls::ProtocolVersion::TLSv1_2) => "TLSv1.2",
                _ => "unknown",
            },
            // The standards write TLS_ where the library writes TLS13_.
            cipher: session
                .negotiated_cipher_suite()
                .and_then(|suite| suite.suite().as_str())
                .unwrap_or("unknown")
                .replacen("TLS13_", "TLS_", 1),
            verified: problems.is_empty(),
            problems,
        };
        Ok((stream, facts))
    }

    fn lenient_connector(&self, offer: Offer, problems: &Problems) -> TlsConnector {
        let mut config = self.lenient.clone();
        config.alpn_protocols = offer.alpn();
        let verifier = Lenient { strict: Arc::clone(&self.verifier), problems: Arc::clone(problems) };
        config.dangerous().set_certificate_verifier(Arc::new(verifier));
        TlsConnector::from(Arc::new(config))
    }
}

fn root_store(roots: &Roots) -> Result<RootCertStore, TlsError> {
    let mut store = RootCertStore::empty();
    if let Roots::System | Roots::SystemAnd(_) = roots {
        // Systems collect certificates that nobody can read any more; the others still count.
        store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    if let Roots::SystemAnd(certificates) | Roots::Only(certificates) = roots {
        for (place, certificate) in certificates.iter().enumerate() {
            store
                .add(certificate.clone())
                .map_err(|error| TlsError::BadRoot { number: place + 1, reason: error.to_string() })?;
        }
    }
    Ok(store)
}

fn handshake_error(name: &str, error: &std::io::Error) -> DialError {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let kind = match inner {
        Some(rustls::Error::InvalidCertificate(problem)) => TlsProblem::of(problem).error_kind(),
        _ => DialErrorKind::TlsFailed,
    };
    DialError::new(kind, format!("TLS handshake with {name} failed: {error}"))
}

type Problems = Arc<Mutex<Vec<TlsProblem>>>;

/// Accepts whatever certificate, and remembers what is wrong with it. Whether the server has the certificate's key is still
/// checked, so that who answers is who showed the certificate.
#[derive(Debug)]
struct Lenient {
    strict: Arc<dyn ServerCertVerifier>,
    problems: Problems,
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let verdict =
            self.strict.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        let mut found = Vec::new();
        match verdict {
            Ok(verified) => return Ok(verified),
            Err(rustls::Error::InvalidCertificate(error)) => found.push(TlsProblem::of(&error)),
            Err(_) => found.push(TlsProblem::Invalid),
        }
        // The strict verifier stops at the first problem; a wrong name is worth knowing beside any other.
        let named = ParsedCertificate::try_from(end_entity)
            .is_ok_and(|certificate| verify_server_name(&certificate, server_name).is_ok());
        if !named && !found.contains(&TlsProblem::WrongHost) {
            found.push(TlsProblem::WrongHost);
        }
        *self.problems.lock().unwrap_or_else(PoisonError::into_inner) = found;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.strict.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.strict.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.strict.supported_verify_schemes()
    }
}

/// Stands in where there are no root certificates.
#[derive(Debug)]
struct NobodyIsTrusted(Arc<CryptoProvider>);

impl ServerCertVerifier for NobodyIsTrusted {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Err(CertificateError::UnknownIssuer.into())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

impl fmt::Debug for Roots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System => f.write_str("System"),
            Self::SystemAnd(certificates) => write!(f, "SystemAnd({} certificates)", certificates.len()),
            Self::Only(certificates) => write!(f, "Only({} certificates)", certificates.len()),
        }
    }
}
