//! Bugs to plant in a reference target, right before its power goes: whoever judges targets must find each.

use super::image::LogChange;
use super::model::LogModel;
use crate::model::trial::Canary;
use ocssd_lightnvm::interface::log_structured::Wsn;

/// Each with its name.
#[must_use]
pub fn canaries() -> [Canary<LogModel>; 4] {
    [
        ("a durable page is lost", |model| drop(model.durable.pages.pop_first())),
        ("a number survives without its pages", |model| {
            if let Some(wsn) = model.durable.sessions.values_mut().find(|wsn| **wsn > Wsn(0)) {
                *wsn = wsn.next();
            }
        }),
        ("half of a flush survives", |model| {
            let torn = model.pending.iter_mut().find(|taken| !taken.is_durable);
            if let Some(taken) = torn
                && let LogChange::Flushed(_, pages) = &mut taken.change.1
            {
                pages.truncate(pages.len() / 2);
                taken.is_durable = true;
            }
        }),
        ("a flush survives without the one before", |model| {
            if let Some(taken) = model.pending.iter_mut().filter(|taken| !taken.is_durable).nth(1) {
                taken.is_durable = true;
            }
        }),
    ]
}
