use proptest::prelude::*;

use super::*;

/// A blob put together type by type.
#[derive(Default)]
struct Blob {
    types: Vec<u32>,
    strings: Vec<u8>,
}

impl Blob {
    fn name(&mut self, name: &str) -> u32 {
        if self.strings.is_empty() {
            self.strings.push(0);
        }
        let at = if name.is_empty() {
            0
        } else {
            self.strings.len() as u32
        };
        if at != 0 {
            self.strings.extend(name.bytes().chain([0]));
        }
        at
    }

    fn add(&mut self, name: &str, kind: u32, count: u32, payload: u32, body: &[u32]) {
        let name = self.name(name);
        self.types.extend([name, kind << 24 | count, payload]);
        self.types.extend(body);
    }

    fn bytes(&self) -> Vec<u8> {
        let types_len = self.types.len() as u32 * 4;
        let header = [
            u32::from(MAGIC) | 1 << 16,
            24,
            0,
            types_len,
            types_len,
            self.strings.len() as u32,
        ];
        let words = header.into_iter().chain(self.types.iter().copied());
        words
            .flat_map(u32::to_ne_bytes)
            .chain(self.strings.iter().copied())
            .collect()
    }
}

/// `struct task_struct { int pid; union { int a; int b; }; }`, an enum, and a tracepoint on it.
fn small() -> Blob {
    let mut blob = Blob::default();
    let (pid, a, b, victim) = (
        blob.name("pid"),
        blob.name("a"),
        blob.name("b"),
        blob.name("KMEM"),
    );
    blob.add("int", KIND_INT, 0, 4, &[32]);
    blob.add("", KIND_UNION, 2, 4, &[a, 1, 0, b, 1, 0]);
    blob.add("task_struct", KIND_STRUCT, 2, 8, &[pid, 1, 0, 0, 2, 32]);
    blob.add("memcg_stat_item", KIND_ENUM, 1, 4, &[victim, 55]);
    blob.add("", KIND_PTR, 0, 3, &[]);
    blob.add("", KIND_FUNC_PROTO, 2, 0, &[0, 0, 0, 5]);
    blob.add("", KIND_PTR, 0, 6, &[]);
    blob.add("btf_trace_mark_victim", KIND_TYPEDEF, 0, 7, &[]);
    blob
}

#[test]
fn members_enumerators_and_tracepoints_are_found() {
    let btf = Btf::parse(&small().bytes()).expect("BTF");
    assert_eq!(btf.member("task_struct", "pid"), Ok(0));
    assert_eq!(btf.member("task_struct", "b"), Ok(4), "in an anonymous union");
    assert_eq!(btf.enumerator("memcg_stat_item", "KMEM"), Ok(55));
    assert!(btf.has_tracepoint("mark_victim") && !btf.has_tracepoint("sched_switch"));
    assert_eq!(
        btf.tracepoint_struct("mark_victim", 0).as_deref(),
        Some("task_struct")
    );
    assert_eq!(btf.tracepoint_struct("mark_victim", 1), None);
    assert_eq!(
        (
            btf.tracepoint_arguments("mark_victim"),
            btf.tracepoint_arguments("sched_switch")
        ),
        (1, 0)
    );
}

#[test]
fn what_is_missing_is_named() {
    let btf = Btf::parse(&small().bytes()).expect("BTF");
    for (missing, name) in [
        (btf.member("task_struct", "comm"), "comm"),
        (btf.member("css_set", "subsys"), "css_set"),
        (btf.enumerator("memcg_stat_item", "SOCK"), "SOCK"),
    ] {
        let told = missing.expect_err("missing").to_string();
        assert!(told.contains(name), "{told}");
    }
}

#[test]
fn a_structure_that_holds_itself_is_not_followed_for_ever() {
    let mut blob = Blob::default();
    let name = blob.name("css_set");
    blob.add("", KIND_STRUCT, 1, 8, &[0, 1, 0]);
    blob.types[0] = name;
    let btf = Btf::parse(&blob.bytes()).expect("BTF");
    assert!(btf.member("css_set", "subsys").is_err());
}

/// Twenty members at each of eight levels are more than a test would see the end of.
#[test]
fn structures_that_hold_themselves_many_times_are_given_up() {
    let mut blob = Blob::default();
    let (name, last) = (blob.name("css_set"), blob.name("last"));
    let mut members = [0, 1, 0].repeat(20);
    members.extend([last, 0, 64]);
    blob.add("", KIND_STRUCT, 21, 8, &members);
    blob.types[0] = name;
    let btf = Btf::parse(&blob.bytes()).expect("BTF");
    assert!(btf.member("css_set", "subsys").is_err());
}

/// Each of these types is named by the same million bytes, which do not end.
#[test]
fn a_name_without_an_end_is_none() {
    let mut blob = Blob::default();
    let name = blob.name("x");
    blob.strings.pop();
    blob.strings.resize(1 << 20, b'x');
    for _ in 0..100_000 {
        blob.add("", KIND_STRUCT, 0, 8, &[]);
        let at = blob.types.len() - 3;
        blob.types[at] = name;
    }
    let btf = Btf::parse(&blob.bytes()).expect("BTF");
    assert!(btf.member("x", "x").is_err());
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = Btf::parse(&bytes);
    }

    #[test]
    fn no_spoilt_blob_makes_it_panic(spoils in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8), cut in 0_usize..8) {
        let mut bytes = small().bytes();
        for (at, byte) in spoils {
            let at = at.index(bytes.len());
            // The magic number stays, so that what is behind it is read.
            bytes[at.max(2)] = byte;
        }
        bytes.truncate(bytes.len() - cut);
        if let Ok(btf) = Btf::parse(&bytes) {
            let _ = btf.member("task_struct", "b");
            let _ = btf.enumerator("memcg_stat_item", "KMEM");
            let _ = btf.tracepoint_struct("mark_victim", 0);
        }
    }
}
