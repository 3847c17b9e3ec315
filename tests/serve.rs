//! Tests of `luthier serve`: answers, limits, clients that misbehave, the end of the server, load, its page and its
//! documentation.
#![cfg(feature = "serve")]
#![allow(clippy::unwrap_used)]

mod common;

use common::{in_dir, luthier, ok_in, stderr};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::OnceLock,
    thread,
    time::{Duration, Instant},
};

/// Returns a directory with a corpus and three models: `phrase`, `hiero` and `raw`.
fn models() -> &'static Path {
    static MODELS: OnceLock<PathBuf> = OnceLock::new();
    MODELS.get_or_init(|| {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("serve");
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        ok_in(&dir, "generate --output c --train 600 --dev 2 --test 30 -q");
        let train = "train --source c/train.de --target c/train.en -q --model";
        ok_in(&dir, &format!("{train} phrase"));
        ok_in(&dir, &format!("{train} hiero --kind hiero"));
        let capital = |line: &str| {
            let mut letters = line.chars();
            letters.next().map(|c| c.to_uppercase().to_string() + letters.as_str()).unwrap_or_default() + "\n"
        };
        for side in ["de", "en"] {
            let text = fs::read_to_string(dir.join(format!("c/train.{side}"))).unwrap();
            let raw: String =
                text.lines().map(|l| capital(&l.replace(" .", ".").replace(" ,", ","))).collect();
            fs::write(dir.join(format!("c/raw.{side}")), raw).unwrap();
        }
        ok_in(&dir, "train --raw --source c/raw.de --target c/raw.en -q --model raw");
        dir
    })
}

/// A running server.
struct Server {
    child: Child,
    /// Address and port.
    address: String,
}

impl Server {
    fn start(flags: &str) -> Self {
        let mut child = luthier()
            .args(["serve", "--listen", "127.0.0.1:0", "-q"])
            .args(flags.split_whitespace())
            .current_dir(models())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("http://").unwrap_or_else(|| panic!("{line:?}")).to_owned();
        Server { child, address }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
        stream
    }

    /// Sends a request and returns the connection.
    fn send(&self, head: &str, body: &str) -> TcpStream {
        let mut stream = self.connect();
        let host =
            if head.contains("\nHost:") { String::new() } else { format!("Host: {}\r\n", self.address) };
        let head = head.replace('\n', "\r\n");
        // A server that refuses a request early may close the connection.
        let _ = write!(
            stream,
            "{head}\r\n{host}Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream
    }

    fn ask(&self, head: &str, body: &str) -> Answer {
        Answer::read(self.send(head, body))
    }

    fn get(&self, path: &str) -> Answer {
        self.ask(&format!("GET {path} HTTP/1.1"), "")
    }

    fn post(&self, body: &Value) -> Answer {
        self.ask(POST, &body.to_string())
    }

    /// Asks for lines and returns the connection after the first one.
    fn begin_lines(&self, body: &Value) -> BufReader<TcpStream> {
        let mut reader = BufReader::new(self.send(LINES, &body.to_string()));
        let mut line = String::new();
        while !line.starts_with("{\"id\":0") {
            line.clear();
            assert!(reader.read_line(&mut line).unwrap() > 0);
        }
        reader
    }

    /// Returns a number of `/metrics`.
    fn metric(&self, name: &str) -> f64 {
        let text = self.get("/metrics").body;
        let line = text.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name} in {text}")).parse().unwrap()
    }

    fn terminate(&self) {
        assert!(Command::new("kill").arg(self.child.id().to_string()).status().unwrap().success());
    }

    fn wait(mut self) -> Output {
        let mut output =
            Output { status: self.child.wait().unwrap(), stdout: Vec::new(), stderr: Vec::new() };
        self.child.stdout.take().unwrap().read_to_end(&mut output.stdout).unwrap();
        self.child.stderr.take().unwrap().read_to_end(&mut output.stderr).unwrap();
        output
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const POST: &str = "POST /translate HTTP/1.1\nContent-Type: application/json";
const LINES: &str = "POST /translate HTTP/1.1\nContent-Type: application/json\nAccept: application/x-ndjson";

/// An HTTP answer.
#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    /// Reads an answer until its connection is closed.
    fn read(mut stream: impl Read) -> Self {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{text:?}"));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let body = if head.contains("transfer-encoding: chunked") { joined(body) } else { body.to_owned() };
        Answer { status, head: head.to_owned(), body }
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    /// Asserts the status and returns the text of the error.
    fn error(&self, status: u16) -> String {
        assert_eq!(self.status, status, "{self:?}");
        self.json()["error"].as_str().unwrap().to_owned()
    }
}

/// Joins the parts of a chunked body.
fn joined(mut body: &str) -> String {
    let mut out = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        out += &rest[..size];
        body = rest[size..].strip_prefix("\r\n").unwrap();
        if size == 0 {
            break;
        }
    }
    out
}

/// A request that takes seconds with these flags.
const SLOW: &str = "--model phrase --threads 1 --pop-limit 20000 --stack-size 5000 --table-limit 100";

fn slow_text(sentences: usize) -> Value {
    let line = fs::read_to_string(models().join("c/test.de")).unwrap().replace('\n', " ");
    let words: Vec<&str> = line.split(' ').take(12).collect();
    json!({"text": vec![words.join(" "); sentences]})
}

fn texts(answers: &Value) -> Vec<&str> {
    answers.as_array().unwrap().iter().map(|a| a["text"].as_str().unwrap()).collect()
}

#[test]
fn answers_are_those_of_decode() {
    let dir = models();
    let text = fs::read_to_string(dir.join("c/test.de")).unwrap();
    let raw = "Er schläft, siehe http://a.org/x?y=1.\n\"Das  Haus\" hat 1.234 Fenster {0}.\n";
    for (model, text) in [("phrase", &*text), ("hiero", &text), ("raw", raw)] {
        let text = format!("{text}\nunbekanntes Wort 1|||2 <b>\n ein  haus \n");
        fs::write(dir.join(format!("{model}.in")), &text).unwrap();
        let decode = |flags: &str| ok_in(dir, &format!("decode --model {model} --input {model}.in {flags}"));
        let server = Server::start(&format!("--model {model}"));
        let plain = server.post(&json!({"text": text}));
        assert_eq!((plain.status, plain.head.contains("content-type: application/json")), (200, true));
        let decoded = decode("");
        assert_eq!(texts(&plain.json()), decoded.lines().collect::<Vec<_>>(), "{model}");
        // As lines with features, answers are those of `decode --json` byte for byte.
        let body = json!({"text": text, "features": true}).to_string();
        let lines = server.ask(LINES, &body);
        assert!(lines.head.contains("content-type: application/x-ndjson"), "{lines:?}");
        assert_eq!(lines.body, decode("--json"), "{model}");
        // Sentences as an array.
        let sentences: Vec<&str> = text.lines().collect();
        assert_eq!(server.post(&json!({"text": sentences})).body, plain.body);
        // N-best lists.
        let list = decode("--nbest 4 --nbest-out -");
        let full = server
            .post(&json!({"text": text, "nbest": 4, "features": true, "alignment": true, "options": 5}))
            .json();
        let nbest = full
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|a| a["nbest"].as_array().unwrap().iter().map(|t| (&a["id"], t)));
        let moses = |(id, t): (&Value, &Value)| {
            format!("{id} ||| {}", t["text"].as_str().unwrap().replace("|||", "&#124;&#124;&#124;"))
        };
        let expected: Vec<String> =
            list.lines().map(|l| l.splitn(3, " ||| ").take(2).collect::<Vec<_>>().join(" ||| ")).collect();
        assert_eq!(nbest.map(moses).collect::<Vec<_>>(), expected, "{model}");
        for answer in full.as_array().unwrap() {
            check_alignment(answer, model);
        }
        // Text in the arguments of `translate`.
        let output =
            luthier().args(["translate", "--model", model, &text]).current_dir(dir).output().unwrap();
        assert_eq!(common::stdout(&output), decode(""));
    }
}

/// Checks that phrases cover the source and the translation, and that the chosen alternative is the translation.
fn check_alignment(answer: &Value, model: &str) {
    let letters = |key: &str| answer[key].as_str().unwrap().chars().collect::<Vec<char>>();
    let (source, target) = (letters("source"), letters("text"));
    let phrases = answer["alignment"].as_array().unwrap();
    let ranges = |phrase: &Value, key: &str| -> Vec<(usize, usize)> {
        serde_json::from_value(phrase[key].clone()).unwrap()
    };
    for (key, text) in [("source", &source), ("target", &target)] {
        let mut covered: Vec<bool> = text.iter().map(|c| c.is_whitespace()).collect();
        for phrase in phrases {
            for (start, end) in ranges(phrase, key) {
                assert!(start < end && !text[start].is_whitespace(), "{answer}");
                covered[start..end].fill(true);
            }
        }
        assert!(covered.iter().all(|c| *c), "{model} {key}: {answer}");
    }
    for phrase in phrases {
        let options = phrase["options"].as_array().unwrap();
        let chosen: Vec<&Value> = options.iter().filter(|o| o["chosen"] == true).collect();
        assert_eq!(chosen.len(), 1, "{answer}");
        assert!(
            options.len() <= 5 && !options.iter().any(|o| o["text"].as_str().unwrap().contains(['￭', '⟦'])),
            "{answer}"
        );
        if let [(start, end)] = ranges(phrase, "target")[..]
            && model != "hiero"
        {
            let found: String = target[start..end].iter().collect();
            assert_eq!(chosen[0]["text"].as_str().unwrap().to_lowercase(), found.to_lowercase(), "{answer}");
        }
    }
}

#[test]
fn wrong_requests_are_answered_with_what_to_do() {
    let server = Server::start(
        "--model phrase --max-body 2k --max-sentences 3 --max-characters 20 --client-timeout 400ms",
    );
    let post = |body: &str| server.ask(POST, body);
    for (body, error) in [
        (
            "",
            "request body, line 1, column 0: the JSON text ends early; expected JSON such as {\"text\": \"das haus\"}, see /openapi.json",
        ),
        ("{\"text\":\n\"a\",}", "request body, line 2, column 5: trailing comma; "),
        (
            "{\"txt\": \"a\"}",
            "request body, line 1, column 6: unknown field `txt`, expected one of `text`, `nbest`, ",
        ),
        (
            "{\"text\": [1]}",
            "request body, line 1, column 11: invalid type: integer `1`, expected a string; ",
        ),
        (
            "{\"text\": [\"a\", \"b\\nc\"]}",
            "request body, line 1, column 22: text[1] has a line end; give each line its own element; ",
        ),
        ("{\"nbest\": 2}", "request body, line 1, column 12: missing field `text`; "),
        ("{\"text\": \"a\", \"nbest\": 101}", "nbest is 101; expected a number from 0 to 100"),
    ] {
        let found = post(body).error(400);
        assert!(found.starts_with(error), "{body}\n{found}\n{error}");
    }
    let kind = |kind: &str| {
        server.ask(&format!("POST /translate HTTP/1.1\nContent-Type: {kind}"), "{\"text\": \"a\"}")
    };
    assert_eq!(kind("application/json; charset=utf-8").status, 200);
    assert_eq!(
        kind("text/plain").error(415),
        "the content type is \"text/plain\"; send the header `Content-Type: application/json`"
    );
    // Too much.
    let body = json!({"text": "a".repeat(3000)}).to_string();
    assert_eq!(
        post(&body).error(413),
        "the request body has more than 2048 bytes; send fewer sentences at once"
    );
    assert_eq!(
        post("{\"text\": \"a\\nb\\nc\\nd\"}").error(413),
        "the request has 4 sentences; send at most 3 at once"
    );
    let error = post("{\"text\": \"a\\nb b b b b b b b b b b b\"}").error(413);
    assert_eq!(error, "sentence 1 has more than 20 characters; split it into sentences");
    post(&"x".repeat(10_000_000)).error(413);
    // Other routes, methods and hosts.
    assert!(
        server
            .get("/nothing")
            .error(404)
            .starts_with("no route /nothing; the routes are GET /, POST /translate, ")
    );
    assert_eq!(server.get("/translate").error(405), "/translate has no method GET; use POST");
    assert_eq!(server.ask("OPTIONS /translate HTTP/1.1\nOrigin: http://evil.test", "").status, 405);
    let expected = format!("this server is not \"evil.test\"; send the header `Host: {}`", server.address);
    assert_eq!(server.ask("GET / HTTP/1.1\nHost: evil.test", "").error(421), expected);
    let port = server.address.rsplit(':').next().unwrap();
    assert_eq!(server.ask(&format!("GET /health HTTP/1.1\nHost: localhost:{port}"), "").status, 200);
    // Slow clients: a body that does not arrive is answered, a head that does not arrive ends the connection.
    let mut slow = server.connect();
    write!(slow, "POST /translate HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{{", server.address).unwrap();
    assert_eq!(
        Answer::read(slow).error(408),
        "the request body did not arrive within 400ms; send it faster, or in smaller parts"
    );
    let mut slow = server.connect();
    write!(slow, "POST /tran").unwrap();
    assert_eq!(slow.read(&mut [0]).unwrap(), 0);
    // The server still works.
    assert_eq!(server.post(&json!({"text": ""})).body, "[]\n");
    assert_eq!(server.get("/health").json()["status"], "ok");
}

#[test]
fn flags_are_checked() {
    for (flags, message) in [
        ("--model nowhere", "nowhere: does not exist, expected a model directory"),
        (
            "--model phrase --listen 7878",
            "--listen is `7878`, expected ADDRESS:PORT, such as 127.0.0.1:7878 or [::1]:0",
        ),
        (
            "--model phrase --timeout soon",
            "--timeout is `soon`, expected a time of at least 1ms, such as 30s, 500ms or 2m",
        ),
        ("--model phrase --max-body 0", "--max-body is `0`, expected a size such as 500M or 4G"),
        ("--model phrase --queue 0", "--queue is `0`, expected a whole number, from 1 to 1000000"),
    ] {
        let flags = if flags.contains("--listen") {
            flags.to_owned()
        } else {
            format!("{flags} --listen 127.0.0.1:0")
        };
        let output = in_dir(models(), &format!("serve {flags}"));
        assert_eq!(output.status.code(), Some(2), "{flags}");
        let said = stderr(&output);
        assert!(
            said.starts_with(&format!("luthier: {message}")) && said.lines().count() == 1,
            "{flags}\n{said}"
        );
    }
    let server = Server::start("--model phrase");
    let output = in_dir(models(), &format!("serve --model phrase --listen {}", server.address));
    let said = stderr(&output);
    assert!(said.contains("in use") && said.contains("port 0 selects a free port"), "{said}");
}

#[test]
fn queue_and_timeout_are_bounded_and_clients_that_leave_are_forgotten() {
    let server = Server::start(&format!("{SLOW} --queue 1"));
    let first = server.begin_lines(&slow_text(500));
    let full = server.post(&json!({"text": "das haus"}));
    assert_eq!(full.error(429), "too many requests wait; try again after a second");
    assert!(full.head.contains("retry-after: 1"));
    assert_eq!(server.metric("luthier_queued_requests"), 1.0);
    drop(first);
    let clock = Instant::now();
    while server.post(&json!({"text": "das haus"})).status == 429 {
        assert!(
            clock.elapsed() < Duration::from_secs(10),
            "the request of a client that left is still in the queue"
        );
        thread::sleep(Duration::from_millis(20));
    }
    let server = Server::start("--model phrase --threads 1 --pop-limit 2000 --timeout 1s");
    let late = server.post(&slow_text(900));
    assert_eq!(
        late.error(503),
        "the translation took longer than 1s; send fewer sentences at once, or try again"
    );
    // A stream that has begun ends with an error.
    let lines = server.ask(LINES, &slow_text(900).to_string());
    assert_eq!((lines.status, lines.body.lines().last().unwrap()), (200, late.body.trim()));
    assert_eq!(server.post(&json!({"text": "das haus"})).status, 200);
}

#[test]
fn what_has_begun_is_finished_at_the_end() {
    let server = Server::start(&format!("{SLOW} --grace 1m"));
    let idle = server.connect();
    let mut lines = server.begin_lines(&slow_text(6));
    server.terminate();
    thread::sleep(Duration::from_millis(100));
    assert!(TcpStream::connect(&server.address).is_err(), "new connections are refused");
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    assert_eq!(rest.matches("{\"id\":").count(), 5, "{rest}");
    let output = server.wait();
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), ""));
    drop(idle);
    // After the time for them, requests are given up.
    let server = Server::start(&format!("{SLOW} --grace 200ms"));
    let mut lines = server.begin_lines(&slow_text(500));
    let clock = Instant::now();
    server.terminate();
    let output = server.wait();
    assert!(clock.elapsed() < Duration::from_secs(3) && output.status.code() == Some(0), "{output:?}");
    let mut rest = Vec::new();
    let _ = lines.read_to_end(&mut rest);
}

#[test]
fn routes_are_described_and_counted() {
    let server = Server::start("--model phrase");
    let api = server.get("/openapi.json").json();
    let paths: Vec<&String> = api["paths"].as_object().unwrap().keys().collect();
    assert_eq!(paths, ["/health", "/metrics", "/model", "/translate"]);
    assert!(api["components"]["schemas"]["Sentences"]["oneOf"].is_array(), "{api}");
    let page = server.get("/");
    assert!(
        page.head.contains("content-security-policy: default-src 'none'; script-src 'self'")
            && page.body.contains("page.js")
    );
    server.post(&json!({"text": "das haus\ner schläft ."}));
    let text = server.get("/metrics").body;
    for line in text.lines().filter(|l| !l.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').unwrap();
        assert!(name.starts_with("luthier_") || name.starts_with("process_"), "{line}");
        assert!(value.parse::<f64>().is_ok_and(f64::is_finite), "{line}");
    }
    assert_eq!(server.metric("luthier_sentences_total"), 2.0);
    assert_eq!(server.metric("luthier_answers_total{route=\"/translate\",status=\"200\"}"), 1.0);
    assert_eq!(server.metric("luthier_translate_seconds_count"), 1.0);
    let model = server.get("/model").json();
    assert_eq!((&model["kind"], &model["raw"]), (&json!("phrase"), &json!(false)));
    assert!(model["weights"]["LM0"].as_f64().unwrap() > 0.0);
}

/// Fifty clients for five seconds: every answer is right, and memory does not grow.
#[test]
fn fifty_clients_at_once() {
    let server = Server::start("--model phrase");
    let expected = server.post(&json!({"text": "er schläft ."})).body;
    let body = json!({"text": "er schläft ."}).to_string();
    let head =
        format!("{POST}\nHost: {}\nContent-Length: {}\n\n", server.address, body.len()).replace('\n', "\r\n");
    let load = |seconds: f64| {
        let until = Instant::now() + Duration::from_secs_f64(seconds);
        let client = || {
            let mut reader = BufReader::new(server.connect());
            let mut answers = 0;
            while Instant::now() < until {
                reader.get_mut().write_all(format!("{head}{body}").as_bytes()).unwrap();
                let (mut line, mut length) = (String::new(), 0);
                reader.read_line(&mut line).unwrap();
                assert_eq!(line, "HTTP/1.1 200 OK\r\n");
                while line != "\r\n" {
                    line.clear();
                    reader.read_line(&mut line).unwrap();
                    length =
                        line.strip_prefix("content-length: ").map_or(length, |n| n.trim().parse().unwrap());
                }
                let mut found = vec![0; length];
                reader.read_exact(&mut found).unwrap();
                assert_eq!(found, expected.as_bytes());
                answers += 1;
            }
            answers
        };
        thread::scope(|scope| {
            let clients: Vec<_> = (0..50).map(|_| scope.spawn(client)).collect();
            clients.into_iter().map(|c| c.join().unwrap()).sum::<u64>()
        })
    };
    load(1.0);
    let before = server.metric("process_resident_memory_bytes");
    let answers = load(4.0);
    let after = server.metric("process_resident_memory_bytes");
    assert!(answers > 100, "{answers}");
    assert!(after < before + 20e6, "memory grew from {before} to {after} bytes");
}

/// Tests the page in Chromium; only if `scripts/check` has set `LUTHIER_BROWSER`.
#[test]
fn page_in_a_browser() {
    let Some(python) = std::env::var_os("LUTHIER_BROWSER") else {
        common::skip(
            "no browser asked for: scripts/check sets LUTHIER_BROWSER to a Python, where Chromium is",
        );
        return;
    };
    let text = fs::read_to_string(models().join("c/test.de")).unwrap().lines().next().unwrap().to_owned();
    for (model, text) in [
        ("phrase", text.clone() + " Xaver"),
        ("hiero", text + " Xaver"),
        ("raw", "Er schläft und sie schläft, Xaver".to_owned()),
    ] {
        let server = Server::start(&format!("--model {model}"));
        let script = common::root().join("scripts/browser_serve.py");
        let done = Command::new(&python)
            .arg(script)
            .args([format!("http://{}", server.address), text])
            .output()
            .unwrap();
        assert!(done.status.success(), "{model}\n{}\n{}", common::stdout(&done), stderr(&done));
    }
}

/// The port in docs/serve.md.
const PORT: &str = ":7878";

/// The commands of docs/serve.md print what the page shows; the server listens on another port than that of the page. With
/// `LUTHIER_BLESS=1` the page is rewritten instead.
#[test]
fn documented_commands_work_as_printed() {
    if Command::new("curl").arg("--version").output().is_err() {
        common::skip("serve: curl is not installed");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = common::root().join("docs/serve.md");
    let page = fs::read_to_string(&file).unwrap();
    let bin = Path::new(env!("CARGO_BIN_EXE_luthier")).parent().unwrap().to_owned();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let (mut server, mut port) = (None, PORT.to_owned());
    let (mut out, mut inside, mut commands) = (String::new(), false, 0);
    for line in page.lines() {
        if line.starts_with("```") {
            inside = line == "```console";
        }
        let command = line.strip_prefix("$ ").filter(|_| inside);
        if !inside || line.starts_with("```") || command.is_some() {
            out += &format!("{line}\n");
        }
        let Some(command) = command else { continue };
        commands += 1;
        if let Some(flags) = command.strip_prefix("luthier serve ") {
            let flags =
                flags.replace("--model model", &format!("--model {}", dir.path().join("model").display()));
            let started = Server::start(&flags);
            port = format!(":{}", started.address.rsplit(':').next().unwrap());
            out += &format!("http://{}\n", started.address.replace(&port, PORT));
            server = Some(started);
            continue;
        }
        let mut run = Command::new("bash");
        run.args(["-c", &command.replace(PORT, &port)]).current_dir(dir.path()).env("PATH", &path);
        let output = run.output().unwrap();
        assert!(output.status.success(), "$ {command}\n{}", stderr(&output));
        out += &common::stdout(&output).replace(&port, PORT);
    }
    drop(server);
    assert!(commands >= 8, "only {commands} commands found");
    if std::env::var_os("LUTHIER_BLESS").is_some() {
        fs::write(&file, out).unwrap();
    } else {
        let differs = out.lines().zip(page.lines()).find(|(now, said)| now != said);
        assert!(out == page, "docs/serve.md: (now, shown) {differs:?}; LUTHIER_BLESS=1 updates it");
    }
}
