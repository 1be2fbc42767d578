//! Gives the shared library its name for the linker, which programs ask for when they start.
//!
//! The number grows when a program compiled against an older header would no longer work.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libocssd.so.0");
}
