//! Certificates for tests, signed by an authority that nobody else trusts.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

/// Signs certificates.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its key, in PEM format.
#[derive(Clone)]
pub struct Certificate {
    /// For everybody.
    pub certificate: String,
    /// For the server alone.
    pub key: String,
}

impl Authority {
    /// A new one.
    pub fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "an authority for tests");
        let key = KeyPair::generate().expect("a key can be drawn");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("an authority can sign for itself");
        Self { issuer }
    }

    /// Its own certificate, in PEM format, for those who are to trust it.
    pub fn certificate(&self) -> String {
        self.issuer.pem()
    }

    /// A certificate for a server of these names.
    pub fn sign(&self, names: &[&str]) -> Certificate {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let key = KeyPair::generate().expect("a key can be drawn");
        let params = CertificateParams::new(names).expect("names of servers are well-formed");
        let certificate = params.signed_by(&key, &self.issuer).expect("an authority can sign");
        Certificate { certificate: certificate.pem(), key: key.serialize_pem() }
    }
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}
