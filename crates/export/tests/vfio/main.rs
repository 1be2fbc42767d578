//! A whole server with a drive's controller, in a thread; guests over its socket, sound ones and rude ones.

mod drive;
mod guest;
mod rude;
mod sound;
mod world;
