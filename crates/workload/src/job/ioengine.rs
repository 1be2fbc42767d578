//! What each fio engine name means here: the drive, nothing at all, or a refusal.
//!
//! Source of the names: `fio --enghelp` of fio 3.33 and the HOWTO. Deliberately not here: running any I/O.

/// What a job runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoEngine {
    /// The drive chosen for the run.
    Drive {
        /// Whether more than one I/O can be in flight; false for fio's synchronous engines.
        asynchronous: bool,
    },
    /// A target that completes at once (fio `null`), to measure the generator itself.
    Null,
}

impl Default for IoEngine {
    /// The drive with any depth: a job that names no engine keeps its `iodepth`.
    fn default() -> Self {
        Self::Drive { asynchronous: true }
    }
}

const ASYNCHRONOUS: [&str; 8] =
    ["libaio", "io_uring", "io_uring_cmd", "posixaio", "windowsaio", "solarisaio", "spdk", "xnvme"];
const SYNCHRONOUS: [&str; 7] = ["sync", "psync", "vsync", "pvsync", "pvsync2", "mmap", "sg"];

/// Refused engines by what they need.
const REFUSED: [(&[&str], &str); 7] = [
    (&["net", "netsplice", "rdma", "librpma_apm_client", "librpma_gpspm_client"], "a network peer"),
    (&["libcufile", "libhipfile"], "a GPU"),
    (
        &[
            "http",
            "rbd",
            "rados",
            "gfapi",
            "gfapi_async",
            "libhdfs",
            "dfs",
            "nfs",
            "libiscsi",
            "ime_psync",
            "ime_psyncv",
            "ime_aio",
            "nbd",
        ],
        "a remote store",
    ),
    (&["exec", "cpuio", "page_fault"], "a program or a processor instead of a drive"),
    (
        &[
            "e4defrag",
            "falloc",
            "ftruncate",
            "filecreate",
            "filestat",
            "filedelete",
            "dircreate",
            "dirstat",
            "dirdelete",
            "splice",
        ],
        "a file system",
    ),
    (&["pmemblk", "libpmem", "dev-dax", "libblkio", "libzbc", "mtd"], "another kind of device"),
    (&["external", "cpp_null"], "a library of fio's"),
];

/// The engine for fio's name, with the sentence that tells the mapping.
///
/// # Errors
/// A sentence for an engine that is refused, or not known.
pub fn parse_ioengine(name: &str) -> Result<(IoEngine, String), String> {
    if name.starts_with("external:") {
        return refuse("a library of fio's");
    }
    if let Some((_, needs)) = REFUSED.iter().find(|(names, _)| names.contains(&name)) {
        return refuse(needs);
    }
    if name == "null" {
        return Ok((IoEngine::Null, "runs on the null target, which completes every I/O at once".to_owned()));
    }
    if name == "mmap" {
        let sentence = "is run as reads and writes of the drive with one I/O in flight; no memory is mapped";
        return Ok((IoEngine::Drive { asynchronous: false }, sentence.to_owned()));
    }
    if SYNCHRONOUS.contains(&name) {
        let sentence = "runs on the drive with one I/O in flight, as this synchronous engine does";
        return Ok((IoEngine::Drive { asynchronous: false }, sentence.to_owned()));
    }
    if ASYNCHRONOUS.contains(&name) || name.rsplit('/').next() == Some("spdk_nvme") {
        return Ok((IoEngine::default(), "runs on the drive".to_owned()));
    }
    let known = ASYNCHRONOUS.into_iter().chain(SYNCHRONOUS).chain(["null"]);
    Err(format!("expected a fio engine{}", super::suggest::did_you_mean(name, known)))
}

fn refuse(needs: &str) -> Result<(IoEngine, String), String> {
    Err(format!("this engine needs {needs}, which a drive is not; use libaio, io_uring, psync or null"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_engine_is_mapped_or_refused_by_name() {
        for name in ASYNCHRONOUS {
            assert_eq!(
                parse_ioengine(name).map(|found| found.0),
                Ok(IoEngine::Drive { asynchronous: true }),
                "{name}"
            );
        }
        for name in SYNCHRONOUS {
            assert_eq!(
                parse_ioengine(name).map(|found| found.0),
                Ok(IoEngine::Drive { asynchronous: false }),
                "{name}"
            );
        }
        assert_eq!(parse_ioengine("null").map(|found| found.0), Ok(IoEngine::Null));
        for name in REFUSED.iter().flat_map(|(names, _)| names.iter()).chain(["external:/x.so"].iter()) {
            let message = parse_ioengine(name).expect_err(name);
            assert!(message.contains("this engine needs"), "{name}: {message}");
        }
        let message = parse_ioengine("libaoi").expect_err("a typing error");
        assert!(message.contains("did you mean `libaio`?"), "{message}");
    }
}
