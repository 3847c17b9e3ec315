//! Translation of sentences on threads of their own, for a bounded number of requests.

use super::api::{Answer, Ask};
use luthier::{
    Translator,
    core::{Progress, Result, Step},
    decode::Decoder,
};
use rayon::ThreadPool;
use std::{
    ops::ControlFlow,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// A translator with its threads and the queue of requests.
pub(super) struct Worker {
    pub(super) translator: &'static Translator,
    decoder: Decoder<'static>,
    pool: ThreadPool,
    queue: Arc<Semaphore>,
    /// Size of the queue.
    size: u32,
    /// Whether the server stops, so that nothing more is translated.
    pub(super) stop: AtomicBool,
}

/// A request in the queue. When it is dropped, its place is free and its sentences are no longer translated.
pub(super) struct Ticket {
    _place: OwnedSemaphorePermit,
    cancelled: Arc<AtomicBool>,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }
}

impl Worker {
    pub(super) fn new(translator: Translator, pool: ThreadPool, size: u32) -> Self {
        // The decoder borrows the translator; both live as long as the process.
        let translator: &'static Translator = Box::leak(Box::new(translator));
        let queue = Arc::new(Semaphore::new(size as usize));
        Worker { translator, decoder: translator.decoder(), pool, queue, size, stop: AtomicBool::new(false) }
    }

    /// Takes a place in the queue; `None` if it is full.
    pub(super) fn enter(&self) -> Option<Ticket> {
        let place = self.queue.clone().try_acquire_owned().ok()?;
        Some(Ticket { _place: place, cancelled: Arc::default() })
    }

    /// Returns the number of requests in the queue.
    pub(super) fn entered(&self) -> usize {
        self.size as usize - self.queue.available_permits()
    }

    /// Returns the number of sentences of one request that are translated at the same time. It keeps all threads busy, and
    /// lets later requests take turns with a long one.
    pub(super) fn window(&self) -> usize {
        2 * self.pool.current_num_threads()
    }

    /// Begins to translate a sentence. The answer is dropped without a value if the translation panics.
    pub(super) fn begin(
        self: &Arc<Self>,
        (id, sentence): (usize, String),
        ask: Ask,
        ticket: &Ticket,
    ) -> oneshot::Receiver<Result<String>> {
        let (send, receive) = oneshot::channel();
        let (worker, cancelled) = (self.clone(), ticket.cancelled.clone());
        self.pool.spawn_fifo(move || {
            let answer = catch_unwind(AssertUnwindSafe(|| worker.answer(id, &sentence, ask, &cancelled)));
            if let Ok(answer) = answer {
                // The client may have gone.
                let _ = send.send(answer);
            }
        });
        receive
    }

    /// Returns the JSON text of the answer for a sentence.
    fn answer(&self, id: usize, sentence: &str, ask: Ask, cancelled: &AtomicBool) -> Result<String> {
        let flow = |_: &Step| {
            let stops = cancelled.load(Ordering::Relaxed) || self.stop.load(Ordering::Relaxed);
            if stops { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let progress = Progress::new(&flow);
        progress.poll()?;
        let found = self.translator.explain(&self.decoder, sentence, ask.nbest, ask.options, progress)?;
        Ok(Answer::new(id, found, ask).to_json())
    }
}
