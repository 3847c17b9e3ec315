//! Counters of the server, in Prometheus' text format.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// Upper bounds of the histogram of response times, in seconds.
const BOUNDS: [f64; 10] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0];

/// What has been served since the start.
#[derive(Default)]
pub(super) struct Metrics {
    counts: Mutex<Counts>,
    /// Number of sentences that were translated.
    pub(super) sentences: AtomicU64,
}

#[derive(Default)]
struct Counts {
    /// Number of answers by route and status.
    answers: BTreeMap<(String, u16), u64>,
    /// Number of answers of `/translate` within each bound and not within the one before; the last number is that of all others.
    times: [u64; BOUNDS.len() + 1],
    /// Sum of the response times of `/translate`, in seconds.
    seconds: f64,
}

impl Metrics {
    /// Counts an answer; `route` is one of the server's, so that the number of counters is bounded.
    pub(super) fn count(&self, route: &str, status: u16, time: Duration) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.answers.entry((route.to_owned(), status)).or_insert(0) += 1;
        if route == "/translate" {
            let seconds = time.as_secs_f64();
            let bucket = BOUNDS.iter().position(|b| seconds <= *b).unwrap_or(BOUNDS.len());
            counts.times[bucket] += 1;
            counts.seconds += seconds;
        }
    }

    /// Returns all counters; `queued` is the number of requests that are translated or wait.
    pub(super) fn text(&self, queued: usize) -> String {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut out = String::new();
        let head = |out: &mut String, name: &str, kind: &str, help: &str| {
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
        };
        head(&mut out, "luthier_answers_total", "counter", "Answers by route and status.");
        for ((route, status), n) in &counts.answers {
            let _ = writeln!(out, "luthier_answers_total{{route=\"{route}\",status=\"{status}\"}} {n}");
        }
        let time = "luthier_translate_seconds";
        head(&mut out, time, "histogram", "Time until the answer of /translate began.");
        let mut total = 0;
        let bounds = BOUNDS.iter().map(ToString::to_string).chain(["+Inf".to_owned()]);
        for (bound, n) in bounds.zip(counts.times) {
            total += n;
            let _ = writeln!(out, "{time}_bucket{{le=\"{bound}\"}} {total}");
        }
        let _ = writeln!(out, "{time}_sum {}\n{time}_count {total}", counts.seconds);
        head(&mut out, "luthier_sentences_total", "counter", "Sentences translated.");
        let _ = writeln!(out, "luthier_sentences_total {}", self.sentences.load(Ordering::Relaxed));
        head(&mut out, "luthier_queued_requests", "gauge", "Requests that are translated or wait.");
        let _ = writeln!(out, "luthier_queued_requests {queued}");
        if let Some(bytes) = resident() {
            head(&mut out, "process_resident_memory_bytes", "gauge", "Resident memory.");
            let _ = writeln!(out, "process_resident_memory_bytes {bytes}");
        }
        out
    }
}

/// Returns the resident memory of this process in bytes; `None` where /proc does not exist.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}
