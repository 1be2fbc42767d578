//! Real files below the job engine: both ways of I/O, what is read back, and what the system says of it.
//!
//! Everything happens in a temporary directory, on whatever file system that is; what depends on direct I/O asks the file.

mod device;
mod jobs;
mod open;
