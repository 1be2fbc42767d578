//! A whole server, with a drive and pblk below it, in a thread; clients over real sockets, sound ones and hostile ones.

mod blkio_client;
mod client;
mod hostile;
mod hostile_frontends;
mod nvme;
mod raw_frontend;
mod sound;
mod tls;
mod vhost_user_blk;
mod world;
