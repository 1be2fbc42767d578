//! Who may have how many of something that there is little of: pieces of memory, places for jobs.
//!
//! A part of it is kept back, so that each client finds a guaranteed few whatever others hold. Of the rest a client may hold as
//! many more as are free at that moment: a *dynamic threshold* (Choudhury and Hahne, "Dynamic queue length thresholds for
//! shared-memory packet switches", IEEE/ACM Transactions on Networking 6(2), 1998). One client alone has half of the rest, two have
//! a third each, and some is always left for who comes next. Deliberately not here: the things themselves, and who is dropped.

/// A client: a connection by its number, or a transport by the number of its jobs' owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClientId(pub u32);

impl ClientId {
    /// Edges have numbers from here on; connections have smaller ones.
    pub const FIRST_TRANSPORT: u32 = 1 << 30;

    /// It is a transport.
    #[must_use]
    pub const fn is_edge(self) -> bool {
        self.0 >= Self::FIRST_TRANSPORT
    }

    /// As an index among connections, or among transports.
    fn index(self) -> Result<usize, usize> {
        let index = |number| usize::try_from(number).expect("32 bits fit an index");
        match self.0.checked_sub(Self::FIRST_TRANSPORT) {
            None => Ok(index(self.0)),
            Some(transport) => Err(index(transport)),
        }
    }
}

/// A value for each client, the same for all at first. There are as many as the highest numbers seen.
#[derive(Clone, Debug, Default)]
pub struct PerClient<T> {
    connections: Vec<T>,
    transports: Vec<T>,
}

impl<T: Default> PerClient<T> {
    /// That of a client, if it was ever asked for by [`Self::get_mut`].
    #[must_use]
    pub fn get(&self, client: ClientId) -> Option<&T> {
        match client.index() {
            Ok(connection) => self.connections.get(connection),
            Err(transport) => self.transports.get(transport),
        }
    }

    /// That of a client.
    pub fn get_mut(&mut self, client: ClientId) -> &mut T {
        let (list, index) = match client.index() {
            Ok(connection) => (&mut self.connections, connection),
            Err(transport) => (&mut self.transports, transport),
        };
        if list.len() <= index {
            list.resize_with(index + 1, T::default);
        }
        &mut list[index]
    }
}

/// How urgently one is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// As every other.
    Share,
    /// One of many that are needed together; the client has claimed them (`Shares::claim`).
    Claimed,
    /// Whatever is there: it comes back by itself, or what is held already would not come back without it.
    Last,
}

/// How much there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Supply {
    /// All there is.
    pub count: u32,
    /// Of these, so many are lent only to clients that hold fewer than they are guaranteed.
    pub reserve: u32,
    /// So many each client may hold while any is there.
    pub guarantee: u32,
}

/// One kind of thing, and who holds how many.
#[derive(Clone, Debug)]
pub struct Shares {
    supply: Supply,
    lent: u32,
    /// Of these, those that their clients hold beyond what they are guaranteed.
    beyond: u32,
    held: PerClient<u32>,
    /// Clients that hold one or more.
    holders: u32,
    /// Who needs so many together, and finds others waiting until it has them.
    claim: Option<(ClientId, u32)>,
}

impl Shares {
    /// Nobody holds any.
    #[must_use]
    pub fn new(supply: Supply) -> Self {
        assert!(supply.reserve <= supply.count, "more is kept back than there is: {supply:?}");
        assert!(supply.guarantee > 0, "who has nothing gets something: {supply:?}");
        Self { supply, lent: 0, beyond: 0, held: PerClient::default(), holders: 0, claim: None }
    }

    /// Those nobody holds.
    #[must_use]
    pub const fn spare(&self) -> u32 {
        self.supply.count - self.lent
    }

    /// Those that are held.
    #[must_use]
    pub const fn lent(&self) -> u32 {
        self.lent
    }

    /// What a client holds.
    #[must_use]
    pub fn held(&self, client: ClientId) -> u32 {
        self.held.get(client).copied().unwrap_or(0)
    }

    /// Those that are free for anybody once `guaranteed` more are lent out of what is kept back.
    const fn common(&self, guaranteed: u32) -> u32 {
        let kept = self.supply.reserve.saturating_sub(self.lent - self.beyond + guaranteed);
        (self.spare() - guaranteed).saturating_sub(kept)
    }

    /// How many more a client may have for this want.
    #[must_use]
    pub fn room(&self, client: ClientId, want: Want) -> u32 {
        let held = self.held(client);
        let guaranteed = self.supply.guarantee.saturating_sub(held).min(self.spare());
        let common = self.common(guaranteed);
        guaranteed
            + match want {
                Want::Last => self.spare() - guaranteed,
                Want::Claimed => common,
                Want::Share => {
                    let other = self.claim.filter(|(claimer, _)| *claimer != client);
                    let free = common.saturating_sub(other.map_or(0, |(_, count)| count));
                    let beyond = held.saturating_sub(self.supply.guarantee);
                    // Each one taken lowers what is free and raises what is held: they meet half way.
                    free.saturating_sub(beyond).div_ceil(2)
                }
            }
    }

    /// A client finds none although it holds fewer than it is guaranteed.
    #[must_use]
    pub fn is_starved(&self, client: ClientId) -> bool {
        self.supply.count > 0 && self.spare() == 0 && self.held(client) < self.supply.guarantee
    }

    /// A client takes one.
    ///
    /// # Panics
    /// If there is none.
    pub fn take(&mut self, client: ClientId) {
        assert!(self.lent < self.supply.count, "all {} were lent", self.supply.count);
        self.lent += 1;
        let held = self.held.get_mut(client);
        *held += 1;
        self.holders += u32::from(*held == 1);
        self.beyond += u32::from(*held > self.supply.guarantee);
        if let Some((claimer, left)) = &mut self.claim
            && *claimer == client
        {
            *left = left.saturating_sub(1);
        }
    }

    /// A client gives one back.
    ///
    /// # Panics
    /// If it holds none.
    pub fn give_back(&mut self, client: ClientId) {
        let held = self.held.get_mut(client);
        assert!(*held > 0, "{client:?} gave back more than it was lent");
        self.beyond -= u32::from(*held > self.supply.guarantee);
        *held -= 1;
        self.holders -= u32::from(*held == 0);
        self.lent -= 1;
    }

    /// A client needs `count` together. True if it may take them as [`Want::Claimed`] now; until it has, others find only what
    /// they are guaranteed. One client claims at a time, and only one that holds little: what it was lent before has come back,
    /// so that it is not its own slowness that it waits for.
    pub fn claim(&mut self, client: ClientId, count: u32) -> bool {
        match self.claim {
            Some((claimer, _)) => claimer == client,
            None if self.held(client) > self.supply.guarantee && self.common(0) < count => false,
            None => {
                self.claim = Some((client, count));
                true
            }
        }
    }

    /// The client has what it claimed, or does not want it any more.
    pub fn end_claim(&mut self, client: ClientId) {
        self.claim = self.claim.filter(|(claimer, _)| *claimer != client);
    }

    /// A client holds more than would be each one's if all that hold any held the same.
    #[must_use]
    pub fn is_over(&self, client: ClientId) -> bool {
        let common = self.supply.count - self.supply.reserve;
        self.held(client) > self.supply.guarantee + common / self.holders.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUPPLY: Supply = Supply { count: 96, reserve: 32, guarantee: 2 };

    fn client(number: u32) -> ClientId {
        ClientId(number)
    }

    /// Takes all that the client may have.
    fn fill(shares: &mut Shares, who: ClientId, want: Want) -> u32 {
        let mut taken = 0;
        while shares.room(who, want) > 0 {
            shares.take(who);
            taken += 1;
        }
        taken
    }

    #[test]
    fn one_alone_has_half_of_what_is_common_and_each_next_half_of_what_is_left() {
        let mut shares = Shares::new(SUPPLY);
        let taken: Vec<u32> = (0..5).map(|number| fill(&mut shares, client(number), Want::Share)).collect();
        assert_eq!(taken[..3], [34, 18, 10]);
        assert!(taken.windows(2).all(|pair| pair[1] <= pair[0]), "{taken:?}");
        assert!(taken.iter().all(|&count| count >= SUPPLY.guarantee), "{taken:?}");
    }

    #[test]
    fn whoever_came_before_each_finds_what_it_is_guaranteed() {
        let mut shares = Shares::new(SUPPLY);
        let sixteen = (0..16).map(|number| fill(&mut shares, client(number), Want::Claimed));
        assert!(sixteen.min().unwrap() >= SUPPLY.guarantee, "the reserve is 16 guarantees of 2");
    }

    #[test]
    fn room_is_what_can_be_taken_one_after_the_other() {
        let mut shares = Shares::new(SUPPLY);
        for (number, want) in [(0, Want::Share), (1, Want::Share), (2, Want::Claimed), (3, Want::Last)] {
            let room = shares.room(client(number), want);
            assert_eq!(fill(&mut shares, client(number), want), room, "{want:?}");
        }
        assert_eq!(shares.spare(), 0, "the last took what was there");
        assert!(shares.is_starved(client(9)) && !shares.is_starved(client(0)));
    }

    #[test]
    fn those_who_have_little_find_some_where_those_who_have_much_do_not() {
        let mut shares = Shares::new(SUPPLY);
        fill(&mut shares, client(0), Want::Share);
        shares.take(client(1));
        for _ in 0..4 {
            shares.give_back(client(0));
        }
        assert!(shares.room(client(0), Want::Share) <= 4);
        assert!(shares.room(client(1), Want::Share) > 10);
    }

    #[test]
    fn a_claim_keeps_others_at_what_they_are_guaranteed_until_it_is_met() {
        let mut shares = Shares::new(SUPPLY);
        fill(&mut shares, client(0), Want::Share);
        assert!(shares.claim(client(1), 64), "nobody else claims");
        assert!(!shares.claim(client(2), 64), "one at a time");
        assert_eq!(shares.room(client(3), Want::Share), SUPPLY.guarantee);
        let mut taken = fill(&mut shares, client(1), Want::Claimed);
        while shares.held(client(0)) > 0 {
            shares.give_back(client(0));
            assert_eq!(shares.room(client(0), Want::Share).saturating_sub(SUPPLY.guarantee), 0);
            taken += fill(&mut shares, client(1), Want::Claimed);
        }
        assert_eq!(taken, 64 + SUPPLY.guarantee);
        shares.end_claim(client(2));
        assert!(!shares.claim(client(2), 1), "only who claimed ends it");
        shares.end_claim(client(1));
        assert!(!shares.claim(client(1), 64), "what it holds already is to come back first");
        assert!(shares.claim(client(2), 64));
    }

    #[test]
    fn who_holds_more_than_an_equal_part_is_over_once_others_hold_some() {
        let mut shares = Shares::new(SUPPLY);
        let taken = fill(&mut shares, client(0), Want::Claimed);
        assert_eq!(taken, 64 + SUPPLY.guarantee);
        assert!(!shares.is_over(client(0)), "it is alone");
        shares.take(client(1));
        assert!(shares.is_over(client(0)) && !shares.is_over(client(1)));
    }

    #[test]
    fn edges_and_connections_have_accounts_of_their_own() {
        let mut shares = Shares::new(SUPPLY);
        let transport = client(ClientId::FIRST_TRANSPORT);
        shares.take(transport);
        shares.take(client(0));
        assert_eq!((shares.held(transport), shares.held(client(0)), shares.lent()), (1, 1, 2));
        shares.give_back(transport);
        assert_eq!((shares.held(transport), shares.held(client(0)), shares.lent()), (0, 1, 1));
    }
}
