//! `luthier serve`: translation over HTTP, and a page for the browser.

mod api;
mod hosts;
mod metrics;
mod stream;
mod worker;

use super::{Common, Done, decode::check_weights, print_json, write_out};
use crate::{interrupt, talk::Talk};
use api::Service;
use clap::{Args as _, Command, FromArgMatches};
pub(crate) use hosts::Address;
use hosts::Hosts;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
    service::TowerToHyperService,
};
use luthier::{
    Translator,
    core::Error,
    decode::{Limits, ModelDir},
    io::{read_weights, sort::ByteSize},
};
use serde_json::json;
use std::{
    ffi::OsStr,
    net::TcpListener,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use stream::Guarded;
use tokio::sync::Semaphore;
use worker::Worker;

/// Serve translations over HTTP, with a page for the browser.
///
/// The first line of standard output is the address; its page translates text while you type and shows the phrases, their
/// alternatives and the features behind the choice. `POST /translate` takes JSON such as `{"text": "das haus"}`; /openapi.json describes all
/// routes, docs/serve.md has examples. SIGTERM or Ctrl-C stops the server after the requests that it has begun.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Model directory.
    #[arg(long, value_name = "DIR", help_heading = "Input")]
    model: PathBuf,
    /// Weights, one `name value` per line, or a Moses configuration [default: those of the model].
    #[arg(long, value_name = "FILE", help_heading = "Input")]
    weights: Option<PathBuf>,
    /// Address and port to listen on; port 0 selects a free port.
    ///
    /// Requests must name this address in their Host header; at 0.0.0.0 or [::] they may name any IP address.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7878", help_heading = "Server")]
    listen: Address,
    /// Maximum size of a request body; larger ones are answered with status 413.
    #[arg(long, value_name = "SIZE", default_value = "1MB", help_heading = "Server")]
    max_body: ByteSize,
    /// Maximum number of sentences per request; more are answered with status 413.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Server")]
    max_sentences: u32,
    /// Maximum length of a sentence in characters; longer ones are answered with status 413.
    #[arg(long, value_name = "N", default_value_t = 5000, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Server")]
    max_characters: u32,
    /// Maximum number of requests that are translated or wait; more are answered with status 429.
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=1_000_000), help_heading = "Server")]
    queue: u32,
    /// Time within which a request must be translated, else it is answered with status 503.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration, help_heading = "Server")]
    timeout: Duration,
    /// Time within which a client must send its request, and accept each part of the answer.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration, help_heading = "Server")]
    client_timeout: Duration,
    /// Time for requests that have begun when the server is stopped.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration, help_heading = "Server")]
    grace: Duration,
    #[command(flatten)]
    limits: Limits,
}

/// Maximum number of open connections; further clients wait until one is closed.
const CONNECTIONS: usize = 1024;

/// Number of threads that read requests and write answers; translation has its own.
const NETWORK_THREADS: usize = 2;

/// Parses a duration such as `30s`, `500ms` or `2m`.
fn duration(text: &str) -> Result<Duration, String> {
    let units = [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
    let (number, unit) =
        units.iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, unit))).unwrap_or((text, &1.0));
    let seconds = number.trim().parse::<f64>().ok().map(|n| n * unit).filter(|s| *s >= 0.001);
    let found = seconds.and_then(|s| Duration::try_from_secs_f64(s).ok());
    found.ok_or_else(|| "expected a time of at least 1ms, such as 30s, 500ms or 2m".to_owned())
}

/// Serves a model with default settings.
pub(crate) fn start(
    model: &Path,
    weights: Option<PathBuf>,
    listen: Address,
    common: &Common,
    talk: Talk,
) -> Done {
    let words = [OsStr::new("serve"), OsStr::new("--model"), model.as_os_str()];
    let found = Args::augment_args(Command::new("serve")).try_get_matches_from(words);
    let args = found.and_then(|m| Args::from_arg_matches(&m)).map_err(|e| Error::new(e.to_string()))?;
    run(&Args { weights, listen, ..args }, common, talk)
}

pub(crate) fn run(args: &Args, common: &Common, talk: Talk) -> Done {
    interrupt::leave_to_command();
    let listener = args.listen.bind()?;
    let local = listener.local_addr().map_err(|e| Error::io(args.listen.to_string(), "listen on it", &e))?;
    let pool = super::thread_pool(common)?;
    let threads = pool.current_num_threads();
    let worker = Worker::new(open(args, talk)?, pool, args.queue);
    let address = args.listen.url(local.port());
    let service = Arc::new(Service::new(args, worker, Hosts::new(&args.listen, local)));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(NETWORK_THREADS)
        .enable_all()
        .build()
        .map_err(|e| Error::new(format!("cannot start threads: {e}")))?;
    let unfinished = runtime.block_on(async {
        // Signals are handled from before the address is known to others.
        let stop = stop_signal()?;
        if common.json {
            print_json(&json!({"address": address}))?;
        } else {
            write_out(None, format!("{address}\n").as_bytes())?;
        }
        talk.say(&format!(
            "serving {} at {address} with {threads} threads; Ctrl-C stops the server",
            args.model.display()
        ));
        Ok::<_, super::Failure>(serve(args, listener, &service, stop).await?)
    })?;
    service.worker.stop.store(true, Ordering::Relaxed);
    runtime.shutdown_background();
    if unfinished > 0 {
        talk.warn(&format!("stopped with {unfinished} open connections after {:?}", args.grace));
    } else {
        talk.say("stopped");
    }
    Ok(ExitCode::SUCCESS)
}

/// Opens the model with its weights.
fn open(args: &Args, talk: Talk) -> Result<Translator, Error> {
    let translator = Translator::open(&args.model)?.with_limits(args.limits);
    let path = match &args.weights {
        Some(path) => path.clone(),
        None => ModelDir::open(&args.model)?.weights(),
    };
    let weights = read_weights(&path)?;
    check_weights(&weights, &path, translator.model(), talk)?;
    if args.weights.is_some() { translator.with_weights(&weights) } else { Ok(translator) }
}

/// Accepts connections until `stop` is complete, then waits for those that are open. Returns the number of connections that
/// were still open after the time for them.
async fn serve(
    args: &Args,
    listener: TcpListener,
    service: &Arc<Service>,
    stop: impl Future<Output = ()>,
) -> Result<usize, Error> {
    let failed = |e| Error::io(args.listen.to_string(), "listen on it", &e);
    listener.set_nonblocking(true).map_err(failed)?;
    let listener = tokio::net::TcpListener::from_std(listener).map_err(failed)?;
    let router = api::router(service.clone());
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(args.client_timeout);
    let graceful = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    tokio::pin!(stop);
    loop {
        let next = async { (places.clone().acquire_owned().await, listener.accept().await) };
        let (place, accepted) = tokio::select! {
            next = next => next,
            () = &mut stop => break,
        };
        let Ok((stream, _)) = accepted else {
            // Such as too many open files: connections that end make room.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        let io = TokioIo::new(Guarded::new(stream, args.client_timeout));
        let connection = graceful.watch(http.serve_connection(io, TowerToHyperService::new(router.clone())));
        tokio::spawn(async move {
            // An error here is a client that went away or was too slow.
            let _ = connection.await;
            drop(place);
        });
    }
    drop(listener);
    let open = graceful.count();
    let ended = tokio::time::timeout(args.grace, graceful.shutdown()).await;
    Ok(if ended.is_ok() { 0 } else { open.min(CONNECTIONS - places.available_permits()) })
}

/// Returns a future that is complete when the process is asked to stop, by SIGTERM or Ctrl-C.
#[cfg(unix)]
fn stop_signal() -> Result<impl Future<Output = ()>, Error> {
    use tokio::signal::unix::{SignalKind, signal};
    let failed = |e: std::io::Error| Error::new(format!("cannot handle signals: {e}"));
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Returns a future that is complete when the process is asked to stop, by Ctrl-C.
#[cfg(not(unix))]
#[allow(clippy::unnecessary_wraps)]
fn stop_signal() -> Result<impl Future<Output = ()>, Error> {
    Ok(async {
        let _ = tokio::signal::ctrl_c().await;
    })
}
