//! How many clients are in at one time: no user can keep the others out.

use std::{cell::RefCell, collections::BTreeMap, rc::Rc};

/// Connections of one user.
const MOST_OF_ONE: usize = 64;
/// Connections of all.
const MOST: usize = 1024;

/// Who has a place however many users there are.
const ROOT: u32 = 0;

/// Who is in.
#[derive(Debug, Default)]
pub struct Doors {
    by_uid: RefCell<BTreeMap<u32, usize>>,
}

/// A place inside, free again when it is dropped.
#[derive(Debug)]
pub struct Place {
    doors: Rc<Doors>,
    uid: u32,
}

impl Doors {
    /// Lets this user in, unless there are too many.
    pub fn enter(self: &Rc<Self>, uid: u32) -> Option<Place> {
        let mut by_uid = self.by_uid.borrow_mut();
        let all: usize = by_uid.values().sum();
        let own = by_uid.get(&uid).copied().unwrap_or(0);
        if own >= MOST_OF_ONE || (all >= MOST && uid != ROOT) {
            return None;
        }
        by_uid.insert(uid, own + 1);
        Some(Place {
            doors: Rc::clone(self),
            uid,
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut by_uid = self.doors.by_uid.borrow_mut();
        match by_uid.get(&self.uid) {
            Some(several) if *several > 1 => {
                let left = several - 1;
                by_uid.insert(self.uid, left);
            }
            _ => {
                by_uid.remove(&self.uid);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_user_does_not_keep_the_others_out() {
        let doors = Rc::new(Doors::default());
        let all: Vec<Place> = std::iter::from_fn(|| doors.enter(1)).collect();
        assert_eq!(all.len(), MOST_OF_ONE);
        let other = doors.enter(2);
        assert!(other.is_some());
        drop(all);
        assert!(doors.enter(1).is_some());
        drop(other);
        assert!(doors.by_uid.borrow().is_empty());
    }

    #[test]
    fn all_together_are_bounded() {
        let doors = Rc::new(Doors::default());
        let all: Vec<Place> = (1..100)
            .flat_map(|uid| std::iter::from_fn(|| doors.enter(uid)).collect::<Vec<_>>())
            .collect();
        assert_eq!(all.len(), MOST);
        assert!(doors.enter(ROOT).is_some());
    }
}
