#!/usr/bin/env python3
"""Writes tests/text/fixtures/tokenizer_cases.json: small tokenizer.json files of every kind, and tiktoken files, and what the wheels make of awkward strings with them.

    pip install tokenizers tiktoken && python3 tools/peers/make_tokenizer_cases.py > tests/text/fixtures/tokenizer_cases.json
    python3 tools/peers/make_tokenizer_cases.py --random 2000 --seed 5 > cases.json      # more strings, for a run by hand

A case is {name, tokenizer, rows: [[string, ids, text decoded without special tokens], ...]}; ids are those of encode(add_special_tokens=True).
"""
import argparse
import base64
import json
import random
import unicodedata

import tiktoken
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

STRINGS = ["", " ", "Hello, world!", "hello  world", " leading and trailing ", "It's 12,345.67 dollars\u2014isn't it?", "caf\u00e9 cafe\u0301 CAF\u00c9", "\u00c5\u212b \ufb01ne \u2460",
           "\u4f60\u597d\u4e16\u754c hello", "a\u3000b\u00a0c\u180ed\u200be", "\u1112\u1161\u11ab \ud55c\uad6d", "na\u00efve \U0001F600\U0001F468\u200D\U0001F469\u200D\U0001F466", "tab\tnew\nline\r\n", "\u0130stanbul \u03a3\u03a3",
           "[CLS] hello [SEP]", "<s>hello</s> world <mask>", "a<mask> b  <mask>c", "xHELLOx HELLO, HELLO", "under_score \u00b2\u2162 \u0967\u0968", "A"*30, "unbelievable unaffable", "\u0928\u092e\u0938\u094d\u0924\u0947",
           "x\u0301\u0323y", "  two  blanks  ", "don't do not stop .", "\u2581sign \u2581", "e\u0301\u0301\u0327", "\ufdfa \uff21\uff22", "price: $5 + 6 = 11 ~ ok", "\x00\x07bell\ufffd", "<extra> plain Extra"]
WORDS = ["hello", "world", "un", "##believ", "##able", "##aff", "believ", "able", "caf", "e", "stop", "it", "is", "not", "do"]


def letters():
    chars = [chr(c) for c in range(33, 127)] + list("\u00e9\u00e8\u00ef\u00e7\u2581\u4f60\u597d\ud55c\u0301\u2014\U0001F600")
    return list(dict.fromkeys(chars))


def bpe_vocab(alphabet, merges, extra=()):
    vocab = {}
    for piece in list(extra) + list(alphabet) + [a + b for a, b in merges]:
        vocab.setdefault(piece, len(vocab))
    return vocab


def special(tok, *contents, **kw):
    tok.add_special_tokens([AddedToken(c, special=True, normalized=False, **kw) for c in contents])


def byte_level(pre, suffix=None, **kw):
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("h", "e"), ("l", "l"), ("he", "ll"), ("hell", "o"), ("\u0120", "w"), ("\u0120w", "o"), ("1", "2"), ("\u0120", "\u0120"), ("\u00c3", "\u00a9"), ("A", "A"), ("AA", "AA")]
    vocab = bpe_vocab(alphabet, merges)
    if suffix:
        for piece in list(vocab):
            vocab.setdefault(piece + suffix, len(vocab))
        merges += [("hell", "o" + suffix), ("1", "2" + suffix), ("i", "t" + suffix)]
        vocab.setdefault("it" + suffix, len(vocab))
    tok = Tokenizer(models.BPE(vocab, merges, end_of_word_suffix=suffix, **kw) if suffix else models.BPE(vocab, merges, **kw))
    tok.pre_tokenizer = pre
    tok.decoder = decoders.ByteLevel()
    return tok


def sign_bpe(normalizer=None, pre=None, **kw):
    merges = [("\u2581", "h"), ("e", "l"), ("\u2581h", "el"), ("l", "o"), ("\u2581hel", "lo"), ("\u2581", "w"), ("o", "r"), ("\u2581", "\u2581"), ("\u2581\u2581", "\u2581\u2581"), ("\u2581w", "or")]
    extra = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
    tok = Tokenizer(models.BPE(bpe_vocab(letters(), merges, extra), merges, unk_token="<unk>", **kw))
    tok.add_special_tokens([AddedToken(s, special=True, normalized=False) for s in ("<unk>", "<s>", "</s>")])
    if normalizer:
        tok.normalizer = normalizer
    if pre:
        tok.pre_tokenizer = pre
    tok.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    tok.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 257 - 256)])
    return tok


def word_piece(normalizer, pre, **kw):
    vocab = {p: i for i, p in enumerate(["[UNK]", "[CLS]", "[SEP]", "[MASK]"] + WORDS + letters() + ["##" + c for c in letters()])}
    tok = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]", **kw))
    special(tok, "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    tok.normalizer, tok.pre_tokenizer = normalizer, pre
    tok.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    tok.decoder = decoders.WordPiece()
    return tok


def unigram(byte_fallback, pre, normalizer=None):
    rows = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    rows += [(f"<0x{b:02X}>", 0.0) for b in range(256)] if byte_fallback else []
    rows += [(c, -5.0 - 0.01 * i) for i, c in enumerate(letters())]
    rows += [("\u2581hello", -3.5), ("\u2581he", -4.25), ("llo", -4.5), ("\u2581w", -4.0), ("orld", -4.75), ("\u2581\u2581", -4.0), ("12", -4.5), ("lo", -4.6), ("\u2581un", -4.0), ("able", -4.0)]
    tok = Tokenizer(models.Unigram(rows, unk_id=2, byte_fallback=byte_fallback))
    special(tok, "<pad>", "</s>", "<unk>")
    tok.pre_tokenizer = pre
    if normalizer:
        tok.normalizer = normalizer
    tok.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()]) if byte_fallback else decoders.Metaspace()
    tok.post_processor = processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)])
    return tok


def cases():
    P, N = pre_tokenizers, normalizers
    cl100k = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
    clip = byte_level(P.Sequence([P.Split(Regex(r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"), "removed", True), P.ByteLevel(add_prefix_space=False)]), suffix="</w>")
    clip.normalizer = N.Sequence([N.NFC(), N.Replace(Regex(r"\s+"), " "), N.Lowercase()])
    special(clip, "<|startoftext|>", "<|endoftext|>")
    clip.post_processor = processors.RobertaProcessing(("<|endoftext|>", clip.token_to_id("<|endoftext|>")), ("<|startoftext|>", clip.token_to_id("<|startoftext|>")), False, False)
    yield "byte level, prefix blank", byte_level(P.ByteLevel(add_prefix_space=True))
    yield "byte level, cl100k", byte_level(P.Sequence([P.Split(Regex(cl100k), "isolated"), P.ByteLevel(add_prefix_space=False, use_regex=False)]), ignore_merges=True)
    yield "byte level, digits and punctuation", byte_level(P.Sequence([P.Digits(True), P.Punctuation("contiguous"), P.ByteLevel(add_prefix_space=False)]))
    yield "clip", clip
    flags = byte_level(P.ByteLevel(add_prefix_space=False))
    flags.normalizer = N.NFKC()
    special(flags, "<mask>", lstrip=True, rstrip=True)
    flags.add_tokens([AddedToken("HELLO", single_word=True), AddedToken("  ", normalized=False), AddedToken("fine", normalized=True), AddedToken("<extra>", rstrip=True)])
    yield "added tokens with flags", flags
    legacy = N.Sequence([N.Prepend("\u2581"), N.Replace(" ", "\u2581")])
    yield "sign bpe, legacy normaliser", sign_bpe(legacy, fuse_unk=True, byte_fallback=True)
    yield "sign bpe, no fallback, fused", sign_bpe(legacy, fuse_unk=True)
    yield "sign bpe, no fallback", sign_bpe(legacy, fuse_unk=False)
    yield "sign bpe, metaspace first", sign_bpe(None, P.Metaspace(prepend_scheme="first", split=False), fuse_unk=True, byte_fallback=True)
    lower = N.BertNormalizer()
    yield "bert", word_piece(lower, P.BertPreTokenizer())
    yield "bert, cased", word_piece(N.BertNormalizer(lowercase=False, handle_chinese_chars=False), P.BertPreTokenizer(), max_input_chars_per_word=10)
    yield "word pieces, accents off", word_piece(N.Sequence([N.NFD(), N.StripAccents(), N.Lowercase(), N.Strip()]), P.Whitespace())
    yield "word pieces, digits", word_piece(N.NFKD(), P.Sequence([P.WhitespaceSplit(), P.Digits(False), P.Punctuation()]))
    for behavior in ("removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"):
        for invert in (False, True):
            yield f"split {behavior} {invert}", word_piece(N.Lowercase(), P.Sequence([P.WhitespaceSplit(), P.Split(Regex(r"[aeiou,.']"), behavior, invert)]))
    yield "split by text", word_piece(N.Strip(True, False), P.Sequence([P.Split("ll", "merged_with_next"), P.CharDelimiterSplit("o"), P.WhitespaceSplit()]))
    yield "unigram, t5 way", unigram(False, P.Sequence([P.WhitespaceSplit(), P.Metaspace()]))
    yield "unigram, byte fallback", unigram(True, P.Metaspace())
    yield "unigram, nmt and never", unigram(False, P.Metaspace(prepend_scheme="never"), N.Sequence([N.Nmt(), N.NFKC(), N.Replace(Regex(" {2,}"), " ")]))
    level = Tokenizer(models.WordLevel({"[UNK]": 0, "hello": 1, "world": 2, ",": 3, "!": 4, "It": 5}, unk_token="[UNK]"))
    level.pre_tokenizer = P.Whitespace()
    yield "word level", level


CL100K = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
O200K = "|".join([r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
                  r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
                  r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"])
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def tiktoken_cases(strings):
    pieces = [bytes([b]) for b in range(256)] + [p.encode() for p in ["he", "ll", "hell", "hello", " w", "or", " wor", "12", "123", "  ", "    ", "\u00e9", "\u4f60", "in", "ing", "th", " th", "the", " the", "AA", "AAAA", "'s", "\n\n"]]
    ranks = {p: i for i, p in enumerate(pieces)}
    content = "".join(f"{base64.b64encode(p).decode()} {i}\n" for p, i in ranks.items())
    for scheme, pattern, end in (("gpt2", GPT2, 0), ("cl100k", CL100K, 1), ("o200k", O200K, 1), ("qwen", CL100K.replace("{1,3}", ""), 0)):
        enc = tiktoken.Encoding(scheme, pat_str=pattern, mergeable_ranks=ranks, special_tokens={"<|endoftext|>": len(ranks) + end})
        rows = []
        for s in strings + ["a<|endoftext|>b"]:
            ids = enc.encode(unicodedata.normalize("NFC", s) if scheme == "qwen" else s, allowed_special="all")
            rows.append([s, ids, enc.decode([i for i in ids if i < len(ranks)])])
        yield {"name": "tiktoken " + scheme, "scheme": scheme, "content": content, "rows": rows}


def random_strings(count, seed):
    rnd = random.Random(seed)
    parts = STRINGS + WORDS + letters() + [" ", "  ", "\n", "'s", "'LL", "123", "<mask>", "HELLO", "\u0301", "\u200d", "\U0001F1E9\U0001F1EA"] + [chr(c) for c in range(0xA0, 0x250)] + [chr(rnd.randrange(0x250, 0xD800)) for _ in range(300)]
    return ["".join(rnd.choice(parts) for _ in range(rnd.randrange(1, 9))) for _ in range(count)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--random", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    a = parser.parse_args()
    strings = STRINGS + random_strings(a.random, a.seed)
    out = []
    for name, tok in cases():
        rows = []
        for s in strings:
            ids = tok.encode(s).ids
            rows.append([s, ids, tok.decode(ids)])
        out.append({"name": name, "tokenizer": json.loads(tok.to_str()), "rows": rows})
    out += tiktoken_cases(strings)
    lines = []
    for case in out:
        head = json.dumps({k: v for k, v in case.items() if k != "rows"}, ensure_ascii=True)[:-1]
        lines.append(head + ', "rows": [\n' + ",\n".join(json.dumps(r) for r in case["rows"]) + "]}")
    print("[" + ",\n".join(lines) + "]")


if __name__ == "__main__":
    main()
