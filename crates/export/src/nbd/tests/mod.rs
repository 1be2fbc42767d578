//! A session as a client sees it, over memory.

mod fair;
mod handshake;
mod room;
mod transmission;
