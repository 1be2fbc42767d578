//! A bounded first-in first-out queue. Deliberately not here: growing. A full ring hands the value back.

use std::collections::VecDeque;

/// A queue that never holds more than it was made for.
#[derive(Clone, Debug)]
pub struct Ring<T> {
    queue: VecDeque<T>,
    capacity: usize,
}

impl<T> Ring<T> {
    /// A ring of `capacity` places, all allocated now.
    ///
    /// # Panics
    /// If `capacity` is zero.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        assert!(capacity > 0, "a ring without places can hold nothing");
        Self { queue: VecDeque::with_capacity(capacity), capacity }
    }

    /// Appends `value`.
    ///
    /// # Errors
    /// The value itself, if the ring is full.
    #[inline]
    pub fn push(&mut self, value: T) -> Result<(), T> {
        if self.is_full() {
            return Err(value);
        }
        self.queue.push_back(value);
        Ok(())
    }

    /// Takes the oldest value.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        let oldest = self.queue.pop_front()?;
        if self.queue.is_empty() {
            // From the first place on again: a ring of thousands that holds a few stays in the processor's cache.
            self.queue.clear();
        }
        Some(oldest)
    }

    /// The oldest value.
    #[must_use]
    pub fn front(&self) -> Option<&T> {
        self.queue.front()
    }

    /// The oldest value, to change.
    pub fn front_mut(&mut self) -> Option<&mut T> {
        self.queue.front_mut()
    }

    /// From oldest to newest.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.queue.iter()
    }

    /// How many values wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// True if nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// True if the next push would be refused.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.queue.len() >= self.capacity
    }

    /// How many values fit.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.capacity
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_ring_hands_the_value_back_and_keeps_its_order() {
        let mut ring = Ring::new(2);
        assert_eq!((ring.push(1), ring.push(2), ring.push(3)), (Ok(()), Ok(()), Err(3)));
        assert!(ring.is_full());
        assert_eq!((ring.pop(), ring.front().copied(), ring.len()), (Some(1), Some(2), 1));
    }
}
