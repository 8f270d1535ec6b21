//! robots.txt: the standard case by case, against a naive matcher, against another parser, and with files that were made
//! to hurt.

mod cases;
mod hostile;
mod kept;
mod naive;
mod peer;
