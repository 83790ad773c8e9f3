//! Names of sections that run a batch of tokens through a language model: `1 token`, `512 tokens`.
//!
//! Names carry the count, and so recordings, traces and marks that programs write themselves do, too.

/// Tokens in a batch at most.
pub const MOST_TOKENS: u32 = 9_999_999;
/// Length of a name at most, with the zeros after it, bytes.
pub const NAME_BYTES: usize = 16;

/// Text after the number, the first byte in the lowest bits.
const ONE: u64 = u64::from_le_bytes(*b" token\0\0");
const MANY: u64 = u64::from_le_bytes(*b" tokens\0");

/// Returns the name of a batch, followed by zeros, and its length in bytes; `None` for no token, and for more than
/// [`MOST_TOKENS`].
#[must_use]
#[inline(always)]
pub const fn name_of(tokens: u32) -> Option<([u8; NAME_BYTES], u32)> {
    if tokens == 0 || tokens > MOST_TOKENS {
        return None;
    }
    let (mut digits, mut bits, mut rest) = (0_u64, 0, tokens);
    // As many steps as the largest number has digits: the kernel's verifier wants a bound.
    let mut step = 0;
    while step < 7 {
        if rest > 0 {
            digits = digits << 8 | (b'0' as u32 + rest % 10) as u64;
            rest /= 10;
            bits += 8;
        }
        step += 1;
    }
    let (unit, unit_bytes) = if tokens == 1 { (ONE, 6) } else { (MANY, 7) };
    // At least one digit and at most seven: both shifts are by less than 64.
    let bits = bits & 63;
    let words = [(digits | unit << bits).to_le_bytes(), (unit >> ((64 - bits) & 63)).to_le_bytes()];
    let mut name = [0; NAME_BYTES];
    let mut at = 0;
    while at < 8 {
        name[at] = words[0][at];
        name[at + 8] = words[1][at];
        at += 1;
    }
    Some((name, bits / 8 + unit_bytes))
}

/// Returns the number of tokens that a name states; `None` for any other name.
#[must_use]
pub fn stated_by(name: &[u8]) -> Option<u32> {
    let digits = name.iter().position(|byte| !byte.is_ascii_digit())?;
    let (number, unit) = name.split_at(digits);
    if !matches!(unit, b" tokens" | b" token") || number.starts_with(b"0") {
        return None;
    }
    let tokens = core::str::from_utf8(number).ok()?.parse().ok()?;
    (tokens <= MOST_TOKENS).then_some(tokens)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(tokens: u32) -> Option<String> {
        name_of(tokens).map(|(name, length)| String::from_utf8_lossy(&name[..length as usize]).into_owned())
    }

    #[test]
    fn names_state_the_number_in_words() {
        assert_eq!(text(1).as_deref(), Some("1 token"));
        assert_eq!(text(20).as_deref(), Some("20 tokens"));
        assert_eq!(text(MOST_TOKENS).as_deref(), Some("9999999 tokens"));
        assert_eq!((text(0), text(MOST_TOKENS + 1)), (None, None));
    }

    #[test]
    fn other_names_state_no_number() {
        for name in
            ["", "token", " tokens", "tokens", "0 tokens", "01 tokens", "5", "5 tokens more", "-5 tokens"]
        {
            assert_eq!(stated_by(name.as_bytes()), None, "{name}");
        }
        assert_eq!(stated_by(b"10000000 tokens"), None);
        assert_eq!(stated_by(b"99999999999999999999 tokens"), None);
        // As a program may write it that does not mind the singular.
        assert_eq!(stated_by(b"1 tokens"), Some(1));
    }

    proptest! {
        #[test]
        fn every_number_is_read_from_its_name(tokens in 1..=MOST_TOKENS) {
            let (name, length) = name_of(tokens).expect("in range");
            let (name, zeros) = name.split_at(length as usize);
            let expected = format!("{tokens} token{}", if tokens == 1 { "" } else { "s" });
            prop_assert_eq!(name, expected.as_bytes());
            prop_assert!(zeros.iter().all(|&byte| byte == 0));
            prop_assert_eq!(stated_by(name), Some(tokens));
        }
    }
}
