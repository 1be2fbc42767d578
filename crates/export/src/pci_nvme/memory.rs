//! The seam to a guest's memory.

use ocssd_nvme::HostAddress;

/// Some of the bytes named are no memory of the guest that may be used so; nothing, or a part, was moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unmapped;

/// A guest's memory by the guest's own addresses. The guest may change it at any time, so nothing is read twice.
pub trait GuestMemory {
    /// Copies bytes out of it.
    ///
    /// # Errors
    /// [`Unmapped`].
    fn read(&self, at: HostAddress, into: &mut [u8]) -> Result<(), Unmapped>;

    /// Copies bytes into it.
    ///
    /// # Errors
    /// [`Unmapped`].
    fn write(&self, at: HostAddress, from: &[u8]) -> Result<(), Unmapped>;

    /// Whether so many bytes can be written.
    fn is_writable(&self, at: HostAddress, count: usize) -> bool;

    /// Reads four bytes at once, in order with all other accesses; `at` is a multiple of 4.
    ///
    /// # Errors
    /// [`Unmapped`].
    fn load(&self, at: HostAddress) -> Result<u32, Unmapped>;

    /// Writes four bytes at once, in order with all other accesses; `at` is a multiple of 4.
    ///
    /// # Errors
    /// [`Unmapped`].
    fn store(&self, at: HostAddress, value: u32) -> Result<(), Unmapped>;
}

/// A piece of memory that a command's data lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// Where; `None` if the bytes are dropped (SGL bit bucket).
    pub(super) at: Option<HostAddress>,
    /// How many bytes.
    pub(super) bytes: usize,
}

/// Copies what segments hold, as much as `into` takes.
pub(super) fn gather<M: GuestMemory>(
    memory: &M,
    segments: &[Segment],
    into: &mut [u8],
) -> Result<(), Unmapped> {
    let mut rest = into;
    for segment in segments {
        let (part, behind) = rest.split_at_mut(segment.bytes.min(rest.len()));
        match segment.at {
            Some(at) => memory.read(at, part)?,
            None => part.fill(0),
        }
        rest = behind;
    }
    assert!(rest.is_empty(), "segments hold {} bytes less than the command moves", rest.len());
    Ok(())
}

/// Whether [`scatter`] can write all of these.
pub(super) fn are_writable<M: GuestMemory>(memory: &M, segments: &[Segment]) -> bool {
    segments.iter().all(|segment| segment.at.is_none_or(|at| memory.is_writable(at, segment.bytes)))
}

/// Copies into segments.
pub(super) fn scatter<M: GuestMemory>(memory: &M, segments: &[Segment], from: &[u8]) -> Result<(), Unmapped> {
    let mut rest = from;
    for segment in segments {
        let (part, behind) = rest.split_at(segment.bytes.min(rest.len()));
        if let Some(at) = segment.at {
            memory.write(at, part)?;
        }
        rest = behind;
    }
    assert!(rest.is_empty(), "segments hold {} bytes less than the command moves", rest.len());
    Ok(())
}

/// Memory for tests and fuzzers: some bytes from an address on.
#[derive(Debug)]
pub(crate) struct FlatMemory {
    first: u64,
    bytes: std::cell::RefCell<Vec<u8>>,
}

impl FlatMemory {
    /// So many bytes of zeros from `first` on.
    pub(crate) fn new(first: u64, count: usize) -> Self {
        Self { first, bytes: std::cell::RefCell::new(vec![0; count]) }
    }

    /// Only so many bytes are left.
    #[cfg(test)]
    pub(crate) fn shrink(&self, count: usize) {
        self.bytes.borrow_mut().truncate(count);
    }

    fn place(&self, at: HostAddress, count: usize) -> Result<std::ops::Range<usize>, Unmapped> {
        let offset = at.0.checked_sub(self.first).and_then(|offset| usize::try_from(offset).ok());
        let begin = offset.ok_or(Unmapped)?;
        let end = begin.checked_add(count).ok_or(Unmapped)?;
        if end <= self.bytes.borrow().len() { Ok(begin..end) } else { Err(Unmapped) }
    }
}

impl GuestMemory for FlatMemory {
    fn read(&self, at: HostAddress, into: &mut [u8]) -> Result<(), Unmapped> {
        let place = self.place(at, into.len())?;
        into.copy_from_slice(&self.bytes.borrow()[place]);
        Ok(())
    }

    fn write(&self, at: HostAddress, from: &[u8]) -> Result<(), Unmapped> {
        let place = self.place(at, from.len())?;
        self.bytes.borrow_mut()[place].copy_from_slice(from);
        Ok(())
    }

    fn is_writable(&self, at: HostAddress, count: usize) -> bool {
        self.place(at, count).is_ok()
    }

    fn load(&self, at: HostAddress) -> Result<u32, Unmapped> {
        assert!(at.0.is_multiple_of(4), "{at} is no place for a dword");
        let mut bytes = [0; 4];
        self.read(at, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn store(&self, at: HostAddress, value: u32) -> Result<(), Unmapped> {
        assert!(at.0.is_multiple_of(4), "{at} is no place for a dword");
        self.write(at, &value.to_le_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_scattered_is_gathered_again_and_buckets_take_their_part() {
        let memory = FlatMemory::new(0x1000, 64);
        let segments = [
            Segment { at: Some(HostAddress(0x1010)), bytes: 3 },
            Segment { at: None, bytes: 2 },
            Segment { at: Some(HostAddress(0x1000)), bytes: 10 },
        ];
        scatter(&memory, &segments, &[1, 2, 3, 4, 5, 6, 7]).unwrap();
        let mut back = [9; 7];
        gather(&memory, &segments, &mut back).unwrap();
        assert_eq!(back, [1, 2, 3, 0, 0, 6, 7]);
        let outside = [Segment { at: Some(HostAddress(0x103e)), bytes: 7 }];
        assert_eq!(gather(&memory, &outside, &mut back), Err(Unmapped));
    }
}
