//! How a crawl went over time: so many points at most, whatever its length. When there is no room, every other one goes, and from
//! then on they come half as often. Counters go on counting, so that rates between points that are left stay exact.

use serde_json::{Value, json};

/// How many points there are at most, the last one aside.
const POINTS_MAX: usize = 512;

/// How far apart points are at first.
const PERIOD_MS: u64 = 1000;

/// A moment of a crawl.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Point {
    /// In milliseconds since 1970.
    pub(crate) at_ms: u64,
    /// Of all runs: pages, bytes, visits that are no pages, responses 2xx, 3xx, 4xx and 5xx, requests without one.
    pub(crate) counts: [u64; 8],
    /// URLs pending, fetches in flight, and queues by state, in the order of `QueueState::ALL`.
    pub(crate) gauges: [u64; 9],
}

/// Points in the order of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Series {
    period_ms: u64,
    points: Vec<Point>,
    /// What came after the last of them, too soon to be one.
    latest: Option<Point>,
}

impl Default for Series {
    fn default() -> Self {
        Self { period_ms: PERIOD_MS, points: Vec::new(), latest: None }
    }
}

impl Series {
    /// Takes a point. One that is not later than the last is passed over: a clock was set back.
    pub(crate) fn push(&mut self, point: Point) {
        let last = self.points.last().map(|last| last.at_ms);
        if last.is_some_and(|last| point.at_ms < last) {
            return;
        }
        // A second has its jitter.
        if last.is_some_and(|last| point.at_ms < last + self.period_ms - self.period_ms / 5) {
            self.latest = Some(point);
            return;
        }
        if self.points.len() >= POINTS_MAX {
            let mut index = 0;
            self.points.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.period_ms = self.period_ms.saturating_mul(2);
        }
        self.points.push(point);
        self.latest = None;
    }

    /// All points.
    pub(crate) fn points(&self) -> impl Iterator<Item = &Point> {
        self.points.iter().chain(&self.latest)
    }

    /// Points that are so far apart have a time between them at which nobody crawled.
    pub(crate) fn gap_ms(&self) -> u64 {
        self.period_ms.saturating_mul(4).max(10_000)
    }

    /// What several crawlers have counted together. What is measured is the same for all who share a store, so that the latest
    /// word counts; fetches in flight are each one's own.
    pub(crate) fn together(mut all: Vec<Self>) -> Self {
        if all.len() == 1 {
            return all.remove(0);
        }
        let period_ms = all.iter().map(|one| one.period_ms).max().unwrap_or(PERIOD_MS);
        let mut points: Vec<(usize, Point)> = Vec::new();
        for (crawler, series) in all.iter().enumerate() {
            points.extend(series.points().map(|point| (crawler, *point)));
        }
        points.sort_by_key(|(crawler, point)| (point.at_ms, *crawler));
        let mut last = vec![Point::default(); all.len()];
        let mut sums = Self { period_ms, ..Self::default() };
        for (crawler, point) in points {
            last[crawler] = point;
            let mut sum = point;
            for (place, count) in sum.counts.iter_mut().enumerate() {
                *count = last.iter().map(|one| one.counts[place]).sum();
            }
            let recent = |one: &&Point| one.at_ms + 4 * period_ms >= point.at_ms;
            sum.gauges[1] = last.iter().filter(recent).map(|one| one.gauges[1]).sum();
            sums.push(sum);
        }
        sums
    }

    pub(super) fn json(&self) -> Value {
        let point = |point: &Point| {
            let numbers = [point.at_ms].into_iter().chain(point.counts).chain(point.gauges);
            Value::from(numbers.collect::<Vec<_>>())
        };
        json!({"period_ms": self.period_ms, "points": self.points().map(point).collect::<Vec<_>>()})
    }

    pub(super) fn read(value: &Value) -> Option<Self> {
        let point = |value: &Value| {
            let numbers: Option<Vec<u64>> = value.as_array()?.iter().map(Value::as_u64).collect();
            let numbers = numbers?;
            let (counts, gauges) = numbers.get(1..)?.split_at_checked(8)?;
            Some(Point {
                at_ms: numbers[0],
                counts: counts.try_into().ok()?,
                gauges: gauges.try_into().ok()?,
            })
        };
        let mut series =
            Self { period_ms: value["period_ms"].as_u64().filter(|ms| *ms > 0)?, ..Self::default() };
        for value in value["points"].as_array()? {
            series.push(point(value)?);
        }
        Some(series)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(second: u64, pages: u64) -> Point {
        Point { at_ms: second * 1000, counts: [pages, 0, 0, 0, 0, 0, 0, 0], gauges: [0; 9] }
    }

    #[test]
    fn a_long_crawl_has_few_points_and_its_rates_are_exact() {
        let mut series = Series::default();
        for second in 0..100_000 {
            series.push(point(second, 3 * second));
        }
        let points: Vec<_> = series.points().collect();
        assert!((POINTS_MAX / 2..=POINTS_MAX + 1).contains(&points.len()), "{}", points.len());
        for pair in points.windows(2) {
            let (ms, pages) = (pair[1].at_ms - pair[0].at_ms, pair[1].counts[0] - pair[0].counts[0]);
            assert_eq!(pages * 1000, 3 * ms);
        }
        assert_eq!(points.last().unwrap().at_ms, 99_999_000, "how it stands is always there");
        assert!(series.json().to_string().len() < 64 << 10, "{}", series.json().to_string().len());
        assert_eq!(Series::read(&series.json()), Some(series));
    }

    #[test]
    fn a_clock_that_goes_back_makes_no_points() {
        let mut series = Series::default();
        for second in [5, 6, 3, 7] {
            series.push(point(second, second));
        }
        assert_eq!(series.points().map(|point| point.at_ms).collect::<Vec<_>>(), [5000, 6000, 7000]);
    }

    #[test]
    fn crawlers_of_one_store_are_added_up() {
        let (mut one, mut other) = (Series::default(), Series::default());
        for second in 0..4 {
            one.push(point(second, 10 * second));
            other.push(point(second, second));
        }
        let both = Series::together(vec![one, other]);
        assert_eq!(both.points().last().map(|point| (point.at_ms, point.counts[0])), Some((3000, 33)));
    }
}
