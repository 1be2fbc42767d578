//! The header, by cbindgen from the library's source and its `cbindgen.toml`.

use anyhow::{Context, Result, anyhow};
use std::path::Path;

/// The text of the header.
///
/// Errors: the source or its settings cannot be read.
pub fn generate(root: &Path) -> Result<String> {
    let library = root.join("crates/capi");
    let settings = cbindgen::Config::from_file(library.join("cbindgen.toml"))
        .map_err(|error| anyhow!("crates/capi/cbindgen.toml cannot be used: {error}"))?;
    // The modules of the library are found from its root.
    let builder = cbindgen::Builder::new().with_config(settings).with_src(library.join("src/lib.rs"));
    let bindings = builder.generate().context("cbindgen could not read crates/capi/src")?;
    let mut text = Vec::new();
    bindings.write(&mut text);
    String::from_utf8(text).context("the header is not UTF-8")
}
