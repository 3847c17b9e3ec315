//! Conversion of a search lattice to a forest: hypotheses become nodes, arcs become edges, phrases become rules.

use crate::{
    model::UNKNOWN_COST,
    search::{Lattice, Step, orientation},
    sparse::{Seam, end_seams, source_seams, target_seams},
};
use luthier_core::{FeatureKey, Local};
use luthier_forest::{Builder, Forest, NONE, TAILS};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A forest under construction.
#[derive(Default)]
struct Packing {
    builder: Builder,
    /// Target words of the forest.
    words: Vec<String>,
    /// Local number of each target word.
    word_ids: FxHashMap<u32, u32>,
    /// Rule of each translation option, by the option's number.
    rules: FxHashMap<u32, u32>,
    /// Features of the current rule or edge.
    features: Vec<(u32, f32)>,
    /// Local number of each dense feature of the layout.
    place: Vec<u32>,
    /// All features of the forest.
    local: Arc<Local>,
    /// Sparse features at the phrase boundary of each arc in order, then at the end of each complete hypothesis, as
    /// indices into the lattice's cache.
    seams: Vec<u32>,
    /// End in `seams` of the features of each arc and each complete hypothesis.
    seam_ends: Vec<usize>,
    /// Local number of each feature of the lattice's cache.
    seam_place: Vec<u32>,
    /// Number of arcs and complete hypotheses converted so far.
    packed: usize,
}

impl Lattice<'_> {
    /// Returns the forest of all complete translations; empty if there is none.
    pub fn forest(&self) -> Forest<'static> {
        if self.complete.is_empty() {
            return Forest::default();
        }
        let (first, sorted) = self.by_head();
        let into = |n: usize| &sorted[first[n] as usize..first[n + 1] as usize];
        // Only hypotheses that lead to a complete translation.
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
        let order = (1..self.nodes()).filter(|&n| wanted[n]).flat_map(into).copied();
        let mut packing = self.packing(order);
        let mut node = vec![NONE; self.nodes()];
        let empty = packing.builder.rule([], &[]);
        packing.builder.edge([NONE; 2], empty, &[]);
        node[0] = packing.builder.node();
        for n in (1..self.nodes()).filter(|&n| wanted[n]) {
            for &a in into(n) {
                let arc = &self.arcs[a as usize];
                let rule = packing.rule(self, arc.phrase);
                self.own_features(a, arc, &mut packing);
                packing.builder.edge([node[arc.tail as usize], NONE], rule, &packing.features);
            }
            node[n] = packing.builder.node();
        }
        let through = packing.builder.rule([TAILS[0]], &[]);
        let lm = self.model.layout.lm;
        for &h in &self.complete {
            packing.features.clear();
            for k in (0..self.decoder.lms).filter(|k| self.model.uses(lm + k)) {
                packing.features.push((packing.place[lm + k], self.ending(h, k)));
            }
            packing.next_seams();
            packing.builder.edge([node[h as usize], NONE], through, &packing.features);
        }
        packing.builder.node();
        packing.builder.finish(packing.local, Arc::new(packing.words))
    }

    /// Begins a forest with the features of the given arcs, which must be converted in this order.
    fn packing(&self, arcs: impl Iterator<Item = u32>) -> Packing {
        if self.model.sparse.is_none() {
            let (place, local) = (self.model.place.clone(), self.model.local.clone());
            return Packing { place, local, ..Packing::default() };
        }
        let mut packing = Packing::default();
        let mut phrases = Vec::new();
        for arc in arcs.map(|a| &self.arcs[a as usize]) {
            phrases.push(arc.phrase);
            self.each_seam(arc, |seam| packing.seams.extend(self.seam_number(seam)));
            packing.seam_ends.push(packing.seams.len());
        }
        let mut keys: Vec<FeatureKey> = self.model.keys.clone();
        phrases.sort_unstable();
        phrases.dedup();
        for phrase in phrases {
            keys.extend_from_slice(&self.phrase(phrase).2.sparse);
        }
        if let Some(seams) = &self.seams {
            for &h in &self.complete {
                end_seams(seams.on, &self.last(h), |seam| packing.seams.extend(self.seam_number(seam)));
                packing.seam_ends.push(packing.seams.len());
            }
            let mut used = vec![false; seams.len()];
            for &n in &packing.seams {
                used[n as usize] = true;
            }
            keys.extend((0..seams.len() as u32).filter(|&n| used[n as usize]).map(|n| seams.key(n)));
            packing.local = Arc::new(Local::new(keys));
            let place = |n: u32| packing.local.position(seams.key(n)).map_or(u32::MAX, |p| p as u32);
            let places = (0..seams.len() as u32).map(|n| if used[n as usize] { place(n) } else { u32::MAX });
            packing.seam_place = places.collect();
        } else {
            packing.local = Arc::new(Local::new(keys));
        }
        let place = |k: &FeatureKey| packing.local.position(*k).unwrap_or_default() as u32;
        packing.place = self.model.keys.iter().map(place).collect();
        packing
    }

    /// Index of a feature at a phrase boundary in the lattice's cache.
    fn seam_number(&self, seam: Seam) -> Option<u32> {
        self.seams.as_ref().and_then(|s| s.number(seam))
    }

    /// Calls `each` with the sparse features at the phrase boundary of an arc.
    fn each_seam(&self, arc: &Step, mut each: impl FnMut(Seam)) {
        let Some(seams) = &self.seams else { return };
        let last = self.last(arc.tail);
        let (start, end, phrase) = self.phrase(arc.phrase);
        source_seams(seams.on, &last, (start, end), &mut each);
        let orientation = orientation((last.start, last.end), start, end);
        target_seams(seams.on, &last, (start, orientation), &phrase.words, &mut each);
    }

    /// Position of the first arc of each hypothesis, and the arcs sorted by head; the search creates them in order of
    /// stacks.
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

    /// Collects the features of an arc that depend on the previous phrase.
    fn own_features(&self, number: u32, arc: &Step, packing: &mut Packing) {
        let layout = &self.model.layout;
        let (lms, tables) = (self.decoder.lms, self.model.table.shape().scores);
        packing.features.clear();
        for k in (0..lms).filter(|k| self.model.uses(layout.lm + k)) {
            packing.features.push((packing.place[layout.lm + k], self.arc_lm[number as usize * lms + k]));
        }
        let (start, end, phrase) = self.phrase(arc.phrase);
        let last = self.last(arc.tail);
        let jump = start.abs_diff(last.end);
        if jump > 0 && self.model.uses(layout.distortion) {
            packing.features.push((packing.place[layout.distortion], -(jump as f32)));
        }
        if let Some(reordering) = layout.reordering {
            let orientation = orientation((last.start, last.end), start, end);
            packing.put(self, reordering + orientation, phrase.scores[tables + orientation]);
            // All phrases that lead to a hypothesis have the same forward reordering scores.
            if let Some(last) = self.best_arc(arc.tail) {
                let last = self.phrase(self.arcs[last as usize].phrase).2;
                packing.put(self, reordering + 3 + orientation, last.scores[tables + 3 + orientation]);
            }
        }
        packing.next_seams();
    }
}

impl Packing {
    /// Adds a dense feature if it is used and not 0.
    fn put(&mut self, lattice: &Lattice<'_>, feature: usize, value: f32) {
        if value != 0.0 && lattice.model.uses(feature) {
            self.features.push((self.place[feature], value));
        }
    }

    /// Adds a sparse feature with value 1.
    fn sparse(&mut self, key: FeatureKey) {
        if let Some(place) = self.local.position(key) {
            self.features.push((place as u32, 1.0));
        }
    }

    /// Adds the sparse features at the phrase boundary of the next arc, or at the end of the next complete hypothesis.
    fn next_seams(&mut self) {
        let Some(&end) = self.seam_ends.get(self.packed) else { return };
        let start = if self.packed == 0 { 0 } else { self.seam_ends[self.packed - 1] };
        for n in &self.seams[start..end] {
            self.features.push((self.seam_place[*n as usize], 1.0));
        }
        self.packed += 1;
    }

    /// Rule of a translation option: its words after those of the tail, and its features that do not depend on
    /// context.
    fn rule(&mut self, lattice: &Lattice<'_>, number: u32) -> u32 {
        if let Some(&rule) = self.rules.get(&number) {
            return rule;
        }
        let layout = &lattice.model.layout;
        let phrase = lattice.phrase(number).2;
        self.features.clear();
        for k in 0..lattice.model.table.shape().scores {
            self.put(lattice, layout.table + k, phrase.scores[k]);
        }
        self.put(lattice, layout.words, -(phrase.words.len() as f32));
        self.put(lattice, layout.phrases, 1.0);
        if phrase.entry.is_none() {
            self.put(lattice, layout.unknown, UNKNOWN_COST);
        }
        if let Some(oov) = layout.oov {
            for (k, inner) in phrase.inner.iter().enumerate() {
                self.put(lattice, oov + k, inner.unknown as f32);
            }
        }
        for &key in &phrase.sparse {
            self.sparse(key);
        }
        let mut target = vec![TAILS[0]];
        for &w in &phrase.words {
            target.push(*self.word_ids.entry(w).or_insert_with(|| {
                self.words.push(lattice.words().target(w).to_owned());
                self.words.len() as u32 - 1
            }));
        }
        let rule = self.builder.rule(target, &self.features);
        self.rules.insert(number, rule);
        rule
    }
}
