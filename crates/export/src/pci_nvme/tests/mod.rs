//! The whole function, by its registers and memory.

mod rude;
mod shadow;
mod sound;
