//! Runs every fuzz target for a moment: over the examples in `testdata/corpus/TARGET/`, and over mutations of them that are the
//! same every time. Hours of it, guided by coverage, are for `fuzz/`.
//!
//! What a fuzzer finds is kept as a file in the corpus, and stays found.

use std::panic::catch_unwind;
use std::path::Path;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use trapline_extract::fuzz::TARGETS;

/// CPU time a target.
const RUN: Duration = Duration::from_millis(1_500);

/// However slow the machine is.
const MUTATIONS_MIN: usize = 300;

/// Bytes that mean something.
const ODD: &[u8] = b"\0\n\r<>&;:*$/%#\"' \xff";

const INPUT_BYTES_MAX: usize = 16 << 10;

#[test]
fn every_target_holds_for_its_corpus_and_mutations_of_it() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/corpus");
    for (name, target) in TARGETS {
        let examples = examples(&corpus.join(name));
        assert!(!examples.is_empty(), "{name} has no examples");
        examples.iter().for_each(|(file, example)| run(name, *target, example, file));
        let mut draw = Draw(0x7261_706c);
        let begun = cpu();
        let mut count = 0;
        while count < MUTATIONS_MIN || cpu().saturating_sub(begun) < RUN {
            let mutation = mutate(&examples, &mut draw);
            run(name, *target, &mutation, &format!("mutation {count}"));
            count += 1;
        }
    }
}

/// A target that panics shows the bytes that made it.
fn run(name: &str, target: fn(&[u8]), input: &[u8], what: &str) {
    if catch_unwind(|| target(input)).is_err() {
        panic!("{name} does not hold for {what}, {} bytes: b\"{}\"", input.len(), input.escape_ascii());
    }
}

fn examples(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.expect("the folder can be listed").path()).collect();
    files.sort();
    files
        .iter()
        .map(|file| (file.display().to_string(), std::fs::read(file).expect("an example can be read")))
        .collect()
}

fn mutate(examples: &[(String, Vec<u8>)], draw: &mut Draw) -> Vec<u8> {
    let mut bytes = examples[draw.below(examples.len())].1.clone();
    for _ in 0..=draw.below(6) {
        let place = draw.below(bytes.len() + 1);
        let end = (place + 1 + draw.below(24)).min(bytes.len());
        match draw.below(8) {
            0 if place < bytes.len() => bytes[place] ^= 1 << draw.below(8),
            1 if place < bytes.len() => bytes[place] = draw.below(256) as u8,
            2 => bytes.insert(place, ODD[draw.below(ODD.len())]),
            3 => drop(bytes.drain(place..end)),
            4 => {
                let piece = bytes[place..end].to_vec();
                for _ in 0..=draw.below(30) {
                    bytes.splice(place..place, piece.iter().copied());
                }
            }
            5 => bytes.truncate(place),
            6 => {
                let other = &examples[draw.below(examples.len())].1;
                let from = draw.below(other.len() + 1);
                let piece = other[from..(from + draw.below(200)).min(other.len())].to_vec();
                bytes.splice(place..place, piece);
            }
            _ => {
                let piece = bytes[place..end].to_vec();
                let to = draw.below(bytes.len() + 1);
                bytes.splice(to..to, piece);
            }
        }
    }
    bytes.truncate(INPUT_BYTES_MAX);
    bytes
}

/// Numbers that look random and are the same every time.
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}
