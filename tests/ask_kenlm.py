"""Scores sentences with KenLM: reads a model and a text, prints log10 probability and number of unknown words per line."""

import sys

import kenlm

model = kenlm.Model(sys.argv[1])
for line in open(sys.argv[2]):
    words = line.split()
    scores = list(model.full_scores(" ".join(words), bos=True, eos=True))
    print(repr(sum(s[0] for s in scores)), sum(1 for s in scores[: len(words)] if s[2]))
