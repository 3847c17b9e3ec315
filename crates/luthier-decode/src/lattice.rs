//! The lattice of a search as a forest: a hypothesis is a node, a way to get there an edge.

use crate::{
    model::UNKNOWN_COST,
    search::{Arc_, Lattice, orientation},
};
use luthier_forest::{Builder, Forest, NONE, TAILS};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A forest in the making.
#[derive(Default)]
struct Packing {
    builder: Builder,
    /// Target words, and their numbers in the forest.
    words: Vec<String>,
    word_ids: FxHashMap<u32, u32>,
    /// Rules of phrases.
    rules: FxHashMap<u32, u32>,
    features: Vec<(u32, f32)>,
}

impl Lattice<'_> {
    /// The forest of all complete translations.
    pub fn forest(&self) -> Forest<'static> {
        if self.complete.is_empty() {
            return Forest::default();
        }
        let (first, sorted) = self.by_head();
        let into = |n: usize| &sorted[first[n] as usize..first[n + 1] as usize];
        // Only what leads to a complete translation.
        let mut wanted = vec![false; self.nodes()];
        for &h in &self.complete {
            wanted[h as usize] = true;
        }
        for n in (1..self.nodes()).rev() {
            if wanted[n] {
                for &a in into(n) {
                    wanted[self.arcs[a as usize].tail as usize] = true;
                }
            }
        }
        let mut packing = Packing::default();
        let mut node = vec![NONE; self.nodes()];
        let empty = packing.builder.rule([], &[]);
        packing.builder.edge([NONE; 2], empty, &[]);
        node[0] = packing.builder.node();
        for n in (1..self.nodes()).filter(|&n| wanted[n]) {
            for &a in into(n) {
                let arc = &self.arcs[a as usize];
                let rule = packing.rule(self, arc.phrase);
                self.own_features(a, arc, &mut packing.features);
                packing.builder.edge([node[arc.tail as usize], NONE], rule, &packing.features);
            }
            node[n] = packing.builder.node();
        }
        let through = packing.builder.rule([TAILS[0]], &[]);
        let (lm, place) = (self.model.layout.lm, &self.model.place);
        for &h in &self.complete {
            let ends: Vec<(u32, f32)> =
                (0..self.model.lms.len()).map(|k| (place[lm + k], self.ending(h, k))).collect();
            packing.builder.edge([node[h as usize], NONE], through, &ends);
        }
        packing.builder.node();
        packing.builder.finish(self.model.local.clone(), Arc::new(packing.words))
    }

    /// Arcs in order of their heads, and where those of each head begin: they come in order of stacks, not of hypotheses.
    fn by_head(&self) -> (Vec<u32>, Vec<u32>) {
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
        (first, sorted)
    }

    /// Features of an arc that depend on what stands before its phrase.
    fn own_features(&self, number: u32, arc: &Arc_, out: &mut Vec<(u32, f32)>) {
        let (layout, place) = (&self.model.layout, &self.model.place);
        let (lms, tables) = (self.model.lms.len(), self.model.table.shape().scores);
        out.clear();
        for k in 0..lms {
            out.push((place[layout.lm + k], self.arc_lm[number as usize * lms + k]));
        }
        let (start, end, phrase) = self.phrase(arc.phrase);
        let before = self.last_span(arc.tail);
        let jump = start.abs_diff(before.1);
        if jump > 0 {
            out.push((place[layout.distortion], -(jump as f32)));
        }
        if let Some(reordering) = layout.reordering {
            let way = orientation(before, start, end);
            out.push((place[reordering + way], phrase.scores[tables + way]));
            // All phrases that lead to a hypothesis say the same about what comes next.
            if let Some(last) = self.best_arc(arc.tail) {
                let last = self.phrase(self.arcs[last as usize].phrase).2;
                out.push((place[reordering + 3 + way], last.scores[tables + 3 + way]));
            }
        }
    }
}

impl Packing {
    /// The rule of a phrase: its words behind those before it, and what it is worth by itself.
    fn rule(&mut self, lattice: &Lattice<'_>, number: u32) -> u32 {
        if let Some(&rule) = self.rules.get(&number) {
            return rule;
        }
        let (layout, place) = (&lattice.model.layout, &lattice.model.place);
        let phrase = lattice.phrase(number).2;
        self.features.clear();
        let mut put = |f: usize, v: f32| {
            if v != 0.0 {
                self.features.push((place[f], v));
            }
        };
        for k in 0..lattice.model.table.shape().scores {
            put(layout.table + k, phrase.scores[k]);
        }
        put(layout.words, -(phrase.words.len() as f32));
        put(layout.phrases, 1.0);
        if phrase.passed {
            put(layout.unknown, UNKNOWN_COST);
        }
        if let Some(oov) = layout.oov {
            for (k, inner) in phrase.inner.iter().enumerate() {
                put(oov + k, inner.unknown as f32);
            }
        }
        let mut target = vec![TAILS[0]];
        for &w in &phrase.words {
            target.push(*self.word_ids.entry(w).or_insert_with(|| {
                self.words.push(lattice.word(w).to_owned());
                self.words.len() as u32 - 1
            }));
        }
        let rule = self.builder.rule(target, &self.features);
        self.rules.insert(number, rule);
        rule
    }
}
