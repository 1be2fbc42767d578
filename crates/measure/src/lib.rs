//! Measuring, and whether a measurement may be believed.
//!
//! [`lint`] reads results (ours, fio's, published tables) and says what cannot be right in them. [`storage`] is real files and
//! block devices below the job engine of `workload`; [`profile`] is what `ocssd profile` does with them.
//!
//! `unsafe` stands in two modules of [`storage`], each with the list of what must hold; the compiler refuses it elsewhere.

pub mod lint;
pub mod profile;
pub mod storage;
