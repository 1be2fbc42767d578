//! Failures as C programs get them: a negative error number, and a sentence kept for the thread.

use ocssd_drive::DriveError;
use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};

/// Why a call did nothing.
#[derive(Debug, PartialEq, Eq)]
pub struct Failure {
    /// A positive number of errno.h.
    pub errno: c_int,
    /// What was expected, what was found, what to change.
    pub text: String,
}

thread_local! {
    /// The sentence of the thread's last failure.
    static LAST: RefCell<CString> = RefCell::new(CString::default());
}

impl Failure {
    /// A failure in words.
    pub fn new(errno: c_int, text: impl Into<String>) -> Self {
        assert!(errno > 0, "numbers of errors are positive here, not {errno}");
        Self { errno, text: text.into() }
    }

    /// An argument that cannot be used.
    pub fn invalid(text: impl Into<String>) -> Self {
        Self::new(libc::EINVAL, text)
    }

    /// What a panic said.
    pub fn of_panic(panic: &(dyn Any + Send)) -> Self {
        let words = panic.downcast_ref::<String>().map(String::as_str);
        let words = words.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no words");
        Self::new(
            libc::ENOTRECOVERABLE,
            format!("a bug in ocssd stopped this call, and the drive cannot be used any more: {words}"),
        )
    }

    /// Keeps the sentence for the thread, and gives the number to return.
    pub fn keep(self) -> c_int {
        let text = CString::new(self.text.replace('\0', " ")).unwrap_or_default();
        // A thread that is ending has no place for sentences any more; the number is returned all the same.
        drop(LAST.try_with(|last| last.replace(text)));
        -self.errno
    }
}

impl From<DriveError> for Failure {
    fn from(error: DriveError) -> Self {
        let errno = match &error {
            DriveError::NoSuchSource { .. } => libc::ENOENT,
            DriveError::Io { error, .. } => error.raw_os_error().unwrap_or(libc::EIO),
            DriveError::Exists { .. } => libc::EEXIST,
            DriveError::Locked { .. } => libc::EBUSY,
            DriveError::ReadOnly { .. } => libc::EROFS,
            DriveError::Settings(_)
            | DriveError::Problems(_)
            | DriveError::Image { .. }
            | DriveError::Leases { .. }
            | DriveError::Shape { .. }
            | DriveError::Open { .. } => libc::EINVAL,
        };
        Self::new(errno, error.to_string())
    }
}

/// The sentence of this thread's last failed call; empty if none failed. It says what was expected, what was found and what
/// to change. It is valid until the next call of this thread that fails, or the end of the thread.
#[unsafe(no_mangle)]
pub extern "C" fn ocssd_last_error() -> *const c_char {
    // The text stays where it is when the borrow ends; only `keep` of this thread replaces it.
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// The library's version, as "0.1.0".
#[unsafe(no_mangle)]
pub extern "C" fn ocssd_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    fn last() -> String {
        // SAFETY: the library's own text of this thread, with an end mark.
        unsafe { CStr::from_ptr(ocssd_last_error()) }.to_str().unwrap().to_owned()
    }

    #[test]
    fn a_thread_keeps_its_own_last_sentence_without_zero_bytes() {
        assert_eq!(last(), "");
        assert_eq!(Failure::invalid("a\0b").keep(), -libc::EINVAL);
        assert_eq!(last(), "a b");
        assert_eq!(std::thread::spawn(last).join().unwrap(), "");
        assert_eq!(last(), "a b");
    }

    #[test]
    fn a_panic_keeps_its_words() {
        for (panic, words) in [
            (Box::new("plain") as Box<dyn Any + Send>, "plain"),
            (Box::new("made".to_owned()), "made"),
            (Box::new(7), "no words"),
        ] {
            let failure = Failure::of_panic(panic.as_ref());
            assert!(failure.errno == libc::ENOTRECOVERABLE && failure.text.ends_with(words), "{failure:?}");
        }
    }
}
