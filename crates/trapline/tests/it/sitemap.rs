//! `trapline sitemap`, with friendly and with hostile input.

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
    // A command that refuses its arguments reads nothing.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().expect("it can be waited for");
    writer.join().expect("the writer does not panic");
    output
}

#[track_caller]
fn check(input: &str, answers: &str, complaints: &str) {
    let output = run(&["sitemap", "--url", "https://a.example/sitemap.xml"], input.as_bytes());
    assert_eq!(String::from_utf8_lossy(&output.stdout), answers);
    assert_eq!(String::from_utf8_lossy(&output.stderr), complaints);
    assert!(output.status.success());
}

#[test]
fn entries_are_listed_one_line_each() {
    check(
        "<urlset><url><loc>/a?b&amp;c</loc><lastmod>2026-05-01</lastmod><changefreq>daily</changefreq><priority>0.8</priority></url>\
         <url><loc>https://b.example/</loc></url></urlset>",
        "{\"url\":\"https://a.example/a?b&c\",\"kind\":\"page\",\"lastmod\":\"2026-05-01T00:00:00.000Z\",\"changefreq\":\"daily\",\
         \"priority\":0.8,\"foreign\":false}\n\
         {\"url\":\"https://b.example/\",\"kind\":\"page\",\"lastmod\":null,\"changefreq\":null,\"priority\":null,\"foreign\":true}\n",
        "",
    );
    check(
        "<sitemapindex><sitemap><loc>/1.xml</loc></sitemap></sitemapindex>",
        "{\"url\":\"https://a.example/1.xml\",\"kind\":\"sitemap\",\"lastmod\":null,\"changefreq\":null,\"priority\":null,\
         \"foreign\":false}\n",
        "",
    );
}

#[test]
fn what_is_wrong_goes_to_standard_error() {
    check(
        "https://a.example/1\nnot found\n",
        "{\"url\":\"https://a.example/1\",\"kind\":\"page\",\"lastmod\":null,\"changefreq\":null,\"priority\":null,\"foreign\":false}\n",
        "trapline sitemap: byte 20: an address that is none; passed over\n",
    );
    check("", "", "trapline sitemap: byte 0: there is nothing in it\n");
    let many = "x\n".repeat(150);
    let output = run(&["sitemap", "--url=https://a.example/"], many.as_bytes());
    assert!(String::from_utf8_lossy(&output.stderr).ends_with("trapline sitemap: and 50 more\n"));
}

#[test]
fn without_an_address_to_start_from_there_is_trouble() {
    let output = run(&["sitemap", "--url", "sitemap.xml"], b"");
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "trapline sitemap: `sitemap.xml` is no URL: relative URL without a base\n  --url takes the address that the sitemap came \
         from\n"
    );
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(run(&["sitemap"], b"").status.code(), Some(2));
}

#[test]
fn no_more_entries_are_listed_than_a_sitemap_may_have() {
    let output =
        run(&["sitemap", "--url=https://a.example/"], "https://a.example/1\n".repeat(60_000).as_bytes());
    assert_eq!(output.stdout.iter().filter(|byte| **byte == b'\n').count(), 50_000);
    assert!(String::from_utf8_lossy(&output.stderr).contains("more entries than are read"));
}

#[test]
fn help_teaches_with_examples() {
    let output = run(&["sitemap", "--help"], b"");
    let help = String::from_utf8(output.stdout).unwrap();
    for part in ["--url", "Examples:", "foreign", "gzipped", "50,000", "exit code"] {
        assert!(help.contains(part), "{part} is missing in {help}");
    }
}
