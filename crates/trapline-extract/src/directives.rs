//! What a page asks of robots: `<meta name="robots">`, the same for one agent by name, and `X-Robots-Tag` headers. Not
//! robots.txt, which is asked before a page is fetched.

/// What a page asks of a robot.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Directives {
    /// Not to be in an index (`noindex`, or `none`).
    pub noindex: bool,
    /// Links not to be followed (`nofollow`, or `none`).
    pub nofollow: bool,
    /// No copy to be shown (`noarchive`, `nocache`).
    pub noarchive: bool,
    /// No excerpt to be shown (`nosnippet`).
    pub nosnippet: bool,
    /// Images not to be indexed (`noimageindex`).
    pub noimageindex: bool,
    /// Not to be shown after this moment, as it was written (`unavailable_after`).
    pub unavailable_after: Option<String>,
    /// Whatever else was asked, in lower case, each once: `notranslate`, `max-snippet:20`, `noai`.
    pub others: Vec<String>,
}

impl Directives {
    fn merge(&mut self, other: &Self) {
        self.noindex |= other.noindex;
        self.nofollow |= other.nofollow;
        self.noarchive |= other.noarchive;
        self.nosnippet |= other.nosnippet;
        self.noimageindex |= other.noimageindex;
        if self.unavailable_after.is_none() {
            self.unavailable_after.clone_from(&other.unavailable_after);
        }
        for directive in &other.others {
            if !self.others.contains(directive) {
                self.others.push(directive.clone());
            }
        }
    }

    /// Takes one directive, in lower case. False if it asks for nothing.
    fn take(&mut self, name: &str, value: Option<&str>) -> bool {
        match name {
            "noindex" => self.noindex = true,
            "nofollow" => self.nofollow = true,
            "none" => (self.noindex, self.nofollow) = (true, true),
            "noarchive" | "nocache" => self.noarchive = true,
            "nosnippet" => self.nosnippet = true,
            "noimageindex" => self.noimageindex = true,
            "unavailable_after" => match value {
                Some(value) if self.unavailable_after.is_none() => {
                    self.unavailable_after = Some(value.to_owned());
                }
                _ => return value.is_some(),
            },
            "" | "all" | "index" | "follow" | "archive" => return false,
            _ => {
                let directive = value.map_or_else(|| name.to_owned(), |value| format!("{name}:{value}"));
                if self.others.len() < OTHERS_MAX && !self.others.contains(&directive) {
                    self.others.push(directive);
                }
            }
        }
        true
    }
}

/// More directives that we do not know are of no interest.
const OTHERS_MAX: usize = 16;

/// Directives whose value follows a colon: before it stands no agent.
const VALUED: [&str; 4] = ["unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"];

/// What a page asks of which robots.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct PageRobots {
    /// Of everyone.
    pub everyone: Directives,
    /// Of robots by name, in lower case, in the order of their first mention.
    pub agents: Vec<(String, Directives)>,
}

impl PageRobots {
    /// What is asked of the robot of this name: what is asked of everyone and what is asked of it alone, together.
    ///
    /// Names compare without case, and up to a `/`, so that `Trapline/1.0` is `trapline`.
    pub fn of(&self, agent: &str) -> Directives {
        let agent = agent.split('/').next().unwrap_or_default().trim();
        let mut directives = self.everyone.clone();
        for (name, its) in &self.agents {
            if name.eq_ignore_ascii_case(agent) {
                directives.merge(its);
            }
        }
        directives
    }

    /// Takes the content of a `meta` element of this name, `robots` or that of an agent. Any name may be an agent's, so
    /// other names count if they have a directive that we know. False if there was no room for one more agent.
    pub(crate) fn meta(&mut self, name: &str, content: &str, agents_max: usize) -> bool {
        let name = name.trim();
        if name.eq_ignore_ascii_case("robots") {
            for (directive, value) in split(content) {
                self.everyone.take(&directive, value.as_deref());
            }
            return true;
        }
        // Prose about robots must not make an agent, and a name like `description` does no harm.
        let found = split(content);
        let known = |directive: &str| KNOWN.contains(&directive) || VALUED.contains(&directive);
        if found.is_empty() || !found.iter().all(|(directive, _)| known(directive)) {
            return true;
        }
        match self.agent(name, agents_max) {
            Some(directives) => {
                for (directive, value) in found {
                    directives.take(&directive, value.as_deref());
                }
                true
            }
            None => false,
        }
    }

    /// Takes the value of an `X-Robots-Tag` header: directives, perhaps after the name of an agent and a colon. False if
    /// there was no room for one more agent.
    pub(crate) fn header(&mut self, value: &str, agents_max: usize) -> bool {
        let mut agent: Option<String> = None;
        let mut all_fit = true;
        for (name, value) in split(value) {
            let (name, value) = match value {
                Some(value) if !VALUED.contains(&&name[..]) => {
                    agent = Some(name);
                    // The first directive of this agent stood behind its colon, perhaps with a value of its own.
                    match value.split_once(':') {
                        Some((name, value)) => {
                            (name.trim().to_ascii_lowercase(), Some(value.trim().to_owned()))
                        }
                        None => (value.to_ascii_lowercase(), None),
                    }
                }
                value => (name, value),
            };
            let directives = match &agent {
                None => Some(&mut self.everyone),
                Some(agent) => self.agent(agent, agents_max),
            };
            match directives {
                Some(directives) => {
                    directives.take(&name, value.as_deref());
                }
                None => all_fit = false,
            }
        }
        all_fit
    }

    fn agent(&mut self, name: &str, agents_max: usize) -> Option<&mut Directives> {
        let place = self.agents.iter().position(|(its, _)| its.eq_ignore_ascii_case(name));
        let place = match place {
            Some(place) => place,
            None if self.agents.len() < agents_max => {
                self.agents.push((name.to_ascii_lowercase(), Directives::default()));
                self.agents.len() - 1
            }
            None => return None,
        };
        self.agents.get_mut(place).map(|(_, directives)| directives)
    }
}

/// What makes a `meta` of any name one for an agent.
const KNOWN: [&str; 14] = [
    "noindex",
    "nofollow",
    "none",
    "noarchive",
    "nocache",
    "nosnippet",
    "noimageindex",
    "notranslate",
    "noai",
    "noimageai",
    "all",
    "index",
    "follow",
    "archive",
];

/// Directives between commas, names in lower case, with what follows their first colon. The comma of a date does not count.
fn split(text: &str) -> Vec<(String, Option<String>)> {
    let mut found: Vec<(String, Option<String>)> = Vec::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        if let Some((name, Some(date))) = found.last_mut()
            && is_begun_date(name, date)
        {
            date.push_str(", ");
            date.push_str(part);
            continue;
        }
        let (name, value) = part.split_once(':').map_or((part, None), |(name, value)| (name, Some(value)));
        found.push((name.trim().to_ascii_lowercase(), value.map(|value| value.trim().to_owned())));
        if found.len() >= PARTS_MAX {
            break;
        }
    }
    found
}

/// Whether this is `unavailable_after` with no more of its date than the day of the week.
fn is_begun_date(name: &str, value: &str) -> bool {
    let (name, date) = match value.split_once(':') {
        Some((name, date)) => (name.trim(), date.trim()),
        None => (name, value),
    };
    name.eq_ignore_ascii_case("unavailable_after")
        && date.len() <= "wednesday".len()
        && date.bytes().all(|byte| byte.is_ascii_alphabetic())
}

/// Nobody asks for more in one line.
const PARTS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meta_is_for_everyone_or_for_an_agent() {
        let mut robots = PageRobots::default();
        robots.meta("ROBOTS", "NoIndex , max-snippet: 20, noai,noai", 10);
        robots.meta("Googlebot", "none", 10);
        robots.meta("description", "How to use noindex, nofollow and others", 10);
        robots.meta("keywords", "", 10);
        assert!(robots.everyone.noindex && !robots.everyone.nofollow);
        assert_eq!(robots.everyone.others, ["max-snippet:20", "noai"]);
        assert_eq!(robots.agents.len(), 1);
        assert!(robots.of("googlebot/2.1").nofollow && robots.of("GoogleBot").noindex);
        assert!(!robots.of("trapline").nofollow && robots.of("trapline").noindex);
    }

    #[test]
    fn headers_may_name_agents_and_hold_dates() {
        let mut robots = PageRobots::default();
        robots.header("unavailable_after: 25 Jun 2010 15:00:00 PST", 10);
        robots.header("nosnippet, otherbot: noarchive, nofollow, trapline: unavailable_after: Fri, 1 Jan 2027 00:00:00 GMT, noindex", 10);
        assert_eq!(robots.everyone.unavailable_after.as_deref(), Some("25 Jun 2010 15:00:00 PST"));
        assert!(robots.everyone.nosnippet && !robots.everyone.nofollow);
        let other = robots.of("otherbot");
        assert!(other.noarchive && other.nofollow && other.nosnippet && !other.noindex);
        let ours = robots.of("Trapline/0.1");
        assert!(ours.noindex && !ours.noarchive);
    }

    #[test]
    fn only_so_many_agents_are_remembered() {
        let mut robots = PageRobots::default();
        assert!(robots.header("a: noindex, b: noindex", 2));
        assert!(!robots.header("c: noindex", 2));
        assert!(!robots.meta("d", "noindex", 2));
        assert!(robots.meta("a", "nofollow", 2));
        assert_eq!(robots.agents.len(), 2);
        assert!(robots.of("a").nofollow);
    }
}
