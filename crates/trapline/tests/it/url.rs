//! `trapline url`, with friendly and with hostile input.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Output, Stdio};

fn start(arguments: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_trapline"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary was built")
}

fn run(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = start(arguments);
    let mut stdin = child.stdin.take().expect("it is piped");
    let input = input.to_vec();
    let writer = std::thread::spawn(move || {
        // A command that refuses its arguments reads nothing.
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().expect("it can be waited for");
    writer.join().expect("the writer does not panic");
    output
}

#[track_caller]
fn check(arguments: &[&str], input: impl AsRef<[u8]>, expected: &str) {
    let output = run(arguments, input.as_ref());
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
    assert!(output.status.success(), "{:?}", output.status);
}

#[test]
fn parse_gives_the_href_one_line_each() {
    check(
        &["url", "parse"],
        "HTTP://Example.com:80/a/../b?c#d\n\nno url\r\nhttp://é.example/\nhttp://a.example/ x",
        "{\"href\":\"http://example.com/b?c#d\"}\n{\"failure\":true}\n{\"failure\":true}\n\
         {\"href\":\"http://xn--9ca.example/\"}\n{\"href\":\"http://a.example/%20x\"}\n",
    );
    check(&["url", "parse"], "", "");
}

#[test]
fn parse_reads_json_with_a_base() {
    check(
        &["url", "parse"],
        r#"{"input":"../b","base":"https://example.com/a/c/"}
{"input":"","base":"https://example.com/a?b#c"}
{"input":"http://a.example/\"\\","base":null}
{"input":"x","base":"about:blank"}
{"input":"http://a.example/?\ud800\ud83d\ude00","base":null}
{"input":""}
{"input":"///b.example/^","base":"https://example.com/a"}
{"input":"c|/x","base":"file://host//a"}
{"input":"x","base":"file:////a/b"}
"#,
        "{\"href\":\"https://example.com/a/b\"}\n{\"href\":\"https://example.com/a?b\"}\n\
         {\"href\":\"http://a.example/%22/\"}\n{\"failure\":true}\n\
         {\"href\":\"http://a.example/?%EF%BF%BD%F0%9F%98%80\"}\n{\"failure\":true}\n\
         {\"href\":\"https://b.example/%5E\"}\n{\"href\":\"file://host/c:/x\"}\n\
         {\"href\":\"file:////a/x\"}\n",
    );
}

#[test]
fn normalize_gives_the_canonical_form_of_a_profile() {
    let url = "http://www.Example.com/a/;jsessionid=1?utm_source=x&b=%7e&a#f\n";
    check(
        &["url", "normalize"],
        url,
        "{\"href\":\"http://www.example.com/a/;jsessionid=1?a&b=~&utm_source=x\"}\n",
    );
    check(
        &["url", "normalize", "--profile", "tracking"],
        url,
        "{\"href\":\"http://www.example.com/a/;jsessionid=1?a&b=~\"}\n",
    );
    check(
        &["url", "normalize"],
        "{\"input\":\"x y#f\",\"base\":\"file:////a/b\"}\n",
        "{\"href\":\"file:////a/x%20y\"}\n",
    );
    check(&["url", "normalize", "--profile=aggressive"], url, "{\"href\":\"http://example.com/a?a&b=~\"}\n");
    let output = run(&["url", "normalize", "--profile", "heretix"], b"");
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.contains("choose one of exact, default, tracking, aggressive"), "{message}");
}

#[test]
fn site_takes_urls_and_bare_hosts() {
    check(
        &["url", "site"],
        "https://www.example.co.uk:8080/x\nWWW.Example.COM\nexample.com:8080\nlocalhost\nhttp://127.0.0.1/\nco.uk\n\
         mailto:a@b.example\nhttp://[\n\n.example.com\nwww.食狮.公司.cn\nhttp://www.食狮.公司.cn/\n[::1]:80\na b.com\n\
         {\"input\":\"/x\",\"base\":\"http://a.b.example\"}\n",
        "{\"site\":\"example.co.uk\"}\n{\"site\":\"example.com\"}\n{\"site\":\"example.com\"}\n{\"site\":null}\n\
         {\"site\":null}\n{\"site\":null}\n{\"site\":null}\n{\"failure\":true}\n{\"failure\":true}\n{\"site\":null}\n\
         {\"site\":\"食狮.公司.cn\"}\n{\"site\":\"xn--85x722f.xn--55qx5d.cn\"}\n{\"site\":null}\n{\"failure\":true}\n\
         {\"site\":\"b.example\"}\n",
    );
}

#[test]
fn bad_lines_cost_one_answer_each_and_are_named() {
    let output =
        run(&["url", "parse"], b"http://a.example/\n\xff\xfe\n{\n{}\n{\"input\":5}\n\0\nhttp://b.example/\n");
    let answers = String::from_utf8(output.stdout).unwrap();
    let failure = "{\"failure\":true}\n";
    assert_eq!(
        answers,
        format!(
            "{{\"href\":\"http://a.example/\"}}\n{}{{\"href\":\"http://b.example/\"}}\n",
            failure.repeat(5)
        )
    );
    let messages = String::from_utf8(output.stderr).unwrap();
    let starts = messages.lines().map(|line| line.split_at(21).0).collect::<Vec<_>>();
    assert_eq!(
        starts,
        ["trapline url: line 2:", "trapline url: line 3:", "trapline url: line 4:", "trapline url: line 5:"],
        "{messages}"
    );
    assert!(output.status.success());
}

#[test]
fn a_huge_line_is_answered_like_any_other() {
    let path = "a%7e;jsessionid=1/".repeat(600_000);
    let output = run(
        &["url", "normalize", "--profile", "aggressive"],
        format!("http://a.example/{path}\nx:\n").as_bytes(),
    );
    assert!(output.status.success());
    let answers = String::from_utf8(output.stdout).unwrap();
    let (first, rest) = answers.split_once('\n').unwrap();
    assert_eq!(first.len(), "{\"href\":\"http://a.example/\"}".len() + "a~/".len() * 600_000 - 1);
    assert_eq!(rest, "{\"href\":\"x:\"}\n");
    let nested = format!("{{\"input\":{}", "[".repeat(1_000_000));
    check(&["url", "parse"], nested, "{\"failure\":true}\n");
    check(&["url", "site"], "www.".repeat(250_000) + "com", "{\"site\":\"www.com\"}\n");
}

#[test]
fn whoever_stops_reading_stops_the_command_quietly() {
    let mut child = start(&["url", "parse"]);
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let writer = std::thread::spawn(move || {
        // Ends with an error, once the command has.
        while stdin.write_all(&b"http://a.example/\n".repeat(1_000)).is_ok() {}
    });
    let mut first = String::new();
    stdout.read_line(&mut first).unwrap();
    assert_eq!(first, "{\"href\":\"http://a.example/\"}\n");
    drop(stdout);
    assert!(child.wait().unwrap().success());
    writer.join().unwrap();
    let mut messages = String::new();
    child.stderr.take().unwrap().read_to_string(&mut messages).unwrap();
    assert_eq!(messages, "");
}

#[test]
fn each_answer_comes_before_the_next_question() {
    let mut child = start(&["url", "parse"]);
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    for number in 0..3 {
        writeln!(stdin, "http://a.example/{number}").unwrap();
        let mut answer = String::new();
        stdout.read_line(&mut answer).unwrap();
        assert_eq!(answer, format!("{{\"href\":\"http://a.example/{number}\"}}\n"));
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

#[test]
fn help_teaches_with_examples() {
    let output = run(&["url", "--help"], b"");
    let help = String::from_utf8(output.stdout).unwrap();
    for part in ["parse", "normalize", "site", "one line of JSON", "Examples:", "trapline url site"] {
        assert!(help.contains(part), "{part} is missing in {help}");
    }
}
