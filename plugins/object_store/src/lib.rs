//! An object store on an open-channel drive: a put is one atomic flush of a table, a get reads what is asked for.
//!
//! [`DriveObjects`] implements the `object_store` crate's trait on a [`Store`], so that whatever is written against that crate
//! runs on a drive. An object is a file of the store at the path of its name, and appears as a whole, with its attributes, in
//! one edit of the target.
//!
//! Calls block the thread for as long as the drive takes. Under virtual time that is no time; under the machine's clock put a
//! runtime with threads around it. Deliberately not here: versions, tags, signed addresses; parts of an upload under a name
//! that another process may know (`MultipartStore`).

mod label;
mod listing;
mod objects;
mod upload;

pub use objects::DriveObjects;

#[doc(no_inline)]
pub use ocssd_table_store::Store;
