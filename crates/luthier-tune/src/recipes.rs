//! The list of algorithms.

/// One algorithm: its name on the command line, what it does, and who proposed it.
#[derive(Debug, Clone, Copy)]
pub struct Recipe {
    /// Name on the command line.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// Paper.
    pub paper: &'static str,
}

/// All of them.
pub const RECIPES: &[Recipe] = &[Recipe {
    name: "mert",
    summary: "minimum error rate training: exact line searches on the corpus score, with restarts",
    paper: "Och 2003; Cer, Jurafsky and Manning 2008",
}];
