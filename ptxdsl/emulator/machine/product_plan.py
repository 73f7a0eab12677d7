"""What tcgen05.mma is told in memory: a plan for each instruction descriptor, and the operands of one product.

The descriptor is a number that the kernel computes. For each that comes Python makes a plan once, which says all that
depends on it: sizes, functions, tables of the places of operands in tensor memory. Compiled code finds it by the
descriptor, in a list that begins in the record of the micro-op.
"""

from __future__ import annotations

from .structs import Struct, field

__all__ = ["ProductPlan", "ProductRequest"]

class ProductPlan(Struct):
    """A plan; tables are of 32-bit numbers, byte offsets from the operand's own address on."""

    align = 64
    NEXT = field("Q")
    """The next plan of the list, 0 at its end."""
    WORD = field("Q")
    """The instruction descriptor."""

    # What is checked
    HALVES = field("Q")
    """Whether D, A and metadata may begin in lane 16."""
    D_COLUMNS = field("Q")
    A_COLUMNS = field("Q")
    E_COLUMNS = field("Q")
    SA_COLUMNS = field("Q")
    SB_COLUMNS = field("Q")
    LUT_COLUMNS = field("Q")
    A_SWIZZLES = field("Q")
    """A bit for each swizzle that the tile may have."""
    B_SWIZZLES = field("Q")
    A_LINE = field("Q")
    """The bytes of a line where the tile is K-major, else 0."""
    B_LINE = field("Q")
    LONG = field("Q")
    SHIFT = field("Q")
    """The largest shift of columns."""

    # Sizes
    ROWS = field("Q")
    """Of one block."""
    COLUMNS = field("Q")
    LINES = field("Q")
    """Columns that B's panel has."""
    BANKS = field("Q")
    """Products that are made one after the other, each with an A of its own for a run of columns."""
    DEPTH = field("Q")
    """Elements of a row of A, of a sparse one those that are kept, in a block of scales where there are any."""
    GROUP = field("Q")
    """How many blocks multiply."""
    BLOCKS = field("Q")
    """Of scales; 1 without."""
    CHUNKS = field("Q")
    A_PIECES = field("Q")
    """What the panel of A takes for the number of pieces, or of columns."""
    B_PIECES = field("Q")
    A_BYTES = field("Q")
    """Those of 16 bytes of a tile that hold elements, from the first on: 12 of FP6, 8 of FP4 that is not packed."""
    B_BYTES = field("Q")

    # Functions and their numbers
    A_PANEL = field("Q")
    B_PANEL = field("Q")
    MULTIPLY = field("Q")
    SELECTED = field("Q")
    SCALED = field("Q")
    A_PLACES = field("Q")
    B_PLACES = field("Q")
    A_SIZES = field("Q")
    B_SIZES = field("Q")

    # How sums are kept
    DIRECT = field("Q")
    """Whether sums are made in D itself."""
    HALF = field("Q")
    """Whether D is of f16,"""
    SATURATES = field("Q")
    NEGATIVE = field("Q")
    """and whether products are subtracted."""

    # Tables
    D_TABLE = field("Q")
    """The vectors of 16 rows, by column."""
    OWN_TABLE = field("Q")
    """The vectors of sums in memory beside."""
    A_TABLE = field("Q")
    """Groups of 16 rows, by bank."""
    E_TABLE = field("Q")
    """Two numbers for each code, by bank, chunk and row: where its cell is, and its lowest bit there."""
    SA_TABLE = field("Q")
    """The bytes of scales, by block and row,"""
    SB_TABLE = field("Q")
    """and by block and column."""
    NUMBERS = field("Q")
    """What each byte is as a scale, 256 numbers of f64,"""
    ELEMENTS = field("Q")
    """and as an element of B that a table gives, of f32."""


class ProductRequest(Struct):
    """The operands of a product; places in tensor memory are byte offsets from its first cell on."""

    align = 64
    D = field("Q")
    A = field("Q")
    """Place, or descriptor."""
    B = field("Q")
    E = field("Q")
    SA = field("Q")
    SB = field("Q")
    LUT = field("Q")
    FRESH = field("Q")
    """Whether D counts as 0 before."""
    ZERO = field("Q")
    """Which columns of B are zeros: 64 bits of a zero-column mask, 0 for none."""
    SCALE = field("Q")
    """D is divided by 2 to this."""
    OFF = field("I", 8)
    """A bit for each lane that is not written, by block of the pair."""
    CELLS = field("Q", 2)
    """The first cell of each block of the pair."""
    SHARED = field("Q", 2)
    """Where address 0 of their shared memory would be."""
    END = field("Q")
    """Behind the last address of shared memory."""
    STATUS = field("Q")
    """1 or 2 where the descriptor of A or B is none of such a tile, 3 or 4 where the tile goes beyond the memory, 5 for
    a shift of columns that the plan does not allow, 6 or 7 for scales of A or B that differ by quarter; else 0."""
