//! Standard input, line by line: text or JSON. A line that cannot be read is named and does not stop the rest.

use std::io::{self, BufRead, BufReader, Read};

use super::fields::Fields;

/// The longest line that is read: a request with a large body fits, a file that has no lines does not.
const LINE_BYTES_MAX: u64 = 16 << 20;

/// FNV-1a: not against a forger, only against a mistake.
const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;

/// The lines of some input, counted from 1. Blank ones are passed over.
pub(super) struct Lines<R> {
    input: BufReader<R>,
    /// What messages call it.
    name: String,
    /// The longest line that is read.
    bytes_max: u64,
    number: u64,
    line_bytes: usize,
    hash: u64,
}

/// What a line says.
#[derive(Debug)]
pub(super) enum Line {
    Text(String),
    Json(Fields),
}

/// A line's number, and what it says or what is wrong with it.
pub(super) type Numbered = (u64, Result<Line, String>);

impl<R: Read> Lines<R> {
    pub(super) fn new(input: R) -> Self {
        Self::of(input, "standard input".to_owned(), LINE_BYTES_MAX)
    }

    /// The lines of an input that is called so, up to a length.
    pub(super) fn of(input: R, name: String, bytes_max: u64) -> Self {
        let input = BufReader::with_capacity(1 << 16, input);
        Self { input, name, bytes_max, number: 0, line_bytes: 0, hash: FNV_START }
    }

    /// How long the line was that was read last.
    pub(super) fn line_bytes(&self) -> usize {
        self.line_bytes
    }

    /// A hash of all lines that were read, to recognize a file by.
    pub(super) fn hash(&self) -> u64 {
        self.hash
    }

    /// Waits until there is something to read, or an end of it. A store that is opened only then can be given the
    /// answers of a command that holds it until it answers.
    pub(super) fn wait(&mut self) -> Result<(), String> {
        self.input.fill_buf().map(drop).map_err(|error| cannot_read(&self.name, &error))
    }

    /// The next line with its number, read or with what is wrong with it; None at the end.
    pub(super) fn next(&mut self) -> Result<Option<Numbered>, String> {
        loop {
            let mut line = Vec::new();
            let cannot_read = |error| cannot_read(&self.name, &error);
            let mut bounded = (&mut self.input).take(self.bytes_max);
            if bounded.read_until(b'\n', &mut line).map_err(cannot_read)? == 0 {
                return Ok(None);
            }
            self.number += 1;
            self.line_bytes = line.len();
            self.hash =
                line.iter().fold(self.hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(FNV_PRIME));
            if line.len() as u64 == self.bytes_max && line.last() != Some(&b'\n') {
                self.input.skip_until(b'\n').map_err(cannot_read)?;
                let problem = format!("it is longer than {} bytes", self.bytes_max);
                return Ok(Some((self.number, Err(problem))));
            }
            let line = match std::str::from_utf8(&line) {
                Ok(line) => line.trim(),
                Err(_) => return Ok(Some((self.number, Err("it is not text in UTF-8".to_owned())))),
            };
            if !line.is_empty() {
                return Ok(Some((self.number, read(line))));
            }
        }
    }
}

fn read(line: &str) -> Result<Line, String> {
    if line.starts_with('{') { Fields::read(line).map(Line::Json) } else { Ok(Line::Text(line.to_owned())) }
}

fn cannot_read(name: &str, error: &io::Error) -> String {
    format!("cannot read {name}: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_lines_have_their_number_and_the_rest_is_read() {
        let mut input = b"http://a.example/\r\n\n{\"url\":1}\n{broken\n\xff\n".to_vec();
        input.extend(std::iter::repeat_n(b'x', 17 << 20));
        input.extend(b"\nlast");
        let mut lines = Lines::new(&*input);
        let mut told = Vec::new();
        while let Some((number, line)) = lines.next().unwrap() {
            told.push(match line {
                Ok(Line::Text(text)) => format!("{number} {text}"),
                Ok(Line::Json(_)) => format!("{number} json"),
                Err(problem) => format!("{number} {problem}"),
            });
        }
        assert_eq!(
            told,
            [
                "1 http://a.example/",
                "3 json",
                "4 it is not JSON: key must be a string at line 1 column 2",
                "5 it is not text in UTF-8",
                "6 it is longer than 16777216 bytes",
                "7 last",
            ]
        );
    }
}
