//! The runner at work on real drives and on a memory that lies: every option carried out, every end reached.

mod emulated;
mod errors;
mod options;
mod pace;
mod pattern;
mod replay;
mod swarm;
mod targets;
mod verify;
mod worker_profile;
mod world;
mod zones;
