//! Archives of pages: WARC files, and bodies in folders and object stores.
//!
//! Both are [`Archive`](trapline_crawl::ports::Archive)s of a crawl: what they have said to keep is on stable storage. Names of files and keys
//! never come from URLs.
//!
//! What is absent: sockets. Who keeps bodies far away brings the way there ([`BodyArchive::s3`]).

mod bodies;
mod digest;
mod warc;

pub use bodies::{BodyArchive, BodyCompression, read_object};
pub use object_store::{ClientConfigKey, ClientOptions, Result as ObjectResult, client as http_client};
pub use warc::{NameTemplate, RecordCounts, WarcArchive, WarcInfo, WarcOptions, WarcScan, scan_warc};
