//! TLS: good and bad certificates, strict and lenient.

use std::time::Duration;

use rcgen::{CertificateParams, ExtendedKeyUsagePurpose};
use tokio::io::AsyncWriteExt;
use trapline_fetch::{
    DialErrorKind, DialOptions, Dialer, DialerError, Offer, Protocol, Roots, TlsProblem, certificates_of_pem,
};

use crate::door::tls_server::{Authority, Identity, expired, not_yet_valid, unchanged};
use crate::door::{Server, destination, dial, open_options, trouble};

/// One server for each way a certificate can be wrong, all for `good.example` unless that is what is wrong.
async fn bad_servers(authority: &Authority) -> Vec<(&'static str, Server, DialErrorKind, Vec<TlsProblem>)> {
    let name = &["good.example"];
    let other = &["other.example"];
    let client = |params: &mut CertificateParams| {
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    };
    use DialErrorKind::{TlsExpired, TlsFailed, TlsNotYetValid, TlsUntrusted, TlsWrongHost};
    use TlsProblem::{Expired, Invalid, NotYetValid, Untrusted, WrongHost};
    let cases = [
        ("expired", authority.sign(name, expired), TlsExpired, vec![Expired]),
        ("not yet valid", authority.sign(name, not_yet_valid), TlsNotYetValid, vec![NotYetValid]),
        ("another host's", authority.sign(other, unchanged), TlsWrongHost, vec![WrongHost]),
        ("another host's, expired", authority.sign(other, expired), TlsExpired, vec![Expired, WrongHost]),
        ("without a name", authority.sign(&[], unchanged), TlsWrongHost, vec![WrongHost]),
        ("self-signed", Identity::self_signed(name, false), TlsUntrusted, vec![Untrusted]),
        ("self-signed authority", Identity::self_signed(name, true), TlsUntrusted, vec![Untrusted]),
        ("of an unknown authority", Authority::new().sign(name, unchanged), TlsUntrusted, vec![Untrusted]),
        ("a client's", authority.sign(name, client), TlsFailed, vec![Invalid]),
    ];
    let mut servers = Vec::new();
    for (what, identity, kind, problems) in cases {
        servers.push((what, identity.serve(&["h2", "http/1.1"]).await, kind, problems));
    }
    servers
}

#[tokio::test]
async fn a_good_certificate_is_verified_and_the_server_chooses_the_protocol() {
    let authority = Authority::new();
    let identity = authority.sign(&["good.example"], unchanged);
    let cases: [(&[&str], Offer, Protocol); 5] = [
        (&["h2", "http/1.1"], Offer::Both, Protocol::H2),
        (&["h2", "http/1.1"], Offer::Http1, Protocol::H1),
        (&["http/1.1"], Offer::Both, Protocol::H1),
        (&[], Offer::Both, Protocol::H1),
        (&[], Offer::Http1, Protocol::H1),
    ];
    for (alpn, offer, expected) in cases {
        let server = identity.serve(alpn).await;
        let dialer = Dialer::new(authority.believed_by(&server)).unwrap();
        for lenient in [false, true] {
            let mut there = destination("https://good.example/");
            (there.offer, there.lenient_tls) = (offer, lenient);
            let dialed = dialer.dial(&there).await.unwrap();
            assert_eq!(dialed.protocol, expected, "{alpn:?} {offer:?}");
            let facts = dialed.tls.unwrap();
            assert!(facts.verified && facts.problems.is_empty());
            assert_eq!(facts.version, "TLSv1.3");
            assert!(facts.cipher.starts_with("TLS_AES_"), "{}", facts.cipher);
        }
    }
}

#[tokio::test]
async fn the_name_may_end_with_a_dot_and_the_version_may_be_older() {
    let authority = Authority::new();
    let identity = authority.sign(&["good.example"], unchanged);
    let server = identity.serve_versions(&[], &[&rustls::version::TLS12]).await;
    let dialed = dial(authority.believed_by(&server), "https://GOOD.example./").await.unwrap();
    assert_eq!(dialed.tls.unwrap().version, "TLSv1.2");
}

#[tokio::test]
async fn a_certificate_may_be_for_an_address() {
    let authority = Authority::new();
    let server = authority.sign(&["127.0.0.1"], unchanged).serve(&[]).await;
    let url = format!("https://{}/", server.address);
    assert!(dial(authority.believed_by(&server), &url).await.unwrap().tls.unwrap().verified);
    let server = authority.sign(&["127.0.0.2"], unchanged).serve(&[]).await;
    let url = format!("https://{}/", server.address);
    assert_eq!(trouble(authority.believed_by(&server), &url).await.kind(), DialErrorKind::TlsWrongHost);
}

#[tokio::test]
async fn bad_certificates_are_errors_with_a_name() {
    let authority = Authority::new();
    for (what, server, kind, _) in bad_servers(&authority).await {
        let error = trouble(authority.believed_by(&server), "https://good.example/").await;
        assert_eq!(error.kind(), kind, "{what}: {error:?}");
    }
}

#[tokio::test]
async fn lenient_hosts_are_accepted_and_what_is_wrong_is_told_every_time() {
    let authority = Authority::new();
    for (what, server, kind, problems) in bad_servers(&authority).await {
        let mut options = authority.believed_by(&server);
        options.lenient_tls_hosts = vec!["*.example".parse().unwrap()];
        let dialer = Dialer::new(options).unwrap();
        // The second time too: no session may hide what the first handshake showed.
        for round in 1..=2 {
            let facts = dialer.dial(&destination("https://good.example/")).await.unwrap().tls.unwrap();
            assert!(!facts.verified, "{what}, round {round}");
            assert_eq!(facts.problems, problems, "{what}, round {round}");
        }
        // Other hosts get no leniency from this one.
        let error = dialer.dial(&destination("https://strict/")).await.unwrap_err();
        assert!(error.kind().as_str().starts_with("tls_"), "{what}: {error:?}");
        // The same server asked strictly is as bad as before.
        let strict = Dialer::new(authority.believed_by(&server)).unwrap();
        let mut lenient = destination("https://good.example/");
        lenient.lenient_tls = true;
        assert!(strict.dial(&lenient).await.is_ok(), "{what}");
        let error = strict.dial(&destination("https://good.example/")).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{what}");
    }
}

/// Leniency is about certificates: whoever cannot sign with the certificate's key is not talked to.
#[tokio::test]
async fn a_certificate_without_its_key_is_refused_even_by_the_lenient() {
    let authority = Authority::new();
    let sign = || authority.sign(&["good.example"], unchanged);
    for versions in [&[&rustls::version::TLS12], &[&rustls::version::TLS13]] {
        let server = sign().with_key_of(sign()).serve_versions(&[], versions).await;
        let mut there = destination("https://good.example/");
        there.lenient_tls = true;
        let error = Dialer::new(authority.believed_by(&server)).unwrap().dial(&there).await.unwrap_err();
        assert_eq!(error.kind(), DialErrorKind::TlsFailed, "{error:?}");
    }
}

#[tokio::test]
async fn silence_and_nonsense_instead_of_a_handshake_end_in_time() {
    let silent = Server::silent().await;
    let authority = Authority::new();
    let hurried = |server: &Server| DialOptions {
        tls_timeout: Duration::from_millis(100),
        ..authority.believed_by(server)
    };
    let error = trouble(hurried(&silent), "https://good.example/").await;
    assert_eq!(error.kind(), DialErrorKind::TlsTimeout);

    let plain = Server::start(|mut stream| async move {
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
    })
    .await;
    let closing = Server::start(|stream| async move { drop(stream) }).await;
    let flooding =
        Server::start(|mut stream| async move { while stream.write_all(&[0x16; 16384]).await.is_ok() {} })
            .await;
    for server in [plain, closing, flooding] {
        let mut there = destination("https://good.example/");
        there.lenient_tls = true;
        let error = Dialer::new(authority.believed_by(&server)).unwrap().dial(&there).await.unwrap_err();
        assert_eq!(error.kind(), DialErrorKind::TlsFailed);
    }
}

#[tokio::test]
async fn without_any_root_nobody_is_trusted() {
    let server = Identity::self_signed(&["good.example"], false).serve(&[]).await;
    let mut options = open_options();
    options.roots = Roots::Only(Vec::new());
    options.dns.overrides = vec![format!("*={}", server.address).parse().unwrap()];
    assert_eq!(trouble(options.clone(), "https://good.example/").await.kind(), DialErrorKind::TlsUntrusted);
    options.lenient_tls_hosts = vec!["*".parse().unwrap()];
    let facts = dial(options, "https://good.example/").await.unwrap().tls.unwrap();
    assert_eq!(facts.problems, [TlsProblem::Untrusted]);
}

#[tokio::test]
async fn authorities_of_ones_own_come_from_a_file_and_stand_beside_those_of_the_system() {
    let (one, other) = (Authority::new(), Authority::new());
    let certificates =
        certificates_of_pem(format!("# ours\n{}\n{}", one.pem(), other.pem()).as_bytes()).unwrap();
    assert_eq!(certificates, [one.certificate(), other.certificate()]);
    for authority in [&one, &other] {
        let server = authority.sign(&["good.example"], unchanged).serve(&[]).await;
        let roots = Roots::SystemAnd(certificates.clone());
        let options = DialOptions { roots, ..authority.believed_by(&server) };
        assert!(dial(options, "https://good.example/").await.unwrap().tls.unwrap().verified);
    }
    let trouble = |text: &str| certificates_of_pem(text.as_bytes()).unwrap_err().to_string();
    assert_eq!(trouble("nothing"), "the PEM file cannot be read: it has no certificate");
    let cut = &one.pem()[..100];
    assert!(trouble(cut).starts_with("the PEM file cannot be read: "), "{}", trouble(cut));
}

#[test]
fn a_root_that_cannot_be_read_is_an_error_of_the_operators() {
    let good = Authority::new().certificate();
    let options = DialOptions {
        roots: Roots::Only(vec![good, vec![0x30, 0x03, 0x02, 0x01, 0x00].into()]),
        ..DialOptions::default()
    };
    let Err(DialerError::Tls(error)) = Dialer::new(options) else { panic!("should not be accepted") };
    assert!(error.to_string().starts_with("root certificate number 2 cannot be read: "), "{error}");
}
