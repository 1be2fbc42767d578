//! A whole server, with a drive and pblk below it, in a thread; clients over real sockets, sound ones and rude ones.

mod client;
mod nvme;
mod rude;
mod sound;
mod tls;
mod world;
