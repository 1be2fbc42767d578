//! What every list of planted bugs has: who is asked whether one is planted, and the name it is planted by.
//!
//! A target's canaries are an enum in its file `canary`, and its options hold the one that is planted. Deliberately not here:
//! which bugs there are (those files), and how soon the simulator finds each (`docs/simulate.md`).

/// Gives options the question whether a bug is planted, and canaries their names.
///
/// Without the feature `canaries` the answer is a constant, so that nothing of a bug is compiled into what people use.
macro_rules! planted_in {
    ($options:ident, $canary:ident) => {
        impl $options {
            /// True if this bug is planted.
            #[cfg(feature = "canaries")]
            pub(crate) fn has_canary(&self, canary: $canary) -> bool {
                self.canary == Some(canary)
            }

            /// False: no bug is planted in builds that people use.
            #[cfg(not(feature = "canaries"))]
            #[inline]
            pub(crate) const fn has_canary(&self, _: $canary) -> bool {
                false
            }
        }

        #[cfg(feature = "canaries")]
        impl std::str::FromStr for $canary {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                crate::planted::named(Self::ALL, text)
            }
        }
    };
}
pub(crate) use planted_in;

/// The canary of this name.
///
/// # Errors
/// A sentence with every name, if there is none.
#[cfg(feature = "canaries")]
pub(crate) fn named<C: Copy>(all: &[(C, &str)], text: &str) -> Result<C, String> {
    let found = all.iter().find(|(_, name)| *name == text);
    found.map(|&(canary, _)| canary).ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|&(_, name)| name).collect();
        format!("there is no canary \"{text}\"; the canaries are: {}", names.join(", "))
    })
}

#[cfg(all(test, feature = "canaries"))]
mod tests {
    use super::*;

    #[test]
    fn a_canary_is_found_by_its_name_and_no_other() {
        let all = [(1, "polly"), (2, "robin")];
        assert_eq!((named(&all, "polly"), named(&all, "robin")), (Ok(1), Ok(2)));
        let error = named(&all, "jack").expect_err("no such canary");
        assert!(error.contains("\"jack\"") && error.contains("polly, robin"), "{error}");
    }
}
