//! `--live`: what goes on while a drive is served, on standard error.
//!
//! The server tells of every job that ends, and shows the host now and then; the view is that of `ocssd run --live`. What the
//! server says besides goes through it, so that neither overwrites the other. Deliberately not here: drawing (`live`).

use crate::live::{Every, Inside, Live, Sample};
use ocssd_base::Nanos;
use ocssd_engine::{Clock, Host, WallClock};
use ocssd_export::Done;
use ocssd_export::reactor::Onlooker;
use ocssd_flash::Flash;
use ocssd_lightnvm::TargetId;
use ocssd_workload::run::Tally;
use std::cell::RefCell;
use std::io::Write;
use std::rc::Rc;

/// The view, shared by who shows and who speaks; nothing without `--live`.
#[derive(Clone)]
pub struct View(Option<Rc<RefCell<Live>>>);

impl View {
    /// The view that was asked for.
    pub fn new(every: Option<Every>) -> Self {
        Self(every.map(|every| Rc::new(RefCell::new(Live::new(every)))))
    }

    /// Says a sentence. It serves on if nobody reads standard error.
    pub fn say(&self, sentence: &str) {
        self.clear();
        drop(writeln!(std::io::stderr(), "ocssd: {sentence}"));
    }

    /// Takes the picture away until the next one.
    pub fn clear(&self) {
        if let Some(live) = &self.0 {
            live.borrow_mut().clear();
        }
    }

    /// Who looks on for it: these targets, by name.
    pub fn onlooker(&self, targets: Vec<(String, TargetId)>) -> Option<Box<dyn Onlooker<Flash>>> {
        let live = Rc::clone(self.0.as_ref()?);
        Some(Box::new(Watcher { live, targets, tally: Tally::default(), began: None }))
    }
}

struct Watcher {
    live: Rc<RefCell<Live>>,
    targets: Vec<(String, TargetId)>,
    tally: Tally,
    began: Option<Nanos>,
}

impl Onlooker<Flash> for Watcher {
    fn on_done(&mut self, done: &Done) {
        self.tally.ios += 1;
        self.tally.bytes += done.bytes;
        self.tally.latency.record(done.took);
    }

    fn every(&self) -> Nanos {
        self.live.borrow().every()
    }

    fn look(&mut self, host: &Host<Flash, WallClock>, streams: usize) {
        let now = host.clock().now();
        let gone = now.saturating_since(*self.began.get_or_insert(now));
        let flash = host.device();
        let inside = Inside {
            groups: flash.config().geometry.groups,
            unit_busy: flash.counters().unit_busy,
            targets: self
                .targets
                .iter()
                .map(|(name, id)| (name.clone(), host.target(*id).counters()))
                .collect(),
        };
        let mut live = self.live.borrow_mut();
        let word = if streams == 1 { "connection" } else { "connections" };
        live.head(&format!("serving, {streams} {word}"), &format!("{} s gone", gone.0 / 1_000_000_000));
        live.show(Sample { now, tally: self.tally.clone(), inside: Some(inside) });
    }
}
