//! What clients ask for and waits: each client's in its order, clients in turn.
//!
//! *Deficit round robin* (Shreedhar and Varghese, "Efficient fair queuing using deficit round robin", IEEE/ACM Transactions on
//! Networking 4(3), 1996): a client in turn may spend a quantum, and what it does not spend it keeps until its next turn, so that
//! those who ask for much at a time get as much as those who ask for little often. Deliberately not here: what is asked.

use crate::shares::{ClientId, PerClient};
use std::collections::VecDeque;

/// What one client waits for.
#[derive(Clone, Debug)]
struct Line<T> {
    /// Each with its cost.
    waiting: VecDeque<(T, u64)>,
    /// What it may spend.
    credit: u64,
}

impl<T> Default for Line<T> {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), credit: 0 }
    }
}

/// What all clients wait for.
#[derive(Clone, Debug)]
pub struct FairQueue<T> {
    lines: PerClient<Line<T>>,
    /// Clients that wait for something, whose turn it is first.
    turn: VecDeque<ClientId>,
    quantum: u64,
}

impl<T> FairQueue<T> {
    /// Nobody waits. A client spends `quantum` in a turn, which should be no less than the dearest item costs.
    #[must_use]
    pub fn new(quantum: u64) -> Self {
        assert!(quantum > 0, "a turn is worth something");
        Self { lines: PerClient::default(), turn: VecDeque::new(), quantum }
    }

    /// Nobody waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.turn.is_empty()
    }

    /// Something of a client, behind what it waits for already.
    pub fn push(&mut self, client: ClientId, cost: u64, item: T) {
        self.line(client).waiting.push_back((item, cost));
    }

    /// Something of a client that was its first and is again.
    pub fn put_back(&mut self, client: ClientId, cost: u64, item: T) {
        self.line(client).waiting.push_front((item, cost));
    }

    /// A client's line, which is about to get something: the client is in turn.
    fn line(&mut self, client: ClientId) -> &mut Line<T> {
        let line = self.lines.get_mut(client);
        if line.waiting.is_empty() {
            line.credit = self.quantum;
            self.turn.push_back(client);
        }
        line
    }

    /// Takes all that connections wait for, and nothing of transports.
    pub fn take_of_connections(&mut self) -> Vec<T> {
        let clients: Vec<ClientId> = self.turn.iter().copied().filter(|client| !client.is_edge()).collect();
        self.turn.retain(|client| client.is_edge());
        let lines = clients.into_iter().map(|client| std::mem::take(&mut self.lines.get_mut(client).waiting));
        lines.flatten().map(|(item, _)| item).collect()
    }

    /// The next, of the client whose turn it is.
    pub fn pop(&mut self) -> Option<(ClientId, T)> {
        loop {
            let client = *self.turn.front()?;
            let line = self.lines.get_mut(client);
            let (_, cost) = line.waiting.front().expect("who is in turn waits for something");
            if let Some(credit) = line.credit.checked_sub(*cost) {
                line.credit = credit;
                let (item, _) = line.waiting.pop_front().expect("it was looked at");
                if line.waiting.is_empty() {
                    self.turn.pop_front();
                }
                return Some((client, item));
            }
            line.credit += self.quantum;
            self.turn.rotate_left(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUANTUM: u64 = 64;

    /// Who comes next, of a queue in which clients wait for so many items of such a cost each.
    fn order(waiting: &[(usize, u64)], count: usize) -> Vec<u32> {
        let mut queue = FairQueue::new(QUANTUM);
        for (number, &(items, cost)) in (0..).zip(waiting) {
            (0..items).for_each(|item| queue.push(ClientId(number), cost, item));
        }
        std::iter::from_fn(|| queue.pop()).take(count).map(|(client, _)| client.0).collect()
    }

    #[test]
    fn who_asks_for_one_thing_waits_for_a_turn_of_the_others_and_no_longer() {
        let order = order(&[(1000, 16), (1000, 1), (1, 1)], 1000);
        let place = order.iter().position(|&client| client == 2);
        assert_eq!(place, Some(4 + 64), "a quantum of each before it");
    }

    #[test]
    fn those_who_wait_get_equal_parts_whatever_one_item_costs() {
        let order = order(&[(1000, 64), (1000, 48), (10_000, 5)], 2000);
        let spent = [64, 48, 5].iter().zip(0..).map(|(cost, client)| {
            cost * u64::try_from(order.iter().filter(|&&one| one == client).count()).unwrap()
        });
        let spent: Vec<u64> = spent.collect();
        let (least, most) = (spent.iter().min().unwrap(), spent.iter().max().unwrap());
        assert!(most - least <= 2 * QUANTUM, "{spent:?}");
    }

    #[test]
    fn a_client_keeps_its_own_order_and_what_is_put_back_is_first_again() {
        let mut queue = FairQueue::new(QUANTUM);
        let one = ClientId(5);
        (0..3).for_each(|item| queue.push(one, 1, item));
        let (client, first) = queue.pop().unwrap();
        queue.put_back(client, 1, first);
        let rest: Vec<i32> = std::iter::from_fn(|| queue.pop()).map(|(_, item)| item).collect();
        assert_eq!((rest, queue.is_empty()), (vec![0, 1, 2], true));
        queue.push(one, 10 * QUANTUM, 7);
        assert_eq!(queue.pop(), Some((one, 7)), "what costs more than a turn comes too");
    }
}
