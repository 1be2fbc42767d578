//! What our own reader of Linux's format makes of a drive that Linux wrote: `ocssd serve --target linux-pblk`, compared with
//! what Linux said of the same drive.
//!
//! Two numbers say it all: the checksum of the map, which Linux prints when an instance begins and ends, and the sum of every
//! block of the device.

use crate::ci::served::Served;
use crate::process;
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::path::Path;
use std::process::Command;

/// An instance as one of both sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    /// The checksum of its map.
    pub map: String,
    /// The MD5 of all its blocks.
    pub device: String,
}

impl Instance {
    /// As the guest says it: the checksum of its map, and the sum of its blocks.
    ///
    /// Errors: it said something else.
    pub fn said(text: &str) -> Result<Self> {
        let mut words = text.split_whitespace().map(str::to_owned);
        match (words.next(), words.next(), words.next()) {
            (Some(map), Some(device), None) => Ok(Self { map, device }),
            _ => bail!("the guest should say a checksum and a sum, but said \"{text}\""),
        }
    }
}

/// Mounts the instance on a drive's image and reads all of it. Nothing is written to the drive.
///
/// Errors: it cannot be mounted, or read.
pub fn read(program: &Path, image: &Path, folder: &Path, revision: &str) -> Result<Instance> {
    let (socket, copy) = (folder.join("ours.sock"), folder.join("ours.raw"));
    let listen = format!("unix:{}", socket.display());
    let (drive, target) =
        (image.display().to_string(), format!("linux-pblk:read_only=yes,map_crc={revision}"));
    let serve = ["--nbd", &listen, "--read-only", "--drive", &drive, "--target", &target];
    let (server, said) = Served::start(program, &serve)?;
    let map =
        map_crc(&said).with_context(|| format!("our mount said no checksum of the map: {said}"))?.to_owned();
    let uri = format!("nbd+unix:///?socket={}", socket.display());
    process::run(Command::new("nbdcopy").arg(&uri).arg(&copy))?;
    let sum = process::output(Command::new("md5sum").arg(&copy))?;
    let device = sum.split_whitespace().next().context("md5sum says a sum")?.to_owned();
    server.stop()?;
    fs::remove_file(&copy).with_context(|| format!("{} could not be removed", copy.display()))?;
    Ok(Instance { map, device })
}

/// Both must see the same instance.
///
/// Errors: they do not.
pub fn compare(what: &str, ours: &Instance, linux: &Instance) -> Result<()> {
    let Instance { map, device } = linux;
    ensure!(ours.map == *map, "{what}: our map has the checksum {}, Linux's {map}", ours.map);
    ensure!(ours.device == *device, "{what}: our blocks have the sum {}, Linux's {device}", ours.device);
    Ok(())
}

/// The checksum in what a mount says.
fn map_crc(said: &str) -> Option<&str> {
    let (_, rest) = said.split_once("L2P CRC: ")?;
    let end = rest.find(|letter: char| !letter.is_ascii_hexdigit()).unwrap_or(rest.len());
    Some(&rest[..end]).filter(|digits| !digits.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_is_a_checksum_and_a_sum() {
        let found = Instance::said("1a2b d41d8").expect("both are there");
        assert_eq!(found, Instance { map: "1a2b".to_owned(), device: "d41d8".to_owned() });
        for text in ["", "1a2b", "1a2b d41d8 more"] {
            assert!(Instance::said(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_checksum_is_found_in_what_a_mount_says() {
        assert_eq!(map_crc("{\"notes\": [\"a Linux pblk; L2P CRC: 1a2b\"]}"), Some("1a2b"));
        assert_eq!(map_crc("L2P CRC: \"}"), None);
        assert_eq!(map_crc("a Linux pblk"), None);
    }

    #[test]
    fn one_number_that_differs_is_named() {
        let one = Instance { map: "1".to_owned(), device: "a".to_owned() };
        compare("an image", &one, &one).expect("the same");
        for (other, says) in [
            (Instance { map: "2".to_owned(), ..one.clone() }, "checksum 1, Linux's 2"),
            (Instance { device: "b".to_owned(), ..one.clone() }, "sum a, Linux's b"),
        ] {
            let error = compare("an image", &one, &other).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
