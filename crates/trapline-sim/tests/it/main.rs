//! The integration tests of the simulation, in one binary.
mod cheats;
mod crawl;
mod crawl_loop;
mod kept;
mod planted;
mod simulation;
