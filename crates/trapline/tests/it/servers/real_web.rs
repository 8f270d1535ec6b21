//! Crawls of real sites, judged by others: nginx's log says what was asked for and when, wget which pages there are.

mod killed;
mod pace;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use trapline_testing::{Follow, Nginx, Site, Visit, Visits, documentation, wget};

use crate::folder::Folder;

/// The paths of each site.
type Paths = BTreeMap<String, BTreeSet<String>>;

/// Where wget reads pages of SQLite's documentation otherwise than browsers do: a path, whether it is one of the site, and why.
const DIFFERENCES: [(&str, bool, &str); 2] = [
    ("/search", true, "the search form is one of GET, which leads readers there; wget knows no forms"),
    ("/\\", false, "a link begins with a backslash, which is a slash to browsers"),
];

/// The documentation of a few packages, with something of everything that happens on the web: closed folders, redirects, pages that are gone
/// or broken.
fn sites() -> Vec<Site> {
    let sites = documentation().expect("there is documentation").into_iter();
    let sites = sites.map(|site| match site.name() {
        "python.example" => {
            // wget takes the first rule that fits, we the longest.
            site.robots(
                "User-agent: *\nAllow: /whatsnew/3.11.html\nDisallow: /whatsnew/\nDisallow: /library/x\n",
            )
        }
        "sqlite.example" => site
            .line("location = /about.html { return 301 /copyright.html; }")
            .line("location = /famous.html { return 302 /; }")
            .line("location = /fileio.html { return 410; }")
            .line("location = /inmemorydb.html { return 500; }"),
        _ => site,
    });
    sites.collect()
}

/// What `wget -r -l inf` fetches of the sites: everything, parts of pages included. Asked once.
fn pages_by_wget() -> &'static Paths {
    static PATHS: OnceLock<Paths> = OnceLock::new();
    PATHS.get_or_init(|| {
        let server = Nginx::start(sites()).expect("nginx starts");
        std::thread::scope(|scope| {
            for number in 0..server.sites().len() {
                let (url, folder) = (server.url(number), server.folder().join(format!("wget-{number}")));
                scope.spawn(move || wget(&url, Follow::Everything, &folder).expect("wget works"));
            }
        });
        let mut paths = paths(&server, &server.take_visits().expect("nginx has a log"));
        let sqlite = paths.get_mut("sqlite.example").expect("there is such a site");
        for (path, is_page, why) in DIFFERENCES {
            let agreed = if is_page { sqlite.insert(path.to_owned()) } else { sqlite.remove(path) };
            assert!(agreed, "wget knows better now: {why}");
        }
        paths
    })
}

fn paths(server: &Nginx, visits: &[Visit]) -> Paths {
    let sites = server.sites().iter();
    sites.map(|site| (site.name().to_owned(), Visits::of(visits, site.name()).paths())).collect()
}

/// What differs, in a few lines that a person can read.
fn assert_same(ours: &Paths, theirs: &Paths) {
    let mut told = String::new();
    for (site, theirs) in theirs {
        let ours = &ours[site];
        for (who, path) in ours
            .difference(theirs)
            .map(|path| ("ours", path))
            .chain(theirs.difference(ours).map(|path| ("theirs", path)))
            .take(20)
        {
            told.push_str(&format!("{site}: only {who}: {path}\n"));
        }
        let (many, missing) = (ours.difference(theirs).count(), theirs.difference(ours).count());
        if many + missing > 0 {
            told.push_str(&format!("{site}: {} paths, {many} too many, {missing} missing\n", ours.len()));
        }
    }
    assert!(told.is_empty(), "{told}");
}

/// `trapline crawl` of all sites of a server into a folder: everything, as fast as it goes, and nothing twice.
fn crawl(server: &Nginx, out: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trapline"));
    command.arg("crawl").args((0..server.sites().len()).map(|site| server.url(site)));
    command.arg("--out").arg(out).args([
        "--allow-network",
        "127.0.0.0/8",
        "--no-sitemaps",
        "--quiet",
        "--contact",
        "tests@example.org",
    ]);
    // wget knows no `nofollow` of single links.
    command
        .args(["--set", "retry.max=0", "--set", "robots.policy=robots_txt"])
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    command
}

/// Runs a crawl to its end.
fn run(command: &mut Command) {
    run_until(command, 0);
}

/// Runs a crawl until all hosts have spent what they may.
fn run_to_budgets(command: &mut Command) {
    run_until(command, 3);
}

fn run_until(command: &mut Command, code: i32) {
    let ran = command.output().expect("the binary runs");
    let (out, error) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert_eq!(ran.status.code(), Some(code), "{out}{error}");
}

#[test]
fn a_crawl_finds_what_wget_finds_each_page_once() {
    let server = Nginx::start(sites()).unwrap();
    let folder = Folder::new("real-web");
    run(crawl(&server, &folder.path).args(["--embeds", "--delay", "0", "--per-host", "4"]));
    let visits = server.take_visits().unwrap();
    for site in server.sites() {
        let visits = Visits::of(&visits, site.name());
        assert_eq!(visits.repeated(), BTreeMap::new(), "{}", site.name());
        assert!(visits.most_at_once() <= 4, "{} at once", visits.most_at_once());
        assert_eq!(visits.all().iter().filter(|visit| visit.path == "/robots.txt").count(), 1);
    }
    let python = Visits::of(&visits, "python.example");
    let below: Vec<_> = python.below("/whatsnew/").iter().map(|visit| visit.path.as_str()).collect();
    assert_eq!((below, python.below("/library/x").len()), (vec!["/whatsnew/3.11.html"], 0));
    assert_same(&paths(&server, &visits), pages_by_wget());
}

#[test]
fn a_crawl_for_readers_leaves_out_what_pages_are_made_of() {
    let policy = documentation().unwrap().into_iter().filter(|site| site.name() == "policy.example");
    let server = Nginx::start(policy.collect()).unwrap();
    wget(&server.url(0), Follow::Pages, &server.folder().join("wget")).unwrap();
    let mut theirs = paths(&server, &server.take_visits().unwrap());
    // wget cannot tell a `link` for readers from one to a style sheet, and was told to ignore them all.
    assert!(theirs.get_mut("policy.example").unwrap().insert("/search.html".to_owned()));
    let folder = Folder::new("real-web-readers");
    run(crawl(&server, &folder.path).args(["--delay", "0"]));
    assert_same(&paths(&server, &server.take_visits().unwrap()), &theirs);
}
