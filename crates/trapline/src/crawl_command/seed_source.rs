//! Where seeds come from: a file, a pipe, standard input, a list on the web, or one in a bucket.
//!
//! How a line is read is in `seeds.rs`. A list on the web is fetched as pages are, through the same guard; robots.txt is not asked, because
//! somebody has named it.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Cursor, Read};
use std::path::PathBuf;

use trapline_archive::read_object;
use trapline_core::parse_url;
use trapline_crawl::ports::Fetch;
use trapline_crawl::{RedirectTo, WebRequest};
use trapline_fetch::DialOptions;
use url::Url;

use super::s3_client::S3Connector;
use super::seeds::SeedFile;

/// A list on the web may be as large: some millions of seeds. It is in memory until they are handed over.
pub(super) const LIST_BYTES_MAX: usize = 256 << 20;

/// How many redirects are followed to a list.
const REDIRECTS_MAX: usize = 5;

/// Where seeds come from.
#[derive(Debug)]
pub(super) enum SeedSource {
    /// Standard input.
    Input,
    /// A file, or a pipe with a name.
    File(PathBuf),
    /// A list on the web, not fetched yet.
    Web(Url),
    /// An object in a bucket, not fetched yet.
    Bucket { bucket: String, key: String },
    /// A list that was fetched, and what it is called.
    List { name: String, bytes: Vec<u8> },
}

impl SeedSource {
    /// What somebody means by a text.
    pub(super) fn of(text: &OsStr) -> Result<Self, String> {
        let scheme = text
            .to_str()
            .and_then(|text| text.split_once("://"))
            .map(|(scheme, _)| scheme.to_ascii_lowercase());
        match (text.to_str(), scheme.as_deref()) {
            (Some("-"), _) => Ok(Self::Input),
            (Some(text), Some("http" | "https")) => parse_url(text, None)
                .map(Self::Web)
                .map_err(|reason| format!("cannot read seeds from {text}: this is no URL: {reason}")),
            (Some(text), Some("s3")) => match text[5..].split_once('/') {
                Some((bucket, key)) if !bucket.is_empty() && !key.is_empty() => {
                    Ok(Self::Bucket { bucket: bucket.to_owned(), key: key.to_owned() })
                }
                _ => Err(format!(
                    "cannot read seeds from {text}: name a bucket and a key, as in s3://bucket/seeds.txt"
                )),
            },
            (Some(text), Some(scheme)) if scheme.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
                Err(format!(
                    "cannot read seeds from {text}: `{scheme}:` is not read; name a file, - for standard input, or an http, https or s3 URL"
                ))
            }
            _ => Ok(Self::File(text.into())),
        }
    }

    /// What messages call it. Nobody needs to see a password in it.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Input => "-".to_owned(),
            Self::File(path) => path.display().to_string(),
            Self::Web(url) => shown(url),
            Self::Bucket { bucket, key } => format!("s3://{bucket}/{key}"),
            Self::List { name, .. } => name.clone(),
        }
    }

    /// Whether there is something to read, as far as that can be told before the crawl begins.
    pub(super) fn check(&self) -> Result<(), String> {
        let Self::File(path) = self else { return Ok(()) };
        // What comes through a pipe is opened only once.
        if std::fs::metadata(path).is_ok_and(|about| !about.is_file() && !about.is_dir()) {
            return Ok(());
        }
        let opened = File::open(path).and_then(|file| match file.metadata()?.is_dir() {
            true => Err(std::io::ErrorKind::IsADirectory.into()),
            false => Ok(()),
        });
        opened.map_err(|error| format!("cannot read seeds from {}: {error}", path.display()))
    }

    /// Whether it has to be fetched.
    pub(super) fn is_elsewhere(&self) -> bool {
        matches!(self, Self::Web(_) | Self::Bucket { .. })
    }

    /// Fetches it, if it is on the web or in a bucket. Everything else is read when its turn has come.
    pub(super) async fn fetched(self, fetch: &dyn Fetch, dial: &DialOptions) -> Result<Self, String> {
        let name = self.name();
        let cannot = |why: String| format!("cannot read seeds from {name}: {why}");
        let url = match self {
            Self::Web(url) => url,
            Self::Bucket { bucket, key } => {
                let connector = S3Connector::new(dial).map_err(cannot)?;
                let bytes = read_object(&bucket, &key, connector).await.map_err(cannot)?;
                return Ok(Self::List { bytes: bytes.into(), name });
            }
            other => return Ok(other),
        };
        let mut next = url;
        for _ in 0..=REDIRECTS_MAX {
            let response = fetch.fetch(&get(next)).await;
            if let Some(error) = response.error {
                return Err(cannot(error.message));
            }
            match (response.redirect, response.status) {
                (Some(RedirectTo::Url(target)), _) => next = target,
                (Some(RedirectTo::Nowhere(why)), _) => return Err(cannot(why)),
                (None, Some(200)) if response.truncated.is_none() => {
                    return Ok(Self::List { bytes: response.body.into(), name });
                }
                (None, Some(200)) => {
                    let why = response.truncated.unwrap_or_default();
                    return Err(cannot(format!(
                        "only {} bytes of it came ({why}); fetch it yourself, and name the file",
                        response.body.len()
                    )));
                }
                (None, Some(status)) => return Err(cannot(format!("the server answers {status}"))),
                (None, None) => return Err(cannot("nobody answers".to_owned())),
            }
        }
        Err(cannot(format!("more than {REDIRECTS_MAX} redirects")))
    }

    /// Begins to read it. Opening a pipe waits until somebody writes to it.
    pub(super) fn open(self) -> std::io::Result<SeedFile<Box<dyn Read + Send>>> {
        match self {
            Self::Input => Ok(SeedFile::of_pipe(Box::new(std::io::stdin()))),
            Self::File(path) => {
                let file = File::open(path)?;
                let is_file = file.metadata().is_ok_and(|about| about.is_file());
                Ok(if is_file { SeedFile::new(Box::new(file)) } else { SeedFile::of_pipe(Box::new(file)) })
            }
            Self::List { bytes, .. } => Ok(SeedFile::new(Box::new(Cursor::new(bytes)))),
            Self::Web(_) | Self::Bucket { .. } => Err(std::io::Error::other("it was not fetched")),
        }
    }
}

fn get(url: Url) -> WebRequest {
    WebRequest {
        url,
        method: "GET".to_owned(),
        headers: Vec::new(),
        body: Vec::new(),
        etag: None,
        last_modified: None,
        decoded_bytes_max: Some(LIST_BYTES_MAX),
    }
}

/// A URL without a password.
fn shown(url: &Url) -> String {
    let mut url = url.clone();
    // URLs of the web can be without one.
    let _ = url.set_password(None);
    url.into()
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use trapline_crawl::{ErrorClass, Response, ResponseError};

    use super::*;

    /// A web of lists.
    struct Lists;

    #[async_trait]
    impl Fetch for Lists {
        async fn fetch(&self, request: &WebRequest) -> Response {
            let answer = |status| Response { status: Some(status), ..Response::default() };
            let to = |path: &str| Response {
                redirect: Some(RedirectTo::Url(parse_url(path, Some(&request.url)).unwrap())),
                ..answer(302)
            };
            match request.url.path() {
                "/list" => Response { body: "a.example\nftp://x\nb.example".into(), ..answer(200) },
                "/moved" => to("/list"),
                "/circle" => to("/circle"),
                "/mail" => Response {
                    redirect: Some(RedirectTo::Nowhere("a redirect to a `mailto:` URL".to_owned())),
                    ..answer(302)
                },
                "/cut" => Response {
                    body: "a.example\nb.ex".into(),
                    truncated: Some("decoded_bytes"),
                    ..answer(200)
                },
                "/refused" => Response {
                    error: Some(ResponseError {
                        kind: "x",
                        message: "the address is private".to_owned(),
                        class: ErrorClass::Refused,
                    }),
                    ..Response::default()
                },
                _ => answer(404),
            }
        }
    }

    fn read(text: &str) -> Result<(usize, usize), String> {
        let source = SeedSource::of(OsStr::new(text))?;
        let mut file = pollster::block_on(source.fetched(&Lists, &DialOptions::default()))?
            .open()
            .map_err(|error| error.to_string())?;
        let batch = file.next_batch().unwrap().unwrap();
        Ok((batch.seeds.len(), batch.wrong.len()))
    }

    #[test]
    fn lists_on_the_web_are_read_as_files_are() {
        assert_eq!(read("https://a.example/list"), Ok((2, 1)));
        assert_eq!(read("HTTP://a.example/moved"), Ok((2, 1)));
    }

    #[test]
    fn what_cannot_be_read_is_told_with_the_reason() {
        for (text, wrong) in [
            (
                "http://u:hush@a.example/none",
                "cannot read seeds from http://u@a.example/none: the server answers 404",
            ),
            (
                "http://a.example/circle",
                "cannot read seeds from http://a.example/circle: more than 5 redirects",
            ),
            (
                "http://a.example/mail",
                "cannot read seeds from http://a.example/mail: a redirect to a `mailto:` URL",
            ),
            (
                "http://a.example/cut",
                "cannot read seeds from http://a.example/cut: only 14 bytes of it came (decoded_bytes); fetch it yourself, and name the file",
            ),
            (
                "http://a.example/refused",
                "cannot read seeds from http://a.example/refused: the address is private",
            ),
            (
                "s3://bucket",
                "cannot read seeds from s3://bucket: name a bucket and a key, as in s3://bucket/seeds.txt",
            ),
            (
                "ftp://a.example/x",
                "cannot read seeds from ftp://a.example/x: `ftp:` is not read; name a file, - for standard input, or an http, https or s3 URL",
            ),
        ] {
            assert_eq!(read(text).unwrap_err(), wrong);
        }
        assert!(read("http://").unwrap_err().starts_with("cannot read seeds from http://: this is no URL: "));
    }

    #[test]
    fn paths_are_files_whatever_is_in_them() {
        for (text, name) in
            [("-", "-"), ("seeds.txt", "seeds.txt"), ("a/b://c", "a/b://c"), ("./http:/x", "./http:/x")]
        {
            assert_eq!(SeedSource::of(OsStr::new(text)).unwrap().name(), name);
        }
        let missing = SeedSource::of(OsStr::new("/not/there")).unwrap().check().unwrap_err();
        assert_eq!(missing, "cannot read seeds from /not/there: No such file or directory (os error 2)");
    }
}
