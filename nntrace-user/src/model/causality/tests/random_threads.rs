//! Charges of random threads, against an oracle.

use proptest::prelude::*;

use super::*;

/// Next action of a random thread.
#[derive(Clone, Copy, Debug)]
enum Step {
    Begin { account: Option<u8>, handle: Option<u8> },
    End,
    Send(u8),
    Receive(u8),
    Fork,
}

fn step() -> impl Strategy<Value = Step> {
    let begin = (proptest::option::weighted(0.4, 0..3_u8), proptest::option::weighted(0.3, 0..4_u8));
    prop_oneof![
        4 => begin.prop_map(|(account, handle)| Step::Begin { account, handle }),
        4 => Just(Step::End),
        1 => (0..4_u8).prop_map(Step::Send),
        1 => (0..4_u8).prop_map(Step::Receive),
        1 => Just(Step::Fork),
    ]
}

/// A layer of what a thread of the oracle works for: a section, or what was taken over.
#[derive(Clone, Debug)]
enum Layer {
    Section(Option<(String, &'static str)>),
    Received(Option<(String, &'static str)>),
}

impl Layer {
    fn charge(&self) -> Option<&(String, &'static str)> {
        match self {
            Self::Section(charge) | Self::Received(charge) => charge.as_ref(),
        }
    }
}

type OracleCharge = Option<(String, &'static str)>;

proptest! {
    /// The oracle walks all acts in order of time with the whole stack of each thread, and charges every stretch
    /// between two of them to what is innermost then.
    #[test]
    fn charges_equal_those_of_an_oracle(steps in prop::collection::vec((0..4_usize, step(), 1..9_u64), 1..120)) {
        let (mut now, mut stream) = (0, Vec::new());
        let mut threads: Vec<(u32, Vec<Layer>, OracleCharge)> =
            (1..=4).map(|tid| (tid, Vec::new(), None)).collect();
        let mut sent: HashMap<u8, OracleCharge> = HashMap::new();
        let mut charged: BTreeMap<(String, &'static str), u64> = BTreeMap::new();
        let mut last: HashMap<u32, u64> = HashMap::new();
        let across = |charge: &OracleCharge, edge| charge.as_ref().map(|(account, _)| (account.clone(), edge));
        for (who, step, wait) in steps {
            now += wait;
            let (tid, layers, base) = &mut threads[who];
            let begun = last.insert(*tid, now).unwrap_or(now);
            let is_open = layers.iter().any(|layer| matches!(layer, Layer::Section(_)));
            let current = layers.last().map_or(base.as_ref(), Layer::charge).cloned();
            if is_open && now > begun {
                let key = current.clone().unwrap_or(("-".into(), "-"));
                *charged.entry(key).or_default() += now - begun;
            }
            let tid = *tid;
            let act = match step {
                Step::Begin { account, handle } => {
                    let taken = handle.and_then(|handle| sent.get(&handle)).map(|sent| across(sent, "handed_over"));
                    let nested = current.map(|(account, edge)| {
                        (account, if edge == "explicit" { "nested" } else { edge })
                    });
                    let inherited = taken.unwrap_or(nested);
                    let own = account.map(|account| (format!("a{account}"), "explicit"));
                    layers.push(Layer::Section(own.or(inherited)));
                    let account = account.map_or_else(String::new, |account| format!("#acct=a{account}"));
                    let handle = handle.map_or_else(String::new, |handle| format!("#h={handle}"));
                    Act::Mark(format!("B|1|[NN_LR_PE]f{account}{handle}"))
                }
                Step::End => {
                    if !is_open {
                        continue;
                    }
                    while matches!(layers.pop(), Some(Layer::Received(_))) {}
                    Act::Mark("E|1".into())
                }
                Step::Send(handle) => {
                    sent.insert(handle, current);
                    Act::Mark(format!("I|1|nn.send#h={handle}"))
                }
                Step::Receive(handle) => {
                    if let Some(sent) = sent.get(&handle) {
                        layers.push(Layer::Received(across(sent, "handed_over")));
                    }
                    Act::Mark(format!("I|1|nn.recv#h={handle}"))
                }
                Step::Fork => {
                    let child = 100 + now as u32;
                    let created = across(&current, "created");
                    threads.push((child, Vec::new(), created));
                    // Only the first few are chosen from: the new one takes the place of the one that made it.
                    let place = threads.len() - 1;
                    threads.swap(who, place);
                    Act::Fork(child)
                }
            };
            stream.push((now, tid, act));
        }
        // Every section ends.
        for (tid, mut layers, base) in threads {
            while layers.iter().any(|layer| matches!(layer, Layer::Section(_))) {
                now += 1;
                let begun = last.insert(tid, now).unwrap_or(now);
                let current = layers.last().map_or(base.as_ref(), Layer::charge).cloned();
                *charged.entry(current.unwrap_or(("-".into(), "-"))).or_default() += now - begun;
                while matches!(layers.pop(), Some(Layer::Received(_))) {}
                stream.push((now, tid, Act::Mark("E|1".into())));
            }
        }
        // Before the first word, nothing is kept: this makes sure that there is one.
        stream.insert(0, (0, 1, Act::Mark("I|1|nn.send#h=99".into())));
        let (causality, _) = replay(Questions::default(), &stream);
        charged.retain(|_, ns| *ns > 0);
        prop_assert_eq!(charges(&causality), charged);
    }
}
