//! A website for nginx to serve. Not where it is: that is the server's choice.

use std::fmt::Write;
use std::path::{Path, PathBuf};

/// A website: a name, and the folder whose files it serves.
#[derive(Clone, Debug)]
pub struct Site {
    pub(crate) name: String,
    pub(crate) root: PathBuf,
    pub(crate) robots: Option<String>,
    pub(crate) lines: Vec<String>,
}

/// What files are, by the ends of their names: those that a crawler reads, and a few that it does not.
const TYPES: &str = "text/html html htm; text/css css; text/plain txt; text/xml xml; application/javascript js; \
     application/json json; image/gif gif; image/png png; image/jpeg jpg jpeg; image/svg+xml svg; image/x-icon ico; \
     application/pdf pdf; application/gzip gz;";

impl Site {
    /// All files below a folder; `index.html` for a folder in it.
    pub fn new(name: &str, root: &Path) -> Self {
        Self { name: name.to_owned(), root: root.to_owned(), robots: None, lines: Vec::new() }
    }

    /// A line of nginx's configuration for this site, such as `location /old/ { return 301 /new/; }`.
    pub fn line(mut self, line: &str) -> Self {
        self.lines.push(line.to_owned());
        self
    }

    /// Its robots.txt. Defaults to what the folder has.
    pub fn robots(mut self, text: &str) -> Self {
        self.robots = Some(text.to_owned());
        self
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its part of `nginx.conf`, with `robots` the file that its robots.txt was written to.
    pub(crate) fn configuration(&self, listen: &str, robots: &Path) -> String {
        let mut text = format!(
            "server {{\nlisten {listen};\nserver_name {};\nroot \"{}\";\nindex index.html;\ntypes {{ {TYPES} }}\n",
            self.name,
            self.root.display()
        );
        if self.robots.is_some() {
            let _ = writeln!(text, "location = /robots.txt {{ alias \"{}\"; }}", robots.display());
        }
        for line in &self.lines {
            text.push_str(line);
            text.push('\n');
        }
        text.push_str("}\n");
        text
    }
}
