//! `trapline links`, with friendly and with hostile input.

use std::io::Write;
use std::process::{Command, Output, Stdio};

fn run(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_trapline"))
        .arg("links")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary was built");
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

const BASE: [&str; 2] = ["--base", "https://example.com/a/"];

#[test]
fn links_are_printed_one_line_each_in_a_fixed_order_of_fields() {
    check(
        &BASE,
        "<a href=../b rel='NoFollow ugc'>b</a><img src=c.png><meta http-equiv=refresh content='0;url=/d'>
         <link rel=alternate hreflang=de href=/de>",
        r#"{"url":"https://example.com/b","tag":"a","attr":"href","rel":"nofollow ugc","kind":"navigation"}
{"url":"https://example.com/a/c.png","tag":"img","attr":"src","rel":null,"kind":"embed"}
{"url":"https://example.com/d","tag":"meta","attr":"content","rel":null,"kind":"redirect"}
{"url":"https://example.com/de","tag":"link","attr":"href","rel":"alternate","kind":"navigation","hreflang":"de"}
"#,
    );
    check(&BASE, "", "");
}

#[test]
fn style_sheets_are_known_by_type_or_by_look() {
    let expected = r#"{"url":"https://example.com/a/b.css","tag":"css","attr":"import","rel":null,"kind":"embed"}
{"url":"https://example.com/a/c.png","tag":"css","attr":"url","rel":null,"kind":"embed"}
"#;
    let css = "@import 'b.css'; a { background: url(c.png) }";
    check(&BASE, css, expected);
    check(&["--base", BASE[1], "--content-type", "text/css; charset=utf-8"], css, expected);
    check(&["--base", BASE[1], "--content-type", "text/html"], css, "");
    let more = "a { b: url(c.png) }";
    check(&BASE, more, expected.split_once('\n').unwrap().1);
}

#[test]
fn text_of_no_known_kind_is_taken_for_html() {
    let expected = "{\"url\":\"https://example.com/a/b\",\"tag\":\"a\",\"attr\":\"href\",\"rel\":null,\"kind\":\"navigation\"}\n";
    check(&BASE, "words <ul><li><a href=b>", expected);
    check(&["--base", BASE[1], "--content-type", "text/plain"], "<a href=b>", "");
    check(&BASE, b"%PDF-1.7 <a href=b>", "");
}

#[test]
fn the_content_type_says_the_encoding() {
    check(
        &["--base", BASE[1], "--content-type", "text/html; charset=koi8-r"],
        b"<a href=\xc1>",
        "{\"url\":\"https://example.com/a/%D0%B0\",\"tag\":\"a\",\"attr\":\"href\",\"rel\":null,\"kind\":\"navigation\"}\n",
    );
}

#[test]
fn facts_are_one_line_at_the_end() {
    let html = "<html lang=en><title>Hi &amp; ho</title><meta name=robots content=noindex><meta name=otherbot content=none>
        <link rel=canonical href=/c><meta property=og:type content=x><p>some words here";
    let output = run(&["--base", BASE[1], "--facts"], html.as_bytes());
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().collect::<Vec<_>>();
    assert_eq!(lines.len(), 2, "{text}");
    let facts: serde_json::Value = serde_json::from_str(lines[1]).unwrap();
    let facts = &facts["facts"];
    assert_eq!(facts["title"], "Hi & ho");
    assert_eq!(facts["language"], "en");
    assert_eq!(facts["canonical"], "https://example.com/c");
    assert_eq!(facts["robots"], serde_json::json!(["noindex"]));
    assert_eq!(facts["robots_of"]["otherbot"], serde_json::json!(["noindex", "nofollow"]));
    assert_eq!(facts["open_graph"], serde_json::json!([["og:type", "x"]]));
    assert_eq!(facts["charset"], "UTF-8");
    assert_eq!(facts["mime"], "text/html");
    assert_eq!(facts["simhash"].as_str().map(str::len), Some(16));
    assert_eq!(facts["digest"].as_str().map(str::len), Some(64));
    assert_eq!(facts["faults"], serde_json::json!({}));
}

#[test]
fn what_is_wrong_goes_to_standard_error() {
    let output = run(&BASE, b"<a href='http://['><a href='https://x:y'><a href=b>");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "trapline links: unresolvable (2)\n");
    assert_eq!(output.stdout.iter().filter(|byte| **byte == b'\n').count(), 1);
    assert!(output.status.success());
    let output = run(&["--base", "example.com"], b"");
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.contains("a page's address looks like https://example.com/page"), "{message}");
}

#[test]
fn a_huge_page_is_answered_like_any_other() {
    let output = run(&BASE, &b"<div><a href=x>".repeat(1_000_000));
    assert!(output.status.success());
    assert_eq!(output.stdout.iter().filter(|byte| **byte == b'\n').count(), 50_000);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "trapline links: links_left_out (950000)\n");
    check(&BASE, b"<a href='".repeat(1_000_000), "");
    check(&BASE, (0..=255).cycle().take(1 << 20).collect::<Vec<u8>>(), "");
}
