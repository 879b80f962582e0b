use super::*;

#[test]
fn what_is_not_btf_is_refused() {
    assert!(matches!(Btf::parse(b"\x7fELF"), Err(BtfError::Malformed(_))));
}
