//! What the crate finds in bytes, seen from outside: friendly ones, real ones and hostile ones.

mod fuzzing;
mod hostile;
mod pages;
mod real_pages;
mod robots;
mod sitemap;
mod tree;
mod tricky;
