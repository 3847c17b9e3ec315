//! Candidate pool of benchmarks: the n-best lists of five Moses iterations on Multi30k, with BLEU statistics, and the
//! initial weights.
#![allow(clippy::unwrap_used)]

use luthier::{
    core::Weights,
    io::{
        nbest::{self, Options, Rows},
        text::{by_segment, read_lines},
    },
    metric::Metric,
    tune::{Candidates, Judge, columns, lists},
};
use std::{path::Path, sync::Arc};

pub(crate) fn read(data: &Path, metric: &Metric) -> (Vec<Arc<Candidates>>, Weights) {
    let mut rows = Rows::default();
    for run in 1..=5 {
        nbest::read(&data.join(format!("moses/nbest/run{run}.nbest.gz")), &Options::default(), &mut rows)
            .unwrap();
    }
    let reference = [read_lines(&data.join("multi30k/dev.en.gz")).unwrap()];
    let references = by_segment(&reference).unwrap();
    let judge = Judge::new(metric, &references, "dev");
    let pool = lists(&rows, &columns(&rows, Some(metric)), Some(judge)).unwrap();
    let initial = Weights::parse(
        "initial",
        "LexicalReordering0= 0.3 0.3 0.3 0.3 0.3 0.3\nDistortion0= 0.3\nLM0= 0.5\nWordPenalty0= -1\n\
         PhrasePenalty0= 0.2\nTranslationModel0= 0.2 0.2 0.2 0.2\n",
    );
    (pool.into_iter().map(Arc::new).collect(), initial.unwrap())
}
