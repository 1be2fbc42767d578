//! One client: its bytes become requests, requests become orders of the database, and answers go back in their order.
//!
//! Commands of a pipeline that read, or that only replace values, are under way together; any other waits for those before it and
//! holds up those behind it. So a client always sees what it changed before. Deliberately not here: the socket, and what
//! commands do.

mod own;
mod server;
mod transaction;

use super::budget::Reservation;
use super::command::{Access, Action, Command, Own};
use super::database::{Answer, Database, NO_MEMORY, Order, Taken};
use super::reply::{Reply, Version};
use super::request::{Malformed, Parsed, Parser, Request};
use super::table;
use crate::dispatcher::Dispatcher;
use crate::job::Done;
use crate::protocol::{Phase, Protocol, ProtocolError, Space};
use crate::send_queue::SendQueue;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use transaction::Transaction;

/// Commands of a client under way (chosen: pipelines of benchmarks have 16 to 50).
const WINDOW_MAX: usize = 64;

/// Bytes received at once (chosen: as the reactor's staging).
const TEXT_BYTES: usize = 16 << 10;

/// The database all clients share.
pub type SharedDatabase = Rc<RefCell<Database>>;

/// What commands of a client that are under way do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// They look.
    Reads,
    /// They replace values.
    Replaces,
    /// One that must be alone.
    Alone,
}

/// One client.
#[derive(Debug)]
pub struct Session {
    database: SharedDatabase,
    id: u64,
    /// Its connection.
    name: (u32, u32),
    parser: Parser,
    version: Version,
    /// Answers in order; those that are under way are not there yet.
    window: VecDeque<Option<Answer>>,
    /// The name of the first order of the window.
    first: u64,
    /// Orders that the database has.
    under_way: usize,
    kind: Kind,
    /// A request that waits for those before it.
    waiting: Option<(&'static Command, Request)>,
    transaction: Option<Transaction>,
    send_queue: SendQueue,
    /// Memory of what the send queue has.
    sending: Vec<Reservation>,
    /// Bytes that were offered were not taken.
    has_left_bytes: bool,
    /// Nothing more is read.
    leaves: bool,
    is_stopping: bool,
}

impl Session {
    /// A client that has just come by this connection.
    #[must_use]
    pub fn new(database: SharedDatabase, connection: u32, generation: u32) -> Self {
        let (id, parser) = {
            let mut database = database.borrow_mut();
            let now_ms = database.time_ms().0;
            let id = database.clients().enter((connection, generation), now_ms);
            (id, Parser::new(database.budget(), database.settings().value_bytes_max()))
        };
        Self {
            database,
            id,
            name: (connection, generation),
            parser,
            version: Version::Two,
            window: VecDeque::new(),
            first: 0,
            under_way: 0,
            kind: Kind::Reads,
            waiting: None,
            transaction: None,
            send_queue: SendQueue::default(),
            sending: Vec::new(),
            has_left_bytes: false,
            leaves: false,
            is_stopping: false,
        }
    }

    /// No more is taken before something ends or is sent.
    fn is_full(&self) -> bool {
        self.waiting.is_some() || self.window.len() >= WINDOW_MAX || self.send_queue.is_long()
    }

    /// An answer that is there at once, in its turn.
    fn answer(&mut self, reply: Reply) {
        let reservation = self.database.borrow().budget().nothing();
        let sequence = self.first + u64::try_from(self.window.len()).expect("a short window");
        self.window.push_back(Some(Answer { sequence, reply, reservation }));
        self.move_answers();
    }

    fn answer_error(&mut self, words: &str) {
        self.answer(Reply::of_error(self.version, words));
    }

    /// Answers whose turn it is go to the send queue.
    fn move_answers(&mut self) {
        while let Some(Some(answer)) = self.window.front_mut().map(Option::take) {
            let (parts, last) = answer.reply.into_parts();
            parts.into_iter().for_each(|part| self.send_queue.push_shared(part));
            self.send_queue.push_text(&last);
            self.sending.push(answer.reservation);
            self.window.pop_front();
            self.first += 1;
        }
    }

    /// Answers of the database.
    fn fetch_mail(&mut self) {
        let database = Rc::clone(&self.database);
        let mut database = database.borrow_mut();
        while let Some(answer) = database.clients().poll_answer(self.id) {
            let place = usize::try_from(answer.sequence - self.first).expect("it is in the window");
            self.window[place] = Some(answer);
            self.under_way -= 1;
        }
        self.move_answers();
    }

    /// A request has come.
    fn on_request(&mut self, request: Request) {
        let Some(command) = table::find(request.word(0)) else {
            self.refuse(&unknown(&request));
            return;
        };
        let checked = self.database.borrow().check(command, &request);
        if let Err(words) = checked {
            self.refuse(&words);
            return;
        }
        if self.transaction.is_some() && !transaction::passes(command) {
            self.queue(command, request);
            return;
        }
        self.waiting = Some((command, request));
        self.go_on_waiting();
    }

    /// A request that cannot be carried out; within a transaction it fails that.
    fn refuse(&mut self, words: &str) {
        if let Some(transaction) = &mut self.transaction {
            transaction.has_failed = true;
        }
        self.answer_error(words);
    }

    /// Begins the request that waits, if its turn has come. True if it waits for room at the database.
    fn go_on_waiting(&mut self) -> bool {
        let Some((command, _)) = self.waiting else { return false };
        let is_exec = matches!(command.action, Action::Own(Own::Exec));
        if let (Action::Own(own), false) = (command.action, is_exec) {
            let (_, request) = self.waiting.take().expect("it was looked at");
            self.run_own(own, &request);
            return false;
        }
        let kind = match (command.action, &self.waiting) {
            (Action::Data { .. }, Some(_)) if command.access != Access::Writes && command.name != "watch" => {
                Kind::Reads
            }
            (Action::Data { fetch, .. }, Some((_, request)))
                if command.access == Access::Writes && fetch(request) == super::view::Fetch::Nothing =>
            {
                Kind::Replaces
            }
            _ => Kind::Alone,
        };
        let may_begin = self.under_way == 0 || kind == self.kind && kind != Kind::Alone;
        if !may_begin {
            return false;
        }
        if !self.database.borrow().has_room() {
            return true;
        }
        let (command, request) = self.waiting.take().expect("it was looked at");
        if is_exec {
            self.exec();
        } else {
            self.submit(vec![(command, request)], None, kind);
        }
        false
    }

    /// Gives an order to the database: one command, or those of a transaction and their memory.
    fn submit(
        &mut self,
        calls: Vec<(&'static Command, Request)>,
        exec: Option<(usize, Reservation)>,
        kind: Kind,
    ) {
        let sequence = self.first + u64::try_from(self.window.len()).expect("a short window");
        self.window.push_back(None);
        self.under_way += 1;
        let order = Order { client: self.id, sequence, version: self.version, calls, exec };
        let taken = self.database.borrow_mut().submit(order);
        self.kind = if taken == Taken::AtOnce { kind } else { Kind::Alone };
    }

    /// Begins what may begin, again after something ended or was sent. True if it waits for room at the database.
    fn advance(&mut self) -> bool {
        self.fetch_mail();
        self.go_on_waiting()
    }
}

/// What a request is told whose command there is not, in Redis' words.
fn unknown(request: &Request) -> String {
    let shown = |word: &[u8]| String::from_utf8_lossy(&word[..word.len().min(128)]).into_owned();
    let mut words = format!("ERR unknown command '{}', with args beginning with: ", shown(request.word(0)));
    for word in request.words_from(1) {
        if words.len() > 128 {
            break;
        }
        words.push_str(&format!("'{}' ", shown(word)));
    }
    words
}

impl Protocol for Session {
    fn on_bytes(&mut self, bytes: &[u8], _: &mut Dispatcher) -> Result<usize, ProtocolError> {
        let mut used = 0;
        self.advance();
        while used < bytes.len() && !self.leaves && !self.is_full() {
            match self.parser.take(&bytes[used..]) {
                Ok((taken, parsed)) => {
                    used += taken;
                    match parsed {
                        Parsed::More => {}
                        Parsed::Request(request) => self.on_request(request),
                        Parsed::PassedOver => self.refuse(NO_MEMORY),
                    }
                }
                Err(Malformed(words)) => {
                    self.answer_error(&words);
                    self.leaves = true;
                }
            }
        }
        self.has_left_bytes = used < bytes.len() && !self.leaves;
        Ok(if self.leaves { bytes.len() } else { used })
    }

    fn payload_space(&self) -> Option<Space> {
        None
    }

    fn on_payload(&mut self, _: usize, _: &mut Dispatcher) {
        unreachable!("requests are received as text");
    }

    fn text_wanted(&self) -> usize {
        if self.leaves || self.is_stopping && self.parser.is_between() { 0 } else { TEXT_BYTES }
    }

    fn is_owed(&self) -> bool {
        !self.parser.is_between() && !self.is_full()
    }

    fn judge(&mut self, _: &mut Dispatcher) -> Result<(), ProtocolError> {
        self.advance();
        Ok(())
    }

    fn on_done(&mut self, _: Done, _: &mut Dispatcher) {
        unreachable!("jobs are the lane's");
    }

    fn go_on(&mut self, dispatcher: &mut Dispatcher) -> bool {
        if self.send_queue.is_empty() {
            self.sending.clear();
        }
        let was_silent = self.send_queue.is_empty();
        let waits = self.advance();
        let takes_again = self.has_left_bytes && !self.is_full();
        if takes_again || was_silent && !self.send_queue.is_empty() {
            self.has_left_bytes = false;
            // What was received meanwhile is to be offered again, or answers are to be sent.
            dispatcher.call(self.name.0, self.name.1);
        }
        waits
    }

    fn send_queue(&mut self) -> &mut SendQueue {
        &mut self.send_queue
    }

    fn phase(&self) -> Phase {
        if self.leaves && self.window.is_empty() { Phase::Leaving } else { Phase::Serving }
    }

    fn on_tls(&mut self) {
        unreachable!("TLS never begins in the middle");
    }

    fn on_stop(&mut self) {
        self.is_stopping = true;
    }

    fn is_idle(&self) -> bool {
        self.window.is_empty() && self.waiting.is_none() && (self.parser.is_between() || self.leaves)
    }

    fn release(&mut self, dispatcher: &mut Dispatcher) {
        self.database.borrow_mut().leave(self.id);
        self.send_queue.clear(&mut dispatcher.pool);
        self.sending.clear();
    }
}
