//! `trapline config` and `trapline doctor`, seen from outside.

use std::net::UdpSocket;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::folder::Folder;

/// What was printed, what was complained of, and the exit code.
fn trapline(arguments: &[&str], variables: &[(&str, &str)]) -> (String, String, Option<i32>) {
    let ran = Command::new(env!("CARGO_BIN_EXE_trapline"))
        .args(arguments)
        .envs(variables.iter().copied())
        .output()
        .expect("the binary runs");
    let text = |bytes| String::from_utf8(bytes).expect("it is text");
    (text(ran.stdout), text(ran.stderr), ran.status.code())
}

/// A folder with a configuration in it.
fn configured(name: &str, text: &str) -> (Folder, String) {
    let folder = Folder::new(name);
    std::fs::create_dir(&folder.path).expect("it is not there yet");
    let file = folder.path.join("crawl.toml");
    std::fs::write(&file, text).expect("the folder can be written");
    let file = file.display().to_string();
    (folder, file)
}

#[test]
fn the_printed_defaults_are_a_configuration_without_mistakes() {
    let (printed, _, code) = trapline(&["config", "--defaults"], &[]);
    assert_eq!(code, Some(0));
    assert!(printed.contains(
        "\n# How long a host is left alone after a fetch; 0 for no pause. Defaults to 1s.\ndelay = \"1s\"\n"
    ));
    let (_folder, file) = configured("config-defaults", &printed);
    let (out, error, code) = trapline(&["config", "--check", &file], &[]);
    assert_eq!((out, error, code), (format!("{file}: no mistakes\n"), String::new(), Some(0)));
}

#[test]
fn what_is_less_polite_than_one_expects_is_warned_of() {
    let warned = |name: &str, text: &str| {
        let (_folder, file) = configured(name, text);
        let (out, error, code) = trapline(&["config", "--check", &file], &[]);
        assert_eq!((out, code), (format!("{file}: no mistakes\n"), Some(0)), "{error}");
        error.replace(&format!("{file}: "), "")
    };
    let chains = "[chains]\ncandidate = ['scheme']\nfetch = ['fetch']\ndisposition = ['outcome']\n[[host]]\nmatch = '*'\ndelay = '5s'\n";
    assert_eq!(
        warned("config-warnings", chains),
        "robots.txt is IGNORED, because chains.fetch has no `robots`: do this on servers of your own only\n\
         the scope is IGNORED, because neither chains.candidate nor chains.fetch has `scope`: whatever is linked to is fetched\n\
         Crawl-delay, Retry-After and 429 are IGNORED, because chains.disposition has no `pace`: hosts are left alone for their \
         delay, and no longer\n\
         delays, budgets and the like of [[host]], and pace.by_domain, are IGNORED, because chains.candidate has no `queue`\n"
    );
    assert_eq!(
        warned("config-warnings-less", "[robots]\npolicy = 'ignore'\n[chains]\ncandidate = ['queue']\n"),
        "robots.txt is IGNORED: do this on servers of your own only\n\
         chains.candidate has no `scope`: all links wait to be fetched, and those out of scope are dropped only when their turn \
         has come\n"
    );
    let fine = "[scope]\nkind = 'any'\n[chains]\ncandidate = ['queue']\nfetch = ['robots', 'fetch']\n";
    assert_eq!(warned("config-warnings-none", fine), "");
}

#[test]
fn mistakes_are_complained_of_line_by_line() {
    let (_folder, file) =
        configured("config-mistakes", "[pace]\ndely = \"1s\"\n\nburst = 0\u{1b}\n[[host]]\n");
    let (out, error, code) =
        trapline(&["config", "--check", &file], &[("TRAPLINE__CRAWL__CONCURRENCY", "0")]);
    assert_eq!((&*out, code), ("", Some(1)));
    assert!(!error.contains('\u{1b}'), "{error}");
    for told in [
        format!("{file}:2: there is no option `dely` in [pace]; did you mean `delay`?\n"),
        format!("{file}:4: this is not TOML: "),
        format!("{file}:5: host[1]: `match` is missing\n"),
        "TRAPLINE__CRAWL__CONCURRENCY: crawl.concurrency: fetch at least one page at a time\n".to_owned(),
    ] {
        assert!(error.contains(&told), "{told}{error}");
    }
    let (_, error, code) = trapline(&["config", "--check", "/not-there.toml"], &[]);
    assert_eq!(code, Some(2));
    assert!(error.starts_with("trapline config: cannot read the configuration /not-there.toml: "), "{error}");
}

#[test]
fn what_is_in_force_is_shown_with_where_it_comes_from() {
    let (_folder, file) = configured("config-show", "[pace]\ndelay = \"1m\"\nburst = 2\n");
    let (out, _, code) = trapline(
        &["config", "--show", "--config", &file, "--set", "pace.per_host=4"],
        &[("TRAPLINE__PACE__BURST", "3")],
    );
    assert_eq!(code, Some(0));
    let chosen: Vec<_> =
        out.lines().filter(|line| line.contains("  # ") && !line.ends_with("# default")).collect();
    assert_eq!(
        chosen,
        [
            &*format!("delay = \"1m\"  # {file}:2"),
            "per_host = 4  # --set pace.per_host",
            "burst = 3  # TRAPLINE__PACE__BURST",
        ]
    );
    assert!(out.contains("\n[retry]\nmax = 3  # default\n"), "{out}");
}

/// What the doctor found, and the exit code.
fn doctor(arguments: &[&str]) -> (Vec<Value>, Option<i32>) {
    let (out, error, code) = trapline(&[&["doctor", "--json"], arguments].concat(), &[]);
    let found = out.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{out}{error}")));
    (found.collect(), code)
}

fn of<'f>(found: &'f [Value], what: &str) -> Vec<&'f Value> {
    found.iter().filter(|finding| finding["what"] == what).collect()
}

#[test]
fn the_doctor_looks_at_everything_and_leaves_nothing() {
    let folder = Folder::new("doctor");
    std::fs::create_dir(&folder.path).unwrap();
    let out = folder.path.join("crawl").display().to_string();
    let (found, code) =
        doctor(&["--out", &out, "--set", "crawl.concurrency=1", "--set", "connect.idle_max=1"]);
    assert_eq!(code, Some(0), "{found:?}");
    for what in ["files", "memory", "disk", "dns", "clock"] {
        assert_eq!(of(&found, what).len(), 1, "{what}: {found:?}");
    }
    assert_eq!(of(&found, "files")[0]["state"], "ok");
    assert_eq!(std::fs::read_dir(&folder.path).unwrap().count(), 0);
    let (told, _, _) = trapline(&["doctor", "--out", &out], &[]);
    assert!(told.lines().any(|line| line.contains("  clock   it says 20")), "{told}");
}

#[test]
fn the_doctor_tells_what_is_wrong_and_what_to_do() {
    let file = Path::new(env!("CARGO_MANIFEST_PATH")).display().to_string();
    let (found, code) =
        doctor(&["--out", &file, "--set", "crawl.concurrency=4000000000", "--set", "log.file=none"]);
    assert_eq!(code, Some(1));
    let disk = of(&found, "disk")[0];
    assert!(disk["detail"].as_str().unwrap().contains("it is no folder"), "{disk}");
    assert!(disk["advice"].as_str().unwrap().starts_with("choose another folder with --out"), "{disk}");
    let files = of(&found, "files")[0];
    assert_eq!(files["state"], "fail", "{files}");
    assert!(files["advice"].as_str().unwrap().contains("or lower crawl.concurrency"), "{files}");

    let (found, code) = doctor(&["--set", "pace.dely=1s"]);
    assert_eq!(code, Some(1));
    assert_eq!(
        of(&found, "config")[0]["detail"],
        "--set pace.dely: there is no option `dely` in [pace]; did you mean `delay`?"
    );
}

#[test]
fn the_doctor_looks_names_up() {
    let (found, code) =
        doctor(&["--dns-name", "shop.example", "--set", "fetch.resolve=shop.example=127.0.0.1"]);
    assert_eq!(code, Some(0));
    let looked = of(&found, "dns")[1];
    assert_eq!(looked["state"], "warn", "{looked}");
    assert!(looked["advice"].as_str().unwrap().contains("fetch.allow_networks"), "{looked}");

    // A name server that never answers.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let server = format!("dns.name_servers={}", silent.local_addr().unwrap());
    let (found, code) =
        doctor(&["--dns-name", "shop.example", "--set", &server, "--set", "dns.timeout=200ms"]);
    assert_eq!(code, Some(1));
    let looked = of(&found, "dns")[1];
    assert!(looked["detail"].as_str().unwrap().starts_with("cannot look up shop.example: "), "{looked}");
    assert!(looked["advice"].as_str().unwrap().starts_with("is this machine connected?"), "{looked}");
}
