//! The socket of the agent: who may come in, and how long they may stay.

mod archive;
mod client;
mod doors;
mod peer;

use std::{
    fs::{self, File},
    io::{self, ErrorKind},
    os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt},
    path::Path,
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, anyhow};
use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};
use tokio::{
    net::{UnixListener, UnixStream},
    sync::{Semaphore, mpsc},
    time::sleep,
};

use super::jobs::Question;
use crate::{
    error::{Error, way_to_own_directory},
    wire::{self, Answer, Reason, Refusal},
};
pub use archive::Archive;
use client::{attend, refuse, turn_away};
use doors::{Doors, Stage};
pub use peer::Peer;

/// Questions that wait for the loop.
const QUESTIONS: usize = 64;
/// Those at one time whose request is read before they are told that there is no place for them, beside all who have one.
const MOST_TURNED_AWAY: usize = 256;
/// Pause after a connection that could not be taken, as where too many files are open.
const PAUSE: Duration = Duration::from_millis(100);

/// The questions of all clients.
pub type Questions = mpsc::Receiver<Question>;

/// Opens the socket, and lets clients in from then on. `admins` see the jobs of all.
pub fn open(path: &Path, admins: Option<u32>, archive: Archive) -> Result<Questions, Error> {
    let listener = bind(path)?;
    let (questions, asked) = mpsc::channel(QUESTIONS);
    tokio::task::spawn_local(async move {
        let doors = Rc::new(Doors::default());
        let desk = Desk {
            questions,
            archive: Rc::new(archive),
            turns_away: Arc::new(Semaphore::new(MOST_TURNED_AWAY)),
        };
        loop {
            match listener.accept().await {
                Ok((stream, _)) => let_in(stream, &doors, admins, &desk),
                Err(_) => sleep(PAUSE).await,
            }
        }
    });
    Ok(asked)
}

/// Makes the directory of the socket, where what the next agent needs is kept too, and holds it as long as the value is there.
pub fn make_dir(dir: &Path) -> Result<File, Error> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o755).create(dir);
    made.with_context(|| format!("make {}", dir.display()))?;
    let found = fs::metadata(dir).with_context(|| format!("look at {}", dir.display()))?;
    let own = rustix::process::geteuid().as_raw();
    if (found.uid() != own && found.uid() != 0) || found.mode() & 0o022 != 0 {
        return Err(anyhow!(
            "{} is not used for the socket: others can write to it: {}",
            dir.display(),
            way_to_own_directory(dir, found.mode(), "755")
        )
        .into());
    }
    let held = File::open(dir).with_context(|| format!("open {}", dir.display()))?;
    match flock(&held, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(held),
        Err(Errno::WOULDBLOCK) => Err(anyhow!(
            "another agent is there: end that first, or name a socket in a directory of its own (now {})",
            dir.display()
        )
        .into()),
        Err(error) => Err(anyhow!(error).context(format!("lock {}", dir.display())).into()),
    }
}

/// A socket that everybody may connect to. One that a killed agent left is replaced.
fn bind(path: &Path) -> Result<UnixListener, Error> {
    let bound = UnixListener::bind(path).or_else(|error| {
        if error.kind() != ErrorKind::AddrInUse {
            return Err(error);
        }
        if std::os::unix::net::UnixStream::connect(path).is_ok() {
            return Err(io::Error::other("another agent is there: end that first"));
        }
        fs::remove_file(path)?;
        UnixListener::bind(path)
    });
    let listener = bound.with_context(|| format!("open the socket {}", path.display()))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o666))
        .with_context(|| format!("let everybody connect to {}", path.display()))?;
    Ok(listener)
}

/// Where questions go.
#[derive(Clone)]
struct Desk {
    questions: mpsc::Sender<Question>,
    archive: Rc<Archive>,
    /// One for each whose request is read although there is no place.
    turns_away: Arc<Semaphore>,
}

/// Serves a client, each by itself: none waits for another.
fn let_in(mut stream: UnixStream, doors: &Rc<Doors>, admins: Option<u32>, desk: &Desk) {
    let Ok(peer) = Peer::of(&stream, admins) else {
        return;
    };
    let place = doors.enter(peer.uid);
    let pause = if place.is_some() {
        doors.pause(peer.uid, Instant::now())
    } else {
        Duration::ZERO
    };
    let desk = desk.clone();
    tokio::task::spawn_local(async move {
        let busy = Refusal::new(Reason::Busy, "too many connections: close some, or wait");
        // A client that has gone, or is too slow, has no answer; nobody else has to know.
        let _ = if let Some((place, leave)) = place {
            tokio::select! {
                attended = async {
                    if !pause.is_zero() {
                        sleep(pause).await;
                    }
                    attend(&mut stream, &peer, &desk, &place).await
                } => attended,
                stage = leave => {
                    if stage.is_ok_and(|stage| stage < Stage::Asked) {
                        send_off(&stream, busy);
                    }
                    Ok(())
                }
            }
        } else {
            match desk.turns_away.try_acquire() {
                Ok(_turn) => turn_away(&mut stream, busy).await,
                Err(_) => refuse(&mut stream, busy).await,
            }
        };
    });
}

/// Tells one who has to leave, and has had no part of an answer, why: at once or not at all.
fn send_off(stream: &UnixStream, refusal: Refusal) {
    if let Ok(line) = wire::line(&Answer::<()>::refused(refusal)) {
        let _ = stream.try_write(&line);
    }
}
