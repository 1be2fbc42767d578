//! A session as a client sees it, over memory.

mod handshake;
mod room;
mod transmission;
