//! What is written and started before the first job.

use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::net::UnixStream;
use std::path::Path;

use super::client::run;
use super::daemon::Daemon;
use super::{CLIENT_LIMIT, Slurm, cgroups, config};
use crate::measure::program;

const ROOT: (u32, u32) = (0, 0);

/// Directories, and who may look into them. Slurm refuses some that others can write to.
const DIRS: [(&str, u32); 5] = [
    ("bin", 0o755),
    ("etc", 0o755),
    ("log", 0o755),
    ("run", 0o755),
    ("state", 0o700),
];

/// A command for jobs, which ends when the test says so.
const UNTIL_LET_GO: &str =
    "#!/bin/sh\nuntil [ -e \"$SLURM_SUBMIT_DIR/go.$SLURM_JOB_ID\" ]; do sleep 0.02; done\n";

/// Length of munge's key, in bytes.
const KEY_BYTES: u64 = 128;

/// Options of the database: small, and nothing in it is worth a wait for the disk.
const DATABASE: [&str; 7] = [
    "--no-defaults",
    "--user=root",
    "--innodb-buffer-pool-size=32M",
    "--innodb-log-file-size=8M",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-flush-method=nosync",
    "--skip-log-bin",
];

/// Options of the database while it serves. `slurmdbd` asks for the lock's timeout.
const SERVER: [&str; 5] = [
    "--bind-address=127.0.0.1",
    "--port=3306",
    "--innodb-lock-wait-timeout=900",
    "--performance-schema=0",
    "--skip-name-resolve",
];

impl Slurm {
    pub(super) fn write_files(&self) {
        let (place, config) = (&self.place, &self.config);
        for (name, mode) in DIRS {
            place.make_dir(name, mode, ROOT);
        }
        place.make_dir("work", 0o755, (self.user.uid, self.user.gid));
        for node in config.node_names() {
            place.make_dir(&format!("spool.{node}"), 0o755, ROOT);
        }
        // The directory of the build may be closed to everyone but root.
        let workload = fs::read(program("workload")).expect("the program");
        place.write("bin/workload", 0o755, workload);
        place.write("bin/until-let-go", 0o755, UNTIL_LET_GO);
        place.write("etc/munge.key", 0o600, random_bytes());
        let dir = place.dir();
        place.write("etc/slurm.conf", 0o644, config.slurm(dir));
        place.write("etc/slurmdbd.conf", 0o600, config::slurmdbd(dir));
        place.write("etc/plugstack.conf", 0o644, &config.plugstack_conf);
        place.write("etc/mariadb.sql", 0o600, include_str!("mariadb.sql"));
        let version = cgroups::version();
        let has_systemd = Path::new("/run/systemd/system").exists();
        if version == 2 && !has_systemd {
            cgroups::prepare_v2();
        }
        place.write("etc/cgroup.conf", 0o644, config.cgroup(version, has_systemd));
    }

    pub(super) fn start_daemons(&mut self) {
        self.start_munge();
        if self.config.accounting {
            self.start_accounting();
        }
        self.start_daemon("slurmctld", &["-D"], |_| true);
        let nodes = self.config.nodes;
        for (index, node) in self.config.clone().node_names().enumerate() {
            let is_last = index + 1 == nodes;
            self.start_daemon("slurmd", &["-D", "-N", &node], |slurm| {
                !is_last || slurm.ready_nodes() == nodes
            });
        }
    }

    /// Kills each `slurmd` and starts it again, as an upgrade does while jobs run.
    ///
    /// # Panics
    ///
    /// Where one does not start.
    pub fn restart_slurmd(&mut self) {
        self.daemons.retain(|daemon| daemon.name() != "slurmd");
        for node in self.config.clone().node_names() {
            self.start_daemon("slurmd", &["-D", "-N", &node], |_| true);
        }
    }

    fn start_munge(&mut self) {
        let options = [
            self.path_option("key-file", "etc/munge.key"),
            self.path_option("socket", "run/munge.socket"),
            self.path_option("pid-file", "run/munged.pid"),
            self.path_option("log-file", "log/munged.log"),
            self.path_option("seed-file", "run/munged.seed"),
        ];
        let mut arguments = vec!["--foreground", "--force"];
        arguments.extend(options.iter().map(String::as_str));
        self.start_daemon("munged", &arguments, |slurm| slurm.answers("run/munge.socket"));
    }

    fn start_accounting(&mut self) {
        let data = self.path_option("datadir", "mariadb");
        let mut install = self.as_root("mariadb-install-db");
        install.args(DATABASE).args([&data, "--skip-test-db"]);
        let _ = run(&mut install, CLIENT_LIMIT).good();
        let options = [
            data,
            self.path_option("socket", "run/mariadbd.sock"),
            self.path_option("pid-file", "run/mariadbd.pid"),
            self.path_option("init-file", "etc/mariadb.sql"),
        ];
        let mut arguments = [&DATABASE[..], &SERVER].concat();
        arguments.extend(options.iter().map(String::as_str));
        self.start_daemon("mariadbd", &arguments, |slurm| slurm.answers("run/mariadbd.sock"));
        self.start_daemon("slurmdbd", &["-D"], |slurm| {
            let mut add = slurm.as_root("sacctmgr");
            add.args(["--immediate", "add", "cluster", "swbpf"]);
            run(&mut add, CLIENT_LIMIT).status.success()
        });
    }

    /// Starts a daemon that stays in the foreground, and waits until it is ready.
    fn start_daemon(&mut self, name: &str, arguments: &[&str], ready: impl Fn(&Self) -> bool) {
        let mut command = self.as_root(name);
        command.args(arguments);
        let log = self.dir("log").join(format!("{name}.out"));
        let mut daemon = Daemon::start(name, &mut command, &log);
        daemon.wait_until(|| ready(self));
        self.daemons.push(daemon);
    }

    /// `--NAME=PATH`, the path in the directory of the cluster.
    fn path_option(&self, name: &str, path: &str) -> String {
        format!("--{name}={}", self.dir(path).display())
    }

    fn answers(&self, socket: &str) -> bool {
        UnixStream::connect(self.dir(socket)).is_ok()
    }

    fn ready_nodes(&self) -> usize {
        let mut sinfo = self.as_root("sinfo");
        sinfo.args(["--noheader", "--Node", "--states=idle", "--format=%N"]);
        run(&mut sinfo, CLIENT_LIMIT).stdout.lines().count()
    }
}

fn random_bytes() -> Vec<u8> {
    let mut bytes = Vec::new();
    let random = File::open("/dev/urandom").and_then(|file| file.take(KEY_BYTES).read_to_end(&mut bytes));
    random.expect("random bytes");
    bytes
}
