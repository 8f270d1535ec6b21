//! What the crate finds in bytes, seen from outside: friendly ones, real ones and hostile ones.

mod fuzzing_pages;
mod hostile;
mod pages;
mod real_pages;
mod tree;
mod tricky;
