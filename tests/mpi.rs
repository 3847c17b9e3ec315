//! Tests of runs in several processes, with the real binary under `mpirun`.
#![cfg(feature = "mpi")]
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod common;

use common::{Failures, luthier, ok_in, skip, stderr, stdout};
use luthier::core::random::{Purpose, Stream};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

/// Environment that allows Open MPI to run as root, with more processes than cores.
const LAUNCHER: [(&str, &str); 4] = [
    ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
    ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
    ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
    ("OMPI_MCA_mpi_yield_when_idle", "1"),
];

fn mpirun(dir: &Path) -> Command {
    let mut command = Command::new("mpirun");
    command.envs(LAUNCHER).current_dir(dir).args(["--bind-to", "none"]);
    command
}

/// Returns a command that starts `n` processes with the same arguments.
fn processes(dir: &Path, n: u32, words: &str) -> Command {
    let mut command = mpirun(dir);
    command.args(["-n", &n.to_string(), env!("CARGO_BIN_EXE_luthier")]).args(words.split_whitespace());
    command
}

fn ok_with(dir: &Path, n: u32, words: &str) -> String {
    let output = processes(dir, n, words).output().unwrap();
    assert!(output.status.success(), "{n} processes: {words}\n{}", stderr(&output));
    stdout(&output).to_owned()
}

/// Generates the corpus `c` and trains the model `m` on it.
fn small_model(dir: &Path, kind: &str) {
    ok_in(dir, "generate --output c --train 800 --dev 30 --test 40 -q");
    ok_in(dir, &format!("train --source c/train.de --target c/train.en --model m -q {kind}"));
}

/// Returns the best weights and the log of a run, without times.
fn left(run: &Path) -> (String, String) {
    let read = |name: &str| fs::read_to_string(run.join(name)).unwrap();
    let mut log = String::new();
    for line in read("log.jsonl").lines() {
        let mut event: serde_json::Map<String, serde_json::Value> = serde_json::from_str(line).unwrap();
        event.retain(|key, _| !key.ends_with("seconds"));
        log += &format!("{}\n", serde_json::Value::Object(event));
    }
    (read("best.txt"), log)
}

/// Every algorithm gives the same result in one, two and four processes with one and two threads each.
#[test]
fn runs_do_not_depend_on_processes_and_threads() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    small_model(dir, "--max-length 3");
    fs::write(dir.join("zero"), "WordPenalty0 0\nDistortion0 0\n").unwrap();
    let common = "--model m --source c/dev.de --ref c/dev.en --iterations 2 --nbest-size 20 --pop-limit 30 --stack-size 20 -q";
    let select = "--select-source c/test.de --select-ref c/test.en";
    let sparse = "--sparse arun-koehn --dense WordPenalty0,Distortion0 --init zero";
    for (name, words) in [
        ("mert", format!("mert --restarts 5 --budget 300 {common} {select}")),
        ("koehn", format!("mert --strategy koehn --restarts 5 --rounds 2 {common} {select}")),
        ("pro", format!("pro --sparse phrase-length {common} --test-source c/test.de --test-ref c/test.en")),
        ("apro", format!("apro {common}")),
        ("xbleu", format!("xbleu {common}")),
        ("xbleu-forest", format!("xbleu --on forest --density 20 {}", common.replace("--nbest-size 20", ""))),
        ("mira", format!("mira --epochs 3 {common}")),
        ("mira-shards", format!("mira --constraints surrogate {sparse} --shards 4 {common} {select}")),
        ("perceptron", format!("perceptron {sparse} --shards 4 {common}")),
        ("oro", format!("oro --shards 3 --batch-size 4 {common} {select}")),
        ("o-oro", format!("oro --optimized --shards 4 --batch-size 4 --mixing average {common}")),
    ] {
        ok_in(dir, &format!("tune {words} --run {name} --threads 1"));
        let expected = left(&dir.join(name));
        for n in [1, 2, 4] {
            for threads in [1, 2] {
                let run = format!("{name}-{n}-{threads}");
                ok_with(dir, n, &format!("tune {words} --run {run} --threads {threads}"));
                assert_eq!(left(&dir.join(&run)), expected, "{run}");
                let traffic = fs::read_to_string(dir.join(&run).join("traffic.jsonl"));
                assert_eq!(traffic.is_ok(), n > 1, "{run}");
                let lines = traffic.unwrap_or_default();
                assert!(lines.lines().all(|l| l.contains("\"bytes\":")), "{lines}");
            }
        }
    }
}

/// External decoders and fixed lists give the same result in several processes.
#[test]
fn other_sources() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    common::write_pool(dir);
    small_model(dir, "--max-length 3");
    let decoder = format!(
        "{} decode --model m --weights {{weights}} --input {{source}} --nbest {{k}} --nbest-out {{nbest}} -q",
        env!("CARGO_BIN_EXE_luthier")
    );
    let external = |run: &str, command: &mut Command| {
        let words = format!(
            "tune pro --source c/dev.de --ref c/dev.en --run {run} --iterations 2 --nbest-size 10 -q"
        );
        let init = "m/weights.txt";
        let output = command
            .args(words.split_whitespace())
            .args(["--init", init, "--command", &decoder])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
    };
    external("e1", luthier().current_dir(dir));
    let mut three = mpirun(dir);
    external("e3", three.args(["-n", "3", env!("CARGO_BIN_EXE_luthier")]));
    assert_eq!(left(&dir.join("e3")), left(&dir.join("e1")));
    for algorithm in ["mert --certify --certify-programs 50", "softmax", "oro --shards 2 --iterations 3"] {
        let name = algorithm.split(' ').next().unwrap();
        let words = format!("tune {algorithm} --nbest nbest --ref ref -q --run {name}");
        ok_in(dir, &format!("{words}-1"));
        ok_with(dir, 3, &format!("{words}-3"));
        assert_eq!(left(&dir.join(format!("{name}-3"))), left(&dir.join(format!("{name}-1"))));
    }
}

/// Lines keep their order, one process reads and writes, and errors are printed once.
#[test]
fn decoding() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    small_model(dir, "--kind hiero");
    let text: String = ["c/train.de", "c/dev.de"].map(|f| fs::read_to_string(dir.join(f)).unwrap()).concat();
    let text: Vec<&str> = text.lines().skip(500).collect();
    fs::write(dir.join("text"), text.join("\n") + "\n").unwrap();
    let words = "decode --model m --input text --nbest 3 --pop-limit 20";
    ok_in(dir, &format!("{words} -o one --nbest-out one.nbest"));
    let out = ok_with(dir, 3, &format!("{words} --nbest-out three.nbest --threads 1"));
    let read = |name: &str| fs::read_to_string(dir.join(name)).unwrap();
    assert_eq!(out, read("one"));
    assert_eq!(read("three.nbest"), read("one.nbest"));
    ok_in(dir, "decode --model m --input text --forest-out f --forest-kind grammar -q");
    assert_eq!(ok_with(dir, 2, "decode --model m --forests f --pop-limit 20"), read("one"));
    // The first process reads standard input.
    let mut child = processes(dir, 2, "decode --model m --pop-limit 20")
        .stdin(fs::File::open(dir.join("text")).unwrap())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut got = String::new();
    std::io::Read::read_to_string(child.stdout.as_mut().unwrap(), &mut got).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(got, read("one"));
    fs::write(dir.join("bad"), b"ein haus\n\xff\n").unwrap();
    let failures = Failures::default();
    for (words, message) in [
        ("decode --model m --input bad", "luthier: bad:2: "),
        ("decode --model nowhere", "luthier: nowhere: does not exist, expected a model directory"),
        ("decode --modle m", "luthier: `decode` has no flag --modle; did you mean --model?"),
        (
            "score one --ref one",
            "luthier: luthier score runs in one process, but 2 were started; only tune and decode",
        ),
        (
            "decode --model m --forest-out g --forest-kind grammar --input text",
            "luthier: luthier decode --forest-kind grammar runs in",
        ),
        ("tune mert --nbest one.nbest --ref one --metric x --run r", "luthier: --metric: unknown metric `x`"),
        ("tune mert --nbest one.nbest --ref nowhere --run r", "luthier: nowhere: cannot open it"),
        (
            "tune mert --nbest one.nbest --ref - --run r",
            "luthier: standard input is available to the first process only",
        ),
        (
            "decode --model m --weights - --input text",
            "luthier: standard input is available to the first process only",
        ),
    ] {
        failures.row(words, || {
            let output = processes(dir, 2, words).arg("-q").output().unwrap();
            assert!(told(&output).starts_with(message), "{words}");
            assert!(!dir.join("r").exists() && !dir.join("g").exists());
        });
    }
    // A failure of the final output, which only the first process writes.
    let full = "tune pro --nbest one.nbest --ref text --run r -q";
    for _ in 0..3 {
        let mut command = mpirun(dir);
        command.args([
            "-n",
            "3",
            "sh",
            "-c",
            "exec \"$0\" \"$@\" > /dev/full",
            env!("CARGO_BIN_EXE_luthier"),
        ]);
        let child = command.args(full.split_whitespace()).stderr(Stdio::piped()).spawn().unwrap();
        let output = end_soon(child, "full");
        assert!(told(&output).contains("<stdout>: cannot write to it"), "{}", stderr(&output));
    }
    let child = processes(dir, 2, "decode --model m --input text --nbest 1 --nbest-out /dev/full -o out")
        .stderr(Stdio::piped())
        .spawn();
    assert!(told(&end_soon(child.unwrap(), "full")).contains("/dev/full: "));
}

/// Asserts exit code 2 and one line of luthier in the output of `mpirun`, and returns that line.
fn told(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2), "{}", stderr(output));
    let lines: Vec<&str> = stderr(output).lines().filter(|l| l.starts_with("luthier: ")).collect();
    assert_eq!(lines.len(), 1, "{}", stderr(output));
    lines[0].to_owned()
}

/// Processes that would compute different results are rejected before work begins.
#[test]
fn unequal_processes_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    for side in ["a", "b"] {
        fs::create_dir(dir.join(side)).unwrap();
        common::write_pool(&dir.join(side));
    }
    let binary = env!("CARGO_BIN_EXE_luthier");
    let other = dir.join("luthier");
    fs::copy(binary, &other).unwrap();
    fs::OpenOptions::new()
        .append(true)
        .open(&other)
        .and_then(|mut f| std::io::Write::write_all(&mut f, b"x"))
        .unwrap();
    let text = fs::read_to_string(dir.join("b/nbest")).unwrap();
    let run = |side: &str, binary: &str, more: &str| {
        format!(
            "-n 1 -wdir {}/{side} {binary} tune pro --nbest nbest --ref ref --run {}/r -q {more}",
            dir.display(),
            dir.display()
        )
    };
    let refused = |first: &str, second: &str| {
        let output = mpirun(dir)
            .args(first.split_whitespace())
            .arg(":")
            .args(second.split_whitespace())
            .output()
            .unwrap();
        assert!(!dir.join("r").exists());
        told(&output)
    };
    let message = refused(&run("a", binary, ""), &run("a", binary, "--seed 7"));
    assert!(message.contains("process 1 on ") && message.contains("seed is 7 there and 1 here"), "{message}");
    let message = refused(&run("a", binary, ""), &run("a", other.to_str().unwrap(), ""));
    assert!(message.contains("has a different build of luthier"), "{message}");
    // Different commands, and different arguments of one command.
    let there = |words: &str| format!("-n 1 -wdir {}/a {binary} {words}", dir.display());
    let message = refused(&run("a", binary, ""), &there("score ref --ref ref"));
    assert!(message.contains("was given a different command than process 0"), "{message}");
    let message = refused(&run("a", binary, ""), &there("tune --list"));
    assert!(message.contains("was given a different command than process 0"), "{message}");
    let message = refused(&run("a", binary, ""), &there("tune pro --wrong"));
    assert!(message.contains("has no flag --wrong"), "{message}");
    fs::write(dir.join("b/nbest"), text.replacen("rot", "see", 1)).unwrap();
    let message = refused(&run("a", binary, ""), &run("b", binary, ""));
    assert!(message.contains("has different inputs or settings: the input nbest is"), "{message}");
    fs::remove_file(dir.join("b/ref")).unwrap();
    let message = refused(&run("a", binary, ""), &run("b", binary, ""));
    assert!(message.contains("process 1 on ") && message.contains("ref: cannot open it"), "{message}");
}

/// Arguments of a run that takes a few seconds.
const LONG: &str = "--model m --source c/dev.de --ref c/dev.en --iterations 8 --nbest-size 30 --pop-limit 60";

/// Returns the ids of the child processes of a process.
fn children(of: u32) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let mut fields = stat.rsplit(") ").next().unwrap_or_default().split(' ');
        if fields.nth(1).and_then(|p| p.parse().ok()) == Some(of) {
            found.push(pid);
        }
    }
    found.sort_unstable();
    found
}

/// Waits for a job to end and returns its output; panics after a minute, far more than it takes on a busy machine.
fn end_soon(mut child: Child, what: &str) -> Output {
    let clock = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if clock.elapsed() > Duration::from_mins(1) {
            let _ = child.kill();
            panic!("{what}: the job is still there after a minute");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.wait_with_output().unwrap()
}

/// One of three processes is killed at a random time, five times: the job ends, and the resumed run gives the same result.
#[test]
fn a_lost_process_ends_the_job_and_nothing_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    small_model(dir, "--max-length 3");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let mut random = Stream::new(u64::from(now.subsec_nanos()), Purpose::Test, 0, 0);
    for algorithm in ["mert", "oro --shards 3"] {
        let words = format!("tune {algorithm} {LONG} --threads 1 --run");
        ok_in(dir, &format!("{words} whole -q"));
        let mut killed = 0;
        while killed < 5 {
            let delay = 200 + random.below(700);
            let child = processes(dir, 3, &format!("{words} cut"))
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            std::thread::sleep(Duration::from_millis(delay));
            let ranks = children(child.id());
            let Some(&victim) = ranks.get(random.below(3) as usize) else {
                // The job has not started its processes yet, or has already ended.
                let ended = child.wait_with_output().unwrap().status.success();
                if ended {
                    fs::remove_dir_all(dir.join("cut")).unwrap();
                }
                continue;
            };
            assert!(Command::new("kill").args(["-9", &victim.to_string()]).status().unwrap().success());
            let what = format!("{algorithm} after {delay} ms, {victim} of {ranks:?}");
            let output = end_soon(child, &what);
            if output.status.success() {
                continue; // the run was already complete
            }
            assert!(stderr(&output).contains("on signal 9"), "{what}: {}", stderr(&output));
            killed += 1;
        }
        let output = processes(dir, 3, &format!("{words} cut")).output().unwrap();
        assert!(output.status.success());
        let said = "3 processes; if one is lost, all end: re-run the same command to resume";
        assert!(stderr(&output).contains(said), "{}", stderr(&output));
        assert_eq!(left(&dir.join("cut")), left(&dir.join("whole")), "{algorithm}");
        for run in ["cut", "whole"] {
            fs::remove_dir_all(dir.join(run)).unwrap();
        }
    }
}

/// Three simulated machines: network namespaces with their own host names and addresses, connected by a bridge.
struct Hosts {
    names: Vec<String>,
    bridge: String,
    /// Script that runs a command on one of the machines, in place of ssh.
    agent: PathBuf,
}

fn sh(script: &str) -> bool {
    let output = Command::new("sh").args(["-ec", script]).output().unwrap();
    if !output.status.success() {
        eprintln!("{script}: {}", stderr(&output));
    }
    output.status.success()
}

impl Hosts {
    fn new(dir: &Path) -> Option<Self> {
        let id = std::process::id() % 10_000;
        let (bridge, agent) = (format!("lb{id}"), dir.join("agent"));
        let script = "#!/bin/sh\nhost=$1\nshift\nexec ip netns exec $host unshare --uts sh -c \"hostname $host; $*\"\n";
        fs::write(&agent, script).unwrap();
        sh(&format!("chmod +x {}", agent.display()));
        let names: Vec<String> = (1..=3).map(|k| format!("lh{id}n{k}")).collect();
        if !sh(&format!("ip link add {bridge} type bridge && ip link set {bridge} up")) {
            return None;
        }
        let hosts = Hosts { names, bridge: bridge.clone(), agent };
        for (name, k) in hosts.names.iter().zip(1..) {
            let link = format!("lv{id}n{k}");
            let made = sh(&format!(
                "ip netns add {name}; ip link add {link} type veth peer name eth0 netns {name}; \
                 ip link set {link} master {bridge} up; ip -n {name} addr add 10.213.77.{k}/24 dev eth0; \
                 ip -n {name} link set eth0 up; ip -n {name} link set lo up"
            ));
            if !made {
                return None;
            }
        }
        Some(hosts)
    }

    /// Returns a command that starts one process on each machine, from the first.
    fn job(&self, dir: &Path, words: &str) -> Command {
        let launcher: String = LAUNCHER.iter().map(|(k, v)| format!("{k}={v} ")).collect();
        let hosts = self.names.iter().map(|h| format!("{h}:1")).collect::<Vec<_>>().join(",");
        let line = format!(
            "cd {}; {launcher} exec mpirun --mca plm_rsh_agent {} --host {hosts} -n 3 --map-by ppr:1:node --bind-to none \
             --mca btl tcp,self --mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0 \
             --mca oob_tcp_keepalive_time 2 --mca oob_tcp_keepalive_intvl 1 --mca oob_tcp_keepalive_probes 2 \
             {} {words}",
            dir.display(),
            self.agent.display(),
            env!("CARGO_BIN_EXE_luthier")
        );
        let mut command = Command::new(&self.agent);
        command.args([&self.names[0], &line]);
        command
    }

    /// Sets the network link of the last machine `down` or `up`.
    fn cable(&self, state: &str) {
        assert!(sh(&format!("ip -n {} link set eth0 {state}", self.names[2])));
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in &self.names {
            sh(&format!("ip netns pids {name} | xargs -r kill -9; ip netns del {name} || true"));
        }
        sh(&format!("ip link del {}", self.bridge));
    }
}

/// Three machines run one job; the run is resumed after one of them loses its network connection.
#[test]
fn hosts_with_their_own_addresses() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    small_model(dir, "--max-length 3");
    let Some(hosts) = Hosts::new(dir) else {
        return skip("network namespaces cannot be made here (it takes root and the program `ip`)");
    };
    let words = format!("tune oro --shards 3 {LONG} --threads 1 --run");
    ok_in(dir, &format!("{words} whole -q"));
    let output = hosts.job(dir, &format!("{words} three")).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(left(&dir.join("three")), left(&dir.join("whole")));
    // The connection is lost during the job.
    let child = hosts
        .job(dir, &format!("{words} cut"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let clock = Instant::now();
    while !dir.join("cut/state/002.json").exists() && clock.elapsed() < Duration::from_mins(1) {
        std::thread::sleep(Duration::from_millis(5));
    }
    hosts.cable("down");
    let output = end_soon(child, "cut off");
    assert!(!output.status.success());
    let message = stderr(&output);
    assert!(message.contains("lost communication") && message.contains(&hosts.names[2]), "{message}");
    hosts.cable("up");
    let output = hosts.job(dir, &format!("{words} cut")).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(left(&dir.join("cut")), left(&dir.join("whole")));
}

/// Processes of a launcher that MPI does not support are rejected, because each would do all the work.
#[test]
fn launchers_that_mpi_does_not_know() {
    let output =
        luthier().args(["tune", "--list"]).env("PMI_RANK", "0").env("PMI_SIZE", "2").output().unwrap();
    assert!(told(&output).starts_with("luthier: 2 processes were started, but MPI reports one; "));
}
