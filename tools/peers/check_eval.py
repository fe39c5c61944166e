#!/usr/bin/env python3
"""Scores a run's answers again, by code that shares nothing with mmkit, and compares.

    mmtrain eval --from RUN --data SET --task names,perplexity,captions,retrieval --answers RUN/answers.jsonl
    python3 tools/peers/check_eval.py RUN

Reads RUN/eval.json (figures, true names, guesses, ranks) and checks exact match, word F1, BLEU-1 to 4, CIDEr, CIDEr-D and ROUGE-L from
the guesses alone: definitions from the papers (Papineni 2002, Vedantam 2015, Lin 2004), written here with plain dictionaries. Recall@k of
names and of captions given a picture are counted from the ranks that mmkit states, and perplexity from its mean loss: what the model
itself says of a text, and so pictures ranked for a caption, is not computed again here. Prints both values of each figure and exits 1 if
any differs by more than 1e-9. Python's standard library only.
"""

import collections
import json
import math
import sys


def words(text):
    """Lower case without punctuation, as mmkit's caption_text."""
    blanked = "".join(" " if ord(c) < 128 and not (c.isalnum() or c in "'-") else c for c in text)
    return "".join(c.lower() if ord(c) < 128 else c for c in blanked).split(" ")


def name_words(text):
    return "".join(c.lower() if ord(c) < 128 else c for c in text.replace(":", "").replace(",", "")).split()


def ngrams(tokens, n):
    return collections.Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))


def bleu(pairs):
    hits, totals, shorter, longer = [0] * 4, [0] * 4, 0, 0
    for truth, guess in pairs:
        shorter += len(guess)
        longer += len(truth)
        for n in range(1, 5):
            have, want = ngrams(guess, n), ngrams(truth, n)
            hits[n - 1] += sum(min(count, want[gram]) for gram, count in have.items())
            totals[n - 1] += sum(have.values())
    penalty = 1.0 if shorter >= longer else (math.exp(1 - longer / shorter) if shorter else 0.0)
    scores = []
    for order in range(1, 5):
        if any(hits[n] == 0 for n in range(order)):
            scores.append(0.0)
        else:
            scores.append(penalty * math.exp(sum(math.log(hits[n] / totals[n]) for n in range(order)) / order))
    return scores


def cider(pairs, clipped):
    """CIDEr-D where `clipped`: weights at most the reference's, and a penalty on lengths."""
    frequency = collections.Counter()
    for truth, _ in pairs:
        frequency.update({gram for n in range(1, 5) for gram in ngrams(truth, n)})
    log_pictures = math.log(len(pairs))

    def vector(tokens, n):
        return {g: c * (log_pictures - math.log(max(1, frequency[g]))) for g, c in ngrams(tokens, n).items()}

    total = 0.0
    for truth, guess in pairs:
        score = 0.0
        for n in range(1, 5):
            have, want = vector(guess, n), vector(truth, n)
            norm = math.sqrt(sum(v * v for v in have.values())) * math.sqrt(sum(v * v for v in want.values()))
            dot = sum((min(have[g], want.get(g, 0.0)) if clipped else have[g]) * want.get(g, 0.0) for g in have)
            # COCO's tools measure length in bigrams.
            delta = max(0, len(guess) - 1) - max(0, len(truth) - 1) if clipped else 0
            score += (dot / norm if norm else dot) * math.exp(-delta * delta / 72.0)
        total += 10 * score / 4
    return total / len(pairs)


def rouge_l(pairs):
    total = 0.0
    for truth, guess in pairs:
        table = [[0] * (len(guess) + 1) for _ in range(len(truth) + 1)]
        for i, a in enumerate(truth):
            for j, b in enumerate(guess):
                table[i + 1][j + 1] = table[i][j] + 1 if a == b else max(table[i][j + 1], table[i + 1][j])
        common = table[-1][-1]
        if common:
            precision, recall = common / len(guess), common / len(truth)
            total += (1 + 1.44) * precision * recall / (recall + 1.44 * precision)
    return total / len(pairs)


def word_f1(truth, guess):
    common = sum((collections.Counter(truth) & collections.Counter(guess)).values())
    return 2 * common / (len(truth) + len(guess)) if common else 0.0


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(sys.argv[1] + "/eval.json", encoding="utf-8") as file:
        evaluation = json.load(file)
    pictures = evaluation["pictures"]
    checks = []
    if pictures:
        names = [(name_words(p["truth"]), name_words(p["guess"])) for p in pictures]
        row = evaluation["scores"]["trained"]
        checks += [
            ("exact match", row["exact_match"], sum(t == g for t, g in names) / len(names)),
            ("word F1", row["word_f1"], sum(word_f1(t, g) for t, g in names) / len(names)),
        ]
        for k in (1, 5, 10):
            checks.append((f"recall@{k}", row[f"recall_at_{k}"], sum(p["rank"] <= k for p in pictures) / len(pictures)))
    tasks = evaluation.get("tasks", {})

    def of_pictures(name):
        """A task's figures, if they are of the set whose pictures stand in the file."""
        figures = tasks.get(name)
        return figures if pictures and figures and figures.get("data", evaluation["data"]) == evaluation["data"] else None

    if "perplexity" in tasks:
        checks.append(("perplexity", tasks["perplexity"]["perplexity"], math.exp(tasks["perplexity"]["loss"])))
    ranked = of_pictures("retrieval")
    # Names count a tie as lost, retrieval as won.
    if ranked and len({p["truth"] for p in pictures}) == len(pictures) == ranked["samples"]:
        found = ranked["picture_to_text"]
        for k in (1, 5, 10):
            checks.append((f"captions@{k}", found[f"recall_at_{k}"], sum(p["rank"] <= k for p in pictures) / len(pictures)))
        checks.append(("mean rank", found["mean_rank"], sum(p["rank"] for p in pictures) / len(pictures)))
    captions = of_pictures("captions")
    if captions:
        pairs = [([w for w in words(p["truth"]) if w], [w for w in words(p["guess"]) if w]) for p in pictures]
        for n, score in enumerate(bleu(pairs), 1):
            checks.append((f"BLEU-{n}", captions[f"bleu_{n}"], score))
        checks.append(("CIDEr", captions["cider"], cider(pairs, clipped=False)))
        checks.append(("CIDEr-D", captions["cider_d"], cider(pairs, clipped=True)))
        checks.append(("ROUGE-L", captions["rouge_l"], rouge_l(pairs)))
    if not checks:
        sys.exit("eval.json holds nothing to check: run mmtrain eval with --task names,captions")
    worst = 0.0
    for name, theirs, ours in checks:
        worst = max(worst, abs(theirs - ours))
        print(f"{name:<12} mmkit {theirs:.12f}   here {ours:.12f}   difference {abs(theirs - ours):.1e}")
    return 1 if worst > 1e-9 else 0


if __name__ == "__main__":
    sys.exit(main())
