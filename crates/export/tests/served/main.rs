//! A whole server, with a drive and pblk below it, in a thread; clients over real sockets, sound ones and rude ones.

mod blkio_client;
mod client;
mod nvme;
mod raw_frontend;
mod rude;
mod rude_frontends;
mod sound;
mod tls;
mod vhost_user_blk;
mod world;
