//! Secrets, as far as names and first bytes give them away.

use crate::record::files::ImageKind;

/// Names of folders that hold secrets.
const FOLDERS: [&str; 8] =
    [".ssh", ".aws", ".azure", ".docker", ".gnupg", ".kube", ".password-store", "keyrings"];
/// Names of files that hold secrets.
const FILES: [&str; 14] = [
    ".env",
    ".git-credentials",
    ".htpasswd",
    ".netrc",
    ".npmrc",
    ".pgpass",
    ".pypirc",
    "gshadow",
    "gshadow-",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "id_rsa",
    "shadow",
];
/// Endings of the names of files that hold keys.
const ENDINGS: [&str; 9] = [".jks", ".kdbx", ".key", ".keystore", ".keytab", ".p12", ".pem", ".pfx", ".ppk"];
/// Words in names of files that hold secrets. A `tokenizer` and `tokens` are parts of models.
const WORDS: [&str; 10] = [
    "cookie",
    "cookies",
    "credential",
    "credentials",
    "passwd",
    "password",
    "passwords",
    "secret",
    "secrets",
    "token",
];
/// Words in names of variables that hold secrets.
const VARIABLE_WORDS: [&str; 14] = [
    "APIKEY",
    "AUTH",
    "COOKIE",
    "CREDENTIAL",
    "CREDENTIALS",
    "KEY",
    "KEYS",
    "PASS",
    "PASSPHRASE",
    "PASSWD",
    "PWD",
    "SECRET",
    "SECRETS",
    "TOKEN",
];
/// Kinds of files whose words are those of networks and libraries: `token_embedding.onnx`, `libsecret.so`.
const KINDS_WITH_WORDS: [ImageKind; 4] =
    [ImageKind::Elf, ImageKind::Gguf, ImageKind::Onnx, ImageKind::TfLite];
/// File of users, which everybody reads and which has held no password for decades.
const USERS: &str = "/etc/passwd";

/// Bytes of a file in which a key is looked for.
pub(super) const HEAD: usize = 64 << 10;

/// Returns the reason why a file may hold a secret by its path; the kind is that of its content.
pub(super) fn in_path(path: &str, kind: ImageKind) -> Option<&'static str> {
    let lower = path.to_lowercase();
    let (folders, name) = lower.rsplit_once('/').unwrap_or(("", &lower));
    if folders.split('/').any(|folder| FOLDERS.contains(&folder)) {
        return Some("its folder is one of secrets");
    }
    if KINDS_WITH_WORDS.contains(&kind) || path == USERS {
        return None;
    }
    let is_environment = name.starts_with(".env.");
    let has_word = || name.split(|c: char| !c.is_alphanumeric()).any(|word| WORDS.contains(&word));
    if is_environment || FILES.contains(&name) || ENDINGS.iter().any(|end| name.ends_with(end)) || has_word()
    {
        return Some("its name is one of secrets");
    }
    None
}

/// Returns the reason why a file may hold a secret by its first bytes.
pub(super) fn in_head(head: &[u8]) -> Option<&'static str> {
    // What is no text has such lines for other reasons: a library that reads keys knows how they begin.
    if head.contains(&0) {
        return None;
    }
    let is_key = |line: &[u8]| {
        let line = line.trim_ascii();
        line.starts_with(b"-----BEGIN ")
            && line.ends_with(b"-----")
            && memchr::memmem::find(line, b"PRIVATE KEY").is_some()
    };
    head.split(|byte| matches!(byte, b'\n' | b'\r')).any(is_key).then_some("it has a private key in it")
}

/// Whether a variable of this name may hold a secret.
pub(super) fn in_variable(name: &str) -> bool {
    let upper = name.to_uppercase();
    // The folder in which a shell is.
    if matches!(upper.as_str(), "PWD" | "OLDPWD") {
        return false;
    }
    let has_word = upper.split(|c: char| !c.is_alphanumeric()).any(|word| VARIABLE_WORDS.contains(&word));
    has_word || ["SECRET", "PASSWORD"].iter().any(|part| upper.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets() {
        for path in [
            "/srv/app/.env",
            "/srv/app/.env.local",
            "/root/.ssh/config",
            "/root/.aws/config",
            "/etc/shadow",
            "/etc/ssl/board.pem",
            "/etc/ssl/Board.KEY",
            "/home/u/.netrc",
            "/home/u/id_rsa",
            "/home/u/.cache/huggingface/token",
            "/opt/app/access_token.txt",
            "/opt/app/credentials",
            "/home/u/cookies.sqlite",
            "relative/secret.toml",
        ] {
            assert!(in_path(path, ImageKind::None).is_some(), "{path}");
        }
    }

    #[test]
    fn names_of_models_and_libraries() {
        for (path, kind) in [
            ("/models/tokenizer.json", ImageKind::None),
            ("/models/tokenizer_config.json", ImageKind::None),
            ("/models/added_tokens.json", ImageKind::None),
            ("/models/token_embedding.onnx", ImageKind::Onnx),
            ("/usr/lib/libsecret-1.so.0", ImageKind::Elf),
            ("/usr/lib/libkeyutils.so.1", ImageKind::None),
            ("/etc/passwd", ImageKind::None),
            ("/home/u/id_rsa.pub", ImageKind::None),
            ("/srv/environment.yml", ImageKind::None),
            ("/models/keypoints.tflite", ImageKind::TfLite),
        ] {
            assert_eq!(in_path(path, kind), None, "{path}");
        }
        // A folder of secrets has no models.
        assert!(in_path("/root/.ssh/model.onnx", ImageKind::Onnx).is_some());
    }

    #[test]
    fn private_keys() {
        let certificate = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
        let key = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\n";
        assert!(in_head(key.as_bytes()).is_some());
        assert!(in_head([certificate, key].concat().as_bytes()).is_some());
        assert!(in_head(key.replace('\n', "\r\n").as_bytes()).is_some());
        assert!(in_head("-----BEGIN PRIVATE KEY-----".as_bytes()).is_some());
        assert_eq!(in_head(certificate.as_bytes()), None);
        assert_eq!(in_head(b"\x7fELF\0\n-----BEGIN PRIVATE KEY-----\n"), None);
        assert_eq!(in_head(b"text about -----BEGIN PRIVATE KEY-----\n"), None);
    }

    #[test]
    fn names_of_variables() {
        for name in ["HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "PGPASSWORD", "OPENAI_API_KEY", "db_pass", "APIKEY"]
        {
            assert!(in_variable(name), "{name}");
        }
        for name in
            ["TOKENIZERS_PARALLELISM", "OMP_NUM_THREADS", "PWD", "OLDPWD", "KEYBOARD", "LD_LIBRARY_PATH"]
        {
            assert!(!in_variable(name), "{name}");
        }
    }
}
