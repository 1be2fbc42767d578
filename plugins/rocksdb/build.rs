//! Compiles the C++ side and links RocksDB's library, the one that the programs have loaded already.
//!
//! `ROCKSDB_INC` names a directory of headers, and `ROCKSDB_LIB` one of a library, that are not the system's. `ROCKSDB_CXXFLAGS`
//! are flags that the library was compiled with and its clients must be, too, as `-fno-rtti`.

fn main() {
    for name in ["shim.cc", "build.rs"] {
        println!("cargo:rerun-if-changed={name}");
    }
    for name in ["ROCKSDB_INC", "ROCKSDB_LIB", "ROCKSDB_LIB_NAME", "ROCKSDB_CXXFLAGS"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    let mut build = cc::Build::new();
    build.cpp(true).file("shim.cc").std("c++20").flag("-O1").warnings(false);
    // The registration is a static initializer that nothing names; a linker drops the object without this.
    build.link_lib_modifier("+whole-archive");
    for flag in std::env::var("ROCKSDB_CXXFLAGS").unwrap_or_default().split_whitespace() {
        build.flag(flag);
    }
    if let Ok(headers) = std::env::var("ROCKSDB_INC") {
        build.include(headers);
    }
    build.compile("ocssd_rocksdb_shim");
    if let Ok(library) = std::env::var("ROCKSDB_LIB") {
        println!("cargo:rustc-link-search=native={library}");
    }
    let name = std::env::var("ROCKSDB_LIB_NAME").unwrap_or_else(|_| "rocksdb".to_owned());
    println!("cargo:rustc-link-lib=dylib={name}");
}
