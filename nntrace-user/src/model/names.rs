//! The names of marked functions, by hash.

use nntrace_common::interface::Role;
use rustc_hash::FxHashMap;

/// Names that were met.
#[derive(Debug, Default)]
pub struct Names {
    by_hash: FxHashMap<u64, Name>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// As the mark has it, without attributes; bytes that are no text are replaced.
    pub text: String,
    /// What the function is to executions.
    pub role: Role,
}

impl Names {
    /// Whether the text of a name is known.
    #[must_use]
    pub fn contains(&self, hash: u64) -> bool {
        self.by_hash.contains_key(&hash)
    }

    /// Keeps the text of a name; the first one stays.
    pub fn insert(&mut self, hash: u64, name: &[u8]) {
        self.by_hash.entry(hash).or_insert_with(|| Name {
            text: String::from_utf8_lossy(name).into_owned(),
            role: Role::of(name),
        });
    }

    /// A name; `None` when its text never came.
    #[must_use]
    pub fn get(&self, hash: u64) -> Option<&Name> {
        self.by_hash.get(&hash)
    }

    /// Its text, or its hash where the text never came.
    #[must_use]
    pub fn text(&self, hash: u64) -> String {
        self.get(hash).map_or_else(|| format!("?{hash:016x}"), |name| name.text.clone())
    }

    /// Whether the runtime starts executions, or waits for them, as far as names show.
    #[must_use]
    pub fn has_asynchronous_calls(&self) -> bool {
        self.by_hash.values().any(|name| matches!(name.role, Role::Start | Role::Wait))
    }

    /// What the function of that name is to executions.
    #[must_use]
    pub fn role(&self, hash: u64) -> Role {
        self.get(hash).map_or(Role::Ordinary, |name| name.role)
    }
}
