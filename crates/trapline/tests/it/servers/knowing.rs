//! Reports and explanations of a crawl that two crawlers share in a database.

use trapline_testing::PostgresServer;

use crate::crawl::{command, error, lines, site};
use crate::folder::Folder;
use crate::report::rows;

use super::{store, trapline};

#[test]
fn a_shared_store_tells_of_all_its_crawlers() {
    let server = PostgresServer::shared();
    let url = server.url(&server.create_database().expect("there is room"));
    assert_eq!(store(&["migrate", &url]).2, Some(0));
    let (first, second) = (Folder::new("knowing-first"), Folder::new("knowing-second"));
    let (address, _) = site(12, "");
    let more = ["--delay", "0", "--store", &url];
    let output = command(address, &first.path, &[&more[..], &["--max-pages", "5"]].concat())
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(3), "{}", error(&output));
    let output = command(address, &second.path, &more).output().expect("it runs");
    assert_eq!(output.status.code(), Some(0), "{}", error(&output));
    let visits = |folder: &Folder| lines(&folder.path, "pages.jsonl").len() as u64;
    let (one, other) = (visits(&first), visits(&second));
    assert!(one >= 5 && other > 0, "{one} {other}");

    let whole = rows(&["crawl", "--store", &url]).remove(0);
    assert_eq!(whole["visits"].as_u64(), Some(one + other), "{whole}");
    let sum: u64 = rows(&["status", "--store", &url]).iter().filter_map(|row| row["visits"].as_u64()).sum();
    assert_eq!(sum, one + other);
    let folder = first.path.to_str().expect("it is text");
    let both = rows(&["crawl", folder, "--store", &url]).remove(0);
    assert_eq!(
        both["visits"].as_u64(),
        Some(one + other),
        "what is in the folder and in the store counts once: {both}"
    );
    let hosts = rows(&["hosts", "--store", &url]);
    assert_eq!(hosts[0]["done"].as_u64(), Some(one + other));
    assert_eq!(rows(&["queues", "--store", &url])[0]["why"], "nothing is pending");
    assert_eq!(rows(&["seeds", "--store", &url])[0]["status"], 200);
    let (told, error, code) =
        trapline(&["explain", "--json", "--store", &url, &format!("http://{address}/p1")], "");
    assert_eq!(code, Some(0), "{error}");
    let told: serde_json::Value = serde_json::from_str(&told).expect("it is JSON");
    assert_eq!((told["state"]["name"].as_str(), told["page"]["status"].as_u64()), (Some("done"), Some(200)));
    let (_, error, _) = trapline(&["report", "queues", "--store", &url, "--crawl", "other"], "");
    assert!(error.contains("there is no crawl `other`") && !error.contains("for-tests-only"), "{error}");
}
