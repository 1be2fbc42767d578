//! A host over memory against the whole target.

mod admin;
mod beginning;
mod data;
mod ends;
mod hostile;
mod key_value;
mod pages;
mod raw;
mod tables;
mod zoned;
