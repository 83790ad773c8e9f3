//! What is charged to whom.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::{
    Site,
    context::{Charge, Edge},
    texts::Texts,
};

/// All accounts.
#[derive(Clone, Debug, Default)]
pub struct Accounts {
    /// Their names.
    pub names: Texts,
    rows: FxHashMap<(Option<u32>, Site), AccountSum>,
}

/// What the sections of one function do on one account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccountSum {
    /// Sections that began on this account.
    pub count: u64,
    /// Exclusive time, ns, by how the account is known: in the order of [`Edge::ALL`].
    pub exclusive: [u64; 4],
}

impl AccountSum {
    /// Exclusive time, ns.
    #[must_use]
    pub fn exclusive(&self) -> u64 {
        self.exclusive.iter().sum()
    }
}

impl Accounts {
    pub(super) fn charge(&mut self, site: Site, charge: Option<Charge>, exclusive: u64) {
        let edge = charge.map_or(Edge::Explicit, |charge| charge.edge);
        self.rows.entry((charge.map(|charge| charge.account), site)).or_default().exclusive[edge as usize] +=
            exclusive;
    }

    pub(super) fn count(&mut self, site: Site, charge: Option<Charge>) {
        self.rows.entry((charge.map(|charge| charge.account), site)).or_default().count += 1;
    }

    /// Whether any section named one.
    #[must_use]
    pub fn is_used(&self) -> bool {
        self.rows.keys().any(|(account, _)| account.is_some())
    }

    /// What each account is charged with, by name; what nobody is charged with last.
    #[must_use]
    pub fn by_name(&self) -> BTreeMap<(bool, &str), BTreeMap<Site, AccountSum>> {
        let mut all: BTreeMap<(bool, &str), BTreeMap<Site, AccountSum>> = BTreeMap::new();
        for (&(account, site), sum) in &self.rows {
            let name = account.map_or("", |account| self.names.text(account));
            let of_site = all.entry((account.is_none(), name)).or_default().entry(site).or_default();
            of_site.count += sum.count;
            for (total, part) in of_site.exclusive.iter_mut().zip(sum.exclusive) {
                *total += part;
            }
        }
        all
    }
}
