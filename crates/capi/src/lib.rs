//! The C library of ocssd: virtual open-channel SSDs in the caller's process.
//!
//! A drive is opened from a preset, settings or an image. Raw NVMe entries go to it with plain pointers (`passthrough`,
//! `queue`), and targets lie on it (`target`, `requests`). Everything exported is an `extern "C"` function that goes
//! through [`boundary`]: no panic leaves it, and every pointer that can be checked is. The header `include/ocssd.h` is
//! generated from this crate by `cargo xtask c-header`, with the comments of what is exported.
//!
//! Deliberately not here: threads, callbacks from anywhere but a poll, C++ classes, and what a drive or target does.
//!
//! `unsafe` has its place here and nowhere else in the workspace: C hands over pointers.

#![expect(unsafe_code, reason = "C hands over pointers, and exported names are unsafe attributes")]

#[cfg(panic = "abort")]
compile_error!(
    "no panic may end the caller's process: build the C library with panic = \"unwind\", the default"
);

mod address;
mod ask;
mod blocks;
mod boundary;
mod command;
mod content;
mod core;
mod drive;
mod failure;
mod keys;
mod keys_target;
mod leased;
mod pages;
mod pages_target;
mod passthrough;
mod payload;
mod prepare;
mod queue;
mod queues;
mod reply;
mod request;
mod requests;
mod settings;
mod shape;
mod stages;
mod state;
mod status;
mod tables;
mod tables_target;
mod target;
mod target_io;
mod transactions;
mod zoned_target;
mod zones;
