//! Which contract a kind of target is held to: one for each host interface.
//!
//! Deliberately not here: what is done with it; a visitor brings that, so that it is written once for all interfaces.

use crate::block::BlockContract;
use crate::contract::Contract;
use crate::kv::KvInterface;
use crate::log::LogInterface;
use crate::model::judge::Judge;
use crate::plan::Plan;
use crate::run::KindMount;
use crate::table::TableInterface;
use crate::world::Mount;
use crate::zoned::ZonedInterface;
use ocssd_targets::registry::{Kind, MakeOf};

/// Something that is done with a contract, whichever it is.
pub(crate) trait WithContract {
    /// What comes of it.
    type Out;

    /// Does it.
    fn with<C: Contract + Clone>(self, contract: C) -> Self::Out
    where
        for<'a> KindMount<'a>: Mount<C::Target>;
}

/// Gives the contract of a kind, for the requests of a plan, to `visitor`.
pub(crate) fn with_contract_of<V: WithContract>(kind: &Kind, plan: &Plan, visitor: V) -> V::Out {
    let seed = plan.config.seed;
    match kind.make_of() {
        MakeOf::Block(_) => visitor.with(BlockContract::new(plan.mix, kind.limits())),
        MakeOf::Zoned(_) => visitor.with(Judge::<ZonedInterface>::new(seed)),
        MakeOf::Log(_) => visitor.with(Judge::<LogInterface>::new(seed)),
        MakeOf::Table(_) => visitor.with(Judge::<TableInterface>::new(seed)),
        MakeOf::KeyValue(_) => visitor.with(Judge::<KvInterface>::new(seed)),
    }
}
