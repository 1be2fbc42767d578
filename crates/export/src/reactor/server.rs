//! The server: endpoints, connections, the dispatcher and the host, and the loop over them.
//!
//! A round: wait for sockets or the drive, receive, give the host turns and its replies to their connections, send. Its
//! parts are files: `turn` is the host's, `wait` the wait, `watch` what clients may not do for ever.

use super::connection::{Connection, End, Origin};
use super::endpoint::AddressRange;
use super::failure::{FailureOf, Told};
use super::listener::{Listener, Socket};
use super::log_limit::LogLimit;
use super::observer::Looking;
use super::poller::{Interest, Poller, Ready};
use super::signals::{Signal, Signals};
use super::slots::Slots;
use super::transport::Transport;
use super::transports::FIRST_TRANSPORT;
use crate::dispatcher::Dispatcher;
use crate::exports::{ExportId, Exports};
use crate::nvme_subsystem::Subsystem;
use crate::pool::Pool;
use crate::protocol::{Phase, Protocol};
use crate::raw_lane::RawLane;
use crate::served_target::ServedTarget;
use crate::stats::{DropReason, Stats};
use ocssd_base::Nanos;
use ocssd_engine::{Clock, Host, WallClock};
use ocssd_lightnvm::Device;
use ocssd_lightnvm::interface::AnyTarget;
use ocssd_lightnvm::interface::zoned::ZoneGeometry;
use rustls::ServerConfig;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// What clients may do.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Connections at once; one more is closed as it comes.
    pub connections: usize,
    /// A handshake takes no longer.
    pub greeting: Nanos,
    /// A client that owes the next step is dropped after so long without a byte moved.
    pub stall: Nanos,
    /// The same, while others wait for the memory it holds.
    pub stall_crowded: Nanos,
    /// After the signal to stop, what is asked already is answered for so long.
    pub closing: Nanos,
    /// Who may come from the network; everybody, if there is none.
    pub allowed: Vec<AddressRange>,
}

impl Default for Limits {
    /// Chosen: a thousand connections are 16 MiB; people and loaded machines shake hands within ten seconds; a minute is
    /// twice what clients wait for a disk; four seconds are more than any client needs that is there, and leave one of the five
    /// within which a server ends for what drives still do and targets write out.
    fn default() -> Self {
        Self {
            connections: 1024,
            greeting: Nanos::from_secs(10),
            stall: Nanos::from_secs(60),
            stall_crowded: Nanos::from_secs(5),
            closing: Nanos::from_secs(4),
            allowed: Vec::new(),
        }
    }
}

/// A connection that has just come, as its protocol sees it.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Jobs are told to this connection
    pub connection: u32,
    /// of this generation.
    pub generation: u32,
    /// The address of this machine that the client came to, if it came through the network.
    pub local: Option<SocketAddr>,
}

/// Makes a protocol's side of a new connection.
pub type MakeProtocol = Box<dyn Fn(Arrival) -> Box<dyn Protocol>>;

/// What a server runs: a device in real time, with targets of one interface, or of any.
pub type ServedHost<D, T = AnyTarget> = Host<D, WallClock, T>;

/// A server that has stopped.
pub struct Stopped<D: Device, T: ServedTarget + ?Sized = AnyTarget> {
    /// The host, with no request open.
    pub host: ServedHost<D, T>,
    /// What was counted.
    pub stats: Stats,
    /// The raw drive, if there was one.
    pub raw: Option<RawLane>,
}

/// A server.
pub struct Server<D: Device, T: ServedTarget + ?Sized = AnyTarget> {
    pub(super) host: ServedHost<D, T>,
    pub(super) dispatcher: Dispatcher,
    /// Exports of zones, which may change by themselves.
    pub(super) zoned: Vec<(ExportId, ZoneGeometry)>,
    /// Exports of keys and values.
    pub(super) keyed: Vec<ExportId>,
    pub(super) poller: Poller,
    pub(super) signals: Signals,
    pub(super) listeners: Vec<(Listener, MakeProtocol)>,
    pub(super) connections: Vec<Option<Connection>>,
    /// Clients that are no streams of bytes.
    pub(super) transports: Vec<Box<dyn Transport>>,
    /// The generation the next connection of each place has.
    generations: Vec<u32>,
    pub(super) open: usize,
    pub(super) slots: Slots,
    /// Connections that wait for room, the first come first.
    pub(super) waiting: VecDeque<usize>,
    /// How many of them have not tried since there is more room.
    pub(super) untried: usize,
    /// Connections to look at in this round.
    pub(super) listed: Vec<usize>,
    pub(super) limits: Limits,
    tls: Option<Arc<ServerConfig>>,
    /// Nobody is sent away for others before this time: there was nobody to.
    pub(super) no_room_until: Nanos,
    /// No more is accepted before this time: the system had no room.
    pub(super) accept_after: Option<Nanos>,
    pub(super) stopping: Option<Nanos>,
    pub(super) watched: Nanos,
    pub(super) looking: Option<Looking<D, T>>,
    /// How the device says that it has failed.
    pub(super) failure_of: Option<FailureOf<D>>,
    /// What was told of it, and of the raw drive.
    pub(super) told: (Told, Told),
    /// What is said about dropped clients,
    pub(super) log: Box<dyn FnMut(&str)>,
    /// and how often.
    log_limit: LogLimit,
}

/// Numbers of sockets: signals, then listeners, then connections.
const STOP: u64 = 0;
const REPORT: u64 = 1;
const FIRST_LISTENER: u64 = 2;
const FIRST_CONNECTION: u64 = 1 << 16;

impl<D: Device, T: ServedTarget + ?Sized> Server<D, T> {
    /// A server of these exports, whose targets the host has in the same order. `log` is told in a sentence of every client
    /// that is dropped.
    ///
    /// # Errors
    /// As the system says.
    pub fn new(
        mut host: ServedHost<D, T>,
        exports: Exports,
        signals: Signals,
        limits: Limits,
        log: Box<dyn FnMut(&str)>,
    ) -> io::Result<Self> {
        let mut buffers = host.take_buffers();
        let pool = Pool::new(&mut buffers);
        let poller = Poller::new()?;
        let receive = Interest { receive: true, send: false };
        poller.add(signals.socket(Signal::Stop), STOP, receive)?;
        poller.add(signals.socket(Signal::Report), REPORT, receive)?;
        let watched = host.clock().now();
        let dispatcher = Dispatcher::new(exports, pool, buffers);
        Ok(Self {
            host,
            zoned: dispatcher.zoned().collect(),
            keyed: dispatcher.keyed().collect(),
            dispatcher,
            poller,
            signals,
            listeners: Vec::new(),
            connections: Vec::new(),
            transports: Vec::new(),
            generations: Vec::new(),
            open: 0,
            slots: Slots::new(limits.connections),
            waiting: VecDeque::new(),
            untried: 0,
            listed: Vec::new(),
            limits,
            tls: None,
            no_room_until: Nanos::ZERO,
            accept_after: None,
            stopping: None,
            watched,
            looking: None,
            failure_of: None,
            told: <(Told, Told)>::default(),
            log,
            log_limit: LogLimit::default(),
        })
    }

    /// TLS for the protocols that ask for it.
    pub fn use_tls(&mut self, config: Arc<ServerConfig>) {
        self.tls = Some(config);
    }

    /// What NVMe hosts see, and the drive that is served to them as it is, if one is.
    pub fn use_nvme(&mut self, subsystem: Subsystem, raw: Option<RawLane>) {
        self.dispatcher.subsystem = Some(subsystem);
        self.dispatcher.raw = raw;
    }

    /// Serves what comes to a listener.
    ///
    /// # Errors
    /// As the system says.
    pub fn listen(&mut self, listener: Listener, make: MakeProtocol) -> io::Result<()> {
        let number = FIRST_LISTENER + u64::try_from(self.listeners.len()).expect("few");
        self.poller.add(&listener, number, Interest { receive: true, send: false })?;
        self.listeners.push((listener, make));
        self.slots.add_endpoint();
        Ok(())
    }

    /// Serves until it is told to stop, and what was asked until then is answered. `report` is called when a signal asks.
    ///
    /// # Errors
    /// If waiting fails, which no client can cause.
    pub fn run(mut self, report: &mut dyn FnMut(&Stats)) -> io::Result<Stopped<D, T>> {
        wait_precisely();
        loop {
            let timeout = self.timeout();
            let timeout = if self.edges_are_eager() { Some(Duration::ZERO) } else { timeout };
            self.dispatcher.stats.waits += 1;
            self.poller.wait(timeout)?;
            self.dispatcher.now = self.host.clock().now();
            let mut place = 0;
            while let Some(ready) = self.poller.ready(place) {
                place += 1;
                self.on_ready(ready, report);
            }
            self.turns();
            self.watch();
            self.look();
            self.tell_failure();
            if self.is_over() {
                self.say_what_was_left_out(true);
                self.look_now();
                let Self { mut host, dispatcher, .. } = self;
                host.return_buffers(dispatcher.buffers);
                return Ok(Stopped { host, stats: dispatcher.stats, raw: dispatcher.raw });
            }
        }
    }

    /// Tells the log, unless that is told too much already.
    pub(super) fn say(&mut self, sentence: &str) {
        if self.log_limit.admits(self.dispatcher.now) {
            (self.log)(sentence);
        }
    }

    /// Tells the log how much it was not told, if it is time.
    pub(super) fn say_what_was_left_out(&mut self, is_last: bool) {
        if let Some(line) = self.log_limit.poll(self.dispatcher.now, is_last) {
            (self.log)(&line);
        }
    }

    /// The log is yet to be told how much it was not told.
    pub(super) const fn owes_the_log(&self) -> bool {
        self.log_limit.is_owing()
    }

    fn on_ready(&mut self, ready: Ready, report: &mut dyn FnMut(&Stats)) {
        match ready.number {
            STOP => {
                if self.signals.take(Signal::Stop) {
                    self.begin_stop();
                }
            }
            REPORT => {
                if self.signals.take(Signal::Report) {
                    self.look_now();
                    report(&self.dispatcher.stats);
                }
            }
            FIRST_LISTENER..FIRST_CONNECTION => {
                let place = usize::try_from(ready.number - FIRST_LISTENER).expect("it was an index");
                self.accept(place);
            }
            FIRST_CONNECTION..FIRST_TRANSPORT => {
                let place = usize::try_from(ready.number - FIRST_CONNECTION).expect("it was an index");
                self.on_socket(place, ready);
            }
            FIRST_TRANSPORT.. => self.on_edge(ready),
        }
    }

    /// Connections of a listener.
    fn accept(&mut self, place: usize) {
        for _ in 0..ACCEPTS_MAX {
            let Some((listener, _)) = self.listeners.get(place) else { return };
            match listener.accept() {
                Ok(socket) => self.admit(place, socket),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // The client was gone before it was met.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => {
                    self.say(&format!("no connection can be accepted: {error}"));
                    self.pause_accepting();
                    return;
                }
            }
        }
    }

    /// A connection comes in, or is sent away.
    fn admit(&mut self, listener: usize, socket: Socket) {
        self.dispatcher.stats.connections += 1;
        let allowed = &self.limits.allowed;
        let stranger = socket
            .peer()
            .is_some_and(|peer| !allowed.is_empty() && !allowed.iter().any(|range| range.contains(peer)));
        if stranger || !self.slots.has_room(listener) && !self.make_room(listener) {
            let reason = if stranger { DropReason::NotAllowed } else { DropReason::Crowded };
            self.dispatcher.stats.note_dropped(reason);
            return;
        }
        let place = self.connections.iter().position(Option::is_none).unwrap_or_else(|| {
            self.connections.push(None);
            self.generations.push(0);
            self.connections.len() - 1
        });
        let generation = self.generations[place];
        let name = u32::try_from(place).expect("a bounded number of connections");
        let arrival = Arrival { connection: name, generation, local: socket.local() };
        let session = (self.listeners[listener].1)(arrival);
        let now = self.host.clock().now();
        let from = Origin { generation, endpoint: listener };
        let mut connection = Connection::new(socket, session, from, now);
        connection.interest = Interest { receive: true, send: false };
        let added = self.poller.add(&connection.stream, number_of(place), connection.interest);
        if let Err(error) = added {
            self.say(&format!("a connection cannot be waited for: {error}"));
            return;
        }
        self.connections[place] = Some(connection);
        self.open += 1;
        self.slots.enter(listener);
        self.dispatcher.stats.connections_max =
            self.dispatcher.stats.connections_max.max(u64::try_from(self.open).expect("few"));
        self.list(place);
    }

    /// A connection's socket is ready.
    fn on_socket(&mut self, place: usize, ready: Ready) {
        let now = self.host.clock().now();
        let Some(Some(connection)) = self.connections.get_mut(place) else { return };
        let received = if ready.receive && connection.wants_bytes() {
            connection.receive(now, &mut self.dispatcher)
        } else if ready.gone {
            Err(connection.on_hang_up())
        } else {
            Ok(())
        };
        match received {
            Ok(()) => self.list(place),
            Err(end) => self.close(place, end),
        }
    }

    /// The connection is looked at before the next wait.
    pub(super) fn list(&mut self, place: usize) {
        if let Some(connection) = &mut self.connections[place]
            && !connection.listed
        {
            connection.listed = true;
            self.listed.push(place);
        }
    }

    /// A connection that something happened to: it takes what it left, sends what it has, begins TLS, or ends.
    pub(super) fn look_at(&mut self, place: usize) {
        let now = self.host.clock().now();
        let Some(connection) = &mut self.connections[place] else { return };
        connection.listed = false;
        if let Err(end) = advance(connection, now, &mut self.dispatcher, self.tls.as_ref()) {
            return self.close(place, end);
        }
        let Some(connection) = &mut self.connections[place] else { return };
        let done = connection.session.send_queue().is_empty() && !connection.send_blocked;
        let leaves = match connection.session.phase() {
            Phase::Leaving => true,
            Phase::Greeting | Phase::StartTls => self.stopping.is_some(),
            Phase::Serving => self.stopping.is_some() && connection.session.is_idle(),
        };
        if done && leaves {
            return self.close(place, End::Closed);
        }
        if connection.session.go_on(&mut self.dispatcher) && !connection.waits {
            connection.waits = true;
            self.waiting.push_back(place);
        }
        connection.pace.note(now, connection.is_owed());
        let interest = Interest { receive: connection.wants_bytes(), send: connection.send_blocked };
        if interest != connection.interest {
            connection.interest = interest;
            let changed = self.poller.change(&connection.stream, number_of(place), interest);
            if let Err(error) = changed {
                self.close(place, End::Dropped(DropReason::Vanished, error.to_string()));
            }
        }
    }

    /// The end of a connection: what it holds comes back.
    pub(super) fn close(&mut self, place: usize, end: End) {
        let Some(mut connection) = self.connections[place].take() else { return };
        if let End::Dropped(reason, sentence) = end {
            // Last words; nobody waits until they are heard.
            let _ = connection.send(self.dispatcher.now, &mut self.dispatcher);
            self.dispatcher.stats.note_dropped(reason);
            self.say(&format!("a client was dropped: {sentence}"));
        } else {
            connection.stream.close();
        }
        connection.session.release(&mut self.dispatcher);
        // The socket is closed next, which ends the wait for it as well.
        let _ = self.poller.remove(&connection.stream);
        self.generations[place] = self.generations[place].wrapping_add(1);
        self.open -= 1;
        self.slots.leave(connection.endpoint);
    }

    /// Accepts nothing more; what is asked already is answered. The second time, without that.
    fn begin_stop(&mut self) {
        let now = self.host.clock().now();
        let until = if self.stopping.is_some() { now } else { now + self.limits.closing };
        self.stopping = Some(until);
        for (listener, _) in self.listeners.drain(..) {
            // It is closed next, which ends the wait for it as well.
            let _ = self.poller.remove(&listener);
        }
        for place in 0..self.connections.len() {
            if let Some(connection) = &mut self.connections[place] {
                connection.session.on_stop();
                self.list(place);
            }
        }
    }

    /// It was told to stop, nobody is there, and no job is open.
    fn is_over(&mut self) -> bool {
        self.edges_stop() && self.open == 0 && self.dispatcher.open_jobs() == 0
    }
}

/// Connections accepted at once (chosen), so that a crowd at the door does not hold up those inside.
const ACCEPTS_MAX: usize = 64;

pub(super) fn number_of(place: usize) -> u64 {
    FIRST_CONNECTION + u64::try_from(place).expect("an index fits 64 bits")
}

pub(super) fn number_of_listener(place: usize) -> u64 {
    FIRST_LISTENER + u64::try_from(place).expect("an index fits 64 bits")
}

/// The kernel may not make waits longer than asked, to join them with others. Not every kernel knows how; then they are.
pub(crate) fn wait_precisely() {
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}

/// Gives a connection what it left, sends what it has, begins TLS if it is time.
fn advance(
    connection: &mut Connection,
    now: Nanos,
    dispatcher: &mut Dispatcher,
    tls: Option<&Arc<ServerConfig>>,
) -> Result<(), End> {
    connection.offer(dispatcher)?;
    connection.send(now, dispatcher)?;
    if connection.session.phase() == Phase::StartTls
        && connection.session.send_queue().is_empty()
        && !connection.send_blocked
    {
        let Some(config) = tls else {
            return Err(End::Dropped(DropReason::Tls, "TLS was begun without a certificate".to_owned()));
        };
        let started = connection.stream.start_tls(config);
        started.map_err(|error| End::Dropped(DropReason::Tls, error.to_string()))?;
        connection.session.on_tls();
    }
    // TLS may hold bytes that the socket does not show any more.
    if connection.stream.is_encrypted() && connection.wants_bytes() {
        connection.receive(now, dispatcher)?;
        connection.send(now, dispatcher)?;
    }
    Ok(())
}
