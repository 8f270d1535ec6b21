//! What somebody has steered: options set for a crawl while it runs. They stay on top of the configuration, also after a restart, until
//! they are forgotten.

use trapline_core::{HostPattern, Timestamp};
use trapline_frontier::{CrawlChange, Frontier, NoteWrite, Query, Rows, Scan, StoreError};

use super::reloading::is_fixed;
use crate::config::sections::HostOverride;
use crate::config::{self, FileConfig, Flags, Text};

/// The note in which it is kept.
const NOTE: &str = "steered";

/// What was steered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Steered {
    /// Options with their values; the last one counts.
    options: Vec<(String, String)>,
    /// Of some hosts: which hosts, the option, its value.
    hosts: Vec<(String, String, String)>,
}

impl Steered {
    /// Options as `--set` takes them, for all hosts or for some.
    pub(crate) fn of(assignments: &[String], hosts: Option<&str>) -> Result<Self, String> {
        let mut steered = Self::default();
        for assignment in assignments {
            let (option, value) = assignment
                .split_once('=')
                .map(|(option, value)| (option.trim(), value.trim()))
                .filter(|(option, _)| !option.is_empty())
                .ok_or_else(|| {
                    format!("`{assignment}` sets nothing: write OPTION=VALUE, such as pace.delay=2s")
                })?;
            if [option, value, hosts.unwrap_or_default()].iter().any(|text| text.contains(['\n', '\r', '\t']))
            {
                return Err(format!("`{}` must be on one line, without tabs", assignment.escape_debug()));
            }
            if hosts.is_none() && is_fixed(option) {
                return Err(format!(
                    "`{option}` cannot be steered: it is fixed when a crawl begins, or a run of it"
                ));
            }
            match hosts {
                None => steered.options.push((option.to_owned(), value.to_owned())),
                Some(hosts) => {
                    steered.hosts.push((hosts.to_owned(), option.to_owned(), value.to_owned()));
                }
            }
        }
        Ok(steered)
    }

    /// Whether an option was steered.
    pub(crate) fn sets(&self, option: &str) -> bool {
        self.options.iter().any(|(set, _)| set == option)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.options.is_empty() && self.hosts.is_empty()
    }

    /// This, with what was steered later.
    pub(crate) fn and(mut self, later: Self) -> Self {
        for (option, value) in later.options {
            self.options.retain(|(other, _)| *other != option);
            self.options.push((option, value));
        }
        for (hosts, option, value) in later.hosts {
            self.hosts.retain(|(other, set, _)| (other, set) != (&hosts, &option));
            self.hosts.push((hosts, option, value));
        }
        self
    }

    /// The configuration with it on top. `load` reads the configuration, with further flags.
    pub(crate) fn apply(
        &self,
        load: &dyn Fn(&Flags) -> Result<FileConfig, String>,
    ) -> Result<FileConfig, String> {
        let config = self.put_onto(load(&self.flags())?)?;
        config::checked(config).map_err(|refused| refused.to_string())
    }

    /// Whether each of its values can be meant by itself: nobody knows yet what the configuration will be.
    pub(crate) fn check(&self) -> Result<FileConfig, String> {
        self.put_onto(config::read_flags(&self.flags()).map_err(|refused| refused.to_string())?)
    }

    fn flags(&self) -> Flags {
        let options: Vec<_> =
            self.options.iter().map(|(option, value)| format!("{option}={value}")).collect();
        Flags::default().set(&options)
    }

    /// Sets what was steered for hosts: onto the entry for just those, or in one of its own.
    fn put_onto(&self, mut config: FileConfig) -> Result<FileConfig, String> {
        for (name, table) in self.entries() {
            let hosts: HostPattern = config::Text::of(&name)?;
            let named = config.lists.host.iter().position(|host| host.hosts.text() == hosts.text());
            let host = named.map(|place| config.lists.host.remove(place)).unwrap_or_default();
            let host = HostOverride { hosts, ..host };
            config
                .lists
                .host
                .push(config::with_options(host, &table).map_err(|refused| refused.to_string())?);
        }
        Ok(config)
    }

    /// What was steered for hosts: which, and a table of options.
    fn entries(&self) -> Vec<(String, String)> {
        let mut names: Vec<&str> = Vec::new();
        for (hosts, ..) in &self.hosts {
            if !names.contains(&hosts.as_str()) {
                names.push(hosts);
            }
        }
        let entry = |name: &str| {
            let of_it = self.hosts.iter().filter(|(hosts, ..)| hosts == name);
            let pairs = of_it.map(|(_, option, value)| format!("{option} = {}", as_toml(value)));
            (name.to_owned(), format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", ")))
        };
        names.into_iter().map(entry).collect()
    }

    /// For people, a line each.
    pub(crate) fn lines(&self) -> Vec<String> {
        let options = self.options.iter().map(|(option, value)| format!("{option}={value}"));
        let hosts = self.hosts.iter().map(|(hosts, option, value)| format!("{hosts}: {option}={value}"));
        options.chain(hosts).collect()
    }

    /// What is kept of it.
    pub(crate) fn note(&self) -> NoteWrite {
        let value = (!self.is_empty()).then(|| self.write().into_bytes());
        NoteWrite { key: NOTE.to_owned(), value, expires: None }
    }

    /// A line for each, its parts between tabs: option and value, or hosts, option and value.
    pub(crate) fn write(&self) -> String {
        let options = self.options.iter().map(|(option, value)| format!("{option}\t{value}\n"));
        let hosts = self.hosts.iter().map(|(hosts, option, value)| format!("{hosts}\t{option}\t{value}\n"));
        options.chain(hosts).collect()
    }

    /// What is no such line does not count.
    pub(crate) fn read(text: &str) -> Self {
        let mut steered = Self::default();
        for line in text.lines() {
            match line.split('\t').collect::<Vec<_>>()[..] {
                [option, value] => steered.options.push((option.to_owned(), value.to_owned())),
                [hosts, option, value] => {
                    steered.hosts.push((hosts.to_owned(), option.to_owned(), value.to_owned()));
                }
                _ => {}
            }
        }
        steered
    }

    /// What a crawl has of it.
    pub(crate) async fn load(frontier: &Frontier, now: Timestamp) -> Result<Self, StoreError> {
        let scan = Scan { limit: 1, ..Scan::new(Query::Notes { prefix: NOTE.to_owned() }) };
        let notes = match frontier.scan(now, &scan).await?.rows {
            Rows::Notes(notes) => notes,
            _ => Vec::new(),
        };
        let note = notes.into_iter().find(|note| note.key == NOTE);
        Ok(note.map(|note| Self::read(&String::from_utf8_lossy(&note.value))).unwrap_or_default())
    }

    /// Keeps it for a crawl.
    pub(crate) async fn keep(&self, frontier: &Frontier, now: Timestamp) -> Result<(), StoreError> {
        frontier.steer_crawl(now, CrawlChange::Note(self.note())).await.map(|_| ())
    }
}

/// A value as it would stand in a file: quoted, unless it is a number, a switch, a list or a table.
fn as_toml(value: &str) -> String {
    let is_one = |first: char| matches!(first, '[' | '{' | '"' | '\'');
    let is_word = matches!(value, "true" | "false");
    let digits = value.strip_prefix('-').unwrap_or(value);
    let is_number = digits.starts_with(|first: char| first.is_ascii_digit())
        && digits.chars().all(|digit| digit.is_ascii_digit() || digit == '.');
    if is_word || is_number || value.starts_with(is_one) { value.to_owned() } else { quoted(value) }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(assignments: &[&str], hosts: Option<&str>) -> Steered {
        let assignments: Vec<_> = assignments.iter().map(|text| (*text).to_owned()).collect();
        Steered::of(&assignments, hosts).unwrap()
    }

    fn load(flags: &Flags) -> Result<FileConfig, String> {
        config::load(None, [], flags).map(|loaded| loaded.config).map_err(|refused| refused.to_string())
    }

    #[test]
    fn the_last_word_counts_and_all_of_it_is_kept() {
        let steered = set(&["pace.delay=2s", "strategy.name=lifo"], None)
            .and(set(&["delay=5s", "budget=100"], Some("*.example.org")))
            .and(set(&["pace.delay=3s"], None))
            .and(set(&["budget=7"], Some("*.example.org")))
            .and(set(&["user_agent=A \"B\" \\ C"], Some("a.test")));
        assert_eq!(
            steered.lines(),
            [
                "strategy.name=lifo",
                "pace.delay=3s",
                "*.example.org: delay=5s",
                "*.example.org: budget=7",
                "a.test: user_agent=A \"B\" \\ C"
            ]
        );
        assert_eq!(Steered::read(&steered.write()), steered);
        let config = steered.apply(&load).unwrap();
        assert_eq!(config.pace.delay.as_secs(), 3);
        assert_eq!(config.strategy.name, "lifo");
        let host = &config.lists.host[0];
        assert_eq!((host.delay.map(|delay| delay.as_secs()), host.budget), (Some(5), Some(7)));
        assert_eq!(config.lists.host[1].user_agent.as_deref(), Some("A \"B\" \\ C"));
    }

    /// What a file says of hosts stays, but for what was steered.
    #[test]
    fn entries_of_the_file_are_changed_and_not_replaced() {
        let file = |more: &Flags| {
            let entry = "host=[{ match = \"a.test\", delay = \"9s\", budget = 5 }, { match = \"b.test\" }]";
            load(&Flags::default().set(&[entry.to_owned()]).and(more.clone()))
        };
        let config = set(&["delay=2s"], Some("a.test")).apply(&file).unwrap();
        let host = config.lists.host.iter().find(|host| host.hosts.text() == "a.test").unwrap();
        assert_eq!((host.delay.map(|delay| delay.as_secs()), host.budget), (Some(2), Some(5)));
        assert_eq!(config.lists.host.len(), 2);
    }

    #[test]
    fn mistakes_are_told_as_everywhere() {
        for (steered, message) in [
            (set(&["pace.dely=2s"], None), "did you mean `delay`?"),
            (set(&["pace.delay=soon"], None), "is not a duration"),
            (set(&["strategy.name=nonsense"], None), "there is no strategy `nonsense`"),
            (set(&["dely=2s"], Some("a.test")), "there is no `dely` here; did you mean `delay`?"),
            (set(&["delay=2s"], Some("a b\" }")), "a b"),
            (set(&["robots=most_favored"], Some("a.test")), "robots.agents"),
        ] {
            let error = steered.apply(&load).unwrap_err();
            assert!(error.contains(message), "{error} has no {message}");
        }
        // By itself it may be right: who knows what the configuration has.
        assert!(set(&["robots=most_favored"], Some("a.test")).check().is_ok());
        assert!(set(&["dely=2s"], Some("a.test")).check().is_err());
        for bad in [
            "",
            "=x",
            "pace.delay",
            "a=b\nc",
            "a=b\tc",
            "output.dir=x",
            "crawl.store=memory:",
            "queue.order=lifo",
        ] {
            assert!(Steered::of(&[bad.to_owned()], None).is_err(), "{bad:?}");
        }
        assert_eq!(Steered::read("x\n\n\ta\tb\tc\td\n"), Steered::default());
    }
}
