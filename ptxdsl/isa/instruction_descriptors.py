"""Instruction descriptors of tcgen05.mma: which product the 32 bits of a register say, and whether there is one.

The one home of these bits, of the shapes and types that each kind has, and of the words in which a wrong descriptor is
refused. The manual's tables of PTX 9.1 are taken, for sm_100 to sm_103; what sm_107 has put into reserved bits is
refused as these are, but for the bit of twice as many columns, without which there is no B that a table decompresses.
Where sources differ the larger set is taken: N in the manual's steps, f16 beside bf16.
"""

from __future__ import annotations

from typing import NamedTuple

from .matrix_descriptors import Bits

__all__ = ["ELEMENTS", "KINDS", "InvalidDescriptor", "Product", "Variant", "decode", "encode"]

ELEMENTS: dict[str, dict[str, int]] = {
    "f16": {"f16": 0, "bf16": 1},
    "tf32": {"tf32": 2},
    "f8f6f4": {"e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5},
    "mxf8f6f4": {"e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5},
    "i8": {"u8": 0, "s8": 1},
    "ti16": {"ti16": 3},
    "mxf4": {"e2m1x": 1},
    "mxf4nvf4": {"e2m1x": 1},
}
"""The types of A and B of each kind, and their numbers; ``e2m1x`` is packed."""
KINDS = tuple(ELEMENTS)
_RESULTS = {"f16": ("f16", "f32"), "f8f6f4": ("f16", "f32"), "i8": ("s32",), "ti16": ("s32",)}
_RESULT_CODES = ("f16", "f32", "s32")
_BITS = {"f16": 16, "tf32": 32, "ti16": 16, "mxf4": 4, "mxf4nvf4": 4}
"""Of an element of A; 8 elsewhere: FP6 and FP4 are padded."""

_SELECTOR, _SPARSE, _SATURATES, _RESULT = Bits(0, 2), Bits(2, 1), Bits(3, 1), Bits(4, 2)
_LEFT, _RIGHT = Bits(7, 3), Bits(10, 3)
_NEGATIVE, _TURNED = (Bits(13, 1), Bits(14, 1)), (Bits(15, 1), Bits(16, 1))
_COLUMNS, _ROWS, _SHIFT = Bits(17, 6, 3), Bits(24, 5, 4), Bits(30, 2)
_SCALE_B, _SCALE_A, _SCALE_TYPE = Bits(4, 2), Bits(29, 2), Bits(23, 1)
_ROWS_SCALED, _LONG, _DOUBLE = Bits(27, 2, 7), Bits(31, 1), Bits(29, 1)
"""The last two say how many columns there are: 96, or twice as many as usual."""
_SHIFTS = (0, 8, 16, 32)


class InvalidDescriptor(ValueError):
    """The descriptor says no product of the instruction; the text says why."""


class Variant(NamedTuple):
    """What an instruction says of its product beside the descriptor; ``held`` is an A in tensor memory.

    ``blocks`` is the number of scales of a row as its modifiers name it (1, 2 or 4), 0 without scales.
    """

    kind: str
    group: int = 1
    sparse: bool = False
    weights: bool = False
    """Whether it is ``.ws``."""
    held: bool = False
    blocks: int = 0
    table: bool = False
    """Whether B is decompressed by a table."""

    @property
    def name(self) -> str:
        return f"kind::{self.kind}" + ".sp" * self.sparse + ".ws" * self.weights


class Product(NamedTuple):
    """What a descriptor says; ``m`` and ``n`` are those of both blocks of a pair, ``k`` counts a sparse A's columns."""

    m: int
    n: int
    k: int
    result: str
    types: tuple[str, str]
    negative: tuple[bool, bool] = (False, False)
    turned: tuple[bool, bool] = (False, False)
    """Which of A and B is M- or N-major."""
    saturates: bool = False
    selector: int = 0
    scales: tuple[int, int] = (0, 0)
    """The byte at which those of A and B begin."""
    scale_type: str = ""
    shift: int = 0
    """The largest shift of columns that a ``.ws`` may ask for."""


def _scaled(kind: str) -> bool:
    return kind.startswith("mx")


def _depth(variant: Variant, long: bool) -> int:
    if variant.table:
        return 64
    return 96 if long else 256 // _BITS.get(variant.kind, 8) << variant.sparse


def encode(variant: Variant, product: Product) -> int:
    """The 32 bits.

    >>> hex(encode(Variant("f16"), Product(128, 256, 16, "f32", ("bf16", "bf16"))))
    '0x8400490'
    """
    codes = ELEMENTS[variant.kind]
    parts = [
        (_SPARSE, variant.sparse), (_LEFT, codes[product.types[0]]), (_RIGHT, codes[product.types[1]]),
        (_COLUMNS, product.n), *zip(_NEGATIVE, product.negative), *zip(_TURNED, product.turned),
    ]
    if _scaled(variant.kind):
        parts += [
            (_SCALE_A, product.scales[0]), (_SCALE_B, product.scales[1]), (_ROWS_SCALED, product.m),
            (_SCALE_TYPE, product.scale_type == "ue8m0"), (_LONG, product.k == 96 or variant.table),
        ]
    else:
        parts += [
            (_SELECTOR, product.selector), (_SATURATES, product.saturates), (_ROWS, product.m),
            (_RESULT, _RESULT_CODES.index(product.result)), (_SHIFT, _SHIFTS.index(product.shift)),
            (_DOUBLE, variant.table),
        ]
    return sum((int(value) >> field.unit & (1 << field.width) - 1) << field.low for field, value in parts)


def decode(variant: Variant, word: int) -> Product:
    """What a descriptor says; raises :class:`InvalidDescriptor` where that is no product of the instruction."""
    scaled, kind = _scaled(variant.kind), variant.kind

    _check_reserved(variant, word)
    if _SPARSE.of(word) != variant.sparse:
        says, is_ = ("dense", "sparse") if variant.sparse else ("sparse", "dense")
        raise InvalidDescriptor(f"bit 2 is {_SPARSE.of(word)}: it says that A is {says}, and the instruction is {is_}")
    result = "f32" if scaled else _result(variant, _RESULT.of(word))
    types = _type(variant, "A", _LEFT, _LEFT.of(word)), _type(variant, "B", _RIGHT, _RIGHT.of(word))
    if kind == "f16" and result == "f16" and "bf16" in types:
        raise InvalidDescriptor("a result of f16 of elements of bf16: bits 4-5 must be 1, f32")
    product = Product(
        (_ROWS_SCALED if scaled else _ROWS).of(word), _COLUMNS.of(word),
        _depth(variant, scaled and _LONG.of(word) == 1), result, types,
        (_NEGATIVE[0].of(word) == 1, _NEGATIVE[1].of(word) == 1), (_TURNED[0].of(word) == 1, _TURNED[1].of(word) == 1),
    )
    if scaled:
        product = product._replace(
            scales=(_SCALE_A.of(word), _SCALE_B.of(word)), scale_type="ue8m0" if _SCALE_TYPE.of(word) else "ue4m3"
        )
    else:
        product = product._replace(
            saturates=_SATURATES.of(word) == 1, selector=_SELECTOR.of(word) if variant.sparse else 0,
            shift=_SHIFTS[_SHIFT.of(word)],
        )
    _check_signs(variant, product)
    _check_shape(variant, product)
    (_check_scales if scaled else _check_modes)(variant, product)
    if variant.table:
        _check_table(product)
    return product


def _check_reserved(variant: Variant, word: int) -> None:
    reserved = [6, 23, 29]
    if _scaled(variant.kind):
        reserved = [0, 1, 3, 6, 24, 25, 26, *([31] if variant.kind == "mxf8f6f4" else [12])]
    if variant.table:
        wide = reserved.pop()
        if not word >> wide & 1:
            raise InvalidDescriptor(f"bit {wide} is 0: K is 32, and with a table it is 64")
    for bit in reserved:
        if word >> bit & 1:
            raise InvalidDescriptor(f"bit {bit} is set, and kind::{variant.kind} reserves it: it must be 0")


def _result(variant: Variant, code: int) -> str:
    found = _RESULT_CODES[code] if code < len(_RESULT_CODES) else ""
    known = _RESULTS.get(variant.kind, ("f32",))
    if found not in known:
        listed = " or ".join(f"{_RESULT_CODES.index(name)} ({name})" for name in known)
        raise InvalidDescriptor(f"bits 4-5, the type of D, are {code}; kind::{variant.kind} has {listed}")
    return found


def _type(variant: Variant, which: str, field: Bits, code: int) -> str:
    codes = ELEMENTS[variant.kind]
    for name, number in codes.items():
        if number == code:
            return name
    listed = ", ".join(f"{number} ({name.rstrip('x')})" for name, number in codes.items())
    where = f"bits {field.low}-{field.low + field.width - 1}, the type of {which},"
    raise InvalidDescriptor(f"{where} are {code}; kind::{variant.kind} has {listed}")


def _check_signs(variant: Variant, product: Product) -> None:
    kind = variant.kind
    for n, which in enumerate("AB"):
        if product.negative[n] and kind in ("i8", "ti16"):
            raise InvalidDescriptor(f"bit {_NEGATIVE[n].low} negates {which}, and kind::{kind} cannot")
        if not product.turned[n]:
            continue
        major, element = ("M-major", "N-major")[n], product.types[n]
        message = f"bit {_TURNED[n].low} says that {which} is {major}"
        if element in ("e2m3", "e3m2", "e2m1", "e2m1x"):
            raise InvalidDescriptor(f"{message}, and elements of {element.rstrip('x')} are K-major")
        if n == 0 and variant.held:
            raise InvalidDescriptor(f"{message}, and it lies in tensor memory, K-major")


def _check_shape(variant: Variant, product: Product) -> None:
    rows = _rows(variant)
    where = f"{variant.name} of cta_group::{variant.group}"
    if product.m not in rows:
        raise InvalidDescriptor(f"M is {product.m}; {where} has {_listed(rows)}")
    columns, text = _columns(variant, product)
    if product.n not in columns:
        raise InvalidDescriptor(f"N is {product.n}; {where} has {text}")


def _listed(numbers: tuple[int, ...]) -> str:
    return " or ".join(map(str, numbers))


def _rows(variant: Variant) -> tuple[int, ...]:
    if variant.weights:
        return (32, 64, 128)
    if _scaled(variant.kind):
        return (128,) if variant.group == 1 else (256,) if variant.sparse else (128, 256)
    return (64, 128) if variant.group == 1 else (128, 256)


def _columns(variant: Variant, product: Product) -> tuple[tuple[int, ...] | range, str]:
    """The numbers that N may be, and in words."""
    if variant.weights:
        some = (64, 128) if variant.sparse else (64, 128, 256)
        return some, _listed(some)
    step = 8 * variant.group
    if product.k == 96:
        step = 16
    if product.turned[1] and _BITS.get(variant.kind, 8) == 8:
        step = 16 * variant.group
    if variant.kind == "i8" and variant.group == 1 and step == 8:
        return (8, 16, 24, *range(32, 257, 16)), "8, 16, 24, or a multiple of 16 from 32 to 256"
    if variant.kind in ("i8", "ti16") and variant.group == 2:
        step = 32
    return range(step, 257, step), f"a multiple of {step} from {step} to 256"


def _check_modes(variant: Variant, product: Product) -> None:
    if product.saturates and variant.kind != "i8":
        raise InvalidDescriptor(f"bit 3 asks for saturation, which kind::i8 has, not kind::{variant.kind}")
    if product.shift and not variant.weights:
        raise InvalidDescriptor(f"bits 30-31 allow columns to shift by {product.shift}, which only .ws can")
    if product.shift == 32 and product.m == 32:
        raise InvalidDescriptor("bits 30-31 allow columns to shift by 32, and an M of 32 by 16 at most")
    most = 1 if variant.kind in ("f16", "tf32", "ti16") else 0
    if product.selector > most:
        named = "0 or 1" if most else "0"
        raise InvalidDescriptor(f"bits 0-1, the sparsity selector, are {product.selector}; {variant.name} has {named}")


def _check_table(product: Product) -> None:
    if product.types[1] != "e4m3" or product.turned[1]:
        raise InvalidDescriptor("a B that is decompressed by a table is K-major, of e4m3: bits 10-12 and 16 must be 0")
    if product.types[0] not in ("e4m3", "e5m2"):
        raise InvalidDescriptor(f"A is of {product.types[0]}; beside a table the emulator takes e4m3 and e5m2")


def _check_scales(variant: Variant, product: Product) -> None:
    kind, long = variant.kind, product.k == 96
    if long and variant.sparse:
        raise InvalidDescriptor("bit 31 is set: K is 96, which only a dense A has")
    if product.scale_type == "ue4m3" and (kind != "mxf4nvf4" or variant.blocks == 2):
        size = "" if kind != "mxf4nvf4" else " with blocks of 32"
        raise InvalidDescriptor(f"bit 23 is 0, scales of ue4m3; {variant.name}{size} has 1, ue8m0, only")
    step = variant.blocks if not long else 1 if variant.blocks == 2 else 2
    for which, number, bits in (("A", product.scales[0], "29-30"), ("B", product.scales[1], "4-5")):
        if number % step:
            allowed = _listed(tuple(range(0, 4, step)))
            raise InvalidDescriptor(f"bits {bits}, the byte of {which}'s scales, are {number}; it can be {allowed}")
