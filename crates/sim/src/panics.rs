//! Failed assertions as values.
//!
//! The hook of the process is put in place once: a panic of a thread that is inside [`caught`] is kept, any other goes to
//! the hook that was there before. Deliberately not here: what is made of it.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

/// A failed assertion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caught {
    /// What it said.
    pub message: String,
    /// Where, as `file:line`.
    pub place: String,
}

thread_local! {
    /// `Some` inside `caught`; the panic, once there was one.
    static CAUGHT: RefCell<Option<Option<Caught>>> = const { RefCell::new(None) };
}

static HOOK: Once = Once::new();

fn put_hook() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let payload = info.payload();
        let message = payload
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| payload.downcast_ref::<&str>().map(|&text| text.to_owned()))
            .unwrap_or_else(|| "something that is no text".to_owned());
        let place = info.location().map_or_else(String::new, |at| format!("{}:{}", at.file(), at.line()));
        let kept = CAUGHT.with(|caught| match &mut *caught.borrow_mut() {
            Some(place_for_it) => {
                *place_for_it = Some(Caught { message, place });
                true
            }
            None => false,
        });
        if !kept {
            before(info);
        }
    }));
}

/// Runs `work`; a panic in it is a value.
///
/// # Errors
/// The panic. What `work` changed may be half changed then.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, Caught> {
    HOOK.call_once(put_hook);
    let outer = CAUGHT.with(|caught| caught.borrow_mut().replace(None));
    let result = catch_unwind(AssertUnwindSafe(work));
    let caught = CAUGHT.with(|caught| std::mem::replace(&mut *caught.borrow_mut(), outer)).flatten();
    result.map_err(|_| {
        caught.unwrap_or_else(|| Caught {
            message: "a panic without a message".to_owned(),
            place: String::new(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_value_with_its_place() {
        let caught = caught(|| assert_eq!(1, 2, "numbers differ")).expect_err("it panicked");
        assert!(caught.message.contains("numbers differ"), "{caught:?}");
        assert!(caught.place.contains("panics.rs:"), "{caught:?}");
        assert_eq!(super::caught(|| 5), Ok(5));
    }
}
