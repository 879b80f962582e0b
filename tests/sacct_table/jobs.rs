//! The jobs, and what is known of their memory.

/// A job.
pub struct Job {
    /// What it does, in a few words.
    pub title: &'static str,
    /// What it holds by construction, beside its programs themselves.
    pub held: &'static str,
    /// Options of `sbatch`.
    pub options: &'static [&'static str],
    /// Its script, without the first line.
    pub script: &'static str,
    /// The state that Slurm stores for it.
    pub state: &'static str,
}

/// All of them.
pub static JOBS: [Job; 6] = [
    Job {
        title: "a step with 100 MiB for 3 s",
        held: "100 MiB",
        options: &["--mem=200M"],
        script: "srun workload anon --size 100M --hold-ms 3000",
        state: "COMPLETED",
    },
    Job {
        title: "a script with 300 MiB for 30 ms",
        held: "300 MiB",
        options: &["--mem=600M"],
        script: "sleep 1.4; workload anon --size 300M --hold-ms 30; sleep 1.7",
        state: "COMPLETED",
    },
    Job {
        title: "a script that is killed at its limit of 200 MiB",
        held: "200 MiB",
        options: &["--mem=200M"],
        script: "workload anon --size 400M",
        state: "OUT_OF_MEMORY",
    },
    Job {
        title: "a step that is killed at its limit of 200 MiB",
        held: "200 MiB",
        options: &["--mem=200M"],
        script: "srun workload anon --size 400M; exit 0",
        state: "COMPLETED",
    },
    Job {
        title: "a file of 64 MiB, written and read",
        held: "64 MiB of page cache",
        options: &["--mem=200M"],
        script: "workload file-read --path file.$SLURM_JOB_ID --size 64M --hold-ms 2000",
        state: "COMPLETED",
    },
    Job {
        title: "64 MiB, read by four forked children",
        held: "64 MiB",
        options: &["--mem=600M"],
        script: "workload shared-readers --size 64M --children 4 --hold-ms 2000",
        state: "COMPLETED",
    },
];
