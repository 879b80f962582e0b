//! Names of users, as this host knows them.

use std::collections::BTreeMap;

use nix::unistd::{Uid, User};

/// Whose records are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Whose {
    name: String,
    uid: Option<u32>,
}

impl Whose {
    /// Of a name or a number. A name that this host does not know may still be the one that Slurm tells.
    pub fn of(typed: &str) -> Self {
        let uid = typed.parse().ok().or_else(|| {
            let user = User::from_name(typed).ok().flatten();
            user.map(|user| user.uid.as_raw())
        });
        Self {
            name: typed.to_owned(),
            uid,
        }
    }

    /// Whether it is a number, or a name that this host knows.
    pub fn is_known(&self) -> bool {
        self.uid.is_some()
    }

    /// Whether it is this user.
    pub fn is(&self, uid: Option<u32>, name: Option<&str>) -> bool {
        let is_number = self.uid.is_some() && uid.is_some();
        if is_number {
            self.uid == uid
        } else {
            name == Some(self.name.as_str())
        }
    }
}

/// Names that were looked up, which may take long: each once.
#[derive(Debug, Default)]
pub struct Names(BTreeMap<u32, Option<String>>);

impl Names {
    /// The name of a user; `None` where this host knows none.
    pub fn of(&mut self, uid: u32) -> Option<String> {
        let look_up = || Some(User::from_uid(Uid::from_raw(uid)).ok()??.name);
        self.0.entry(uid).or_insert_with(look_up).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_known_by_number_or_name() {
        let root = Whose::of("root");
        assert!(root.is(Some(0), None));
        assert!(!root.is(Some(7), Some("root")), "the number decides");
        assert!(root.is(None, Some("root")));
        assert!(Whose::of("4711").is(Some(4711), None));
        let elsewhere = Whose::of("nobody-of-this-host");
        assert!(elsewhere.is(Some(7), Some("nobody-of-this-host")));
        assert!(!elsewhere.is(Some(7), None));
        assert_eq!(Names::default().of(0).as_deref(), Some("root"));
    }
}
