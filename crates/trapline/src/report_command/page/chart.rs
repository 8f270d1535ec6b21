//! A chart as a drawing in a page: lines or stacked areas over time, with a legend.

use std::fmt::Write;

use super::escape;
use crate::moment;
use trapline_core::Timestamp;

/// Where the drawing is within its box.
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 990.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 230.0;

/// How many marks the axes have, about.
const X_MARKS: u64 = 6;
const Y_MARKS: f64 = 4.0;

/// A chart.
pub(super) struct Chart {
    pub(super) title: &'static str,
    pub(super) unit: &'static str,
    /// In milliseconds since 1970, in order.
    pub(super) times: Vec<u64>,
    /// Between times so far apart nothing is drawn.
    pub(super) gap_ms: u64,
    /// Curves stand on one another.
    pub(super) stacked: bool,
    pub(super) curves: Vec<Curve>,
}

/// What is drawn in one colour.
pub(super) struct Curve {
    pub(super) name: &'static str,
    pub(super) colour: &'static str,
    /// One for each time; none at all if there are too few times.
    pub(super) values: Vec<f64>,
}

impl Chart {
    /// The drawing with its title and legend.
    pub(super) fn html(&self) -> String {
        let title = escape(self.title);
        let drawn = self.curves.iter().all(|curve| curve.values.len() == self.times.len());
        if self.times.len() < 2 || !drawn {
            return format!("<h2>{title}</h2>\n<p>There is nothing to draw yet.</p>\n");
        }
        let mut html = format!(
            "<h2>{title}</h2>\n<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{title}, {}\">\n",
            escape(self.unit)
        );
        let tops = self.tops();
        let highest = tops.iter().flatten().copied().fold(0.0, f64::max);
        let step = nice(highest / Y_MARKS);
        let ceiling = (highest / step).ceil().max(1.0) * step;
        let y = |value: f64| BOTTOM - (BOTTOM - TOP) * value / ceiling;
        let mut say = |text: String| {
            // Writing to memory cannot fail.
            let _ = writeln!(html, "{text}");
        };
        let marks = (ceiling / step).round() as u32;
        for mark in 0..=marks {
            let value = step * f64::from(mark);
            let at = y(value);
            say(format!("<line class=\"grid\" x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>"));
            say(format!(
                "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 6.0,
                at + 4.0,
                number(value)
            ));
        }
        for (at, label) in self.time_marks() {
            say(format!("<text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{label}</text>", BOTTOM + 18.0));
        }
        for (place, curve) in self.curves.iter().enumerate().rev() {
            for part in self.parts() {
                let line = |values: &[f64], indices: &mut dyn Iterator<Item = usize>| -> Vec<String> {
                    indices
                        .map(|index| format!("{:.1},{:.1}", self.x(self.times[index]), y(values[index])))
                        .collect()
                };
                let mut corners = line(&tops[place], &mut part.clone());
                let colour = curve.colour;
                if self.stacked {
                    let floor = vec![0.0; self.times.len()];
                    let below = if place == 0 { &floor } else { &tops[place - 1] };
                    corners.extend(line(below, &mut part.rev()));
                    say(format!("<polygon fill=\"{colour}\" points=\"{}\"/>", corners.join(" ")));
                } else {
                    say(format!(
                        "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" points=\"{}\"/>",
                        corners.join(" ")
                    ));
                }
            }
        }
        html += "</svg>\n<ul class=\"legend\">\n";
        for curve in &self.curves {
            let (last, most) = (
                curve.values.last().copied().unwrap_or_default(),
                curve.values.iter().copied().fold(0.0, f64::max),
            );
            let _ = writeln!(
                html,
                "<li><i style=\"background:{}\"></i>{}: {} {}, at most {}</li>",
                curve.colour,
                escape(curve.name),
                number(last),
                escape(self.unit),
                number(most)
            );
        }
        html + "</ul>\n"
    }

    /// The upper edge of each curve.
    fn tops(&self) -> Vec<Vec<f64>> {
        let mut tops: Vec<Vec<f64>> = Vec::with_capacity(self.curves.len());
        for curve in &self.curves {
            let mut top = curve.values.clone();
            if let Some(below) = tops.last().filter(|_| self.stacked) {
                top.iter_mut().zip(below).for_each(|(value, below)| *value += below);
            }
            tops.push(top);
        }
        tops
    }

    /// Stretches without a gap, as indices.
    fn parts(&self) -> Vec<std::ops::Range<usize>> {
        let mut parts = Vec::new();
        let mut from = 0;
        for index in 1..=self.times.len() {
            if index == self.times.len() || self.times[index] - self.times[index - 1] >= self.gap_ms {
                parts.push(from..index);
                from = index;
            }
        }
        parts
    }

    fn x(&self, at_ms: u64) -> f64 {
        let (first, last) = (self.times[0], self.times[self.times.len() - 1]);
        LEFT + (RIGHT - LEFT) * (at_ms - first) as f64 / (last - first).max(1) as f64
    }

    /// Where times are marked, and how they are written.
    fn time_marks(&self) -> Vec<(f64, String)> {
        const DAY_MS: u64 = 86_400_000;
        let (first, last) = (self.times[0], self.times[self.times.len() - 1]);
        let steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 21_600, 43_200];
        let steps = steps.iter().map(|seconds| seconds * 1000);
        let enough = |step: &u64| (last - first) / step < 2 * X_MARKS;
        let step = steps
            .clone()
            .find(|step| (last - first) / step <= X_MARKS)
            .or_else(|| steps.clone().find(enough));
        let step = step.unwrap_or_else(|| ((last - first) / X_MARKS).div_ceil(DAY_MS) * DAY_MS);
        let mut marks = Vec::new();
        let mut at = first.div_ceil(step) * step;
        while at <= last {
            let text = moment::write(Timestamp::from_millis(at));
            let (date, time) = text.split_at(10);
            let label = if step >= DAY_MS || at % DAY_MS == 0 { date } else { &time[1..9] };
            marks.push((self.x(at), label.to_owned()));
            at += step;
        }
        marks
    }
}

/// The next number above that people like: 1, 2 or 5 and zeros.
fn nice(value: f64) -> f64 {
    if value <= 0.0 || !value.is_finite() {
        return 1.0;
    }
    let power = 10_f64.powf(value.log10().floor());
    [1.0, 2.0, 5.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|step| *step >= value * 0.999)
        .unwrap_or(10.0 * power)
}

/// A number as short as it can be.
fn number(value: f64) -> String {
    let units = [(1e9, "G"), (1e6, "M"), (1e3, "k")];
    let (value, unit) = units
        .iter()
        .find(|(size, _)| value >= 10.0 * size)
        .map_or((value, ""), |(size, unit)| (value / size, *unit));
    let digits = if value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    let text = format!("{value:.digits$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(times: &[u64], values: &[f64], stacked: bool) -> Chart {
        let curve = |name, colour| Curve { name, colour, values: values.to_vec() };
        Chart {
            title: "Rate",
            unit: "per second",
            times: times.to_vec(),
            gap_ms: 10_000,
            stacked,
            curves: vec![curve("a", "#111111"), curve("b", "#222222")],
        }
    }

    #[test]
    fn axes_have_numbers_that_people_like() {
        for (value, expected) in
            [(0.0, 1.0), (0.3, 0.5), (1.0, 1.0), (1.1, 2.0), (30.0, 50.0), (600.0, 1000.0)]
        {
            assert!((nice(value) - expected).abs() < 1e-9, "{value}: {}", nice(value));
        }
        for (value, expected) in [
            (0.0, "0"),
            (0.25, "0.25"),
            (5.0, "5"),
            (12.5, "12.5"),
            (999.0, "999"),
            (12_000.0, "12k"),
            (2.5e7, "25M"),
        ] {
            assert_eq!(number(value), expected);
        }
    }

    #[test]
    fn what_stands_on_another_begins_at_its_top_and_gaps_stay_empty() {
        let html = chart(&[0, 1000, 60_000, 61_000], &[1.0, 2.0, 2.0, 1.0], true).html();
        assert_eq!(html.matches("<polygon").count(), 4, "two curves in two parts: {html}");
        // The highest sum is 4, and the second curve reaches it.
        assert!(html.contains(",12.0"), "{html}");
        let html = chart(&[0, 1000], &[0.0, 0.0], false).html();
        assert_eq!(html.matches("<polyline").count(), 2, "{html}");
        assert!(!html.contains("NaN") && !html.contains("inf"), "{html}");
    }

    #[test]
    fn too_little_is_said_to_be_so() {
        for chart in [chart(&[], &[], false), chart(&[5], &[], false), chart(&[5], &[1.0], true)] {
            assert!(chart.html().contains("nothing to draw yet"));
        }
        // All at one time.
        assert!(chart(&[5, 5], &[1.0, 2.0], false).html().contains("<polyline"));
    }

    #[test]
    fn times_are_marked_a_few_times_whatever_the_length() {
        for seconds in [2, 59, 3600, 86_400, 30 * 86_400, 3000 * 86_400] {
            let marks = chart(&[1_777_636_800_000, 1_777_636_800_000 + seconds * 1000], &[1.0, 1.0], false)
                .time_marks();
            assert!((1..=13).contains(&marks.len()), "{seconds}: {marks:?}");
        }
    }
}
