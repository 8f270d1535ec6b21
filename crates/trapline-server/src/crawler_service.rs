//! A crawler for any language: `trapline.v1.Crawler`.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::Stream;
use tonic::{Request, Response, Status};
use trapline_core::{Candidate, Statement, Terms, Timestamp};
use trapline_crawl::SkippedLine;
use trapline_frontier::{
    Admission, CrawlState, Frontier, QueueState, Steer, UrlFilter, UrlReport, UrlState, UrlsChange,
};

use crate::Clock;
use crate::crawl_results::{self, ResultFilter};
use crate::crawler::{Crawler, NoPolicy, RunningCrawl};
use crate::proto::v1;
use crate::wire::error;
use v1::crawler_server::Crawler as CrawlerCalls;
use v1::{CrawlerState, Recrawl, SubmissionAnswer};

/// Nobody means longer ones.
const DELAY_MS_MAX: u64 = 30 * 24 * 3600 * 1000;

/// How long a call waits for a crawl whose store is away.
const PATIENCE: Duration = Duration::from_secs(5);

/// So many URLs or hosts at most in one call.
const BATCH_MAX: usize = 10_000;

const NOBODY: &str =
    "this service does not crawl: start it with `trapline serve --crawl`, or crawl elsewhere from its store";

/// Serves a crawler, where there is one.
#[derive(Clone)]
pub(crate) struct CrawlerService {
    pub(crate) crawler: Option<Arc<Crawler>>,
    pub(crate) clock: Clock,
}

impl CrawlerService {
    fn crawler(&self) -> Result<&Arc<Crawler>, Status> {
        self.crawler.as_ref().ok_or_else(|| Status::failed_precondition(NOBODY))
    }

    fn running(&self) -> Result<&RunningCrawl, Status> {
        self.crawler()?.running()
    }

    /// Puts URLs of the crawl in line once more.
    async fn recrawl(&self, crawl: &RunningCrawl, urls: &[String]) -> Result<Vec<Recrawl>, Status> {
        let now = self.clock.now();
        let mut answers = Vec::with_capacity(urls.len());
        let mut again = Vec::new();
        for text in urls {
            let report = match crawl.program.seed(text) {
                Ok(seed) => {
                    crawl.frontier.url(now, &seed.request.url).await.map_err(|error| error::status(&error))?
                }
                Err(_) => {
                    answers.push(Recrawl::Malformed);
                    continue;
                }
            };
            let (answer, candidate) = judge(report, now);
            answers.push(answer);
            again.extend(candidate);
        }
        let admitted = crawl.frontier.admit_candidates(now, &again).await;
        let admitted = admitted.map_err(|error| error::status(&error))?;
        if let Some(Admission::Refused(why)) =
            admitted.iter().find(|admission| matches!(admission, Admission::Refused(_)))
        {
            return Err(Status::failed_precondition(format!("the crawl does not take them: {why}")));
        }
        self.crawler()?.metrics.queued(again.len() as u64);
        Ok(answers)
    }
}

/// What can be done for a URL that is to be fetched again, and what has to be stated for it.
fn judge(report: UrlReport, now: Timestamp) -> (Recrawl, Option<Candidate>) {
    let is_due = report.due.is_none_or(|due| due <= now);
    match (report.state, report.request, report.key) {
        (UrlState::Leased, ..) => (Recrawl::InFlight, None),
        (UrlState::Pending, ..) if is_due => (Recrawl::Pending, None),
        (UrlState::Unknown, ..) | (_, None, _) | (_, _, None) => (Recrawl::Unknown, None),
        (_, Some(request), Some(key)) => {
            let candidate = Candidate {
                request,
                identity: report.identity,
                key,
                class: Some(report.class),
                cost: Some(report.cost),
                terms: Terms::default(),
                improve: false,
                dont_filter: false,
                statement: Some(Statement::Next(now)),
            };
            (Recrawl::Queued, Some(candidate))
        }
    }
}

fn within(what: &str, number: usize) -> Result<(), Status> {
    if number <= BATCH_MAX {
        return Ok(());
    }
    Err(Status::invalid_argument(format!(
        "there are {number} {what}, and at most {BATCH_MAX} are taken at once; nothing was done: send them in parts"
    )))
}

/// What the crawl answers, unless its store is away. A pause may take long: it is answered once nothing is in flight.
async fn in_time<T>(crawl: &RunningCrawl, answer: impl Future<Output = T>) -> Result<T, Status> {
    tokio::pin!(answer);
    loop {
        if let Ok(answer) = tokio::time::timeout(PATIENCE, &mut answer).await {
            return Ok(answer);
        }
        if crawl.handle.look(|tally| tally.trouble.is_some()) {
            return Err(Status::unavailable(
                "the crawl waits for its store, which is away; it may still come to it: see GetStatus, and call again, which does no harm",
            ));
        }
    }
}

fn submission(answer: Result<Admission, SkippedLine>) -> v1::Submission {
    let (answer, reason) = match answer {
        Ok(Admission::Added | Admission::Restated) => (SubmissionAnswer::SubmissionAdded, String::new()),
        Ok(Admission::Known | Admission::Rescored) => (SubmissionAnswer::SubmissionKnown, String::new()),
        Ok(Admission::Refused(why)) => (SubmissionAnswer::SubmissionRefused, why.to_string()),
        Err(SkippedLine { reason, detail, .. }) => {
            let reason = detail.map_or_else(|| reason.clone(), |detail| format!("{reason}: {detail}"));
            (SubmissionAnswer::SubmissionRefused, reason)
        }
    };
    v1::Submission { answer: answer.into(), reason }
}

/// The options of `[[host]]` that a request sets, as a configuration would write them.
fn options(request: &v1::UpsertDomainPolicyRequest) -> Result<Vec<(String, String)>, Status> {
    if request.delay_ms.is_some_and(|delay| delay > DELAY_MS_MAX) {
        return Err(Status::invalid_argument(format!(
            "delay_ms: it is at most {DELAY_MS_MAX}, which is 30 days; to leave hosts alone, pause the crawl or give them a `budget` of 0"
        )));
    }
    if request.revisit_ms == Some(0) {
        return Err(Status::invalid_argument(
            "revisit_ms: 0 would fetch each page again and again; leave it out for pages that are fetched once",
        ));
    }
    let number = |name: &str, value: Option<u64>| value.map(|value| (name.to_owned(), value.to_string()));
    let millis = |name: &str, value: Option<u64>| value.map(|value| (name.to_owned(), format!("{value}ms")));
    let named = [
        millis("delay", request.delay_ms),
        number("per_host", request.concurrency.map(u64::from)),
        number("budget", request.budget),
        number("max_depth", request.max_depth.map(u64::from)),
        millis("revisit", request.revisit_ms),
    ];
    let mut options: Vec<_> = named.into_iter().flatten().collect();
    for (name, value) in &request.options {
        if options.iter().any(|(other, _)| other == name) {
            return Err(Status::invalid_argument(format!(
                "`{name}` is there twice: by itself and among `options`"
            )));
        }
        options.push((name.clone(), value.clone()));
    }
    Ok(options)
}

async fn state(frontier: &Frontier, now: Timestamp) -> Result<(CrawlerState, String), Status> {
    let report = frontier.report(now).await.map_err(|error| error::status(&error))?;
    Ok(match report.state {
        CrawlState::Running => (CrawlerState::Running, String::new()),
        CrawlState::Paused => (CrawlerState::Paused, String::new()),
        CrawlState::Finished(why) => (CrawlerState::Ended, why),
    })
}

#[tonic::async_trait]
impl CrawlerCalls for CrawlerService {
    async fn submit_urls(
        &self,
        request: Request<v1::SubmitUrlsRequest>,
    ) -> Result<Response<v1::SubmitUrlsResponse>, Status> {
        let v1::SubmitUrlsRequest { urls, depth_limit, priority } = request.into_inner();
        within("URLs", urls.len())?;
        let priority = priority
            .map(|priority| {
                i8::try_from(priority)
                    .map_err(|_| Status::invalid_argument("priority: it is between -128 and 127"))
            })
            .transpose()?;
        let crawl = self.running()?;
        let mut submissions = Vec::with_capacity(urls.len());
        let mut seeds = Vec::with_capacity(urls.len());
        for text in &urls {
            match crawl.program.seed(text) {
                Ok(mut seed) => {
                    seed.request.depth_limit = depth_limit;
                    seed.request.priority = priority;
                    seeds.push(seed);
                    submissions.push(None);
                }
                Err(reason) => submissions.push(Some(v1::Submission {
                    answer: SubmissionAnswer::SubmissionRefused.into(),
                    reason,
                })),
            }
        }
        let admitted = if seeds.is_empty() {
            Some(Vec::new())
        } else {
            in_time(crawl, crawl.handle.seed(seeds)).await?
        };
        let over = || Status::failed_precondition("the crawl has ended meanwhile; GetStatus says why");
        let mut admitted = admitted.ok_or_else(over)?.into_iter();
        let submissions = submissions.into_iter().map(|told| match told {
            Some(told) => Ok(told),
            None => admitted.next().map(submission).ok_or_else(over),
        });
        Ok(Response::new(v1::SubmitUrlsResponse { submissions: submissions.collect::<Result<_, _>>()? }))
    }

    type StreamResultsStream = Pin<Box<dyn Stream<Item = Result<v1::StreamResultsResponse, Status>> + Send>>;

    async fn stream_results(
        &self,
        request: Request<v1::StreamResultsRequest>,
    ) -> Result<Response<Self::StreamResultsStream>, Status> {
        let crawler = Arc::clone(self.crawler()?);
        let filter = ResultFilter::read(request.get_ref())?;
        let heard = crawler.results.listen().ok_or_else(|| crawler.last_word())?;
        let stream = crawl_results::stream(heard, filter, move || crawler.last_word());
        Ok(Response::new(Box::pin(stream)))
    }

    async fn get_status(
        &self,
        _: Request<v1::GetStatusRequest>,
    ) -> Result<Response<v1::GetStatusResponse>, Status> {
        let crawler = self.crawler()?;
        let now = self.clock.now();
        let mut status = v1::GetStatusResponse { now_ms: now.as_millis(), ..Default::default() };
        let starting = CrawlerState::Starting;
        let Some(crawl) = crawler.known() else {
            status.state = crawler.ending().map_or(starting, |_| CrawlerState::Ended).into();
            status.reason = crawler.ending().unwrap_or_default().to_owned();
            return Ok(Response::new(status));
        };
        let stats = crawl.frontier.stats(now).await.map_err(|error| error::status(&error))?;
        let (state, reason) = match crawler.ending() {
            Some(how) => (CrawlerState::Ended, how.to_owned()),
            None => state(&crawl.frontier, now).await?,
        };
        status.state = state.into();
        status.reason = reason;
        status.crawl = crawl.frontier.crawl().to_owned();
        status.pending = stats.urls_in(UrlState::Pending);
        status.in_flight = stats.urls_in(UrlState::Leased);
        status.done = stats.urls_in(UrlState::Done);
        status.disregarded = stats.urls_in(UrlState::Disregarded);
        status.failed = stats.urls_in(UrlState::Dead);
        status.visits_waiting = stats.visits_waiting;
        status.queues = stats.queues.iter().sum::<u64>() - stats.queues_in(QueueState::Empty);
        status.pages = stats.fetched;
        status.bytes = stats.bytes;
        status.workers_max = crawl.handle.concurrency() as u64;
        crawl.handle.look(|tally| {
            status.errors = tally.failed;
            status.workers_active = tally.in_flight as u64;
            status.next_ms = tally.next.filter(|next| *next > now).map(Timestamp::as_millis);
            let trouble =
                [("the store is away", &tally.trouble), ("nothing is fetched", &tally.archive_trouble)];
            for (what, trouble) in trouble {
                if status.reason.is_empty() && trouble.is_some() {
                    // What it says of disks and servers is in the log.
                    what.clone_into(&mut status.reason);
                }
            }
        });
        Ok(Response::new(status))
    }

    async fn set_crawler_state(
        &self,
        request: Request<v1::SetCrawlerStateRequest>,
    ) -> Result<Response<v1::SetCrawlerStateResponse>, Status> {
        let wanted = request.get_ref().state();
        if !matches!(wanted, CrawlerState::Running | CrawlerState::Paused) {
            return Err(Status::invalid_argument(
                "state: a crawl is told CRAWLER_STATE_RUNNING or CRAWLER_STATE_PAUSED",
            ));
        }
        let crawl = self.running()?;
        let told = match wanted {
            CrawlerState::Paused => in_time(crawl, crawl.handle.pause()).await?,
            _ => in_time(crawl, crawl.handle.resume()).await?,
        };
        match told {
            Some(Ok(())) => Ok(Response::new(v1::SetCrawlerStateResponse { state: wanted.into() })),
            Some(Err(why)) => {
                tracing::error!("the crawl cannot be told {}: {why}", wanted.as_str_name());
                Err(Status::unavailable("that could not be done; the log of the service says why"))
            }
            None => Err(Status::failed_precondition("the crawl has ended meanwhile; GetStatus says why")),
        }
    }

    async fn upsert_domain_policy(
        &self,
        request: Request<v1::UpsertDomainPolicyRequest>,
    ) -> Result<Response<v1::UpsertDomainPolicyResponse>, Status> {
        let request = request.into_inner();
        let options = options(&request)?;
        if request.hosts.is_empty() || options.is_empty() {
            return Err(Status::invalid_argument(
                "a policy is for `hosts`, such as domain:example.org, and sets something for them, such as `delay_ms`",
            ));
        }
        let crawl = self.running()?;
        let answer = crawl.program.set_policy(&request.hosts, &options).await.map_err(|no| match no {
            NoPolicy::Wrong(why) => Status::invalid_argument(why),
            NoPolicy::Failed(why) => {
                tracing::error!("a policy cannot be set: {why}");
                Status::unavailable("the policy could not be set; the log of the service says why")
            }
        })?;
        Ok(Response::new(v1::UpsertDomainPolicyResponse { answer }))
    }

    async fn force_recrawl(
        &self,
        request: Request<v1::ForceRecrawlRequest>,
    ) -> Result<Response<v1::ForceRecrawlResponse>, Status> {
        let v1::ForceRecrawlRequest { urls, hosts } = request.into_inner();
        within("URLs and hosts", urls.len() + hosts.len())?;
        let crawl = self.running()?;
        let mut response = v1::ForceRecrawlResponse::default();
        let answers = self.recrawl(crawl, &urls).await?;
        response.urls = answers.into_iter().map(Into::into).collect();
        for host in hosts {
            let steer = Steer::Urls(UrlFilter { key: Some(host), pattern: None }, UrlsChange::Revisit);
            let steered = crawl.frontier.steer(self.clock.now(), steer).await;
            let steered = steered.map_err(|error| error::status(&error))?;
            self.crawler()?.metrics.queued(steered.affected);
            response.affected += steered.affected;
            response.jobs.extend(steered.job);
        }
        Ok(Response::new(response))
    }
}
