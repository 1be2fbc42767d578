//! How many connections there may be, and how many of them at each endpoint: those that come to one do not lock others out.
//!
//! Half of all places are kept for endpoints, equally; the rest is for whoever comes first. Deliberately not here: the
//! connections, and who is sent away to make room.

/// The places.
#[derive(Clone, Debug)]
pub struct Slots {
    total: usize,
    /// Connections at each endpoint.
    open: Vec<usize>,
}

impl Slots {
    /// So many in all, and no endpoint yet.
    #[must_use]
    pub const fn new(total: usize) -> Self {
        Self { total, open: Vec::new() }
    }

    /// One more endpoint, the next by number.
    pub fn add_endpoint(&mut self) {
        self.open.push(0);
    }

    /// Places that only those who come to one endpoint get.
    fn reserve(&self) -> usize {
        self.total / (2 * self.open.len().max(1))
    }

    /// One more can be let in at an endpoint.
    #[must_use]
    pub fn has_room(&self, endpoint: usize) -> bool {
        let reserve = self.reserve();
        let spoken_for =
            |(place, open): (usize, &usize)| (open + usize::from(place == endpoint)).max(reserve);
        self.open.iter().enumerate().map(spoken_for).sum::<usize>() <= self.total
    }

    /// If one at this endpoint went there would be room for one at that.
    #[must_use]
    pub fn makes_room(&self, leaving: usize, coming: usize) -> bool {
        leaving == coming || self.open[leaving] > self.reserve()
    }

    /// One was let in.
    pub fn enter(&mut self, endpoint: usize) {
        assert!(self.has_room(endpoint), "{} places were full", self.total);
        self.open[endpoint] += 1;
    }

    /// One is gone.
    pub fn leave(&mut self, endpoint: usize) {
        assert!(self.open[endpoint] > 0, "more went than were let in");
        self.open[endpoint] -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(total: usize, endpoints: usize) -> Slots {
        let mut slots = Slots::new(total);
        (0..endpoints).for_each(|_| slots.add_endpoint());
        slots
    }

    fn fill(slots: &mut Slots, endpoint: usize) -> usize {
        let mut count = 0;
        while slots.has_room(endpoint) {
            slots.enter(endpoint);
            count += 1;
        }
        count
    }

    #[test]
    fn a_crowd_at_one_endpoint_leaves_the_others_their_places() {
        let mut slots = slots(1024, 2);
        assert_eq!((fill(&mut slots, 0), fill(&mut slots, 1)), (768, 256));
        slots.leave(1);
        assert!(!slots.has_room(0) && slots.has_room(1));
        assert!(slots.makes_room(0, 1) && !slots.makes_room(1, 0));
    }

    #[test]
    fn one_endpoint_has_all_and_few_places_are_still_given() {
        assert_eq!(fill(&mut slots(1024, 1), 0), 1024);
        let mut few = slots(1, 3);
        assert_eq!((fill(&mut few, 2), fill(&mut few, 0)), (1, 0));
        let mut three = slots(3, 2);
        assert_eq!((fill(&mut three, 0), fill(&mut three, 1)), (3, 0));
    }
}
