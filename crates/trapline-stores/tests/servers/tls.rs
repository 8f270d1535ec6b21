//! TLS: wanted, required, and with certificates that are looked at.

use std::sync::OnceLock;

use trapline_frontier::StoreError;
use trapline_testing::{Authority, PostgresServer};

use super::{ask, pool};

/// A server whose certificate is for `localhost`, and files of its authority and of another.
struct Secure {
    server: PostgresServer,
    url: String,
    folder: std::path::PathBuf,
}

fn secure() -> &'static Secure {
    static SECURE: OnceLock<Secure> = OnceLock::new();
    SECURE.get_or_init(|| {
        let (ours, other) = (Authority::new(), Authority::new());
        let server = PostgresServer::builder()
            .careless()
            .tls(ours.sign(&["localhost"]))
            .start()
            .expect("a server starts");
        let folder = server.folder().to_owned();
        std::fs::write(folder.join("ours.pem"), ours.certificate()).expect("it can be written");
        std::fs::write(folder.join("other.pem"), other.certificate()).expect("it can be written");
        std::fs::write(folder.join("empty.pem"), "").expect("it can be written");
        let url = server.url("postgres").replace("127.0.0.1", "localhost");
        Secure { server, url, folder }
    })
}

/// Whether the connection is encrypted, as the server sees it.
fn connect(url: &str) -> Result<bool, StoreError> {
    let pool = trapline_stores::postgres::Pool::open(url)?;
    pollster::block_on(async {
        drop(pool.client().await?);
        Ok(ask(&pool, "SELECT ssl::text FROM pg_stat_ssl WHERE pid = pg_backend_pid()").await == "true")
    })
}

#[test]
fn connections_are_as_safe_as_was_asked_for() {
    let Secure { url, folder, .. } = secure();
    let check = |options: &str, encrypted: bool| {
        assert_eq!(connect(&format!("{url}?{options}")).unwrap(), encrypted, "{options}");
    };
    let ours = folder.join("ours.pem").display().to_string();
    check("sslmode=disable", false);
    check("", true);
    check("sslmode=require", true);
    check(&format!("sslmode=verify-ca&sslrootcert={ours}"), true);
    check(&format!("sslmode=verify-full&sslrootcert={ours}"), true);
    let by_number = secure().server.url("postgres");
    let url = format!("{by_number}?sslmode=verify-ca&sslrootcert={ours}");
    assert!(connect(&url).unwrap(), "the name is not looked at");
}

#[test]
fn who_cannot_prove_it_is_not_spoken_to() {
    let Secure { server, url, folder } = secure();
    let check = |url: &str, options: &str, file: &str, told: &str| {
        let file = folder.join(file);
        let error =
            connect(&format!("{url}?{options}&sslrootcert={}", file.display())).unwrap_err().to_string();
        assert!(error.contains(told), "{error}");
    };
    check(
        url,
        "sslmode=verify-full",
        "other.pem",
        "error performing TLS handshake: invalid peer certificate",
    );
    check(url, "sslmode=verify-ca", "other.pem", "error performing TLS handshake: invalid peer certificate");
    check(url, "sslmode=require", "other.pem", "error performing TLS handshake: invalid peer certificate");
    let by_number = server.url("postgres");
    check(
        &by_number,
        "sslmode=verify-full",
        "ours.pem",
        "invalid peer certificate: certificate not valid for name",
    );
    check(url, "sslmode=verify-full", "empty.pem", "there is no certificate in `");
    check(url, "sslmode=verify-full", "absent.pem", "absent.pem` (sslrootcert) cannot be read: ");
    // What the machine trusts does not include ours, and may be nothing at all.
    connect(&format!("{url}?sslmode=verify-full")).unwrap_err();
    drop(pool(url));
}
