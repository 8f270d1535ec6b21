//! `claim`: which URLs are fetched next.
//!
//! Queues are brought here in the order of their turns, with as many of their first URLs as they may give, and leases are
//! granted as one after the other would be. Queues that others hold at the moment are passed over, unless they are named.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use async_trait::async_trait;
use tokio_postgres::Row as Columns;
use trapline_core::{Request, Timestamp};
use trapline_frontier::{Claimed, CrawlState, Lease, LeaseId, Want, payload};

use super::entry::{Entry, Grant, Spot, State};
use super::load::QUEUE;
use super::moment::{Moment, column, time};
use super::queue::{NOT_IN_LINE, OVER_BUDGET, Turn};
use super::session::{Failure, Key, Param, Session};
use super::step::Verb;
use super::work::Work;
use crate::disk::message::values;

/// No claim grants more than this, whatever it asks for: the caller can claim again.
pub(super) const GRANTS_MAX: usize = 100_000;

/// No more queues than this are brought at once.
const QUEUES_MAX: usize = 2000;

/// A claim that meets more requests that cannot be read than this answers with what it has: whoever claims next goes on, and
/// leases that were granted before do not run out meanwhile.
const UNREADABLE_MAX: usize = 1000;

/// A claim of one crawl.
pub(super) struct Claim(pub(super) Want);

#[async_trait]
impl Verb for Claim {
    type Answer = Claimed;

    fn draws(&self) -> usize {
        self.0.urls.min(GRANTS_MAX) * 8 + QUEUES_MAX * 4
    }

    async fn run(&self, work: &mut Work, session: &mut Session) -> Result<Claimed, Failure> {
        let want = &self.0;
        let mut round = Round::new(want);
        let spread = want.min_queues.map(|queues| (want.urls / queues.max(1)).max(1));
        if let Some(spread) = spread.filter(|spread| *spread < round.per_queue) {
            let bound = std::mem::replace(&mut round.per_queue, spread);
            work.grant_all(session, &mut round).await?;
            round.per_queue = bound;
            round.reopen(work);
        }
        work.grant_all(session, &mut round).await?;
        let leases = std::mem::take(&mut round.leases);
        let exhausted = leases.is_empty() && work.is_exhausted(session).await?;
        let short = leases.len() < want.urls;
        if short && work.crawl.is_running() && work.crawl.settings.pause_at_finish && exhausted {
            work.crawl.set_state(CrawlState::Paused);
        }
        let next = if short { work.next_event(session, &round).await? } else { None };
        Ok(Claimed { leases, next, exhausted })
    }
}

/// A claim of one crawl under way.
pub(super) struct Round<'a> {
    want: &'a Want,
    /// How many URLs it is to have, and from at most how many queues.
    pub(super) urls: usize,
    /// It stops for now when it has so many: what it will have later is brought here all the same.
    pub(super) pause_at: usize,
    pub(super) queues: Option<usize>,
    per_queue: usize,
    pub(super) leases: Vec<Lease>,
    /// How much each queue has given.
    given: BTreeMap<i64, usize>,
    except: BTreeSet<&'a str>,
    keys: Option<BTreeSet<&'a str>>,
    /// The queues that are here and may be served, by partition: partitions take turns.
    line: BTreeMap<i64, BTreeSet<Turn>>,
    /// The first URLs of queues that are here.
    heads: BTreeMap<i64, VecDeque<i64>>,
    /// The last place of each up to which they were brought: more are brought from behind it.
    brought: BTreeMap<i64, (u8, Spot)>,
    /// How many of each could not be read, and of all together.
    unreadable: BTreeMap<i64, usize>,
    unreadable_of_all: usize,
    /// There were more of those than one claim takes upon itself.
    cut_short: bool,
    /// Queues at their bound.
    full: BTreeSet<i64>,
    /// The last that was brought, if there may be more behind it.
    horizon: Option<Turn>,
    more: bool,
    /// Numbers for leases.
    numbers: VecDeque<i64>,
}

impl<'a> Round<'a> {
    pub(super) fn new(want: &'a Want) -> Self {
        Self {
            want,
            urls: want.urls.min(GRANTS_MAX),
            pause_at: usize::MAX,
            queues: want.queues,
            per_queue: want.per_queue.unwrap_or(usize::MAX),
            leases: Vec::new(),
            given: BTreeMap::new(),
            except: want.except.iter().map(String::as_str).collect(),
            keys: want.keys.as_ref().map(|keys| keys.iter().map(String::as_str).collect()),
            line: BTreeMap::new(),
            heads: BTreeMap::new(),
            brought: BTreeMap::new(),
            unreadable: BTreeMap::new(),
            unreadable_of_all: 0,
            cut_short: false,
            full: BTreeSet::new(),
            horizon: None,
            more: true,
            numbers: VecDeque::new(),
        }
    }

    /// Whether it asks for no queues in particular: then a queue that may be served and was not is held by somebody.
    pub(super) fn is_plain(&self) -> bool {
        let Want { queues, per_queue, keys, except, partitions, .. } = self.want;
        queues.is_none() && per_queue.is_none() && keys.is_none() && except.is_empty() && partitions.is_none()
    }

    pub(super) fn queues_given(&self) -> usize {
        self.given.len()
    }

    /// Lets queues that were at a bound supply again.
    fn reopen(&mut self, work: &Work) {
        for queue in std::mem::take(&mut self.full) {
            self.join(work, queue);
        }
    }

    /// Whether a queue may supply as far as bounds go.
    fn is_open(&self, queue: i64) -> bool {
        let given = self.given.get(&queue).copied().unwrap_or(0);
        given < self.per_queue && (given > 0 || self.queues.is_none_or(|most| self.given.len() < most))
    }

    /// Puts a queue in line, if it may be served.
    fn join(&mut self, work: &Work, id: i64) {
        let queue = work.queue(id);
        if queue.row.tier == NOT_IN_LINE || queue.row.serve_at > work.now {
            return;
        }
        if self.given.get(&id).is_some_and(|given| *given >= self.per_queue) {
            self.full.insert(id);
            return;
        }
        let partition = if self.keys.is_some() { 0 } else { queue.partition };
        self.line.entry(partition).or_default().insert(queue.turn());
    }

    /// Whose turn it is: the best of the next partition that has one, from `turn` on.
    fn next(&self, turn: i64) -> Option<(i64, Turn)> {
        let ahead = self.line.range(turn..).chain(self.line.range(..turn));
        let mut firsts = ahead.filter_map(|(partition, line)| Some((*partition, *line.first()?)));
        firsts.next()
    }
}

/// The tiers there are, as far as somebody who looks at everything finds them.
const ALL_TIERS: &str = "RECURSIVE tiers AS (\
       (SELECT precedence, tier, -1::int8 AS floor FROM turns \
        WHERE crawl = $1 AND tier >= 0 AND (precedence, tier) >= ($3::int8, $4::int8) ORDER BY precedence, tier LIMIT 1) \
       UNION ALL \
       SELECT n.precedence, n.tier, -1::int8 FROM tiers CROSS JOIN LATERAL \
         (SELECT precedence, tier FROM turns WHERE crawl = $1 AND tier >= 0 \
          AND (precedence, tier) > (tiers.precedence, tiers.tier) ORDER BY precedence, tier LIMIT 1) AS n)";

/// The tiers that were found before, and where each of them begins.
const KNOWN_TIERS: &str = "tiers AS (SELECT * FROM unnest($11::int8[], $12::int8[], $13::int8[]) AS known (precedence, tier, floor) \
       WHERE (precedence, tier) >= ($3::int8, $4::int8))";

/// The next queues in line, of these tiers.
fn next_queues(tiers: &str) -> String {
    format!(
        "WITH {tiers} SELECT {}, pg_current_xact_id_if_assigned()::text AS xid FROM tiers CROSS JOIN LATERAL \
           (SELECT * FROM turns WHERE crawl = $1 AND tier >= 0 AND precedence = tiers.precedence AND tier = tiers.tier \
            AND serve_at <= $2 AND (serve_at, serve_rank, queue) > (\
              CASE WHEN (tiers.precedence, tiers.tier) = ($3, $4) THEN $5::int8 ELSE tiers.floor END, \
              CASE WHEN (tiers.precedence, tiers.tier) = ($3, $4) THEN $6::int8 ELSE -1 END, \
              CASE WHEN (tiers.precedence, tiers.tier) = ($3, $4) THEN $7::int8 ELSE -1 END) \
            AND ($8::int8[] IS NULL OR partition = ANY($8)) AND NOT queue = ANY($9) \
            ORDER BY serve_at, serve_rank, queue LIMIT $10 FOR UPDATE SKIP LOCKED) AS t \
         CROSS JOIN LATERAL (SELECT * FROM queues q WHERE q.id = t.queue LIMIT 1) AS q LIMIT $10",
        *QUEUE
    )
}

static NEXT_QUEUES: LazyLock<String> = LazyLock::new(|| next_queues(ALL_TIERS));
static NEXT_KNOWN_QUEUES: LazyLock<String> = LazyLock::new(|| next_queues(KNOWN_TIERS));

static NAMED_QUEUES: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {}, pg_current_xact_id()::text AS xid FROM turns t JOIN queues q ON q.id = t.queue \
         WHERE t.queue = ANY($2) AND t.tier >= 0 AND t.serve_at <= $1 AND ($3::int8[] IS NULL OR t.partition = ANY($3)) \
         ORDER BY t.queue FOR UPDATE OF t",
        *QUEUE
    )
});

/// The limits and offsets keep the planner from turning these look-ups round: they are by key, whatever it guesses.
const HEADS: &str = "SELECT p.*, u.identity, u.nth, u.cost, u.url, u.rest, g.visits, g.page \
     FROM unnest($2::int8[], $3::int8[], $4::int8[], $5::int8[], $6::int8[], $7::bytea[], $8::int8[]) \
       AS h (queue, most, class, band, place, tie, rank) \
     CROSS JOIN LATERAL (SELECT * FROM pending p WHERE p.queue = h.queue \
       AND (p.class, p.band, p.place, p.tie, p.rank) > (h.class, h.band, h.place, h.tie, h.rank) \
       ORDER BY p.class, p.band, p.place, p.tie, p.rank LIMIT h.most) AS p \
     CROSS JOIN LATERAL (SELECT u.identity, u.nth, u.cost, u.url, u.rest FROM urls u \
       WHERE u.crawl = $1 AND u.entry = p.entry LIMIT 1) AS u \
     LEFT JOIN LATERAL (SELECT g.visits, g.page FROM pages g WHERE g.crawl = $1 AND g.entry = p.entry LIMIT 1) AS g ON true";

impl Work {
    /// Grants until the round has as many URLs as it is to have, or nothing is left for it.
    pub(super) async fn grant_all(
        &mut self,
        session: &mut Session,
        round: &mut Round<'_>,
    ) -> Result<(), Failure> {
        if !self.crawl.is_running() || round.per_queue == 0 || round.queues == Some(0) {
            return Ok(());
        }
        while round.leases.len() < round.urls.min(round.pause_at) && !round.cut_short {
            let next = round.next(self.crawl.turn);
            // Somebody behind the horizon may be better than one that has given already.
            let beyond = next.is_none_or(|(_, turn)| round.horizon.is_none_or(|horizon| turn > horizon));
            if beyond && round.more {
                self.bring(session, round).await?;
                continue;
            }
            let Some((partition, turn)) = next else { return Ok(()) };
            round.line.entry(partition).or_default().remove(&turn);
            if !round.is_open(turn.queue) {
                continue;
            }
            if self.serve(session, round, turn.queue).await? {
                self.crawl.turn = partition + 1;
            }
            round.join(self, turn.queue);
        }
        Ok(())
    }

    /// Serves a queue whose turn it is. Answers whether it gave something.
    async fn serve(
        &mut self,
        session: &mut Session,
        round: &mut Round<'_>,
        id: i64,
    ) -> Result<bool, Failure> {
        if self.group_waits(self.queue(id)) {
            self.park(id);
            return Ok(false);
        }
        let Some(head) = self.head(session, round, id).await? else {
            if round.cut_short {
                return Ok(false);
            }
            // Counted, but not there: it is counted anew.
            self.queue_mut(id).row.ready = 0;
            self.refresh(id);
            return Ok(false);
        };
        let settings = Arc::clone(&self.crawl.settings);
        let cost = i64::from(self.entry(head).cost);
        let from = self.charges_from();
        let queue = self.queue(id);
        if queue.replenish(&settings) == 0 || !queue.fits(from, cost, &settings) {
            self.retire(id, OVER_BUDGET);
            return Ok(false);
        }
        let queue = self.queue_mut(id);
        if queue.row.active == 0 {
            queue.row.active = 1;
            queue.row.balance = queue.replenish(&settings);
        }
        if round.numbers.is_empty() {
            let loaded: usize = round.heads.values().map(VecDeque::len).sum();
            let most = (round.urls - round.leases.len()).min(loaded + 1) as i64;
            // A sequence may give a number twice, after a crash of a server that does not sync, or of which a replica knew less. Nobody
            // who holds a lease of before must be taken for who holds the new one.
            let draw = "SELECT nextval('lease_numbers') << 20 | floor(random() * 1048576)::int8 FROM generate_series(1, $1::int8)";
            for row in session.rows(draw, &[&most]).await? {
                round.numbers.push_back(row.try_get(0)?);
            }
        }
        self.grant(round, id, head);
        Ok(true)
    }

    /// The first URL of a queue. One whose request cannot be read becomes a dead letter on the way, unless there were too many
    /// of them.
    async fn head(
        &mut self,
        session: &Session,
        round: &mut Round<'_>,
        id: i64,
    ) -> Result<Option<i64>, Failure> {
        loop {
            let first = round.heads.get_mut(&id).and_then(VecDeque::pop_front);
            let Some(first) = first else {
                if self.queue(id).row.ready == 0 {
                    return Ok(None);
                }
                let had = self.entries.len();
                self.bring_heads(session, round, &[id]).await?;
                if self.entries.len() == had {
                    return Ok(None);
                }
                continue;
            };
            let entry = self.entry(first);
            let rest = entry.rest.as_deref().unwrap_or_default();
            match readable(&entry.url, rest) {
                Ok(_) => return Ok(Some(first)),
                Err(_) if round.unreadable_of_all == UNREADABLE_MAX => {
                    round.cut_short = true;
                    return Ok(None);
                }
                Err(why) => {
                    round.unreadable_of_all += 1;
                    *round.unreadable.entry(id).or_default() += 1;
                    let (class, band, place) = (entry.class, entry.spot.band, entry.spot.place);
                    self.leave(first);
                    let rank = self.draw();
                    let reason = format!("its request cannot be read: {why}").into_bytes();
                    let row = &mut self.queue_mut(id).row;
                    row.errors += 1;
                    // The next claim need not look for those that are gone.
                    (row.head_class, row.head_band, row.head_place) = (class.into(), band, place);
                    self.enter(first, State::Dead { reason, at: self.now, rank });
                    self.refresh(id);
                    if self.queue(id).row.ready == 0 {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Grants a lease of a queue's next URL.
    fn grant(&mut self, round: &mut Round<'_>, id: i64, head: i64) {
        let lease = round.numbers.pop_front().unwrap_or_default();
        let lasts = round.want.lease.unwrap_or(self.crawl.settings.lease);
        let deadline = self.moment(column(time(self.now) + lasts));
        let grant = Grant { lease, granted: self.now, deadline };
        self.leave(head);
        self.enter(head, State::Leased(grant));
        self.leases.insert(lease, head);

        let (from, now) = (self.charges_from(), self.now);
        let entry = self.entry(head);
        let (cost, class) = (i64::from(entry.cost), entry.class);
        let (band, place) = (entry.spot.band, entry.spot.place);
        let request = readable(&entry.url, entry.rest.as_deref().unwrap_or_default())
            .unwrap_or_else(|_| Arc::new(Request::get("")));
        let given = Lease {
            id: LeaseId(lease.unsigned_abs()),
            crawl: Arc::clone(&self.crawl.name),
            key: Arc::clone(&self.queue(id).key),
            identity: entry.identity,
            request,
            deadline: time(deadline.at),
            delivery: entry.expiries.saturating_add(1),
            retries: entry.retries,
            cost: entry.cost,
            page: entry.page.clone(),
        };
        let queue = self.queue_mut(id);
        queue.spend(from, now, cost);
        let row = &mut queue.row;
        row.balance = row.balance.saturating_sub(cost);
        row.latest_cost = cost;
        row.charged = row.charged.saturating_add(cost);
        row.grants = row.grants.saturating_add(1);
        (row.head_class, row.head_band, row.head_place) = (class.into(), band, place);
        self.tally.spent = self.tally.spent.saturating_add(cost);
        self.tally.granted += 1;
        *round.given.entry(id).or_default() += 1;
        round.leases.push(given);
        self.refresh(id);
        if deadline.at <= self.now {
            // It has expired already, before whatever is granted next.
            self.expire_at_once(head);
            if self.entry(head).state == State::Pending {
                let mut heads = round.heads.remove(&id).unwrap_or_default();
                heads.push_back(head);
                heads.make_contiguous().sort_by(|a, b| self.entry(*a).key().cmp(&self.entry(*b).key()));
                round.heads.insert(id, heads);
            }
        }
    }

    /// Brings the next queues in line, with their first URLs.
    async fn bring(&mut self, session: &mut Session, round: &mut Round<'_>) -> Result<(), Failure> {
        let began = Instant::now();
        // Whoever looks at some partitions, or goes on where it was, does not see who is first.
        let sees_first = round.keys.is_none() && round.horizon.is_none() && round.want.partitions.is_none();
        let partitions = round.want.partitions.as_ref();
        let partitions: Option<Vec<i64>> =
            partitions.map(|partitions| partitions.iter().map(|partition| i64::from(*partition)).collect());
        let rows = if round.keys.is_some() {
            round.more = false;
            let keys = round.keys.iter().flatten().filter(|key| !round.except.contains(*key));
            let keys: Vec<Arc<str>> = keys.map(|key| Arc::from(*key)).collect();
            self.find_queues(session, keys.iter(), false).await?;
            let ids: Vec<i64> = keys.iter().filter_map(|key| self.by_key.get(key).copied()).collect();
            session.rows(&NAMED_QUEUES, &[&self.now, &ids, &partitions]).await?
        } else {
            let except: Vec<Arc<str>> = round.except.iter().map(|key| Arc::from(*key)).collect();
            self.find_queues(session, except.iter(), false).await?;
            let except: Vec<i64> = except.iter().filter_map(|key| self.by_key.get(key).copied()).collect();
            let before = Turn { precedence: -1, tier: -1, since: Moment { at: -1, rank: -1 }, queue: -1 };
            let from = round.horizon.unwrap_or(before);
            let limit = self.queues_to_bring(round);
            let mut params: Vec<Param<'_>> = vec![
                &self.crawl.id,
                &self.now,
                &from.precedence,
                &from.tier,
                &from.since.at,
                &from.since.rank,
                &from.queue,
                &partitions,
                &except,
                &limit,
            ];
            let known = self.floors.line();
            params.extend(known.iter().flatten().map(|column| column as Param<'_>));
            let sql = if known.is_some() { &NEXT_KNOWN_QUEUES } else { &NEXT_QUEUES };
            let mut rows = session.rows(sql, &params).await?;
            if (rows.len() as i64) < limit {
                self.floors.forget_line();
                if known.is_some() {
                    rows = session.rows(&NEXT_QUEUES, &params[..10]).await?;
                }
            }
            round.more = rows.len() as i64 == limit;
            rows
        };
        let mut brought = Vec::with_capacity(rows.len());
        for row in &rows {
            let id: i64 = row.try_get(0)?;
            if !self.queues.contains_key(&id) {
                brought.push(id);
            }
        }
        let new: Vec<Columns> = rows
            .into_iter()
            .filter(|row| row.try_get(0).is_ok_and(|id: i64| !self.queues.contains_key(&id)))
            .collect();
        // The place in line as the database has it, before time is noticed.
        if let Some(last) = new.last() {
            round.horizon = Some(super::load::read_queue(last)?.turn());
        }
        let took = began.elapsed();
        self.take_queues(session, &new)?;
        self.catch_up(session).await?;
        if sees_first && round.except.is_empty() && round.more {
            let mut first = BTreeMap::new();
            for turn in brought.iter().map(|id| self.queue(*id).turn()) {
                first.entry((turn.precedence, turn.tier)).or_insert(turn.since.at);
            }
            self.floors.found_line(took, brought.len(), first);
        }
        self.set_unreadable_aside();
        self.load_groups(session).await?;
        self.bring_heads(session, round, &brought).await?;
        for id in brought {
            round.join(self, id);
        }
        Ok(())
    }

    /// How many queues a claim probably needs.
    fn queues_to_bring(&self, round: &Round<'_>) -> i64 {
        let wanted = round.urls - round.leases.len();
        let each = match self.crawl.settings.concurrency {
            0 => usize::MAX,
            most => most as usize,
        };
        let needed = wanted.div_ceil(each.min(round.per_queue).max(1));
        needed.clamp(8, QUEUES_MAX) as i64
    }

    /// Brings the first URLs of queues, as many as each may give.
    async fn bring_heads(
        &mut self,
        session: &Session,
        round: &mut Round<'_>,
        queues: &[i64],
    ) -> Result<(), Failure> {
        let wanted = (round.urls - round.leases.len()) as i64;
        let (mut ids, mut most) = (Vec::new(), Vec::new());
        let (mut classes, mut bands, mut places) = (Vec::new(), Vec::new(), Vec::new());
        let (mut ties, mut ranks): (Vec<&[u8]>, Vec<i64>) = (Vec::new(), Vec::new());
        for id in queues {
            let queue = self.queue(*id);
            if queue.row.ready == 0 || self.group_waits(queue) {
                continue;
            }
            let bound = i64::try_from(round.per_queue).unwrap_or(i64::MAX);
            let room = queue.room(&self.crawl.settings);
            // Where many cannot be read, the next probably cannot either: ever more are brought at once.
            let unreadable = round.unreadable.get(id).copied().unwrap_or(0).min(UNREADABLE_MAX) as i64;
            ids.push(*id);
            most.push(wanted.min(bound).min(room).max(unreadable).min(queue.row.ready).max(1));
            let (class, band, place, tie, rank) = match round.brought.get(id) {
                Some((class, spot)) => (i64::from(*class), spot.band, spot.place, &*spot.tie, spot.rank),
                None => (queue.row.head_class, queue.row.head_band, queue.row.head_place, &[][..], i64::MIN),
            };
            classes.push(class);
            bands.push(band);
            places.push(place);
            ties.push(tie);
            ranks.push(rank);
        }
        if ids.is_empty() {
            return Ok(());
        }
        let params: [Param<'_>; 8] = [&self.crawl.id, &ids, &most, &classes, &bands, &places, &ties, &ranks];
        let rows = session.rows(HEADS, &params).await?;
        let mut touched = BTreeSet::new();
        for row in &rows {
            let entry = read_head(row)?;
            let last = round.brought.get(&entry.queue);
            if last.is_none_or(|(class, spot)| entry.key() > (*class, spot)) {
                round.brought.insert(entry.queue, (entry.class, entry.spot.clone()));
            }
            if !self.entries.contains_key(&entry.id) {
                touched.insert(entry.queue);
                round.heads.entry(entry.queue).or_default().push_back(entry.id);
                self.take_entry(entry);
            }
        }
        for queue in touched {
            if let Some(heads) = round.heads.get_mut(&queue) {
                heads.make_contiguous().sort_by(|a, b| self.entries[a].key().cmp(&self.entries[b].key()));
            }
        }
        Ok(())
    }

    /// Whether, outside retired queues, nothing is pending or waits for its next visit, and no lease is out. To be asked
    /// before anything is granted.
    pub(super) async fn is_exhausted(&self, session: &Session) -> Result<bool, Failure> {
        let works = |queue: &super::queue::Queue| {
            !queue.is_retired() && (queue.pending() > 0 || queue.row.visits > 0) || queue.row.leased > 0
        };
        if self.queues.values().any(works) {
            return Ok(false);
        }
        let here: Vec<i64> = self.queues.keys().copied().collect();
        let sql = "SELECT EXISTS (SELECT 1 FROM leases WHERE crawl = $1) \
             OR EXISTS (SELECT 1 FROM turns WHERE crawl = $1 AND tier >= 0 AND NOT queue = ANY($2)) \
             OR EXISTS (SELECT 1 FROM turns WHERE crawl = $1 AND parked = 1 AND NOT queue = ANY($2)) \
             OR EXISTS (SELECT 1 FROM waiting w JOIN turns t ON t.queue = w.queue \
                        WHERE w.crawl = $1 AND t.retired = 0 AND NOT w.queue = ANY($2))";
        let rows = session.rows(sql, &[&self.crawl.id, &here]).await?;
        Ok(!rows.first().map_or(Ok(false), |row| row.try_get(0))?)
    }

    /// When more may be eligible. What others hold will be soon, if it would have been granted to this claim.
    pub(super) async fn next_event(
        &self,
        session: &Session,
        round: &Round<'_>,
    ) -> Result<Option<Timestamp>, Failure> {
        if !self.crawl.is_running() {
            return Ok(None);
        }
        let here: Vec<i64> = self.queues.keys().copied().collect();
        let rows = session.rows(NEXT_EVENT, &[&self.crawl.id, &self.now, &here]).await?;
        let mut times: Vec<i64> = Vec::new();
        if let Some(row) = rows.first() {
            for column in 0..4 {
                times.extend(row.try_get::<_, Option<i64>>(column)?);
            }
            if row.try_get(4)? || self.queues.values().any(|queue| queue.row.retired == OVER_BUDGET) {
                times.extend(self.crawl.period_ends(self.now));
            }
            if round.is_plain() && row.try_get(5)? {
                times.push(self.now.saturating_add(HELD));
            }
            if round.cut_short {
                times.push(self.now.saturating_add(1));
            }
        }
        for entry in self.entries.values() {
            if let State::Leased(grant) = entry.state {
                times.push(grant.deadline.at);
            }
        }
        for queue in self.queues.values() {
            let group = self.groups.get(&queue.row.group_id);
            if queue.row.tier != NOT_IN_LINE {
                times.push(queue.row.serve_at);
            } else if queue.row.parked == 1 {
                times.extend(group.map(|group| group.next.at));
            }
        }
        times.retain(|at| *at > self.now);
        Ok(times.into_iter().min().map(time))
    }
}

/// How long somebody may hold a queue before it is worth to ask again, in milliseconds.
const HELD: i64 = 25;

/// When leases expire, entries come due, groups wake and queues may be served; whether a queue is over its budget; and whether
/// one could be served now.
const NEXT_EVENT: &str = "WITH RECURSIVE tiers AS (\
       (SELECT precedence, tier FROM turns WHERE crawl = $1 AND tier >= 0 ORDER BY precedence, tier LIMIT 1) \
       UNION ALL \
       SELECT n.precedence, n.tier FROM tiers CROSS JOIN LATERAL \
         (SELECT precedence, tier FROM turns WHERE crawl = $1 AND tier >= 0 \
          AND (precedence, tier) > (tiers.precedence, tiers.tier) ORDER BY precedence, tier LIMIT 1) AS n\
     ) SELECT (SELECT min(deadline) FROM leases WHERE crawl = $1 AND deadline > $2), \
     (SELECT min(due_at) FROM waiting WHERE crawl = $1 AND due_at > $2), \
     (SELECT min(next_at) FROM groups WHERE crawl = $1 AND parked = 1 AND next_at > $2), \
     (SELECT min(n.serve_at) FROM tiers CROSS JOIN LATERAL (SELECT serve_at FROM turns WHERE crawl = $1 AND tier >= 0 \
       AND precedence = tiers.precedence AND tier = tiers.tier AND serve_at > $2 AND NOT queue = ANY($3) \
       ORDER BY serve_at LIMIT 1) AS n), \
     EXISTS (SELECT 1 FROM turns WHERE crawl = $1 AND retired = 2 AND NOT queue = ANY($3)), \
     EXISTS (SELECT 1 FROM tiers CROSS JOIN LATERAL (SELECT 1 FROM turns WHERE crawl = $1 AND tier >= 0 \
       AND precedence = tiers.precedence AND tier = tiers.tier AND serve_at <= $2 AND NOT queue = ANY($3) LIMIT 1) AS n)";

/// The request of a row, if it is one.
fn readable(url: &[u8], rest: &[u8]) -> Result<Arc<Request>, String> {
    let url = std::str::from_utf8(url).map_err(|error| error.to_string())?;
    payload::decode(url.to_owned(), rest).map(Arc::new).map_err(|error| error.to_string())
}

/// An entry of the columns of [`HEADS`].
fn read_head(row: &Columns) -> Result<Entry, Failure> {
    let small = |name: &str| {
        let number = row.try_get::<_, Option<i64>>(name).map(Option::unwrap_or_default)?;
        Ok::<u32, Failure>(u32::try_from(number).unwrap_or(u32::MAX))
    };
    let page: Option<&[u8]> = row.try_get("page")?;
    let has_page = row.try_get::<_, Option<i64>>("visits")?.is_some();
    let mut entry = Entry {
        id: row.try_get("entry")?,
        identity: row.try_get::<_, Key>("identity")?.0,
        nth: row.try_get("nth")?,
        queue: row.try_get("queue")?,
        class: u8::try_from(row.try_get::<_, i64>("class")?).unwrap_or(u8::MAX),
        cost: small("cost")?,
        spot: Spot {
            band: row.try_get("band")?,
            place: row.try_get("place")?,
            tie: row.try_get("tie")?,
            rank: row.try_get("rank")?,
        },
        state: State::Pending,
        expiries: small("expiries")?,
        retries: small("retries")?,
        visits: small("visits")?,
        page: page.and_then(|page| values::read_page(page).ok()),
        url: row.try_get("url")?,
        rest: Some(row.try_get("rest")?),
        stored: None,
    };
    entry.remember(has_page);
    Ok(entry)
}
