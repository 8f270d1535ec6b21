//! The integration tests of the simulation, in one binary.
mod crawl;
