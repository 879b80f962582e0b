//! How many clients are in at one time: no user can keep the others out.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    rc::Rc,
    time::{Duration, Instant},
};

use tokio::sync::oneshot;

/// Connections of one user.
const MOST_OF_ONE: usize = 64;
/// Connections of all.
const MOST: usize = 1024;

/// Time of one user's connection until the next one is listened to.
const PACE: Duration = Duration::from_millis(10);
/// Time that is saved up for many at once.
const SAVED: Duration = Duration::from_secs(1);

/// Who has a place however many users there are.
pub const ROOT: u32 = 0;

/// Who is in, in the order in which they came.
#[derive(Debug, Default)]
pub struct Doors {
    inside: RefCell<Inside>,
    /// When each user who came lately has used what was saved up.
    used: RefCell<BTreeMap<u32, Instant>>,
}

#[derive(Debug, Default)]
struct Inside {
    by_number: BTreeMap<u64, Guest>,
    next: u64,
}

/// How far a client has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// It has said nothing that is understood.
    Silent,
    /// It waits for its turn to be told of records.
    Waiting,
    /// It has said what it wants.
    Asked,
    /// Records are read for it, so few at one time that they need not leave: it stays.
    Reading,
}

/// One who is in.
#[derive(Debug)]
struct Guest {
    uid: u32,
    stage: Stage,
    /// Told how far it has come, it has to leave.
    stay: oneshot::Sender<Stage>,
}

/// A place inside, free again when it is dropped.
#[derive(Debug)]
pub struct Place {
    doors: Rc<Doors>,
    number: u64,
}

/// How far it has come, when the place is given to somebody else.
pub type Leave = oneshot::Receiver<Stage>;

impl Doors {
    /// Lets this user in, unless there are too many. Where all places are taken, somebody else has to leave for a user who has
    /// fewer than others.
    pub fn enter(self: &Rc<Self>, uid: u32) -> Option<(Place, Leave)> {
        let mut inside = self.inside.borrow_mut();
        let own = inside.guests_of(uid);
        if own >= MOST_OF_ONE {
            return None;
        }
        if inside.by_number.len() >= MOST && uid != ROOT {
            let leaves = inside.who_leaves_for(own)?;
            if let Some(guest) = inside.by_number.remove(&leaves) {
                // It may have gone just now.
                let _ = guest.stay.send(guest.stage);
            }
        }
        let number = inside.next;
        inside.next += 1;
        let (stay, leave) = oneshot::channel();
        inside.by_number.insert(
            number,
            Guest {
                uid,
                stage: Stage::Silent,
                stay,
            },
        );
        let doors = Rc::clone(self);
        Some((Place { doors, number }, leave))
    }
}

impl Doors {
    /// How long a user who has been let in waits before it is listened to: 100 at once and then 100 a second cost the agent little,
    /// and who asks more often waits for nobody but itself.
    pub fn pause(&self, uid: u32, now: Instant) -> Duration {
        if uid == ROOT {
            return Duration::ZERO;
        }
        let mut used = self.used.borrow_mut();
        if used.len() >= MOST {
            used.retain(|_, until| *until > now);
        }
        let until = used.entry(uid).or_insert(now);
        let begin = (*until).max(now);
        *until = begin + PACE;
        begin.saturating_duration_since(now).saturating_sub(SAVED)
    }
}

impl Inside {
    fn guests_of(&self, uid: u32) -> usize {
        self.by_number.values().filter(|guest| guest.uid == uid).count()
    }

    /// Who leaves for a user of so many: of the user with the most, where those are more by two at least, else of all, the one who has
    /// said nothing for longest, else has waited longest for its turn; of the former, else the one who came first. Root never does.
    fn who_leaves_for(&self, own: usize) -> Option<u64> {
        let may_leave = |guest: &Guest| guest.uid != ROOT && guest.stage != Stage::Reading;
        let others = || self.by_number.iter().filter(|(_, guest)| may_leave(guest));
        let mut by_uid = BTreeMap::<u32, usize>::new();
        for (_, guest) in others() {
            *by_uid.entry(guest.uid).or_default() += 1;
        }
        let (most, uid) = by_uid.into_iter().map(|(uid, count)| (count, uid)).max()?;
        let is_of_most = |guest: &Guest| most > own + 1 && guest.uid == uid;
        others()
            .filter(|(_, guest)| is_of_most(guest) || guest.stage <= Stage::Waiting)
            .min_by_key(|(number, guest)| (!is_of_most(guest), guest.stage, **number))
            .map(|(number, _)| *number)
    }
}

impl Place {
    /// The client has come so far.
    pub fn is_at(&self, stage: Stage) {
        if let Some(guest) = self.doors.inside.borrow_mut().by_number.get_mut(&self.number) {
            guest.stage = stage;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.doors.inside.borrow_mut().by_number.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Guests = Vec<(Place, Leave)>;

    fn has_to_leave((_, leave): &mut (Place, Leave)) -> bool {
        leave.try_recv() != Err(oneshot::error::TryRecvError::Empty)
    }

    /// As many of this user as there may be.
    fn all_of(doors: &Rc<Doors>, uid: u32) -> Guests {
        std::iter::from_fn(|| doors.enter(uid)).collect()
    }

    /// 16 users with all that they may have.
    fn full(doors: &Rc<Doors>) -> Guests {
        let guests: Guests = (1..=16).flat_map(|uid| all_of(doors, uid)).collect();
        assert_eq!(guests.len(), MOST);
        guests
    }

    #[test]
    fn one_user_does_not_keep_the_others_out() {
        let doors = Rc::new(Doors::default());
        let all = all_of(&doors, 1);
        assert_eq!(all.len(), MOST_OF_ONE);
        let other = doors.enter(2);
        assert!(other.is_some());
        drop(all);
        assert!(doors.enter(1).is_some());
        drop(other);
        assert!(doors.inside.borrow().by_number.is_empty());
    }

    #[test]
    fn who_asks_without_end_waits_for_itself_alone() {
        let (doors, begin) = (Doors::default(), Instant::now());
        let at = |millis| begin + Duration::from_millis(millis);
        assert!((0..=100).all(|_| doors.pause(1, begin).is_zero()));
        assert_eq!(doors.pause(1, begin), PACE);
        assert_eq!(doors.pause(1, at(20)), Duration::ZERO);
        assert_eq!(
            [doors.pause(2, begin), doors.pause(ROOT, begin)],
            [Duration::ZERO; 2]
        );
        // What is long past is forgotten.
        assert!((1000..1000 + MOST as u32).all(|uid| doors.pause(uid, begin).is_zero()));
        assert!(doors.pause(1, at(60_000)).is_zero());
        assert_eq!(doors.used.borrow().len(), 1);
    }

    #[test]
    fn many_users_do_not_either() {
        let doors = Rc::new(Doors::default());
        let mut guests = full(&doors);
        // All of the last user but the third have asked.
        let last = &guests[MOST - MOST_OF_ONE..];
        for (number, (place, _)) in last.iter().enumerate() {
            if number != 2 {
                place.is_at(Stage::Asked);
            }
        }
        let mut newcomers: Guests = vec![doors.enter(100).expect("a place")];
        let left = |guests: &mut Guests| -> Vec<usize> {
            (0..guests.len())
                .filter(|number| has_to_leave(&mut guests[*number]))
                .collect()
        };
        assert_eq!(left(&mut guests), [MOST - MOST_OF_ONE + 2]);
        newcomers.extend((101..400).map(|uid| doors.enter(uid).expect("a place")));
        assert!(newcomers.iter_mut().all(|guest| !has_to_leave(guest)));
        assert_eq!(left(&mut guests).len(), 300);
        assert_eq!(doors.inside.borrow().by_number.len(), MOST);
        // Who has had to leave frees nothing when it goes.
        drop(guests);
        assert_eq!(doors.inside.borrow().by_number.len(), newcomers.len());
    }

    #[test]
    fn who_has_as_many_as_others_takes_from_the_silent_alone() {
        let doors = Rc::new(Doors::default());
        let mut guests: Guests = (1..=MOST as u32).filter_map(|uid| doors.enter(uid)).collect();
        for (place, _) in &guests {
            place.is_at(Stage::Asked);
        }
        assert!(doors.enter(5000).is_none());
        let silent = guests.pop();
        drop(silent);
        guests.extend(doors.enter(5001));
        assert!(doors.enter(5002).is_some());
        assert!(has_to_leave(&mut guests[MOST - 1]));
    }

    #[test]
    fn who_waits_for_its_turn_keeps_no_newcomer_out() {
        let doors = Rc::new(Doors::default());
        let mut guests: Guests = (1..=MOST as u32).filter_map(|uid| doors.enter(uid)).collect();
        for (number, (place, _)) in guests.iter().enumerate() {
            place.is_at(match number {
                0..16 => Stage::Reading,
                16 => Stage::Asked,
                _ => Stage::Waiting,
            });
        }
        let newcomers = (5000..5010).map(|uid| doors.enter(uid).expect("a place"));
        let newcomers: Guests = newcomers
            .inspect(|(place, _)| place.is_at(Stage::Asked))
            .collect();
        assert_eq!(newcomers.len(), 10);
        let left: Vec<_> = guests
            .iter_mut()
            .map(|(_, leave)| leave.try_recv().ok())
            .collect();
        let expected = (0..MOST).map(|number| (17..27).contains(&number).then_some(Stage::Waiting));
        assert!(
            left.into_iter().eq(expected),
            "those who have waited longest, alone"
        );
    }

    #[test]
    fn who_is_read_for_stays() {
        let doors = Rc::new(Doors::default());
        let mut guests = full(&doors);
        for (place, _) in guests.iter().skip(MOST - MOST_OF_ONE) {
            place.is_at(Stage::Asked);
        }
        guests[MOST - MOST_OF_ONE].0.is_at(Stage::Reading);
        let newcomer = doors.enter(100);
        assert!(newcomer.is_some());
        assert!(!has_to_leave(&mut guests[MOST - MOST_OF_ONE]));
    }

    #[test]
    fn root_has_a_place_and_keeps_it() {
        let doors = Rc::new(Doors::default());
        let mut own = all_of(&doors, ROOT);
        let guests = (1..=16).flat_map(|uid| all_of(&doors, uid)).count();
        assert!(guests > 0);
        assert!(own.iter_mut().all(|guest| !has_to_leave(guest)));
        drop(own);
        let _guests = full(&doors);
        assert!(doors.enter(ROOT).is_some());
    }
}
