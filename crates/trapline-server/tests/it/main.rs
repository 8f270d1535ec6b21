//! The service over real sockets.

mod serving;
