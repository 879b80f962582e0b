//! A small reader of BTF, the kernel's description of its own types: offsets of members, values of enumerators.
//!
//! Format: `Documentation/bpf/btf.rst`. Every length and index of the blob is checked; garbage gives an error.

use std::collections::HashMap;

/// What is wrong with a BTF blob, or missing in it.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum BtfError {
    /// Not BTF, or cut short.
    #[error("malformed BTF: {0}")]
    Malformed(&'static str),
    /// The kernel has no such type, member or enumerator.
    #[error("this kernel's BTF has no {0}")]
    Missing(String),
}

const MAGIC: u16 = 0xeb9f;
const HEADER_LEN: usize = 24;
const KIND_ARRAY: u32 = 3;
const KIND_STRUCT: u32 = 4;
const KIND_UNION: u32 = 5;
const KIND_ENUM: u32 = 6;
const KIND_TYPEDEF: u32 = 8;
const KIND_FUNC: u32 = 12;
const KIND_FUNC_PROTO: u32 = 13;
const KIND_VAR: u32 = 14;
const KIND_DATASEC: u32 = 15;
const KIND_DECL_TAG: u32 = 17;
const KIND_ENUM64: u32 = 19;
const KIND_INT: u32 = 1;
const KIND_PTR: u32 = 2;
/// Anonymous structures are looked into this deep.
const MAX_NESTING: u32 = 8;
/// So many members are looked at for one: `task_struct` has some 300. Anonymous structures that hold one another many times would
/// take for ever.
const MAX_MEMBERS: u32 = 10_000;
/// Longest name: that of a symbol in the kernel (`KSYM_NAME_LEN`), its end among it.
const MAX_NAME: usize = 512;

/// A parsed blob.
pub struct Btf {
    types: Vec<Type>,
    strings: Vec<u8>,
    data: Vec<u8>,
    by_name: HashMap<(u32, Vec<u8>), u32>,
}

/// One type: its header and where its own data stand.
#[derive(Clone, Copy)]
struct Type {
    name: u32,
    kind: u32,
    flag: bool,
    count: u32,
    /// Its size, or the type that it refers to.
    payload: u32,
    body: usize,
}

impl Btf {
    /// Reads a whole blob, such as `/sys/kernel/btf/vmlinux`.
    pub fn parse(blob: &[u8]) -> Result<Self, BtfError> {
        if blob.is_empty() {
            return Err(BtfError::Malformed("it is empty"));
        }
        if blob.get(..2) != Some(&MAGIC.to_ne_bytes()) {
            return Err(BtfError::Malformed("no magic number of this byte order"));
        }
        let header = word(blob, 4)? as usize;
        if header < HEADER_LEN {
            return Err(BtfError::Malformed("header too short"));
        }
        let section = |offset: usize, len: usize| {
            let from = header.checked_add(offset);
            let to = from.and_then(|from| from.checked_add(len));
            from.zip(to)
                .and_then(|(from, to)| blob.get(from..to))
                .ok_or(BtfError::Malformed("section beyond the end"))
        };
        let data = section(word(blob, 8)? as usize, word(blob, 12)? as usize)?.to_vec();
        let strings = section(word(blob, 16)? as usize, word(blob, 20)? as usize)?.to_vec();
        let mut btf = Self {
            types: Vec::new(),
            strings,
            data,
            by_name: HashMap::new(),
        };
        btf.index()?;
        Ok(btf)
    }

    fn index(&mut self) -> Result<(), BtfError> {
        let mut at = 0;
        while at < self.data.len() {
            let info = word(&self.data, at + 4)?;
            let kind = info >> 24 & 0x1f;
            let count = info & 0xffff;
            let found = Type {
                name: word(&self.data, at)?,
                kind,
                flag: info >> 31 == 1,
                count,
                payload: word(&self.data, at + 8)?,
                body: at + 12,
            };
            at = found.body + body_len(kind, count)?;
            if at > self.data.len() {
                return Err(BtfError::Malformed("type beyond the end"));
            }
            self.types.push(found);
            if matches!(kind, KIND_STRUCT | KIND_ENUM | KIND_ENUM64 | KIND_TYPEDEF) {
                let name = self.string(found.name).to_vec();
                self.by_name
                    .entry((kind, name))
                    .or_insert(self.types.len() as u32);
            }
        }
        Ok(())
    }

    /// Byte offset of `member` in `struct name`; members of anonymous structures within it count as its own.
    pub fn member(&self, name: &str, member: &str) -> Result<u32, BtfError> {
        let id = self.named(KIND_STRUCT, name)?;
        let mut members = MAX_MEMBERS;
        let bits = self.member_bits(id, member.as_bytes(), MAX_NESTING, &mut members);
        let bits = bits.ok_or_else(|| BtfError::Missing(format!("member {member} in struct {name}")))?;
        if bits % 8 == 0 {
            Ok(bits / 8)
        } else {
            Err(BtfError::Missing(format!("whole byte {name}.{member}")))
        }
    }

    /// Looks at no more than `members` of them.
    fn member_bits(&self, id: u32, wanted: &[u8], depth: u32, members: &mut u32) -> Option<u32> {
        let outer = self.resolve(id)?;
        if depth == 0 || !matches!(outer.kind, KIND_STRUCT | KIND_UNION) {
            return None;
        }
        for index in 0..outer.count as usize {
            *members = members.checked_sub(1)?;
            let at = outer.body + index * 12;
            let name = self.string(word(&self.data, at).ok()?);
            let raw = word(&self.data, at + 8).ok()?;
            let bits = if outer.flag { raw & 0x00ff_ffff } else { raw };
            if name == wanted {
                return Some(bits);
            }
            if name.is_empty()
                && let Some(inner) =
                    self.member_bits(word(&self.data, at + 4).ok()?, wanted, depth - 1, members)
            {
                return bits.checked_add(inner);
            }
        }
        None
    }

    /// Value of `enumerator` in `enum name`.
    pub fn enumerator(&self, name: &str, enumerator: &str) -> Result<u32, BtfError> {
        let missing = || BtfError::Missing(format!("{enumerator} in enum {name}"));
        let id = self
            .named(KIND_ENUM, name)
            .or_else(|_| self.named(KIND_ENUM64, name))?;
        let found = self.resolve(id).ok_or_else(missing)?;
        let stride = if found.kind == KIND_ENUM64 { 12 } else { 8 };
        (0..found.count as usize)
            .map(|index| found.body + index * stride)
            .find(|at| word(&self.data, *at).is_ok_and(|name| self.string(name) == enumerator.as_bytes()))
            .and_then(|at| word(&self.data, at + 4).ok())
            .ok_or_else(missing)
    }

    /// Whether there is a BTF tracepoint of this name.
    pub fn has_tracepoint(&self, name: &str) -> bool {
        self.named(KIND_TYPEDEF, &format!("btf_trace_{name}")).is_ok()
    }

    /// Number of arguments of the tracepoint `name`; 0 where there is none.
    pub fn tracepoint_arguments(&self, name: &str) -> usize {
        // The first parameter is the tracepoint's own `void *`.
        self.tracepoint(name)
            .map_or(0, |prototype| (prototype.count as usize).saturating_sub(1))
    }

    /// Name of the structure that argument `index` of the tracepoint `name` points to, counted from 0.
    pub fn tracepoint_struct(&self, name: &str, index: usize) -> Option<String> {
        let prototype = self.tracepoint(name)?;
        if index >= self.tracepoint_arguments(name) {
            return None;
        }
        self.argument_struct(prototype, index + 1)
    }

    /// Whether there is a function `name` of so many arguments, the first of which points to a structure of this name.
    pub fn has_function(&self, name: &str, structure: &str, arguments: u32) -> bool {
        let is_it = |found: &&Type| found.kind == KIND_FUNC && self.string(found.name) == name.as_bytes();
        let prototypes = self.types.iter().filter(is_it);
        prototypes
            .filter_map(|found| self.resolve(found.payload))
            .any(|prototype| {
                prototype.kind == KIND_FUNC_PROTO
                    && prototype.count == arguments
                    && self.argument_struct(prototype, 0).as_deref() == Some(structure)
            })
    }

    /// Name of the structure that parameter `index` of a prototype points to.
    fn argument_struct(&self, prototype: Type, index: usize) -> Option<String> {
        let parameter = prototype.body + index * 8 + 4;
        let target = self.points_to(self.resolve(word(&self.data, parameter).ok()?)?)?;
        let name = self.string(target.name);
        (target.kind == KIND_STRUCT).then(|| String::from_utf8_lossy(name).into_owned())
    }

    /// Prototype of the tracepoint `name`.
    fn tracepoint(&self, name: &str) -> Option<Type> {
        let id = self.named(KIND_TYPEDEF, &format!("btf_trace_{name}")).ok()?;
        self.points_to(self.resolve(id)?)
            .filter(|prototype| prototype.kind == KIND_FUNC_PROTO)
    }

    fn points_to(&self, pointer: Type) -> Option<Type> {
        if pointer.kind == KIND_PTR {
            self.resolve(pointer.payload)
        } else {
            None
        }
    }

    fn named(&self, kind: u32, name: &str) -> Result<u32, BtfError> {
        self.by_name
            .get(&(kind, name.as_bytes().to_vec()))
            .copied()
            .ok_or_else(|| BtfError::Missing(format!("type {name}")))
    }

    /// The type behind typedefs and qualifiers.
    fn resolve(&self, mut id: u32) -> Option<Type> {
        for _ in 0..32 {
            let found = *self.types.get((id as usize).checked_sub(1)?)?;
            // typedef, volatile, const, restrict, type tag
            if !matches!(found.kind, 8..=11 | 18) {
                return Some(found);
            }
            id = found.payload;
        }
        None
    }

    /// A name; empty where there is none, or none that ends.
    fn string(&self, offset: u32) -> &[u8] {
        let rest = self.strings.get(offset as usize..).unwrap_or_default();
        let rest = &rest[..rest.len().min(MAX_NAME)];
        rest.iter()
            .position(|byte| *byte == 0)
            .map_or(&[], |end| &rest[..end])
    }
}

/// Length of the data that follow a type's header.
fn body_len(kind: u32, count: u32) -> Result<usize, BtfError> {
    let count = count as usize;
    Ok(match kind {
        KIND_INT | KIND_VAR | KIND_DECL_TAG => 4,
        KIND_ARRAY => 12,
        KIND_STRUCT | KIND_UNION | KIND_DATASEC | KIND_ENUM64 => count * 12,
        KIND_ENUM | KIND_FUNC_PROTO => count * 8,
        0 | 20.. => {
            return Err(BtfError::Malformed(
                "kind of type that this version does not know",
            ));
        }
        _ => 0,
    })
}

fn word(bytes: &[u8], at: usize) -> Result<u32, BtfError> {
    let end = at
        .checked_add(4)
        .ok_or(BtfError::Malformed("offset beyond the end"))?;
    let word = bytes.get(at..end).and_then(|word| word.try_into().ok());
    word.map(u32::from_ne_bytes)
        .ok_or(BtfError::Malformed("cut short"))
}

#[cfg(test)]
mod tests;
