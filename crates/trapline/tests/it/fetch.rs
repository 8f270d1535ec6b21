//! `trapline fetch`, against servers on this machine.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::{Command, Output};

use serde_json::Value;

/// A server that answers requests for as long as the test runs, by their path.
pub(crate) fn serve(answer: impl Fn(&str, &str) -> String + Send + Clone + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("it has an address");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (Ok(stream), answer) = (stream, answer.clone()) else { continue };
            std::thread::spawn(move || {
                let mut input = BufReader::new(stream.try_clone().expect("it is cloned"));
                loop {
                    let mut head = String::new();
                    while !head.ends_with("\r\n\r\n") {
                        if input.read_line(&mut head).unwrap_or(0) == 0 {
                            return;
                        }
                    }
                    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
                    if (&stream).write_all(answer(&path, &head).as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

pub(crate) fn ok(headers: &str, body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n{headers}\r\n{body}", body.len())
}

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_trapline"))
        .arg("fetch")
        .args(arguments)
        .output()
        .expect("the binary was built")
}

fn lines(output: &Output) -> Vec<Value> {
    let text = String::from_utf8(output.stdout.clone()).expect("it is text");
    text.lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect()
}

const OPEN: [&str; 2] = ["--allow-network", "127.0.0.0/8"];

#[test]
fn each_url_is_one_line_with_all_that_came_of_it() {
    let address = serve(|path, _| match path {
        "/moved" => "HTTP/1.1 301 Moved\r\nLocation: /new\r\nContent-Length: 0\r\n\r\n".to_owned(),
        _ => ok("Content-Type: text/html; charset=utf-8\r\nX-Twice: 1\r\nx-twice: 2\r\n", "hello"),
    });
    let (page, moved) = (format!("http://{address}/a"), format!("http://{address}/moved"));
    let output = run(&[&[page.as_str(), &moved, "nonsense"], &OPEN[..]].concat());
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let lines = lines(&output);
    assert_eq!(lines.len(), 3);
    let (first, second) = (&lines[0], &lines[1]);
    assert_eq!(
        (&first["url"], &first["status"], &first["error"]),
        (&page.as_str().into(), &200.into(), &Value::Null)
    );
    assert_eq!((&first["protocol"], &first["charset"]), (&"HTTP/1.1".into(), &"UTF-8".into()));
    assert_eq!((&first["address"], &first["reused"]), (&address.to_string().into(), &false.into()));
    assert_eq!((&first["encoded_bytes"], &first["decoded_bytes"]), (&5.into(), &5.into()));
    assert_eq!(first["headers"][2], serde_json::json!(["X-Twice", "1"]));
    assert_eq!(first["headers"][3], serde_json::json!(["x-twice", "2"]));
    assert!(first["times_ms"]["total"].as_f64().unwrap() > 0.0);
    assert_eq!((&second["status"], &second["reused"]), (&301.into(), &true.into()));
    assert_eq!(second["redirect"]["url"], format!("http://{address}/new"));
    assert_eq!((&lines[2]["url"], &lines[2]["error"]), (&"nonsense".into(), &"url".into()));
}

#[test]
fn the_charset_is_the_one_that_a_page_is_read_in() {
    let address = serve(|path, _| match path {
        "/bom" => ok("Content-Type: text/html; charset=koi8-r\r\n", "\u{feff}<p>x"),
        "/http" => ok("Content-Type: text/html; charset=latin1\r\n", "<meta charset=utf-8>"),
        "/document" => ok("Content-Type: text/html\r\n", "<meta charset=shift_jis>"),
        "/guess" => ok("Content-Type: text/html\r\n", "<p>Žluťoučký kůň úpěl ďábelské ódy"),
        "/default" => ok("Content-Type: text/html\r\n", "<p>x"),
        "/picture" => ok("Content-Type: image/png\r\n", "\u{1}\u{2}"),
        "/named" => ok("Content-Type: application/x-own; charset=Own\r\n", "\u{1}\u{2}"),
        _ => ok("Content-Type: text/html; charset=koi8-r\r\n", ""),
    });
    let expected = [
        ("/bom", "UTF-8".into(), "bom".into()),
        ("/http", "windows-1252".into(), "http".into()),
        ("/document", "Shift_JIS".into(), "document".into()),
        ("/guess", "UTF-8".into(), "guess".into()),
        ("/default", "UTF-8".into(), "default".into()),
        ("/picture", Value::Null, Value::Null),
        ("/named", "own".into(), "http".into()),
        ("/empty", "koi8-r".into(), "http".into()),
    ];
    let urls = expected.each_ref().map(|(path, ..)| format!("http://{address}{path}"));
    let urls: Vec<_> = urls.iter().map(String::as_str).collect();
    let lines = lines(&run(&[&urls[..], &OPEN[..]].concat()));
    for ((path, charset, source), line) in expected.iter().zip(&lines) {
        assert_eq!((&line["charset"], &line["charset_source"]), (charset, source), "{path}");
    }
    assert_eq!(lines.len(), expected.len());
}

#[test]
fn private_addresses_are_refused_unless_opened() {
    let address = serve(|_, _| ok("", "secret"));
    let page = format!("http://{address}/");
    let output = run(&[&page]);
    assert_eq!(output.status.code(), Some(1));
    let line = &lines(&output)[0];
    assert_eq!((&line["status"], &line["error"]), (&Value::Null, &"address_refused".into()));
    let output = run(&["http://169.254.169.254/", "http://[::1]/", "http://0x7f.1/", "file:///etc/passwd"]);
    let kinds: Vec<_> = lines(&output).iter().map(|line| line["error"].clone()).collect();
    assert_eq!(kinds, ["address_refused", "address_refused", "address_refused", "scheme_refused"]);
    assert!(run(&[&page, OPEN[0], OPEN[1]]).status.success());
}

#[test]
fn names_headers_and_user_agent_are_as_asked_for() {
    let address = serve(|_, head| ok("", head));
    let resolve = format!("shop.example={address}");
    let output = run(&[
        "http://shop.example/x",
        "--resolve",
        &resolve,
        "--user-agent",
        "mybot/2",
        "--contact",
        "me@example.com",
        "--header",
        "X-A: b c",
        "--body",
        "-",
        OPEN[0],
        OPEN[1],
    ]);
    assert!(output.status.success(), "{output:?}");
    let sent = String::from_utf8(output.stdout).unwrap();
    for part in [
        "GET /x HTTP/1.1\r\n",
        "host: shop.example\r\n",
        "user-agent: mybot/2 (+me@example.com)\r\n",
        "x-a: b c\r\n",
    ] {
        assert!(sent.contains(part), "{part:?} is missing in {sent}");
    }
    let facts: Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(facts["status"], 200);
}

#[test]
fn a_crawler_without_contact_is_told_so() {
    let address = serve(|_, _| ok("", "x"));
    let output = run(&[&format!("http://{address}/"), OPEN[0], OPEN[1]]);
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("names nobody to turn to: set a contact"), "{message}");
}

#[test]
fn bodies_go_to_a_file_and_no_further_than_allowed() {
    let address = serve(|_, _| ok("", &"x".repeat(1000)));
    let page = format!("http://{address}/");
    let folder = std::env::temp_dir().join(format!("trapline-fetch-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("body");
    let name = file.to_str().unwrap();
    let output = run(&[&page, "--body", name, "--max-bytes", "100", OPEN[0], OPEN[1]]);
    assert_eq!(lines(&output)[0]["truncated"], "decoded_bytes");
    assert_eq!(std::fs::read(&file).unwrap(), "x".repeat(100).as_bytes());
    // Where nothing came, what was there stays.
    assert_eq!(run(&[&page, "--body", name]).status.code(), Some(1));
    assert_eq!(std::fs::read(&file).unwrap(), "x".repeat(100).as_bytes());
    let output = run(&[&page, &page, "--body", name, OPEN[0], OPEN[1]]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--body with a file is for one URL"));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn robots_txt_is_asked_if_wanted() {
    let address = serve(|path, _| match path {
        "/robots.txt" => ok("", "User-agent: *\nDisallow: /private"),
        _ => ok("", "x"),
    });
    let (open, private) = (format!("http://{address}/open"), format!("http://{address}/private"));
    let output = run(&[&open, &private, "--robots", OPEN[0], OPEN[1]]);
    assert_eq!(output.status.code(), Some(1));
    let lines = lines(&output);
    assert_eq!((&lines[0]["status"], &lines[1]["error"]), (&200.into(), &"robots".into()));
    assert_eq!(lines[1]["robots"]["line"]["number"], 2);
    assert!(run(&[&private, OPEN[0], OPEN[1]]).status.success());
    assert_eq!(lines[1]["message"], "robots.txt does not allow it");
    let refused = self::lines(&run(&[&open, "--robots"]));
    assert_eq!(refused[0]["message"], "robots.txt cannot be had, so that nothing is allowed");
}

#[test]
fn wrong_arguments_are_explained() {
    for (arguments, part) in [
        (&["http://a.example/", "--allow-network", "10.0.0.0/99"][..], "--allow-network"),
        (&["http://a.example/", "--resolve", "nonsense"], "--resolve"),
        (&["http://127.0.0.1:1/", "--header", "no colon"], "write `Name: value`"),
        (&["http://a.example/", "--proxy", "socks4://x"], "--proxy"),
        (&["http://a.example/", "--timeout", "5"], "is not a duration"),
        (&["http://a.example/", "--user-agent", "a\u{e9}"], "use visible ASCII"),
        (&[], "URL"),
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(message.contains(part), "{part} is missing in {message}");
    }
}

#[test]
fn help_teaches_with_examples() {
    let help = String::from_utf8(run(&["--help"]).stdout).unwrap();
    for part in ["one line of JSON", "Examples:", "--allow-network", "--resolve", "--robots", "exit code"] {
        assert!(help.contains(part), "{part} is missing in {help}");
    }
}
