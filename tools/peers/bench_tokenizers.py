#!/usr/bin/env python3
"""The tokenizers, sentencepiece and tiktoken wheels on the files that tools/bench_text measures.

    pip install tokenizers sentencepiece tiktoken
    python3 tools/peers/bench_tokenizers.py tokenizer.json tokenizer.model llama3:x.tiktoken --text corpus.txt [--rounds 5]

Processor time of one thread, each line a text, medians of rounds, as bench_text. A tiktoken file is named with its pattern (gpt2, cl100k, qwen).
"""
import argparse
import os
import statistics
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"

CL100K = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
PATTERNS = {"cl100k": CL100K, "llama3": CL100K, "qwen": CL100K.replace("{1,3}", ""),
            "gpt2": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"}


def encoder(name):
    if name.endswith(".json"):
        from tokenizers import Tokenizer
        tok = Tokenizer.from_file(name)
        tok.no_padding()
        tok.no_truncation()
        tok.encode_special_tokens = True  # marks in texts are text, as in bench_text
        return "tokenizers", lambda line: len(tok.encode(line, add_special_tokens=False).ids)
    if name.endswith(".model"):
        import sentencepiece
        sp = sentencepiece.SentencePieceProcessor(model_file=name)
        return "sentencepiece", lambda line: len(sp.encode(line))
    import tiktoken
    from tiktoken.load import load_tiktoken_bpe
    scheme, path = name.split(":", 1)
    enc = tiktoken.Encoding(scheme, pat_str=PATTERNS[scheme], mergeable_ranks=load_tiktoken_bpe(path), special_tokens={})
    return "tiktoken", lambda line: len(enc.encode_ordinary(line))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="+")
    parser.add_argument("--text", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    a = parser.parse_args()
    lines = [l for l in open(a.text, encoding="utf-8").read().split("\n") if l]
    megabytes = sum(len(l.encode()) for l in lines) / 1e6
    print(f"{len(lines)} lines, {megabytes:.2f} MB; processor time of 1 thread, medians of {a.rounds} rounds")
    for name in a.files:
        library, encode = encoder(name)
        times = []
        for _ in range(a.rounds):
            begin = time.process_time()
            tokens = sum(encode(line) for line in lines)
            times.append(time.process_time() - begin)
        s = statistics.median(times)
        print(f"{library + ' ' + name:<60} {megabytes / s:>10.2f} MB/s {tokens / s:>14.0f} tokens/s ({tokens} tokens)")


if __name__ == "__main__":
    main()
