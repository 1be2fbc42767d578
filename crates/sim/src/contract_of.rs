//! Which contract a kind of target is held to: one for each host interface.
//!
//! Deliberately not here: what is done with it; a visitor brings that, so that it is written once for all interfaces.

use crate::block::BlockContract;
use crate::contract::Contract;
use crate::kv::{KvInterface, LossContract};
use crate::log::LogInterface;
use crate::model::judge::Judge;
use crate::mounts::{KindMount, kind_beside};
use crate::plan::{Step, WorldPlan};
use crate::table::TableInterface;
use crate::world::Mount;
use crate::zoned::ZonedInterface;
use ocssd_targets::registry::{Kind, MakeOf};

/// Something that is done with a contract, whichever it is.
pub(crate) trait WithContract {
    /// What comes of it.
    type Out;

    /// Does it. The second contract is that of the target beside the first, if the plan has one.
    fn with<C: Contract + Clone>(self, contract: C, beside: Option<C>) -> Self::Out
    where
        for<'a> KindMount<'a>: Mount<C::Target>;
}

/// Gives the contract of a kind, for the requests of a plan, to `visitor`.
pub(crate) fn with_contract_of<V: WithContract>(kind: &Kind, plan: &WorldPlan, visitor: V) -> V::Out {
    let seed = plan.config.seed;
    let beside = plan.beside.as_ref();
    // Another kind than the first is of blocks, for that contract alone has what a kind does not promise.
    let second = beside.map(|_| seed.rotate_left(1));
    match kind.make_of() {
        MakeOf::Block(_) => visitor.with(
            BlockContract::new(plan.mix, kind.limits()),
            beside.map(|beside| BlockContract::new(beside.mix, kind_beside(kind, beside).limits())),
        ),
        MakeOf::Zoned(_) => {
            let first = Judge::<ZonedInterface>::new(seed).leaves_most_alone(plan.mix.cold_after > 0);
            visitor.with(first, second.map(Judge::<ZonedInterface>::new))
        }
        MakeOf::Log(_) => {
            visitor.with(Judge::<LogInterface>::new(seed), second.map(Judge::<LogInterface>::new))
        }
        MakeOf::Table(_) => {
            visitor.with(Judge::<TableInterface>::new(seed), second.map(Judge::<TableInterface>::new))
        }
        MakeOf::KeyValue(_) if plan.steps.iter().any(|step| matches!(step, Step::LosePage { .. })) => {
            visitor.with(LossContract::default(), second.map(|_| LossContract::default()))
        }
        MakeOf::KeyValue(_) => {
            let first = Judge::<KvInterface>::new(seed).leaves_most_alone(plan.mix.cold_after > 0);
            visitor.with(first, second.map(Judge::<KvInterface>::new))
        }
    }
}
