//! In which order things happen.

/// How often to decode and learn, and when to stop.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    /// Epochs at most. A fixed source has one.
    pub iterations: u32,
    /// Whether candidates of earlier epochs are kept (batch learning) or dropped (online).
    pub accumulate: bool,
    /// Stop when no weight of the vector scaled to Σ|w| = 1 moves by more than this.
    pub min_change: f64,
    /// Ψ: how much of the newly learned weights is taken, the rest stays as it was. Not for a fixed source.
    pub psi: f64,
    /// The epoch that begins with an empty pool. Not for a fixed source.
    pub reset_at: Option<u32>,
}

impl Default for Schedule {
    fn default() -> Self {
        Schedule { iterations: 25, accumulate: true, min_change: 1e-5, psi: 1.0, reset_at: None }
    }
}
