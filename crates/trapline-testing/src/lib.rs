//! Servers for tests: started from the machine's own packages in a temporary folder, and gone afterwards, whatever becomes of
//! the test.
//!
//! What is absent: containers, downloads, and servers that somebody else uses. Tests that need a server are in a test binary
//! or a module called `servers`, which `./test quick` leaves out.

mod authority;
mod documentation;
mod grpc_clients;
mod hostile;
mod keeper;
mod nginx;
mod place;
mod postgres;
mod programs;
mod s3;
mod site;
mod visit;
mod visits;
mod warc_tools;
mod wget;

pub use authority::{Authority, Certificate};
pub use documentation::documentation;
pub use grpc_clients::grpc_python;
pub use hostile::{HostileServer, Manner};
pub use nginx::Nginx;
pub use postgres::{PostgresBuilder, PostgresServer, Stop};
pub use s3::S3Server;
pub use site::Site;
pub use visit::Visit;
pub use visits::{Visits, unescaped};
pub use warc_tools::warc_tool;
pub use wget::{Follow, wget};
