//! The linter from outside: every rule on made results, the course report, fio's own output, and what is no result.

mod bad_input;
mod fio;
mod formats;
mod made;
mod profiles;
mod published;
mod rules;
