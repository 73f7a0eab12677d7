"""What each pure data instruction computes, written once as a builder of LLVM IR over the lanes of a warp.

A chapter registers a builder for the name in the table's ``does`` line (the opcode where there is none)::

    @semantics("not")
    def _not(form: Form, a: Bits) -> Bits:
        return ~a

An opcode that means one thing for integers and another for floats has two, ``"add.int"`` and ``"add.float"``.

:func:`lookup` gives the engine the builder of a form with this contract:

- ``build(lanes, form, *sources)`` appends IR and returns a value, or a tuple with one value per written operand.
- A source is given for each operand that is read (role ``r`` or ``rw``), in the form's order: an LLVM integer of the
  operand type's width in each lane (``i1`` for a predicate, its negation already applied). Operands in braces are
  tuples of those. An operand that must be a number (``#n``) is a Python int, so that it shapes the code.
- A result has the width of its operand's type. Where the register is wider, the engine extends it: with the sign for
  a signed type. A result for a sink (``_``) is given too; drop it.
- An instruction of extended precision has the carry flag as a last, one-bit source and result.
- The parts of registers that a video instruction names (``%r1.b0``) go beside: ``selectors=("", "b0", "h1", "")``, one
  for each operand, with a ``-`` before it for a negated operand.

A form without semantics is a KeyError.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ...isa import Form

if TYPE_CHECKING:
    from .lanes import Lanes

__all__ = ["covered", "lookup", "semantics", "tolerates_any_nan"]

Builder = Callable[..., Any]

_BUILDERS: dict[str, Builder] = {}
_CHAPTERS = {
    "integer": (
        "abs.int add.int bfe bfi bfind bmsk brev clmad clz div.int dp2a dp4a fns mad.int mad24 max.int "
        "min.int mul.int mul24 neg.int popc rem sad sub.int szext"
    ),
    "extended": "addc madc subc",
    "logic": "and cnot lop3 not or prmt shf shl shr xor",
    "compare": "selp set setp setp_pair slct",
    "floating": (
        "abs.float add.float copysign div.float fma max.float min.float mul.float neg.float rcp sqrt "
        "sub.float testp"
    ),
    "approximate": "cos ex2 lg2 rsqrt sin tanh",
    "convert": "cvt cvt_pack",
    "move": "getctarank mapa mov",
    "sparse": "spcompress spdecompress",
    "video": (
        "vabsdiff vabsdiff2 vabsdiff4 vadd vadd2 vadd4 vavrg2 vavrg4 vmad vmax vmax2 vmax4 vmin vmin2 vmin4 "
        "vset vset2 vset4 vshl vshr vsub vsub2 vsub4"
    ),
}
"""What each module registers: a kernel whose code is on disk loads none of them."""
_MODULES = {name: module for module, names in _CHAPTERS.items() for name in names.split()}


def tolerates_any_nan(form: Form) -> bool:
    """Whether every NaN among the sources gives PTX's NaN, and which NaN it was makes no difference.

    >>> from ptxdsl.isa import lookup as forms
    >>> [tolerates_any_nan(forms(name)[0]) for name in ("fma.rn.f32", "min.f32", "mov.f32")]
    [True, False, False]
    """
    return form.opcode in ("add", "sub", "mul", "fma") and form.tokens in (("f32",), ("rn", "f32"))


def semantics(*names: str) -> Callable[[Builder], Builder]:
    """Register a builder; it takes the form and its sources as Bits (no Lanes: each value carries them)."""

    def register(builder: Builder) -> Builder:
        for name in names:
            if name in _BUILDERS:
                raise ValueError(f"two semantics called {name}")
            _BUILDERS[name] = builder
        return builder

    return register


def _spellings(form: Form) -> tuple[str, str]:
    suffix = "float" if form.type is not None and form.type.is_float else "int"
    return form.semantics, f"{form.semantics}.{suffix}"


def covered(form: Form) -> bool:
    """Whether there are semantics of the form."""
    return any(name in _MODULES for name in _spellings(form))


def lookup(form: Form) -> Callable[..., Any]:
    """The builder of ``form``: ``build(lanes, form, *sources)``. KeyError where the instruction is none of data."""
    name = next((name for name in _spellings(form) if name in _MODULES), None)
    if name is None:
        raise KeyError(form.mnemonic)
    if name not in _BUILDERS:
        import_module(f"{__name__}.{_MODULES[name]}")
    builder = _BUILDERS[name]

    def build(b: Lanes, form: Form, *sources: Any, **selectors: tuple[str, ...]) -> Any:
        result = builder(form, *(_wrap(b, source) for source in sources), **selectors)
        kind = form.operands[0].type
        return b.const(kind.bits, result) if isinstance(result, int) and kind is not None else _unwrap(result)

    return build


def _wrap(b: Lanes, source: Any) -> Any:
    if isinstance(source, int):
        return source
    return tuple(_wrap(b, item) for item in source) if isinstance(source, tuple) else b.wrap(source)


def _unwrap(result: Any) -> Any:
    return tuple(_unwrap(item) for item in result) if isinstance(result, tuple) else result.value
