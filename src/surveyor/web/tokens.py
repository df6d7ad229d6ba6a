"""Estimate how many tokens a language model reads in a text, without a tokenizer.

Tokenizers differ, and their vocabularies are large downloads. The estimate is a sum over the characters and words of a
text, with weights fitted to two vocabularies (o200k_base and Tekken) on real pages. `experiments/tokens.py` fits the
weights on half of the pages and measures the error on the other half; docs/how-to/text-corpus.md has the result.

    >>> estimate_tokens("The river rises in the mountains."), estimate_tokens("")
    (8, 0)
"""

from __future__ import annotations

import numpy as np

from surveyor.arrays import FloatArray

FEATURES = (
    "words",  # of ASCII letters
    "letters",  # ASCII
    "digits",
    "signs",  # ASCII punctuation
    "repeated signs",  # signs equal to the one before, as in rules and indentation
    "Latin, Greek and Cyrillic letters",  # not ASCII
    "other scripts",
    "Chinese, Japanese and Korean",
    "beyond the basic plane",
)
WEIGHTS: FloatArray = np.array([0.70, 0.09, 0.97, 0.60, -0.3, 0.35, 0.43, 0.83, 2.0])
_LETTER, _DIGIT, _SIGN, _OTHER = 1, 2, 3, 4
_CLASSES = np.zeros(128, np.uint8)
for _number in range(128):
    _character = chr(_number)
    if _character.isalpha():
        _CLASSES[_number] = _LETTER
    elif _character.isdigit():
        _CLASSES[_number] = _DIGIT
    elif not _character.isspace():
        _CLASSES[_number] = _SIGN


def features(text: str) -> FloatArray:
    """Count the features of a text."""
    codes = np.frombuffer(text.encode("utf-32-le", "replace"), np.uint32)
    is_ascii = codes < 128
    classes = np.where(is_ascii, _CLASSES[np.where(is_ascii, codes, 0)], _OTHER)
    letter, sign = classes == _LETTER, classes == _SIGN
    counts = [
        np.count_nonzero(letter[1:] & ~letter[:-1]) + int(letter[:1].sum()),
        np.count_nonzero(letter),
        np.count_nonzero(classes == _DIGIT),
        np.count_nonzero(sign),
        np.count_nonzero(sign[1:] & (codes[1:] == codes[:-1])),
        np.count_nonzero((codes >= 128) & (codes < 0x530)),
        np.count_nonzero((codes >= 0x530) & (codes < 0x2E80)),
        np.count_nonzero((codes >= 0x2E80) & (codes < 0x10000)),
        np.count_nonzero(codes >= 0x10000),
    ]
    return np.array(counts, np.float64)


def estimate_tokens(text: str) -> int:
    """Return the estimated number of tokens of a text."""
    return int(np.ceil(features(text) @ WEIGHTS)) if text else 0
