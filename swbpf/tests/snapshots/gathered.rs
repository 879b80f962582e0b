use super::*;

/// Answers of all nodes of a job, with their names.
pub fn all_gathered() -> Vec<(&'static str, Gathered)> {
    vec![
        ("all_nodes", two_of_three()),
        ("all_nodes_sampled", with_a_sampler()),
        ("all_nodes_none", none()),
        (
            "all_nodes_hostile",
            gathered_with_names("\u{1b}[2J\u{202e}evil\n\\"),
        ),
    ]
}

/// One node does not answer.
fn two_of_three() -> Gathered {
    let mut bounded = on("cn2", 2 * GIB, 3 * GIB);
    bounded.memory.error_bound_bytes = Some(MIB);
    bounded.probes.held_by = HeldBy::Agent;
    of(vec![
        answer("cn1", &on("cn1", 300 * MIB, 310 * MIB)),
        answer("cn2", &bounded),
        NodeAnswer::read(
            "cn3",
            77,
            Err(
                "Task launch for StepId=77.1 failed on node cn3: Socket timed out on send/recv operation"
                    .into(),
            ),
        ),
    ])
}

/// One node samples, and one does not know all.
fn with_a_sampler() -> Gathered {
    let mut sampled = on("cn1", 300 * MIB, 310 * MIB);
    sampled.source = Source::Sampled;
    sampled.memory.source = Source::Sampled;
    sampled.memory.error_bound_bytes = None;
    let why = "what is between two looks is not seen";
    sampled
        .unknown
        .insert("memory.error_bound_bytes".into(), why.into());
    let mut unknown = on("cn2", 0, 3 * GIB);
    unknown.memory.needed_bytes = None;
    unknown
        .unknown
        .insert("memory.needed_bytes".into(), "its cgroup is gone".into());
    unknown.cpu.cores_allocated = None;
    of(vec![answer("cn1", &sampled), answer("cn2", &unknown)])
}

fn none() -> Gathered {
    let hung = |node| NodeAnswer::read(node, 77, Err("it did not answer within 31 s".into()));
    of(vec![hung("cn1"), hung("cn2")])
}

/// Takes every text that others chose from `name`; numbers are as large as they get.
pub fn gathered_with_names(name: &str) -> Gathered {
    let large = |node| {
        let mut large = on(node, u64::MAX, u64::MAX);
        large.cpu.busy_cores = Some(f64::MAX);
        large.cpu.cores_allocated = Some(f64::MAX);
        answer(node, &large)
    };
    let mut gathered = of(vec![
        large("cn1"),
        large("cn2"),
        NodeAnswer::read("cn3", 77, Err(name.into())),
    ]);
    for answer in &mut gathered.nodes {
        answer.node = name.into();
    }
    gathered.job_id = name.into();
    for why in gathered.unknown.values_mut() {
        *why = name.into();
    }
    gathered
}

fn of(nodes: Vec<NodeAnswer>) -> Gathered {
    let mut gathered = Gathered::of("70_7".into(), 1.0, "2026-11-30T01:52:04.500Z".into(), nodes);
    // It is in the golden files.
    gathered.tool_version = "0.1.0".into();
    gathered
}

/// What a node wrote, read as it is.
fn answer(node: &str, snapshot: &Snapshot) -> NodeAnswer {
    let line = serde_json::to_vec(snapshot).expect("JSON");
    NodeAnswer::read(node, 77, Ok(line))
}

/// A part of a job.
pub fn on(node: &str, needed: u64, peak: u64) -> Snapshot {
    let mut snapshot = job();
    snapshot.kind = Kind::Once;
    snapshot.memory.needed_bytes = Some(needed);
    snapshot.memory.needed_peak_bytes = Some(peak);
    let here = snapshot.job.as_mut().and_then(|job| job.here.as_mut());
    here.expect("a node").node = node.into();
    snapshot
}
