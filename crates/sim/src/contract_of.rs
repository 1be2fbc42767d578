//! Which contract a kind of target is held to: one for each host interface.
//!
//! Deliberately not here: what is done with it; a visitor brings that, so that it is written once for all interfaces.

use crate::any_contract::AnyContract;
use crate::block::{BlockContract, Mix};
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

    /// Does it. The others are the contracts of the targets beside the first, as the plan has them.
    fn with<C: Contract + Clone>(self, contract: C, beside: Vec<C>) -> Self::Out
    where
        for<'a> KindMount<'a>: Mount<C::Target>;
}

/// True if the targets of a plan are spoken to by more than one interface.
pub(crate) fn has_several_interfaces(kind: &Kind, plan: &WorldPlan) -> bool {
    plan.beside
        .iter()
        .any(|beside| kind_beside(kind, beside).make_of().interface() != kind.make_of().interface())
}

/// Gives the contract of a kind, for the requests of a plan, to `visitor`.
pub(crate) fn with_contract_of<V: WithContract>(kind: &Kind, plan: &WorldPlan, visitor: V) -> V::Out {
    let seed = plan.config.seed;
    // Each draws its own requests.
    let seeds = || (1..).zip(&plan.beside).map(move |(nth, _)| seed.rotate_left(nth));
    if has_several_interfaces(kind, plan) {
        let kinds = plan.beside.iter().map(|beside| (kind_beside(kind, beside), beside.mix));
        let beside = kinds.zip(seeds()).map(|((kind, mix), seed)| any_of(kind, mix, seed)).collect();
        return visitor.with(any_of(kind, plan.mix, seed), beside);
    }
    match kind.make_of() {
        MakeOf::Block(_) => visitor.with(
            BlockContract::new(plan.mix, kind.limits()),
            plan.beside
                .iter()
                .map(|beside| BlockContract::new(beside.mix, kind_beside(kind, beside).limits()))
                .collect(),
        ),
        MakeOf::Zoned(_) => {
            let first = Judge::<ZonedInterface>::new(seed).leaves_most_alone(plan.mix.cold_after > 0);
            visitor.with(first, seeds().map(Judge::new).collect())
        }
        MakeOf::Log(_) => visitor.with(Judge::<LogInterface>::new(seed), seeds().map(Judge::new).collect()),
        MakeOf::Table(_) => {
            visitor.with(Judge::<TableInterface>::new(seed), seeds().map(Judge::new).collect())
        }
        MakeOf::KeyValue(_) if plan.steps.iter().any(|step| matches!(step, Step::LosePage { .. })) => {
            visitor.with(LossContract::default(), seeds().map(|_| LossContract::default()).collect())
        }
        MakeOf::KeyValue(_) => {
            let first = Judge::<KvInterface>::new(seed).leaves_most_alone(plan.mix.cold_after > 0);
            visitor.with(first, seeds().map(Judge::new).collect())
        }
    }
}

/// The contract of a target among others of other interfaces.
fn any_of(kind: &Kind, mix: Mix, seed: u64) -> AnyContract {
    match kind.make_of() {
        MakeOf::Block(_) => AnyContract::Block(BlockContract::new(mix, kind.limits())),
        MakeOf::Zoned(_) => AnyContract::Zoned(Judge::new(seed)),
        MakeOf::Log(_) => AnyContract::Log(Judge::new(seed)),
        MakeOf::Table(_) => AnyContract::Table(Judge::new(seed)),
        MakeOf::KeyValue(_) => AnyContract::KeyValue(Judge::new(seed)),
    }
}
