//! Sixty-four clients of one service that are killed and come back, while the service is killed with `kill -9` and comes back: whatever
//! they were told still holds. What is held against what is in `trapline_sim::Witness`, as for the disk store's own kills.
//!
//! The clients are tasks of the test, each with a connection of its own, which breaks when its task is aborted: leases stay behind, and
//! answers that nobody hears. Time is the machine's: the service's clock rules.
//!
//! `TRAPLINE_SERVICE_KILLS=200 cargo test --release -p trapline --test it serving_killed -- --nocapture` kills more often than usual.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use trapline_core::{Request, Timestamp};
use trapline_frontier::{Admission, Answer, ErrorKind, Frontier, Lease, Outcome, Settlement, StoreError};
use trapline_server::{GrpcAddress, GrpcStore};
use trapline_sim::{Random, Witness, WitnessTerms, witness_link};

use crate::folder::Folder;
use crate::service::Service;

const CLIENTS: usize = 64;
const KILLS: u64 = 40;
const KILLS_VARIABLE: &str = "TRAPLINE_SERVICE_KILLS";
/// After so many kills of the service everything stops and is looked at.
const CHECK_EVERY: u64 = 4;

const TERMS: WitnessTerms = WitnessTerms {
    lease: Duration::from_millis(2000),
    delay: Duration::from_millis(200),
    budget: 3,
    // The service's clock runs on from its start, the test's may be put right meanwhile.
    slack: Duration::from_millis(20),
};

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970");
    Timestamp::from_millis(u64::try_from(since.as_millis()).expect("it is before long"))
}

/// The URLs of a batch: some on hosts of its own, and one on a host that gets more than may be spent on it.
fn urls(batch: &str, hot: u64) -> Vec<String> {
    vec![
        format!("http://{batch}.a.example/1"),
        format!("http://{batch}.a.example/2"),
        format!("http://{batch}.b.example/1"),
        format!("http://{batch}.c.example/1"),
        format!("http://{hot}.hot.example/{batch}"),
    ]
}

/// What all clients share.
struct Stage {
    witness: Mutex<Witness>,
    /// What no client may be answered.
    faults: Mutex<Vec<String>>,
    service: GrpcAddress,
}

impl Stage {
    fn tell<T>(&self, tell: impl FnOnce(&mut Witness) -> T) -> T {
        // A witness that was told what cannot be has said so already; the test fails for it.
        tell(&mut self.witness.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn open(&self) -> Result<Frontier, StoreError> {
        let store = Arc::new(GrpcStore::connect(&self.service)?);
        Frontier::builder("kill").settings(TERMS.settings()).open_shared(store, now()).await
    }

    /// A service that was killed excuses what failed. Nothing else does.
    async fn excuse(&self, error: &StoreError) {
        if error.kind() != ErrorKind::Unavailable {
            self.faults.lock().unwrap_or_else(PoisonError::into_inner).push(error.to_string());
        }
        // Not a wait for anything: who is refused does not try again at once.
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A client, until it is aborted.
async fn client(stage: Arc<Stage>, name: String, mut random: Random) {
    let frontier = loop {
        match stage.open().await {
            Ok(frontier) => break frontier,
            Err(error) => stage.excuse(&error).await,
        }
    };
    for turn in 0_u64.. {
        if let Err(error) = take_turn(&stage, &frontier, &format!("{name}-{turn}"), &mut random).await {
            stage.excuse(&error).await;
        }
    }
}

/// Admits a batch, claims, and settles what was claimed.
async fn take_turn(
    stage: &Stage,
    frontier: &Frontier,
    batch: &str,
    random: &mut Random,
) -> Result<(), StoreError> {
    let urls = urls(batch, random.range(0..8));
    stage.tell(|witness| witness.admitting(batch, urls.clone(), now()));
    let requests: Vec<_> = urls.into_iter().map(Request::get).collect();
    let answers = frontier.admit(now(), requests).await?;
    let is_new = answers.iter().all(|answer| *answer == Admission::Added);
    assert!(is_new, "{batch}: {answers:?}");
    stage.tell(|witness| witness.added(batch));

    let asked = now();
    let leases = frontier.claim(asked, 4).await?.leases;
    stage.tell(|witness| {
        let heard = now();
        for lease in &leases {
            witness.leased(lease.id.0, &lease.key, &lease.request.url, asked, heard);
        }
    });
    // Some are left to expire.
    let done: Vec<_> = leases.iter().filter(|lease| !lease.id.0.is_multiple_of(5)).collect();
    let settle = |lease: &&Lease| {
        let mut settlement = Settlement::new(lease.id, Outcome::done());
        let link = witness_link(&lease.request.url).map(Request::get);
        settlement.links = link.and_then(|link| frontier.prepare(link).ok()).into_iter().collect();
        settlement
    };
    let begun = now();
    stage.tell(|witness| done.iter().for_each(|lease| witness.settling(lease.id.0, begun)));
    let settled = frontier.settle(begun, done.iter().map(settle).collect()).await?;
    let heard = now();
    for (lease, settled) in done.iter().zip(&settled) {
        match settled.answer {
            Answer::Done => stage.tell(|witness| witness.settled(lease.id.0)),
            // On a busy machine a client may be late; but only then.
            Answer::Stale => assert!(
                heard + TERMS.slack >= asked + TERMS.lease,
                "lease {} was stale before its time",
                lease.id.0
            ),
            other => panic!("lease {} was answered {other:?}", lease.id.0),
        }
    }
    if random.chance(1, 4) {
        let again = frontier.settle(now(), done.iter().map(settle).collect()).await?;
        assert!(again.iter().all(|settled| settled.answer == Answer::Stale), "{batch}: {again:?}");
    }
    Ok(())
}

struct Clients {
    stage: Arc<Stage>,
    tasks: Vec<JoinHandle<()>>,
    started: u64,
}

impl Clients {
    fn start(&mut self) -> JoinHandle<()> {
        self.started += 1;
        let random = Random::of(&[2026, self.started]);
        tokio::spawn(client(Arc::clone(&self.stage), self.started.to_string(), random))
    }

    fn start_all(&mut self) {
        self.tasks = (0..CLIENTS).map(|_| self.start()).collect();
    }

    /// Kills one, and another takes its place.
    async fn replace(&mut self, place: usize) {
        let next = self.start();
        end(std::mem::replace(&mut self.tasks[place], next)).await;
    }

    async fn end_all(&mut self) {
        for task in std::mem::take(&mut self.tasks) {
            end(task).await;
        }
    }
}

async fn end(task: JoinHandle<()>) {
    task.abort();
    if let Err(error) = task.await
        && error.is_panic()
    {
        std::panic::resume_unwind(error.into_panic());
    }
}

async fn play(folder: &Folder, kills: u64) {
    let store = folder.url();
    let mut service = Service::start(&store, &[]);
    let stage = Arc::new(Stage {
        witness: Mutex::new(Witness::new(TERMS)),
        faults: Mutex::default(),
        service: GrpcAddress::parse(&format!("grpc://{}", service.grpc)).expect("it is one"),
    });
    let mut clients = Clients { stage: Arc::clone(&stage), tasks: Vec::new(), started: 0 };
    let mut random = Random::of(&[64]);
    let (mut since, mut replaced) = (now(), 0);
    clients.start_all();
    for kill in 1..=kills {
        // So many more leases are granted, and clients are killed meanwhile.
        let goal = stage.tell(|witness| witness.testimony().leases) + random.range(50..400) as usize;
        let begun = Instant::now();
        while stage.tell(|witness| witness.testimony().leases) < goal {
            assert!(begun.elapsed() < Duration::from_secs(60), "the service grants nothing any more");
            clients.replace(random.range(0..CLIENTS as u64) as usize).await;
            replaced += 1;
            tokio::time::sleep(Duration::from_millis(random.range(1..20))).await;
        }
        service.kill();
        if kill % CHECK_EVERY == 0 || kill == kills {
            clients.end_all().await;
        }
        service.start_again(&store, &[]);
        let faults = std::mem::take(&mut *stage.faults.lock().unwrap_or_else(PoisonError::into_inner));
        assert!(faults.is_empty(), "{faults:?}");
        if clients.tasks.is_empty() {
            let frontier = stage.open().await.expect("it is there again");
            let is_last = kill == kills;
            // Nobody else tells it anything.
            let witness = stage.tell(|witness| std::mem::replace(witness, Witness::new(TERMS)));
            witness.check(&frontier, now, if is_last { Timestamp::ZERO } else { since }).await;
            witness.check_nothing_invented(&frontier, now()).await;
            stage.tell(|place| *place = witness);
            since = now();
            if !is_last {
                clients.start_all();
            }
        }
    }
    let told = stage.tell(|witness| witness.testimony());
    println!("{kills} kills of the service, {replaced} of clients; told: {told:?}");
    assert!(told.settled as u64 > kills * 20 && (told.spent > 0 || kills < KILLS), "{told:?}");
    assert!(replaced > kills, "{replaced} clients were killed");
}

#[test]
fn service_and_clients_killed_at_random_moments_nothing_acknowledged_is_lost() {
    let folder = Folder::new("serving-killed");
    let kills =
        std::env::var(KILLS_VARIABLE).map_or(KILLS, |kills| kills.parse().expect("a number of kills"));
    Runtime::new().expect("threads can be started").block_on(play(&folder, kills));
    let verified = std::process::Command::new(env!("CARGO_BIN_EXE_trapline"))
        .args(["frontier", "--store", &folder.url(), "verify"])
        .output()
        .expect("the binary runs");
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stdout));
}
