//! HTTP for crawlers: one guarded door to the network, a cap on everything, and a record of what happened.
//!
//! Every outgoing connection goes through `Dialer`, which alone opens sockets and looks at the address that it really dials.
//! Redirects are answers, not journeys: who fetches decides what becomes of them.
