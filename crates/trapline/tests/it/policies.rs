//! What is different for some hosts, and what a configuration promises of all, seen from the servers.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};

use crate::crawl::error;
use crate::fetch::{ok, serve};
use crate::folder::Folder;

/// Some hosts, all on one server, and what they were asked for as `host/path`, robots.txt left out.
pub(crate) struct Hosts {
    resolve: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Hosts {
    /// Hosts that answer a name and a path so.
    pub(crate) fn serving(answer: impl Fn(&str, &str) -> String + Send + Clone + 'static) -> Self {
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let log = Arc::clone(&asked);
        let address = serve(move |path, head| {
            let host = head
                .lines()
                .find_map(|line| line.to_ascii_lowercase().strip_prefix("host: ").map(str::to_owned));
            let host = host.unwrap_or_default();
            if path != "/robots.txt" {
                log.lock().expect("nobody panics with it").push(format!("{host}{path}"));
            }
            answer(&host, path)
        });
        Self { resolve: format!("*={address}"), asked }
    }

    /// Crawls them, as a configuration says.
    pub(crate) fn crawl(&self, out: &Path, config: &str, arguments: &[&str]) -> Output {
        fs::create_dir_all(out).expect("a folder can be made");
        let file = out.join("crawl.toml");
        fs::write(&file, config).expect("a file can be written");
        Command::new(env!("CARGO_BIN_EXE_trapline"))
            .args([
                "crawl",
                "-q",
                "--allow-network",
                "127.0.0.0/8",
                "--contact",
                "a@b.test",
                "--no-sitemaps",
                "--config",
            ])
            .arg(file)
            .args(["--resolve", &self.resolve, "--out"])
            .arg(out)
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .expect("the binary was built and runs")
    }

    /// What was asked for, sorted.
    pub(crate) fn asked(&self) -> Vec<String> {
        let mut asked = self.asked.lock().expect("nobody panics with it").clone();
        asked.sort();
        asked
    }
}

/// A page for each path `/1`, `/1/2`, `/1/2/3`, which links to those below it.
fn nested(_: &str, path: &str) -> String {
    if path == "/robots.txt" {
        return ok("Content-Type: text/plain\r\n", "User-agent: *\nDisallow: /a/x\n");
    }
    let base = path.trim_end_matches('/');
    let links = ["a", "x"].map(|name| format!("<a href={base}/{name}>{name}</a>")).concat();
    let links = if base.matches('/').count() < 2 { links } else { String::new() };
    ok("Content-Type: text/html\r\n", &links)
}

#[test]
fn hosts_have_policies_of_their_own_and_the_more_exact_one_counts() {
    let folder = Folder::new("policies-hosts");
    let hosts = Hosts::serving(nested);
    let config = "
        [pace]
        delay = '0'
        [scope]
        exclude = ['/x$']
        max_depth = 0
        [[host]]
        match = 'deep.one.test'
        max_depth = 1
        [[host]]
        match = 'domain:one.test'
        max_depth = 2
        [[host]]
        match = '*.pattern-?.test'
        max_depth = 2
        exclude = []
        include = ['/x']
        [[host]]
        match = '*.two.test'
        max_depth = 2
        budget = 2
        balance = 1
        strategy = ['pages=5']
        ";
    let seeds = ["deep.one.test", "one.test", "a.pattern-1.test", "a.two.test", "two.test"];
    let output = hosts.crawl(&folder.path, config, &seeds);
    assert_eq!(output.status.code(), Some(3), "a budget holds some back: {}", error(&output));
    assert_eq!(
        hosts.asked(),
        [
            "a.pattern-1.test/",
            "a.pattern-1.test/x",
            "a.pattern-1.test/x/a",
            "a.pattern-1.test/x/x",
            "a.two.test/",
            "a.two.test/a",
            "deep.one.test/",
            "deep.one.test/a",
            "one.test/",
            "one.test/a",
            "one.test/a/a",
            "two.test/",
        ]
    );
}

#[test]
fn a_host_is_visited_again_after_its_interval() {
    let folder = Folder::new("policies-revisit");
    let hosts = Hosts::serving(|_, _| ok("Content-Type: text/html\r\n", ""));
    let config = "
        [pace]
        delay = '0'
        [crawl]
        max_pages = 4
        [[host]]
        match = 'again.test'
        revisit = '50ms'
        ";
    let output = hosts.crawl(&folder.path, config, &["again.test", "once.test"]);
    assert_eq!(output.status.code(), Some(3), "{}", error(&output));
    assert_eq!(hosts.asked(), ["again.test/", "again.test/", "again.test/", "once.test/"]);
}

#[test]
fn robots_are_obeyed_as_far_as_a_policy_says() {
    let pages = |_: &str, path: &str| match path {
        "/robots.txt" => ok(
            "Content-Type: text/plain\r\n",
            "User-agent: *\nDisallow: /no\n\nUser-agent: friend\nDisallow: /no/friend\n",
        ),
        "/" => ok(
            "Content-Type: text/html\r\n",
            "<a href=/no/a>1</a><a href=/no/friend>2</a><a rel=nofollow href=/link>3</a>",
        ),
        _ => ok("Content-Type: text/html\r\n", ""),
    };
    let run = |name: &str, config: &str, arguments: &[&str]| {
        let (folder, hosts) = (Folder::new(name), Hosts::serving(pages));
        let config = format!("[pace]\ndelay = '0'\n{config}");
        let output = hosts.crawl(&folder.path, &config, &[&["a.test"], arguments].concat());
        assert_eq!(output.status.code(), Some(0), "{}", error(&output));
        let asked = hosts.asked().into_iter().map(|url| url["a.test".len()..].to_owned());
        (asked.filter(|path| path != "/").collect::<Vec<_>>().join(" "), error(&output))
    };
    let quiet = String::new();
    assert_eq!(run("policies-obey", "", &[]), (String::new(), quiet.clone()));
    let robots_txt = "[robots]\npolicy = 'robots_txt'\n";
    assert_eq!(run("policies-robots-txt", robots_txt, &[]), ("/link".to_owned(), quiet.clone()));
    let favored = "[robots]\npolicy = 'most_favored'\nagents = ['trapline', 'friend']\n";
    assert_eq!(run("policies-favored", favored, &[]), ("/no/a".to_owned(), quiet));

    let all = "/link /no/a /no/friend".to_owned();
    let loud = "trapline crawl: robots.txt is IGNORED: do this on servers of your own only\n".to_owned();
    assert_eq!(run("policies-ignore", "", &["--ignore-robots"]), (all.clone(), loud));
    let of_host = "[[host]]\nmatch = 'domain:a.test'\nrobots = 'ignore'\n";
    let loud =
        "trapline crawl: robots.txt of domain:a.test is IGNORED: do this on servers of your own only\n"
            .to_owned();
    assert_eq!(run("policies-ignore-host", of_host, &[]), (all, loud));
    let but_host = "[robots]\npolicy = 'ignore'\n[[host]]\nmatch = 'a.test'\nrobots = 'obey'\n";
    assert_eq!(run("policies-but-host", but_host, &[]).0, "");
}

#[test]
fn seeds_come_from_a_list_on_the_web() {
    let lists = |host: &str, path: &str| match (host, path) {
        ("lists.test", "/seeds.txt") => {
            ok("Content-Type: text/plain\r\n", "a.test # the first\nhttp://b.test/x\nmailto:me\n")
        }
        ("lists.test", "/moved") => {
            "HTTP/1.1 301 Moved\r\nLocation: /seeds.txt\r\nContent-Length: 0\r\n\r\n".to_owned()
        }
        ("lists.test", _) => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(),
        _ => ok("Content-Type: text/html\r\n", ""),
    };
    let (folder, hosts) = (Folder::new("policies-seeds"), Hosts::serving(lists));
    let output = hosts.crawl(&folder.path, "", &["--seeds", "http://lists.test/moved"]);
    assert_eq!(output.status.code(), Some(0), "{}", error(&output));
    assert_eq!(hosts.asked(), ["a.test/", "b.test/x", "lists.test/moved", "lists.test/seeds.txt"]);
    let told = error(&output);
    assert!(told.contains("http://lists.test/moved:3: "), "{told}");

    // What cannot be had ends it before it begins.
    for (list, why) in [
        ("http://lists.test/none", "the server answers 404"),
        ("http://10.0.0.1/list", "--allow-network NETWORK"),
        ("s3://bucket", "name a bucket and a key"),
        ("ftp://lists.test/list", "`ftp:` is not read"),
    ] {
        let folder = Folder::new("policies-no-seeds");
        let output = hosts.crawl(&folder.path, "", &["--seeds", list]);
        assert_eq!(output.status.code(), Some(2), "{}", error(&output));
        let told = error(&output);
        assert!(told.contains(&format!("cannot read seeds from {list}: ")) && told.contains(why), "{told}");
    }
}

#[test]
fn pages_are_told_by_the_name_that_a_solver_finds_and_requests_carry_metadata() {
    let pages = |_: &str, path: &str| match path {
        "/" => "HTTP/1.1 301 Moved\r\nLocation: /home\r\nContent-Length: 0\r\n\r\n".to_owned(),
        "/home" => ok("Content-Type: text/html\r\n", "<link rel=canonical href=/start>"),
        _ => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(),
    };
    for (solver, names) in [
        ("first_url", ["http://www.a.test/", "http://www.a.test/"]),
        ("last_url", ["http://www.a.test/home", "http://www.a.test/home"]),
        ("declared", ["http://www.a.test/home", "http://www.a.test/start"]),
    ] {
        let (folder, hosts) = (Folder::new("policies-names"), Hosts::serving(pages));
        let config = format!(
            "[pace]\ndelay = '0'\n[scope]\nmax_depth = 0\n[output]\ncanonical = '{solver}'\n\
             [chains]\ncandidate = ['scope', 'limits', 'domain', 'fingerprint', 'queue']\nfingerprint = 'md5'\n"
        );
        let output = hosts.crawl(&folder.path, &config, &["www.a.test"]);
        assert_eq!(output.status.code(), Some(0), "{}", error(&output));
        let lines = fs::read_to_string(folder.path.join("pages.jsonl")).unwrap();
        let told: Vec<serde_json::Value> =
            lines.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect();
        let told: Vec<_> = told.iter().map(|line| line["canonical"].as_str().unwrap_or_default()).collect();
        assert_eq!(told, names, "{solver}");

        let store = format!("disk:{}", folder.path.join("store").display());
        let url = Command::new(env!("CARGO_BIN_EXE_trapline"))
            .args(["frontier", "--store", &store, "--json", "url", "http://www.a.test/home"])
            .output()
            .unwrap();
        let known: serde_json::Value = serde_json::from_slice(&url.stdout).expect("an answer is JSON");
        let metadata = &known["metadata"];
        assert_eq!(metadata["domain.name"][0], "a.test", "{known}");
        assert_eq!(metadata["fingerprint"][0], "8cc486a1c9e197629a9e6e861011d0b2", "{known}");
    }
}
