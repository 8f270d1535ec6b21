//! A store that lives in images of its engine: with most verbs an image is begun, the verb is done, the image is taken and
//! an engine made of it, which must answer the verb alike and is the one that goes on. Each image has what has changed since the one before.
//!
//! Not a store for use. It shows that an image has everything in it, and nothing that came after it was begun.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use trapline_core::{Candidate, Request, Timestamp};
use trapline_frontier::suite::Harness;
use trapline_frontier::{
    Admission, ChunkOf, Claimed, Engine, FrameOf, Library, Page, PageRecord, Picture, ReadFrame, Recovered,
    Scan, Settled, Settlement, Stats, Steer, Steered, Store, StoreError, UrlState, Want, store_suite,
};

/// A library that keeps everything.
#[derive(Debug, Default)]
struct Shelf(Mutex<Vec<Book>>);

type Book = (Arc<Request>, Option<Arc<PageRecord>>);

impl Shelf {
    fn keep(&self, book: Book) -> u64 {
        let mut books = self.0.lock().expect("no verb panics");
        books.push(book);
        // Not small, so that the upper half of a place matters.
        (books.len() as u64 - 1) << 30
    }

    fn book(&self, place: u64) -> Book {
        self.0.lock().expect("no verb panics")[(place >> 30) as usize].clone()
    }
}

impl Library for Shelf {
    fn put(&self, request: &Request) -> u64 {
        self.keep((Arc::new(request.clone()), None))
    }

    fn get(&self, place: u64) -> Arc<Request> {
        self.book(place).0
    }

    fn put_page(&self, place: u64, page: &PageRecord) -> Option<u64> {
        Some(self.keep((self.get(place), Some(Arc::new(page.clone())))))
    }

    fn copy(&self, place: u64, with_page: bool) -> (u64, u32) {
        let (request, page) = self.book(place);
        (self.keep((request, page.filter(|_| with_page))), 0)
    }

    fn page(&self, place: u64) -> Option<Arc<PageRecord>> {
        self.book(place).1
    }

    fn free_page(&self, _: u64, _: &PageRecord) {}

    fn put_note(&self, key: &str, value: &[u8]) -> Option<(u64, u32)> {
        let note = Request { body: value.to_vec(), ..Request::get(key) };
        Some((self.keep((Arc::new(note), None)), value.len() as u32))
    }

    fn note(&self, place: u64) -> Option<Vec<u8>> {
        Some(self.get(place).body.clone())
    }

    fn free_note(&self, _: u64, _: u32) {}

    fn free(&self, _: u64) {}
}

#[derive(Clone)]
pub(crate) struct Pictured {
    album: Arc<Mutex<Album>>,
    recovered: Option<Recovered>,
}

struct Album {
    engine: Engine,
    library: Arc<Shelf>,
    verbs: u64,
    /// The chunks of the latest image, by their crawls.
    chunks: BTreeMap<String, Vec<(ChunkOf, Vec<u8>)>>,
}

impl Default for Pictured {
    fn default() -> Self {
        let library = Arc::new(Shelf::default());
        let engine = Engine::with_library("pictured", Arc::clone(&library) as Arc<dyn Library>);
        Self {
            album: Arc::new(Mutex::new(Album { engine, library, verbs: 0, chunks: BTreeMap::new() })),
            recovered: None,
        }
    }
}

impl Album {
    fn take(&mut self) -> Engine {
        let library = Arc::clone(&self.library) as Arc<dyn Library>;
        let mut restore = Engine::with_library("pictured", library).restore();
        let (mut chunks, mut crawl) = (BTreeMap::<_, Vec<_>>::new(), String::new());
        loop {
            let frames = self.engine.next_frames();
            if frames.is_empty() {
                self.chunks = chunks;
                return restore.finish().expect("the image is complete");
            }
            for frame in frames {
                if let FrameOf::Crawl(name) = frame.of() {
                    name.clone_into(&mut crawl);
                }
                let mut bytes = frame.encode();
                if let FrameOf::Chunk(of) = frame.of() {
                    let chunks = chunks.entry(crawl.clone()).or_default();
                    let number = chunks.iter().filter(|(kind, _)| *kind == of).count();
                    let same = || self.chunks[&crawl].iter().filter(|(kind, _)| *kind == of).nth(number);
                    bytes = bytes.or_else(|| same().map(|(_, bytes)| bytes.clone()));
                    chunks.push((of, bytes.clone().expect("what is left out was there before")));
                }
                let bytes = bytes.expect("only chunks are left out");
                let frame = ReadFrame::read(&bytes).expect("what was written can be read");
                restore.frame(frame).expect("it fits the others");
            }
        }
    }

    /// All of the first verbs, then fewer: some cases of the suite have many.
    fn is_worth_a_picture(&mut self) -> bool {
        self.verbs += 1;
        self.verbs < 100 || self.verbs.is_multiple_of(100)
    }

    fn act<T: Debug + PartialEq>(&mut self, verb: impl Fn(&mut Engine) -> T) -> T {
        if !self.is_worth_a_picture() {
            return verb(&mut self.engine);
        }
        self.engine.begin_image(Picture::Changes);
        let answer = verb(&mut self.engine);
        let mut restored = self.take();
        assert_eq!(restored.check(), Ok(()), "an engine made of its image is not whole");
        // Whatever is asked twice, changes of the first time among them, would show here.
        assert_eq!(verb(&mut restored), answer, "an engine made of its image answers otherwise");
        assert_eq!(self.engine.check(), Ok(()), "the engine is not whole");
        self.engine = restored;
        answer
    }
}

impl Pictured {
    fn album(&self) -> MutexGuard<'_, Album> {
        self.album.lock().expect("no verb panics")
    }

    /// Lets errors be compared.
    fn act<T: Debug + PartialEq>(
        &self,
        verb: impl Fn(&mut Engine) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let error = Mutex::new(None);
        let answer = self.album().act(|engine| {
            verb(engine).map_err(|told| {
                let text = told.to_string();
                *error.lock().expect("no verb panics") = Some(told);
                text
            })
        });
        answer.map_err(|_| error.into_inner().expect("no verb panics").expect("it was just told"))
    }
}

impl Harness for Pictured {
    fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        pollster::block_on(future)
    }

    fn open(&mut self) -> Arc<dyn Store> {
        *self = Self::default();
        Arc::new(self.clone())
    }

    fn reopen(&mut self, _crash: bool) -> Option<Arc<dyn Store>> {
        self.recovered = Some(Recovered::default());
        let stats = self.album().engine.stats("suite", Timestamp::ZERO);
        if let Ok(stats) = stats {
            let (pending, leased) = (stats.urls_in(UrlState::Pending), stats.urls_in(UrlState::Leased));
            let (seen, dead) = (stats.urls.iter().sum(), stats.urls_in(UrlState::Dead));
            self.recovered = Some(Recovered { pending, leased, seen, dead, ..Recovered::default() });
        }
        let mut album = self.album();
        album.engine.begin_image(Picture::Changes);
        let mut restored = album.take();
        assert_eq!(restored.digest(), album.engine.digest());
        album.engine = restored;
        drop(album);
        Some(Arc::new(self.clone()))
    }
}

#[async_trait]
impl Store for Pictured {
    async fn admit(
        &self,
        crawl: &str,
        now: Timestamp,
        batch: &[Candidate],
    ) -> Result<Vec<Admission>, StoreError> {
        self.act(|engine| engine.admit(crawl, now, batch))
    }

    async fn claim(&self, crawl: Option<&str>, now: Timestamp, want: &Want) -> Result<Claimed, StoreError> {
        let library = Arc::clone(&self.album().library);
        self.act(|engine| {
            let mut claimed = engine.claim(crawl, now, want)?;
            for (lease, unread) in claimed.leases.iter_mut().zip(engine.take_unread()) {
                let (request, page) = library.book(unread.place);
                lease.request = request;
                lease.page = lease.page.take().or(page.filter(|_| unread.has_page));
            }
            Ok(claimed)
        })
    }

    async fn settle(
        &self,
        crawl: &str,
        now: Timestamp,
        batch: Vec<Settlement>,
    ) -> Result<Vec<Settled>, StoreError> {
        self.act(|engine| engine.settle(crawl, now, &batch))
    }

    async fn steer(&self, crawl: &str, now: Timestamp, steer: Steer) -> Result<Steered, StoreError> {
        self.act(|engine| engine.steer(crawl, now, steer.clone()))
    }

    async fn scan(&self, crawl: &str, now: Timestamp, scan: &Scan) -> Result<Page, StoreError> {
        self.act(|engine| engine.scan(crawl, now, scan))
    }

    async fn stats(&self, crawl: &str, now: Timestamp) -> Result<Stats, StoreError> {
        let stats = self.act(|engine| Ok(Stats { memory: None, ..engine.stats(crawl, now)? }))?;
        Ok(Stats { recovered: self.recovered, ..stats })
    }
}

store_suite!(Pictured::default());
