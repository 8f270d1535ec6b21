//! Commands in the log: candidates in columns, because there are so many of them, and their requests apart.
//!
//! Candidates that changed nothing when they came (they were known, or refused) need not be replayed, and are left out.

use std::sync::Arc;

use prost::{Message, Oneof};
use trapline_core::{Candidate, Identity, Request, Terms, Timestamp};
use trapline_frontier::{
    Admission, LeaseId, NoteWrite, Outcome, Owner, PageRecord, Settled, Settlement, Steer, Visit, Want,
    packed_page,
};

use super::candidate::{StatementMessage, TermsMessage};
use super::settle::SettlementMessage;
use super::{
    ClaimMessage, PassMessage, SteerMessage, Unreadable, read_byte, read_claim, read_steer, read_time,
};
use crate::disk::command::Command;
use crate::disk::text;

#[derive(Clone, PartialEq, Message)]
struct Body {
    #[prost(oneof = "Verb", tags = "1, 2, 3, 4, 5, 6, 7")]
    verb: Option<Verb>,
}

#[derive(Clone, PartialEq, Oneof)]
enum Verb {
    #[prost(message, tag = "1")]
    Admit(AdmitMessage),
    #[prost(message, tag = "2")]
    Claim(ClaimMessage),
    #[prost(message, tag = "3")]
    Settle(SettleMessage),
    #[prost(message, tag = "4")]
    Steer(SteerMessage),
    #[prost(message, tag = "5")]
    Pass(PassMessage),
    #[prost(message, tag = "6")]
    Move(MoveMessage),
    #[prost(message, tag = "7")]
    SettleInColumns(SettleColumnsMessage),
}

#[derive(Clone, PartialEq, Message)]
struct MoveMessage {
    #[prost(string, tag = "1")]
    crawl: String,
    /// As they were written at first: the entries, and where each was.
    #[prost(uint32, repeated, tag = "2")]
    entries: Vec<u32>,
    #[prost(uint64, repeated, tag = "3")]
    places: Vec<u64>,
    /// How far each is from the one before.
    #[prost(sint64, repeated, tag = "4")]
    entry_steps: Vec<i64>,
    #[prost(sint64, repeated, tag = "5")]
    place_steps: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct AdmitMessage {
    #[prost(string, tag = "1")]
    crawl: String,
    #[prost(uint64, tag = "2")]
    now: u64,
    #[prost(message, optional, tag = "3")]
    candidates: Option<CandidatesMessage>,
}

/// Settlements as they were written at first.
#[derive(Clone, PartialEq, Message)]
struct SettleMessage {
    #[prost(string, tag = "1")]
    crawl: String,
    #[prost(uint64, tag = "2")]
    now: u64,
    /// Without their links.
    #[prost(message, repeated, tag = "3")]
    batch: Vec<SettlementMessage>,
    /// The links of all of them.
    #[prost(message, optional, tag = "4")]
    links: Option<CandidatesMessage>,
    /// How many of those belong to each settlement; empty where there are none.
    #[prost(uint32, repeated, tag = "5")]
    link_counts: Vec<u32>,
}

#[derive(Clone, PartialEq, Message)]
struct SettleColumnsMessage {
    #[prost(string, tag = "1")]
    crawl: String,
    #[prost(uint64, tag = "2")]
    now: u64,
    /// How far each lease is from the one before.
    #[prost(sint64, repeated, tag = "3")]
    lease_steps: Vec<i64>,
    /// What there is to each settlement: [`SAYS_MORE`] and [`AS_KEPT`]. Empty if all of them are done, and that is all.
    #[prost(bytes = "vec", tag = "4")]
    forms: Vec<u8>,
    /// Those that say more, without their leases and links.
    #[prost(message, repeated, tag = "5")]
    more: Vec<SettlementMessage>,
    /// The links of all of them.
    #[prost(message, optional, tag = "6")]
    links: Option<CandidatesMessage>,
    /// How many of those belong to each settlement; empty where there are none.
    #[prost(uint32, repeated, tag = "7")]
    link_counts: Vec<u32>,
}

/// A settlement that is more than done.
const SAYS_MORE: u8 = 1;
/// What its visit found, and when the next one is due, is in the text that the visit has left, and nowhere else.
const AS_KEPT: u8 = 2;

/// Which candidates of a batch are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// All of them.
    All,
    /// Those that changed something.
    Effective,
}

impl Which {
    /// Whether a candidate with this answer is.
    pub(crate) fn has(self, admission: &Admission) -> bool {
        match admission {
            Admission::Added | Admission::Rescored | Admission::Restated => true,
            Admission::Known | Admission::Refused(_) => self == Self::All,
        }
    }
}

/// Appends an admission, and before it the texts of those whose requests were not kept. Answers how long these are.
pub(crate) fn admit(
    bytes: &mut Vec<u8>,
    (crawl, now): (&str, Timestamp),
    (batch, answers): (&[Candidate], &[Admission]),
    which: Which,
) -> usize {
    let begin = bytes.len();
    let mut columns = Columns::default();
    for (candidate, answer) in batch.iter().zip(answers).filter(|(_, answer)| which.has(answer)) {
        columns.push(candidate, answer, bytes);
    }
    let texts = bytes.len() - begin;
    let candidates = Some(columns.finish());
    put(bytes, Verb::Admit(AdmitMessage { crawl: crawl.to_owned(), now: now.as_millis(), candidates }));
    texts
}

/// Appends settlements, and before them the texts of those links whose requests were not kept. Answers how long these
/// are. What was kept begins at a byte.
pub(crate) fn settle(
    bytes: &mut Vec<u8>,
    kept: usize,
    (crawl, now): (&str, Timestamp),
    (batch, answers): (&[Settlement], &[Settled]),
    which: Which,
) -> usize {
    let begin = bytes.len();
    let (mut forms, mut more) = (Vec::with_capacity(batch.len()), Vec::new());
    let mut pages = said_pages(&bytes[kept..]).peekable();
    for settlement in batch {
        let is_as_kept = pages.next_if(|page| is_of(settlement, page)).is_some();
        let beside = SettlementMessage::beside(settlement, is_as_kept);
        forms.push((u8::from(beside.is_some()) * SAYS_MORE) | (u8::from(is_as_kept) * AS_KEPT));
        more.extend(beside);
    }
    drop(pages);
    if forms.iter().all(|form| *form == 0) {
        forms.clear();
    }
    let mut columns = Columns::default();
    let mut link_counts = Vec::with_capacity(batch.len());
    for (settlement, settled) in batch.iter().zip(answers) {
        let before = columns.len;
        // A stale settlement has links and no answers to them.
        for (link, answer) in settlement.links.iter().zip(&settled.links) {
            if which.has(answer) {
                columns.push(link, answer, bytes);
            }
        }
        link_counts.push(columns.len - before);
    }
    if columns.len == 0 {
        link_counts.clear();
    }
    let texts = bytes.len() - begin;
    let message = SettleColumnsMessage {
        crawl: crawl.to_owned(),
        now: now.as_millis(),
        lease_steps: steps(batch.iter().map(|settlement| settlement.lease.0)),
        forms,
        more,
        links: (columns.len > 0).then(|| columns.finish()),
        link_counts,
    };
    put(bytes, Verb::SettleInColumns(message));
    texts
}

/// What visits have left in these texts, but for those of which a settlement has nothing to say.
fn said_pages(texts: &[u8]) -> impl Iterator<Item = PageRecord> {
    let pages = text::each(texts).filter_map(|(lengths, text)| lengths.page_of(text));
    let pages = pages.filter_map(|page| packed_page::decode(page).ok());
    pages.filter(|page| page.next.is_some() || page.visit != Visit::default())
}

/// Whether a page record says what a settlement does of a visit.
fn is_of(settlement: &Settlement, page: &PageRecord) -> bool {
    matches!(&settlement.outcome, Outcome::Done { visit, next } if *visit == page.visit && *next == page.next)
}

/// Appends a claim.
pub(crate) fn claim(bytes: &mut Vec<u8>, crawl: Option<&str>, now: Timestamp, want: &Want) {
    put(bytes, Verb::Claim(ClaimMessage::of(crawl, now, want)));
}

/// Appends an act of steering.
pub(crate) fn steer(bytes: &mut Vec<u8>, crawl: &str, now: Timestamp, steer: &Steer) {
    put(bytes, Verb::Steer(SteerMessage::of(crawl, now, steer)));
}

/// Appends time that passed in a crawl, and nothing else.
pub(crate) fn pass(bytes: &mut Vec<u8>, crawl: &str, now: Timestamp) {
    put(bytes, Verb::Pass(PassMessage { crawl: crawl.to_owned(), now: now.as_millis() }));
}

/// Appends that what the log has of a crawl was moved: of entries, and behind them of notes. The keys of these are in their texts,
/// which come in the same order.
pub(crate) fn relocate(bytes: &mut Vec<u8>, crawl: &str, moved: &[(Owner, u64)]) {
    let entry = |(owner, _): &(Owner, u64)| match owner {
        Owner::Entry(entry) => Some(u64::from(*entry)),
        Owner::Note(_) => None,
    };
    let message = MoveMessage {
        crawl: crawl.to_owned(),
        entries: Vec::new(),
        places: Vec::new(),
        entry_steps: steps(moved.iter().filter_map(entry)),
        place_steps: steps(moved.iter().map(|(_, place)| *place)),
    };
    put(bytes, Verb::Move(message));
}

/// How far each number is from the one before, the first from 0.
fn steps(numbers: impl Iterator<Item = u64>) -> Vec<i64> {
    let mut last = 0;
    let step = |number: u64| number.wrapping_sub(std::mem::replace(&mut last, number)) as i64;
    numbers.map(step).collect()
}

/// The numbers that were so far from each other.
fn walk(steps: &[i64]) -> Vec<u64> {
    let mut last = 0_u64;
    let number = |step: &i64| {
        last = last.wrapping_add(*step as u64);
        last
    };
    steps.iter().map(number).collect()
}

fn put(bytes: &mut Vec<u8>, verb: Verb) {
    let body = Body { verb: Some(verb) };
    bytes.reserve(body.encoded_len());
    body.encode(bytes).expect("a vector has room for everything");
}

/// The command of a record's message and texts.
pub(crate) fn read(message: &[u8], texts: &[u8]) -> Result<Command, Unreadable> {
    let (requests, note_keys) = read_texts(texts)?;
    Ok(match Body::decode(message)?.verb.ok_or(Unreadable::Lacks("a verb"))? {
        Verb::Admit(AdmitMessage { crawl, now, candidates }) => {
            let batch = candidates.unwrap_or_default().read(requests)?;
            Command::Admit { crawl, now: read_time(now), batch }
        }
        Verb::Claim(message) => read_claim(message)?,
        Verb::Settle(SettleMessage { crawl, now, batch, links, link_counts }) => {
            let mut batch: Vec<_> =
                batch.into_iter().map(SettlementMessage::read).collect::<Result<_, _>>()?;
            add_links(&mut batch, links.unwrap_or_default().read(requests)?, &link_counts)?;
            Command::Settle { crawl, now: read_time(now), batch }
        }
        Verb::SettleInColumns(message) => {
            let SettleColumnsMessage { crawl, now, lease_steps, forms, more, links, link_counts } = message;
            let mut batch = read_settlements(&lease_steps, &forms, more, texts)?;
            add_links(&mut batch, links.unwrap_or_default().read(requests)?, &link_counts)?;
            Command::Settle { crawl, now: read_time(now), batch }
        }
        Verb::Steer(message) => read_steer(message)?,
        Verb::Pass(PassMessage { crawl, now }) => Command::Pass { crawl, now: read_time(now) },
        Verb::Move(MoveMessage { crawl, mut entries, mut places, entry_steps, place_steps }) => {
            for entry in walk(&entry_steps) {
                entries.push(u32::try_from(entry).map_err(|_| Unreadable::Beyond("an entry"))?);
            }
            places.extend(walk(&place_steps));
            let owners = entries.into_iter().map(Owner::Entry).chain(note_keys.into_iter().map(Owner::Note));
            let owners: Vec<_> = owners.collect();
            if owners.len() != places.len() {
                return Err(Unreadable::Lacks("some of its places"));
            }
            Command::Move { crawl, owners: owners.into_iter().zip(places).collect() }
        }
    })
}

/// Settlements without their links.
fn read_settlements(
    lease_steps: &[i64],
    forms: &[u8],
    more: Vec<SettlementMessage>,
    texts: &[u8],
) -> Result<Vec<Settlement>, Unreadable> {
    if !forms.is_empty() && forms.len() != lease_steps.len() {
        return Err(Unreadable::Lacks("some of its settlements"));
    }
    let forms = forms.iter().copied().chain(std::iter::repeat(0));
    let (mut more, mut pages) = (more.into_iter(), said_pages(texts));
    let mut batch = Vec::with_capacity(lease_steps.len());
    for (lease, form) in walk(lease_steps).into_iter().zip(forms) {
        let mut settlement = match form & SAYS_MORE {
            0 => Settlement::new(LeaseId(lease), Outcome::done()),
            _ => more.next().ok_or(Unreadable::Lacks("a settlement"))?.read()?,
        };
        settlement.lease = LeaseId(lease);
        if form & AS_KEPT != 0 {
            let PageRecord { visit, next, .. } = pages.next().ok_or(Unreadable::Lacks("a visit"))?;
            settlement.outcome = Outcome::Done { visit, next };
        }
        if form & !(SAYS_MORE | AS_KEPT) != 0 {
            return Err(Unreadable::Beyond("the form of a settlement"));
        }
        batch.push(settlement);
    }
    if more.next().is_some() {
        return Err(Unreadable::Beyond("a settlement"));
    }
    Ok(batch)
}

/// Gives settlements their links, so many each.
fn add_links(batch: &mut [Settlement], links: Vec<Candidate>, counts: &[u32]) -> Result<(), Unreadable> {
    let mut links = links.into_iter();
    for (settlement, count) in batch.iter_mut().zip(counts) {
        settlement.links = links.by_ref().take(*count as usize).collect();
        if settlement.links.len() != *count as usize {
            return Err(Unreadable::Lacks("a link"));
        }
    }
    if links.next().is_some() { Err(Unreadable::Beyond("a link")) } else { Ok(()) }
}

/// Requests that were put, and the keys of notes.
fn read_texts(mut texts: &[u8]) -> Result<(Vec<Request>, Vec<String>), Unreadable> {
    let (mut requests, mut note_keys) = (Vec::new(), Vec::new());
    while !texts.is_empty() {
        let no_request = |_| Unreadable::Lacks("a request");
        let lengths = text::lengths(texts).map_err(no_request)?;
        if lengths.is_note {
            note_keys.push(lengths.note_key(texts).map_err(|_| Unreadable::Lacks("a note"))?);
        } else if lengths.page.is_none() {
            requests.push(lengths.text(texts).map_err(no_request)?.request);
        } else {
            // What a visit has left is nobody's request.
            lengths.check(texts).map_err(no_request)?;
        }
        texts = &texts[lengths.all()..];
    }
    Ok((requests, note_keys))
}

/// At most so many bytes the record of an admission has.
pub(crate) fn bound_admit(crawl: &str, batch: &[Candidate]) -> u64 {
    (HEAD + crawl.len() + batch.iter().map(bound).sum::<usize>()) as u64
}

/// At most so many bytes the record of settlements has.
pub(crate) fn bound_settle(crawl: &str, batch: &[Settlement]) -> u64 {
    // Once in the message, and once as a text.
    let note =
        |note: &NoteWrite| EACH + 2 * text::bound_note(&note.key, note.value.as_deref().unwrap_or_default());
    let each = |settlement: &Settlement| {
        let outcome = match &settlement.outcome {
            // Once in the message, and once as the text that it leaves.
            Outcome::Done { visit, .. } => 2 * packed_page::bound(visit),
            Outcome::Dead { reason } | Outcome::Disregard { reason } => reason.len(),
            Outcome::Retry { .. } | Outcome::Release | Outcome::Renew { .. } => 0,
        };
        let notes = settlement.notes.iter().map(note).sum::<usize>();
        EACH + outcome + notes + settlement.links.iter().map(bound).sum::<usize>()
    };
    (HEAD + crawl.len() + batch.iter().map(each).sum::<usize>()) as u64
}

/// More than a record takes beside what is in its batch.
const HEAD: usize = 256;
/// More than numbers and lengths of one thing take.
const EACH: usize = 160;

/// Many candidates.
#[derive(Clone, PartialEq, Message)]
pub(super) struct CandidatesMessage {
    /// Sixteen bytes each.
    #[prost(bytes = "vec", tag = "1")]
    identities: Vec<u8>,
    /// Where the key begins in the URL, which it nearly always is a part of, plus one; zero if it is not.
    #[prost(uint32, repeated, tag = "2")]
    key_begins: Vec<u32>,
    #[prost(uint32, repeated, tag = "3")]
    key_lengths: Vec<u32>,
    /// The keys that are no part of their URLs.
    #[prost(string, repeated, tag = "4")]
    keys: Vec<String>,
    /// Classes and costs plus one, zero for none; empty where nobody has any.
    #[prost(uint32, repeated, tag = "5")]
    classes: Vec<u32>,
    #[prost(uint64, repeated, tag = "6")]
    costs: Vec<u64>,
    #[prost(message, repeated, tag = "7")]
    rare: Vec<RareMessage>,
    /// The numbers of those whose requests were not kept, because nothing came of them but a change. Their texts come
    /// after those of the others.
    #[prost(uint32, repeated, tag = "8")]
    not_kept: Vec<u32>,
}

/// What few candidates have.
#[derive(Clone, PartialEq, Message)]
struct RareMessage {
    #[prost(uint32, tag = "1")]
    number: u32,
    #[prost(message, optional, tag = "2")]
    terms: Option<TermsMessage>,
    #[prost(bool, tag = "3")]
    improve: bool,
    #[prost(bool, tag = "4")]
    dont_filter: bool,
    #[prost(oneof = "StatementMessage", tags = "10, 11")]
    statement: Option<StatementMessage>,
}

/// Puts candidates into columns, and the texts of those that were not kept behind those that were.
#[derive(Default)]
pub(super) struct Columns {
    message: CandidatesMessage,
    len: u32,
    has_class: bool,
    has_cost: bool,
}

/// Whether its request was kept.
fn is_kept(admission: &Admission) -> bool {
    matches!(admission, Admission::Added | Admission::Restated)
}

impl Columns {
    pub(super) fn push(&mut self, candidate: &Candidate, admission: &Admission, texts: &mut Vec<u8>) {
        let Candidate { request, identity, key, class, cost, terms, improve, dont_filter, statement } =
            candidate;
        let message = &mut self.message;
        message.identities.extend_from_slice(&identity.0.to_le_bytes());
        let in_url = request.url.find("://").map(|at| at + 3);
        let in_url = in_url.filter(|at| request.url[*at..].starts_with(&**key));
        message.key_begins.push(in_url.map_or(0, |at| at as u32 + 1));
        message.key_lengths.push(key.len() as u32);
        if in_url.is_none() {
            message.keys.push(key.to_string());
        }
        message.classes.push(class.map_or(0, |class| u32::from(class) + 1));
        message.costs.push(cost.map_or(0, |cost| u64::from(cost) + 1));
        self.has_class |= class.is_some();
        self.has_cost |= cost.is_some();
        if *improve || *dont_filter || statement.is_some() || *terms != Terms::default() {
            message.rare.push(RareMessage {
                number: self.len,
                terms: (*terms != Terms::default()).then(|| terms.into()),
                improve: *improve,
                dont_filter: *dont_filter,
                statement: statement.map(StatementMessage::from),
            });
        }
        if !is_kept(admission) {
            message.not_kept.push(self.len);
            text::append(texts, request);
        }
        self.len += 1;
    }

    pub(super) fn finish(mut self) -> CandidatesMessage {
        if !self.has_class {
            self.message.classes.clear();
        }
        if !self.has_cost {
            self.message.costs.clear();
        }
        self.message
    }
}

impl CandidatesMessage {
    /// The candidates, whose requests are these: first all that were kept, then the others.
    pub(super) fn read(self, requests: Vec<Request>) -> Result<Vec<Candidate>, Unreadable> {
        let Self { identities, key_begins, key_lengths, keys, classes, costs, rare, not_kept } = self;
        let len = key_begins.len();
        let fits = |column: usize| column == 0 || column == len;
        if identities.len() != len * 16
            || key_lengths.len() != len
            || !fits(classes.len())
            || !fits(costs.len())
            || requests.len() != len
            || not_kept.len() > len
        {
            return Err(Unreadable::Lacks("some of its candidates"));
        }
        let mut requests: Vec<Option<Arc<Request>>> =
            requests.into_iter().map(|request| Some(Arc::new(request))).collect();
        let (mut kept, mut others) = (0, len - not_kept.len());
        let mut not_kept = not_kept.into_iter().peekable();
        let mut keys = keys.into_iter();
        let mut rare = rare.into_iter().peekable();
        let mut candidates = Vec::with_capacity(len);
        for number in 0..len {
            let next = if not_kept.next_if_eq(&(number as u32)).is_some() { &mut others } else { &mut kept };
            let request = requests.get_mut(*next).and_then(Option::take);
            let request = request.ok_or(Unreadable::Lacks("the request of a candidate"))?;
            *next += 1;
            let key = match (key_begins[number] as usize).checked_sub(1) {
                None => Arc::from(keys.next().ok_or(Unreadable::Lacks("a key"))?),
                Some(begin) => {
                    let key = request.url.get(begin..begin + key_lengths[number] as usize);
                    Arc::from(key.ok_or(Unreadable::Beyond("a key"))?)
                }
            };
            let rare = rare.next_if(|rare| rare.number == number as u32).unwrap_or_default();
            let identity = identities[number * 16..][..16].try_into().expect("sixteen bytes");
            let class = classes.get(number).and_then(|class| class.checked_sub(1));
            let cost = costs.get(number).and_then(|cost| cost.checked_sub(1));
            candidates.push(Candidate {
                request,
                identity: Identity(u128::from_le_bytes(identity)),
                key,
                class: class.map(|class| read_byte(class, "a class")).transpose()?,
                cost: cost.map(u32::try_from).transpose().map_err(|_| Unreadable::Beyond("a cost"))?,
                terms: rare.terms.map(TermsMessage::read).transpose()?.unwrap_or_default(),
                improve: rare.improve,
                dont_filter: rare.dont_filter,
                statement: rare.statement.map(StatementMessage::read),
            });
        }
        if rare.peek().is_some() || not_kept.peek().is_some() {
            return Err(Unreadable::Beyond("the number of a candidate"));
        }
        Ok(candidates)
    }
}

/// At most so many bytes a candidate takes in the log, with its text.
fn bound(candidate: &Candidate) -> usize {
    let group = candidate.terms.group.as_ref().map_or(0, |group| group.len());
    text::bound(&candidate.request) + candidate.key.len() + group + EACH
}

#[cfg(test)]
mod tests {
    use super::super::{candidate, settle as settlements, steer as steers};
    use super::*;
    use trapline_frontier::{Answer, LeaseId, Refusal};

    const NOW: Timestamp = Timestamp::from_millis(u64::MAX);

    /// Every answer there is, in turn.
    fn answers(len: usize) -> Vec<Admission> {
        let all = [
            Admission::Added,
            Admission::Known,
            Admission::Restated,
            Admission::Rescored,
            Admission::Refused(Refusal::TooDeep),
        ];
        all.into_iter().cycle().take(len).collect()
    }

    /// What the engine would have put.
    fn kept<'a>(batch: impl Iterator<Item = (&'a Candidate, &'a Admission)>) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (candidate, _) in batch.filter(|(_, answer)| is_kept(answer)) {
            text::append(&mut bytes, &candidate.request);
        }
        bytes
    }

    #[test]
    fn candidates_come_back_as_they_were_but_for_those_left_out() {
        let batch: Vec<_> = candidate::samples().into_iter().cycle().take(29).collect();
        let answers = answers(batch.len());
        for which in [Which::All, Which::Effective] {
            let mut bytes = kept(batch.iter().zip(&answers));
            let before = bytes.len();
            let texts = before + admit(&mut bytes, ("c", NOW), (&batch, &answers), which);
            assert!((bytes.len() as u64) < bound_admit("c", &batch));
            let expected = batch.iter().zip(&answers).filter(|(_, answer)| which.has(answer));
            let batch = expected.map(|(candidate, _)| candidate.clone()).collect();
            let command = read(&bytes[texts..], &bytes[..texts]).unwrap();
            assert_eq!(command, Command::Admit { crawl: "c".to_owned(), now: NOW, batch });
        }
    }

    /// What a visit leaves, if it leaves anything.
    fn left(settlement: &Settlement, bytes: &mut Vec<u8>) {
        let Outcome::Done { visit, next } = &settlement.outcome else { return };
        let page = PageRecord { visited: NOW, visit: visit.clone(), visits: 2, changes: 1, next: *next };
        let (mut request, page) = (Vec::new(), packed_page::encode(&page));
        text::append(&mut request, &Request::get("http://a.example/"));
        text::append_with_page(bytes, &request, &page);
    }

    /// Appends texts of visits.
    type Leave<'a> = &'a dyn Fn(&mut Vec<u8>);

    fn settled(settlement: &Settlement) -> Settled {
        match settlement.lease {
            LeaseId(0) => Settled { answer: Answer::Stale, links: Vec::new() },
            _ => Settled { answer: Answer::Done, links: answers(settlement.links.len()) },
        }
    }

    #[test]
    fn settlements_come_back_as_they_were_but_for_links_left_out() {
        let mut batch = settlements::samples();
        let plain = [1, 127, 128, u64::MAX].map(|lease| Settlement::new(LeaseId(lease), Outcome::done()));
        batch.extend(plain);
        let visit = Visit { status: 200, digest: Some(vec![7; 32]), ..Visit::default() };
        let visited = Outcome::Done { visit, next: Some(NOW) };
        batch.extend([5, 6, 4].map(|lease| Settlement::new(LeaseId(lease), visited.clone())));
        let answers: Vec<_> = batch.iter().map(settled).collect();
        // The texts of visits as they are; of none; and somebody else's, who has come first.
        let mine = |bytes: &mut Vec<u8>| batch.iter().for_each(|settlement| left(settlement, bytes));
        let none = |_: &mut Vec<u8>| ();
        let others = |bytes: &mut Vec<u8>| {
            let visit = Visit { status: 404, ..Visit::default() };
            left(&Settlement::new(LeaseId(1), Outcome::Done { visit, next: None }), bytes);
            mine(bytes);
        };
        let cases: [(&str, Leave<'_>); 3] = [("mine", &mine), ("none", &none), ("others", &others)];
        let mut lengths = Vec::new();
        for (name, left) in cases {
            for which in [Which::All, Which::Effective] {
                let pairs = batch.iter().zip(&answers);
                let mut bytes = vec![0; 3];
                bytes.extend(kept(pairs.flat_map(|(one, settled)| one.links.iter().zip(&settled.links))));
                left(&mut bytes);
                let texts = bytes.len();
                // A visit copies the request that was there; all else is the settlements' own.
                let mut copied = Vec::new();
                left(&mut copied);
                let texts = texts + settle(&mut bytes, 3, ("c", NOW), (&batch, &answers), which);
                assert!((bytes.len() as u64) < bound_settle("c", &batch) + copied.len() as u64);
                let mut expected = batch.clone();
                for (settlement, settled) in expected.iter_mut().zip(&answers) {
                    let links = settlement.links.iter().zip(&settled.links);
                    settlement.links =
                        links.filter(|(_, a)| which.has(a)).map(|(link, _)| link.clone()).collect();
                }
                let command = read(&bytes[texts..], &bytes[3..texts]).unwrap();
                assert_eq!(
                    command,
                    Command::Settle { crawl: "c".to_owned(), now: NOW, batch: expected },
                    "{name}"
                );
                lengths.push(bytes.len() - texts);
            }
        }
        let [mine, _, none, _, others, _] = lengths[..] else { panic!("six of them") };
        assert!(mine + 3 * 32 < none, "what visits have found is not said twice: {mine} bytes, {none}");
        assert_eq!(others, none, "what does not follow from the texts is said");
    }

    /// Settlements as they were written at first.
    #[test]
    fn settlements_of_the_first_form_are_read() {
        let batch = settlements::samples();
        let answers: Vec<_> = batch.iter().map(|settlement| answers(settlement.links.len())).collect();
        let pairs = || batch.iter().zip(&answers).flat_map(|(one, answers)| one.links.iter().zip(answers));
        let (mut columns, mut texts) = (Columns::default(), kept(pairs()));
        for (link, answer) in pairs() {
            columns.push(link, answer, &mut texts);
        }
        let without_links = |settlement: &Settlement| {
            SettlementMessage::from(&Settlement { links: Vec::new(), ..settlement.clone() })
        };
        let message = SettleMessage {
            crawl: "c".to_owned(),
            now: NOW.as_millis(),
            batch: batch.iter().map(without_links).collect(),
            links: Some(columns.finish()),
            link_counts: batch.iter().map(|settlement| settlement.links.len() as u32).collect(),
        };
        let mut bytes = Vec::new();
        put(&mut bytes, Verb::Settle(message));
        assert_eq!(read(&bytes, &texts).unwrap(), Command::Settle { crawl: "c".to_owned(), now: NOW, batch });
    }

    #[test]
    fn settlements_that_cannot_be_are_errors() {
        let more = || SettlementMessage::beside(&settlements::samples()[1], false);
        let cases: [(&[u8], usize, &str); 6] = [
            (&[0], 0, "it lacks some of its settlements"),
            (&[SAYS_MORE, 0], 0, "it lacks a settlement"),
            (&[SAYS_MORE, 0], 2, "it has a settlement that is out of bounds"),
            (&[AS_KEPT, 0], 0, "it lacks a visit"),
            (&[0, 4], 0, "it has the form of a settlement that is out of bounds"),
            (&[], 1, "it has a settlement that is out of bounds"),
        ];
        for (forms, others, expected) in cases {
            let message = SettleColumnsMessage {
                lease_steps: vec![1, -1],
                forms: forms.to_vec(),
                more: more().into_iter().cycle().take(others).collect(),
                ..SettleColumnsMessage::default()
            };
            let mut bytes = Vec::new();
            put(&mut bytes, Verb::SettleInColumns(message));
            let error = read(&bytes, &[]).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{forms:?}: {error}");
        }
    }

    #[test]
    fn the_others_come_back_as_they_were() {
        let check = |put: &dyn Fn(&mut Vec<u8>), expected: &Command| {
            let mut bytes = Vec::new();
            put(&mut bytes);
            assert_eq!(read(&bytes, &[]).unwrap(), *expected);
        };
        let crawl = "c".to_owned();
        let want = Want { queues: Some(0), keys: Some(Vec::new()), ..Want::urls(7) };
        let expected = Command::Claim { crawl: Some(crawl.clone()), now: NOW, want: want.clone() };
        check(&|bytes| claim(bytes, Some("c"), NOW, &want), &expected);
        for act in steers::samples() {
            let expected = Command::Steer { crawl: crawl.clone(), now: NOW, steer: act.clone() };
            check(&|bytes| steer(bytes, "c", NOW, &act), &expected);
        }
        check(&|bytes| pass(bytes, "c", NOW), &Command::Pass { crawl, now: NOW });
    }

    #[test]
    fn other_bytes_are_an_error_never_a_panic() {
        let batch = candidate::samples();
        let answers = answers(batch.len());
        let mut bytes = kept(batch.iter().zip(&answers));
        let texts = bytes.len();
        let texts = texts + admit(&mut bytes, ("c", NOW), (&batch, &answers), Which::All);
        for place in 0..bytes.len() {
            for flip in [1, 0x80, 0xff] {
                let mut bad = bytes.clone();
                bad[place] ^= flip;
                let _ = read(&bad[texts..], &bad[..texts]);
            }
        }
        assert!(read(&bytes[texts..], &[]).is_err(), "its texts are missing");
    }

    /// As they are written now, and as they were at first.
    #[test]
    fn moves_of_both_forms_are_read() {
        let entries = [(7, 3 << 32 | 900), (8, 3 << 32 | 990), (2, 1 << 32 | 5), (u32::MAX, u64::MAX)];
        let moved = entries.map(|(entry, place)| (Owner::Entry(entry), place));
        let mut now = Vec::new();
        relocate(&mut now, "c", &moved);
        let (entries, places) = entries.into_iter().unzip();
        let message = MoveMessage { crawl: "c".to_owned(), entries, places, ..MoveMessage::default() };
        let mut before = Vec::new();
        put(&mut before, Verb::Move(message));
        for bytes in [now, before] {
            let Ok(Command::Move { crawl, owners }) = read(&bytes, &[]) else { panic!("{bytes:?}") };
            assert_eq!((crawl.as_str(), &*owners), ("c", &moved[..]));
        }
        let notes = ["robots:a.example", ""].map(|key| (Owner::Note(key.to_owned()), 1 << 32 | 77));
        for moved in [&notes[..], &[&moved[..], &notes[..]].concat()] {
            let (mut bytes, mut texts) = (Vec::new(), Vec::new());
            relocate(&mut bytes, "c", moved);
            for (owner, _) in moved {
                match owner {
                    // With its page, as nobody's request.
                    Owner::Entry(_) => {}
                    Owner::Note(key) => text::append_note(&mut texts, key, b"what it says"),
                }
            }
            let expected = Command::Move { crawl: "c".to_owned(), owners: moved.to_vec() };
            assert_eq!(read(&bytes, &texts).ok(), Some(expected));
            assert!(read(&bytes, &[]).is_err(), "its texts are missing");
        }
        let lacking = MoveMessage { crawl: String::new(), entry_steps: vec![1], ..MoveMessage::default() };
        let beyond = MoveMessage { entry_steps: vec![-1], place_steps: vec![1], ..MoveMessage::default() };
        for message in [lacking, beyond] {
            let mut bytes = Vec::new();
            put(&mut bytes, Verb::Move(message));
            assert!(read(&bytes, &[]).is_err());
        }
    }
}
