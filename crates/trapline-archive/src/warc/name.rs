//! What WARC files are called: a template, filled in with what this machine knows. Nothing of it comes from a URL.

use std::fmt;

use trapline_core::{Civil, Timestamp};

/// What can stand in braces.
const VARIABLES: [&str; 5] = ["prefix", "timestamp", "serial", "host", "pid"];

/// The longest name: what file systems allow, less what is put behind it.
const BYTES_MAX: usize = 200;

/// A template for names, such as `{prefix}-{timestamp}-{serial}-{host}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameTemplate {
    template: String,
    prefix: String,
}

impl Default for NameTemplate {
    fn default() -> Self {
        Self { template: "{prefix}-{timestamp}-{serial}-{host}".to_owned(), prefix: "trapline".to_owned() }
    }
}

impl NameTemplate {
    /// The same with another prefix.
    pub fn with_prefix(self, prefix: &str) -> Result<Self, String> {
        if prefix.is_empty() || !prefix.chars().all(is_fit) || prefix.starts_with('.') {
            return Err(format!(
                "`{prefix}` is no prefix: use letters, digits, `-`, `_`, `.` and `~`, and no `.` at the beginning"
            ));
        }
        let changed = Self { prefix: prefix.to_owned(), ..self };
        changed.check()?;
        Ok(changed)
    }

    /// The same with another template.
    pub fn with_template(self, template: &str) -> Result<Self, String> {
        let changed = Self { template: template.to_owned(), ..self };
        changed.check()?;
        Ok(changed)
    }

    fn check(&self) -> Result<(), String> {
        let Self { template, .. } = self;
        let mut rest = template.as_str();
        while let Some((before, after)) = rest.split_once('{') {
            let (name, after) =
                after.split_once('}').ok_or_else(|| format!("`{template}` has a `{{` without a `}}`"))?;
            if !VARIABLES.contains(&name) {
                return Err(format!(
                    "`{{{name}}}` in `{template}` means nothing; there is {{{}}}",
                    VARIABLES.join("}, {")
                ));
            }
            check_letters(template, before)?;
            rest = after;
        }
        check_letters(template, rest)?;
        if !template.contains("{serial}") {
            return Err(format!("`{template}` has no {{serial}}: all files would have one name"));
        }
        if template.starts_with('.') {
            return Err(format!("`{template}` begins with a `.`, so that the files would be hidden"));
        }
        if template.len() + self.prefix.len() > BYTES_MAX {
            return Err(format!("names of more than {BYTES_MAX} letters do not fit into file systems"));
        }
        Ok(())
    }

    /// A name, without what tells its kind.
    pub(super) fn fill(&self, at: Timestamp, serial: u64, host: &str) -> String {
        let Civil { year, month, day, hour, minute, second, millisecond } = at.into();
        let timestamp = format!("{year:04}{month:02}{day:02}{hour:02}{minute:02}{second:02}{millisecond:03}");
        self.template
            .replace("{prefix}", &self.prefix)
            .replace("{timestamp}", &timestamp)
            .replace("{serial}", &format!("{serial:05}"))
            .replace("{host}", host)
            .replace("{pid}", &std::process::id().to_string())
    }
}

impl fmt::Display for NameTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.template)
    }
}

fn check_letters(template: &str, part: &str) -> Result<(), String> {
    match part.chars().find(|c| !is_fit(*c)) {
        None => Ok(()),
        Some(c) => Err(format!(
            "{c:?} cannot be in the name of a file: `{template}` may have letters, digits, `-`, `_`, `.`, `~` and variables"
        )),
    }
}

/// Whether a letter is harmless in the name of a file, everywhere.
pub(super) fn is_fit(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '~')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_filled_in() {
        let at = Timestamp::from_millis(951_782_400_123);
        assert_eq!(
            NameTemplate::default().fill(at, 7, "crawler"),
            "trapline-20000229000000123-00007-crawler"
        );
        let other = NameTemplate::default()
            .with_prefix("news")
            .unwrap()
            .with_template("{serial}.{prefix}~{timestamp}")
            .unwrap();
        assert_eq!(other.fill(at, 123_456, "x"), "123456.news~20000229000000123");
    }

    #[test]
    fn what_makes_no_name_is_refused() {
        let check = |template: &str, told: &str| {
            let error = NameTemplate::default().with_template(template).unwrap_err();
            assert!(error.contains(told), "{template}: {error}");
        };
        check("x", "no {serial}");
        check("../{serial}", "cannot be in the name of a file");
        check("a b{serial}", "cannot be in the name of a file");
        check("{url}-{serial}", "means nothing");
        check("{serial", "without a `}`");
        check("{serial}\0", "cannot be in the name of a file");
        check(".{serial}", "hidden");
        check(&format!("{{serial}}{}", "x".repeat(300)), "do not fit");
        for bad in ["", "..", "a/b", "ü", "a\n"] {
            assert!(NameTemplate::default().with_prefix(bad).unwrap_err().contains("is no prefix"), "{bad}");
        }
    }
}
