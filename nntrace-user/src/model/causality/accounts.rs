//! Work by the account that it is charged to.

use std::collections::BTreeMap;

use nntrace_common::record::Total;

use super::{
    Site,
    context::{Charge, Edge},
    interned_texts::Texts,
};
use crate::model::{
    capped_table::{Capped, Key, Row},
    limits::Limits,
};

/// All accounts.
#[derive(Clone, Debug)]
pub(crate) struct Accounts {
    /// Their names.
    pub(crate) names: Texts,
    rows: Capped<Charged, AccountSum>,
}

/// An account, and what is charged to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Charged {
    account: Option<u32>,
    site: Site,
}

impl Key for Charged {
    fn coarser(&self) -> Option<Self> {
        Some(Self { site: self.site.coarser()?, ..*self })
    }

    fn is_others(&self) -> bool {
        self.site.is_others()
    }
}

impl Row<Charged> for AccountSum {
    fn weight(&self) -> u64 {
        self.exclusive()
    }

    fn add(&mut self, other: Self) {
        self.count += other.count;
        for (sum, part) in self.exclusive.iter_mut().zip(other.exclusive) {
            *sum = sum.saturating_add(part);
        }
    }
}

/// Sum of the sections of one function on one account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AccountSum {
    /// Sections that began on this account.
    pub count: u64,
    /// Exclusive time, ns, by how the account is known: in the order of [`Edge`].
    pub exclusive: [u64; 4],
}

impl AccountSum {
    /// Exclusive time, ns.
    #[must_use]
    pub(crate) fn exclusive(&self) -> u64 {
        self.exclusive.iter().copied().fold(0, u64::saturating_add)
    }
}

impl Accounts {
    pub(super) fn new(limits: &Limits) -> Self {
        Self { names: Texts::new(limits.causes / 4), rows: Capped::new(limits.causes) }
    }

    pub(super) fn sites(&self) -> impl Iterator<Item = Site> {
        self.rows.iter().map(|(charged, ..)| charged.site)
    }

    pub(super) fn summed(&self) -> u64 {
        self.rows.summed()
    }

    pub(super) fn charge(&mut self, site: Site, charge: Option<Charge>, exclusive: u64) {
        let edge = charge.map_or(Edge::Explicit, |charge| charge.edge);
        let charged = Charged { account: charge.map(|charge| charge.account), site };
        let sum = &mut self.rows.row(charged, AccountSum::default).exclusive[edge as usize];
        *sum = sum.saturating_add(exclusive);
    }

    pub(super) fn count(&mut self, site: Site, charge: Option<Charge>) {
        let charged = Charged { account: charge.map(|charge| charge.account), site };
        self.rows.row(charged, AccountSum::default).count += 1;
    }

    /// Charges sections of a function to no account.
    pub(super) fn charge_to_none(&mut self, site: Site, total: &Total) {
        let row = self.rows.row(Charged { account: None, site }, AccountSum::default);
        row.count += total.count;
        let sum = &mut row.exclusive[Edge::Explicit as usize];
        *sum = sum.saturating_add(total.exclusive);
    }

    /// Whether any section named one.
    #[must_use]
    pub(crate) fn is_used(&self) -> bool {
        self.rows.iter().any(|(charged, ..)| charged.account.is_some())
    }

    /// Sums of each account by its name; what is charged to none comes last.
    #[must_use]
    pub(crate) fn by_name(&self) -> BTreeMap<(bool, &str), BTreeMap<Site, AccountSum>> {
        let mut all: BTreeMap<(bool, &str), BTreeMap<Site, AccountSum>> = BTreeMap::new();
        for (&Charged { account, site }, sum, _) in self.rows.iter() {
            let name = account.map_or("", |account| self.names.text(account));
            let of_site = all.entry((account.is_none(), name)).or_default().entry(site).or_default();
            of_site.add(*sum);
        }
        all
    }
}
