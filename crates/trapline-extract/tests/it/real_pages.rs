//! The links of real pages are those that html5ever's tree has: the documentation of some Debian packages, which `./test`
//! fetches and unpacks below the target folder. Not run by `./test quick`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use encoding_rs::Encoding;
use trapline_core::parse_url;
use trapline_extract::{Head, Limits, Page};

use crate::tree;

/// Fewer prove too little.
const PAGES_MIN: usize = 500;

fn folder() -> PathBuf {
    std::env::var_os("TRAPLINE_PAGES")
        .map_or_else(|| Path::new(env!("CARGO_TARGET_TMPDIR")).join("pages"), PathBuf::from)
}

/// All pages below a folder, in the order of their names.
fn pages(folder: &Path) -> Vec<PathBuf> {
    let mut folders = vec![folder.to_owned()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            let name = entry.file_name().to_string_lossy().into_owned();
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() && name.contains(".htm") && !name.ends_with(".gz") {
                files.push(entry.path());
            }
        }
    }
    files.sort_unstable();
    files
}

/// Checks one page; answers how many different links it has.
pub(crate) fn check(name: &str, bytes: &[u8]) -> usize {
    let url = parse_url("https://docs.example.org/a/b/c/d/page.html?q", None).expect("it is a URL");
    let limits = Limits { links_max: usize::MAX, ..Limits::default() };
    let page = Page::read(&url, &Head { content_type: Some("text/html"), ..Head::default() }, &limits, bytes);
    let ours = page.links.iter().filter(|link| matches!(link.tag, "a" | "area") && link.attribute == "href");
    let ours = ours.map(|link| (link.tag.to_owned(), link.url.clone())).collect::<BTreeSet<_>>();

    let encoding = Encoding::for_label(page.charset.name.as_bytes()).expect("it has a name");
    let (links, base) = tree::links(&encoding.decode(bytes).0);
    let base = base.and_then(|base| parse_url(&base, Some(&url)).ok()).unwrap_or(url);
    let resolve =
        |(tag, href): (String, String)| parse_url(&href, Some(&base)).ok().map(|url| (tag, url.into()));
    let theirs = links.into_iter().filter_map(resolve).collect::<BTreeSet<(String, String)>>();
    let missing = theirs.difference(&ours).take(5).collect::<Vec<_>>();
    let added = ours.difference(&theirs).take(5).collect::<Vec<_>>();
    assert!(
        missing.is_empty() && added.is_empty(),
        "{name}: we miss {missing:?} and have too many: {added:?}"
    );
    assert_eq!(page.base, base, "{name}");
    ours.len()
}

#[test]
fn links_of_real_pages_are_those_of_html5ever() {
    let folder = folder();
    let files = pages(&folder);
    assert!(
        files.len() >= PAGES_MIN,
        "there are {} pages in {}, and {PAGES_MIN} are needed: ./test fetches them",
        files.len(),
        folder.display()
    );
    let mut links = 0;
    for file in &files {
        links += check(&file.display().to_string(), &std::fs::read(file).unwrap());
    }
    assert!(links > 10 * files.len(), "{links} links on {} pages", files.len());
}
