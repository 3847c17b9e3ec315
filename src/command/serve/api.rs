//! Routes of the server: requests, answers and errors as JSON.

use super::{
    Args,
    hosts::Hosts,
    metrics::Metrics,
    worker::{Ticket, Worker},
};
use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use futures_util::{Stream, StreamExt, stream};
use luthier::{
    core::{self, ErrorKind, FeatureKey},
    decode::TranslationOption,
    translator::{AlignedPhrase, Explanation, ScoredTranslation},
};
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::{Map, Value, json};
use std::{
    convert::Infallible,
    fmt,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::time::{Instant, timeout, timeout_at};
use utoipa::{
    OpenApi, PartialSchema, ToSchema,
    openapi::{
        RefOr,
        schema::{OneOfBuilder, Schema},
    },
};

/// Everything that the routes need.
pub(super) struct Service {
    pub(super) worker: Arc<Worker>,
    hosts: Hosts,
    metrics: Metrics,
    max_body: usize,
    max_sentences: usize,
    max_characters: usize,
    timeout: Duration,
    client_timeout: Duration,
}

impl Service {
    pub(super) fn new(args: &Args, worker: Worker, hosts: Hosts) -> Self {
        Service {
            worker: Arc::new(worker),
            hosts,
            metrics: Metrics::default(),
            max_body: args.max_body.bytes(),
            max_sentences: args.max_sentences as usize,
            max_characters: args.max_characters as usize,
            timeout: args.timeout,
            client_timeout: args.client_timeout,
        }
    }
}

/// Routes and their methods.
const ROUTES: [(&str, &str); 9] = [
    ("/", "GET"),
    ("/page.js", "GET"),
    ("/page.css", "GET"),
    ("/translate", "POST"),
    ("/model", "GET"),
    ("/health", "GET"),
    ("/metrics", "GET"),
    ("/openapi.json", "GET"),
    ("/favicon.ico", "GET"),
];

/// Returns all routes of the server.
pub(super) fn router(service: Arc<Service>) -> Router {
    Router::new()
        .route("/", get(|| async { file("text/html; charset=utf-8", include_str!("page.html")) }))
        .route("/page.js", get(|| async { file("text/javascript; charset=utf-8", include_str!("page.js")) }))
        .route("/page.css", get(|| async { file("text/css; charset=utf-8", include_str!("page.css")) }))
        .route("/translate", post(translate))
        .route("/model", get(model))
        .route("/health", get(health))
        .route("/metrics", get(metrics))
        .route("/openapi.json", get(openapi))
        .fallback(unknown_route)
        .method_not_allowed_fallback(wrong_method)
        .layer(middleware::from_fn_with_state(service.clone(), guard))
        .with_state(service)
}

/// An error as an answer: a status, and what is wrong and what to do.
#[derive(Debug)]
struct Refusal {
    status: StatusCode,
    error: String,
}

impl Refusal {
    fn new(status: StatusCode, error: impl Into<String>) -> Self {
        Refusal { status, error: error.into() }
    }

    /// Returns the JSON text of the error.
    fn to_json(&self) -> String {
        json!({"error": self.error}).to_string() + "\n"
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = with_type("application/json", self.to_json());
        *response.status_mut() = self.status;
        if matches!(self.status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

/// Returns an answer with a content type.
fn with_type(kind: &'static str, body: impl Into<Body>) -> Response {
    ([(header::CONTENT_TYPE, kind)], body.into()).into_response()
}

fn file(kind: &'static str, text: &'static str) -> Response {
    with_type(kind, text)
}

/// What browsers may do with answers: only load the page's own files, in no frame of another page, and guess no types.
const HEADERS: [(HeaderName, &str); 4] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
];

/// Refuses requests for another host, counts answers and adds headers for browsers.
async fn guard(State(service): State<Arc<Service>>, request: Request, next: Next) -> Response {
    let clock = Instant::now();
    let route = ROUTES.iter().find(|r| r.0 == request.uri().path()).map_or("other", |r| r.0);
    let host = request.headers().get(header::HOST).and_then(|h| h.to_str().ok()).unwrap_or_default();
    let mut response = if service.hosts.accepts(host) {
        next.run(request).await
    } else {
        let expected = service.hosts.expected();
        let error = format!("this server is not {host:?}; send the header `Host: {expected}`");
        Refusal::new(StatusCode::MISDIRECTED_REQUEST, error).into_response()
    };
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    service.metrics.count(route, response.status().as_u16(), clock.elapsed());
    response
}

async fn unknown_route(request: Request) -> Refusal {
    let shown = ROUTES.iter().filter(|r| !r.0.contains('.') || r.0 == "/openapi.json");
    let routes: Vec<String> = shown.map(|(route, method)| format!("{method} {route}")).collect();
    let error = format!("no route {}; the routes are {}", request.uri().path(), routes.join(", "));
    Refusal::new(StatusCode::NOT_FOUND, error)
}

async fn wrong_method(method: Method, request: Request) -> Refusal {
    let path = request.uri().path();
    let expected = ROUTES.iter().find(|r| r.0 == path).map_or("GET", |r| r.1);
    let error = format!("{path} has no method {method}; use {expected}");
    Refusal::new(StatusCode::METHOD_NOT_ALLOWED, error)
}

/// Largest number that `nbest` and `options` of a request may have.
const MOST: u32 = 100;

/// A request for translations.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object such as {\"text\": \"das haus\"}")]
struct TranslateRequest {
    /// Text to translate: a string with one sentence per line, or an array of sentences.
    text: Sentences,
    /// Number of translations in `nbest` of each answer, up to 100; 0 for none.
    #[serde(default)]
    nbest: u32,
    /// Whether answers have features.
    #[serde(default)]
    features: bool,
    /// Whether answers have `source` and `alignment`.
    #[serde(default)]
    alignment: bool,
    /// Number of alternatives per phrase in `alignment`, up to 100; 0 for none.
    #[serde(default)]
    options: u32,
}

/// The sentences of a request.
#[derive(Debug)]
struct Sentences(Vec<String>);

impl PartialSchema for Sentences {
    fn schema() -> RefOr<Schema> {
        OneOfBuilder::new().item(String::schema()).item(Vec::<String>::schema()).into()
    }
}

impl ToSchema for Sentences {}

impl<'de> Deserialize<'de> for Sentences {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SentencesVisitor).map(Sentences)
    }
}

/// Reads a string with one sentence per line, or an array of sentences.
struct SentencesVisitor;

impl<'de> de::Visitor<'de> for SentencesVisitor {
    type Value = Vec<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or an array of strings")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(text.lines().map(str::to_owned).collect())
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut sentences: Vec<String> = Vec::new();
        while let Some(sentence) = seq.next_element::<String>()? {
            if sentence.contains('\n') {
                let at = sentences.len();
                return Err(de::Error::custom(format!(
                    "text[{at}] has a line end; give each line its own element"
                )));
            }
            sentences.push(sentence);
        }
        Ok(sentences)
    }
}

/// What the answers of a request contain.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ask {
    /// Number of translations to search for, at least 1.
    pub(super) nbest: usize,
    /// Maximum number of alternatives per phrase; 0 without an alignment.
    pub(super) options: usize,
    shows_nbest: bool,
    shows_options: bool,
    features: bool,
}

impl Ask {
    fn new(request: &TranslateRequest) -> Self {
        Ask {
            nbest: request.nbest.max(1) as usize,
            options: if request.alignment {
                request.options.max(1) as usize
            } else {
                request.options as usize
            },
            shows_nbest: request.nbest > 0,
            shows_options: request.options > 0,
            features: request.features,
        }
    }
}

/// Answer for a sentence. With `features` only, its text is a line of `luthier decode --json`.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Answer {
    /// Number of the sentence, from 0.
    id: usize,
    /// Best translation.
    text: String,
    /// Model score of the translation.
    score: f64,
    /// Values of the features by name, if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<BTreeMap<String, f64>>)]
    features: Option<Map<String, Value>>,
    /// Best translations, the first one included, if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    nbest: Option<Vec<Candidate>>,
    /// The sentence in which the ranges of `alignment` are.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    /// Phrases of the best translation, if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    alignment: Option<Vec<Phrase>>,
}

/// One of the best translations.
#[derive(Debug, Serialize, ToSchema)]
struct Candidate {
    /// Translation.
    text: String,
    /// Model score.
    score: f64,
    /// Values of the features by name, if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<BTreeMap<String, f64>>)]
    features: Option<Map<String, Value>>,
}

/// A phrase with its place on both sides. Ranges are [start, end) in characters (Unicode code points).
#[derive(Debug, Serialize, ToSchema)]
struct Phrase {
    /// Ranges of the source words in `source`; a rule with gaps has several.
    source: Vec<[usize; 2]>,
    /// Ranges of the target words in `text`; empty if the source words are dropped.
    target: Vec<[usize; 2]>,
    /// Whether the source word is unknown, so that it is copied or dropped.
    unknown: bool,
    /// Translations of the source words that the search considered, best first, if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    options: Option<Vec<Alternative>>,
}

/// A translation of the source words of a phrase.
#[derive(Debug, Serialize, ToSchema)]
struct Alternative {
    /// Target words; `X1` and `X2` are the gaps of a rule.
    text: String,
    /// Model score without context.
    score: f64,
    /// Whether the best translation uses this alternative.
    chosen: bool,
    /// Values of the features that the score consists of, by name.
    #[schema(value_type = BTreeMap<String, f64>)]
    features: Map<String, Value>,
}

/// Returns features as a JSON object, in their order.
fn object(features: Vec<(String, f64)>) -> Map<String, Value> {
    features.into_iter().map(|(name, value)| (name, json!(value))).collect()
}

impl Phrase {
    fn new(phrase: AlignedPhrase, source: &str, target: &str, ask: Ask) -> Self {
        let alternative = |option: TranslationOption| Alternative {
            text: option.text,
            score: option.score,
            chosen: option.is_chosen,
            features: object(option.features),
        };
        Phrase {
            source: AlignedPhrase::in_characters(source, &phrase.source),
            target: AlignedPhrase::in_characters(target, &phrase.target),
            unknown: phrase.is_unknown,
            options: ask.shows_options.then(|| phrase.options.into_iter().map(alternative).collect()),
        }
    }
}

impl Answer {
    pub(super) fn new(id: usize, found: Explanation, ask: Ask) -> Self {
        let candidate = |t: &ScoredTranslation| Candidate {
            text: t.text.clone(),
            score: t.score,
            features: ask.features.then(|| object(t.features.clone())),
        };
        let nbest = ask.shows_nbest.then(|| found.nbest.iter().map(candidate).collect());
        let best = found.nbest.first().map(candidate);
        let best = best.unwrap_or(Candidate { text: String::new(), score: 0.0, features: None });
        let (source, text) = (found.source, best.text);
        let phrases = found.phrases.into_iter().map(|p| Phrase::new(p, &source, &text, ask));
        let alignment = (ask.options > 0).then(|| phrases.collect());
        Answer {
            id,
            alignment,
            source: (ask.options > 0).then_some(source),
            text,
            score: best.score,
            features: best.features,
            nbest,
        }
    }

    pub(super) fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// An error of a request, as an answer.
#[derive(Serialize, ToSchema)]
#[allow(dead_code)]
struct ErrorAnswer {
    /// What is wrong, and what to do.
    error: String,
}

/// Translate text.
///
/// Answers are in the order of the sentences: a JSON array, or with `Accept: application/x-ndjson` one line per sentence as soon as
/// it is translated. A stream that fails after its first line ends with a line that has `error`.
#[utoipa::path(
    post, path = "/translate", request_body = TranslateRequest,
    responses(
        (status = 200, description = "Translations", body = Vec<Answer>),
        (status = 400, description = "The request is not valid", body = ErrorAnswer),
        (status = 408, description = "The request did not arrive in time", body = ErrorAnswer),
        (status = 413, description = "The request is too large", body = ErrorAnswer),
        (status = 415, description = "The content type is not application/json", body = ErrorAnswer),
        (status = 421, description = "The Host header names another server", body = ErrorAnswer),
        (status = 429, description = "Too many requests wait", body = ErrorAnswer),
        (status = 503, description = "The translation took too long", body = ErrorAnswer),
    )
)]
async fn translate(State(service): State<Arc<Service>>, request: Request) -> Result<Response, Refusal> {
    check_type(request.headers())?;
    let streams = accepts_lines(request.headers());
    let body = timeout(service.client_timeout, body(&service, request)).await.map_err(|_| {
        let limit = service.client_timeout;
        let error =
            format!("the request body did not arrive within {limit:?}; send it faster, or in smaller parts");
        Refusal::new(StatusCode::REQUEST_TIMEOUT, error)
    })??;
    let request = parse(&body)?;
    service.check_size(&request.text.0)?;
    let ticket = service.worker.enter().ok_or_else(|| {
        Refusal::new(StatusCode::TOO_MANY_REQUESTS, "too many requests wait; try again after a second")
    })?;
    let answers = Answers::begin(service, request, ticket);
    if streams { answers.lines().await } else { answers.array().await }
}

/// Fails unless the body is JSON. Browsers ask the server before they send JSON to another site, so that foreign web pages
/// cannot use it.
fn check_type(headers: &HeaderMap) -> Result<(), Refusal> {
    let found = headers.get(header::CONTENT_TYPE).and_then(|h| h.to_str().ok()).unwrap_or_default();
    let kind = found.split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let error = format!("the content type is {kind:?}; send the header `Content-Type: application/json`");
    Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, error))
}

/// Whether the client asks for one line per sentence.
fn accepts_lines(headers: &HeaderMap) -> bool {
    let mut all = headers.get_all(header::ACCEPT).iter().filter_map(|h| h.to_str().ok());
    all.any(|accept| accept.to_ascii_lowercase().contains("application/x-ndjson"))
}

/// Number of bytes of a body that is too large which are read, so that a client that is still sending sees the answer.
const DISCARDED: usize = 64 << 20;

/// Reads the body of a request. Fails if it is too large.
async fn body(service: &Service, request: Request) -> Result<Vec<u8>, Refusal> {
    let announced = request.headers().get(header::CONTENT_LENGTH).and_then(|h| h.to_str().ok()?.parse().ok());
    // Such a client waits for permission to send the body.
    let waits = request.headers().contains_key(header::EXPECT);
    let mut total = 0;
    let mut bytes = Vec::new();
    let mut parts = request.into_body().into_data_stream();
    let mut is_large = announced.is_some_and(|n: usize| n > service.max_body);
    while !(is_large && (waits || total > DISCARDED)) {
        let Some(part) = parts.next().await else { break };
        let ended = |_| Refusal::new(StatusCode::BAD_REQUEST, "the request body ended early; send it again");
        let part = part.map_err(ended)?;
        total += part.len();
        is_large |= total > service.max_body;
        if !is_large {
            bytes.extend_from_slice(&part);
        }
    }
    if is_large {
        let error = format!(
            "the request body has more than {} bytes; send fewer sentences at once",
            service.max_body
        );
        return Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, error));
    }
    Ok(bytes)
}

/// Parses the body of a request.
fn parse(body: &[u8]) -> Result<TranslateRequest, Refusal> {
    let wrong = |error: String| Refusal::new(StatusCode::BAD_REQUEST, error);
    let request: TranslateRequest = serde_json::from_slice(body).map_err(|e| {
        let text = e.to_string();
        let what = match text.rsplit_once(" at line ") {
            _ if e.is_eof() => "the JSON text ends early",
            Some((what, _)) => what,
            None => &text,
        };
        let place = format!("line {}, column {}", e.line(), e.column());
        wrong(format!("request body, {place}: {what}; expected JSON such as {{\"text\": \"das haus\"}}, see /openapi.json"))
    })?;
    for (name, value) in [("nbest", request.nbest), ("options", request.options)] {
        if value > MOST {
            return Err(wrong(format!("{name} is {value}; expected a number from 0 to {MOST}")));
        }
    }
    Ok(request)
}

impl Service {
    /// Fails if there are too many sentences, or if one of them is too long.
    fn check_size(&self, sentences: &[String]) -> Result<(), Refusal> {
        let large = |error: String| Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, error));
        let (n, most) = (sentences.len(), self.max_sentences);
        if n > most {
            return large(format!("the request has {n} sentences; send at most {most} at once"));
        }
        let most = self.max_characters;
        // A text of so many bytes cannot have more characters.
        let long = |s: &&String| s.len() > most && s.chars().count() > most;
        match sentences.iter().find(long) {
            Some(sentence) => {
                let at = sentences.iter().position(|s| s == sentence).unwrap_or_default();
                large(format!("sentence {at} has more than {most} characters; split it into sentences"))
            }
            None => Ok(()),
        }
    }
}

/// Answers of a request while they are translated, in the order of its sentences.
struct Answers {
    service: Arc<Service>,
    found: Pin<Box<dyn Stream<Item = Option<core::Result<String>>> + Send>>,
    deadline: Instant,
    /// Place in the queue; without it, sentences are no longer translated.
    _ticket: Arc<Ticket>,
}

impl Answers {
    fn begin(service: Arc<Service>, request: TranslateRequest, ticket: Ticket) -> Self {
        let ask = Ask::new(&request);
        let ticket = Arc::new(ticket);
        let (worker, begun) = (service.worker.clone(), ticket.clone());
        let found = stream::iter(request.text.0.into_iter().enumerate())
            .map(move |sentence| {
                let answer = worker.begin(sentence, ask, &begun);
                async { answer.await.ok() }
            })
            .buffered(service.worker.window());
        let deadline = Instant::now() + service.timeout;
        Answers { service, found: Box::pin(found), deadline, _ticket: ticket }
    }

    /// Returns the JSON text of the next answer; `None` after the last one.
    async fn next(&mut self) -> Option<Result<String, Refusal>> {
        let late = || {
            let limit = self.service.timeout;
            let error = format!(
                "the translation took longer than {limit:?}; send fewer sentences at once, or try again"
            );
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, error)
        };
        let Ok(next) = timeout_at(self.deadline, self.found.next()).await else { return Some(Err(late())) };
        let failed = |error: String| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error);
        Some(match next? {
            Some(Ok(answer)) => {
                self.service.metrics.sentences.fetch_add(1, Ordering::Relaxed);
                Ok(answer)
            }
            Some(Err(e)) if e.kind() == ErrorKind::Interrupted => {
                Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "the server is stopping; try again later"))
            }
            Some(Err(e)) => Err(failed(e.to_string())),
            None => Err(failed("the translation failed; report this as an error of luthier".to_owned())),
        })
    }

    /// Returns all answers as a JSON array.
    async fn array(mut self) -> Result<Response, Refusal> {
        let mut body = "[".to_owned();
        while let Some(answer) = self.next().await {
            if body.len() > 1 {
                body.push(',');
            }
            body += &answer?;
        }
        Ok(with_type("application/json", body + "]\n"))
    }

    /// Returns the answers as lines that are sent as soon as they are known. An error of the first one is the answer.
    async fn lines(mut self) -> Result<Response, Refusal> {
        let first = self.next().await.transpose()?;
        let rest = stream::unfold(Some(self), |answers| async {
            let mut answers = answers?;
            match answers.next().await? {
                Ok(line) => Some((line + "\n", Some(answers))),
                // The status has been sent.
                Err(refusal) => Some((refusal.to_json(), None)),
            }
        });
        let lines = stream::iter(first.map(|line| line + "\n")).chain(rest);
        let body = Body::from_stream(lines.map(|line| Ok::<_, Infallible>(Bytes::from(line))));
        Ok(with_type("application/x-ndjson", body))
    }
}

/// The model that translates.
#[derive(Debug, Serialize, ToSchema)]
struct ModelAnswer {
    /// Kind of the model: `phrase` or `hiero`.
    kind: &'static str,
    /// Whether sentences are raw text; else they are tokens separated by blanks.
    raw: bool,
    /// Source language of a model for raw text.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    /// Target language of a model for raw text.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    /// Weights of the dense features by name.
    #[schema(value_type = BTreeMap<String, f64>)]
    weights: Map<String, Value>,
}

/// Describe the model.
#[utoipa::path(get, path = "/model", responses((status = 200, description = "Kind and weights of the model", body = ModelAnswer)))]
async fn model(State(service): State<Arc<Service>>) -> Response {
    let translator = service.worker.translator;
    let names = translator.model().names().iter();
    let weights = names.map(|n| (n.clone(), translator.weights().get(FeatureKey::of(n)))).collect();
    let language = |side| translator.text().map(|text| text.language(side).code().to_owned());
    let answer = ModelAnswer {
        kind: if translator.model().is_hierarchical() { "hiero" } else { "phrase" },
        raw: translator.text().is_some(),
        source: language(luthier::text::Side::Source),
        target: language(luthier::text::Side::Target),
        weights: object(weights),
    };
    with_type("application/json", serde_json::to_string(&answer).unwrap_or_default() + "\n")
}

/// Answer whether the server works.
#[utoipa::path(get, path = "/health", responses((status = 200, description = "The server works")))]
async fn health() -> Response {
    let answer = json!({"status": "ok", "version": env!("CARGO_PKG_VERSION")});
    with_type("application/json", format!("{answer}\n"))
}

/// Return counters in Prometheus' text format.
#[utoipa::path(get, path = "/metrics", responses((status = 200, description = "Counters", content_type = "text/plain", body = String)))]
async fn metrics(State(service): State<Arc<Service>>) -> Response {
    with_type("text/plain; version=0.0.4", service.metrics.text(service.worker.entered()))
}

/// Describes the routes of the server.
#[derive(OpenApi)]
#[openapi(
    info(title = "luthier serve", description = "Statistical machine translation over HTTP"),
    paths(translate, model, health, metrics)
)]
struct Api;

async fn openapi() -> Response {
    with_type("application/json", Api::openapi().to_json().unwrap_or_default())
}
