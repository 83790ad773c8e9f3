//! Hexadecimal digits: of digests and of hashes in JSON, of which sixteen are a text, as not every reader of JSON has integers of 64 bits.

use std::fmt::Write as _;

use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

/// Serializes a hash.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields so")]
pub(super) fn serialize<S: Serializer>(hash: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{hash:016x}"))
}

/// Deserializes a hash.
pub(super) fn deserialize<'a, D: Deserializer<'a>>(deserializer: D) -> Result<u64, D::Error> {
    let text = String::deserialize(deserializer)?;
    let is_hash = text.len() == 16 && text.bytes().all(|digit| digit.is_ascii_hexdigit());
    let hash = u64::from_str_radix(&text, 16).ok().filter(|_| is_hash);
    hash.ok_or_else(|| {
        D::Error::custom(format_args!("{text:?} is no hash: it has not sixteen hexadecimal digits"))
    })
}

/// Returns bytes as hexadecimal digits.
pub(super) fn digits(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Row {
        #[serde(with = "super")]
        path: u64,
    }

    #[test]
    fn hashes_are_texts_of_sixteen_digits() {
        let row = Row { path: 0xfe };
        let json = serde_json::to_string(&row).unwrap();
        assert_eq!(json, r#"{"path":"00000000000000fe"}"#);
        assert_eq!(serde_json::from_str::<Row>(&json).unwrap(), row);
        for text in ["fe", "+0000000000000fe", "00000000000000feg"] {
            assert!(serde_json::from_str::<Row>(&format!(r#"{{"path":"{text}"}}"#)).is_err(), "{text}");
        }
    }
}
