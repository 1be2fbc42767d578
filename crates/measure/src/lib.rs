//! Whether a measurement may be believed.
//!
//! `lint` reads results (ours, fio's, published tables) and says what cannot be right in them. Plain text in, plain data
//! out. Deliberately not here: files, running anything, and measuring real drives, which does not exist yet.

#![forbid(unsafe_code)]

pub mod lint;
