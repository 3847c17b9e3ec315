//! The lattice of a search as a forest: a hypothesis is a node, a way to get there an edge.

use crate::{
    model::UNKNOWN_COST,
    search::{Lattice, orientation},
};
use luthier_forest::{Builder, Forest, NONE, TAILS};
use rustc_hash::FxHashMap;
use std::sync::Arc;

impl Lattice<'_> {
    /// The forest of all complete translations.
    pub fn forest(&self) -> Forest<'static> {
        let (layout, place) = (&self.model.layout, &self.model.place);
        let lms = self.model.lms.len();
        let tables = self.model.table.shape().scores;
        // Arcs by head come in order of stacks, but not of hypotheses.
        let mut first = vec![0u32; self.nodes() + 1];
        for arc in &self.arcs {
            first[arc.head as usize + 1] += 1;
        }
        for n in 0..self.nodes() {
            first[n + 1] += first[n];
        }
        let mut next = first.clone();
        let mut sorted = vec![0u32; self.arcs.len()];
        for (a, arc) in self.arcs.iter().enumerate() {
            sorted[next[arc.head as usize] as usize] = a as u32;
            next[arc.head as usize] += 1;
        }
        // Only what leads to a complete translation.
        let mut wanted = vec![false; self.nodes()];
        for &h in &self.complete {
            wanted[h as usize] = true;
        }
        for n in (0..self.nodes()).rev().filter(|&n| n > 0) {
            if wanted[n] {
                for &a in &sorted[first[n] as usize..first[n + 1] as usize] {
                    wanted[self.arcs[a as usize].tail as usize] = true;
                }
            }
        }
        if self.complete.is_empty() {
            return Forest::default();
        }
        let mut builder = Builder::default();
        let mut words: Vec<String> = Vec::new();
        let mut word_ids: FxHashMap<u32, u32> = FxHashMap::default();
        let mut rules: FxHashMap<u32, u32> = FxHashMap::default();
        let mut node = vec![NONE; self.nodes()];
        let mut features: Vec<(u32, f32)> = Vec::new();
        let empty = builder.rule([], &[]);
        builder.edge([NONE; 2], empty, &[]);
        node[0] = builder.node();
        for n in (1..self.nodes()).filter(|&n| wanted[n]) {
            for &a in &sorted[first[n] as usize..first[n + 1] as usize] {
                let arc = &self.arcs[a as usize];
                let (start, end, phrase) = self.phrase(arc.phrase);
                let rule = *rules.entry(arc.phrase).or_insert_with(|| {
                    features.clear();
                    let mut put = |f: usize, v: f32| {
                        if v != 0.0 {
                            features.push((place[f], v));
                        }
                    };
                    for k in 0..tables {
                        put(layout.table + k, phrase.scores[k]);
                    }
                    put(layout.words, -(phrase.words.len() as f32));
                    put(layout.phrases, 1.0);
                    if phrase.passed {
                        put(layout.unknown, UNKNOWN_COST);
                    }
                    for (k, inner) in phrase.inner.iter().enumerate() {
                        if let Some(oov) = layout.oov {
                            put(oov + k, inner.unknown as f32);
                        }
                    }
                    let target = phrase.words.iter().map(|&w| {
                        *word_ids.entry(w).or_insert_with(|| {
                            words.push(self.word(w).to_owned());
                            words.len() as u32 - 1
                        })
                    });
                    let target: Vec<u32> = [TAILS[0]].into_iter().chain(target).collect();
                    builder.rule(target, &features)
                });
                features.clear();
                for k in 0..lms {
                    features.push((place[layout.lm + k], self.arc_lm[a as usize * lms + k]));
                }
                let (last_start, last_end) = self.last_span(arc.tail);
                let jump = start.abs_diff(last_end);
                if jump > 0 {
                    features.push((place[layout.distortion], -(jump as f32)));
                }
                if let Some(reordering) = layout.reordering {
                    let way = orientation((last_start, last_end), start, end);
                    features.push((place[reordering + way], phrase.scores[tables + way]));
                    if let Some(before) = self.arc_into(arc.tail) {
                        let forward = self.phrase(before).2.scores[tables + 3 + way];
                        features.push((place[reordering + 3 + way], forward));
                    }
                }
                builder.edge([node[arc.tail as usize], NONE], rule, &features);
            }
            node[n] = builder.node();
        }
        let through = builder.rule([TAILS[0]], &[]);
        for &h in &self.complete {
            features.clear();
            for k in 0..lms {
                features.push((place[layout.lm + k], self.ending(h, k)));
            }
            builder.edge([node[h as usize], NONE], through, &features);
        }
        builder.node();
        builder.finish(self.model.local.clone(), Arc::new(words))
    }

    /// A phrase that leads to a hypothesis: all of them say the same about what comes next.
    fn arc_into(&self, hypothesis: u32) -> Option<u32> {
        self.best_arc(hypothesis).map(|a| self.arcs[a as usize].phrase)
    }
}
