//! Notes on what somebody should know about a pack.

use std::collections::BTreeMap;

/// Notes on a topic at most; more are counted.
const MOST_NOTES: usize = 20;

/// Topic of notes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Topic {
    /// Content of the pack as a whole.
    Pack,
    /// File that is another one than it was.
    Changed,
    /// File that is not there any more.
    Gone,
    /// File that cannot be read.
    Unreadable,
    /// File that is too large.
    TooLarge,
    /// File or variable that may hold a secret.
    Secret,
}

impl Topic {
    /// Words for what more notes of this topic are about.
    const fn more(self) -> &'static str {
        match self {
            Self::Pack => "notes",
            Self::Changed => "files have changed since the recording",
            Self::Gone => "files are gone, and not in the pack",
            Self::Unreadable => "files cannot be read, and are not in the pack",
            Self::TooLarge => "files are too large, and not in the pack",
            Self::Secret => "files may hold secrets",
        }
    }
}

/// Notes, by topic.
#[derive(Debug, Default)]
pub(super) struct Notes {
    topics: BTreeMap<Topic, Vec<String>>,
}

impl Notes {
    /// Adds a note.
    pub(super) fn add(&mut self, topic: Topic, note: String) {
        self.topics.entry(topic).or_default().push(note);
    }

    /// Returns the notes, those of a topic together, with counts in place of too many.
    pub(super) fn into_texts(self) -> Vec<String> {
        let mut texts = Vec::new();
        for (topic, mut notes) in self.topics {
            let more = notes.len().saturating_sub(MOST_NOTES);
            notes.truncate(MOST_NOTES);
            texts.extend(notes);
            texts.extend(
                (more > 0).then(|| format!("{more} more {}; replay_file_map.json lists all", topic.more())),
            );
        }
        texts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_notes_are_counted() {
        let mut notes = Notes::default();
        for number in 0..MOST_NOTES + 3 {
            notes.add(Topic::Gone, format!("/file{number}"));
        }
        notes.add(Topic::Changed, "/changed".into());
        let texts = notes.into_texts();
        assert_eq!(texts.len(), MOST_NOTES + 2);
        assert_eq!(texts[0], "/changed");
        assert_eq!(texts[1], "/file0");
        assert!(texts[MOST_NOTES + 1].starts_with("3 more files are gone"), "{texts:?}");
    }
}
