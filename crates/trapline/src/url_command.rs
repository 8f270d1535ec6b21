//! `trapline url`: shows what Trapline makes of URLs, one line of JSON for each line of input.
//!
//! A window on `trapline-core`, for people who wonder why two URLs count as one and for programs that want
//! the same answers. It decides nothing itself.

use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use trapline_core::{CanonicalRules, href, parse_url, registrable_domain};
use url::Url;

/// Show what Trapline makes of URLs: parsed, in canonical form, or their site
///
/// Reads lines from standard input and answers each one, blank ones too, with one line of JSON. A line that
/// begins with `{` is JSON: {"input": "../b", "base": "https://example.com/a/"}, the base optional. Any
/// other line is itself the input.
///
/// What cannot be parsed is answered with {"failure":true}. So are lines that are not UTF-8, and JSON that is
/// broken or has no input; for these the reason and the line's number go to standard error. The exit code
/// is 0 as long as input could be read and answers written.
#[derive(Args)]
#[command(after_help = "Examples:
  $ echo 'HTTP://Example.com:80/a/../b?c#d' | trapline url parse
  {\"href\":\"http://example.com/b?c#d\"}

  $ echo '{\"input\":\"../b\",\"base\":\"https://example.com/a/\"}' | trapline url parse
  {\"href\":\"https://example.com/b\"}

  $ echo 'https://example.com/?utm_source=mail&b=2&a=1' | trapline url normalize --profile tracking
  {\"href\":\"https://example.com/?a=1&b=2\"}

  $ echo 'https://www.example.co.uk/page' | trapline url site
  {\"site\":\"example.co.uk\"}")]
pub(crate) struct UrlCommand {
    #[command(subcommand)]
    question: Question,
}

#[derive(Subcommand)]
enum Question {
    /// The URL as the URL Standard's parser writes it: {"href": …}
    Parse,
    /// The canonical form, under which the frontier remembers the URL: {"href": …}
    Normalize {
        /// Which rules make the canonical form, mildest first: exact, default, tracking, aggressive.
        ///
        /// exact: the parser's form without fragment. default: also percent-encoding normalized and query
        /// sorted. tracking: also without utm_*, fbclid, gclid and the like. aggressive: also without user
        /// info, www., session ids and trailing slash.
        #[arg(long, value_name = "NAME", default_value = "default", verbatim_doc_comment)]
        profile: CanonicalRules,
    },
    /// The registrable domain of the URL's host, or of a bare host name: {"site": …}, null if it has none
    Site,
}

/// Answers every line of standard input.
pub(crate) fn run(command: &UrlCommand) -> ExitCode {
    let input = BufReader::with_capacity(1 << 16, io::stdin().lock());
    let output = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    match answer_lines(&command.question, input, output) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read the answers has read enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!("trapline url: cannot go on: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn answer_lines<R: io::Read>(
    question: &Question,
    mut input: BufReader<R>,
    mut output: impl Write,
) -> io::Result<()> {
    let mut line = Vec::new();
    for number in 1u64.. {
        line.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let answer = Asked::read(&line).map_or_else(
            |problem| {
                complain(&format!("trapline url: line {number}: {problem}"));
                None
            },
            |asked| question.answer(&asked),
        );
        serde_json::to_writer(&mut output, &answer.unwrap_or_else(|| json!({"failure": true})))?;
        output.write_all(b"\n")?;
        // A program that waits for each answer before it asks again must get it.
        if input.buffer().is_empty() {
            output.flush()?;
        }
    }
    output.flush()
}

/// Nobody may be listening, and that is no reason to stop.
fn complain(message: &str) {
    let _ = writeln!(io::stderr(), "{message}");
}

/// What a line asks about.
#[derive(Debug, PartialEq)]
struct Asked {
    input: String,
    base: Option<String>,
}

impl Asked {
    fn read(line: &[u8]) -> Result<Self, String> {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let line = std::str::from_utf8(line).map_err(|error| format!("not UTF-8: {error}"))?;
        if !line.starts_with('{') {
            return Ok(Self { input: line.to_owned(), base: None });
        }
        let mut object: Value = serde_json::from_str(&with_scalar_escapes(line))
            .map_err(|error| format!("broken JSON: {error}"))?;
        let input = match object["input"].take() {
            Value::String(input) => input,
            Value::Null => return Err("the JSON has no `input`".to_owned()),
            _ => return Err("`input` is not a string".to_owned()),
        };
        let base = match object["base"].take() {
            Value::String(base) => Some(base),
            Value::Null => None,
            _ => return Err("`base` is neither a string nor null".to_owned()),
        };
        Ok(Self { input, base })
    }

    fn href(&self) -> Option<String> {
        href(&self.input, self.base.as_deref()).ok()
    }
}

impl Question {
    /// The answer, or None if the input is no URL.
    fn answer(&self, asked: &Asked) -> Option<Value> {
        match self {
            Self::Parse => asked.href().map(|href| json!({"href": href})),
            Self::Normalize { profile } => {
                Some(json!({"href": profile.canonicalize_str(&asked.href()?).ok()?}))
            }
            Self::Site => {
                let url = asked.href().and_then(|href| parse_url(&href, None).ok());
                let host = url.as_ref().and_then(Url::host_str).map(Cow::Borrowed);
                match host.or_else(|| bare_host(&asked.input).map(Cow::Owned)) {
                    Some(host) => Some(json!({"site": registrable_domain(&host)})),
                    None => url.is_some().then(|| json!({"site": null})),
                }
            }
        }
    }
}

/// A host name without a URL around it, perhaps with a port. It keeps its spelling but for the case: who asks in
/// Unicode is answered in Unicode.
fn bare_host(text: &str) -> Option<String> {
    if text.contains(['/', '\\', '?', '#', '@']) {
        return None;
    }
    let url = parse_url(&format!("http://{text}"), None).ok()?;
    if text.is_ascii() {
        return url.host_str().map(str::to_owned);
    }
    let host = text.rsplit_once(':').map_or(text, |(host, _)| host);
    Some(host.trim().to_lowercase())
}

/// JSON in which every escaped surrogate is half of a pair. JavaScript's strings may hold lone ones, which
/// become U+FFFD when a URL is made of them.
fn with_scalar_escapes(json: &str) -> Cow<'_, str> {
    let mut repaired = String::new();
    let mut kept = 0;
    let mut at = 0;
    // Outside of strings JSON has no backslashes, so that every one found begins an escape.
    while let Some(found) = json[at..].find('\\') {
        at += found;
        match escaped_unit(&json[at..]) {
            Some(0xd800..=0xdbff) if matches!(escaped_unit(&json[at + 6..]), Some(0xdc00..=0xdfff)) => {
                at += 12;
            }
            Some(0xd800..=0xdfff) => {
                repaired.push_str(&json[kept..at]);
                repaired.push_str("\\ufffd");
                at += 6;
                kept = at;
            }
            Some(_) => at += 6,
            None => at += 1 + json[at + 1..].chars().next().map_or(0, char::len_utf8),
        }
    }
    if kept == 0 {
        return Cow::Borrowed(json);
    }
    repaired.push_str(&json[kept..]);
    Cow::Owned(repaired)
}

/// The UTF-16 unit that a text beginning with `\uXXXX` stands for.
fn escaped_unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u16::from_str_radix(digits, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_surrogates_become_replacement_characters() {
        let check = |json, repaired| assert_eq!(with_scalar_escapes(json), repaired, "{json}");
        check(r#""plain \n \u0041""#, r#""plain \n \u0041""#);
        check(r#""\ud83d\ude00""#, r#""\ud83d\ude00""#);
        check(r#""\ud83d""#, r#""\ufffd""#);
        check(r#""\uDE00\uD83D""#, r#""\ufffd\ufffd""#);
        check(r#""\ud83d\ud83d\ude00x""#, r#""\ufffd\ud83d\ude00x""#);
        check(r#""\\ud83d""#, r#""\\ud83d""#);
        check(r#""\ud83"#, r#""\ud83"#);
        check(r#""\u+d83""#, r#""\u+d83""#);
        check(r#""\é\ud800é""#, r#""\é\ufffdé""#);
        check("\\", "\\");
    }

    #[test]
    fn lines_are_inputs_or_json() {
        let check =
            |line: &[u8], expected: Result<(&str, Option<&str>), &str>| match (Asked::read(line), expected) {
                (Ok(asked), Ok((input, base))) => {
                    assert_eq!((asked.input.as_str(), asked.base.as_deref()), (input, base));
                }
                (Err(problem), Err(start)) => assert!(problem.starts_with(start), "{problem}"),
                (asked, _) => panic!("{:?} became {asked:?}", String::from_utf8_lossy(line)),
            };
        check(b"http://a.example/\r\n", Ok(("http://a.example/", None)));
        check(b"\n", Ok(("", None)));
        check(b"[1]", Ok(("[1]", None)));
        check(br#"{"input":"x","base":"y"}"#, Ok(("x", Some("y"))));
        check(br#"{"input":"","base":null,"more":[1]}"#, Ok(("", None)));
        check(b"{", Err("broken JSON: "));
        check(b"{}", Err("the JSON has no `input`"));
        check(br#"{"input":1}"#, Err("`input` is not a string"));
        check(br#"{"input":"","base":1}"#, Err("`base` is neither a string nor null"));
        check(b"http://\xff/", Err("not UTF-8: "));
    }
}
