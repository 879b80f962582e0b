//! BTF as it stands in a file: `Documentation/bpf/btf.rst`.

use anyhow::{Context as _, Result, bail, ensure};

pub const PTR: u32 = 2;
pub const STRUCT: u32 = 4;
pub const UNION: u32 = 5;
pub const ENUM: u32 = 6;
pub const TYPEDEF: u32 = 8;
pub const FUNC: u32 = 12;
pub const ENUM64: u32 = 19;
const INT: u32 = 1;
const ARRAY: u32 = 3;
const FUNC_PROTO: u32 = 13;
const VAR: u32 = 14;
const DATASEC: u32 = 15;
const DECL_TAG: u32 = 17;
const TYPE_TAG: u32 = 18;

const MAGIC: u32 = 0xeb9f;
const VERSION: u32 = 1;
const HEADER_LEN: u32 = 24;

/// Types, numbered from 1, and the strings that they are named by.
#[derive(Default)]
pub struct Blob {
    pub types: Vec<Type>,
    pub strings: Vec<u8>,
}

/// One type: its header, and the words behind it.
#[derive(Clone, Default)]
pub struct Type {
    pub name: u32,
    pub kind: u32,
    /// The highest bit of the word with the kind.
    pub flag: bool,
    /// Where the lower bits of that word are no number of elements: a linkage.
    pub linkage: u32,
    /// Its size, or the type that it refers to.
    pub payload: u32,
    pub body: Vec<u32>,
}

impl Blob {
    /// Reads a whole blob.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        ensure!(word(bytes, 0)? & 0xffff == MAGIC, "no BTF of this byte order");
        let header = word(bytes, 4)? as usize;
        let section = |at: usize| -> Result<&[u8]> {
            let (offset, len) = (word(bytes, at)? as usize, word(bytes, at + 4)? as usize);
            let rest = bytes.get(header + offset..);
            rest.and_then(|rest| rest.get(..len)).context("cut short")
        };
        let data = section(8)?;
        let mut blob = Self {
            types: Vec::new(),
            strings: section(16)?.to_vec(),
        };
        let mut at = 0;
        while at < data.len() {
            let info = word(data, at + 4)?;
            let (kind, count) = (info >> 24 & 0x1f, info & 0xffff);
            let words = stride(kind)? * if is_list(kind) { count as usize } else { 1 };
            let body = (0..words).map(|index| word(data, at + 12 + index * 4));
            blob.types.push(Type {
                name: word(data, at)?,
                kind,
                flag: info >> 31 == 1,
                linkage: if is_list(kind) { 0 } else { count },
                payload: word(data, at + 8)?,
                body: body.collect::<Result<_>>()?,
            });
            at += 12 + words * 4;
        }
        Ok(blob)
    }

    /// The string at an offset.
    pub fn name(&self, at: u32) -> &[u8] {
        let rest = self.strings.get(at as usize..).unwrap_or_default();
        rest.split(|byte| *byte == 0).next().unwrap_or_default()
    }

    /// As the kernel writes it.
    pub fn bytes(&self) -> Vec<u8> {
        let types: Vec<u32> = self.types.iter().flat_map(Type::words).collect();
        let types_len = types.len() as u32 * 4;
        let header = [
            MAGIC | VERSION << 16,
            HEADER_LEN,
            0,
            types_len,
            types_len,
            self.strings.len() as u32,
        ];
        let words = header.into_iter().chain(types);
        words
            .flat_map(u32::to_ne_bytes)
            .chain(self.strings.iter().copied())
            .collect()
    }
}

impl Type {
    /// Places in the body that are names.
    pub fn names(&self) -> Vec<usize> {
        match self.kind {
            STRUCT | UNION | ENUM | ENUM64 | FUNC_PROTO => self.each(0),
            _ => Vec::new(),
        }
    }

    /// Places in the body that are numbers of types.
    pub fn types(&self) -> Vec<usize> {
        match self.kind {
            STRUCT | UNION | FUNC_PROTO => self.each(1),
            ARRAY => vec![0, 1],
            DATASEC => self.each(0),
            _ => Vec::new(),
        }
    }

    /// Whether the payload is the number of a type.
    pub fn refers(&self) -> bool {
        matches!(self.kind, PTR | TYPEDEF..=FUNC_PROTO | VAR | DECL_TAG | TYPE_TAG)
    }

    /// Place `at` of each element of the body.
    fn each(&self, at: usize) -> Vec<usize> {
        let stride = stride(self.kind).unwrap_or(1).max(1);
        (at..self.body.len()).step_by(stride).collect()
    }

    fn words(&self) -> Vec<u32> {
        let count = if is_list(self.kind) {
            (self.body.len() / stride(self.kind).unwrap_or(1).max(1)) as u32
        } else {
            self.linkage
        };
        let info = u32::from(self.flag) << 31 | self.kind << 24 | count;
        [self.name, info, self.payload]
            .into_iter()
            .chain(self.body.iter().copied())
            .collect()
    }
}

fn is_list(kind: u32) -> bool {
    matches!(kind, STRUCT | UNION | ENUM | FUNC_PROTO | DATASEC | ENUM64)
}

/// Words of an element of a list, or of the whole body.
fn stride(kind: u32) -> Result<usize> {
    Ok(match kind {
        INT | VAR | DECL_TAG => 1,
        ARRAY | STRUCT | UNION | DATASEC | ENUM64 => 3,
        ENUM | FUNC_PROTO => 2,
        0 | 20.. => bail!("a kind of type that is not known: {kind}"),
        _ => 0,
    })
}

fn word(bytes: &[u8], at: usize) -> Result<u32> {
    let word = bytes.get(at..at + 4).and_then(|word| word.try_into().ok());
    word.map(u32::from_ne_bytes).context("cut short")
}
