//! Text in, evidence out: fio's JSON, our results, tables as CSV or JSON.

mod document;
mod error;
mod fio;
mod options;
mod own;
mod size;
mod table;

pub use document::read;
pub use error::{ReadError, ReadProblem};
pub use own::MEDIA_READ_ROW;
