//! Jobs that share I/Os by weight: fio's `flow`.
//!
//! Each member may be ahead of its share by one I/O: it is held while its part of the flow's I/Os is larger than its part
//! of the weights. Members that have not started, have ended, or wait for a zone are not counted, so that nobody waits
//! for one that waits for him. Deliberately not here: waking; the runner does.

/// One job in a flow.
#[derive(Clone, Copy, Debug, Default)]
struct Member {
    flow: usize,
    weight: u64,
    ios: u64,
    is_in: bool,
}

/// One flow.
#[derive(Clone, Debug)]
struct Flow {
    id: u32,
    /// Weights and I/Os of the members that are in.
    weight: u64,
    ios: u64,
    held: Vec<u32>,
}

/// All flows of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Flows {
    flows: Vec<Flow>,
    /// By worker; of weight 0 where it is in no flow.
    members: Vec<Member>,
}

fn index(worker: u32) -> usize {
    usize::try_from(worker).expect("32 bits fit an index")
}

impl Flows {
    /// From each worker's flow and weight; a weight of 0 is in no flow.
    pub(super) fn new(workers: impl IntoIterator<Item = (u32, u32)>) -> Self {
        let mut flows = Self::default();
        for (id, weight) in workers {
            let known = flows.flows.iter().position(|flow| flow.id == id);
            let flow = known.unwrap_or_else(|| {
                flows.flows.push(Flow { id, weight: 0, ios: 0, held: Vec::new() });
                flows.flows.len() - 1
            });
            flows.members.push(Member { flow, weight: u64::from(weight), ios: 0, is_in: false });
        }
        flows
    }

    fn member(&self, worker: u32) -> Member {
        self.members[index(worker)]
    }

    /// A worker started, or no longer waits for a zone.
    pub(super) fn join(&mut self, worker: u32) {
        let member = self.member(worker);
        if member.weight > 0 && !member.is_in {
            self.members[index(worker)].is_in = true;
            self.flows[member.flow].weight += member.weight;
            self.flows[member.flow].ios += member.ios;
        }
    }

    /// A worker ended, or waits for a zone. Who is held may go on: ask for them.
    pub(super) fn leave(&mut self, worker: u32) {
        let member = self.member(worker);
        if member.is_in {
            self.members[index(worker)].is_in = false;
            self.flows[member.flow].weight -= member.weight;
            self.flows[member.flow].ios -= member.ios;
        }
    }

    /// True if the worker is ahead of its share; it is then kept for [`Self::release`] if it asks to be `told`.
    pub(super) fn holds(&mut self, worker: u32, told: bool) -> bool {
        let member = self.member(worker);
        let flow = &mut self.flows[member.flow];
        // fio counts a flow's I/Os from 1.
        let ahead = member.is_in && member.ios * flow.weight > member.weight * (flow.ios + 1);
        if ahead && told && !flow.held.contains(&worker) {
            flow.held.push(worker);
        }
        ahead
    }

    /// True if the worker is in a flow.
    pub(super) fn is_in_one(&self, worker: u32) -> bool {
        self.member(worker).weight > 0
    }

    /// A worker issued an I/O.
    pub(super) fn on_issued(&mut self, worker: u32) {
        let member = &mut self.members[index(worker)];
        member.ios += 1;
        if member.is_in {
            self.flows[member.flow].ios += 1;
        }
    }

    /// Somebody held in the flow of a worker, who may try again and is held no more; `None` once nobody is.
    pub(super) fn release(&mut self, worker: u32) -> Option<u32> {
        let member = self.member(worker);
        self.flows[member.flow].held.pop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_base::Prng;

    #[test]
    fn ios_are_shared_by_weight_whoever_asks_first() {
        for seed in 0..20 {
            let mut prng = Prng::new(seed);
            let mut flows = Flows::new([(0, 3), (0, 2), (0, 1), (7, 5), (0, 0)]);
            (0..4).for_each(|worker| flows.join(worker));
            let mut ios = [0_u64; 3];
            for _ in 0..6_000 {
                let worker = u32::try_from(prng.below(3)).expect("below three");
                if !flows.holds(worker, true) {
                    flows.on_issued(worker);
                    ios[index(worker)] += 1;
                }
            }
            let sum: u64 = ios.iter().sum();
            for (weight, ios) in [3, 2, 1].into_iter().zip(ios) {
                assert!((ios * 6).abs_diff(sum * weight) <= 12, "seed {seed}: {ios} of {sum} for {weight}");
            }
            assert!(!flows.holds(3, true), "another flow is its own");
            flows.join(4);
            assert!(!flows.holds(4, true), "a weight of 0 is in no flow");
        }
    }

    #[test]
    fn somebody_in_a_flow_may_always_go_on() {
        for seed in 0..20 {
            let mut prng = Prng::new(seed);
            let weights: Vec<(u32, u32)> =
                (0..5).map(|_| (0, 1 + u32::try_from(prng.below(1_000)).expect("small"))).collect();
            let mut flows = Flows::new(weights);
            (0..5).for_each(|worker| flows.join(worker));
            for _ in 0..1_000 {
                let free: Vec<u32> = (0..5).filter(|&worker| !flows.holds(worker, true)).collect();
                assert!(!free.is_empty(), "seed {seed}");
                let nth = index(u32::try_from(prng.below(free.len() as u64)).expect("small"));
                flows.on_issued(free[nth]);
            }
        }
    }

    #[test]
    fn one_that_left_holds_nobody() {
        let mut flows = Flows::new([(0, 1), (0, 1)]);
        flows.join(0);
        flows.join(1);
        flows.on_issued(0);
        flows.on_issued(0);
        assert!(flows.holds(0, true) && !flows.holds(1, true));
        flows.leave(1);
        assert_eq!((flows.release(1), flows.release(1)), (Some(0), None));
        assert!(!flows.holds(0, true));
        flows.join(1);
        assert!(flows.holds(0, true));
    }
}
