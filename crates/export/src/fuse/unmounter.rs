//! The thread that takes a directory away: the kernel may ask something before the system call returns, so who answers must not
//! make it.
//!
//! It begins with the mount and not when it is needed: a server that has given up what it does not need (Landlock, seccomp) may
//! unmount nothing any more, and neither may threads that it begins then. Deliberately not here: how one unmounts.

use super::mount::Place;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

/// How a directory is taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// If nobody uses it.
    Unused,
    /// At once, from the names only.
    Lazily,
}

/// How long an unmount is waited for that waits for nobody (chosen: much longer than one takes).
const PATIENCE: Duration = Duration::from_secs(5);

/// The way to the thread.
#[derive(Debug)]
pub struct Unmounter {
    asks: Sender<How>,
    answers: Receiver<io::Result<()>>,
}

impl Unmounter {
    /// Begins the thread, which ends with this or with the process.
    ///
    /// # Errors
    /// As the system says.
    pub fn begin(place: Place) -> io::Result<Self> {
        let (asks, asked) = channel::<How>();
        let (answer, answers) = channel();
        let work = move || {
            for how in asked {
                // Who does not wait for the answer any more need not hear it.
                let _ = answer.send(place.unmount(how == How::Lazily));
            }
        };
        thread::Builder::new().name("unmount".to_owned()).spawn(work)?;
        Ok(Self { asks, answers })
    }

    /// Asks for the directory to be taken away, if nobody uses it; [`Self::poll`] has the answer.
    pub fn ask(&self) {
        // A thread that is gone answers nothing, which `poll` says.
        let _ = self.asks.send(How::Unused);
    }

    /// The answer, once there is one: an error if it is in use.
    pub fn poll(&self) -> Option<io::Result<()>> {
        match self.answers.try_recv() {
            Ok(answer) => Some(answer),
            Err(std::sync::mpsc::TryRecvError::Empty) => None,
            Err(std::sync::mpsc::TryRecvError::Disconnected) => Some(Err(gone())),
        }
    }

    /// Takes the directory away at once, from the names only: who has a file open keeps it.
    ///
    /// # Errors
    /// As the system says, or if an earlier unmount has not ended.
    pub fn unmount_lazily(&self) -> io::Result<()> {
        self.asks.send(How::Lazily).map_err(|_| gone())?;
        self.answers.recv_timeout(PATIENCE).map_err(|_| gone())?
    }
}

fn gone() -> io::Error {
    io::Error::other("the thread that unmounts does not answer")
}
