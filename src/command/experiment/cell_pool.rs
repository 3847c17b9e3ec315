//! Cells of an experiment as parallel processes, limited by number, threads and memory.

use crate::subprocess::{Rerun, last_error, shell_quote};
use luthier::core::{Error, Result};
use std::{
    collections::VecDeque,
    fs,
    path::{Path, PathBuf},
    process::{Child, Stdio},
};

/// Resources that all running cells may use together.
pub(super) struct Limits {
    /// Number of threads.
    pub(super) threads: usize,
    /// Maximum number of cells that run in parallel.
    pub(super) jobs: usize,
    /// Memory in bytes.
    pub(super) memory: u64,
}

/// A cell: one replica of a group.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell {
    /// Index of the group.
    pub(super) group: usize,
    /// Number of the replica, from 0.
    pub(super) replica: u32,
}

/// Returns a function that describes an error of the file system.
pub(super) fn failed(path: &Path, doing: &str) -> impl FnOnce(std::io::Error) -> Error {
    let name = path.display().to_string();
    let doing = doing.to_owned();
    move |e| Error::io(name, &doing, &e)
}

/// A cell that is running.
pub(super) struct Running {
    pub(super) cell: Cell,
    system: usize,
    steps: VecDeque<Vec<String>>,
    child: Child,
    /// The `tune` command of the cell.
    command: String,
    /// Resident memory at the last measurement, in bytes.
    now: u64,
    /// Peak of the resident memory, in bytes.
    peak: u64,
}

/// A cell that has ended: its `tune` command or its error, and its peak memory in bytes.
pub(super) type Ended = (Cell, Result<String>, u64);

/// The cells that are running, and the memory that cells of each system need.
pub(super) struct CellPool<'a> {
    limits: &'a Limits,
    rerun: &'a Rerun<'a>,
    pub(super) running: Vec<Running>,
    /// Largest peak memory of the cells of each system so far, in bytes; 0 before the first one.
    peaks: Vec<u64>,
    /// Maximum number of cells that run in parallel; reduced when memory was insufficient.
    most: usize,
}

/// Assumed memory of a cell, in bytes, before one of its system has been measured.
const UNKNOWN: u64 = 512 << 20;

impl<'a> CellPool<'a> {
    pub(super) fn new(limits: &'a Limits, rerun: &'a Rerun<'a>, systems: usize) -> Self {
        CellPool { limits, rerun, running: Vec::new(), peaks: vec![0; systems], most: limits.jobs }
    }

    /// Records the peak memory of a cell of a system, in bytes.
    pub(super) fn known(&mut self, system: usize, memory: u64) {
        self.peaks[system] = self.peaks[system].max(memory);
    }

    /// Returns whether another cell of a system fits into the limits; always true if no cell is running.
    pub(super) fn has_room(&self, system: usize) -> bool {
        let need = |system: usize| if self.peaks[system] > 0 { self.peaks[system] } else { UNKNOWN };
        let taken: u64 = self.running.iter().map(|r| r.peak.max(need(r.system))).sum();
        self.running.is_empty()
            || (self.running.len() < self.most && taken + need(system) <= self.limits.memory)
    }

    /// Starts the first command of a cell; the others follow.
    pub(super) fn start(
        &mut self,
        cell: Cell,
        system: usize,
        mut steps: VecDeque<Vec<String>>,
        dir: &Path,
    ) -> Result<()> {
        let first = steps.pop_front().unwrap_or_default();
        let child = self.launch(&first, dir)?;
        self.running.push(Running {
            cell,
            system,
            steps,
            child,
            command: shell_quote(&first),
            now: 0,
            peak: 0,
        });
        Ok(())
    }

    /// Starts a command with its share of the threads; standard error goes to `stderr.txt` in `dir`.
    fn launch(&self, words: &[String], dir: &Path) -> Result<Child> {
        let threads = (self.limits.threads / self.limits.jobs).max(1).to_string();
        let errors = dir.join("stderr.txt");
        let file = fs::File::create(&errors).map_err(failed(&errors, "write it"))?;
        let mut command = self.rerun.command(words);
        command.args(["--threads", &threads]).stdout(Stdio::null()).stderr(file);
        command.spawn().map_err(|e| Error::io("luthier", "start a subprocess", &e))
    }

    /// Measures the memory of all running cells.
    pub(super) fn measure(&mut self) {
        for r in &mut self.running {
            if let Some((now, peak)) = memory(r.child.id()) {
                r.now = now;
                r.peak = r.peak.max(peak);
                self.peaks[r.system] = self.peaks[r.system].max(r.peak);
            }
        }
    }

    /// Stops the cell that was started last if all running cells together exceed the memory limit, and returns it.
    pub(super) fn make_room(&mut self) -> Option<Cell> {
        let all: u64 = self.running.iter().map(|r| r.now).sum();
        if all <= self.limits.memory || self.running.len() < 2 {
            return None;
        }
        let mut last = self.running.pop()?;
        let _ = last.child.kill();
        let _ = last.child.wait();
        self.most = self.running.len().max(1);
        Some(last.cell)
    }

    /// Returns the cells that are complete or have failed, and starts the next command of cells whose command has
    /// ended.
    pub(super) fn ended(&mut self, dir: &dyn Fn(Cell) -> PathBuf) -> Result<Vec<Ended>> {
        let mut ended = Vec::new();
        let mut still = Vec::new();
        for mut r in std::mem::take(&mut self.running) {
            let Some(status) = r.child.try_wait().map_err(|e| Error::io("luthier", "wait for it", &e))?
            else {
                still.push(r);
                continue;
            };
            let dir = dir(r.cell);
            if !status.success() {
                let text = fs::read_to_string(dir.join("stderr.txt")).unwrap_or_default();
                let how = match status.code() {
                    Some(_) => last_error(&text),
                    None if std::os::unix::process::ExitStatusExt::signal(&status) == Some(2) => {
                        Error::interrupted()
                    }
                    None => Error::new(status.to_string()),
                };
                ended.push((r.cell, Err(how), r.peak));
            } else if let Some(next) = r.steps.pop_front() {
                r.child = self.launch(&next, &dir)?;
                still.push(r);
            } else {
                let _ = fs::remove_file(dir.join("stderr.txt"));
                ended.push((r.cell, Ok(r.command), r.peak));
            }
        }
        self.running = still;
        Ok(ended)
    }
}

impl Drop for CellPool<'_> {
    /// Kills the running cells when an error ends the experiment.
    fn drop(&mut self) {
        for r in &mut self.running {
            let _ = r.child.kill();
            let _ = r.child.wait();
        }
    }
}

/// Returns the current and the peak resident memory of a process in bytes; `None` where /proc is not available.
fn memory(process: u32) -> Option<(u64, u64)> {
    let text = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let field = |name: &str| {
        let line = text.lines().find_map(|l| l.strip_prefix(name))?;
        Some(line.trim().trim_end_matches(" kB").parse::<u64>().ok()? << 10)
    };
    Some((field("VmRSS:")?, field("VmHWM:")?))
}

/// Returns three quarters of the available memory in bytes; no limit where /proc is not available.
pub(super) fn free_memory() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"));
    let free = line.and_then(|l| l.trim().trim_end_matches(" kB").parse::<u64>().ok());
    free.map_or(u64::MAX, |kb| (kb << 10) / 4 * 3)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::{command::Common, talk::Talk};
    use std::{thread::sleep, time::Duration};

    /// Cells are started according to the memory that earlier cells of their system needed; if they need more, the
    /// cell that was started last is stopped. A failed command is reported with the last line of its standard error.
    #[test]
    fn the_memory_limit_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let common = Common { quiet: true, json_errors: true, ..Common::default() };
        let rerun = Rerun::new(&common, Talk { quiet: true, ..Talk::default() }).unwrap().with_program("sh");
        let limits = Limits { threads: 4, jobs: 3, memory: 60 << 20 };
        let mut pool = CellPool::new(&limits, &rerun, 1);
        let steps = |script: &str| VecDeque::from([vec!["-c".to_owned(), script.to_owned()]]);
        let cell = |replica| Cell { group: 0, replica };
        let at = |_: Cell| dir.path().to_owned();
        pool.known(0, 25 << 20);
        for replica in 0..2 {
            assert!(pool.has_room(0));
            let much = "x=$(head -c 50000000 /dev/zero | tr '\\0' a); sleep 20; echo $x";
            pool.start(cell(replica), 0, steps(much), dir.path()).unwrap();
        }
        assert!(!pool.has_room(0), "a third cell would exceed the limit");
        let mut stopped = None;
        for _ in 0..600 {
            pool.measure();
            stopped = pool.make_room();
            if stopped.is_some() {
                break;
            }
            assert!(pool.ended(&at).unwrap().is_empty());
            sleep(Duration::from_millis(50));
        }
        assert_eq!(stopped.map(|c| c.replica), Some(1));
        assert_eq!((pool.running.len(), pool.has_room(0)), (1, false));
        drop(pool);
        // The second command of a cell fails.
        let mut pool = CellPool::new(&limits, &rerun, 1);
        let mut two = steps("exit 0");
        two.extend(steps("echo luthier: bad >&2; exit 2"));
        pool.start(cell(7), 0, two, dir.path()).unwrap();
        let mut ended = Vec::new();
        while ended.is_empty() {
            sleep(Duration::from_millis(10));
            ended = pool.ended(&at).unwrap();
        }
        let (which, how, _) = ended.remove(0);
        assert_eq!((which.replica, how), (7, Err(Error::new("bad"))));
    }
}
