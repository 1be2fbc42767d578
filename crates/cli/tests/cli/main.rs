//! The program from outside: its arguments, exit codes, output and files.

mod bad_input;
mod beside;
mod conform;
mod disk_full;
mod examples;
mod fuse;
mod host_crash;
mod interrupt;
mod lint;
mod logs;
mod namespaces;
mod output;
mod pages;
mod profile;
mod program;
mod serve;
mod serve_end;
mod served_store;
mod simulate;
mod tables;
mod targets;
mod verbs;
mod verdict;
mod vfio_user;
mod workload;
mod zones;
