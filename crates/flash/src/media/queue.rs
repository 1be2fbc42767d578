//! First-in first-out lists of parts, linked through the parts themselves: a part is in one queue at a time.

use super::part::{PartId, Parts};

/// A list of parts that wait for a unit.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Queue {
    head: Option<PartId>,
    tail: Option<PartId>,
}

impl Queue {
    pub(super) fn push(&mut self, parts: &mut Parts, id: PartId) {
        assert!(self.head.is_some() == self.tail.is_some(), "a queue has two ends or none");
        parts.get_mut(id).next = None;
        match self.tail {
            Some(tail) => parts.get_mut(tail).next = Some(id),
            None => self.head = Some(id),
        }
        self.tail = Some(id);
    }

    pub(super) const fn head(self) -> Option<PartId> {
        self.head
    }

    pub(super) const fn is_empty(self) -> bool {
        self.head.is_none()
    }

    pub(super) fn pop(&mut self, parts: &Parts) -> Option<PartId> {
        let id = self.head?;
        self.head = parts.get(id).next;
        if self.head.is_none() {
            self.tail = None;
        }
        Some(id)
    }

    /// Asserts that it has two ends or none.
    pub(super) fn check(self) {
        assert_eq!(self.head.is_some(), self.tail.is_some(), "a queue has one end");
    }
}
