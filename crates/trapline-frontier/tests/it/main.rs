//! The integration tests of the frontier, in one binary.

mod kept;
mod memory;
mod model;
mod pictured;
mod planted;
