//! Which server, subsystem and host are meant: `nvme-tcp://ADDRESS:PORT[/NQN][?host=NQN]`.

use crate::error::{HostError, HostErrorKind};
use ocssd_nvme::fabrics::NQN_BYTES_MAX;

/// What such a name begins with.
const SCHEME: &str = "nvme-tcp://";

/// A drive that is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Address and port, as a resolver takes them.
    pub address: String,
    /// The subsystem; if none is named, the only one there is at that address.
    pub subsystem: Option<String>,
    /// What this host calls itself; else it draws a name.
    pub host: Option<String>,
}

impl Endpoint {
    /// True of a text that means a served drive, well or badly.
    #[must_use]
    pub fn is_meant_by(text: &str) -> bool {
        text.starts_with(SCHEME)
    }

    /// Reads a name.
    ///
    /// # Errors
    /// A sentence about what cannot be.
    pub fn parse(text: &str) -> Result<Self, HostError> {
        let wrong = |why: &str| {
            let sentence = format!(
                "\"{text}\": {why}; a served drive is named as in {SCHEME}127.0.0.1:4420 or {SCHEME}127.0.0.1:4420/NQN"
            );
            HostError::new(HostErrorKind::Invalid, sentence)
        };
        let rest = text.strip_prefix(SCHEME).ok_or_else(|| wrong("it is no address of a server"))?;
        let (rest, host) = match rest.split_once("?host=") {
            Some((rest, host)) => (rest, Some(host)),
            None => (rest, None),
        };
        let (address, subsystem) = match rest.split_once('/') {
            Some((address, "")) => (address, None),
            Some((address, nqn)) => (address, Some(nqn)),
            None => (rest, None),
        };
        let port = address.rsplit_once(':').and_then(|(name, port)| Some((name, port.parse::<u16>().ok()?)));
        if !port.is_some_and(|(name, port)| !name.is_empty() && port > 0) {
            return Err(wrong("it has no address and port"));
        }
        for nqn in [subsystem, host].into_iter().flatten() {
            if !nqn.starts_with("nqn.") || nqn.len() > NQN_BYTES_MAX || nqn.contains('\0') {
                return Err(wrong("qualified names begin with \"nqn.\" and have at most 223 bytes"));
            }
        }
        let owned = |name: Option<&str>| name.map(str::to_owned);
        Ok(Self { address: address.to_owned(), subsystem: owned(subsystem), host: owned(host) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_served_drive_has_an_address_and_perhaps_names() {
        let found = Endpoint::parse("nvme-tcp://[::1]:4420/nqn.a:b?host=nqn.c").expect("sound");
        let expected = Endpoint {
            address: "[::1]:4420".to_owned(),
            subsystem: Some("nqn.a:b".to_owned()),
            host: Some("nqn.c".to_owned()),
        };
        assert_eq!(found, expected);
        let bare = Endpoint::parse("nvme-tcp://drives.example:4420/").expect("sound");
        assert_eq!((bare.address.as_str(), bare.subsystem, bare.host), ("drives.example:4420", None, None));
    }

    #[test]
    fn what_names_no_server_is_told() {
        for (text, part) in [
            ("nvme-tcp://", "no address and port"),
            ("nvme-tcp://localhost", "no address and port"),
            ("nvme-tcp://localhost:0", "no address and port"),
            ("nvme-tcp://:4420", "no address and port"),
            ("nvme-tcp://localhost:4420/drive", "\"nqn.\""),
            ("nvme-tcp://localhost:4420?host=me", "\"nqn.\""),
            ("tcp://localhost:4420", "no address of a server"),
        ] {
            let error = Endpoint::parse(text).expect_err(text);
            assert!(error.kind == HostErrorKind::Invalid && error.sentence.contains(part), "{text}: {error}");
        }
    }
}
