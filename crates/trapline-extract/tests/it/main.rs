//! Extraction seen from outside: bytes in, what was found out.

mod fuzzing;
mod robots;
mod sitemap;
