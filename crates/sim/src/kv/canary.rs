//! Bugs to plant in a reference target, right before its power goes: whoever judges targets must find each.

use super::model::KvModel;
use crate::model::trial::Canary;

/// Each with its name.
#[must_use]
pub fn canaries() -> [Canary<KvModel>; 4] {
    [
        ("a durable value is lost", |model| drop(model.durable.pop_first())),
        ("a deleted key comes back", |model| drop(model.durable.insert(b"aaa".to_vec(), vec![1]))),
        ("the end of a value is lost", |model| {
            if let Some(value) = model.durable.values_mut().find(|value| value.len() > 1) {
                value.pop();
            }
        }),
        ("half of a batch survives", |model| {
            let torn = model.pending.iter_mut().find(|taken| !taken.is_durable && taken.change.len() > 1);
            if let Some(taken) = torn {
                taken.change.truncate(1);
                taken.is_durable = true;
            }
        }),
    ]
}
