//! GPUs of NVIDIA: their device files, and the driver's library.

use std::fs;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use nvml_wrapper::Nvml;
use nvml_wrapper::error::NvmlError;

use crate::doctor::facts::{Gpus, Known, Library};

const LIBRARY: &str = "libnvidia-ml.so.1";
/// How long the library may take: a driver in trouble never answers.
const LIMIT: Duration = Duration::from_secs(5);
/// So many GPUs are named.
const MAX_GPUS: u32 = 64;

/// Looks for them.
pub fn gpus() -> Gpus {
    Gpus {
        device_files: device_files(Path::new("/dev")),
        library: within(LIMIT, library),
    }
}

/// Files `nvidia0`, `nvidia1` and so on.
fn device_files(dir: &Path) -> Known<usize> {
    let entries = fs::read_dir(dir).map_err(|error| super::cannot_read(&dir.to_string_lossy(), &error))?;
    let is_gpu = |name: &str| {
        name.strip_prefix("nvidia")
            .is_some_and(|number| number.parse::<u32>().is_ok())
    };
    Ok(entries
        .flatten()
        .filter(|entry| entry.file_name().to_str().is_some_and(is_gpu))
        .count())
}

/// What `ask` answers in a thread of its own, which is left to itself where it takes longer than `limit`.
fn within(limit: Duration, ask: impl FnOnce() -> Library + Send + 'static) -> Library {
    let (tell, told) = mpsc::channel();
    let asked = thread::Builder::new().name("nvml".to_owned()).spawn(move || {
        // Nobody listens any more where it took too long.
        let _ = tell.send(ask());
    });
    match asked.map(|_| told.recv_timeout(limit)) {
        Ok(Ok(library)) => library,
        Ok(Err(mpsc::RecvTimeoutError::Timeout)) => {
            Library::Unusable(format!("it did not answer within {} s", limit.as_secs_f64()))
        }
        Ok(Err(mpsc::RecvTimeoutError::Disconnected)) => Library::Unusable("it panicked".to_owned()),
        Err(error) => Library::Unusable(format!("cannot start a thread: {error}")),
    }
}

fn library() -> Library {
    let nvml = match Nvml::builder().lib_path(LIBRARY.as_ref()).init() {
        Ok(nvml) => nvml,
        Err(error) => return of_error(&error),
    };
    match told(&nvml) {
        Ok(library) => library,
        Err(error) => of_error(&error),
    }
}

fn told(nvml: &Nvml) -> Result<Library, NvmlError> {
    let count = nvml.device_count()?.min(MAX_GPUS);
    let names = (0..count).map(|index| nvml.device_by_index(index)?.name());
    Ok(Library::Answers {
        driver: nvml.sys_driver_version()?,
        names: names.collect::<Result<_, _>>()?,
    })
}

fn of_error(error: &NvmlError) -> Library {
    match error {
        NvmlError::LibloadingError(error) => {
            let told = error.to_string();
            // A library that is there may lack another one, in the same words.
            if told.starts_with(&format!("{LIBRARY}: cannot open shared object file")) {
                Library::Absent
            } else {
                Library::Unusable(told)
            }
        }
        NvmlError::DriverNotLoaded | NvmlError::NotFound => Library::Idle(error.to_string()),
        _ => Library::Unusable(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_are_told_from_what_else_the_driver_has() {
        let dir = tempfile::tempdir().expect("a directory");
        for name in [
            "nvidia0",
            "nvidia11",
            "nvidiactl",
            "nvidia-uvm",
            "nvidia",
            "nvidia0x",
        ] {
            fs::write(dir.path().join(name), "").expect("a file");
        }
        assert_eq!(device_files(dir.path()), Ok(2));
        assert!(device_files(&dir.path().join("none")).is_err());
    }

    #[test]
    fn a_library_that_hangs_or_panics_is_told() {
        let hangs = within(Duration::from_millis(50), || {
            thread::sleep(Duration::from_hours(1));
            Library::Absent
        });
        assert!(matches!(hangs, Library::Unusable(reason) if reason.contains("0.05 s")));
        let panics = within(LIMIT, || panic!("as a library does"));
        assert!(matches!(panics, Library::Unusable(reason) if reason.contains("panicked")));
    }
}
