//! The exit codes.

/// Exit codes and their meaning, as `--help` and `docs/exit-codes.md` list them.
///
/// From 65 to 78 they lie in the range of `sysexits.h`, with its number where it has a word for the case.
pub const EXIT_CODES: &[(u8, &str)] = &[
    (0, "done"),
    (1, "another failure, told on standard error"),
    (
        2,
        "the command line is not understood, means several jobs, or names no user",
    ),
    (65, "the job has not started"),
    (66, "there is no such cgroup, or no more, or the job has ended"),
    (67, "no such process, job or step, or nothing is known of it"),
    (68, "the job runs on other nodes"),
    (69, "the kernel is locked down"),
    (70, "the kernel has no BTF, or none that can be read"),
    (71, "the kernel lacks a hook, or the kind that was asked for"),
    (72, "no cgroup hierarchy is mounted, or none has the controller"),
    (73, "the output cannot be written"),
    (75, "the table of tracked cgroups is full"),
    (76, "a node of the job did not answer"),
    (
        77,
        "permission denied, no cgroup can be made for the command, or the job is another user's",
    ),
    (78, "a capability is missing, or of no use in a user namespace"),
    (
        126,
        "run: the command cannot be executed, or not within its limit",
    ),
    (127, "run: the command is not found"),
];

/// What [`EXIT_CODES`] leaves open of `run`.
pub const EXIT_CODES_OF_RUN: &str = "`run` returns the command's own exit code, and 128+N where signal N ended \
     it. A code of sw-bpf's own says that the command was not executed.\n\n\
     Codes 69, 70, 71 and 78 are met with `--force-source kernel`: else sw-bpf samples, and tells the reason as \
     `probes.reason`.";

/// The same of `doctor`.
pub const EXIT_CODES_OF_DOCTOR: &str = "`doctor` returns 0 where every number is exact, 1 where some are sampled, bounded, \
     missing or costly or something could not be looked at, and 2 where nothing can be measured.";
