//! Bugs to plant in a reference target, right before its power goes: whoever judges targets must find each.

use super::model::TableModel;
use crate::model::trial::Canary;

/// Each with its name.
#[must_use]
pub fn canaries() -> [Canary<TableModel>; 4] {
    [
        ("a durable table is lost", |model| drop(model.durable.items.pop_first())),
        ("a synced byte is lost", |model| {
            model.logs.values_mut().for_each(|log| log.synced = log.synced.saturating_sub(1))
        }),
        ("half of an edit survives", |model| {
            let torn = model.edits.iter_mut().find(|taken| !taken.is_durable && taken.change.len() > 1);
            if let Some(taken) = torn {
                taken.change.truncate(1);
                taken.is_durable = true;
            }
        }),
        ("attributes are lost", |model| {
            model.durable.items.values_mut().for_each(|(_, attributes)| attributes.clear())
        }),
    ]
}
