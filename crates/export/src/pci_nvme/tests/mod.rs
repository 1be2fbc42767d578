//! The whole function, by its registers and memory.

mod hostile;
mod shadow;
mod sound;
