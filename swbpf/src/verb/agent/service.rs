//! What the agent tells the service manager that has started it (`sd_notify(3)`). Where there is none, or it cannot be told,
//! nothing of the agent depends on it.

use sd_notify::NotifyState;

/// The service manager.
pub struct Service {
    /// Whether it ends an agent that does not say in time that it is alive.
    is_watching: bool,
    /// Jobs, as last told.
    jobs: Option<usize>,
}

impl Service {
    /// The one that has started this process.
    pub fn find() -> Self {
        Self {
            is_watching: sd_notify::watchdog_enabled().is_some(),
            jobs: None,
        }
    }

    /// A job that is born from now on is counted.
    pub fn ready(&mut self, jobs: usize) {
        let _ = sd_notify::notify(&[NotifyState::Ready]);
        self.goes_on(jobs);
    }

    /// A round of the event loop is done. That it says so is the proof of it: so there is no timer of its own.
    pub fn goes_on(&mut self, jobs: usize) {
        if self.is_watching {
            let _ = sd_notify::notify(&[NotifyState::Watchdog]);
        }
        if self.jobs.replace(jobs) != Some(jobs) {
            let _ = sd_notify::notify(&[NotifyState::Status(&format!("Recording {jobs} jobs"))]);
        }
    }

    /// What is to be saved is saved, and then the agent ends.
    pub fn stopping() {
        let _ = sd_notify::notify(&[NotifyState::Stopping]);
    }
}
