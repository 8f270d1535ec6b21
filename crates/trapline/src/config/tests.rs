//! The layers, the file of defaults, and what people are told of their mistakes.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use trapline_crawl::RobotsPolicy;
use trapline_fetch::{FetchOptions, RobotsOptions};
use trapline_frontier::Settings;

use super::layers::Loaded;
use super::options::Options;
use super::sections::entry_of;
use super::sections::scope::ScopePattern;
use super::{FileConfig, Flags, Refused, defaults, load, shown};

/// A file that is gone afterwards.
struct File(PathBuf);

impl File {
    fn new(text: impl AsRef<[u8]>) -> Self {
        use std::sync::atomic::{AtomicU32, Ordering};
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("trapline-config-{}-{number}.toml", std::process::id()));
        std::fs::write(&path, text).unwrap();
        Self(path)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn read(text: impl AsRef<[u8]>, variables: &[(&str, &str)], flags: &Flags) -> Result<Loaded, Refused> {
    let file = File::new(text);
    let variables = variables.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
    load(Some(&file.0), variables, flags)
}

/// What is told, without the name of the file.
fn mistakes(text: impl AsRef<[u8]>, variables: &[(&str, &str)], flags: &Flags) -> Vec<String> {
    match read(text, variables, flags) {
        Err(Refused::Mistakes(mistakes)) => mistakes
            .iter()
            .map(|mistake| {
                let told = mistake.to_string();
                told.split_once(".toml:").map_or(told.clone(), |(_, rest)| rest.to_owned())
            })
            .collect(),
        Err(Refused::Unreadable(message)) => panic!("{message}"),
        Ok(_) => Vec::new(),
    }
}

#[track_caller]
fn wrong(text: &str, expected: &[&str]) {
    assert_eq!(mistakes(text, &[], &Flags::default()), expected, "{text}");
}

#[track_caller]
fn right(text: &str) -> FileConfig {
    read(text, &[], &Flags::default()).map_err(|refused| refused.to_string()).unwrap().config
}

#[test]
fn the_file_of_defaults_says_nothing_new() {
    let file = defaults();
    let loaded = read(&file, &[], &Flags::default()).map_err(|refused| refused.to_string()).unwrap();
    let usual = FileConfig::default();
    let mut options = 0;
    for name in FileConfig::SECTIONS {
        let (section, usual) = (loaded.config.section(name).unwrap(), usual.section(name).unwrap());
        for item in section.items() {
            assert_eq!(section.get(item.key), usual.get(item.key), "{name}.{}", item.key);
            let source = loaded.source(&format!("{name}.{}", item.key)).to_string();
            assert!(source.contains(".toml:"), "{name}.{} is in the file: {source}", item.key);
            options += 1;
        }
    }
    assert!(options > 100, "{options}");
}

#[test]
fn examples_in_the_file_of_defaults_can_be_taken_as_they_are() {
    let file: String = defaults()
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(rest) if rest.starts_with("[[") || rest.contains(" = ") && !rest.contains('`') => {
                rest.to_owned() + "\n"
            }
            _ => line.to_owned() + "\n",
        })
        .collect();
    let config = right(&file);
    assert_eq!((config.lists.host.len(), config.lists.credentials.len()), (1, 1));
}

/// Every option says what it means, and its default is the one it says.
#[test]
fn comments_end_with_the_default() {
    let config = FileConfig::default();
    let mut all: Vec<(String, Box<dyn Options>)> = Vec::new();
    for list in ["host", "credentials"] {
        all.push((list.to_owned(), entry_of(list).unwrap()));
    }
    let entries = all.iter().map(|(name, options)| (&**name, &**options));
    let sections = FileConfig::SECTIONS.iter().map(|name| (*name, config.section(name).unwrap()));
    for (section, options) in entries.chain(sections) {
        for item in options.items() {
            let doc = item.doc.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
            let name = format!("{section}.{}", item.key);
            assert!(doc.ends_with('.'), "{name}: {doc}");
            if doc.ends_with("It has to be given.") {
                continue;
            }
            let (meaning, said) =
                doc.rsplit_once("Defaults to ").unwrap_or_else(|| panic!("{name} says no default: {doc}"));
            assert!(meaning.len() > 20 && meaning.ends_with(". "), "{name}: {meaning}");
            let value = options.get(item.key).unwrap();
            let value = match &*value {
                "[]" | "{}" => "none",
                value => value.trim_matches('"'),
            };
            let rest = said.strip_prefix(value);
            assert!(
                rest.is_some_and(|rest| rest.starts_with(": ") || rest == "."),
                "{name} is {value}, and says: {said}"
            );
        }
    }
}

#[test]
fn defaults_are_those_of_the_parts_that_follow_them() {
    let config = FileConfig::default();
    assert_eq!(config.settings(), Settings::default());
    let options = config.fetch_options().unwrap();
    assert_eq!(format!("{options:#?}"), format!("{:#?}", FetchOptions::default()));
    assert_eq!(format!("{:#?}", config.robots_options()), format!("{:#?}", RobotsOptions::default()));
}

#[test]
fn flags_win_over_the_environment_and_the_environment_over_the_file() {
    let file = "[pace]\ndelay = \"1m\"\nper_host = 2\nburst = 3\n";
    let variables = [("TRAPLINE__PACE__PER_HOST", "4"), ("TRAPLINE__PACE__BURST", "5"), ("PATH", "x")];
    let flags = Flags::default()
        .text("--burst", "pace.burst", Some(6))
        .text("--jitter", "pace.jitter", None::<&str>)
        .texts("--include", "scope.include", &["a", "b,c"])
        .switch("--ignore-robots", "robots.policy", true, "ignore")
        .switch("--no-sitemaps", "sitemaps.follow", false, "false")
        .set(&["crawl.max_bytes=1GiB".to_owned(), "scope.exclude=['x', 'y']".to_owned()]);
    let loaded = read(file, &variables, &flags).map_err(|refused| refused.to_string()).unwrap();
    let config = &loaded.config;
    let pace = &config.pace;
    assert_eq!((pace.delay, pace.per_host, pace.burst), (Duration::from_secs(60), 4, 6));
    let include: Vec<_> = config.scope.include.iter().map(regex::Regex::as_str).collect();
    assert_eq!(include, ["a", "b,c"]);
    assert_eq!(config.scope.exclude.len(), 2);
    assert_eq!((config.robots.policy, config.sitemaps.follow), (RobotsPolicy::Ignore, true));
    assert_eq!(config.crawl.max_bytes.map(|size| size.0), Some(1 << 30));

    let source = |option: &str| loaded.source(option).to_string();
    assert!(source("pace.delay").ends_with(".toml:2"), "{}", source("pace.delay"));
    assert_eq!(source("pace.per_host"), "TRAPLINE__PACE__PER_HOST");
    assert_eq!(source("pace.burst"), "--burst");
    assert_eq!(source("pace.jitter"), "default");
    assert_eq!(source("crawl.max_bytes"), "--set crawl.max_bytes");
}

#[test]
fn the_environment_has_no_quotes() {
    let variables = [
        ("TRAPLINE__CRAWL__MAX_PAGES", "10"),
        ("TRAPLINE__CRAWL__MAX_TIME", "none"),
        ("TRAPLINE__CRAWL__SEEDS", "https://a.example/?x=1,2"),
        ("TRAPLINE__FETCH__ALLOW_PORTS", "[8000, 9000]"),
        ("TRAPLINE__FETCH__ALLOW_NETWORKS", "127.0.0.0/8"),
        ("TRAPLINE__FETCH__HEADERS", "{ Accept-Language = \"de\" }"),
        ("TRAPLINE__PACE__FACTOR", "2"),
        ("TRAPLINE__SCOPE__EMBEDS", "true"),
        ("TRAPLINE__SCOPE__INCLUDE", ""),
        ("TRAPLINE__SCOPE__RULES", "{ accept = \"host:a.example\" }"),
        ("TRAPLINE__HOST", "[{ match = \"a.example\", delay = \"5s\" }]"),
    ];
    let file = "[crawl]\nmax_time = \"1h\"\n[scope]\ninclude = ['x']\n";
    let config =
        read(file, &variables, &Flags::default()).map_err(|refused| refused.to_string()).unwrap().config;
    assert_eq!((config.crawl.max_pages, config.crawl.max_time), (Some(10), None));
    assert_eq!(config.crawl.seeds, ["https://a.example/?x=1,2"]);
    assert_eq!(config.fetch.allow_ports, [8000, 9000]);
    assert_eq!(config.fetch.allow_networks.len(), 1);
    assert_eq!(config.fetch.headers["accept-language"], "de");
    assert_eq!((config.pace.factor, config.scope.embeds), (2.0, true));
    assert!(config.scope.include.is_empty());
    assert_eq!(config.scope.rules.len(), 1);
    assert_eq!(config.lists.host[0].delay, Some(Duration::from_secs(5)));
}

#[test]
fn a_whole_file_is_understood() {
    let config = right(
        r#"
        [crawl]
        seeds = ["https://a.example/", "b.example"]
        concurrency = 5_000
        store = "postgres://crawler:hush@db.example/frontier"
        [scope]
        kind = "domain"
        exclude = ['/calendar/\d+', '\.zip$']
        [[scope.rules]]
        accept = "domain:B.example"
        [[scope.rules]]
        name = "private"
        reject = "prefix:https://b.example/private/"
        [dns]
        name_servers = ["192.0.2.53", "[2001:db8::53]:5353"]
        [chains]
        candidate = ["scope", "traps"]
        [[host]]
        match = "*.slow.example"
        delay = "10s"
        robots = "ignore"
        headers = { X-Client = "trapline" }
        proxy = "direct"
        [[credentials]]
        origin = "https://a.example:8443/x"
        user = "crawler"
        password = "hush"
        "#,
    );
    assert_eq!((config.crawl.seeds.len(), config.crawl.concurrency), (2, 5000));
    let [ScopePattern::Domain(domain), ScopePattern::Prefix(prefix)] =
        [&config.scope.rules[0].accept, &config.scope.rules[1].reject]
            .map(|pattern| pattern.clone().unwrap())
    else {
        panic!("{:?}", config.scope.rules)
    };
    assert_eq!((&*domain, &*prefix), ("b.example", "https://b.example/private/"));
    assert_eq!(config.scope.rules[1].name.as_deref(), Some("private"));
    assert_eq!(config.chains.candidate.as_deref(), Some(&["scope".to_owned(), "traps".to_owned()][..]));
    let options = config.fetch_options().unwrap();
    assert_eq!(options.dial.dns.name_servers[0].to_string(), "192.0.2.53:53");
    assert_eq!((options.hosts.len(), options.credentials.len()), (1, 1));
}

#[test]
fn what_is_shown_can_be_read_again_and_has_no_passwords() {
    let file = "[crawl]\nstore = \"postgres://u:hush@h/d\"\n[fetch]\nproxy = \"http://u:hush@proxy.example:1\"\n\
                [[credentials]]\norigin = \"https://a.example\"\nuser = \"u\"\npassword = \"hush\"\n\
                [[scope.rules]]\nreject = 'regex:\\d\"'\n[scope]\nexclude = ['a\\.b']\n";
    let loaded = read(file, &[], &Flags::default()).map_err(|refused| refused.to_string()).unwrap();
    let text = shown(&loaded);
    assert!(!text.contains("hush") && text.contains("postgres://u@h/d"), "{text}");
    assert!(!format!("{:?}", loaded.config).contains("password: \"hush"), "{:?}", loaded.config.lists);
    let again = read(&text, &[], &Flags::default()).map_err(|refused| refused.to_string()).unwrap();
    let plain = |text: &str| {
        let without = |line: &str| line.split_once("  # ").map_or(line, |(value, _)| value).to_owned();
        text.lines().map(without).collect::<Vec<_>>()
    };
    assert_eq!(plain(&shown(&again)), plain(&text));
}

#[test]
fn all_mistakes_are_told_at_once_with_their_lines() {
    wrong(
        "[pace]\ndely = \"1s\"\ndelay = 5\nper_host = -1\n\n[pce]\nx = 1\n[scope]\nkind = \"hosts\"\nexclude = [\n  'ok',\n  '(',\n]\n",
        &[
            "2: there is no option `dely` in [pace]; did you mean `delay`?",
            "3: pace.delay: `5` is not a duration: write digits and a unit (ms, s, m, h or d), such as 250ms or 2h, or plain 0",
            "4: pace.per_host: `-1` does not fit: write a whole number from 0 to 4294967295, without quotes",
            "6: there is no section [pce]; did you mean `pace`?",
            "9: scope.kind: `hosts` is not one of host, domain, prefix, any; did you mean `host`?",
            "12: scope.exclude[2]: `(` is not a regular expression: unclosed group",
        ],
    );
}

#[test]
fn lines_that_are_not_toml_are_told_with_the_other_mistakes() {
    wrong(
        "[pace]\ndelay = 1s\nper_host = \"2\"\n",
        &[
            "2: this is not TOML: string values must be quoted, expected literal string",
            "3: pace.per_host: `2` does not fit: write a whole number from 0 to 4294967295, without quotes",
        ],
    );
    wrong("[pace]\ndelay = \"1s\"\ndelay = \"2s\"\n", &["3: this is not TOML: duplicate key"]);
    assert_eq!(
        mistakes(b"[pace]\n# \xff\n", &[], &Flags::default()),
        ["2: this is not UTF-8, which TOML is written in"]
    );
    let deep = format!("x = {}", "[".repeat(100_000));
    assert!(!mistakes(&deep, &[], &Flags::default()).is_empty());
}

#[test]
fn people_are_told_where_a_thing_belongs() {
    wrong("max_pages = 1\n", &["1: `max_pages` belongs to the section [crawl]"]);
    wrong("[pace]\nmax_pages = 1\n", &["2: there is no option `max_pages` in [pace]; it belongs to [crawl]"]);
    wrong("pace = 1\n", &["1: `pace` is a section: write [pace] on a line of its own"]);
    wrong(
        "[sitemaps]\nxyzzy = 1\n",
        &[
            "2: there is no option `xyzzy` in [sitemaps]; there is follow, guess, per_robots_max, elsewhere_max",
        ],
    );
    wrong("[hosts]\nx = 1\n", &["1: there is no section [hosts]; did you mean `host`?"]);
}

#[test]
fn values_that_do_not_fit_are_told_what_would() {
    let cases = [
        ("[crawl]\nconcurrency = 0", "2: crawl.concurrency: fetch at least one page at a time"),
        (
            "[crawl]\nmax_bytes = 100",
            "2: crawl.max_bytes: `100` is not an amount of bytes: write digits and a unit (B, KiB, MiB, GiB or TiB), such as 512MiB or 10GiB, or plain 0",
        ),
        (
            "[crawl]\nseeds = \"a\"",
            "2: crawl.seeds: `a` does not fit: write a list in brackets, such as [\"a\", \"b\"] or []",
        ),
        (
            "[crawl]\nseeds = [\"a\", 1]",
            "2: crawl.seeds[2]: here stands a whole number: write a text in quotes",
        ),
        (
            "[crawl]\nstore = \"dsk:u:hush@x\"",
            "2: crawl.store: `dsk:…@x` is not a store: did you mean `disk:`?",
        ),
        (
            "[crawl]\nadaptive = \"yes\"",
            "2: crawl.adaptive: `yes` does not fit: write true or false, without quotes",
        ),
        (
            "[pace]\nfactor = -1.5",
            "2: pace.factor: here stands a number with a fraction: write a number that is not negative, such as 1.5, without quotes",
        ),
        (
            "[pace]\nfactor = nan",
            "2: pace.factor: here stands a number with a fraction: write a number that is not negative, such as 1.5, without quotes",
        ),
        ("[pace]\nmin = \"1m\"", "2: pace.min: it is above pace.max = \"30s\""),
        ("[pace]\nmin = \"1m\"\nmax = \"2s\"", "3: pace.max: it is below pace.min = \"1m\""),
        (
            "[queue]\nkey = \"ip\"",
            "2: queue.key: `ip` is not a queue key policy: write host, domain, or buckets:N with a number of buckets from 1 to 4294967295",
        ),
        ("[scope]\nrules = [{}]", "2: scope.rules[1]: a rule has either `accept` or `reject`"),
        ("[scope]\nrules = [{ acept = \"host:a\" }]", "2: there is no `acept` here; did you mean `accept`?"),
        (
            "[scope]\nrules = [{ accept = \"a.example\" }]",
            "2: scope.rules[1].accept: `a.example` does not say what to look for: write host:NAME, domain:NAME, prefix:URL or regex:PATTERN in quotes, such as \"domain:example.org\"",
        ),
        (
            "[scope]\nrules = [{ accept = \"host:a/b\" }]",
            "2: scope.rules[1].accept: `a/b` is not a host: write its name alone, such as example.org",
        ),
        (
            "[fetch]\nheaders = { Cookie = \"x\" }",
            "2: fetch.headers: the header `cookie` would go to every server; give credentials with their origin instead",
        ),
        ("[fetch]\nheaders = { \"a b\" = \"x\" }", "2: fetch.headers.a b: this is not the name of a header"),
        (
            "[fetch]\nuser_agent = \"a\\nb\"",
            "2: fetch.user_agent: `a\nb` cannot be sent as a user agent: use visible ASCII",
        ),
        (
            "[fetch]\nsystem_roots = false",
            "2: fetch.system_roots: without the system's authorities, name others in fetch.roots",
        ),
        (
            "[dns]\nname_servers = [\"ns.example\"]",
            "2: dns.name_servers[1]: `ns.example` is not the address of a name server: write an address in quotes, such as \"192.0.2.53\" or \"[2001:db8::53]:5353\"",
        ),
        (
            "[log]\nlevel = \"info,trapline_fetch=debgu\"",
            "2: log.level: `debgu` is not one of off, error, warn, info, debug, trace; did you mean `debug`?",
        ),
        ("[[host]]\ndelay = \"1s\"", "1: host[1]: `match` is missing"),
        (
            "[[host]]\nmatch = \"*.127.0.0.1\"",
            "2: host[1].match: \"*.127.0.0.1\" is no pattern for hosts: expected a name, an address, domain:example.com, *.example.com, a name with * or ?, or *",
        ),
        (
            "[robots]\npolicy = \"favored\"",
            "2: robots.policy: `favored` is not one of obey, robots_txt, ignore, most_favored",
        ),
        (
            "[robots]\npolicy = \"most_favored\"",
            "2: robots.policy: name those to choose from in robots.agents",
        ),
        (
            "[[host]]\nmatch = \"a\"\nrobots = false",
            "3: host[1].robots: here stands true or false: write obey, robots_txt, most_favored or ignore, in quotes",
        ),
        (
            "[[host]]\nmatch = \"a\"\nrobots = \"most_favored\"",
            "1: host: name those to choose from in robots.agents",
        ),
        (
            "[output]\ncanonical = \"last\"",
            "2: output.canonical: `last` is not one of first_url, last_url, declared",
        ),
        (
            "[[host]]\nmatch = \"a\"\nstrategy = [\"x\"]",
            "3: host[1].strategy[1]: `x` is no argument: write a name, = and a value, such as pages=100",
        ),
        ("[queue]\npartitions = 0", "2: queue.partitions: hosts stand in one line at least"),
        ("[queue]\nbalance = 0", "2: queue.balance: a queue that may spend nothing is never served"),
        (
            "[chains]\nfetch = [\"scope\", \"fetsch\"]",
            "2: chains.fetch: the fetch chain has no processor `fetsch`; did you mean `fetch`?",
        ),
        (
            "[chains]\ndisposition = [\"links\", \"links\", \"outcome\"]\nfetch = [\"x\", \"fetch\", \"robot\"]\ncandidate = [\"scoop\", \"tarps\"]",
            "2: chains.disposition: the disposition chain names `links` twice; a processor has one place; \
             2: chains.disposition: the disposition chain needs `outcome`: the others go by what it decides, and it stands before them; \
             3: chains.fetch: the fetch chain has `robots` behind `fetch`, and it stands before it: what robots.txt forbids would be fetched; \
             3: chains.fetch: the fetch chain has no processor `robot`; did you mean `robots`?; \
             3: chains.fetch: the fetch chain has no processor `x`; there are scope, strategy, robots, conditional, fetch, extract, archive; \
             4: chains.candidate: the candidate chain has no processor `scoop`; did you mean `scope`?; \
             4: chains.candidate: the candidate chain has no processor `tarps`; did you mean `traps`?",
        ),
        (
            "[chains]\ndisposition = [\"output\"]",
            "2: chains.disposition: the disposition chain needs `outcome`: the others go by what it decides, and it stands before them",
        ),
        (
            "[[credentials]]\norigin = \"a.example\"\nuser = \"u\"\npassword = \"p\"",
            "2: credentials[1].origin: `a.example` is no origin: write an http or https URL, such as https://example.org/",
        ),
    ];
    let told = |text: &str| mistakes(text, &[], &Flags::default()).join("; ");
    let differ: Vec<_> = cases
        .iter()
        .map(|(text, message)| (text, message, told(text)))
        .filter(|(_, message, told)| **message != told)
        .collect();
    assert!(differ.is_empty(), "{differ:#?}");
}

#[test]
fn mistakes_of_the_environment_and_of_flags_are_told_with_their_names() {
    let variables = [
        ("TRAPLINE__PACE__DELY", "1s"),
        ("TRAPLINE__PACE__DELAY", "1"),
        ("TRAPLINE__PACE", "1"),
        ("TRAPLINE__SCOPE__INCLUDE", "[1"),
        ("TRAPLINE_PACE_DELAY", "not ours"),
    ];
    let flags = Flags::default()
        .text("--concurrency", "crawl.concurrency", Some("many"))
        .set(&["pace.dely=1s".to_owned(), "nonsense".to_owned()]);
    assert_eq!(
        mistakes("", &variables, &flags),
        [
            "TRAPLINE__PACE: `pace` is a section: name one of its options, such as pace.delay",
            "TRAPLINE__PACE__DELAY: pace.delay: `1` is not a duration: write digits and a unit (ms, s, m, h or d), such as 250ms or 2h, or plain 0",
            "TRAPLINE__PACE__DELY: there is no option `dely` in [pace]; did you mean `delay`?",
            "TRAPLINE__SCOPE__INCLUDE: scope.include: `[1` cannot be read: unclosed array, expected `]`",
            "--concurrency: crawl.concurrency: `many` does not fit: write a whole number from 0 to 4294967295, without quotes",
            "--set nonsense: there is no section [nonsense]; there is crawl, scope, traps, strategy, pace, retry, queue, robots, sitemaps, fetch, limits, connect, dns, cookies, chains, output, log, host, credentials",
            "--set pace.dely: there is no option `dely` in [pace]; did you mean `delay`?",
        ]
    );
}

#[test]
fn a_file_that_is_not_there_is_told() {
    let refused = load(Some(Path::new("/not-there.toml")), [], &Flags::default()).unwrap_err().to_string();
    assert_eq!(
        refused,
        "cannot read the configuration /not-there.toml: No such file or directory (os error 2)"
    );
}
