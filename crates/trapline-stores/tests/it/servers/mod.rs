//! What needs a real server. `cargo test -- --skip servers::` leaves it out.

mod postgres;
