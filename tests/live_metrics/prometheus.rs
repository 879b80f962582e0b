//! A Prometheus that scrapes each second.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use support::measure::{MIB, wait_until};
use support::{need_bpf, skipped};
use swbpf::out::openmetrics::described;
use tempfile::TempDir;

use crate::node::{Job, Node};
use crate::{WINDOW_PEAK, about, address, http, start};

/// Where Debian's packages have programs.
const DIRS: [&str; 3] = ["/usr/bin", "/usr/local/bin", "/bin"];

/// A program of Debian's package `prometheus`; where it is missing, the calling test counts as skipped.
pub fn program(name: &str) -> Option<PathBuf> {
    let mut places = DIRS.iter().map(|dir| Path::new(dir).join(name));
    let found = places.find(|path| path.exists());
    if found.is_none() {
        skipped(&format!(
            "tests of metrics need {name}: `apt-get install prometheus`"
        ));
    }
    found
}

/// One of its own. Dropped, it is gone.
struct Prometheus {
    _dir: TempDir,
    child: Child,
    address: String,
}

impl Prometheus {
    /// Starts one that scrapes `target`.
    fn start(program: &Path, target: &str) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let config = dir.path().join("prometheus.yml");
        let scrape = format!(
            "global:\n  scrape_interval: 1s\n  scrape_timeout: 1s\n\
             scrape_configs:\n- job_name: sw-bpf\n  static_configs:\n  - targets: ['{target}']\n"
        );
        fs::write(&config, scrape).expect("a file");
        let free = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = free.local_addr().expect("an address").to_string();
        drop(free);
        let told = fs::File::create(dir.path().join("told")).expect("a file");
        let child = Command::new(program)
            .arg(format!("--config.file={}", config.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                dir.path().join("data").display()
            ))
            .arg(format!("--web.listen-address={address}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(told)
            .spawn()
            .expect("prometheus starts");
        let prometheus = Self {
            _dir: dir,
            child,
            address,
        };
        wait_until("a scrape", || prometheus.values("up[1m]").contains(&1));
        prometheus
    }

    /// The answer to a query.
    fn query(&self, query: &str) -> Result<Value, String> {
        let mut request = String::from("GET /api/v1/query?query=");
        for byte in query.bytes() {
            write!(request, "%{byte:02x}").expect("a String takes everything");
        }
        request.push_str(" HTTP/1.0\r\n\r\n");
        let (status, body) = http::ask(&self.address, &request);
        if !status.contains(" 200 ") {
            return Err(body);
        }
        serde_json::from_str(&body).map_err(|error| error.to_string())
    }

    /// The numbers of the one series of a range, oldest first.
    fn values(&self, range: &str) -> Vec<u64> {
        if std::net::TcpStream::connect(&self.address).is_err() {
            return Vec::new();
        }
        let told = self.query(range).unwrap_or_default();
        let values = told["data"]["result"][0]["values"].as_array();
        let number = |pair: &Value| pair[1].as_str().expect("text").parse::<f64>().expect("a number");
        values
            .into_iter()
            .flatten()
            .map(|pair| number(pair) as u64)
            .collect()
    }

    /// All that was scraped of a metric of a target.
    fn scraped(&self, name: &str, job: &Job) -> Vec<u64> {
        self.values(&format!(
            "{name}{{cgroup=\"{}\"}}[5m]",
            job.cgroup.path().display()
        ))
    }

    /// Waits for this many more scrapes.
    fn wait_for_scrapes(&self, count: usize) {
        let scrapes = || self.values("up[10m]").len();
        let before = scrapes();
        wait_until("scrapes", || scrapes() >= before + count);
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        self.child.kill().expect("a process of its own");
        self.child.wait().expect("an end");
    }
}

/// Spikes of some milliseconds between two scrapes have their height in the one window that they fall in, or, within the two
/// buckets of time in which one begins, in both beside it.
#[test]
fn a_spike_between_two_scrapes_keeps_its_height() {
    let Some(program) = program("prometheus").filter(|_| need_bpf()) else {
        return;
    };
    let mut node = Node::new();
    start(&mut node, &["--listen", "127.0.0.1:0"]);
    let job = node.job("spiky");
    let prometheus = Prometheus::start(&program, &address(&node));
    wait_until("its series", || !prometheus.scraped(WINDOW_PEAK, &job).is_empty());
    for size in ["100M", "60M", "30M"] {
        job.run(&["anon", "--size", size, "--hold-ms", "5"]);
        prometheus.wait_for_scrapes(3);
    }
    let peaks = prometheus.scraped(WINDOW_PEAK, &job);
    let of = |size: u64| {
        peaks
            .iter()
            .filter(|peak| about(size * MIB).contains(peak))
            .count()
    };
    for size in [100, 60, 30] {
        assert!((1..=2).contains(&of(size)), "{size} MiB in {peaks:?}");
    }
    // What else there is are scrapes in which a process was on its way up or down, and those of an empty cgroup.
    let most = *peaks.iter().max().expect("a peak");
    assert!(about(100 * MIB).contains(&most), "{most}");
    assert!(peaks.last().is_some_and(|last| *last < 30 * MIB), "{peaks:?}");
    let whole = prometheus.scraped("swbpf_job_needed_peak_bytes", &job);
    assert_eq!(whole.last(), Some(&most));
    let bounds = prometheus.scraped("swbpf_job_needed_error_bytes", &job);
    assert!(bounds.iter().all(|bound| *bound == 0), "{bounds:?}");
}

/// One that ends between two scrapes is told once more, with its peak.
#[test]
fn a_job_that_ends_between_two_scrapes_is_scraped() {
    let Some(program) = program("prometheus").filter(|_| need_bpf()) else {
        return;
    };
    let mut node = Node::new();
    start(&mut node, &["--listen", "127.0.0.1:0"]);
    let prometheus = Prometheus::start(&program, &address(&node));
    let job = node.job("brief");
    job.run(&["anon", "--size", "50M", "--hold-ms", "5"]);
    job.remove();
    prometheus.wait_for_scrapes(4);
    let peaks = prometheus.scraped(WINDOW_PEAK, &job);
    assert!(
        peaks.iter().any(|peak| about(50 * MIB).contains(peak)),
        "{peaks:?}"
    );
    // The scrape after that does not have it.
    assert!(peaks.len() <= 3, "{peaks:?}");
    let own = format!("{WINDOW_PEAK}{{cgroup=\"{}\"}}", job.cgroup.path().display());
    let there = prometheus.query(&own).expect("an answer");
    assert_eq!(there["data"]["result"].as_array().map(Vec::len), Some(0));
}

/// Every expression of the dashboard names metrics and labels that there are, and Prometheus answers it with a series: those of
/// steps, which watched cgroups have not, aside. What tells one series from another tells one watched cgroup from another.
#[test]
fn the_dashboard_asks_what_there_is() {
    let Some(program) = program("prometheus").filter(|_| need_bpf()) else {
        return;
    };
    let mut node = Node::new();
    start(&mut node, &["--listen", "127.0.0.1:0"]);
    let job = node.job("shown");
    let limits = ["memory.max", "memory.limit_in_bytes"].map(|name| job.cgroup.path().join(name));
    let limit = limits.iter().find(|file| file.exists()).expect("a limit");
    fs::write(limit, (300 * MIB).to_string()).expect("a limit");
    job.run(&["anon", "--size", "40M", "--hold-ms", "5"]);
    let prometheus = Prometheus::start(&program, &address(&node));
    wait_until("its series", || {
        !prometheus.scraped("swbpf_job_limit_bytes", &job).is_empty()
    });
    // Rates are between two.
    prometheus.wait_for_scrapes(2);
    let known = metrics();
    let mut count = 0;
    for (query, legend) in asked() {
        let names = names(&query);
        assert!(!names.is_empty(), "{query}");
        for name in &names {
            let labels = known.get(name).unwrap_or_else(|| panic!("{name} of {query}"));
            for label in legend.iter().chain(&chosen(&query)) {
                // The first two are Prometheus' own; a watched cgroup has the third in place of `jobid`.
                let is_known = ["instance", "job", "cgroup"].contains(&label.as_str());
                assert!(is_known || labels.contains(&label.as_str()), "{label} of {query}");
            }
            let has = |label: &str| legend.iter().any(|known| known == label);
            let is_of_steps = labels.contains(&"step");
            assert!(
                !has("jobid") || has("cgroup") || is_of_steps,
                "{query}: {legend:?}"
            );
        }
        let told = prometheus
            .query(&query)
            .unwrap_or_else(|why| panic!("{query}: {why}"));
        assert_eq!(told["status"], "success", "{query}");
        let series = told["data"]["result"].as_array().map(Vec::len);
        let is_of_steps = names.iter().any(|name| name.starts_with("swbpf_step_"));
        assert!(is_of_steps || series > Some(0), "{query}: no series");
        count += 1;
    }
    assert!(count > 20, "{count} expressions");
}

/// All metrics, as Prometheus names them, and their labels.
fn metrics() -> BTreeMap<String, Vec<&'static str>> {
    let described = described().into_iter().flat_map(|(_, metrics)| metrics);
    described.map(|metric| (metric.name, metric.labels)).collect()
}

/// What the dashboard asks, with its variables filled in, and the labels of the legend; what fills its variables is among it.
fn asked() -> Vec<(String, Vec<String>)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/grafana/sw-bpf.json");
    let text = fs::read_to_string(path).expect("the dashboard");
    let dashboard: Value = serde_json::from_str(&text).expect("JSON");
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut asked = Vec::new();
    for panel in list(&dashboard["panels"]) {
        // Those of a row that is folded would be in it.
        assert!(list(&panel["panels"]).is_empty(), "{panel}");
        for target in list(&panel["targets"]) {
            let legend = target["legendFormat"].as_str().unwrap_or_default();
            let legend = between(legend, "{{", "}}");
            asked.push((target["expr"].as_str().expect("an expression").to_owned(), legend));
        }
    }
    for variable in list(&dashboard["templating"]["list"]) {
        let query = variable["query"]["query"].as_str().unwrap_or_default();
        for of_labels in between(query, "label_values(", ")") {
            let (metric, label) = of_labels.rsplit_once(", ").expect("a label");
            asked.push((format!("count by ({label}) ({metric})"), Vec::new()));
        }
    }
    for (query, _) in &mut asked {
        for (variable, value) in [
            ("$__rate_interval", "1m"),
            ("$__range", "1h"),
            ("$instance", ".+"),
            ("$job", ".*"),
        ] {
            *query = query.replace(variable, value);
        }
        assert!(!query.contains('$'), "{query}");
    }
    asked
}

/// The metrics of an expression.
fn names(query: &str) -> Vec<String> {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = query.split(|c| !is_of_name(c));
    words
        .filter(|word| word.starts_with("swbpf_"))
        .map(str::to_owned)
        .collect()
}

/// The labels by which an expression chooses, and those that it tells apart.
fn chosen(query: &str) -> Vec<String> {
    let chosen = [between(query, "{", "}"), between(query, "by (", ")")].concat();
    let each = chosen.iter().flat_map(|chosen| chosen.split(','));
    each.map(|one| one.split(['=', '!']).next().unwrap_or_default().to_owned())
        .collect()
}

/// What stands between these two, each time.
fn between(text: &str, begin: &str, end: &str) -> Vec<String> {
    let parts = text.split(begin).skip(1);
    parts
        .filter_map(|part| part.split_once(end))
        .map(|(inside, _)| inside.to_owned())
        .collect()
}
