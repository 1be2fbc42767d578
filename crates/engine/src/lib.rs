//! The one loop and its two clocks.
//!
//! [`Host`] owns a device, the targets on it and the buffers, and runs a [`Source`](ocssd_lightnvm::Source) of requests
//! against them, in virtual time (deterministic, as fast as the machine can) or in wall time (serving the real world).
//! [`Caller`] is the same device and clock for code that does one thing after another: format, mount, inspection.
//!
//! Deliberately not here: what is asked (`workload`, `export`), and everything below the traits.

mod caller;
mod clock;
mod drive_clock;
mod host;
mod observer;
mod requests;
mod turn;

pub use caller::Caller;
pub use clock::{Clock, EarlyWake, Lateness, VirtualClock, WallClock};
pub use drive_clock::DriveClock;
pub use host::{Host, RunEnd};
pub use observer::{Observer, Unobserved};
pub use requests::Requests;
