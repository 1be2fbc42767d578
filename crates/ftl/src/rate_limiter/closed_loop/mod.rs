//! The continuous limiter in closed loops: victims of a stated valid fraction (`synthetic`), and a small translation
//! layer made of this crate's parts (`layer`) under uniform and skewed random writes (`workloads`). Tests only.

mod layer;
mod synthetic;
mod workloads;
