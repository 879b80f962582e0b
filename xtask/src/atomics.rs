//! No fetch-add of the kernel programs has lost its result.
//!
//! LLVM turns a relaxed fetch-add into a plain `lock add` even where the old value is used, and takes the operand for
//! it. The programs use sequentially consistent ones alone, which never become plain: so a plain one is that mistake.

use anyhow::{Result, ensure};
use object::read::elf::ElfFile64;
use object::{Object as _, ObjectSection as _, SectionKind};

const SIZE: usize = 8;
/// An instruction of two, whose second half is not one.
const LOAD_IMMEDIATE_64: u8 = 0x18;
/// Atomic operations on words of 32 and 64 bits; the immediate says which, and whether the old value is fetched.
const ATOMIC: [u8; 2] = [0xc3, 0xdb];
const FETCH: u8 = 0x01;

/// Fails with the place of each atomic operation that fetches nothing.
pub fn check(object: &[u8]) -> Result<()> {
    let file = ElfFile64::<object::LittleEndian>::parse(object)?;
    let mut plain = Vec::new();
    for section in file
        .sections()
        .filter(|section| section.kind() == SectionKind::Text)
    {
        let name = section.name()?;
        plain.extend(
            plain_atomics(section.data()?)
                .into_iter()
                .map(|at| format!("{name}, instruction {at}")),
        );
    }
    ensure!(
        plain.is_empty(),
        "atomic operations that fetch nothing; are they relaxed?\n  {}",
        plain.join("\n  ")
    );
    Ok(())
}

fn plain_atomics(code: &[u8]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(&[operation, _, _, _, which, ..]) = code.get(at * SIZE..(at + 1) * SIZE) {
        if ATOMIC.contains(&operation) && which & FETCH == 0 {
            found.push(at);
        }
        at += if operation == LOAD_IMMEDIATE_64 { 2 } else { 1 };
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK_ADD: [u8; 8] = [0xdb, 0x21, 0, 0, 0x00, 0, 0, 0];
    const FETCH_ADD: [u8; 8] = [0xdb, 0x21, 0, 0, 0x01, 0, 0, 0];
    const COMPARE_EXCHANGE: [u8; 8] = [0xdb, 0x21, 0, 0, 0xf1, 0, 0, 0];
    const LOAD_IMMEDIATE: [u8; 8] = [0x18, 0x01, 0, 0, 0, 0, 0, 0];

    #[test]
    fn plain_adds_are_found() {
        assert_eq!(
            plain_atomics(&[FETCH_ADD, LOCK_ADD, COMPARE_EXCHANGE].concat()),
            [1]
        );
    }

    #[test]
    fn second_half_of_a_load_is_no_instruction() {
        assert_eq!(
            plain_atomics(&[LOAD_IMMEDIATE, LOCK_ADD, FETCH_ADD].concat()),
            [0; 0]
        );
    }
}
