//! Those who are connected: their names, and the answers they have not fetched.

use super::super::budget::Reservation;
use super::super::reply::Reply;
use std::collections::{BTreeMap, VecDeque};

/// An answer.
#[derive(Debug)]
pub struct Answer {
    /// What the client called the order.
    pub sequence: u64,
    /// What it is told.
    pub reply: Reply,
    /// The memory that takes.
    pub reservation: Reservation,
}

/// Which connection a client is: its number, and which of those that had it.
pub type ClientName = (u32, u32);

/// A client.
#[derive(Debug)]
struct Client {
    name: ClientName,
    /// As CLIENT SETNAME said.
    title: Vec<u8>,
    since_ms: i64,
    mail: VecDeque<Answer>,
}

/// All clients.
#[derive(Debug, Default)]
pub struct Clients {
    clients: BTreeMap<u64, Client>,
    next: u64,
    /// Those with new mail.
    calls: VecDeque<ClientName>,
}

impl Clients {
    /// A connection has come; returns its number, which no other has.
    pub fn enter(&mut self, name: ClientName, now_ms: i64) -> u64 {
        self.next += 1;
        let client = Client { name, title: Vec::new(), since_ms: now_ms, mail: VecDeque::new() };
        self.clients.insert(self.next, client);
        self.next
    }

    pub(super) fn leave(&mut self, id: u64) {
        self.clients.remove(&id);
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.clients.len()
    }

    pub(super) fn deliver(&mut self, id: u64, answer: Answer) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        if client.mail.is_empty() {
            self.calls.push_back(client.name);
        }
        client.mail.push_back(answer);
    }

    /// The next client that has mail it was not called for.
    pub fn poll_call(&mut self) -> Option<ClientName> {
        self.calls.pop_front()
    }

    /// Some client has mail it was not called for.
    #[must_use]
    pub fn has_call(&self) -> bool {
        !self.calls.is_empty()
    }

    /// The next answer of a client.
    pub fn poll_answer(&mut self, id: u64) -> Option<Answer> {
        self.clients.get_mut(&id)?.mail.pop_front()
    }

    /// Gives a client a title.
    pub fn set_title(&mut self, id: u64, title: &[u8]) {
        if let Some(client) = self.clients.get_mut(&id) {
            client.title = title.to_vec();
        }
    }

    /// A client's title; empty if it gave itself none.
    #[must_use]
    pub fn title(&self, id: u64) -> &[u8] {
        self.clients.get(&id).map_or(&[], |client| &client.title)
    }

    /// A line for each client, or for one.
    #[must_use]
    pub fn list(&self, only: Option<u64>, now_ms: i64) -> String {
        let chosen = self.clients.iter().filter(|(id, _)| only.is_none_or(|only| only == **id));
        let line = |(id, client): (&u64, &Client)| {
            let (title, age) =
                (String::from_utf8_lossy(&client.title), (now_ms - client.since_ms).max(0) / 1000);
            format!("id={id} name={title} age={age} db=0\n")
        };
        chosen.map(line).collect()
    }
}
