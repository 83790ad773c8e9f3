use super::*;
use crate::live::target::PAGE;

const ENDBR64: &[u8] = &[0xf3, 0x0f, 0x1e, 0xfa];
const RET: u8 = 0xc3;

/// Returns the shape of a function, its addresses relative to the function.
fn relative(code: &[u8]) -> Result<Shape, ShapeError> {
    let mut writer = Writer::new(Machine::X86_64, Pointers::Relocated);
    let function = writer.function(code);
    let mut shape = shape_of(writer, function, code.len())?;
    shape.entry.address -= function;
    shape.returns.iter_mut().for_each(|at| *at -= function);
    if let TailJumps::Known(jumps) = &mut shape.tail_jumps {
        for jump in jumps {
            jump.address -= function;
            jump.target = jump.target.map(|target| target.wrapping_sub(function));
        }
    }
    Ok(shape)
}

/// Returns offset, bytes on the stack, and whether the place is cheap.
fn entry(parts: &[&[u8]]) -> (u64, u64, bool) {
    let EntryPoint { address, sp_offset, is_emulated } = relative(&parts.concat()).unwrap().entry;
    (address, sp_offset, is_emulated)
}

#[test]
fn cheap_places() {
    let push_rbp: &[u8] = &[0x55];
    assert_eq!(entry(&[push_rbp, &[RET]]), (0, 0, true));
    assert_eq!(entry(&[ENDBR64, &[0x41, 0x57, RET]]), (4, 0, true));
    // mov rax, rdi; mov [rsp - 8], rsi; sub rsp, 0x18; push rbx
    let far = [0x48, 0x89, 0xf8, 0x48, 0x89, 0x74, 0x24, 0xf8, 0x48, 0x83, 0xec, 0x18, 0x53, RET];
    assert_eq!(entry(&[&far]), (12, 0x18, true));
    // lea rsp, [rsp - 0x28]; call
    assert_eq!(entry(&[&[0x48, 0x8d, 0x64, 0x24, 0xd8, 0xe8, 0, 0, 0, 0, RET]]), (5, 0x28, true));
    // push of a constant is not emulated, but known: push 1; push rbx
    assert_eq!(entry(&[&[0x6a, 0x01, 0x53, RET]]), (2, 8, true));
    // test edi, edi; je
    assert_eq!(entry(&[&[0x85, 0xff, 0x74, 0x00, RET]]), (2, 0, true));
}

#[test]
fn no_cheap_places() {
    let none = (0, 0, false);
    let push: &[u8] = &[0x53, RET];
    // mov edi, esi; xor r9d, r9d; rep movsb; cpuid: they change arguments.
    for change in [&[0x89, 0xf7][..], &[0x45, 0x31, 0xc9], &[0xf3, 0xa4], &[0x0f, 0xa2]] {
        assert_eq!(entry(&[change, push]), none, "{change:x?}");
    }
    // and rsp, -32; mov rsp, rbp; add rsp, 8; pop rbx: where the stack ends is not known, or above the begin.
    for change in [&[0x48, 0x83, 0xe4, 0xe0][..], &[0x48, 0x89, 0xec], &[0x48, 0x83, 0xc4, 0x08], &[0x5b]] {
        assert_eq!(entry(&[change, push]), none, "{change:x?}");
    }
    assert_eq!(entry(&[ENDBR64, &[RET]]), none);
    // A loop comes back to the push, or to an instruction before it: mov rax, rdi; mov rax, rdi; push rbx; jne
    let moves = [0x48, 0x89, 0xf8, 0x48, 0x89, 0xf8, 0x53, 0x75];
    assert_eq!(entry(&[&moves, &[0x00, RET]]), (6, 0, true));
    assert_eq!(entry(&[&moves, &[0xfd, RET]]), none);
    assert_eq!(entry(&[&moves, &[0xfa, RET]]), none);
}

#[test]
fn refused_places() {
    // lock add dword ptr [rdi], esi; mov eax, cs:[rdi]
    for refused in [&[0xf0, 0x01, 0x37][..], &[0x2e, 0x8b, 0x07]] {
        let shape = relative(&[refused, &[RET]].concat());
        assert!(matches!(shape, Err(ShapeError::Refused(_))), "{refused:x?}");
        // Where a cheap place follows, it is taken.
        assert_eq!(entry(&[refused, &[0x53, RET]]), (3, 0, true));
        assert_eq!(entry(&[ENDBR64, refused, &[RET]]), (0, 0, false));
    }
    // mov rax, fs:[rdi]; rep stosb
    assert_eq!(entry(&[&[0x64, 0x48, 0x8b, 0x07, RET]]), (0, 0, false));
    assert_eq!(entry(&[&[0xf3, 0xaa, RET]]), (0, 0, false));
}

#[test]
fn an_instruction_across_pages_is_left_out() {
    let mut writer = Writer::new(Machine::X86_64, Pointers::Relocated);
    let filler = PAGE - writer.next_function() % PAGE - 16;
    writer.function(&vec![0xcc; filler as usize]);
    // Moves of 3 bytes, then a push of two.
    let code = [&[0x48, 0x89, 0xf8].repeat(5)[..], &[0x41, 0x57, 0x53, RET]].concat();
    let function = writer.function(&code);
    assert_eq!(function % PAGE, PAGE - 16);
    let entry = shape_of(writer, function, code.len()).unwrap().entry;
    assert_eq!(entry, EntryPoint { address: function + 17, sp_offset: 8, is_emulated: true });
}

#[test]
fn returns_of_every_form() {
    // Over each of the first three: je.
    // ret; repz ret; ret 8; mov eax, 0xc3c3c3c3; bnd ret
    let first = [0x74, 1, RET, 0x74, 2, 0xf3, RET, 0x74, 3, 0xc2, 0x08, 0x00];
    let code = [&first[..], &[0xb8, RET, RET, RET, RET, 0xf2, RET]].concat();
    let shape = relative(&code).unwrap();
    assert_eq!((shape.returns, shape.tail_jumps), (vec![2, 5, 9, 17], TailJumps::None));
}

#[test]
fn data_among_the_code_has_no_returns() {
    let returns = |code: &[u8]| relative(code).unwrap().returns;
    // jmp over; data; over: ret
    assert_eq!(returns(&[0xeb, 4, RET, RET, RET, RET, RET]), [6]);
    // je over; ret; data; over: ret; data
    assert_eq!(returns(&[0x74, 3, RET, RET, RET, RET, RET]), [2, 5]);
    // call; ud2; data
    assert_eq!(returns(&[0xe8, 0, 0, 0, 0, 0x0f, 0x0b, RET, RET]), [0; 0]);
    // What looks like a jump in data leads nowhere.
    assert_eq!(returns(&[0xeb, 2, 0x74, 0x80, RET]), [4]);
}

#[test]
fn tail_jumps() {
    let known = |code: &[u8]| -> Vec<(u64, Option<u64>)> {
        match relative(code).unwrap().tail_jumps {
            TailJumps::Known(jumps) => jumps.into_iter().map(|jump| (jump.address, jump.target)).collect(),
            other => panic!("{code:x?}: {other:?}"),
        }
    };
    assert_eq!(known(&[0xe9, 0x10, 0, 0, 0]), [(0, Some(21))]);
    assert_eq!(known(&[0x90, 0x0f, 0x84, 0x10, 0, 0, 0, RET]), [(1, Some(23))]);
    // To the function's own begin
    assert_eq!(known(&[0x90, 0xeb, 0xfd]), [(1, Some(0))]);
    // jmp [rax + 8]; jmp [rip]; jmp rdi
    assert_eq!(known(&[0xff, 0x60, 0x08]), [(0, None)]);
    assert_eq!(known(&[0xff, 0x25, 0, 0, 0, 0]), [(0, None)]);
    assert_eq!(known(&[0xff, 0xe7]), [(0, None)]);
    // mov rax, [rdi]; mov rdx, rax; pop rbx; jmp rdx
    assert_eq!(known(&[0x48, 0x8b, 0x07, 0x48, 0x89, 0xc2, 0x5b, 0xff, 0xe2]), [(7, None)]);
    // test edi, edi; je over; mov rax, [rdi]; jmp go; over: mov rax, [rsi]; go: jmp rax
    let ways = [0x85, 0xff, 0x74, 0x05, 0x48, 0x8b, 0x07, 0xeb, 0x03, 0x48, 0x8b, 0x06, 0xff, 0xe0];
    assert_eq!(known(&ways), [(12, None)]);
    // call; jmp rax
    assert_eq!(known(&[0xe8, 0, 0, 0, 0, 0xff, 0xe0]), [(5, None)]);
}

#[test]
fn bytes_that_are_no_instructions() {
    let missing = |code: &[u8]| match relative(code) {
        Err(ShapeError::NoInstruction(at)) => at % 16,
        other => panic!("{other:?}"),
    };
    assert_eq!(missing(&[0x90, 0x06, RET]), 1, "no instruction of 64-bit code");
    assert_eq!(missing(&[0x55, 0xe8, 0]), 1, "it ends outside");
    assert_eq!(missing(&[0xb8, 0, 0, 0, 0, 0x74, 0xfb, RET]), 2, "a jump into an instruction");
}

/// Adds a function that jumps by a table of distances: its entries lead to these offsets.
fn by_table(offsets: &[i64], prefix: &[u8]) -> Result<Shape, ShapeError> {
    let mut writer = Writer::new(Machine::X86_64, Pointers::Relocated);
    let function = writer.next_function();
    let table = writer.next();
    let distance =
        |&offset: &i64| (function.wrapping_add_signed(offset).wrapping_sub(table) as u32).to_le_bytes();
    writer.bytes(&offsets.iter().flat_map(distance).collect::<Vec<_>>());
    let mut code = prefix.to_vec();
    code.extend([0x48, 0x8d, 0x15]); // lea rdx, [rip + table]
    let next = function + code.len() as u64 + 4;
    code.extend((table.wrapping_sub(next) as u32).to_le_bytes());
    code.extend([0x48, 0x63, 0x04, 0xba]); // movsxd rax, [rdx + 4 * rdi]
    code.extend([0x48, 0x01, 0xd0]); // add rax, rdx
    code.extend([0x3e, 0xff, 0xe0]); // notrack jmp rax
    code.extend([RET; 8]);
    assert_eq!(writer.function(&code), function);
    shape_of(writer, function, code.len())
}

#[test]
fn tables_of_distances() {
    let inside = by_table(&[17, 18, 19, 20], &[]).unwrap();
    assert_eq!((inside.tail_jumps, inside.returns.len()), (TailJumps::None, 4));
    // After a push at its begin; a table that leads to the begin makes that no good place.
    let pushes = [0x48, 0x89, 0xf8, 0x53];
    let cheap = |offsets: &[i64]| by_table(offsets, &pushes).unwrap().entry.is_emulated;
    assert!(cheap(&[21, 22]) && !cheap(&[21, 3, 22]));
    let outside = by_table(&[-64, -32, 0x1000], &[]).unwrap();
    assert!(matches!(outside.tail_jumps, TailJumps::Unclear(_)), "{outside:?}");
}

#[test]
fn a_table_kept_in_another_register() {
    let mut writer = Writer::new(Machine::X86_64, Pointers::Relocated);
    let (function, table) = (writer.next_function(), writer.next());
    let distance = |offset: u64| (function + offset).wrapping_sub(table) as u32;
    writer.bytes(&[24, 25].map(|offset| distance(offset).to_le_bytes()).concat());
    let mut code = vec![0x48, 0x8d, 0x05]; // lea rax, [rip + table]
    code.extend((table.wrapping_sub(function + 7) as u32).to_le_bytes());
    code.extend([0x66, 0x48, 0x0f, 0x6e, 0xe0]); // movq xmm4, rax
    code.extend([0x66, 0x48, 0x0f, 0x7e, 0xe2]); // movq rdx, xmm4
    code.extend([0x48, 0x63, 0x04, 0xba]); // movsxd rax, [rdx + 4 * rdi]
    code.extend([0x75, 0x02, RET, RET]); // jne
    code.extend([0x48, 0x01, 0xd0, 0xff, 0xe0]); // add rax, rdx; jmp rax
    assert_eq!(writer.function(&code), function);
    let shape = shape_of(writer, function, code.len()).unwrap();
    assert_eq!((shape.tail_jumps, shape.returns), (TailJumps::None, vec![function + 23, function + 24]));
}

#[test]
fn tables_of_addresses() {
    let shape = |leads_inside: bool| {
        let mut writer = Writer::new(Machine::X86_64, Pointers::Fixed);
        let function = writer.next_function();
        let table = writer.next();
        for offset in 7..10 {
            writer.pointer(if leads_inside { function + offset } else { function + 64 + offset });
        }
        let mut code = vec![0xff, 0x24, 0xfd]; // jmp [table + 8 * rdi]
        code.extend((table as u32).to_le_bytes());
        code.extend([RET; 4]);
        writer.function(&code);
        writer.function(&[RET; 100]);
        shape_of(writer, function, code.len()).unwrap().tail_jumps
    };
    assert_eq!(shape(true), TailJumps::None);
    assert!(matches!(shape(false), TailJumps::Known(jumps) if jumps[0].target.is_none()));
}

/// Instructions that go on to the next one, and returns. One jumps over data.
const PIECES: [&[u8]; 11] = [
    &[0xeb, 0x03, RET, RET, RET],
    &[0x90],
    &[0x55],
    &[0xb8, RET, RET, RET, RET],
    &[0x48, 0x89, 0xf8],
    &[0x66, 0x0f, 0x1f, 0x84, 0x00, RET, 0x00, 0x00, 0x00],
    &[0x48, 0x8d, 0x05, RET, RET, RET, 0x00],
    &[0x62, 0xf1, 0x7c, 0x48, 0x28, 0xc3],
    &[RET],
    &[0xf3, RET],
    &[0xc2, 0xc2, 0x00],
];

proptest! {
    #[test]
    fn returns_among_other_instructions(numbers in prop::collection::vec(0..PIECES.len(), 1..300)) {
        let (mut code, mut returns) = (Vec::new(), Vec::new());
        for number in numbers {
            let piece = PIECES[number];
            if number >= 8 {
                // je over it
                code.extend([0x74, piece.len() as u8]);
                returns.push(code.len() as u64);
            }
            code.extend(piece);
        }
        code.push(0x90);
        let shape = relative(&code).unwrap();
        prop_assert_eq!(shape.returns, returns);
        prop_assert_eq!(shape.tail_jumps, TailJumps::None);
    }
}
