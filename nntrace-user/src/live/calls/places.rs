//! Places of a function's arguments and of its result, by the calling conventions of Linux: System V on x86-64, AAPCS64 on
//! arm64.
//!
//! Integers and pointers go into general registers, floating-point numbers into those of vectors, and what finds no register
//! is on the stack, in eight bytes each, in the order of the arguments.

use nntrace_common::calls::{CallItem, CallProbe, Form, MAX_ITEMS, NO_ITEM, Place};

use crate::{
    live::engines::image::Machine,
    model::calls::{Length, Register, Signature, ValueType},
};

/// Registers of vectors with arguments, on both.
const VECTOR_REGISTERS: u8 = 8;

/// Returns the number of general registers with arguments.
const fn general_registers(machine: Machine) -> u8 {
    match machine {
        Machine::X86_64 => 6,
        Machine::Arm64 => 8,
    }
}

/// Describes a function to the kernel programs; `pushed` are the bytes that it has put on the stack before the probe.
pub(super) fn probe(signature: &Signature, machine: Machine, pushed: u32) -> CallProbe {
    let mut probe = CallProbe { pushed, count: 0, items: [CallItem::NONE; MAX_ITEMS] };
    // Number of each argument's item.
    let mut numbers = Vec::new();
    let mut read = 0_u8;
    for parameter in &signature.parameters {
        let is_read = !matches!(parameter.value_type, ValueType::Skipped(_));
        numbers.push(if is_read { read } else { NO_ITEM });
        read += u8::from(is_read);
    }
    let (mut general, mut vectors, mut stack) = (0, 0, 0);
    for parameter in &signature.parameters {
        let (used, most) = match parameter.value_type.register() {
            Register::General => (&mut general, general_registers(machine)),
            Register::Vector => (&mut vectors, VECTOR_REGISTERS),
        };
        let (place, number) = if *used < most { (Place::Register, used) } else { (Place::Stack, &mut stack) };
        let at = *number;
        *number += 1;
        if !matches!(parameter.value_type, ValueType::Skipped(_)) {
            add(&mut probe, item(parameter.value_type, (place, at), parameter.is_out, &numbers, read));
        }
    }
    if let Some(result) = signature.result {
        add(&mut probe, item(result, (Place::Result, 0), true, &numbers, read));
    }
    probe
}

fn add(probe: &mut CallProbe, item: CallItem) {
    // No more than there is room for, by the check of the signature.
    if let Some(free) = probe.items.get_mut(probe.count as usize) {
        *free = item;
        probe.count += 1;
    }
}

fn item(value_type: ValueType, at: (Place, u8), is_at_return: bool, numbers: &[u8], result: u8) -> CallItem {
    let (place, number) = at;
    let of = |form| CallItem {
        place: place as u8,
        number,
        form: form as u8,
        is_at_return: u8::from(is_at_return),
        ..CallItem::NONE
    };
    match value_type {
        ValueType::Direct(scalar) => CallItem { width: scalar.item_width(), ..of(Form::Word) },
        ValueType::Pointed(scalar) => CallItem { length: u16::from(scalar.width()), ..of(Form::Bytes) },
        ValueType::Text => of(Form::Text),
        ValueType::Bytes(length) => {
            let (length, length_of) = match length {
                Length::Constant(length) => (length, NO_ITEM),
                Length::Argument(number) => {
                    let item = usize::from(number).checked_sub(1).and_then(|place| numbers.get(place));
                    (0, item.copied().unwrap_or(NO_ITEM))
                }
                Length::Result => (0, result),
            };
            CallItem { length, length_of, ..of(Form::Bytes) }
        }
        ValueType::Skipped(_) => CallItem::NONE,
    }
}

#[cfg(test)]
mod tests {
    use nntrace_common::calls::SIGNED;

    use super::*;

    fn places(parameters: &str, result: &str, machine: Machine) -> Vec<(u8, u8)> {
        let signature = Signature::parse(parameters, result).unwrap();
        let probe = probe(&signature, machine, 0);
        probe.items[..probe.count as usize].iter().map(|item| (item.place, item.number)).collect()
    }

    const REGISTER: u8 = Place::Register as u8;
    const STACK: u8 = Place::Stack as u8;
    const RESULT: u8 = Place::Result as u8;

    #[test]
    fn integers_take_six_registers_on_x86_64_and_eight_on_arm64_then_the_stack() {
        let ten = ["i32"; 10].join(",");
        let by_registers = |most: u8| -> Vec<(u8, u8)> {
            let registers = (0..most).map(|number| (REGISTER, number));
            let stack = (0..10 - most).map(|number| (STACK, number));
            registers.chain(stack).chain([(RESULT, 0)]).collect()
        };
        assert_eq!(places(&ten, "i32", Machine::X86_64), by_registers(6));
        assert_eq!(places(&ten, "i32", Machine::Arm64), by_registers(8));
    }

    #[test]
    fn vectors_take_registers_of_their_own_and_share_the_stack() {
        let nine = ["_f64"; 9].join(",");
        // The ninth is on the stack, before the further integers.
        let parameters = format!("i8,{nine},f32,i8,i8,i8,i8,i8,i8,i8,i8,f64");
        assert_eq!(
            places(&parameters, "void", Machine::X86_64),
            [
                (REGISTER, 0),
                (STACK, 1),
                (REGISTER, 1),
                (REGISTER, 2),
                (REGISTER, 3),
                (REGISTER, 4),
                (REGISTER, 5),
                (STACK, 2),
                (STACK, 3),
                (STACK, 4),
                (STACK, 5),
            ]
        );
        assert_eq!(
            places(&parameters, "void", Machine::Arm64),
            [
                (REGISTER, 0),
                (STACK, 1),
                (REGISTER, 1),
                (REGISTER, 2),
                (REGISTER, 3),
                (REGISTER, 4),
                (REGISTER, 5),
                (REGISTER, 6),
                (REGISTER, 7),
                (STACK, 2),
                (STACK, 3),
            ]
        );
    }

    #[test]
    fn skipped_arguments_take_their_places_only() {
        assert_eq!(places("_,i32,_f64,_,ptr", "void", Machine::X86_64), [(REGISTER, 1), (REGISTER, 3)]);
    }

    #[test]
    fn lengths_refer_to_items() {
        let signature =
            Signature::parse("_, out:bytes[ret], i16, bytes[arg3], str, out:*f32", "i64").unwrap();
        let probe = probe(&signature, Machine::X86_64, 24);
        let items = &probe.items[..probe.count as usize];
        assert_eq!((probe.pushed, items.len()), (24, 6));
        let facts: Vec<_> =
            items.iter().map(|item| (item.form, item.is_at_return, item.length_of, item.length)).collect();
        let (word, text, bytes) = (Form::Word as u8, Form::Text as u8, Form::Bytes as u8);
        assert_eq!(
            facts,
            [
                (bytes, 1, 5, 0),
                (word, 0, NO_ITEM, 0),
                (bytes, 0, 1, 0),
                (text, 0, NO_ITEM, 0),
                (bytes, 1, NO_ITEM, 4),
                (word, 1, NO_ITEM, 0),
            ]
        );
        assert_eq!((items[1].width, items[5].width), (2 | SIGNED, 8 | SIGNED));
    }
}
