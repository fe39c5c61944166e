#!/usr/bin/env python3
"""Writes lib/text/nfc_table.inc from Python's copy of the Unicode Character Database.

    python3 tools/make_nfc_table.py > lib/text/nfc_table.inc
"""
import sys
import unicodedata

LAST = 0x10FFFF
HANGUL = range(0xAC00, 0xD7A4)


def rows(name, fields, entries, per_line):
    print(f"constexpr {fields} {name}[] = {{")
    for i in range(0, len(entries), per_line):
        print("    " + " ".join("{" + ", ".join(f"0x{v:X}" if v > 255 else str(v) for v in e) + "}," for e in entries[i:i + per_line]))
    print("};")


def decompositions():
    out = []
    for c in range(LAST + 1):
        spec = unicodedata.decomposition(chr(c))
        if spec and not spec.startswith("<") and c not in HANGUL:
            parts = [int(p, 16) for p in spec.split()]
            out.append((c, parts[0], parts[1] if len(parts) > 1 else 0))
    return out


def combining_ranges():
    out = []
    for c in range(LAST + 1):
        k = unicodedata.combining(chr(c))
        if k and out and out[-1][1] == c - 1 and out[-1][2] == k:
            out[-1] = (out[-1][0], c, k)
        elif k:
            out.append((c, c, k))
    return out


def main():
    pairs = decompositions()
    composed = sorted((a, b, c) for c, a, b in pairs if b and unicodedata.normalize("NFC", chr(a) + chr(b)) == chr(c))
    print(f"// Made by tools/make_nfc_table.py from Unicode {unicodedata.unidata_version}. Do not edit.")
    rows("kDecompositions", "Decomposition", pairs, 5)
    rows("kCompositions", "Composition", composed, 5)
    rows("kCombiningClasses", "CombiningRange", combining_ranges(), 5)


if __name__ == "__main__":
    sys.exit(main())
