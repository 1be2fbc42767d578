//! What objects there are, by name.

use crate::objects::{failed, file_of, meta};
use object_store::path::Path;
use object_store::{ListResult, ObjectMeta, Result};
use ocssd_table_store::{ErrorKind, FileStatus, Store};

/// Names and states below a prefix, one step deep; none if there is no such directory.
fn children(store: &Store, prefix: &Path) -> Result<Vec<(Path, FileStatus)>> {
    let found = match store.children(&file_of(prefix)) {
        Ok(found) => found,
        Err(error) if matches!(error.kind, ErrorKind::NotFound | ErrorKind::Invalid) => Vec::new(),
        Err(error) => return Err(failed(error, prefix.as_ref())),
    };
    let mut children = Vec::with_capacity(found.len());
    for (name, status) in found {
        // A name as it was stored: taken apart and put together it is the same again.
        let whole = if prefix.as_ref().is_empty() { name } else { format!("{prefix}/{name}") };
        children.push((Path::parse(whole)?, status));
    }
    Ok(children)
}

/// Every object below a prefix, by ascending name of each step.
pub fn below(store: &Store, prefix: Option<&Path>) -> Result<Vec<ObjectMeta>> {
    let (mut found, mut left) = (Vec::new(), vec![prefix.cloned().unwrap_or_default()]);
    while let Some(directory) = left.pop() {
        for (location, status) in children(store, &directory)? {
            if status.is_directory {
                left.push(location);
            } else {
                found.push(meta(location, &status));
            }
        }
    }
    found.sort_unstable_by(|a, b| a.location.cmp(&b.location));
    Ok(found)
}

/// The objects one step below a prefix, and the prefixes there.
pub fn directly_below(store: &Store, prefix: Option<&Path>) -> Result<ListResult> {
    let (mut objects, mut common_prefixes) = (Vec::new(), Vec::new());
    for (location, status) in children(store, &prefix.cloned().unwrap_or_default())? {
        if status.is_directory {
            common_prefixes.push(location);
        } else {
            objects.push(meta(location, &status));
        }
    }
    Ok(ListResult { objects, common_prefixes, extensions: Default::default() })
}
