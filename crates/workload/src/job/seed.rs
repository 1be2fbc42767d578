//! Seeds of jobs that ask for another run every time (`randrepeat=0`).
//!
//! Deliberately not here: where such a seed comes from; nothing here reads the machine.

use super::error::Note;
use super::job::Parsed;

impl Parsed {
    /// Gives every job that asks for it a seed from `draw`, as if it had that `randseed`, and says which.
    ///
    /// Whoever runs the jobs calls this once, before making the plan. A job with a `randseed` keeps it.
    pub fn draw_seeds(&mut self, mut draw: impl FnMut() -> u64) {
        let fresh = |job: &&mut super::Job| !job.options.randrepeat && job.options.randseed.is_none();
        for job in self.jobs.iter_mut().filter(fresh) {
            // 53 bits, so that readers of JSON that hold numbers as doubles can repeat it too.
            let seed = draw() >> 11;
            job.options.randseed = Some(seed);
            self.notes.push(Note {
                job: job.name.clone(),
                option: "randrepeat".to_owned(),
                value: "0".to_owned(),
                sentence: format!("drew a new seed; randseed={seed} repeats this job"),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::job::tests::valid;

    #[test]
    fn only_jobs_that_do_not_repeat_get_a_seed() {
        let mut parsed = valid(
            "[a]\n[b]\nrandrepeat=0\n[c]\nrandrepeat=0\nrandseed=7\n[d]\nrandrepeat=0\nallrandrepeat=1\n[e]\nallrandrepeat=0\n",
        );
        parsed.draw_seeds(|| 5 << 11);
        let seeds: Vec<_> = parsed.jobs.iter().map(|job| job.options.randseed).collect();
        assert_eq!(seeds, [None, Some(5), Some(7), None, None]);
        assert!(parsed.notes.iter().any(|note| note.sentence.contains("randseed=5")));
    }
}
