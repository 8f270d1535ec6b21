//! What the engine does with its timers, and any timers that can do it.

use std::collections::VecDeque;

use trapline_bench::measure::{Sample, Stopwatch, resident};
use trapline_core::Timestamp;

use super::lists::Lists;
use super::moment::Moment;
use super::queues::QueueId;
use super::timers::{Event, Timers as Tree};
use super::urls::EntryId;
use super::wheel::Wheel;

trait Timers: Default {
    fn set(&mut self, moment: Moment, event: Event);
    fn cancel(&mut self, moment: Moment, event: Event);
    fn next(&self) -> Option<Timestamp>;
    fn take_at(&mut self, at: Timestamp) -> Option<(Moment, Event)>;
}

macro_rules! timers {
    ($($name:ident),*) => {$(
        impl Timers for $name {
            fn set(&mut self, moment: Moment, event: Event) {
                $name::set(self, moment, event);
            }

            fn cancel(&mut self, moment: Moment, event: Event) {
                $name::cancel(self, moment, event);
            }

            fn next(&self) -> Option<Timestamp> {
                $name::next(self)
            }

            fn take_at(&mut self, at: Timestamp) -> Option<(Moment, Event)> {
                $name::take_at(self, at)
            }
        }
    )*};
}
timers!(Tree, Lists, Wheel);

pub const PATTERNS: [(&str, Pattern); 7] = [
    ("leases-1", Pattern::Leases { batch: 1 }),
    ("leases-100", Pattern::Leases { batch: 100 }),
    ("waits", Pattern::Waits),
    ("visits-1", Pattern::Visits { batch: 1, even: true }),
    ("visits-100", Pattern::Visits { batch: 100, even: true }),
    ("retries-1", Pattern::Visits { batch: 1, even: false }),
    ("retries-100", Pattern::Visits { batch: 100, even: false }),
];

#[derive(Clone, Copy)]
pub enum Pattern {
    /// 500 leases out, for 60 s each; one is granted and the oldest settled, a hundred times a millisecond. What comes
    /// next is asked for once a batch.
    Leases { batch: u64 },
    /// A million queues that wait a second each, a thousand in each millisecond: one wakes and waits again.
    Waits,
    /// A million URLs that are due within a day: evenly spread, or most of them soon. One is set anew; once a batch, time
    /// goes on to the next, which happens and is set again.
    Visits { batch: u64, even: bool },
}

impl Pattern {
    fn run<T: Timers>(self, scale: u64) -> Sample {
        match self {
            Self::Leases { batch } => leases::<T>(batch, 5_000_000 / scale),
            Self::Waits => waits::<T>(1_000_000 / scale),
            Self::Visits { batch, even } => visits::<T>(batch, even, 1_000_000 / scale),
        }
    }
}

type Measure = fn(Pattern, u64) -> Sample;

pub const RIVALS: [(&str, Measure); 3] =
    [("tree", Pattern::run::<Tree>), ("lists", Pattern::run::<Lists>), ("wheel", Pattern::run::<Wheel>)];

fn at(millis: u64, rank: u64) -> Moment {
    Moment { at: Timestamp::from_millis(millis), rank }
}

/// Any time of the present: a wheel's rings are not to begin at zero.
const START: u64 = 1_790_000_000_000;

fn leases<T: Timers>(batch: u64, cycles: u64) -> Sample {
    let mut timers = T::default();
    let mut out = VecDeque::new();
    let mut watch = Stopwatch::default();
    let grant = |timers: &mut T, out: &mut VecDeque<Moment>, rank: u64| {
        let deadline = at(START + rank / 100 + 60_000, rank);
        timers.set(deadline, Event::Expiry(rank));
        out.push_back(deadline);
    };
    for rank in 0..500 {
        grant(&mut timers, &mut out, rank);
    }
    watch.time(|| {
        for rank in 500..500 + cycles {
            grant(&mut timers, &mut out, rank);
            let oldest = out.pop_front().expect("500 are out");
            timers.cancel(oldest, Event::Expiry(oldest.rank));
            if rank % batch == 0 {
                assert_eq!(timers.next(), out.front().map(|first| first.at));
            }
        }
    });
    sample(cycles, watch, 0)
}

fn waits<T: Timers>(queues: u64) -> Sample {
    let (before, _) = resident();
    let mut timers = T::default();
    let each = queues / 1000;
    let mut rank = 0;
    for queue in 0..queues {
        rank += 1;
        timers.set(at(START + queue / each, rank), Event::Queue(QueueId(queue as u32)));
    }
    let (after, _) = resident();
    let mut watch = Stopwatch::default();
    let mut awake = Vec::new();
    let rounds = 3;
    let operations = watch.time(|| {
        let mut operations = 0;
        for now in START..START + 1000 * rounds {
            while let Some(instant) = timers.next().filter(|at| at.as_millis() <= now) {
                while let Some((_, event)) = timers.take_at(instant) {
                    awake.push(event);
                }
            }
            assert_eq!(awake.len() as u64, each);
            for event in awake.drain(..) {
                rank += 1;
                timers.set(at(now + 1000, rank), event);
                operations += 1;
            }
        }
        operations
    });
    sample(operations, watch, (after - before) * 1024 / queues)
}

fn visits<T: Timers>(batch: u64, even: bool, urls: u64) -> Sample {
    const DAY: u64 = 24 * 60 * 60 * 1000;
    let mut random = splitmix(1);
    let mut rank = 0;
    let mut later = |now: u64, random: &mut dyn FnMut() -> u64| {
        rank += 1;
        let delay = if even {
            random() % DAY
        } else {
            (DAY as f64).powf((random() >> 11) as f64 / (1u64 << 53) as f64) as u64
        };
        at(now + 1 + delay, rank)
    };
    let mut due = (0..urls).map(|_| later(START, &mut random)).collect::<Vec<_>>();
    let (before, _) = resident();
    let mut timers = T::default();
    for (url, moment) in due.iter().enumerate() {
        timers.set(*moment, Event::Due(EntryId(url as u32)));
    }
    let (after, _) = resident();
    let mut now = START;
    let mut watch = Stopwatch::default();
    watch.time(|| {
        for operation in 0..urls {
            if operation % batch == 0 {
                let instant = timers.next().expect("all are out");
                now = instant.as_millis();
                while let Some((_, event)) = timers.take_at(instant) {
                    let Event::Due(url) = event else { panic!("nothing else was set") };
                    let moment = later(now, &mut random);
                    due[url.0 as usize] = moment;
                    timers.set(moment, event);
                }
            }
            let url = (random() % urls) as usize;
            let moment = later(now, &mut random);
            let event = Event::Due(EntryId(url as u32));
            timers.cancel(std::mem::replace(&mut due[url], moment), event);
            timers.set(moment, event);
        }
    });
    sample(urls, watch, (after - before) * 1024 / urls)
}

/// Random numbers of a seed.
fn splitmix(mut seed: u64) -> impl FnMut() -> u64 {
    move || {
        seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// A sample that holds bytes a timer.
fn sample(operations: u64, watch: Stopwatch, held: u64) -> Sample {
    Sample { operations, wall: watch.wall, cpu: watch.cpu, held, ..Sample::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Random sets, cancellations and takings, now and then far away or at once; all answers must be the tree's.
    fn answers_like_the_tree<T: Timers>() {
        for seed in 0..400u64 {
            let mut next = splitmix(seed);
            let mut random = |end: u64| next() % end;
            let (mut tree, mut rival) = (Tree::default(), T::default());
            let mut out: Vec<(Moment, Event)> = Vec::new();
            let mut now = [0, START, u64::MAX - 5000][random(3) as usize];
            let spread = [1, 10, 1000, 1_000_000, u64::MAX][random(5) as usize];
            let cancelling = random(5);
            for rank in 1..2000 {
                match random(10) {
                    0..5 => {
                        let after = now.saturating_add(random(spread));
                        let time = match random(30) {
                            0 => now.saturating_sub(random(100)),
                            1 => u64::MAX,
                            _ => after,
                        };
                        let event = match random(5) {
                            0 => Event::Expiry(rank),
                            1 => Event::Due(EntryId(rank as u32)),
                            2 => Event::Queue(QueueId(random(3) as u32)),
                            3 => Event::Group(super::super::groups::GroupId(rank as u32)),
                            _ => Event::Period,
                        };
                        let moment = at(time, 1 + random(rank));
                        tree.set(moment, event);
                        rival.set(moment, event);
                        out.push((moment, event));
                    }
                    5..8 if cancelling > 0 => {
                        for _ in 0..cancelling.min(out.len() as u64) {
                            let (moment, event) = out.swap_remove(random(out.len() as u64) as usize);
                            tree.cancel(moment, event);
                            rival.cancel(moment, event);
                            assert_eq!(rival.next(), tree.next(), "seed {seed}");
                        }
                    }
                    _ => {
                        let Some(instant) = tree.next() else { continue };
                        now = now.max(instant.as_millis());
                        for _ in 0..random(4) {
                            let taken = tree.take_at(instant);
                            assert_eq!(rival.take_at(instant), taken, "seed {seed}");
                            let Some(taken) = taken else { break };
                            let place = out.iter().position(|one| *one == taken).expect("it was set");
                            out.swap_remove(place);
                        }
                    }
                }
                assert_eq!(rival.next(), tree.next(), "seed {seed}");
                assert_eq!(tree.next(), out.iter().map(|(moment, _)| moment.at).min(), "seed {seed}");
            }
        }
    }

    #[test]
    fn the_wheel_answers_like_the_tree() {
        answers_like_the_tree::<Wheel>();
    }

    #[test]
    fn the_lists_answer_like_the_tree() {
        answers_like_the_tree::<Lists>();
    }
}
