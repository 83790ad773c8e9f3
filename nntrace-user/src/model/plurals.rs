//! Numbers of things, and words that follow a number.

/// Returns the words for one thing, or those for any other number of things: `thread has` for 1, `threads have` for 0 and 2.
#[must_use]
pub const fn one_or_many<'a>(number: u64, one: &'a str, many: &'a str) -> &'a str {
    if number == 1 { one } else { many }
}

/// Returns a number of things: `1 mark`, `2 marks`.
#[must_use]
pub fn counted(number: u64, thing: &str) -> String {
    format!("{number} {thing}{}", one_or_many(number, "", "s"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_alone_is_singular() {
        let words = [0, 1, 2].map(|number| one_or_many(number, "event is", "events are"));
        assert_eq!(words, ["events are", "event is", "events are"]);
        assert_eq!([0, 1, 2].map(|number| counted(number, "mark")), ["0 marks", "1 mark", "2 marks"]);
    }
}
