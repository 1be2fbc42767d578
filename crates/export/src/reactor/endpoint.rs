//! Where a server listens, and who may come: as a user writes it.

use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// A socket in the file system, as `unix:/run/x.sock`.
    Unix(PathBuf),
    /// An address of the machine, as `tcp:127.0.0.1:10809`.
    Tcp(SocketAddr),
}

impl Endpoint {
    /// Only this machine reaches it.
    #[must_use]
    pub const fn is_local(&self) -> bool {
        match self {
            Self::Unix(_) => true,
            Self::Tcp(address) => address.ip().is_loopback(),
        }
    }
}

impl FromStr for Endpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted =
            || format!("expected unix:/path or tcp:ADDRESS:PORT, as tcp:127.0.0.1:10809, found \"{text}\"");
        match text.split_once(':') {
            Some(("unix", path)) if !path.is_empty() => Ok(Self::Unix(PathBuf::from(path))),
            Some(("tcp", address)) => {
                let mut found =
                    address.to_socket_addrs().map_err(|error| format!("{}: {error}", wanted()))?;
                found.next().map(Self::Tcp).ok_or_else(wanted)
            }
            _ => Err(wanted()),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(address) => write!(f, "tcp:{address}"),
        }
    }
}

/// Addresses that begin alike, as `10.0.0.0/8`, or one, as `10.0.0.7`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressRange {
    first: IpAddr,
    /// Bits that count.
    bits: u8,
}

impl AddressRange {
    /// Whether an address is among them. An IPv4 address in IPv6 form is the IPv4 address.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.first.to_canonical(), address.to_canonical()) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.bits)).unwrap_or(0);
                first.to_bits() & mask == address.to_bits() & mask
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.bits)).unwrap_or(0);
                first.to_bits() & mask == address.to_bits() & mask
            }
            _ => false,
        }
    }
}

impl FromStr for AddressRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = || format!("expected an address or a range as 10.0.0.0/8, found \"{text}\"");
        let (first, bits) = text.split_once('/').map_or((text, None), |(first, bits)| (first, Some(bits)));
        let first: IpAddr = first.parse().map_err(|_| wanted())?;
        let most: u8 = if first.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), |bits| bits.parse().map_err(|_| wanted()))?;
        if bits > most { Err(wanted()) } else { Ok(Self { first, bits }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_written_as_they_are_read() {
        for text in ["unix:/run/x.sock", "tcp:127.0.0.1:10809", "tcp:[::1]:7"] {
            assert_eq!(text.parse::<Endpoint>().unwrap().to_string(), text);
        }
        for text in ["", "unix:", "tcp:", "tcp:127.0.0.1", "127.0.0.1:10809", "udp:1.2.3.4:5"] {
            let error = text.parse::<Endpoint>().err().unwrap_or_default();
            assert!(error.contains("expected unix:/path"), "{text}: {error}");
        }
    }

    #[test]
    fn only_loopback_and_files_are_local() {
        let local = |text: &str| text.parse::<Endpoint>().unwrap().is_local();
        assert!(local("unix:/x") && local("tcp:127.9.9.9:1") && local("tcp:[::1]:1"));
        assert!(!local("tcp:0.0.0.0:1") && !local("tcp:192.0.2.1:1") && !local("tcp:[::]:1"));
    }

    #[test]
    fn a_range_holds_the_addresses_that_begin_alike() {
        let cases = [
            ("10.0.0.0/8", "10.200.3.4", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("10.0.0.7", "10.0.0.7", true),
            ("10.0.0.7", "10.0.0.6", false),
            ("10.0.0.7", "::ffff:10.0.0.7", true),
            ("0.0.0.0/0", "203.0.113.9", true),
            ("::/0", "2001:db8::1", true),
            ("2001:db8::/32", "2001:db9::1", false),
            ("10.0.0.0/8", "::1", false),
        ];
        for (range, address, expected) in cases {
            let range: AddressRange = range.parse().unwrap();
            assert_eq!(range.contains(address.parse().unwrap()), expected, "{range:?} {address}");
        }
        for text in ["10.0.0.0/33", "x", "::1/129", "10.0.0.0/"] {
            assert!(text.parse::<AddressRange>().is_err(), "{text}");
        }
    }
}
