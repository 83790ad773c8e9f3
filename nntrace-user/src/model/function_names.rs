//! The names of marked functions, by hash.

use nntrace_common::{
    hidl_calls::{self, Role},
    tokens,
};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    capped_table::{OTHERS, OTHERS_NAME},
    limits::Limits,
};

/// Names that were met.
#[derive(Debug)]
pub(crate) struct Names {
    by_hash: FxHashMap<u64, Name>,
    /// Number of names that are kept; beyond it, those that nothing uses are forgotten.
    most: usize,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    /// As the mark has it, without attributes; bytes that are no text are replaced.
    pub text: String,
    /// Role of the function in executions.
    pub role: Role,
    /// Whether it shows that its process is a driver.
    pub shows_driver: bool,
    /// Tokens in the batch that a section of that name runs a language model on.
    pub tokens: Option<u32>,
    /// Whether it stays, whoever uses it.
    stays: bool,
}

impl Default for Names {
    fn default() -> Self {
        Self::new(&Limits::default())
    }
}

impl Names {
    /// Creates an empty table.
    #[must_use]
    pub(crate) fn new(limits: &Limits) -> Self {
        Self { by_hash: FxHashMap::default(), most: limits.names }
    }

    /// Whether the text of a name is known.
    #[must_use]
    pub(crate) fn contains(&self, hash: u64) -> bool {
        self.by_hash.contains_key(&hash)
    }

    /// Keeps the text of a name; the first one stays.
    pub(crate) fn insert(&mut self, hash: u64, name: &[u8]) {
        self.by_hash.entry(hash).or_insert_with(|| Name {
            text: String::from_utf8_lossy(name).into_owned(),
            role: Role::of(name),
            shows_driver: hidl_calls::meaning(name).driver != 0,
            tokens: tokens::stated_by(name),
            stays: false,
        });
    }

    /// Keeps the text of a name for good.
    pub(crate) fn insert_for_good(&mut self, hash: u64, name: &[u8]) {
        self.insert(hash, name);
        if let Some(name) = self.by_hash.get_mut(&hash) {
            name.stays = true;
        }
    }

    /// Whether unused names should be evicted.
    #[must_use]
    #[inline]
    pub(crate) fn are_too_many(&self) -> bool {
        self.by_hash.len() > self.most
    }

    /// Forgets all but these.
    #[cold]
    pub(crate) fn retain(&mut self, used: &FxHashSet<u64>) {
        self.by_hash.retain(|hash, name| name.stays || used.contains(hash));
        self.by_hash.shrink_to_fit();
        // Of what is in use, other tables have their own bounds.
        self.most = self.most.max(2 * self.by_hash.len());
    }

    /// A name; `None` when its text never came.
    #[must_use]
    pub(crate) fn get(&self, hash: u64) -> Option<&Name> {
        self.by_hash.get(&hash)
    }

    /// Its text, or its hash where the text never came.
    #[must_use]
    pub(crate) fn text(&self, hash: u64) -> String {
        match self.get(hash) {
            Some(name) => name.text.clone(),
            None if hash == OTHERS_NAME => OTHERS.into(),
            None => format!("?{hash:016x}"),
        }
    }

    /// Whether the runtime starts executions, or waits for them, as far as names show.
    #[must_use]
    pub(crate) fn has_asynchronous_calls(&self) -> bool {
        self.by_hash.values().any(|name| matches!(name.role, Role::Start | Role::Wait))
    }

    /// Role of the function of that name in executions.
    #[must_use]
    pub(crate) fn role(&self, hash: u64) -> Role {
        self.get(hash).map_or(Role::Ordinary, |name| name.role)
    }
}
