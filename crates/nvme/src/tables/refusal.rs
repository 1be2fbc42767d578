//! Why a command was refused: DW1 of its completion. DW0 is the row of an edit.
//!
//! Source: this project.

use ocssd_lightnvm::interface::table::TableRefusal;

/// All there are, by their numbers: the first is 1.
const REFUSALS: [TableRefusal; 12] = [
    TableRefusal::NoSuchTable,
    TableRefusal::NameTaken,
    TableRefusal::NotPublished,
    TableRefusal::IsPublished,
    TableRefusal::WrongKind,
    TableRefusal::TooManyTables,
    TableRefusal::TooLong,
    TableRefusal::AttributesTooLong,
    TableRefusal::TooManyEdits,
    TableRefusal::BadEdit,
    TableRefusal::NoRoom,
    TableRefusal::BadContent,
];

/// The number of a refusal; never 0.
///
/// # Panics
/// Never: the numbers are of all there are.
#[must_use]
pub fn refusal_number(refusal: TableRefusal) -> u32 {
    let at = REFUSALS.iter().position(|&other| other == refusal).expect("every refusal has a number");
    u32::try_from(at + 1).expect("a dozen")
}

/// The refusal of a number; `None` of one that is not known.
#[must_use]
pub fn refusal_of(number: u32) -> Option<TableRefusal> {
    let at = usize::try_from(number).ok()?.checked_sub(1)?;
    REFUSALS.get(at).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_have_numbers_from_1_on_and_others_are_none() {
        for (number, refusal) in (1..).zip(REFUSALS) {
            assert_eq!((refusal_number(refusal), refusal_of(number)), (number, Some(refusal)));
        }
        assert_eq!(refusal_number(TableRefusal::BadContent), 12, "the last one has a number");
        assert_eq!([refusal_of(0), refusal_of(13), refusal_of(u32::MAX)], [None; 3]);
    }
}
