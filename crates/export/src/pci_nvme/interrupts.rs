//! MSI-X: which vectors are to be signalled.
//!
//! A vector that is masked keeps its interrupt until it is unmasked (PCI Local Bus 3.0 section 6.8.2). Deliberately not
//! here: how a guest is interrupted, which is the transport's.

/// Interrupt vectors: one for the admin queue and one for each I/O completion queue.
pub const VECTORS: u16 = 65;

/// The state of the vectors.
#[derive(Debug)]
pub(super) struct Interrupts {
    masked: Vec<bool>,
    /// Raised, and not signalled yet.
    pending: Vec<bool>,
    /// Some vector may have to be signalled.
    any: bool,
}

impl Interrupts {
    pub(super) fn new() -> Self {
        Self { masked: vec![false; VECTORS.into()], pending: vec![false; VECTORS.into()], any: false }
    }

    /// An interrupt; two before it is signalled are one.
    pub(super) fn raise(&mut self, vector: u16) {
        assert!(vector < VECTORS, "vector {vector} was refused when its queue was made");
        self.pending[usize::from(vector)] = true;
        self.any = true;
    }

    /// Masks a vector or unmasks it; vectors beyond the last are nobody's.
    pub(super) fn mask(&mut self, vector: u32, masked: bool) {
        if let Some(state) = usize::try_from(vector).ok().and_then(|vector| self.masked.get_mut(vector)) {
            *state = masked;
            self.any = true;
        }
    }

    /// The next vector to signal.
    pub(super) fn take(&mut self) -> Option<u16> {
        if !self.any {
            return None;
        }
        let ready = |vector: &u16| {
            let place = usize::from(*vector);
            self.pending[place] && !self.masked[place]
        };
        let vector = (0..VECTORS).find(ready);
        match vector {
            Some(vector) => self.pending[usize::from(vector)] = false,
            None => self.any = false,
        }
        vector
    }

    /// The pending bits as the PBA holds them.
    pub(super) fn pending_bits(&self, place: usize) -> u8 {
        let bits = self.pending.iter().skip(place * 8).take(8).enumerate();
        bits.fold(0, |byte, (bit, &pending)| byte | u8::from(pending) << bit)
    }

    /// Nothing is raised any more: the queues are gone.
    pub(super) fn forget(&mut self) {
        self.pending.fill(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_masked_vector_keeps_its_interrupt() {
        let mut interrupts = Interrupts::new();
        interrupts.mask(9, true);
        interrupts.raise(9);
        interrupts.raise(3);
        interrupts.raise(3);
        assert_eq!((interrupts.take(), interrupts.take()), (Some(3), None));
        assert_eq!(interrupts.pending_bits(1), 0b10);
        interrupts.mask(9, false);
        assert_eq!((interrupts.take(), interrupts.take(), interrupts.pending_bits(1)), (Some(9), None, 0));
    }

    #[test]
    fn vectors_that_do_not_exist_are_not_masked() {
        let mut interrupts = Interrupts::new();
        interrupts.mask(u32::from(VECTORS), true);
        interrupts.raise(VECTORS - 1);
        assert_eq!(interrupts.take(), Some(VECTORS - 1));
    }
}
