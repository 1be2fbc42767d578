//! The sizes that instances have on drives of several shapes, kept as text beside the code that works them out.
//!
//! An instance that exists has its sizes worked out anew at every mount, from what it promised and from the drive: chunks for the
//! log, for checkpoints and tails, buffers. Most of them have room to spare, so that a smaller one breaks nothing that a test
//! would come by, and one day an instance that cannot go on. A commit that changes a table says what becomes of instances that
//! exist. Deliberately not here: what the sizes must be enough for, which tests of each target and simulations say.

use ocssd_ftl::InstanceGeometry;
use ocssd_lightnvm::{Geometry, PuId};
use std::fmt::Debug;
use std::fmt::Write as _;

/// A drive whose units are all an instance's.
pub struct Drive {
    name: &'static str,
    pub geometry: Geometry,
    pub shape: InstanceGeometry,
}

impl Drive {
    fn new(name: &'static str, geometry: Geometry) -> Self {
        let units: Vec<PuId> = (0..geometry.pu_count()).map(PuId).collect();
        let shape = InstanceGeometry::new(&geometry, &units);
        Self { name, geometry, shape }
    }

    /// All of them: small and large, with pages shorter than a write unit and without, readable at once and late, with many units
    /// in a group and few.
    pub fn all() -> [Self; 4] {
        [
            Self::new("small", Geometry { mw_cunits: 8, ws_min: 4, ..Geometry::example(1, 2, 120, 32, 8) }),
            Self::new("groups", Geometry { mw_cunits: 24, ws_min: 4, ..Geometry::example(4, 1, 90, 96, 12) }),
            Self::new("wide", Geometry { oob_bytes: 64, ..Geometry::example(2, 8, 300, 1_024, 16) }),
            Self::new(
                "large",
                Geometry { mw_cunits: 48, ws_min: 12, ..Geometry::example(8, 4, 1_000, 6_144, 24) },
            ),
        ]
    }
}

/// Asserts that the sizes of each drive with each list of options, as users write them, are those of a table: a text beside the
/// code. `sizes_of` gives those of a new instance and of the same at a later mount, or says why there are none.
pub fn assert_kept<S: Debug>(
    (file, kept): (&str, &str),
    options: &[&[(&str, &str)]],
    sizes_of: impl Fn(&Drive, &[(&str, &str)]) -> Result<[S; 2], String>,
) {
    let mut found = String::from(
        "Sizes of instances: crates/targets/src/size_table.rs. A test that finds others prints the table.
",
    );
    for drive in Drive::all() {
        for &options in options {
            let options_in_words: Vec<String> =
                options.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let sizes = match sizes_of(&drive, options) {
                Ok([new, later]) => in_words(&new, &later),
                Err(sentence) => sentence,
            };
            write!(found, "\n{} drive, options [{}]\n{sizes}\n", drive.name, options_in_words.join(", "))
                .expect("text takes text");
        }
    }
    if found != kept {
        println!("{found}");
    }
    let differs = found.lines().zip(kept.lines()).find(|(found, kept)| found != kept);
    assert!(
        found == kept,
        "sizes are others than {file} has, first where {differs:?} was found and kept: say what becomes of instances that exist"
    );
}

/// A field a line; later only those that are others.
fn in_words<S: Debug>(new: &S, later: &S) -> String {
    let (new, later) = (format!("{new:#?}"), format!("{later:#?}"));
    let others = new.lines().zip(later.lines()).filter(|(new, later)| new != later);
    let others: String = others.map(|(_, later)| format!("\n  later{later}")).collect();
    assert_eq!(new.lines().count(), later.lines().count(), "sizes have other fields later");
    new + &others
}
