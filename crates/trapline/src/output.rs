//! How answers are printed: as tables for people, as one JSON object a line for programs, or as CSV for spreadsheets.
//!
//! A row is a list of names and values, in order. What a table has no room for is only in the JSON.

use std::io::{self, BufWriter, Stdout, Write};

use serde_json::Value;

/// One thing that is told of, value by value.
pub(crate) type Row = Vec<(&'static str, Value)>;

/// How answers are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
    /// Comma-separated values, with a line of names first.
    Csv,
}

/// No column is made wider for what is in it; longer cells stand out.
const WIDTH_MAX: usize = 200;

/// Standard output.
pub(crate) struct Output {
    format: Format,
    out: BufWriter<Stdout>,
    /// Set once nothing can be written any more.
    failed: Option<io::Error>,
    /// How wide the columns of the table were so far; empty before its head.
    widths: Vec<usize>,
}

impl Output {
    pub(crate) fn new(json: bool) -> Self {
        Self::of(if json { Format::Json } else { Format::Text })
    }

    pub(crate) fn of(format: Format) -> Self {
        Self { format, out: BufWriter::new(io::stdout()), failed: None, widths: Vec::new() }
    }

    /// Whether programs read it.
    pub(crate) fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    /// Whether nobody reads on.
    pub(crate) fn is_closed(&self) -> bool {
        self.failed.is_some()
    }

    /// Prints more rows of a table that has these columns, where people read it; programs are told all.
    pub(crate) fn rows(&mut self, columns: &[&str], rows: &[Row]) {
        match self.format {
            Format::Json => return rows.iter().for_each(|row| self.object(row)),
            Format::Csv => return rows.iter().for_each(|row| self.record(row)),
            Format::Text => {}
        }
        let mut cells: Vec<Vec<String>> = Vec::new();
        if self.widths.is_empty() && !rows.is_empty() {
            self.widths = vec![0; columns.len()];
            cells.push(columns.iter().map(|name| name.to_uppercase().replace('_', " ")).collect());
        }
        cells.extend(rows.iter().map(|row| columns.iter().map(|name| cell_of(row, name)).collect()));
        for line in &cells {
            for (width, cell) in self.widths.iter_mut().zip(line) {
                *width = (*width).max(cell.chars().count().min(WIDTH_MAX));
            }
        }
        for line in &cells {
            let padded = line.iter().zip(&self.widths).map(|(cell, width)| format!("{cell:<width$}"));
            let padded = padded.collect::<Vec<_>>().join("  ");
            self.line(padded.trim_end());
        }
    }

    /// Prints one thing, a line for each of its values, and for each of several.
    pub(crate) fn card(&mut self, row: &Row) {
        match self.format {
            Format::Json => return self.object(row),
            Format::Csv => return self.record(row),
            Format::Text => {}
        }
        let width = row.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, value) in row {
            let values = match value {
                Value::Array(values) if !values.is_empty() => values.as_slice(),
                value => std::slice::from_ref(value),
            };
            let mut name = name.replace('_', " ");
            for value in values {
                self.line(format!("{name:<width$}  {}", cell(value)).trim_end());
                name.clear();
            }
        }
    }

    /// Prints one JSON object, whatever was asked for.
    pub(crate) fn object(&mut self, row: &Row) {
        self.line(&as_object(row));
    }

    /// Prints one line of CSV, and before the first one the names.
    fn record(&mut self, row: &Row) {
        if self.widths.is_empty() {
            self.widths = vec![0; row.len()];
            let names: Vec<_> = row.iter().map(|(name, _)| (*name).to_owned()).collect();
            self.line(&names.join(","));
        }
        let values: Vec<_> = row.iter().map(|(_, value)| csv(value)).collect();
        self.line(&values.join(","));
    }

    /// Prints a sentence, for people only.
    pub(crate) fn say(&mut self, sentence: &str) {
        if self.format == Format::Text {
            self.line(sentence);
        }
    }

    /// Lets people and programs see what was printed so far.
    pub(crate) fn flush(&mut self) {
        if self.failed.is_none() {
            self.failed = self.out.flush().err();
        }
    }

    fn line(&mut self, line: &str) {
        if self.failed.is_none() {
            self.failed = writeln!(self.out, "{line}").err();
        }
    }

    /// Ends printing. That somebody has read enough is no failure.
    pub(crate) fn finish(mut self) -> Result<(), String> {
        let failed = self.failed.take().or_else(|| self.out.flush().err());
        match failed.filter(|error| error.kind() != io::ErrorKind::BrokenPipe) {
            None => Ok(()),
            Some(error) => {
                Err(format!("cannot write to standard output: {error}; what was asked for is done"))
            }
        }
    }
}

/// A row as a JSON object.
pub(crate) fn as_object(row: &Row) -> String {
    let pairs: Vec<_> = row.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    format!("{{{}}}", pairs.join(","))
}

fn cell_of(row: &Row, column: &str) -> String {
    row.iter().find(|(name, _)| *name == column).map_or_else(|| "-".to_owned(), |(_, value)| cell(value))
}

/// A value as people read it.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::Bool(yes) => (if *yes { "yes" } else { "no" }).to_owned(),
        Value::String(text) => plain(text),
        Value::Array(values) if values.is_empty() => "-".to_owned(),
        Value::Object(pairs) if pairs.is_empty() => "-".to_owned(),
        Value::Array(values) => values.iter().map(cell).collect::<Vec<_>>().join(", "),
        Value::Object(pairs) => {
            let pairs = pairs.iter().map(|(name, value)| format!("{}: {}", plain(name), cell(value)));
            pairs.collect::<Vec<_>>().join(", ")
        }
        Value::Number(number) => number.to_string(),
    }
}

/// A value in CSV. Text from the web must not become a formula in somebody's spreadsheet, so that what begins like one has an
/// apostrophe in front.
fn csv(value: &Value) -> String {
    let text = match value {
        Value::Null => return String::new(),
        Value::Bool(_) | Value::Number(_) => return value.to_string(),
        Value::String(text) if text.starts_with(['=', '+', '-', '@', '\t', '\r']) => format!("'{text}"),
        Value::String(text) => text.clone(),
        Value::Array(_) | Value::Object(_) => value.to_string(),
    };
    if text.contains(['"', ',', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

/// Text from the web must not steer the terminal.
pub(crate) fn plain(text: &str) -> String {
    let harmless = |c: char| if steers(c) { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(harmless).collect()
}

/// Whether a character does something to those around it: moves, turns, breaks or hides them.
fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// A text as one word of a command that somebody may paste: in quotes, if a shell would make something else of it.
pub(crate) fn pasted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@%+=,".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", plain(text).replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_told_in_words_and_cannot_steer_the_terminal() {
        let check = |value: Value, expected: &str| assert_eq!(cell(&value), expected);
        check(json!(null), "-");
        check(json!(true), "yes");
        check(json!(12), "12");
        check(json!({"pending": 1, "leased": 2}), "leased: 2, pending: 1");
        check(json!(["a", "b"]), "a, b");
        check(json!([]), "-");
        check(json!({}), "-");
        check(json!("a\u{1b}[2Jb\n"), "a\\u{1b}[2Jb\\n");
        check(json!("a\u{202e}b\u{2028}"), "a\\u{202e}b\\u{2028}");
        check(json!("עברית ä 👩"), "עברית ä 👩");
    }

    #[test]
    fn csv_keeps_any_value_in_its_cell() {
        let check = |value: Value, expected: &str| assert_eq!(csv(&value), expected);
        check(json!(null), "");
        check(json!(-3), "-3");
        check(json!(true), "true");
        check(json!("plain"), "plain");
        check(json!("a,b"), "\"a,b\"");
        check(json!("a\"b\nc"), "\"a\"\"b\nc\"");
        check(json!("=1+cmd|'x'"), "'=1+cmd|'x'");
        check(json!("@a,b"), "\"'@a,b\"");
        check(json!({"a": 1}), "\"{\"\"a\"\":1}\"");
    }

    #[test]
    fn what_is_pasted_is_one_word() {
        assert_eq!(pasted("disk:/a/b-c_1.d"), "disk:/a/b-c_1.d");
        assert_eq!(pasted("disk:a?durability=interval&period=1s"), "'disk:a?durability=interval&period=1s'");
        assert_eq!(pasted("disk:it's"), r"'disk:it'\''s'");
        assert_eq!(pasted(""), "''");
    }
}
