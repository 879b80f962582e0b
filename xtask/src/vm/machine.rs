//! A virtual machine: QEMU, and a server for each directory that it sees.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};

use crate::command::root;

/// The emulator.
pub const QEMU: &str = "/usr/bin/qemu-system-x86_64";
/// The server of directories that comes with it.
pub const VIRTIOFSD: &str = "/usr/lib/qemu/virtiofsd";

const MEMORY_MIB: u32 = 3072;
const CPUS: u32 = 2;

/// How long a server may take to listen.
const PATIENCE: Duration = Duration::from_secs(10);

/// How much of the console is told where a machine did not come to its end.
const CONSOLE_LINES: usize = 30;

/// Serves the bind mount of a directory, in a mount namespace of its own: without what is mounted below the directory,
/// and where it is to be read-only, it is.
const SERVE: &str = "mount --bind \"$1\" /mnt && mount -o \"remount,bind,$2\" /mnt && \
                     exec \"$0\" --socket-path=\"$3\" -o \"source=/mnt,cache=$4,xattr\"";

/// What a machine is made of.
pub struct Machine<'a> {
    /// The kernel.
    pub vmlinuz: &'a Path,
    /// Its first file system.
    pub initramfs: &'a Path,
    /// The version of cgroups that it is to have, `v1` or `v2`.
    pub cgroup: &'a str,
    /// Its first process: `guest`, or `systemd`, of which that is a service.
    pub first: &'a str,
    /// The directory that it may write to. It starts `guest` there, and leaves the exit code of that in `code`.
    pub share: &'a Path,
    /// For sockets and logs.
    pub scratch: &'a Path,
    /// How long it may run.
    pub limit: Duration,
}

/// A child that is ended with its handle.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // Fails where it has ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Machine<'_> {
    /// Boots it. Its output goes where this process's goes. Gives back the exit code of `guest`.
    pub fn run(&self) -> Result<i32> {
        let _servers = [
            self.serve("host", Path::new("/"), "ro", "always")?,
            self.serve("repository", &root(), "ro", "auto")?,
            self.serve("share", self.share, "rw", "always")?,
        ];
        let mut qemu = bound(QEMU);
        qemu.args(self.arguments()?)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut qemu = Ended(qemu.spawn().context("cannot start QEMU")?);
        self.attend(&mut qemu.0)?;
        let code = fs::read_to_string(self.share.join("code")).unwrap_or_default();
        code.trim().parse().map_err(|_| {
            let console = fs::read(self.console()).unwrap_or_default();
            anyhow!(
                "the virtual machine did not come to its end:\n{}",
                last_lines(&console)
            )
        })
    }

    /// Passes its output on until it has ended.
    fn attend(&self, qemu: &mut Child) -> Result<()> {
        let (stdout, stderr) = (qemu.stdout.take(), qemu.stderr.take());
        thread::scope(|scope| {
            if let Some(mut stdout) = stdout {
                scope.spawn(move || io::copy(&mut stdout, &mut io::stdout()));
            }
            if let Some(mut stderr) = stderr {
                scope.spawn(move || io::copy(&mut stderr, &mut io::stderr()));
            }
            let deadline = Instant::now() + self.limit;
            while qemu.try_wait()?.is_none() {
                if Instant::now() > deadline {
                    qemu.kill()?;
                    bail!(
                        "the virtual machine was ended after {} minutes",
                        self.limit.as_secs() / 60
                    );
                }
                sleep(Duration::from_millis(50));
            }
            Ok(())
        })
    }

    fn arguments(&self) -> Result<Vec<String>> {
        // The guest's text is patched while it runs. With a thread for each of its CPUs, QEMU 7.2 loses races with that:
        // `Oops: int3` at boot now and then, and soon after programs are attached to functions.
        let [accelerator, cpu] = if has_virtualization()? {
            ["kvm", "host"]
        } else {
            // Without `erms` an emulated kernel clears pages seven times faster.
            ["tcg,thread=single", "max,la57=off,-erms"]
        };
        let memory = format!("memory-backend-memfd,id=memory,size={MEMORY_MIB}M,share=on");
        let (cpus, mib) = (CPUS.to_string(), MEMORY_MIB.to_string());
        let serial = format!("file:{}", shown(&self.console()));
        let append = format!(
            "console=ttyS0 quiet panic=-1 vm.cgroup={} vm.first={}",
            self.cgroup, self.first
        );
        let (vmlinuz, initramfs) = (shown(self.vmlinuz), shown(self.initramfs));
        let mut arguments: Vec<String> = [
            ["-M", "q35,memory-backend=memory"],
            ["-accel", accelerator],
            ["-cpu", cpu],
            ["-smp", &cpus],
            ["-m", &mib],
            ["-object", &memory],
            ["-display", "none"],
            ["-serial", &serial],
            ["-kernel", &vmlinuz],
            ["-initrd", &initramfs],
            ["-append", &append],
            // The standard output and the standard error of `guest`.
            ["-device", "virtio-serial-pci"],
            ["-chardev", "file,id=out,path=/dev/stdout,append=on"],
            ["-device", "virtserialport,chardev=out,nr=1"],
            ["-chardev", "file,id=err,path=/dev/stderr,append=on"],
            ["-device", "virtserialport,chardev=err,nr=2"],
        ]
        .concat()
        .into_iter()
        .map(String::from)
        .collect();
        arguments.extend(["-nodefaults", "-no-user-config", "-no-reboot"].map(String::from));
        for name in ["host", "repository", "share"] {
            let socket = shown(&self.socket(name));
            arguments.extend(["-chardev".to_owned(), format!("socket,id={name},path={socket}")]);
            arguments.extend([
                "-device".to_owned(),
                format!("vhost-user-fs-pci,chardev={name},tag={name}"),
            ]);
        }
        Ok(arguments)
    }

    /// Starts the server of a directory, and waits until it listens.
    fn serve(&self, name: &str, dir: &Path, mode: &str, cache: &str) -> Result<Ended> {
        let log = self.scratch.join(format!("{name}.log"));
        let mut server = bound("unshare");
        server
            .args(["--mount", "sh", "-c", SERVE, VIRTIOFSD])
            .arg(dir)
            .arg(mode)
            .arg(self.socket(name))
            .arg(cache)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log).with_context(|| log.display().to_string())?);
        let mut server = Ended(server.spawn().context("cannot start virtiofsd")?);
        let deadline = Instant::now() + PATIENCE;
        while !self.socket(name).exists() {
            let ended = server.0.try_wait()?;
            if ended.is_some() || Instant::now() > deadline {
                let log = fs::read(log).unwrap_or_default();
                bail!(
                    "virtiofsd does not serve {}:\n{}",
                    dir.display(),
                    last_lines(&log)
                );
            }
            sleep(Duration::from_millis(10));
        }
        Ok(server)
    }

    fn socket(&self, name: &str) -> PathBuf {
        self.scratch.join(format!("{name}.sock"))
    }

    fn console(&self) -> PathBuf {
        self.scratch.join("console")
    }
}

/// A program that the kernel ends when this process is gone, however it went.
fn bound(program: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", program]);
    command
}

/// Whether the processor itself runs virtual machines. That there is a `/dev/kvm` is not enough: some hosts emulate it,
/// for kernels of their own alone.
fn has_virtualization() -> Result<bool> {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo")?;
    let has = cpuinfo
        .lines()
        .filter(|line| line.starts_with("flags"))
        .any(|flags| flags.split(' ').any(|flag| matches!(flag, "vmx" | "svm")));
    Ok(has && Path::new("/dev/kvm").exists())
}

/// A path as an option of QEMU takes it.
fn shown(path: &Path) -> String {
    path.to_string_lossy().replace(',', ",,")
}

/// The end of a log.
fn last_lines(log: &[u8]) -> String {
    let text = String::from_utf8_lossy(log);
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(CONSOLE_LINES)..].join("\n")
}
