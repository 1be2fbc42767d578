//! Numbered places for things in flight, bounded and reused.
//!
//! Deliberately not here: generations. A key that was released and used again is the owner's bug, and the assertions
//! catch it while the place is free.

/// The number of a place in a [`Slab`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlabKey(pub u32);

impl SlabKey {
    fn index(self) -> usize {
        usize::try_from(self.0).expect("a 32-bit index on a machine of at least 32 bits")
    }
}

/// At most `capacity` values, each in a place of its own.
#[derive(Clone, Debug)]
pub struct Slab<T> {
    places: Vec<Option<T>>,
    free: Vec<SlabKey>,
}

impl<T> Slab<T> {
    /// Room for `capacity` values, all allocated now.
    #[must_use]
    pub fn new(capacity: u32) -> Self {
        Self {
            places: std::iter::repeat_with(|| None).take(SlabKey(capacity).index()).collect(),
            free: (0..capacity).rev().map(SlabKey).collect(),
        }
    }

    /// Puts `value` into a free place.
    ///
    /// # Errors
    /// The value itself, if every place is taken.
    #[inline(always)]
    pub fn insert(&mut self, value: T) -> Result<SlabKey, T> {
        let Some(key) = self.free.pop() else { return Err(value) };
        let place = &mut self.places[key.index()];
        assert!(place.is_none(), "free place {} holds a value", key.0);
        *place = Some(value);
        Ok(key)
    }

    /// Takes the value out and frees its place.
    ///
    /// # Panics
    /// If the place is free.
    pub fn remove(&mut self, key: SlabKey) -> T {
        let value = self.places[key.index()].take().expect("a key is removed once");
        self.free.push(key);
        value
    }

    /// Drops the value where it is and frees its place.
    ///
    /// # Panics
    /// If the place is free.
    pub fn free(&mut self, key: SlabKey) {
        let place = &mut self.places[key.index()];
        assert!(place.is_some(), "a key is removed once");
        *place = None;
        self.free.push(key);
    }

    /// The value at `key`.
    ///
    /// # Panics
    /// If the place is free.
    #[must_use]
    pub fn get(&self, key: SlabKey) -> &T {
        self.places[key.index()].as_ref().expect("a key names a value in use")
    }

    /// The value at `key`, to change.
    ///
    /// # Panics
    /// If the place is free.
    pub fn get_mut(&mut self, key: SlabKey) -> &mut T {
        self.places[key.index()].as_mut().expect("a key names a value in use")
    }

    /// The values in use, by place.
    pub fn iter(&self) -> impl Iterator<Item = (SlabKey, &T)> {
        (0..).map(SlabKey).zip(&self.places).filter_map(|(key, place)| Some((key, place.as_ref()?)))
    }

    /// How many places are taken.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// True if no place is taken.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.free.len() == self.places.len()
    }

    /// True if the next insert would be refused.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.free.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_bounded_and_reused() {
        let mut slab = Slab::new(2);
        let a = slab.insert('a').expect("room");
        let b = slab.insert('b').expect("room");
        assert_eq!(slab.insert('c'), Err('c'));
        assert_eq!(slab.remove(a), 'a');
        assert_eq!(slab.insert('d'), Ok(a));
        assert_eq!((*slab.get(b), slab.len(), slab.is_full()), ('b', 2, true));
    }
}
