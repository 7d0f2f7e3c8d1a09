//! Wrong variants of an accepted outcome, to see whether a verification notices.
//!
//! Pure: the same outcome and seed give the same mutants. They are spread over the outcome and
//! over the kinds, so that a large table does not use up the number with changes of one column.

mod edit;
mod sites;

use checkrein_contract::interface::Outcome;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde::Serialize;

use edit::Edit;

/// What is wrong with a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MutantKind {
    /// A number is off by 10 % or by a thousandth, a text or a truth value is another.
    Value,
    /// A number has the other sign.
    Sign,
    /// Two neighbours in a list stand in the other order.
    Order,
    /// A fact, a file, a field or an element is left out.
    Drop,
    /// What is said of one subject is said of another; or two fields of one type are exchanged.
    Swap,
    /// A fact or an element is added that nothing stands behind.
    Invent,
}

impl MutantKind {
    /// Every kind there is.
    pub const ALL: [MutantKind; 6] = [
        MutantKind::Value,
        MutantKind::Sign,
        MutantKind::Order,
        MutantKind::Drop,
        MutantKind::Swap,
        MutantKind::Invent,
    ];

    /// The word that outputs use.
    pub fn as_str(self) -> &'static str {
        match self {
            MutantKind::Value => "value",
            MutantKind::Sign => "sign",
            MutantKind::Order => "order",
            MutantKind::Drop => "drop",
            MutantKind::Swap => "swap",
            MutantKind::Invent => "invent",
        }
    }
}

/// A wrong variant of an outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct Mutant {
    /// How it is wrong.
    pub kind: MutantKind,
    /// What was changed, with a JSON Pointer into the outcome.
    pub description: String,
    /// The outcome with the change.
    pub outcome: Outcome,
}

/// At most `at_most` mutants of `outcome`, every one of them different from it.
pub fn mutants(outcome: &Outcome, seed: u64, at_most: usize) -> Vec<Mutant> {
    let mut rng = StdRng::seed_from_u64(seed);
    let all = sites::edits(outcome);
    let of_kind =
        MutantKind::ALL.map(|kind| all.iter().filter(|edit| edit.kind() == kind).collect::<Vec<_>>());
    let shares = shares(&of_kind.each_ref().map(Vec::len), at_most);
    let mut made = Vec::new();
    for (edits, share) in of_kind.iter().zip(shares) {
        made.extend(spread(edits, share, &mut rng).filter_map(|edit| make(outcome, edit)));
    }
    made
}

fn make(outcome: &Outcome, edit: &Edit) -> Option<Mutant> {
    let mut changed = outcome.clone();
    edit.apply(&mut changed);
    (changed != *outcome).then(|| Mutant {
        kind: edit.kind(),
        description: edit.describe(),
        outcome: changed,
    })
}

/// Deals `total` out to the kinds, one after another, as long as each has some left.
fn shares<const N: usize>(available: &[usize; N], total: usize) -> [usize; N] {
    let mut shares = [0; N];
    let mut left = total;
    while left > 0 {
        let mut dealt = false;
        for (share, available) in shares.iter_mut().zip(available) {
            if *share < *available && left > 0 {
                *share += 1;
                left -= 1;
                dealt = true;
            }
        }
        if !dealt {
            break;
        }
    }
    shares
}

/// `share` of the edits, at equal distances from a random start.
fn spread<'e>(edits: &[&'e Edit], share: usize, rng: &mut StdRng) -> impl Iterator<Item = &'e Edit> {
    let start = if edits.is_empty() { 0 } else { rng.random_range(0..edits.len()) };
    (0..share).map(move |n| edits[(start + n * edits.len() / share) % edits.len()])
}

#[cfg(test)]
mod tests;
