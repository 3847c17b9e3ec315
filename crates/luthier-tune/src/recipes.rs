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
    /// Which metrics it works with.
    pub metrics: &'static str,
    /// How, or why not with others.
    pub why: &'static str,
}

/// All of them.
pub const RECIPES: &[Recipe] = &[
    Recipe {
        name: "mert",
        summary: "minimum error rate training: exact line searches on the corpus score, with restarts",
        paper: "Och 2003; Cer, Jurafsky and Manning 2008",
        metrics: "all",
        why: "the corpus score itself, from summed statistics; up to some 50 features",
    },
    Recipe {
        name: "pro",
        summary: "pairwise ranking of sampled candidates by logistic regression",
        paper: "Hopkins and May 2011",
        metrics: "all",
        why: "sentence scores; BLEU as BLEU+1",
    },
    Recipe {
        name: "apro",
        summary: "ranking of all pairs at once in O(k log k), nothing random",
        paper: "Dreyer and Dong 2015",
        metrics: "all",
        why: "the order of sentence scores; BLEU as BLEU+1",
    },
    Recipe {
        name: "mira",
        summary: "passive-aggressive steps: from fear to hope over the pool (kbmira), from guess to surrogate, or to oracles",
        paper: "Cherry and Foster 2012; Arun and Koehn 2007; Watanabe 2012",
        metrics: "all",
        why: "score times size of a decaying pseudo-document; of error rates the edits, of a column the value",
    },
    Recipe {
        name: "perceptron",
        summary: "averaged perceptron, online: from the guess to the best that can be made",
        paper: "Collins 2002; Arun and Koehn 2007",
        metrics: "all",
        why: "sentence scores choose what to aim at; BLEU as BLEU+1",
    },
    Recipe {
        name: "oro",
        summary: "online rank optimisation: oracles above all others, batch by batch; --optimized is O-ORO",
        paper: "Watanabe 2012",
        metrics: "all",
        why: "oracles of the batch's score, or of sentence scores",
    },
    Recipe {
        name: "softmax",
        summary: "likelihood of the oracles among all candidates",
        paper: "Watanabe 2012",
        metrics: "all",
        why: "oracles of the corpus score, or of sentence scores",
    },
    Recipe {
        name: "xbleu",
        summary: "BLEU of expected n-gram counts",
        paper: "Rosti et al. 2010, 2011",
        metrics: "BLEU",
        why: "only BLEU is made of n-gram counts that have expectations; risk does for the others",
    },
    Recipe {
        name: "risk",
        summary: "expected sentence score",
        paper: "Smith and Eisner 2006",
        metrics: "all",
        why: "sentence scores; BLEU as BLEU+1",
    },
];
