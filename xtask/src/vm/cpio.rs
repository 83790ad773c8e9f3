//! Archives in the format that the kernel unpacks as its first file system (`newc`, kernel:
//! Documentation/driver-api/early-userspace/buffer-format.rst). The same files give the same bytes.

use std::collections::BTreeMap;

/// Entry of an archive.
pub enum Node {
    /// A folder.
    Folder,
    /// A plain file, which may be executable.
    File {
        /// Content.
        content: Vec<u8>,
        /// Whether it is executable.
        executable: bool,
    },
    /// A symbolic link, with its target.
    Link(String),
}

/// Files by their path, without a leading slash.
#[derive(Default)]
pub struct Archive(BTreeMap<String, Node>);

impl Archive {
    /// Adds an entry, and the folders that contain it.
    pub fn add(&mut self, path: &str, node: Node) {
        let path = path.trim_start_matches('/');
        for (end, _) in path.match_indices('/') {
            self.0.entry(path[..end].into()).or_insert(Node::Folder);
        }
        self.0.insert(path.into(), node);
    }

    /// Returns the archive.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (number, (path, node)) in self.0.iter().enumerate() {
            let (mode, content) = match node {
                Node::Folder => (0o040_755, &[][..]),
                Node::File { content, executable: true } => (0o100_755, &content[..]),
                Node::File { content, executable: false } => (0o100_644, &content[..]),
                Node::Link(target) => (0o120_777, target.as_bytes()),
            };
            entry(&mut bytes, number + 1, mode, path, content);
        }
        entry(&mut bytes, 0, 0, "TRAILER!!!", &[]);
        bytes
    }
}

fn entry(bytes: &mut Vec<u8>, inode: usize, mode: usize, path: &str, content: &[u8]) {
    bytes.extend(b"070701");
    // Inode, mode, user, group, links, time, size, device, special device, length of the path, checksum.
    for number in [inode, mode, 0, 0, 1, 0, content.len(), 0, 0, 0, 0, path.len() + 1, 0] {
        bytes.extend(format!("{number:08x}").bytes());
    }
    bytes.extend(path.bytes());
    bytes.push(0);
    pad(bytes);
    bytes.extend(content);
    pad(bytes);
}

/// Pads to a multiple of four, where everything begins.
fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_come_before_what_is_in_them_and_all_is_aligned() {
        let mut archive = Archive::default();
        archive.add("/a/b/file", Node::File { content: b"12345".to_vec(), executable: true });
        archive.add("init", Node::Link("a/b/file".into()));
        let bytes = archive.bytes();
        let text = String::from_utf8_lossy(&bytes);
        let headers: Vec<&str> = text.match_indices("070701").map(|(at, _)| &text[at..at + 110]).collect();
        let field = |header: &str, number: usize| header[6 + number * 8..14 + number * 8].to_owned();
        assert_eq!(headers.len(), 5);
        let modes: Vec<String> = headers.iter().map(|header| field(header, 1)).collect();
        assert_eq!(modes, ["000041ed", "000041ed", "000081ed", "0000a1ff", "00000000"]);
        assert_eq!(field(headers[2], 6), "00000005");
        assert!(text.match_indices("070701").all(|(at, _)| at % 4 == 0), "{text}");
        assert_eq!(bytes.len() % 4, 0);
    }
}
