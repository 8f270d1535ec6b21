//! What `wget -r -l inf` fetches of a site: another crawler's opinion of which pages it has.

use std::path::Path;
use std::process::{Command, Stdio};

/// Which links are followed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Follow {
    /// All that wget knows: links for readers and what pages are made of, images, scripts and style sheets among it.
    Everything,
    /// Links for readers only.
    Pages,
}

/// Tags whose links are parts of a page.
const PARTS: &str =
    "--ignore-tags=img,script,link,embed,object,source,audio,video,input,body,table,td,th,iframe,frame,style";

/// Crawls the site of a URL and keeps nothing: what it fetched is in the server's log. robots.txt is obeyed.
///
/// Answers what it complained of, which is not an error: sites have broken links.
pub fn wget(url: &str, follow: Follow, folder: &Path) -> Result<String, String> {
    std::fs::create_dir_all(folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    let mut command = Command::new("wget");
    command
        .args(["--no-config", "--recursive", "--level=inf", "--execute=robots=on", "--no-verbose"])
        .args(["--tries=1", "--timeout=30", "--no-proxy", "--no-hsts", "--delete-after"])
        .args((follow == Follow::Pages).then_some(PARTS))
        .arg("--directory-prefix")
        .arg(folder)
        .arg(url)
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::null());
    let output =
        command.output().map_err(|error| format!("cannot run wget: {error}; `./test` installs it"))?;
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    // 8: a server answered with an error, as for any broken link.
    match output.status.code() {
        Some(0 | 8) => Ok(told),
        code => Err(format!("wget {url} ended with {code:?}: {told}")),
    }
}
