//! Words as a shell takes them.

/// Returns a command line that a POSIX shell splits into these words.
pub fn shell_words(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_shell_splits_it_into_the_same_words() {
        let words =
            ["a b", "", "it's", "$HOME", "--x=1", "a\\b", "*", "é;", "plain", "\"", "~"].map(str::to_owned);
        let script = format!("printf '%s\\n' {}", shell_words(&words));
        let output = Command::new("sh").args(["-c", &script]).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), words.join("\n") + "\n");
        assert_eq!(shell_words(&["./app".into(), "--model=a.onnx".into()]), "./app --model=a.onnx");
    }
}
