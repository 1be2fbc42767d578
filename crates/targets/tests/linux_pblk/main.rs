//! `linux-pblk` on drives written as Linux writes them: what is read, what is refused, and what damage does.

mod damage;
mod ending;
mod linux;
mod reading;
mod reports;
mod writing;
