//! Numbered places for things in flight, bounded and reused.
//!
//! Deliberately not here: generations. A key that was released and used again is the owner's bug, and the assertions
//! catch it while the place is free.

/// The number of a place in a [`Slab`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlabKey(pub u32);

impl SlabKey {
    #[inline]
    fn index(self) -> usize {
        usize::try_from(self.0).expect("a 32-bit index on a machine of at least 32 bits")
    }
}

/// At most `capacity` values, each in a place of its own.
///
/// Only places that were ever used are looked at: a slab for thousands that holds a few costs what a few do.
#[derive(Clone, Debug)]
pub struct Slab<T> {
    /// Places used so far, in order.
    places: Vec<Option<T>>,
    /// Of these, those free again.
    free: Vec<SlabKey>,
    capacity: u32,
}

impl<T> Slab<T> {
    /// Room for `capacity` values, all allocated now; a place is written when it is first used.
    #[must_use]
    pub fn new(capacity: u32) -> Self {
        let places = SlabKey(capacity).index();
        Self { places: Vec::with_capacity(places), free: Vec::with_capacity(places), capacity }
    }

    /// Room for `capacity` values, none allocated before it is used: for many that may be there and are few as a rule.
    #[must_use]
    pub const fn on_demand(capacity: u32) -> Self {
        Self { places: Vec::new(), free: Vec::new(), capacity }
    }

    /// Puts `value` into a free place.
    ///
    /// # Errors
    /// The value itself, if every place is taken.
    #[inline(always)]
    pub fn insert(&mut self, value: T) -> Result<SlabKey, T> {
        let Some(key) = self.free.pop() else { return self.insert_behind(value) };
        let place = &mut self.places[key.index()];
        assert!(place.is_none(), "free place {} holds a value", key.0);
        *place = Some(value);
        Ok(key)
    }

    /// Puts `value` into a place that was never used.
    #[inline(never)]
    fn insert_behind(&mut self, value: T) -> Result<SlabKey, T> {
        let key = SlabKey(u32::try_from(self.places.len()).expect("no more places than a 32-bit capacity"));
        if key.0 >= self.capacity {
            return Err(value);
        }
        self.places.push(Some(value));
        Ok(key)
    }

    /// Takes the value out and frees its place.
    ///
    /// # Panics
    /// If the place is free.
    #[inline]
    pub fn remove(&mut self, key: SlabKey) -> T {
        let value = self.places[key.index()].take().expect("a key is removed once");
        self.free.push(key);
        value
    }

    /// Drops the value where it is and frees its place.
    ///
    /// # Panics
    /// If the place is free.
    #[inline]
    pub fn free(&mut self, key: SlabKey) {
        let place = &mut self.places[key.index()];
        assert!(place.is_some(), "a key is removed once");
        *place = None;
        self.free.push(key);
    }

    /// Drops every value. Places are given out again as by a new slab.
    pub fn clear(&mut self) {
        self.places.clear();
        self.free.clear();
    }

    /// The value at `key`.
    ///
    /// # Panics
    /// If the place is free.
    #[must_use]
    #[inline]
    pub fn get(&self, key: SlabKey) -> &T {
        self.places[key.index()].as_ref().expect("a key names a value in use")
    }

    /// The value at `key`, to change.
    ///
    /// # Panics
    /// If the place is free.
    #[inline]
    pub fn get_mut(&mut self, key: SlabKey) -> &mut T {
        self.places[key.index()].as_mut().expect("a key names a value in use")
    }

    /// The values in use, by place.
    pub fn iter(&self) -> impl Iterator<Item = (SlabKey, &T)> {
        (0..).map(SlabKey).zip(&self.places).filter_map(|(key, place)| Some((key, place.as_ref()?)))
    }

    /// How many places are taken.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// True if no place is taken.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.free.len() == self.places.len()
    }

    /// True if the next insert would be refused.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.len() == SlabKey(self.capacity).index()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_bounded_and_reused() {
        for mut slab in [Slab::new(2), Slab::on_demand(2)] {
            let a = slab.insert('a').expect("room");
            let b = slab.insert('b').expect("room");
            assert_eq!(slab.insert('c'), Err('c'));
            assert_eq!(slab.remove(a), 'a');
            assert_eq!(slab.insert('d'), Ok(a));
            assert_eq!((*slab.get(b), slab.len(), slab.is_full()), ('b', 2, true));
        }
    }

    #[test]
    fn the_place_freed_last_is_taken_next_and_a_new_one_only_if_none_is_free() {
        let mut slab = Slab::new(4);
        let keys: Vec<SlabKey> = (0..3).map(|value| slab.insert(value).expect("room")).collect();
        assert_eq!(keys, [SlabKey(0), SlabKey(1), SlabKey(2)]);
        slab.free(SlabKey(0));
        slab.free(SlabKey(2));
        assert_eq!(slab.iter().map(|(key, &value)| (key.0, value)).collect::<Vec<_>>(), [(1, 1)]);
        let taken: Vec<_> = (5..9).map(|value| slab.insert(value)).collect();
        assert_eq!(taken, [Ok(SlabKey(2)), Ok(SlabKey(0)), Ok(SlabKey(3)), Err(8)]);
        assert!(slab.is_full() && !slab.is_empty());
        slab.clear();
        assert_eq!((slab.len(), slab.insert(1)), (0, Ok(SlabKey(0))));
    }
}
