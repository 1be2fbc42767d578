//! The program from outside: its arguments, exit codes, output and files.

mod bad_input;
mod examples;
mod lint;
mod logs;
mod program;
mod simulate;
mod targets;
mod verbs;
