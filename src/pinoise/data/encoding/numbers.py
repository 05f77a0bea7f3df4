"""Numbers as people write them: amounts of money, percentages, thousands apart, and commas for decimal points."""

from __future__ import annotations

from typing import Any, Literal, get_args

import pyarrow.compute as pc

from pinoise.data.formats.arrow import looks_like_number, text_of

Style = Literal["plain", "point", "comma"]
"""How the numbers of a column are written: 1000.5; $1,000.50 or 12 %; 1.000,50 € or 1,5."""

STYLES: tuple[Style, ...] = get_args(Style)
"""All styles, the plainest first."""

_CURRENCY = r"(?:[$€£¥]|USD|EUR|GBP|CHF|JPY)?"
_PATTERNS: dict[Style, str] = {
    "point": rf"^[+-]?\s*{_CURRENCY}\s*[+-]?(\d{{1,3}}([ ',]\d{{3}})+|\d+)(\.\d*)?\s*({_CURRENCY}|%)$",
    "comma": rf"^[+-]?\s*{_CURRENCY}\s*[+-]?(\d{{1,3}}([ '.]\d{{3}})+|\d+)(,\d*)?\s*({_CURRENCY}|%)$",
}
_MARKS = r"[\s'$€£¥%]|USD|EUR|GBP|CHF|JPY"


def is_written(text: Any, style: Style) -> Any:
    """Return for each cell of text whether it is a number in this style.

    >>> import pyarrow as pa
    >>> is_written(pa.array(["$1,000.00", "12 %", "1,5"]), "point").to_pylist()
    [True, True, False]
    >>> is_written(pa.array(["1.000,50 €", "1,5"]), "comma").to_pylist()
    [True, True]
    """
    return looks_like_number(text) if style == "plain" else pc.match_substring_regex(text, _PATTERNS[style])


def as_plain(text: Any, style: Style) -> Any:
    """Return numbers of a style as plain ones; a percentage stays one.

    >>> import pyarrow as pa
    >>> as_plain(pa.array(["-$1,000.50", "12 %"]), "point").to_pylist()
    ['-1000.50', '12']
    >>> as_plain(pa.array(["1.000,5"]), "comma").to_pylist()
    ['1000.5']
    """
    text = text_of(text)
    if style == "plain":
        return text
    text = pc.replace_substring_regex(text, _MARKS, "")
    if style == "point":
        return pc.replace_substring(text, ",", "")
    return pc.replace_substring(pc.replace_substring(text, ".", ""), ",", ".")
