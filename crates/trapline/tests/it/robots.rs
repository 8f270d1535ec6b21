//! `trapline robots`, with friendly and with hostile files.

use std::io::Write;
use std::process::{Command, Output, Stdio};

fn run(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_trapline"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary was built");
    let mut stdin = child.stdin.take().expect("it is piped");
    let input = input.to_vec();
    // A command that has read enough reads no more.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().expect("it can be waited for");
    writer.join().expect("the writer does not panic");
    output
}

const FILE: &[u8] =
    b"User-agent: *\nDisallow: /private/\nAllow: /private/open$\n\nUser-agent: foo\nCrawl-delay: 2.5\n\
                      Disallow: /%7ejoe\nsitemap: /s.xml\nnonsense\n";

#[track_caller]
fn check(agent: &str, url: &str, code: i32, answer: &str) {
    let output = run(&["robots", "check", "--file", "-", "--agent", agent, "--url", url], FILE);
    assert_eq!(String::from_utf8_lossy(&output.stdout), answer);
    assert_eq!(output.status.code(), Some(code));
    assert_eq!(output.stderr, b"");
}

#[test]
fn check_says_yes_or_no_and_which_line_decided() {
    check("trapline", "https://a.example/private/x?y", 1, "disallowed by line 2: Disallow: /private/\n");
    check("trapline", "https://a.example/private/open", 0, "allowed by line 3: Allow: /private/open$\n");
    check("trapline", "/private/open?x", 1, "disallowed by line 2: Disallow: /private/\n");
    check("trapline", "/", 0, "allowed: no rule matches\n");
    check("Foo/1.2", "/~joe/x", 1, "disallowed by line 7: Disallow: /~joe\n");
    check("foo", "/private/", 0, "allowed: no rule matches\n");
    check("foo", "/robots.txt", 0, "allowed: it is robots.txt itself\n");
    let output = run(&["robots", "check", "--file=-", "--agent=a", "--url=/"], b"User-agent: b\nDisallow: /");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "allowed: no group is for this agent\n");
}

#[test]
fn check_answers_programs_in_json() {
    let output = run(&["robots", "check", "--json", "--file=-", "--agent=foo", "--url=/~joe"], FILE);
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "{\"allowed\":false,\"line\":7,\"text\":\"Disallow: /~joe\",\"because\":\"rule\",\"crawl_delay_seconds\":2.5}\n"
    );
    assert_eq!(output.status.code(), Some(1));
    let output = run(&["robots", "check", "--json", "--file=-", "--agent=x", "--url=/a"], FILE);
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "{\"allowed\":true,\"line\":null,\"text\":null,\"because\":\"no_rule\",\"crawl_delay_seconds\":null}\n"
    );
}

#[test]
fn show_lists_every_item_with_its_line() {
    let output = run(&["robots", "show", "--file", "-"], FILE);
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        r#"{"item":"group","group":1,"line":1,"agents":["*"]}
{"item":"rule","group":1,"line":2,"rule":"disallow","path":"/private/"}
{"item":"rule","group":1,"line":3,"rule":"allow","path":"/private/open$"}
{"item":"group","group":2,"line":5,"agents":["foo"]}
{"item":"rule","group":2,"line":7,"rule":"disallow","path":"/~joe"}
{"item":"delay","group":2,"line":6,"seconds":2.5,"agents":["foo"]}
{"item":"sitemap","line":8,"url":"/s.xml"}
{"item":"fault","line":9,"fault":"not_a_line","text":"no `name: value`; passed over"}
"#
    );
    assert!(output.status.success());
    let output = run(&["robots", "show", "--file", "-"], &b"x\n".repeat(1_001));
    let answer = String::from_utf8(output.stdout).unwrap();
    assert!(
        answer.ends_with("{\"item\":\"fault\",\"line\":null,\"fault\":\"left_off\",\"text\":\"1 more\"}\n")
    );
}

#[test]
fn trouble_is_told_with_exit_code_two() {
    for (arguments, message) in [
        (
            &["robots", "check", "--file", "/no/such/file", "--agent", "a", "--url", "/"][..],
            "trapline robots: cannot read /no/such/file: No such file or directory (os error 2)\n  --file takes the path of a \
             robots.txt, or - for standard input\n",
        ),
        (
            &["robots", "check", "--file", "-", "--agent", "a", "--url", "a b"],
            "trapline robots: `a b` is no URL: relative URL without a base\n  Write https://example.com/path, or only /path\n",
        ),
        (
            &["robots", "check", "--file", "-", "--agent", "a", "--url", "mailto:a@b.example"],
            "trapline robots: robots.txt is for http and https, and `mailto:a@b.example` is neither\n",
        ),
    ] {
        let output = run(arguments, b"");
        assert_eq!(String::from_utf8_lossy(&output.stderr), message);
        assert_eq!((output.status.code(), &output.stdout[..]), (Some(2), &b""[..]));
    }
    assert_eq!(run(&["robots", "check", "--file", "-"], b"").status.code(), Some(2));
}

#[test]
fn an_endless_file_is_read_as_far_as_it_counts() {
    let mut file = b"User-agent: *\nDisallow: /a\n".to_vec();
    file.resize(3_000_000, b'x');
    let output = run(&["robots", "check", "--file=-", "--agent=a", "--url=/a"], &file);
    assert_eq!(output.status.code(), Some(1));
    let output = run(&["robots", "show", "--file=-"], &file);
    assert!(String::from_utf8_lossy(&output.stdout).contains("\"fault\":\"cut\""));
}

#[test]
fn help_teaches_with_examples() {
    for (arguments, parts) in [
        (&["robots", "--help"][..], &["check", "show", "Examples:", "disallowed by line 2", "RFC 9309"][..]),
        (&["robots", "check", "--help"], &["--file", "--agent", "--url", "exit code", "standard input"]),
        (&["robots", "show", "--help"], &["--file", "faults"]),
    ] {
        let output = run(arguments, b"");
        let help = String::from_utf8(output.stdout).unwrap();
        for part in parts {
            assert!(help.contains(part), "{part} is missing in {help}");
        }
    }
}
