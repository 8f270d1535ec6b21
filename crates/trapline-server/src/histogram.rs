//! How often something was how much, in buckets whose bounds are fixed.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::exposition::Exposition;

/// The bounds of a histogram's buckets, as they are written and as they are counted.
pub(crate) type Bounds = &'static [(&'static str, u64)];

/// Seconds, counted in microseconds.
pub(crate) const SECONDS: Bounds = &[
    ("0.0001", 100),
    ("0.00025", 250),
    ("0.0005", 500),
    ("0.001", 1_000),
    ("0.0025", 2_500),
    ("0.005", 5_000),
    ("0.01", 10_000),
    ("0.025", 25_000),
    ("0.05", 50_000),
    ("0.1", 100_000),
    ("0.25", 250_000),
    ("1", 1_000_000),
    ("2.5", 2_500_000),
    ("10", 10_000_000),
];

/// Counts of a measure.
pub(crate) struct Histogram {
    bounds: Bounds,
    /// How many of what is counted make one of what is written.
    scale: f64,
    /// One more than there are bounds: what is beyond the last.
    buckets: Vec<AtomicU64>,
    sum: AtomicU64,
}

impl Histogram {
    pub(crate) fn new(bounds: Bounds, scale: f64) -> Self {
        let buckets = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Self { bounds, scale, buckets, sum: AtomicU64::new(0) }
    }

    pub(crate) fn add(&self, much: u64) {
        let place = self.bounds.iter().position(|(_, bound)| much <= *bound).unwrap_or(self.bounds.len());
        self.buckets[place].fetch_add(1, Relaxed);
        self.sum.fetch_add(much, Relaxed);
    }

    pub(crate) fn write(&self, out: &mut Exposition, labels: &[(&str, &str)]) {
        let mut so_far = 0;
        let bounds = self.bounds.iter().map(|(text, _)| *text).chain(["+Inf"]);
        for (bucket, bound) in self.buckets.iter().zip(bounds) {
            so_far += bucket.load(Relaxed);
            let labels: Vec<_> = labels.iter().copied().chain([("le", bound)]).collect();
            out.sample("_bucket", &labels, so_far);
        }
        out.sample("_sum", labels, self.sum.load(Relaxed) as f64 / self.scale);
        out.sample("_count", labels, so_far);
    }
}
