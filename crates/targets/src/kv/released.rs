//! Room that changes gave back and that the power may take again: until a deletion is on media, what it deleted may come back.
//!
//! Records reach the media in any order. Were this room given away at once, a store that needs it could survive a power cut that
//! the deletion does not, and the mount would find more than there is room for. Deliberately not here: what waits for it
//! (`change`), and when records are durable (`buffer_units`).

use std::collections::VecDeque;

/// Releases that are told apart; beyond it the last ones wait together (chosen: a write unit has about as many records).
const APART_MAX: usize = 64;

/// What keys and values take of what is promised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// Bytes of keys and values.
    pub user: u64,
    /// Bytes of their records.
    pub kept: u64,
    /// Bytes of entries of the index.
    pub index: u64,
}

impl Room {
    /// Both together.
    pub const fn and(self, other: Self) -> Self {
        let Self { user, kept, index } = other;
        Self { user: self.user + user, kept: self.kept + kept, index: self.index + index }
    }

    /// What of it is beyond another.
    pub const fn beyond(self, other: Self) -> Self {
        Self {
            user: self.user.saturating_sub(other.user),
            kept: self.kept.saturating_sub(other.kept),
            index: self.index.saturating_sub(other.index),
        }
    }

    /// True if it is none.
    pub const fn is_none(self) -> bool {
        self.user == 0 && self.kept == 0 && self.index == 0
    }
}

/// Room that was given back, by the sequence with which that is durable.
#[derive(Clone, Debug, Default)]
pub struct Released {
    waiting: VecDeque<(u64, Room)>,
}

impl Released {
    /// A change with this last sequence gave room back.
    pub fn add(&mut self, sequence: u64, room: Room) {
        if room.is_none() {
            return;
        }
        let is_full = self.waiting.len() >= APART_MAX;
        match self.waiting.back_mut() {
            Some((last, waiting)) if is_full || *last == sequence => {
                assert!(*last <= sequence, "room is given back at {sequence}, after {last}");
                (*last, *waiting) = (sequence, waiting.and(room));
            }
            _ => self.waiting.push_back((sequence, room)),
        }
    }

    /// Every record before this sequence is durable.
    pub fn durable_before(&mut self, sequence: u64) {
        while self.waiting.pop_front_if(|&mut (last, _)| last < sequence).is_some() {}
    }

    /// What the power may take again.
    pub fn room(&self) -> Room {
        self.waiting.iter().fold(Room::default(), |sum, &(_, room)| sum.and(room))
    }

    /// The sequence with which all of it is durable; none if it is already.
    pub fn last(&self) -> Option<u64> {
        self.waiting.back().map(|&(last, _)| last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn user(user: u64) -> Room {
        Room { user, kept: 0, index: 0 }
    }

    #[test]
    fn room_is_free_once_what_gave_it_back_is_durable() {
        let mut released = Released::default();
        released.add(3, user(10));
        released.add(5, user(7));
        released.add(6, Room::default());
        assert_eq!((released.room(), released.last()), (user(17), Some(5)));
        released.durable_before(5);
        assert_eq!((released.room(), released.last()), (user(7), Some(5)));
        released.durable_before(6);
        assert_eq!((released.room(), released.last()), (Room::default(), None));
    }

    #[test]
    fn many_releases_take_bounded_memory_and_wait_for_the_last() {
        let mut released = Released::default();
        (1..=1_000).for_each(|sequence| released.add(sequence, user(1)));
        assert_eq!((released.waiting.len(), released.room()), (APART_MAX, user(1_000)));
        released.durable_before(1_000);
        assert_eq!(released.room(), user(1_000 - (APART_MAX as u64 - 1)));
        released.durable_before(1_001);
        assert_eq!(released.room(), Room::default());
    }

    #[test]
    fn room_beyond_another_is_no_less_than_none() {
        let few = Room { user: 1, kept: 9, index: 3 };
        let many = Room { user: 4, kept: 2, index: 3 };
        assert_eq!(few.beyond(many), Room { user: 0, kept: 7, index: 0 });
        assert_eq!(many.beyond(few), user(3));
    }
}
