"""The type stub of ``ptx``, generated from the table by ``python -m ptxdsl.isa``: not to be edited."""

from __future__ import annotations

from typing import Any

from ...types import KernelOperand

class Instruction:
    mnemonic: str
    def __getattr__(self, name: str) -> Instruction: ...
    def __getitem__(self, modifiers: str) -> Instruction: ...
    def __call__(self, *operands: Any, out: Any = None, pred: Any = None) -> KernelOperand: ...

class _Step:
    mnemonic: str
    def __getitem__(self, modifiers: str) -> Instruction: ...

class _abs(_Step):
    bf16: _abs_1
    bf16x2: _abs_1
    f16: _abs_2
    f16x2: _abs_2
    f32: _abs_3
    f64: _abs_4
    ftz: _abs_5
    s16: _abs_6
    s32: _abs_6
    s64: _abs_6

class _abs_1(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = |a|. ``abs d, a``, from PTX 7.0 sm_80."""

class _abs_2(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = |a|. ``abs d, a``, from PTX 6.5 sm_75."""

class _abs_3(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = |a|. ``abs d, a``, from PTX 6.3 sm_75."""

class _abs_4(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = |a|. ``abs d, a``, from PTX 6.3 sm_75."""

class _abs_5(_Step):
    f16: _abs_2
    f16x2: _abs_2
    f32: _abs_3

class _abs_6(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = |a|. ``abs d, a``, from PTX 6.3 sm_75."""

class _activemask(_Step):
    b32: _activemask_1

class _activemask_1(_Step):
    def __call__(self, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The mask of the lanes that execute this together. ``activemask d``, from PTX 6.3 sm_75."""

class _add(_Step):
    bf16: _add_1
    bf16x2: _add_2
    cc: _add_3
    e4m3x4: _add_4
    e5m2x4: _add_4
    f16: _add_5
    f16x2: _add_5
    f32: _add_6
    f32x2: _add_7
    f64: _add_8
    ftz: _add_9
    rm: _add_10
    rn: _add_11
    rp: _add_10
    rz: _add_12
    s16: _add_13
    s16x2: _add_13
    s32: _add_13
    s64: _add_13
    s8x4: _add_13
    sat: _add_14
    satfinite: _add_15
    u16: _add_13
    u16x2: _add_13
    u32: _add_13
    u64: _add_13
    u8x4: _add_13

class _add_1(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a + b. ``add d, a, b``, from PTX 7.8 sm_90."""

class _add_2(_Step):
    f32x2: _add_16
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a + b. ``add d, a, b``, from PTX 7.8 sm_90."""

class _add_3(_Step):
    s32: _add_17
    s64: _add_17
    u32: _add_17
    u64: _add_17

class _add_4(_Step):
    e2m1p4x4: _add_18
    e2m1x4: _add_18
    e2m3x4: _add_18
    e3m2x4: _add_18
    e4m3x4: _add_18
    e5m2x4: _add_18
    ue8m0x4: _add_18

class _add_5(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a + b. ``add d, a, b``, from PTX 6.3 sm_75."""

class _add_6(_Step):
    bf16: _add_19
    f16: _add_19
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a + b. ``add d, a, b``, from PTX 6.3 sm_75."""

class _add_7(_Step):
    bf16x2: _add_20
    f16x2: _add_20
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a + b in each half. ``add d, a, b``, from PTX 8.6 sm_100."""

class _add_8(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a + b. ``add d, a, b``, from PTX 6.3 sm_75."""

class _add_9(_Step):
    f16: _add_5
    f16x2: _add_21
    f32: _add_22
    f32x2: _add_23
    sat: _add_24

class _add_10(_Step):
    f32: _add_6
    f32x2: _add_7
    f64: _add_8
    ftz: _add_25
    sat: _add_26

class _add_11(_Step):
    bf16: _add_1
    bf16x2: _add_1
    e4m3x4: _add_4
    e5m2x4: _add_4
    f16: _add_5
    f16x2: _add_5
    f32: _add_6
    f32x2: _add_7
    f64: _add_8
    ftz: _add_27
    sat: _add_28
    satfinite: _add_15

class _add_12(_Step):
    bf16x2: _add_29
    f32: _add_6
    f32x2: _add_7
    f64: _add_8
    ftz: _add_30
    sat: _add_26

class _add_13(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a + b. ``add d, a, b``, from PTX 6.3 sm_75."""

class _add_14(_Step):
    f16: _add_5
    f16x2: _add_5
    f32: _add_6
    s16x2: _add_31
    s32: _add_31
    s8x4: _add_31
    u16x2: _add_31
    u32: _add_31
    u8x4: _add_31

class _add_15(_Step):
    e4m3x4: _add_4
    e5m2x4: _add_4

class _add_16(_Step):
    f32x2: _add_32

class _add_17(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a + b; the carry goes to CC. ``add d, a, b``, from PTX 6.3 sm_75."""

class _add_18(_Step):
    def __call__(self, a: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a + c in each lane. ``add d, a, c``, from PTX 9.4 sm_100a."""

class _add_19(_Step):
    def __call__(self, a: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a + c, a widened. ``add d, a, c``, from PTX 8.6 sm_100."""

class _add_20(_Step):
    f32x2: _add_33

class _add_21(_Step):
    f32x2: _add_34
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a + b. ``add d, a, b``, from PTX 6.3 sm_75."""

class _add_22(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a + b. ``add d, a, b``, from PTX 6.3 sm_75."""

class _add_23(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a + b in each half. ``add d, a, b``, from PTX 8.6 sm_100."""

class _add_24(_Step):
    f16: _add_5
    f16x2: _add_5
    f32: _add_22

class _add_25(_Step):
    f32: _add_22
    f32x2: _add_23
    sat: _add_35

class _add_26(_Step):
    f32: _add_6

class _add_27(_Step):
    f16: _add_5
    f16x2: _add_5
    f32: _add_22
    f32x2: _add_23
    sat: _add_24

class _add_28(_Step):
    f16: _add_5
    f16x2: _add_5
    f32: _add_6

class _add_29(_Step):
    f32x2: _add_16

class _add_30(_Step):
    f16x2: _add_36
    f32: _add_22
    f32x2: _add_23
    sat: _add_35

class _add_31(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a + b, clamped to the range of the type. ``add d, a, b``, from PTX 6.3 sm_75."""

class _add_32(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a + b in each half, narrowed. ``add d, a, b``, from PTX 9.4 sm_107f."""

class _add_33(_Step):
    def __call__(self, a: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a + c in each half, a widened. ``add d, a, c``, from PTX 9.4 sm_107f."""

class _add_34(_Step):
    f32x2: _add_37

class _add_35(_Step):
    f32: _add_22

class _add_36(_Step):
    f32x2: _add_34

class _add_37(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a + b in each half, narrowed. ``add d, a, b``, from PTX 9.4 sm_107f."""

class _addc(_Step):
    cc: _addc_1
    s32: _addc_2
    s64: _addc_2
    u32: _addc_2
    u64: _addc_2

class _addc_1(_Step):
    s32: _addc_2
    s64: _addc_2
    u32: _addc_2
    u64: _addc_2

class _addc_2(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a + b + carry. ``addc d, a, b``, from PTX 6.3 sm_75."""

class _alloca(_Step):
    u32: _alloca_1
    u64: _alloca_1

class _alloca_1(_Step):
    def __call__(self, a: Any, align: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The address of a bytes of new stack memory. ``alloca d, a{, align}``, from PTX 7.3 sm_75."""

class _and(_Step):
    b16: _and_1
    b32: _and_1
    b64: _and_1
    pred: _and_1

class _and_1(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a & b. ``and d, a, b``, from PTX 6.3 sm_75."""

class _applypriority(_Step):
    L2__evict_normal: _applypriority_1
    async_: _applypriority_2
    global_: _applypriority_3

class _applypriority_1(_Step):
    def __call__(self, a: Any, size: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Gives size bytes from a the eviction priority. ``applypriority [a], size``, from PTX 7.4 sm_80."""

class _applypriority_2(_Step):
    bulk: _applypriority_4

class _applypriority_3(_Step):
    L2__evict_normal: _applypriority_1

class _applypriority_4(_Step):
    global_: _applypriority_5
    tensor: _applypriority_6

class _applypriority_5(_Step):
    bulk_group: _applypriority_7

class _applypriority_6(_Step):
    pass

class _applypriority_7(_Step):
    L2__evict_normal: _applypriority_8

class _applypriority_8(_Step):
    def __call__(self, a: Any, size: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Gives size bytes in the L2 cache the priority. ``applypriority [a], size``, from PTX 9.4 sm_107f."""

class _atom(_Step):
    acq_rel: _atom_1
    acquire: _atom_1
    add: _atom_2
    and_: _atom_3
    cas: _atom_4
    cluster: _atom_5
    cta: _atom_5
    dec: _atom_6
    exch: _atom_7
    global_: _atom_8
    gpu: _atom_5
    inc: _atom_6
    max: _atom_9
    min: _atom_9
    or_: _atom_3
    relaxed: _atom_1
    release: _atom_1
    shared: _atom_10
    shared__cluster: _atom_10
    shared__cta: _atom_10
    sys: _atom_5
    xor: _atom_3

class _atom_1(_Step):
    add: _atom_2
    and_: _atom_3
    cas: _atom_4
    cluster: _atom_5
    cta: _atom_5
    dec: _atom_6
    exch: _atom_7
    global_: _atom_8
    gpu: _atom_5
    inc: _atom_6
    max: _atom_9
    min: _atom_9
    or_: _atom_3
    shared: _atom_10
    shared__cluster: _atom_10
    shared__cta: _atom_10
    sys: _atom_5
    xor: _atom_3

class _atom_2(_Step):
    L2__cache_hint: _atom_11
    f32: _atom_12
    f64: _atom_12
    noftz: _atom_13
    s32: _atom_12
    u32: _atom_12
    u64: _atom_12
    v2: _atom_14
    v4: _atom_14

class _atom_3(_Step):
    L2__cache_hint: _atom_15
    b32: _atom_16
    b64: _atom_16

class _atom_4(_Step):
    b128: _atom_17
    b16: _atom_17
    b32: _atom_17
    b64: _atom_17

class _atom_5(_Step):
    add: _atom_2
    and_: _atom_3
    cas: _atom_4
    dec: _atom_6
    exch: _atom_7
    global_: _atom_8
    inc: _atom_6
    max: _atom_9
    min: _atom_9
    or_: _atom_3
    shared: _atom_10
    shared__cluster: _atom_10
    shared__cta: _atom_10
    xor: _atom_3

class _atom_6(_Step):
    L2__cache_hint: _atom_18
    u32: _atom_19

class _atom_7(_Step):
    L2__cache_hint: _atom_20
    b128: _atom_21
    b32: _atom_21
    b64: _atom_21

class _atom_8(_Step):
    add: _atom_2
    and_: _atom_3
    cas: _atom_4
    dec: _atom_6
    exch: _atom_7
    inc: _atom_6
    max: _atom_9
    min: _atom_9
    or_: _atom_3
    xor: _atom_3

class _atom_9(_Step):
    L2__cache_hint: _atom_22
    noftz: _atom_23
    s32: _atom_24
    s64: _atom_24
    u32: _atom_24
    u64: _atom_24

class _atom_10(_Step):
    add: _atom_25
    and_: _atom_3
    cas: _atom_4
    dec: _atom_6
    exch: _atom_7
    inc: _atom_6
    max: _atom_26
    min: _atom_26
    or_: _atom_3
    xor: _atom_3

class _atom_11(_Step):
    f32: _atom_12
    f64: _atom_12
    s32: _atom_12
    u32: _atom_12
    u64: _atom_12
    v2: _atom_14
    v4: _atom_14

class _atom_12(_Step):
    def __call__(self, a: Any, b: Any, policy: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = what lies at a, which becomes d + b. ``atom d, [a], b{, policy}``, from PTX 6.3 sm_75."""

class _atom_13(_Step):
    L2__cache_hint: _atom_27
    bf16: _atom_28
    bf16x2: _atom_28
    f16: _atom_28
    f16x2: _atom_28
    f32: _atom_28
    v2: _atom_29
    v4: _atom_29
    v8: _atom_29

class _atom_14(_Step):
    f32: _atom_30

class _atom_15(_Step):
    b32: _atom_16
    b64: _atom_16

class _atom_16(_Step):
    def __call__(self, a: Any, b: Any, policy: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = what lies at a, which becomes d op b. ``atom d, [a], b{, policy}``, from PTX 6.3 sm_75."""

class _atom_17(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = what lies at a, which becomes c if it equals b. ``atom d, [a], b, c``, from PTX 6.3 sm_75."""

class _atom_18(_Step):
    u32: _atom_19

class _atom_19(_Step):
    def __call__(self, a: Any, b: Any, policy: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = what lies at a, which becomes d + 1, 0 after b, or d - 1, b after 0. ``atom d, [a], b{, policy}``, from PTX 6.3 sm_75."""

class _atom_20(_Step):
    b128: _atom_21
    b32: _atom_21
    b64: _atom_21

class _atom_21(_Step):
    def __call__(self, a: Any, b: Any, policy: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = what lies at a, which becomes b. ``atom d, [a], b{, policy}``, from PTX 6.3 sm_75."""

class _atom_22(_Step):
    s32: _atom_24
    s64: _atom_24
    u32: _atom_24
    u64: _atom_24

class _atom_23(_Step):
    L2__cache_hint: _atom_31
    v2: _atom_29
    v4: _atom_29
    v8: _atom_29

class _atom_24(_Step):
    def __call__(self, a: Any, b: Any, policy: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = what lies at a, which becomes the lesser or greater of it and b. ``atom d, [a], b{, policy}``, from PTX 6.3 sm_75."""

class _atom_25(_Step):
    L2__cache_hint: _atom_32
    f32: _atom_12
    f64: _atom_12
    noftz: _atom_33
    s32: _atom_12
    u32: _atom_12
    u64: _atom_12

class _atom_26(_Step):
    L2__cache_hint: _atom_22
    s32: _atom_24
    s64: _atom_24
    u32: _atom_24
    u64: _atom_24

class _atom_27(_Step):
    bf16: _atom_28
    bf16x2: _atom_28
    f16: _atom_28
    f16x2: _atom_28
    f32: _atom_28
    v2: _atom_29
    v4: _atom_29
    v8: _atom_29

class _atom_28(_Step):
    def __call__(self, a: Any, b: Any, policy: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = what lies at a, which becomes d + b. ``atom d, [a], b{, policy}``, from PTX 6.3 sm_75."""

class _atom_29(_Step):
    bf16: _atom_34
    bf16x2: _atom_34
    f16: _atom_34
    f16x2: _atom_34

class _atom_30(_Step):
    def __call__(self, a: Any, b: Any, policy: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = what lies at a, each element of which becomes d + b. ``atom {d, ..}, [a], {b, ..}{, policy}``, from PTX 8.1 sm_90."""

class _atom_31(_Step):
    v2: _atom_29
    v4: _atom_29
    v8: _atom_29

class _atom_32(_Step):
    f32: _atom_12
    f64: _atom_12
    s32: _atom_12
    u32: _atom_12
    u64: _atom_12

class _atom_33(_Step):
    L2__cache_hint: _atom_35
    bf16: _atom_28
    bf16x2: _atom_28
    f16: _atom_28
    f16x2: _atom_28
    f32: _atom_28

class _atom_34(_Step):
    def __call__(self, a: Any, b: Any, policy: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = what lies at a, each element of which becomes d op b. ``atom {d, ..}, [a], {b, ..}{, policy}``, from PTX 8.1 sm_90."""

class _atom_35(_Step):
    bf16: _atom_28
    bf16x2: _atom_28
    f16: _atom_28
    f16x2: _atom_28
    f32: _atom_28

class _bar(_Step):
    arrive: _bar_1
    cta: _bar_2
    red: _bar_3
    sync: _bar_4
    warp: _bar_5

class _bar_1(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Counts as arrived at barrier a and goes on. ``bar a, b``, from PTX 6.3 sm_75."""

class _bar_2(_Step):
    arrive: _bar_1
    red: _bar_3
    sync: _bar_4

class _bar_3(_Step):
    and_: _bar_6
    or_: _bar_6
    popc: _bar_7

class _bar_4(_Step):
    def __call__(self, a: Any, b: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """Waits for all threads of the block, or for b of them, at barrier a. ``bar a{, b}``, from PTX 6.3 sm_75."""

class _bar_5(_Step):
    sync: _bar_8

class _bar_6(_Step):
    pred: _bar_9

class _bar_7(_Step):
    u32: _bar_10

class _bar_8(_Step):
    def __call__(self, membermask: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Waits for the lanes of the mask. ``bar membermask``, from PTX 6.3 sm_75."""

class _bar_9(_Step):
    def __call__(self, a: Any, b: Any, c: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Waits at barrier a; d is whether c holds in all or in any of the threads. ``bar d, a{, b}, {!}c``, from PTX 6.3 sm_75."""

class _bar_10(_Step):
    def __call__(self, a: Any, b: Any, c: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Waits at barrier a; d is the number of threads in which c holds. ``bar d, a{, b}, {!}c``, from PTX 6.3 sm_75."""

class _barrier(_Step):
    arrive: _barrier_1
    cluster: _barrier_2
    cta: _barrier_3
    red: _barrier_4
    sync: _barrier_5

class _barrier_1(_Step):
    aligned: _barrier_6
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Counts as arrived at barrier a and goes on. ``barrier a, b``, from PTX 6.3 sm_75."""

class _barrier_2(_Step):
    arrive: _barrier_7
    wait: _barrier_8

class _barrier_3(_Step):
    arrive: _barrier_1
    red: _barrier_4
    sync: _barrier_5

class _barrier_4(_Step):
    and_: _barrier_9
    or_: _barrier_9
    popc: _barrier_10

class _barrier_5(_Step):
    aligned: _barrier_11
    def __call__(self, a: Any, b: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """Waits for all threads of the block, or for b of them, at barrier a. ``barrier a{, b}``, from PTX 6.3 sm_75."""

class _barrier_6(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Counts as arrived at barrier a and goes on. ``barrier a, b``, from PTX 6.3 sm_75."""

class _barrier_7(_Step):
    aligned: _barrier_12
    relaxed: _barrier_13
    release: _barrier_13
    def __call__(self, *, out: Any = None, pred: Any = None) -> None:
        """Counts as arrived at the barrier of the cluster and goes on. ``barrier ``, from PTX 7.8 sm_90."""

class _barrier_8(_Step):
    acquire: _barrier_14
    aligned: _barrier_15
    def __call__(self, *, out: Any = None, pred: Any = None) -> None:
        """Waits until all threads of the cluster have arrived. ``barrier ``, from PTX 7.8 sm_90."""

class _barrier_9(_Step):
    aligned: _barrier_16
    pred: _barrier_17

class _barrier_10(_Step):
    aligned: _barrier_18
    u32: _barrier_19

class _barrier_11(_Step):
    def __call__(self, a: Any, b: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """Waits for all threads of the block, or for b of them, at barrier a. ``barrier a{, b}``, from PTX 6.3 sm_75."""

class _barrier_12(_Step):
    def __call__(self, *, out: Any = None, pred: Any = None) -> None:
        """Counts as arrived at the barrier of the cluster and goes on. ``barrier ``, from PTX 7.8 sm_90."""

class _barrier_13(_Step):
    aligned: _barrier_12
    def __call__(self, *, out: Any = None, pred: Any = None) -> None:
        """Counts as arrived at the barrier of the cluster and goes on. ``barrier ``, from PTX 7.8 sm_90."""

class _barrier_14(_Step):
    aligned: _barrier_15
    def __call__(self, *, out: Any = None, pred: Any = None) -> None:
        """Waits until all threads of the cluster have arrived. ``barrier ``, from PTX 7.8 sm_90."""

class _barrier_15(_Step):
    def __call__(self, *, out: Any = None, pred: Any = None) -> None:
        """Waits until all threads of the cluster have arrived. ``barrier ``, from PTX 7.8 sm_90."""

class _barrier_16(_Step):
    pred: _barrier_17

class _barrier_17(_Step):
    def __call__(self, a: Any, b: Any, c: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Waits at barrier a; d is whether c holds in all or in any of the threads. ``barrier d, a{, b}, {!}c``, from PTX 6.3 sm_75."""

class _barrier_18(_Step):
    u32: _barrier_19

class _barrier_19(_Step):
    def __call__(self, a: Any, b: Any, c: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Waits at barrier a; d is the number of threads in which c holds. ``barrier d, a{, b}, {!}c``, from PTX 6.3 sm_75."""

class _bfe(_Step):
    s32: _bfe_1
    s64: _bfe_1
    u32: _bfe_1
    u64: _bfe_1

class _bfe_1(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The field of a of c bits from bit b, zero- or sign-extended. ``bfe d, a, b, c``, from PTX 6.3 sm_75."""

class _bfi(_Step):
    b32: _bfi_1
    b64: _bfi_1

class _bfi_1(_Step):
    def __call__(self, a: Any, b: Any, c: Any, e: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """b with its e bits from bit c replaced by the lowest of a. ``bfi d, a, b, c, e``, from PTX 6.3 sm_75."""

class _bfind(_Step):
    s32: _bfind_1
    s64: _bfind_1
    shiftamt: _bfind_2
    u32: _bfind_1
    u64: _bfind_1

class _bfind_1(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The position of the highest bit that is not the sign, or the shift that brings it to the top; 0xffffffff if none. ``bfind d, a``, from PTX 6.3 sm_75."""

class _bfind_2(_Step):
    s32: _bfind_1
    s64: _bfind_1
    u32: _bfind_1
    u64: _bfind_1

class _bmsk(_Step):
    clamp: _bmsk_1
    wrap: _bmsk_1

class _bmsk_1(_Step):
    b32: _bmsk_2

class _bmsk_2(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """A mask of b ones from bit a. ``bmsk d, a, b``, from PTX 7.6 sm_75."""

class _bra(_Step):
    uni: _bra_1
    def __call__(self, target: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Goes on at the label; .uni: all lanes of the warp do. ``bra target``, from PTX 6.3 sm_75."""

class _bra_1(_Step):
    def __call__(self, target: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Goes on at the label; .uni: all lanes of the warp do. ``bra target``, from PTX 6.3 sm_75."""

class _brev(_Step):
    b32: _brev_1
    b64: _brev_1

class _brev_1(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The bits of a in reverse order. ``brev d, a``, from PTX 6.3 sm_75."""

class _brkpt(_Step):
    def __call__(self, *, out: Any = None, pred: Any = None) -> None:
        """Stops for the debugger. ``brkpt ``, from PTX 6.3 sm_75."""

class _brx(_Step):
    idx: _brx_1

class _brx_1(_Step):
    uni: _brx_2
    def __call__(self, index: Any, targets: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Goes on at the label of that index in a .branchtargets list. ``brx index, targets``, from PTX 6.3 sm_75."""

class _brx_2(_Step):
    def __call__(self, index: Any, targets: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Goes on at the label of that index in a .branchtargets list. ``brx index, targets``, from PTX 6.3 sm_75."""

class _call(_Step):
    uni: _call_1
    def __call__(self, callee: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Calls a function: call (results), callee, (arguments). ``call callee``, from PTX 6.3 sm_75."""

class _call_1(_Step):
    def __call__(self, callee: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Calls a function: call (results), callee, (arguments). ``call callee``, from PTX 6.3 sm_75."""

class _clmad(_Step):
    hi: _clmad_1
    lo: _clmad_1

class _clmad_1(_Step):
    u64: _clmad_2

class _clmad_2(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The lower or upper half of the carry-less product of a and b, exclusive-or c. ``clmad d, a, b, c``, from PTX 9.3 sm_80."""

class _clusterlaunchcontrol(_Step):
    query_cancel: _clusterlaunchcontrol_1
    try_cancel: _clusterlaunchcontrol_2

class _clusterlaunchcontrol_1(_Step):
    get_first_ctaid: _clusterlaunchcontrol_3
    get_first_ctaid__x: _clusterlaunchcontrol_4
    get_first_ctaid__y: _clusterlaunchcontrol_4
    get_first_ctaid__z: _clusterlaunchcontrol_4
    is_canceled: _clusterlaunchcontrol_5

class _clusterlaunchcontrol_2(_Step):
    async_: _clusterlaunchcontrol_6

class _clusterlaunchcontrol_3(_Step):
    v4: _clusterlaunchcontrol_7

class _clusterlaunchcontrol_4(_Step):
    b32: _clusterlaunchcontrol_8

class _clusterlaunchcontrol_5(_Step):
    pred: _clusterlaunchcontrol_9

class _clusterlaunchcontrol_6(_Step):
    mbarrier__complete_tx__bytes: _clusterlaunchcontrol_10
    shared__cta: _clusterlaunchcontrol_11

class _clusterlaunchcontrol_7(_Step):
    b32: _clusterlaunchcontrol_12

class _clusterlaunchcontrol_8(_Step):
    b128: _clusterlaunchcontrol_13

class _clusterlaunchcontrol_9(_Step):
    b128: _clusterlaunchcontrol_14

class _clusterlaunchcontrol_10(_Step):
    b128: _clusterlaunchcontrol_15
    multicast__cluster__all: _clusterlaunchcontrol_16

class _clusterlaunchcontrol_11(_Step):
    mbarrier__complete_tx__bytes: _clusterlaunchcontrol_10

class _clusterlaunchcontrol_12(_Step):
    b128: _clusterlaunchcontrol_17

class _clusterlaunchcontrol_13(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """One component of the index of the first block of the work that the answer a gives. ``clusterlaunchcontrol d, a``, from PTX 8.6 sm_100."""

class _clusterlaunchcontrol_14(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Whether the answer a gives work. ``clusterlaunchcontrol d, a``, from PTX 8.6 sm_100."""

class _clusterlaunchcontrol_15(_Step):
    def __call__(self, d: Any, mbar: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Asks for the work of a cluster that has not started; the answer goes to d. ``clusterlaunchcontrol [d], [mbar]``, from PTX 8.6 sm_100."""

class _clusterlaunchcontrol_16(_Step):
    b128: _clusterlaunchcontrol_18

class _clusterlaunchcontrol_17(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The index of the first block of the work that the answer a gives. ``clusterlaunchcontrol {d, ..}, a``, from PTX 8.6 sm_100."""

class _clusterlaunchcontrol_18(_Step):
    def __call__(self, d: Any, mbar: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Asks for the work of a cluster that has not started; the answer goes to every block of this one. ``clusterlaunchcontrol [d], [mbar]``, from PTX 8.8 sm_100f."""

class _clz(_Step):
    b32: _clz_1
    b64: _clz_1

class _clz_1(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The number of leading zeros of a. ``clz d, a``, from PTX 6.3 sm_75."""

class _cnot(_Step):
    b16: _cnot_1
    b32: _cnot_1
    b64: _cnot_1

class _cnot_1(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """1 if a is 0, else 0. ``cnot d, a``, from PTX 6.3 sm_75."""

class _copysign(_Step):
    f32: _copysign_1
    f64: _copysign_1

class _copysign_1(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """b with the sign of a. ``copysign d, a, b``, from PTX 6.3 sm_75."""

class _cos(_Step):
    approx: _cos_1

class _cos_1(_Step):
    f32: _cos_2
    ftz: _cos_3

class _cos_2(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """cos(a), absolute error at most 2^-20.5 in [-2pi, 2pi]. ``cos d, a``, from PTX 6.3 sm_75."""

class _cos_3(_Step):
    f32: _cos_2

class _cp(_Step):
    async_: _cp_1
    reduce: _cp_2

class _cp_1(_Step):
    bulk: _cp_3
    ca: _cp_4
    cg: _cp_5
    commit_group: _cp_6
    mbarrier: _cp_7
    wait_all: _cp_8
    wait_group: _cp_9

class _cp_2(_Step):
    async_: _cp_10

class _cp_3(_Step):
    commit_group: _cp_11
    global_: _cp_12
    prefetch: _cp_13
    relaxed: _cp_14
    shared__cluster: _cp_15
    shared__cta: _cp_16
    tensor: _cp_17
    wait_group: _cp_18
    weak: _cp_19

class _cp_4(_Step):
    shared: _cp_20
    shared__cta: _cp_20

class _cp_5(_Step):
    shared: _cp_21
    shared__cta: _cp_21

class _cp_6(_Step):
    def __call__(self, *, out: Any = None, pred: Any = None) -> None:
        """Makes a group of the copies since the last one. ``cp ``, from PTX 7.0 sm_80."""

class _cp_7(_Step):
    arrive: _cp_22

class _cp_8(_Step):
    def __call__(self, *, out: Any = None, pred: Any = None) -> None:
        """Waits for all copies of this thread. ``cp ``, from PTX 7.0 sm_80."""

class _cp_9(_Step):
    def __call__(self, n: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Waits until at most the last n groups are pending. ``cp n``, from PTX 7.0 sm_80."""

class _cp_10(_Step):
    bulk: _cp_23

class _cp_11(_Step):
    def __call__(self, *, out: Any = None, pred: Any = None) -> None:
        """Makes a group of the bulk copies since the last one. ``cp ``, from PTX 8.0 sm_90."""

class _cp_12(_Step):
    shared__cta: _cp_24

class _cp_13(_Step):
    L2: _cp_25
    tensor: _cp_26

class _cp_14(_Step):
    cluster: _cp_27
    cta: _cp_27
    gpu: _cp_28
    sys: _cp_28

class _cp_15(_Step):
    global_: _cp_29
    shared__cta: _cp_30

class _cp_16(_Step):
    global_: _cp_31

class _cp_17(_Step):
    pass

class _cp_18(_Step):
    read: _cp_32
    def __call__(self, n: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Waits until at most the last n bulk groups are pending, with .read only until their sources are read. ``cp n``, from PTX 8.0 sm_90."""

class _cp_19(_Step):
    global_: _cp_12
    shared__cluster: _cp_15
    shared__cta: _cp_16

class _cp_20(_Step):
    global_: _cp_33

class _cp_21(_Step):
    global_: _cp_34

class _cp_22(_Step):
    b64: _cp_35
    noinc: _cp_36
    shared: _cp_37
    shared__cta: _cp_37

class _cp_23(_Step):
    global_: _cp_38
    relaxed: _cp_39
    shared__cluster: _cp_40
    tensor: _cp_41

class _cp_24(_Step):
    bulk_group: _cp_42

class _cp_25(_Step):
    global_: _cp_43

class _cp_26(_Step):
    pass

class _cp_27(_Step):
    global_: _cp_44
    shared__cluster: _cp_45
    shared__cta: _cp_46

class _cp_28(_Step):
    global_: _cp_44
    shared__cluster: _cp_47
    shared__cta: _cp_46

class _cp_29(_Step):
    mbarrier__complete_tx__bytes: _cp_48

class _cp_30(_Step):
    mbarrier__complete_tx__bytes: _cp_49

class _cp_31(_Step):
    mbarrier__complete_tx__bytes: _cp_50

class _cp_32(_Step):
    def __call__(self, n: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Waits until at most the last n bulk groups are pending, with .read only until their sources are read. ``cp n``, from PTX 8.0 sm_90."""

class _cp_33(_Step):
    L2__128B: _cp_51
    L2__256B: _cp_51
    L2__64B: _cp_51
    L2__cache_hint: _cp_52
    def __call__(self, d: Any, a: Any, size: Any, used: Any = ..., policy: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """Copies size bytes; those beyond the first used are written as 0. ``cp [d], [a], size{, used}{, policy}``, from PTX 7.0 sm_80.
        Copies size bytes; writes 0 where ignore holds. ``cp [d], [a], size, {!}ignore{, policy}``, from PTX 7.5 sm_80."""

class _cp_34(_Step):
    L2__128B: _cp_53
    L2__256B: _cp_53
    L2__64B: _cp_53
    L2__cache_hint: _cp_54
    def __call__(self, d: Any, a: Any, size: Any, used: Any = ..., policy: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """Copies 16 bytes past the L1 cache; those beyond the first used are written as 0. ``cp [d], [a], size{, used}{, policy}``, from PTX 7.0 sm_80.
        Copies 16 bytes past the L1 cache; writes 0 where ignore holds. ``cp [d], [a], size, {!}ignore{, policy}``, from PTX 7.5 sm_80."""

class _cp_35(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """The mbarrier at a counts an arrival when the copies so far are complete. ``cp [a]``, from PTX 7.0 sm_80."""

class _cp_36(_Step):
    b64: _cp_35
    shared: _cp_37
    shared__cta: _cp_37

class _cp_37(_Step):
    b64: _cp_35

class _cp_38(_Step):
    shared__cta: _cp_55

class _cp_39(_Step):
    cluster: _cp_56
    cta: _cp_56
    gpu: _cp_57
    sys: _cp_57

class _cp_40(_Step):
    shared__cta: _cp_58

class _cp_41(_Step):
    pass

class _cp_42(_Step):
    L2__cache_hint: _cp_59
    cp_mask: _cp_60
    def __call__(self, d: Any, a: Any, size: Any, policy: Any = ..., mask: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """Copies size bytes, with .cp_mask of each 16 those whose bit is set, as part of the current group. ``cp [d], [a], size{, policy}{, mask}``, from PTX 8.0 sm_90."""

class _cp_43(_Step):
    L2__cache_hint: _cp_61
    L2__evict_last: _cp_62
    def __call__(self, a: Any, size: Any, policy: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """Brings size bytes into the L2 cache. ``cp [a], size{, policy}``, from PTX 8.0 sm_90."""

class _cp_44(_Step):
    shared__cta: _cp_63

class _cp_45(_Step):
    global_: _cp_64
    shared__cta: _cp_65

class _cp_46(_Step):
    global_: _cp_66

class _cp_47(_Step):
    global_: _cp_64

class _cp_48(_Step):
    L2__cache_hint: _cp_67
    mbarrier__report__validity__per_16bytes__8: _cp_68
    mbarrier__report__validity__per_16bytes__80: _cp_68
    mbarrier__report__validity__per_16bytes__8000: _cp_68
    mbarrier__report__validity__per_element__ff: _cp_68
    multicast__cluster: _cp_69
    multicast__cluster__16b: _cp_69
    multicast__cluster__32b: _cp_69
    def __call__(self, d: Any, a: Any, size: Any, mbar: Any, mask: Any = ..., policy: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """Copies size bytes, with .multicast to the blocks of the mask; the mbarrier counts them. ``cp [d], [a], size, [mbar]{, mask}{, policy}``, from PTX 8.0 sm_90."""

class _cp_49(_Step):
    def __call__(self, d: Any, a: Any, size: Any, mbar: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Copies size bytes to another block of the cluster; the mbarrier there counts them. ``cp [d], [a], size, [mbar]``, from PTX 8.0 sm_90."""

class _cp_50(_Step):
    L2__cache_hint: _cp_70
    ignore_oob: _cp_71
    mbarrier__report__validity__per_16bytes__8: _cp_72
    mbarrier__report__validity__per_16bytes__80: _cp_72
    mbarrier__report__validity__per_16bytes__8000: _cp_72
    mbarrier__report__validity__per_element__ff: _cp_72
    def __call__(self, d: Any, a: Any, size: Any, mbar: Any, policy: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """Copies size bytes; the mbarrier counts them. ``cp [d], [a], size, [mbar]{, policy}``, from PTX 8.6 sm_90."""

class _cp_51(_Step):
    def __call__(self, d: Any, a: Any, size: Any, used: Any = ..., policy: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """Copies size bytes; those beyond the first used are written as 0. ``cp [d], [a], size{, used}{, policy}``, from PTX 7.0 sm_80.
        Copies size bytes; writes 0 where ignore holds. ``cp [d], [a], size, {!}ignore{, policy}``, from PTX 7.5 sm_80."""

class _cp_52(_Step):
    L2__128B: _cp_51
    L2__256B: _cp_51
    L2__64B: _cp_51
    def __call__(self, d: Any, a: Any, size: Any, used: Any = ..., policy: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """Copies size bytes; those beyond the first used are written as 0. ``cp [d], [a], size{, used}{, policy}``, from PTX 7.0 sm_80.
        Copies size bytes; writes 0 where ignore holds. ``cp [d], [a], size, {!}ignore{, policy}``, from PTX 7.5 sm_80."""

class _cp_53(_Step):
    def __call__(self, d: Any, a: Any, size: Any, used: Any = ..., policy: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """Copies 16 bytes past the L1 cache; those beyond the first used are written as 0. ``cp [d], [a], size{, used}{, policy}``, from PTX 7.0 sm_80.
        Copies 16 bytes past the L1 cache; writes 0 where ignore holds. ``cp [d], [a], size, {!}ignore{, policy}``, from PTX 7.5 sm_80."""

class _cp_54(_Step):
    L2__128B: _cp_53
    L2__256B: _cp_53
    L2__64B: _cp_53
    def __call__(self, d: Any, a: Any, size: Any, used: Any = ..., policy: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """Copies 16 bytes past the L1 cache; those beyond the first used are written as 0. ``cp [d], [a], size{, used}{, policy}``, from PTX 7.0 sm_80.
        Copies 16 bytes past the L1 cache; writes 0 where ignore holds. ``cp [d], [a], size, {!}ignore{, policy}``, from PTX 7.5 sm_80."""

class _cp_55(_Step):
    bulk_group: _cp_73

class _cp_56(_Step):
    global_: _cp_38
    shared__cluster: _cp_40

class _cp_57(_Step):
    global_: _cp_38

class _cp_58(_Step):
    mbarrier__complete_tx__bytes: _cp_74

class _cp_59(_Step):
    cp_mask: _cp_60
    def __call__(self, d: Any, a: Any, size: Any, policy: Any = ..., mask: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """Copies size bytes, with .cp_mask of each 16 those whose bit is set, as part of the current group. ``cp [d], [a], size{, policy}{, mask}``, from PTX 8.0 sm_90."""

class _cp_60(_Step):
    def __call__(self, d: Any, a: Any, size: Any, policy: Any = ..., mask: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """Copies size bytes, with .cp_mask of each 16 those whose bit is set, as part of the current group. ``cp [d], [a], size{, policy}{, mask}``, from PTX 8.0 sm_90."""

class _cp_61(_Step):
    def __call__(self, a: Any, size: Any, policy: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """Brings size bytes into the L2 cache. ``cp [a], size{, policy}``, from PTX 8.0 sm_90."""

class _cp_62(_Step):
    def __call__(self, a: Any, size: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Brings size bytes into the L2 cache, to stay there the longest. ``cp [a], size``, from PTX 9.4 sm_107f."""

class _cp_63(_Step):
    bulk_group: _cp_75

class _cp_64(_Step):
    mbarrier__complete_tx__bytes: _cp_76

class _cp_65(_Step):
    mbarrier__complete_tx__bytes: _cp_77

class _cp_66(_Step):
    mbarrier__complete_tx__bytes: _cp_78

class _cp_67(_Step):
    def __call__(self, d: Any, a: Any, size: Any, mbar: Any, mask: Any = ..., policy: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """Copies size bytes, with .multicast to the blocks of the mask; the mbarrier counts them. ``cp [d], [a], size, [mbar]{, mask}{, policy}``, from PTX 8.0 sm_90."""

class _cp_68(_Step):
    L2__cache_hint: _cp_67
    multicast__cluster: _cp_69
    multicast__cluster__16b: _cp_69
    multicast__cluster__32b: _cp_69
    def __call__(self, d: Any, a: Any, size: Any, mbar: Any, mask: Any = ..., policy: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """Copies size bytes, with .multicast to the blocks of the mask; the mbarrier counts them. ``cp [d], [a], size, [mbar]{, mask}{, policy}``, from PTX 8.0 sm_90."""

class _cp_69(_Step):
    L2__cache_hint: _cp_67
    def __call__(self, d: Any, a: Any, size: Any, mbar: Any, mask: Any = ..., policy: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """Copies size bytes, with .multicast to the blocks of the mask; the mbarrier counts them. ``cp [d], [a], size, [mbar]{, mask}{, policy}``, from PTX 8.0 sm_90."""

class _cp_70(_Step):
    def __call__(self, d: Any, a: Any, size: Any, mbar: Any, policy: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """Copies size bytes; the mbarrier counts them. ``cp [d], [a], size, [mbar]{, policy}``, from PTX 8.6 sm_90."""

class _cp_71(_Step):
    L2__cache_hint: _cp_79
    def __call__(self, d: Any, a: Any, size: Any, left: Any, right: Any, mbar: Any, policy: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """Copies size bytes but for the first left and last right ones; the mbarrier counts them. ``cp [d], [a], size, left, right, [mbar]{, policy}``, from PTX 9.2 sm_90."""

class _cp_72(_Step):
    L2__cache_hint: _cp_70
    def __call__(self, d: Any, a: Any, size: Any, mbar: Any, policy: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """Copies size bytes; the mbarrier counts them. ``cp [d], [a], size, [mbar]{, policy}``, from PTX 8.6 sm_90."""

class _cp_73(_Step):
    L2__cache_hint: _cp_80
    add: _cp_81
    and_: _cp_82
    dec: _cp_83
    inc: _cp_83
    max: _cp_84
    min: _cp_84
    or_: _cp_82
    xor: _cp_82

class _cp_74(_Step):
    add: _cp_85
    and_: _cp_86
    dec: _cp_87
    inc: _cp_87
    max: _cp_88
    min: _cp_88
    or_: _cp_86
    xor: _cp_86

class _cp_75(_Step):
    L2__cache_hint: _cp_89
    b128: _cp_90
    cp_mask: _cp_91

class _cp_76(_Step):
    L2__cache_hint: _cp_92
    b128: _cp_93
    multicast__cluster: _cp_94
    multicast__cluster__16b: _cp_94
    multicast__cluster__32b: _cp_94

class _cp_77(_Step):
    b128: _cp_95

class _cp_78(_Step):
    L2__cache_hint: _cp_96
    b128: _cp_97

class _cp_79(_Step):
    def __call__(self, d: Any, a: Any, size: Any, left: Any, right: Any, mbar: Any, policy: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """Copies size bytes but for the first left and last right ones; the mbarrier counts them. ``cp [d], [a], size, left, right, [mbar]{, policy}``, from PTX 9.2 sm_90."""

class _cp_80(_Step):
    add: _cp_81
    and_: _cp_82
    dec: _cp_83
    inc: _cp_83
    max: _cp_84
    min: _cp_84
    or_: _cp_82
    xor: _cp_82

class _cp_81(_Step):
    f32: _cp_98
    f64: _cp_98
    noftz: _cp_99
    s32: _cp_98
    u32: _cp_98
    u64: _cp_98

class _cp_82(_Step):
    b32: _cp_98
    b64: _cp_98

class _cp_83(_Step):
    u32: _cp_98

class _cp_84(_Step):
    bf16: _cp_98
    f16: _cp_98
    s32: _cp_98
    s64: _cp_98
    u32: _cp_98
    u64: _cp_98

class _cp_85(_Step):
    s32: _cp_100
    u32: _cp_100
    u64: _cp_100

class _cp_86(_Step):
    b32: _cp_100

class _cp_87(_Step):
    u32: _cp_100

class _cp_88(_Step):
    s32: _cp_100
    u32: _cp_100

class _cp_89(_Step):
    b128: _cp_90
    cp_mask: _cp_91

class _cp_90(_Step):
    def __call__(self, d: Any, a: Any, size: Any, policy: Any = ..., mask: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """Copies size bytes, each 16 at once, as part of the current group. ``cp [d], [a], size{, policy}{, mask}``, from PTX 9.3 sm_90."""

class _cp_91(_Step):
    b128: _cp_90

class _cp_92(_Step):
    b128: _cp_93

class _cp_93(_Step):
    def __call__(self, d: Any, a: Any, size: Any, mbar: Any, mask: Any = ..., policy: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """Copies size bytes, each 16 at once, with .multicast to the blocks of the mask; the mbarrier counts them. ``cp [d], [a], size, [mbar]{, mask}{, policy}``, from PTX 9.3 sm_90a."""

class _cp_94(_Step):
    L2__cache_hint: _cp_92
    b128: _cp_93

class _cp_95(_Step):
    def __call__(self, d: Any, a: Any, size: Any, mbar: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Copies size bytes, each 16 at once, to another block of the cluster; the mbarrier there counts them. ``cp [d], [a], size, [mbar]``, from PTX 9.3 sm_90."""

class _cp_96(_Step):
    b128: _cp_97

class _cp_97(_Step):
    def __call__(self, d: Any, a: Any, size: Any, mbar: Any, policy: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """Copies size bytes, each 16 at once; the mbarrier counts them. ``cp [d], [a], size, [mbar]{, policy}``, from PTX 9.3 sm_90."""

class _cp_98(_Step):
    def __call__(self, d: Any, a: Any, size: Any, policy: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """Combines size bytes of shared memory into global memory, as part of the current group. ``cp [d], [a], size{, policy}``, from PTX 8.0 sm_90."""

class _cp_99(_Step):
    bf16: _cp_98
    f16: _cp_98
    f32: _cp_98

class _cp_100(_Step):
    def __call__(self, d: Any, a: Any, size: Any, mbar: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Combines size bytes of this block into another's; the mbarrier there counts them. ``cp [d], [a], size, [mbar]``, from PTX 8.0 sm_90."""

class _createpolicy(_Step):
    cvt: _createpolicy_1
    fractional: _createpolicy_2
    range: _createpolicy_3

class _createpolicy_1(_Step):
    L2: _createpolicy_4

class _createpolicy_2(_Step):
    L2__evict_first: _createpolicy_5
    L2__evict_last: _createpolicy_5
    L2__evict_normal: _createpolicy_5
    L2__evict_unchanged: _createpolicy_5

class _createpolicy_3(_Step):
    L2__evict_first: _createpolicy_6
    L2__evict_last: _createpolicy_6
    L2__evict_normal: _createpolicy_6
    L2__evict_unchanged: _createpolicy_6
    fabric: _createpolicy_7
    global_: _createpolicy_8

class _createpolicy_4(_Step):
    b64: _createpolicy_9

class _createpolicy_5(_Step):
    L2__evict_first: _createpolicy_10
    L2__evict_unchanged: _createpolicy_10
    b64: _createpolicy_11

class _createpolicy_6(_Step):
    L2__evict_first: _createpolicy_12
    L2__evict_unchanged: _createpolicy_12
    b64: _createpolicy_13

class _createpolicy_7(_Step):
    L2__evict_first: _createpolicy_14
    L2__evict_last: _createpolicy_14
    L2__evict_normal: _createpolicy_14
    L2__evict_unchanged: _createpolicy_14

class _createpolicy_8(_Step):
    L2__evict_first: _createpolicy_6
    L2__evict_last: _createpolicy_6
    L2__evict_normal: _createpolicy_6
    L2__evict_unchanged: _createpolicy_6

class _createpolicy_9(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """A cache policy from the access property a of the CUDA C++ API. ``createpolicy d, a``, from PTX 7.4 sm_80."""

class _createpolicy_10(_Step):
    b64: _createpolicy_11

class _createpolicy_11(_Step):
    def __call__(self, fraction: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """A cache policy: primary for a fraction of the accesses, secondary for the others. ``createpolicy d{, fraction}``, from PTX 7.4 sm_80."""

class _createpolicy_12(_Step):
    b64: _createpolicy_13

class _createpolicy_13(_Step):
    def __call__(self, a: Any, size: Any, total: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """A cache policy: primary for size bytes from a, secondary for the rest of total. ``createpolicy d, [a], size, total``, from PTX 7.4 sm_80."""

class _createpolicy_14(_Step):
    L2__evict_first: _createpolicy_15
    L2__evict_unchanged: _createpolicy_15
    b64: _createpolicy_16

class _createpolicy_15(_Step):
    b64: _createpolicy_16

class _createpolicy_16(_Step):
    def __call__(self, a: Any, size: Any, total: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """A cache policy: primary for size bytes from a, secondary for the rest of total. ``createpolicy d, [a, offset], size, total``, from PTX 9.4 sm_100."""

class _cvt(_Step):
    bf16: _cvt_1
    f16: _cvt_2
    f32: _cvt_3
    f64: _cvt_4
    ftz: _cvt_5
    pack: _cvt_6
    rm: _cvt_7
    rmi: _cvt_8
    rn: _cvt_9
    rna: _cvt_10
    rni: _cvt_8
    rp: _cvt_11
    rpi: _cvt_8
    rs: _cvt_12
    rz: _cvt_13
    rzi: _cvt_8
    s16: _cvt_14
    s32: _cvt_14
    s64: _cvt_14
    s8: _cvt_14
    sat: _cvt_15
    u16: _cvt_14
    u32: _cvt_14
    u64: _cvt_14
    u8: _cvt_14

class _cvt_1(_Step):
    bf16: _cvt_16

class _cvt_2(_Step):
    f16: _cvt_17
    f32: _cvt_17
    f64: _cvt_17

class _cvt_3(_Step):
    bf16: _cvt_18
    f16: _cvt_19
    f32: _cvt_19
    f64: _cvt_17

class _cvt_4(_Step):
    bf16: _cvt_20
    f16: _cvt_19
    f32: _cvt_19
    f64: _cvt_17

class _cvt_5(_Step):
    f16: _cvt_2
    f32: _cvt_3
    f64: _cvt_21
    sat: _cvt_22

class _cvt_6(_Step):
    sat: _cvt_23

class _cvt_7(_Step):
    bf16: _cvt_24
    f16: _cvt_25
    f32: _cvt_26
    f64: _cvt_27
    ftz: _cvt_28
    pzo: _cvt_29
    sat: _cvt_30

class _cvt_8(_Step):
    bf16: _cvt_1
    f16: _cvt_2
    f32: _cvt_2
    f64: _cvt_2
    ftz: _cvt_31
    s16: _cvt_32
    s32: _cvt_32
    s64: _cvt_32
    s8: _cvt_32
    sat: _cvt_33
    u16: _cvt_32
    u32: _cvt_32
    u64: _cvt_32
    u8: _cvt_32

class _cvt_9(_Step):
    bf16: _cvt_34
    bf16x2: _cvt_35
    f16: _cvt_36
    f16x2: _cvt_37
    f32: _cvt_26
    f64: _cvt_27
    ftz: _cvt_28
    pzo: _cvt_38
    relu: _cvt_39
    sat: _cvt_30
    satfinite: _cvt_40
    scaled__n1__ue8m0: _cvt_41
    scaled__n2__ue8m0: _cvt_42
    tf32: _cvt_43
    ue5m3x2: _cvt_44

class _cvt_10(_Step):
    satfinite: _cvt_45
    tf32: _cvt_46

class _cvt_11(_Step):
    bf16: _cvt_24
    f16: _cvt_25
    f32: _cvt_26
    f64: _cvt_27
    ftz: _cvt_28
    pzo: _cvt_29
    sat: _cvt_30
    satfinite: _cvt_47
    scaled__n1__ue8m0: _cvt_41
    ue5m3x2: _cvt_44
    ue8m0x2: _cvt_48

class _cvt_12(_Step):
    bf16x2: _cvt_49
    f16x2: _cvt_49
    relu: _cvt_50
    satfinite: _cvt_51

class _cvt_13(_Step):
    bf16: _cvt_34
    bf16x2: _cvt_52
    f16: _cvt_36
    f16x2: _cvt_52
    f32: _cvt_26
    f64: _cvt_27
    ftz: _cvt_28
    pzo: _cvt_38
    relu: _cvt_53
    sat: _cvt_30
    satfinite: _cvt_54
    scaled__n1__ue8m0: _cvt_41
    tf32: _cvt_43
    ue5m3x2: _cvt_44
    ue8m0x2: _cvt_48

class _cvt_14(_Step):
    s16: _cvt_55
    s32: _cvt_55
    s64: _cvt_55
    s8: _cvt_55
    u16: _cvt_55
    u32: _cvt_55
    u64: _cvt_55
    u8: _cvt_55

class _cvt_15(_Step):
    f16: _cvt_2
    f32: _cvt_21
    f64: _cvt_21
    s16: _cvt_14
    s32: _cvt_14
    s64: _cvt_14
    s8: _cvt_14
    u16: _cvt_14
    u32: _cvt_14
    u64: _cvt_14
    u8: _cvt_14

class _cvt_16(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """a itself, with .rni and so on rounded to an integral value. ``cvt d, a``, from PTX 7.8 sm_90."""

class _cvt_17(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """a itself, with .rni and so on rounded to an integral value. ``cvt d, a``, from PTX 6.3 sm_75."""

class _cvt_18(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """a in a wider float. ``cvt d, a``, from PTX 7.1 sm_80."""

class _cvt_19(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """a itself, with .rni and so on rounded to an integral value. ``cvt d, a``, from PTX 6.3 sm_75.
        a in a wider float. ``cvt d, a``, from PTX 6.3 sm_75."""

class _cvt_20(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """a in a wider float. ``cvt d, a``, from PTX 7.8 sm_90."""

class _cvt_21(_Step):
    f16: _cvt_19
    f32: _cvt_19
    f64: _cvt_17

class _cvt_22(_Step):
    f16: _cvt_2
    f32: _cvt_21
    f64: _cvt_21

class _cvt_23(_Step):
    s16: _cvt_56
    s2: _cvt_57
    s4: _cvt_57
    s8: _cvt_57
    u16: _cvt_56
    u2: _cvt_57
    u4: _cvt_57
    u8: _cvt_57

class _cvt_24(_Step):
    bf16: _cvt_58
    f16: _cvt_58
    f32: _cvt_59
    f64: _cvt_58
    s16: _cvt_60
    s32: _cvt_60
    s64: _cvt_60
    s8: _cvt_60
    u16: _cvt_60
    u32: _cvt_60
    u64: _cvt_60
    u8: _cvt_60

class _cvt_25(_Step):
    bf16: _cvt_58
    f16: _cvt_58
    f32: _cvt_61
    f64: _cvt_62
    s16: _cvt_63
    s32: _cvt_63
    s64: _cvt_63
    s8: _cvt_63
    u16: _cvt_63
    u32: _cvt_63
    u64: _cvt_63
    u8: _cvt_63

class _cvt_26(_Step):
    f32: _cvt_61
    f64: _cvt_61
    s16: _cvt_63
    s32: _cvt_63
    s64: _cvt_63
    s8: _cvt_63
    u16: _cvt_63
    u32: _cvt_63
    u64: _cvt_63
    u8: _cvt_63

class _cvt_27(_Step):
    s16: _cvt_63
    s32: _cvt_63
    s64: _cvt_63
    s8: _cvt_63
    u16: _cvt_63
    u32: _cvt_63
    u64: _cvt_63
    u8: _cvt_63

class _cvt_28(_Step):
    bf16: _cvt_64
    f16: _cvt_26
    f32: _cvt_26
    f64: _cvt_27
    sat: _cvt_30

class _cvt_29(_Step):
    bf16: _cvt_65
    f16: _cvt_66

class _cvt_30(_Step):
    f16: _cvt_26
    f32: _cvt_26
    f64: _cvt_27

class _cvt_31(_Step):
    f16: _cvt_2
    f32: _cvt_2
    f64: _cvt_2
    s16: _cvt_67
    s32: _cvt_67
    s64: _cvt_67
    s8: _cvt_67
    sat: _cvt_33
    u16: _cvt_67
    u32: _cvt_67
    u64: _cvt_67
    u8: _cvt_67

class _cvt_32(_Step):
    bf16: _cvt_68
    f16: _cvt_69
    f32: _cvt_69
    f64: _cvt_69

class _cvt_33(_Step):
    f16: _cvt_2
    f32: _cvt_2
    f64: _cvt_2
    s16: _cvt_67
    s32: _cvt_67
    s64: _cvt_67
    s8: _cvt_67
    u16: _cvt_67
    u32: _cvt_67
    u64: _cvt_67
    u8: _cvt_67

class _cvt_34(_Step):
    bf16: _cvt_58
    f16: _cvt_58
    f32: _cvt_70
    f64: _cvt_58
    s16: _cvt_60
    s32: _cvt_60
    s64: _cvt_60
    s8: _cvt_60
    u16: _cvt_60
    u32: _cvt_60
    u64: _cvt_60
    u8: _cvt_60

class _cvt_35(_Step):
    e2m1x2: _cvt_71
    e2m3x2: _cvt_71
    e3m2x2: _cvt_71
    e4m3x2: _cvt_71
    e5m2x2: _cvt_71
    f32: _cvt_72
    s2f6x2: _cvt_73
    ue5m3x2: _cvt_74
    ue8m0x2: _cvt_75

class _cvt_36(_Step):
    bf16: _cvt_58
    f16: _cvt_58
    f32: _cvt_76
    f64: _cvt_62
    s16: _cvt_63
    s32: _cvt_63
    s64: _cvt_63
    s8: _cvt_63
    u16: _cvt_63
    u32: _cvt_63
    u64: _cvt_63
    u8: _cvt_63

class _cvt_37(_Step):
    e2m1x2: _cvt_77
    e2m3x2: _cvt_77
    e3m2x2: _cvt_77
    e4m3x2: _cvt_77
    e5m2x2: _cvt_77
    f32: _cvt_72
    ue5m3x2: _cvt_78

class _cvt_38(_Step):
    bf16: _cvt_79
    bf16x2: _cvt_52
    f16: _cvt_80
    f16x2: _cvt_52
    tf32: _cvt_43

class _cvt_39(_Step):
    bf16: _cvt_79
    bf16x2: _cvt_81
    f16: _cvt_80
    f16x2: _cvt_82
    pzo: _cvt_38
    satfinite: _cvt_83
    scaled__n2__ue8m0: _cvt_84
    tf32: _cvt_43

class _cvt_40(_Step):
    bf16: _cvt_79
    bf16x2: _cvt_85
    e2m1x2: _cvt_86
    e2m3x2: _cvt_86
    e3m2x2: _cvt_86
    e4m3x2: _cvt_86
    e5m2x2: _cvt_86
    f16: _cvt_80
    f16x2: _cvt_52
    pzo: _cvt_87
    relu: _cvt_88
    s2f6x2: _cvt_89
    scaled__n1__ue8m0: _cvt_90
    scaled__n2__ue8m0: _cvt_91
    tf32: _cvt_43
    ue5m3x2: _cvt_44

class _cvt_41(_Step):
    ue5m3x2: _cvt_44

class _cvt_42(_Step):
    bf16x2: _cvt_92

class _cvt_43(_Step):
    f32: _cvt_93

class _cvt_44(_Step):
    bf16x2: _cvt_94
    f16x2: _cvt_94
    f32: _cvt_95

class _cvt_45(_Step):
    tf32: _cvt_46

class _cvt_46(_Step):
    f32: _cvt_96

class _cvt_47(_Step):
    scaled__n1__ue8m0: _cvt_41
    ue5m3x2: _cvt_44
    ue8m0x2: _cvt_48

class _cvt_48(_Step):
    bf16x2: _cvt_97
    f32: _cvt_98

class _cvt_49(_Step):
    f32: _cvt_99

class _cvt_50(_Step):
    bf16x2: _cvt_49
    f16x2: _cvt_49
    satfinite: _cvt_51

class _cvt_51(_Step):
    bf16x2: _cvt_49
    e2m1x4: _cvt_100
    e2m3x4: _cvt_100
    e3m2x4: _cvt_100
    e4m3x4: _cvt_100
    e5m2x4: _cvt_100
    f16x2: _cvt_49

class _cvt_52(_Step):
    f32: _cvt_72

class _cvt_53(_Step):
    bf16: _cvt_79
    bf16x2: _cvt_52
    f16: _cvt_80
    f16x2: _cvt_52
    pzo: _cvt_38
    satfinite: _cvt_101
    tf32: _cvt_43

class _cvt_54(_Step):
    bf16: _cvt_79
    bf16x2: _cvt_52
    e2m1x2: _cvt_86
    e2m3x2: _cvt_86
    e3m2x2: _cvt_86
    e4m3x2: _cvt_86
    e5m2x2: _cvt_86
    f16: _cvt_80
    f16x2: _cvt_52
    pzo: _cvt_87
    relu: _cvt_102
    s2f6x2: _cvt_89
    scaled__n1__ue8m0: _cvt_90
    scaled__n2__ue8m0: _cvt_103
    tf32: _cvt_43
    ue5m3x2: _cvt_44
    ue8m0x2: _cvt_48

class _cvt_55(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """a as another integer: truncated, extended, or with .sat clamped. ``cvt d, a``, from PTX 6.3 sm_75."""

class _cvt_56(_Step):
    s32: _cvt_104

class _cvt_57(_Step):
    s32: _cvt_105

class _cvt_58(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """a in another float. ``cvt d, a``, from PTX 7.8 sm_90."""

class _cvt_59(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """a as bf16. ``cvt d, a``, from PTX 7.0 sm_80."""

class _cvt_60(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The integer a as a bf16. ``cvt d, a``, from PTX 7.8 sm_90."""

class _cvt_61(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """a in a narrower float. ``cvt d, a``, from PTX 6.3 sm_75."""

class _cvt_62(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """a in a narrower float. ``cvt d, a``, from PTX 6.3 sm_75.
        a in another float. ``cvt d, a``, from PTX 7.8 sm_90."""

class _cvt_63(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The integer a as a float. ``cvt d, a``, from PTX 6.3 sm_75."""

class _cvt_64(_Step):
    f32: _cvt_106

class _cvt_65(_Step):
    f32: _cvt_59

class _cvt_66(_Step):
    f32: _cvt_107

class _cvt_67(_Step):
    f16: _cvt_69
    f32: _cvt_69
    f64: _cvt_69

class _cvt_68(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """a rounded to an integer, clamped to the range of the type. ``cvt d, a``, from PTX 7.8 sm_90."""

class _cvt_69(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """a rounded to an integer, clamped to the range of the type. ``cvt d, a``, from PTX 6.3 sm_75."""

class _cvt_70(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """a as bf16: .relu makes negatives 0, .satfinite infinities finite. ``cvt d, a``, from PTX 7.0 sm_80."""

class _cvt_71(_Step):
    def __call__(self, a: Any, scale: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Two narrow floats as bf16, times the scales. ``cvt d, a{, scale}``, from PTX 9.2 sm_100f."""

class _cvt_72(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """a in the upper half, b in the lower. ``cvt d, a, b``, from PTX 7.0 sm_80."""

class _cvt_73(_Step):
    def __call__(self, a: Any, scale: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Two fixed-point numbers as bf16, times the scales. ``cvt d, a{, scale}``, from PTX 9.1 sm_100a."""

class _cvt_74(_Step):
    def __call__(self, a: Any, scale: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Two unsigned 8-bit floats as bf16, times the scales. ``cvt d, a{, scale}``, from PTX 9.4 sm_107f."""

class _cvt_75(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Two powers of two as bf16. ``cvt d, a``, from PTX 8.8 sm_100f."""

class _cvt_76(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """a in a narrower float. ``cvt d, a``, from PTX 6.3 sm_75.
        a as f16: .relu makes negatives 0, .satfinite infinities finite. ``cvt d, a``, from PTX 6.3 sm_75."""

class _cvt_77(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Two narrow floats as f16. ``cvt d, a``, from PTX 8.1 sm_89."""

class _cvt_78(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Two unsigned 8-bit floats as f16. ``cvt d, a``, from PTX 9.4 sm_107f."""

class _cvt_79(_Step):
    f32: _cvt_70

class _cvt_80(_Step):
    f32: _cvt_108

class _cvt_81(_Step):
    e2m1x2: _cvt_71
    e2m3x2: _cvt_71
    e3m2x2: _cvt_71
    e4m3x2: _cvt_71
    e5m2x2: _cvt_71
    f32: _cvt_72
    s2f6x2: _cvt_73

class _cvt_82(_Step):
    e2m1x2: _cvt_77
    e2m3x2: _cvt_77
    e3m2x2: _cvt_77
    e4m3x2: _cvt_77
    e5m2x2: _cvt_77
    f32: _cvt_72

class _cvt_83(_Step):
    bf16: _cvt_79
    bf16x2: _cvt_109
    f16: _cvt_80
    f16x2: _cvt_52
    pzo: _cvt_110
    scaled__n2__ue8m0: _cvt_111

class _cvt_84(_Step):
    bf16x2: _cvt_112

class _cvt_85(_Step):
    e2m1x2: _cvt_71
    e2m3x2: _cvt_71
    e3m2x2: _cvt_71
    e4m3x2: _cvt_71
    e5m2x2: _cvt_71
    f32: _cvt_72
    s2f6x2: _cvt_73
    ue5m3x2: _cvt_74

class _cvt_86(_Step):
    bf16x2: _cvt_113
    f16x2: _cvt_114
    f32: _cvt_115

class _cvt_87(_Step):
    bf16: _cvt_79
    bf16x2: _cvt_52
    e2m1x2: _cvt_86
    e2m3x2: _cvt_86
    e3m2x2: _cvt_86
    e4m3x2: _cvt_86
    e5m2x2: _cvt_86
    f16: _cvt_80
    f16x2: _cvt_52
    scaled__n1__ue8m0: _cvt_116
    tf32: _cvt_43

class _cvt_88(_Step):
    bf16x2: _cvt_117
    e2m1x2: _cvt_86
    e2m3x2: _cvt_86
    e3m2x2: _cvt_86
    e4m3x2: _cvt_86
    e5m2x2: _cvt_86
    pzo: _cvt_118
    s2f6x2: _cvt_89
    scaled__n1__ue8m0: _cvt_116
    scaled__n2__ue8m0: _cvt_119
    tf32: _cvt_43

class _cvt_89(_Step):
    bf16x2: _cvt_120
    f32: _cvt_121

class _cvt_90(_Step):
    e2m1x2: _cvt_86
    e2m3x2: _cvt_86
    e3m2x2: _cvt_86
    e4m3x2: _cvt_86
    e5m2x2: _cvt_86
    ue5m3x2: _cvt_44

class _cvt_91(_Step):
    bf16x2: _cvt_92
    s2f6x2: _cvt_89

class _cvt_92(_Step):
    e2m1x2: _cvt_71
    e2m3x2: _cvt_71
    e3m2x2: _cvt_71
    e4m3x2: _cvt_71
    e5m2x2: _cvt_71
    s2f6x2: _cvt_73
    ue5m3x2: _cvt_74

class _cvt_93(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """a as tf32. ``cvt d, a``, from PTX 7.8 sm_90."""

class _cvt_94(_Step):
    def __call__(self, a: Any, scale: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Two halves as unsigned 8-bit floats. ``cvt d, a{, scale}``, from PTX 9.4 sm_107f."""

class _cvt_95(_Step):
    def __call__(self, a: Any, b: Any, scale: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Two f32 as unsigned 8-bit floats. ``cvt d, a, b{, scale}``, from PTX 9.4 sm_107f."""

class _cvt_96(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """a as tf32, ties away from zero. ``cvt d, a``, from PTX 7.0 sm_80."""

class _cvt_97(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Two bf16 as powers of two. ``cvt d, a``, from PTX 8.8 sm_100f."""

class _cvt_98(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Two f32 as powers of two. ``cvt d, a, b``, from PTX 8.8 sm_100f."""

class _cvt_99(_Step):
    def __call__(self, a: Any, b: Any, rbits: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """a in the upper half, b in the lower, rounded by the random bits. ``cvt d, a, b, rbits``, from PTX 8.7 sm_100a."""

class _cvt_100(_Step):
    f32: _cvt_122

class _cvt_101(_Step):
    bf16: _cvt_79
    bf16x2: _cvt_52
    f16: _cvt_80
    f16x2: _cvt_52
    pzo: _cvt_110

class _cvt_102(_Step):
    e2m1x2: _cvt_86
    e2m3x2: _cvt_86
    e3m2x2: _cvt_86
    e4m3x2: _cvt_86
    e5m2x2: _cvt_86
    pzo: _cvt_118
    s2f6x2: _cvt_89
    scaled__n1__ue8m0: _cvt_116
    scaled__n2__ue8m0: _cvt_103
    tf32: _cvt_43

class _cvt_103(_Step):
    s2f6x2: _cvt_89

class _cvt_104(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """a and b, clamped, in the upper and lower half. ``cvt d, a, b``, from PTX 6.5 sm_75."""

class _cvt_105(_Step):
    b32: _cvt_123

class _cvt_106(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """a as bf16, subnormals as 0. ``cvt d, a``, from PTX 7.0 sm_80."""

class _cvt_107(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """a as f16, a zero result positive. ``cvt d, a``, from PTX 9.4 sm_107f."""

class _cvt_108(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """a as f16: .relu makes negatives 0, .satfinite infinities finite. ``cvt d, a``, from PTX 6.3 sm_75."""

class _cvt_109(_Step):
    e2m1x2: _cvt_71
    e2m3x2: _cvt_71
    e3m2x2: _cvt_71
    e4m3x2: _cvt_71
    e5m2x2: _cvt_71
    f32: _cvt_72

class _cvt_110(_Step):
    bf16: _cvt_79
    bf16x2: _cvt_52
    f16: _cvt_80
    f16x2: _cvt_52

class _cvt_111(_Step):
    bf16x2: _cvt_124

class _cvt_112(_Step):
    e2m1x2: _cvt_71
    e2m3x2: _cvt_71
    e3m2x2: _cvt_71
    e4m3x2: _cvt_71
    e5m2x2: _cvt_71
    s2f6x2: _cvt_73

class _cvt_113(_Step):
    def __call__(self, a: Any, scale: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Two bf16 as narrow floats. ``cvt d, a{, scale}``, from PTX 9.1 sm_100f."""

class _cvt_114(_Step):
    def __call__(self, a: Any, scale: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Two f16 as narrow floats. ``cvt d, a{, scale}``, from PTX 8.1 sm_89."""

class _cvt_115(_Step):
    def __call__(self, a: Any, b: Any, scale: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Two f32 as narrow floats, a in the upper part. ``cvt d, a, b{, scale}``, from PTX 8.1 sm_89."""

class _cvt_116(_Step):
    e2m1x2: _cvt_86
    e2m3x2: _cvt_86
    e3m2x2: _cvt_86
    e4m3x2: _cvt_86
    e5m2x2: _cvt_86

class _cvt_117(_Step):
    s2f6x2: _cvt_73

class _cvt_118(_Step):
    e2m1x2: _cvt_86
    e2m3x2: _cvt_86
    e3m2x2: _cvt_86
    e4m3x2: _cvt_86
    e5m2x2: _cvt_86
    scaled__n1__ue8m0: _cvt_116
    tf32: _cvt_43

class _cvt_119(_Step):
    bf16x2: _cvt_117
    s2f6x2: _cvt_89

class _cvt_120(_Step):
    def __call__(self, a: Any, scale: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Two bf16 as fixed-point numbers. ``cvt d, a{, scale}``, from PTX 9.1 sm_100a."""

class _cvt_121(_Step):
    def __call__(self, a: Any, b: Any, scale: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Two f32 as fixed-point numbers. ``cvt d, a, b{, scale}``, from PTX 9.1 sm_100a."""

class _cvt_122(_Step):
    def __call__(self, a: Any, rbits: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Four f32 as narrow floats, rounded by the random bits. ``cvt d, {a, ..}, rbits``, from PTX 8.7 sm_100a."""

class _cvt_123(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """a and b, clamped, in the lowest bits, above them the lower bits of c. ``cvt d, a, b, c``, from PTX 6.5 sm_75."""

class _cvt_124(_Step):
    e2m1x2: _cvt_71
    e2m3x2: _cvt_71
    e3m2x2: _cvt_71
    e4m3x2: _cvt_71
    e5m2x2: _cvt_71

class _cvta(_Step):
    const: _cvta_1
    global_: _cvta_1
    local: _cvta_1
    param: _cvta_1
    param__entry: _cvta_1
    shared: _cvta_1
    shared__cluster: _cvta_1
    shared__cta: _cvta_1
    to: _cvta_2

class _cvta_1(_Step):
    u32: _cvta_3
    u64: _cvta_4

class _cvta_2(_Step):
    const: _cvta_5
    global_: _cvta_5
    local: _cvta_5
    param: _cvta_5
    param__entry: _cvta_5
    shared: _cvta_5
    shared__cluster: _cvta_5
    shared__cta: _cvta_5

class _cvta_3(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The generic address of a, an address in the space, where addresses have 32 bits. ``cvta d, a``, from PTX 6.3 sm_75."""

class _cvta_4(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The generic address of a, an address in the space. ``cvta d, a``, from PTX 6.3 sm_75."""

class _cvta_5(_Step):
    u32: _cvta_6
    u64: _cvta_7

class _cvta_6(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The address in the space of the generic address a, where addresses have 32 bits. ``cvta d, a``, from PTX 6.3 sm_75."""

class _cvta_7(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The address in the space of the generic address a. ``cvta d, a``, from PTX 6.3 sm_75."""

class _discard(_Step):
    L2: _discard_1
    global_: _discard_2

class _discard_1(_Step):
    def __call__(self, a: Any, size: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """The size bytes from a need not be written back. ``discard [a], size``, from PTX 7.4 sm_80."""

class _discard_2(_Step):
    L2: _discard_1

class _div(_Step):
    approx: _div_1
    full: _div_2
    rm: _div_3
    rn: _div_3
    rp: _div_3
    rz: _div_3
    s16: _div_4
    s32: _div_4
    s64: _div_4
    u16: _div_4
    u32: _div_4
    u64: _div_4

class _div_1(_Step):
    f32: _div_5
    ftz: _div_6

class _div_2(_Step):
    f32: _div_7
    ftz: _div_8

class _div_3(_Step):
    f32: _div_9
    f64: _div_10
    ftz: _div_11

class _div_4(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a / b, truncated towards zero. ``div d, a, b``, from PTX 6.3 sm_75."""

class _div_5(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a / b within 2 ulp for |b| in [2^-126, 2^126]. ``div d, a, b``, from PTX 6.3 sm_75."""

class _div_6(_Step):
    f32: _div_5

class _div_7(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a / b within 2 ulp for every b. ``div d, a, b``, from PTX 6.3 sm_75."""

class _div_8(_Step):
    f32: _div_7

class _div_9(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a / b. ``div d, a, b``, from PTX 6.3 sm_75."""

class _div_10(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a / b. ``div d, a, b``, from PTX 6.3 sm_75."""

class _div_11(_Step):
    f32: _div_9

class _dp2a(_Step):
    hi: _dp2a_1
    lo: _dp2a_1

class _dp2a_1(_Step):
    s32: _dp2a_2
    u32: _dp2a_2

class _dp2a_2(_Step):
    s32: _dp2a_3
    u32: _dp2a_3

class _dp2a_3(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """c plus the dot product of the two halfwords of a and two bytes of b. ``dp2a d, a, b, c``, from PTX 6.3 sm_75."""

class _dp4a(_Step):
    s32: _dp4a_1
    u32: _dp4a_1

class _dp4a_1(_Step):
    s32: _dp4a_2
    u32: _dp4a_2

class _dp4a_2(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """c plus the dot product of the four bytes of a and of b. ``dp4a d, a, b, c``, from PTX 6.3 sm_75."""

class _elect(_Step):
    sync: _elect_1

class _elect_1(_Step):
    def __call__(self, membermask: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """p holds in one lane of the mask, d is its number. ``elect d|p, membermask``, from PTX 8.0 sm_90."""

class _ex2(_Step):
    approx: _ex2_1

class _ex2_1(_Step):
    f16: _ex2_2
    f16x2: _ex2_2
    f32: _ex2_3
    ftz: _ex2_4

class _ex2_2(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """2 to the power of a. ``ex2 d, a``, from PTX 7.0 sm_75."""

class _ex2_3(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """2 to the power of a, within 2 ulp. ``ex2 d, a``, from PTX 6.3 sm_75."""

class _ex2_4(_Step):
    bf16: _ex2_5
    bf16x2: _ex2_5
    f32: _ex2_3

class _ex2_5(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """2 to the power of a. ``ex2 d, a``, from PTX 7.8 sm_90."""

class _exit(_Step):
    def __call__(self, *, out: Any = None, pred: Any = None) -> None:
        """Ends the thread. ``exit ``, from PTX 6.3 sm_75."""

class _fabric(_Step):
    submit: _fabric_1
    try_atom: _fabric_2
    try_get: _fabric_3
    try_pullred: _fabric_4
    try_put: _fabric_5
    try_red: _fabric_6
    wait: _fabric_7

class _fabric_1(_Step):
    op_restrict__fetching: _fabric_8
    def __call__(self, *, out: Any = None, pred: Any = None) -> None:
        """Sends the fabric operations of this thread so far. ``fabric ``, from PTX 9.3 sm_100."""

class _fabric_2(_Step):
    async_: _fabric_9

class _fabric_3(_Step):
    async_: _fabric_10

class _fabric_4(_Step):
    async_: _fabric_11

class _fabric_5(_Step):
    async_: _fabric_12

class _fabric_6(_Step):
    async_: _fabric_13

class _fabric_7(_Step):
    sync_restrict__read: _fabric_14
    sync_restrict__reads: _fabric_15

class _fabric_8(_Step):
    def __call__(self, *, out: Any = None, pred: Any = None) -> None:
        """Sends the fabric operations of this thread so far. ``fabric ``, from PTX 9.3 sm_100."""

class _fabric_9(_Step):
    shared__cta: _fabric_16

class _fabric_10(_Step):
    shared__cta: _fabric_17

class _fabric_11(_Step):
    multimem: _fabric_18

class _fabric_12(_Step):
    multimem: _fabric_19
    shared__cta: _fabric_20

class _fabric_13(_Step):
    multimem: _fabric_21
    shared__cta: _fabric_22

class _fabric_14(_Step):
    def __call__(self, n: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Waits until at most the last n fabric operations have to read their sources. ``fabric n``, from PTX 9.5 sm_100."""

class _fabric_15(_Step):
    def __call__(self, n: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """Waits until the fabric operations have read their sources. ``fabric ``, from PTX 9.3 sm_100.
        Waits until at most the last n fabric operations have to read their sources. ``fabric n``, from PTX 9.3 sm_100."""

class _fabric_16(_Step):
    mbarrier__complete_tx__16B: _fabric_23

class _fabric_17(_Step):
    mbarrier__complete_tx__bytes: _fabric_24

class _fabric_18(_Step):
    shared__cta: _fabric_25

class _fabric_19(_Step):
    counted__bytes: _fabric_26
    shared__cta: _fabric_27

class _fabric_20(_Step):
    mbarrier__complete_tx__16B: _fabric_28

class _fabric_21(_Step):
    counted__bytes: _fabric_29
    shared__cta: _fabric_30

class _fabric_22(_Step):
    mbarrier__complete_tx__16B: _fabric_31

class _fabric_23(_Step):
    mbarrier__report__fabric: _fabric_32

class _fabric_24(_Step):
    mbarrier__report__fabric: _fabric_33

class _fabric_25(_Step):
    mbarrier__complete_tx__bytes: _fabric_34

class _fabric_26(_Step):
    shared__cta: _fabric_27

class _fabric_27(_Step):
    mbarrier__complete_tx__16B: _fabric_35

class _fabric_28(_Step):
    mbarrier__report__fabric: _fabric_36

class _fabric_29(_Step):
    shared__cta: _fabric_30

class _fabric_30(_Step):
    mbarrier__complete_tx__16B: _fabric_37

class _fabric_31(_Step):
    mbarrier__report__fabric: _fabric_38

class _fabric_32(_Step):
    relaxed: _fabric_39

class _fabric_33(_Step):
    relaxed: _fabric_40

class _fabric_34(_Step):
    mbarrier__report__fabric: _fabric_41

class _fabric_35(_Step):
    mbarrier__report__fabric: _fabric_42

class _fabric_36(_Step):
    relaxed: _fabric_43

class _fabric_37(_Step):
    mbarrier__report__fabric: _fabric_44

class _fabric_38(_Step):
    relaxed: _fabric_45

class _fabric_39(_Step):
    sys: _fabric_46

class _fabric_40(_Step):
    sys: _fabric_47

class _fabric_41(_Step):
    relaxed: _fabric_48

class _fabric_42(_Step):
    relaxed: _fabric_49

class _fabric_43(_Step):
    sys: _fabric_50

class _fabric_44(_Step):
    relaxed: _fabric_51

class _fabric_45(_Step):
    sys: _fabric_52

class _fabric_46(_Step):
    add: _fabric_53
    and_: _fabric_54
    cas: _fabric_55
    exch: _fabric_55
    max: _fabric_56
    min: _fabric_56
    or_: _fabric_54
    xor: _fabric_54

class _fabric_47(_Step):
    b128: _fabric_57

class _fabric_48(_Step):
    sys: _fabric_58

class _fabric_49(_Step):
    sys: _fabric_59

class _fabric_50(_Step):
    b128: _fabric_60

class _fabric_51(_Step):
    sys: _fabric_61

class _fabric_52(_Step):
    add: _fabric_62
    and_: _fabric_63
    max: _fabric_64
    min: _fabric_64
    or_: _fabric_63
    xor: _fabric_63

class _fabric_53(_Step):
    f32: _fabric_65
    f64: _fabric_65
    u32: _fabric_65
    u64: _fabric_65

class _fabric_54(_Step):
    b32: _fabric_65
    b64: _fabric_65

class _fabric_55(_Step):
    b128: _fabric_65
    b32: _fabric_65
    b64: _fabric_65

class _fabric_56(_Step):
    s32: _fabric_65
    s64: _fabric_65
    u32: _fabric_65
    u64: _fabric_65

class _fabric_57(_Step):
    def __call__(self, d: Any, a: Any, size: Any, mbar: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Reads size bytes over the fabric. ``fabric [d], [a, offset], size, [mbar]``, from PTX 9.3 sm_100."""

class _fabric_58(_Step):
    add: _fabric_66
    and_: _fabric_67
    max: _fabric_68
    min: _fabric_68
    or_: _fabric_67
    xor: _fabric_67

class _fabric_59(_Step):
    b128: _fabric_69

class _fabric_60(_Step):
    cp_mask: _fabric_70
    def __call__(self, d: Any, a: Any, size: Any, mbar: Any, mask: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """Writes size bytes over the fabric. ``fabric [d, offset], [a], size, [mbar]{, mask}``, from PTX 9.3 sm_100."""

class _fabric_61(_Step):
    add: _fabric_71
    and_: _fabric_72
    max: _fabric_73
    min: _fabric_73
    or_: _fabric_72
    xor: _fabric_72

class _fabric_62(_Step):
    bf16: _fabric_74
    f16: _fabric_74
    f32: _fabric_74
    f64: _fabric_74
    u32: _fabric_74
    u64: _fabric_74

class _fabric_63(_Step):
    b32: _fabric_74
    b64: _fabric_74

class _fabric_64(_Step):
    bf16: _fabric_74
    f16: _fabric_74
    s32: _fabric_74
    s64: _fabric_74
    u32: _fabric_74
    u64: _fabric_74

class _fabric_65(_Step):
    def __call__(self, d: Any, b: Any, r: Any, mbar: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """An atomic operation over the fabric; what was there goes to r. ``fabric [d, offset], [b], [r], [mbar]``, from PTX 9.4 sm_100."""

class _fabric_66(_Step):
    acc__f16: _fabric_75
    acc__f32: _fabric_76
    bf16: _fabric_77
    f16: _fabric_77
    f32: _fabric_77
    u32: _fabric_77
    u64: _fabric_77

class _fabric_67(_Step):
    b32: _fabric_77
    b64: _fabric_77

class _fabric_68(_Step):
    bf16: _fabric_77
    e4m3: _fabric_78
    e5m2: _fabric_78
    f16: _fabric_77
    s32: _fabric_77
    s64: _fabric_77
    u32: _fabric_77
    u64: _fabric_77

class _fabric_69(_Step):
    cp_mask: _fabric_79
    def __call__(self, d: Any, a: Any, size: Any, mbar: Any, mask: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """Writes size bytes to every device of the multicast group. ``fabric [d, offset, counter], [a], size, [mbar]{, mask}``, from PTX 9.3 sm_100."""

class _fabric_70(_Step):
    def __call__(self, d: Any, a: Any, size: Any, mbar: Any, mask: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """Writes size bytes over the fabric. ``fabric [d, offset], [a], size, [mbar]{, mask}``, from PTX 9.3 sm_100."""

class _fabric_71(_Step):
    bf16: _fabric_80
    f16: _fabric_80
    f32: _fabric_80
    f64: _fabric_80
    u32: _fabric_80
    u64: _fabric_80

class _fabric_72(_Step):
    b32: _fabric_80
    b64: _fabric_80

class _fabric_73(_Step):
    bf16: _fabric_80
    f16: _fabric_80
    s32: _fabric_80
    s64: _fabric_80
    u32: _fabric_80
    u64: _fabric_80

class _fabric_74(_Step):
    def __call__(self, d: Any, a: Any, size: Any, mbar: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Combines size bytes over the fabric. ``fabric [d, offset], [a], size, [mbar]``, from PTX 9.3 sm_100."""

class _fabric_75(_Step):
    e4m3: _fabric_78
    e5m2: _fabric_78

class _fabric_76(_Step):
    bf16: _fabric_78
    e4m3: _fabric_78
    e5m2: _fabric_78
    f16: _fabric_78

class _fabric_77(_Step):
    sync: _fabric_81

class _fabric_78(_Step):
    sync: _fabric_82

class _fabric_79(_Step):
    def __call__(self, d: Any, a: Any, size: Any, mbar: Any, mask: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """Writes size bytes to every device of the multicast group. ``fabric [d, offset, counter], [a], size, [mbar]{, mask}``, from PTX 9.3 sm_100."""

class _fabric_80(_Step):
    def __call__(self, d: Any, a: Any, size: Any, mbar: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Combines size bytes into every device of the multicast group. ``fabric [d, offset, counter], [a], size, [mbar]``, from PTX 9.3 sm_100."""

class _fabric_81(_Step):
    def __call__(self, d: Any, a: Any, size: Any, mbar: Any, membermask: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Reads size bytes of all devices of the multicast group, combined. ``fabric [d], [a, offset], size, [mbar], membermask``, from PTX 9.3 sm_100."""

class _fabric_82(_Step):
    def __call__(self, d: Any, a: Any, size: Any, mbar: Any, membermask: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Reads size bytes of all devices of the multicast group, combined. ``fabric [d], [a, offset], size, [mbar], membermask``, from PTX 9.3 sm_100f."""

class _fence(_Step):
    acq_rel: _fence_1
    acquire: _fence_2
    cluster: _fence_3
    cta: _fence_3
    gpu: _fence_3
    mbarrier_init: _fence_4
    proxy: _fence_5
    release: _fence_6
    sc: _fence_1
    sys: _fence_3

class _fence_1(_Step):
    cluster: _fence_3
    cta: _fence_3
    gpu: _fence_3
    sys: _fence_3

class _fence_2(_Step):
    cluster: _fence_3
    cta: _fence_3
    gpu: _fence_3
    sync_restrict__shared__cluster: _fence_7
    sys: _fence_3

class _fence_3(_Step):
    def __call__(self, *, out: Any = None, pred: Any = None) -> None:
        """Orders the memory accesses before it and after it, as seen from the scope. ``fence ``, from PTX 6.3 sm_75."""

class _fence_4(_Step):
    release: _fence_8

class _fence_5(_Step):
    alias: _fence_9
    async_: _fence_10
    async__generic: _fence_11
    tensormap__generic: _fence_12

class _fence_6(_Step):
    cluster: _fence_3
    cta: _fence_3
    gpu: _fence_3
    sync_restrict__shared__cta: _fence_13
    sys: _fence_3

class _fence_7(_Step):
    cluster: _fence_14

class _fence_8(_Step):
    cluster: _fence_15

class _fence_9(_Step):
    def __call__(self, *, out: Any = None, pred: Any = None) -> None:
        """Orders accesses through different proxies. ``fence ``, from PTX 7.5 sm_75."""

class _fence_10(_Step):
    global_: _fence_9
    shared__cluster: _fence_9
    shared__cta: _fence_9
    def __call__(self, *, out: Any = None, pred: Any = None) -> None:
        """Orders accesses through different proxies. ``fence ``, from PTX 7.5 sm_75."""

class _fence_11(_Step):
    acquire: _fence_16
    release: _fence_17

class _fence_12(_Step):
    acquire: _fence_18
    release: _fence_19

class _fence_13(_Step):
    cluster: _fence_20

class _fence_14(_Step):
    def __call__(self, *, out: Any = None, pred: Any = None) -> None:
        """An acquire fence for the shared memory of the cluster only. ``fence ``, from PTX 8.6 sm_90."""

class _fence_15(_Step):
    def __call__(self, *, out: Any = None, pred: Any = None) -> None:
        """Makes the initialisation of mbarriers visible to the cluster. ``fence ``, from PTX 8.0 sm_90."""

class _fence_16(_Step):
    sync_restrict__shared__cluster: _fence_21

class _fence_17(_Step):
    sync_restrict__shared__cluster__read: _fence_22
    sync_restrict__shared__cta: _fence_22

class _fence_18(_Step):
    cluster: _fence_23
    cta: _fence_23
    gpu: _fence_23
    sys: _fence_23

class _fence_19(_Step):
    cluster: _fence_24
    cta: _fence_24
    gpu: _fence_24
    sys: _fence_24

class _fence_20(_Step):
    def __call__(self, *, out: Any = None, pred: Any = None) -> None:
        """A release fence for the shared memory of the block only. ``fence ``, from PTX 8.6 sm_90."""

class _fence_21(_Step):
    cluster: _fence_25

class _fence_22(_Step):
    cluster: _fence_26

class _fence_23(_Step):
    def __call__(self, a: Any, size: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Acquires the tensor map at a. ``fence [a], size``, from PTX 8.3 sm_90."""

class _fence_24(_Step):
    def __call__(self, *, out: Any = None, pred: Any = None) -> None:
        """Releases writes to a tensor map. ``fence ``, from PTX 8.3 sm_90."""

class _fence_25(_Step):
    def __call__(self, *, out: Any = None, pred: Any = None) -> None:
        """An acquire fence between the async and the generic proxy, for the shared memory of the cluster only. ``fence ``, from PTX 8.6 sm_90."""

class _fence_26(_Step):
    def __call__(self, *, out: Any = None, pred: Any = None) -> None:
        """A release fence between the async and the generic proxy, for shared memory only. ``fence ``, from PTX 8.6 sm_90."""

class _fma(_Step):
    e4m3x4: _fma_1
    e5m2x4: _fma_1
    rm: _fma_2
    rn: _fma_3
    rp: _fma_2
    rz: _fma_2
    satfinite: _fma_4

class _fma_1(_Step):
    e2m1p4x4: _fma_5
    e2m1x4: _fma_5
    e2m3x4: _fma_5
    e3m2x4: _fma_5
    e4m3x4: _fma_5
    e5m2x4: _fma_5
    ue8m0x4: _fma_5

class _fma_2(_Step):
    f32: _fma_6
    f32x2: _fma_7
    f64: _fma_8
    ftz: _fma_9
    sat: _fma_10

class _fma_3(_Step):
    bf16: _fma_11
    bf16x2: _fma_11
    e4m3x4: _fma_1
    e5m2x4: _fma_1
    f16: _fma_12
    f16x2: _fma_12
    f32: _fma_6
    f32x2: _fma_7
    f64: _fma_8
    ftz: _fma_13
    oob: _fma_14
    relu: _fma_15
    sat: _fma_16
    satfinite: _fma_4

class _fma_4(_Step):
    e4m3x4: _fma_1
    e5m2x4: _fma_1

class _fma_5(_Step):
    e2m1p4x4: _fma_17
    e2m1x4: _fma_17
    e2m3x4: _fma_17
    e3m2x4: _fma_17
    e4m3x4: _fma_17
    e5m2x4: _fma_17
    ue8m0x4: _fma_17

class _fma_6(_Step):
    bf16: _fma_18
    f16: _fma_18
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a * b + c, rounded once. ``fma d, a, b, c``, from PTX 6.3 sm_75."""

class _fma_7(_Step):
    bf16x2: _fma_19
    f16x2: _fma_19
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a * b + c in each half, rounded once. ``fma d, a, b, c``, from PTX 8.6 sm_100."""

class _fma_8(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a * b + c, rounded once. ``fma d, a, b, c``, from PTX 6.3 sm_75."""

class _fma_9(_Step):
    f32: _fma_20
    f32x2: _fma_21
    sat: _fma_22

class _fma_10(_Step):
    f32: _fma_6

class _fma_11(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a * b + c, rounded once. ``fma d, a, b, c``, from PTX 7.0 sm_80."""

class _fma_12(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a * b + c, rounded once. ``fma d, a, b, c``, from PTX 6.3 sm_75."""

class _fma_13(_Step):
    f16: _fma_12
    f16x2: _fma_12
    f32: _fma_20
    f32x2: _fma_21
    relu: _fma_23
    sat: _fma_24

class _fma_14(_Step):
    bf16: _fma_25
    bf16x2: _fma_25
    f16: _fma_25
    f16x2: _fma_25
    relu: _fma_26

class _fma_15(_Step):
    bf16: _fma_11
    bf16x2: _fma_11
    f16: _fma_12
    f16x2: _fma_12

class _fma_16(_Step):
    f16: _fma_12
    f16x2: _fma_12
    f32: _fma_6

class _fma_17(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a * b + c in each lane. ``fma d, a, b, c``, from PTX 9.4 sm_100a."""

class _fma_18(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a * b + c, a and b widened. ``fma d, a, b, c``, from PTX 8.6 sm_100."""

class _fma_19(_Step):
    f32x2: _fma_27

class _fma_20(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a * b + c, rounded once. ``fma d, a, b, c``, from PTX 6.3 sm_75."""

class _fma_21(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a * b + c in each half, rounded once. ``fma d, a, b, c``, from PTX 8.6 sm_100."""

class _fma_22(_Step):
    f32: _fma_20

class _fma_23(_Step):
    f16: _fma_12
    f16x2: _fma_12

class _fma_24(_Step):
    f16: _fma_12
    f16x2: _fma_12
    f32: _fma_20

class _fma_25(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a * b + c; 0 where a or b is the out-of-bounds NaN. ``fma d, a, b, c``, from PTX 8.1 sm_90."""

class _fma_26(_Step):
    bf16: _fma_25
    bf16x2: _fma_25
    f16: _fma_25
    f16x2: _fma_25

class _fma_27(_Step):
    f32x2: _fma_28

class _fma_28(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a * b + c in each half, a widened. ``fma d, a, b, c``, from PTX 9.4 sm_107f."""

class _fns(_Step):
    b32: _fns_1

class _fns_1(_Step):
    def __call__(self, mask: Any, base: Any, offset: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The position of the offset-th set bit of mask, counted from bit base; 0xffffffff if none. ``fns d, mask, base, offset``, from PTX 6.3 sm_75."""

class _getctarank(_Step):
    shared__cluster: _getctarank_1
    u32: _getctarank_2
    u64: _getctarank_2

class _getctarank_1(_Step):
    u32: _getctarank_2
    u64: _getctarank_2

class _getctarank_2(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The rank in the cluster of the block whose shared memory a points into. ``getctarank d, a``, from PTX 7.8 sm_90."""

class _griddepcontrol(_Step):
    launch_dependents: _griddepcontrol_1
    wait: _griddepcontrol_1

class _griddepcontrol_1(_Step):
    def __call__(self, *, out: Any = None, pred: Any = None) -> None:
        """Lets dependent grids start, or waits for those that this one depends on. ``griddepcontrol ``, from PTX 7.8 sm_90."""

class _isspacep(_Step):
    const: _isspacep_1
    global_: _isspacep_1
    local: _isspacep_1
    param: _isspacep_1
    param__entry: _isspacep_1
    shared: _isspacep_1
    shared__cluster: _isspacep_1
    shared__cta: _isspacep_1

class _isspacep_1(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Whether the generic address a lies in the space. ``isspacep d, a``, from PTX 6.3 sm_75."""

class _istypep(_Step):
    samplerref: _istypep_1
    surfref: _istypep_1
    texref: _istypep_1

class _istypep_1(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Whether a is a handle of that type. ``istypep d, a``, from PTX 6.3 sm_75."""

class _ld(_Step):
    L1__evict_first: _ld_1
    L1__evict_last: _ld_1
    L1__evict_normal: _ld_1
    L1__evict_unchanged: _ld_1
    L1__no_allocate: _ld_1
    L2__128B: _ld_2
    L2__256B: _ld_2
    L2__64B: _ld_2
    L2__cache_hint: _ld_3
    L2__evict_first: _ld_4
    L2__evict_last: _ld_4
    L2__evict_normal: _ld_4
    acquire: _ld_5
    b128: _ld_6
    b16: _ld_7
    b32: _ld_7
    b64: _ld_7
    b8: _ld_7
    ca: _ld_8
    cg: _ld_8
    const: _ld_9
    cs: _ld_8
    cv: _ld_8
    f32: _ld_7
    f64: _ld_7
    global_: _ld_10
    local: _ld_9
    lu: _ld_8
    mmio: _ld_11
    param: _ld_9
    param__entry: _ld_9
    param__func: _ld_9
    relaxed: _ld_5
    s16: _ld_7
    s32: _ld_7
    s64: _ld_7
    s8: _ld_7
    shared: _ld_9
    shared__cluster: _ld_9
    shared__cta: _ld_9
    u16: _ld_7
    u32: _ld_7
    u64: _ld_7
    u8: _ld_7
    v2: _ld_12
    v4: _ld_12
    v8: _ld_12
    volatile: _ld_13
    weak: _ld_14

class _ld_1(_Step):
    L2__128B: _ld_15
    L2__256B: _ld_15
    L2__64B: _ld_15
    L2__cache_hint: _ld_16
    L2__evict_first: _ld_4
    L2__evict_last: _ld_4
    L2__evict_normal: _ld_4
    b128: _ld_17
    b16: _ld_17
    b32: _ld_17
    b64: _ld_17
    b8: _ld_17
    f32: _ld_17
    f64: _ld_17
    s16: _ld_17
    s32: _ld_17
    s64: _ld_17
    s8: _ld_17
    u16: _ld_17
    u32: _ld_17
    u64: _ld_17
    u8: _ld_17
    v2: _ld_18
    v4: _ld_18
    v8: _ld_18

class _ld_2(_Step):
    b128: _ld_6
    b16: _ld_6
    b32: _ld_6
    b64: _ld_6
    b8: _ld_6
    f32: _ld_6
    f64: _ld_6
    s16: _ld_6
    s32: _ld_6
    s64: _ld_6
    s8: _ld_6
    u16: _ld_6
    u32: _ld_6
    u64: _ld_6
    u8: _ld_6
    v2: _ld_12
    v4: _ld_12
    v8: _ld_12

class _ld_3(_Step):
    L2__128B: _ld_2
    L2__256B: _ld_2
    L2__64B: _ld_2
    b128: _ld_6
    b16: _ld_6
    b32: _ld_6
    b64: _ld_6
    b8: _ld_6
    f32: _ld_6
    f64: _ld_6
    s16: _ld_6
    s32: _ld_6
    s64: _ld_6
    s8: _ld_6
    u16: _ld_6
    u32: _ld_6
    u64: _ld_6
    u8: _ld_6
    v2: _ld_12
    v4: _ld_12
    v8: _ld_12

class _ld_4(_Step):
    L2__128B: _ld_15
    L2__256B: _ld_15
    L2__64B: _ld_15
    L2__cache_hint: _ld_16
    b128: _ld_17
    b16: _ld_17
    b32: _ld_17
    b64: _ld_17
    b8: _ld_17
    f32: _ld_17
    f64: _ld_17
    s16: _ld_17
    s32: _ld_17
    s64: _ld_17
    s8: _ld_17
    u16: _ld_17
    u32: _ld_17
    u64: _ld_17
    u8: _ld_17
    v2: _ld_18
    v4: _ld_18
    v8: _ld_18

class _ld_5(_Step):
    cluster: _ld_19
    cta: _ld_19
    gpu: _ld_19
    sys: _ld_19

class _ld_6(_Step):
    def __call__(self, a: Any, policy: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = what lies at a. ``ld {d, ..}, [a]{, policy}``, from PTX 6.3 sm_75.
        d = what lies at a, with a wish how long the caches keep it. ``ld {d, ..}, [a]{, policy}``, from PTX 6.3 sm_75."""

class _ld_7(_Step):
    proxy__readonly: _ld_20
    def __call__(self, a: Any, policy: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = what lies at a. ``ld {d, ..}, [a]{, policy}``, from PTX 6.3 sm_75.
        d = what lies at a, with a wish how long the caches keep it. ``ld {d, ..}, [a]{, policy}``, from PTX 6.3 sm_75."""

class _ld_8(_Step):
    L2__128B: _ld_21
    L2__256B: _ld_21
    L2__64B: _ld_21
    L2__cache_hint: _ld_22
    b128: _ld_23
    b16: _ld_23
    b32: _ld_23
    b64: _ld_23
    b8: _ld_23
    f32: _ld_23
    f64: _ld_23
    s16: _ld_23
    s32: _ld_23
    s64: _ld_23
    s8: _ld_23
    u16: _ld_23
    u32: _ld_23
    u64: _ld_23
    u8: _ld_23
    v2: _ld_24
    v4: _ld_24
    v8: _ld_24

class _ld_9(_Step):
    b128: _ld_25
    b16: _ld_25
    b32: _ld_25
    b64: _ld_25
    b8: _ld_25
    ca: _ld_26
    cg: _ld_26
    cs: _ld_26
    cv: _ld_26
    f32: _ld_25
    f64: _ld_25
    lu: _ld_26
    s16: _ld_25
    s32: _ld_25
    s64: _ld_25
    s8: _ld_25
    u16: _ld_25
    u32: _ld_25
    u64: _ld_25
    u8: _ld_25
    v2: _ld_27
    v4: _ld_27

class _ld_10(_Step):
    L1__evict_first: _ld_1
    L1__evict_last: _ld_1
    L1__evict_normal: _ld_1
    L1__evict_unchanged: _ld_1
    L1__no_allocate: _ld_1
    L2__128B: _ld_2
    L2__256B: _ld_2
    L2__64B: _ld_2
    L2__cache_hint: _ld_3
    L2__evict_first: _ld_4
    L2__evict_last: _ld_4
    L2__evict_normal: _ld_4
    b128: _ld_6
    b16: _ld_7
    b32: _ld_7
    b64: _ld_7
    b8: _ld_7
    ca: _ld_28
    cg: _ld_28
    cs: _ld_28
    cv: _ld_8
    f32: _ld_7
    f64: _ld_7
    lu: _ld_8
    nc: _ld_29
    s16: _ld_7
    s32: _ld_7
    s64: _ld_7
    s8: _ld_7
    u16: _ld_7
    u32: _ld_7
    u64: _ld_7
    u8: _ld_7
    v2: _ld_12
    v4: _ld_12
    v8: _ld_12

class _ld_11(_Step):
    acquire: _ld_30
    relaxed: _ld_30

class _ld_12(_Step):
    b128: _ld_6
    b16: _ld_6
    b32: _ld_6
    b64: _ld_6
    b8: _ld_6
    f32: _ld_6
    f64: _ld_6
    s16: _ld_6
    s32: _ld_6
    s64: _ld_6
    s8: _ld_6
    u16: _ld_6
    u32: _ld_6
    u64: _ld_6
    u8: _ld_6

class _ld_13(_Step):
    L2__128B: _ld_31
    L2__256B: _ld_31
    L2__64B: _ld_31
    b128: _ld_32
    b16: _ld_32
    b32: _ld_32
    b64: _ld_32
    b8: _ld_32
    f32: _ld_32
    f64: _ld_32
    global_: _ld_33
    local: _ld_34
    s16: _ld_32
    s32: _ld_32
    s64: _ld_32
    s8: _ld_32
    shared: _ld_34
    shared__cluster: _ld_34
    shared__cta: _ld_34
    u16: _ld_32
    u32: _ld_32
    u64: _ld_32
    u8: _ld_32
    v2: _ld_35
    v4: _ld_35

class _ld_14(_Step):
    L1__evict_first: _ld_1
    L1__evict_last: _ld_1
    L1__evict_normal: _ld_1
    L1__evict_unchanged: _ld_1
    L1__no_allocate: _ld_1
    L2__128B: _ld_2
    L2__256B: _ld_2
    L2__64B: _ld_2
    L2__cache_hint: _ld_3
    L2__evict_first: _ld_4
    L2__evict_last: _ld_4
    L2__evict_normal: _ld_4
    b128: _ld_6
    b16: _ld_6
    b32: _ld_6
    b64: _ld_6
    b8: _ld_6
    ca: _ld_8
    cg: _ld_8
    const: _ld_9
    cs: _ld_8
    cv: _ld_8
    f32: _ld_6
    f64: _ld_6
    global_: _ld_36
    local: _ld_9
    lu: _ld_8
    param: _ld_9
    param__entry: _ld_9
    param__func: _ld_9
    s16: _ld_6
    s32: _ld_6
    s64: _ld_6
    s8: _ld_6
    shared: _ld_9
    shared__cluster: _ld_9
    shared__cta: _ld_9
    u16: _ld_6
    u32: _ld_6
    u64: _ld_6
    u8: _ld_6
    v2: _ld_12
    v4: _ld_12
    v8: _ld_12

class _ld_15(_Step):
    b128: _ld_17
    b16: _ld_17
    b32: _ld_17
    b64: _ld_17
    b8: _ld_17
    f32: _ld_17
    f64: _ld_17
    s16: _ld_17
    s32: _ld_17
    s64: _ld_17
    s8: _ld_17
    u16: _ld_17
    u32: _ld_17
    u64: _ld_17
    u8: _ld_17
    v2: _ld_18
    v4: _ld_18
    v8: _ld_18

class _ld_16(_Step):
    L2__128B: _ld_15
    L2__256B: _ld_15
    L2__64B: _ld_15
    b128: _ld_17
    b16: _ld_17
    b32: _ld_17
    b64: _ld_17
    b8: _ld_17
    f32: _ld_17
    f64: _ld_17
    s16: _ld_17
    s32: _ld_17
    s64: _ld_17
    s8: _ld_17
    u16: _ld_17
    u32: _ld_17
    u64: _ld_17
    u8: _ld_17
    v2: _ld_18
    v4: _ld_18
    v8: _ld_18

class _ld_17(_Step):
    def __call__(self, a: Any, policy: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = what lies at a, with a wish how long the caches keep it. ``ld {d, ..}, [a]{, policy}``, from PTX 6.3 sm_75."""

class _ld_18(_Step):
    b128: _ld_17
    b16: _ld_17
    b32: _ld_17
    b64: _ld_17
    b8: _ld_17
    f32: _ld_17
    f64: _ld_17
    s16: _ld_17
    s32: _ld_17
    s64: _ld_17
    s8: _ld_17
    u16: _ld_17
    u32: _ld_17
    u64: _ld_17
    u8: _ld_17

class _ld_19(_Step):
    L1__evict_first: _ld_37
    L1__evict_last: _ld_37
    L1__evict_normal: _ld_37
    L1__evict_unchanged: _ld_37
    L1__no_allocate: _ld_37
    L2__128B: _ld_38
    L2__256B: _ld_38
    L2__64B: _ld_38
    L2__cache_hint: _ld_39
    L2__evict_first: _ld_40
    L2__evict_last: _ld_40
    L2__evict_normal: _ld_40
    b128: _ld_41
    b16: _ld_41
    b32: _ld_41
    b64: _ld_41
    b8: _ld_41
    f32: _ld_41
    f64: _ld_41
    global_: _ld_42
    s16: _ld_41
    s32: _ld_41
    s64: _ld_41
    s8: _ld_41
    shared: _ld_43
    shared__cluster: _ld_43
    shared__cta: _ld_43
    u16: _ld_41
    u32: _ld_41
    u64: _ld_41
    u8: _ld_41
    v2: _ld_44
    v4: _ld_44
    v8: _ld_44

class _ld_20(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = what lies at a, read through the read-only proxy. ``ld d, [a]``, from PTX 9.4 sm_90."""

class _ld_21(_Step):
    b128: _ld_23
    b16: _ld_23
    b32: _ld_23
    b64: _ld_23
    b8: _ld_23
    f32: _ld_23
    f64: _ld_23
    s16: _ld_23
    s32: _ld_23
    s64: _ld_23
    s8: _ld_23
    u16: _ld_23
    u32: _ld_23
    u64: _ld_23
    u8: _ld_23
    v2: _ld_24
    v4: _ld_24
    v8: _ld_24

class _ld_22(_Step):
    L2__128B: _ld_21
    L2__256B: _ld_21
    L2__64B: _ld_21
    b128: _ld_23
    b16: _ld_23
    b32: _ld_23
    b64: _ld_23
    b8: _ld_23
    f32: _ld_23
    f64: _ld_23
    s16: _ld_23
    s32: _ld_23
    s64: _ld_23
    s8: _ld_23
    u16: _ld_23
    u32: _ld_23
    u64: _ld_23
    u8: _ld_23
    v2: _ld_24
    v4: _ld_24
    v8: _ld_24

class _ld_23(_Step):
    def __call__(self, a: Any, policy: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = what lies at a. ``ld {d, ..}, [a]{, policy}``, from PTX 6.3 sm_75."""

class _ld_24(_Step):
    b128: _ld_23
    b16: _ld_23
    b32: _ld_23
    b64: _ld_23
    b8: _ld_23
    f32: _ld_23
    f64: _ld_23
    s16: _ld_23
    s32: _ld_23
    s64: _ld_23
    s8: _ld_23
    u16: _ld_23
    u32: _ld_23
    u64: _ld_23
    u8: _ld_23

class _ld_25(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = what lies at a. ``ld {d, ..}, [a]``, from PTX 6.3 sm_75."""

class _ld_26(_Step):
    b128: _ld_25
    b16: _ld_25
    b32: _ld_25
    b64: _ld_25
    b8: _ld_25
    f32: _ld_25
    f64: _ld_25
    s16: _ld_25
    s32: _ld_25
    s64: _ld_25
    s8: _ld_25
    u16: _ld_25
    u32: _ld_25
    u64: _ld_25
    u8: _ld_25
    v2: _ld_27
    v4: _ld_27

class _ld_27(_Step):
    b128: _ld_25
    b16: _ld_25
    b32: _ld_25
    b64: _ld_25
    b8: _ld_25
    f32: _ld_25
    f64: _ld_25
    s16: _ld_25
    s32: _ld_25
    s64: _ld_25
    s8: _ld_25
    u16: _ld_25
    u32: _ld_25
    u64: _ld_25
    u8: _ld_25

class _ld_28(_Step):
    L2__128B: _ld_21
    L2__256B: _ld_21
    L2__64B: _ld_21
    L2__cache_hint: _ld_22
    b128: _ld_23
    b16: _ld_23
    b32: _ld_23
    b64: _ld_23
    b8: _ld_23
    f32: _ld_23
    f64: _ld_23
    nc: _ld_45
    s16: _ld_23
    s32: _ld_23
    s64: _ld_23
    s8: _ld_23
    u16: _ld_23
    u32: _ld_23
    u64: _ld_23
    u8: _ld_23
    v2: _ld_24
    v4: _ld_24
    v8: _ld_24

class _ld_29(_Step):
    L1__evict_first: _ld_46
    L1__evict_last: _ld_46
    L1__evict_normal: _ld_46
    L1__evict_unchanged: _ld_46
    L1__no_allocate: _ld_46
    L2__128B: _ld_47
    L2__256B: _ld_47
    L2__64B: _ld_47
    L2__cache_hint: _ld_48
    L2__evict_first: _ld_49
    L2__evict_last: _ld_49
    L2__evict_normal: _ld_49
    b128: _ld_50
    b16: _ld_50
    b32: _ld_50
    b64: _ld_50
    b8: _ld_50
    f32: _ld_50
    f64: _ld_50
    s16: _ld_50
    s32: _ld_50
    s64: _ld_50
    s8: _ld_50
    u16: _ld_50
    u32: _ld_50
    u64: _ld_50
    u8: _ld_50
    v2: _ld_51
    v4: _ld_51
    v8: _ld_51

class _ld_30(_Step):
    sys: _ld_52

class _ld_31(_Step):
    b128: _ld_32
    b16: _ld_32
    b32: _ld_32
    b64: _ld_32
    b8: _ld_32
    f32: _ld_32
    f64: _ld_32
    s16: _ld_32
    s32: _ld_32
    s64: _ld_32
    s8: _ld_32
    u16: _ld_32
    u32: _ld_32
    u64: _ld_32
    u8: _ld_32
    v2: _ld_35
    v4: _ld_35

class _ld_32(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = what lies at a, not to be left out, merged or moved. ``ld {d, ..}, [a]``, from PTX 6.3 sm_75."""

class _ld_33(_Step):
    L2__128B: _ld_31
    L2__256B: _ld_31
    L2__64B: _ld_31
    b128: _ld_32
    b16: _ld_32
    b32: _ld_32
    b64: _ld_32
    b8: _ld_32
    f32: _ld_32
    f64: _ld_32
    s16: _ld_32
    s32: _ld_32
    s64: _ld_32
    s8: _ld_32
    u16: _ld_32
    u32: _ld_32
    u64: _ld_32
    u8: _ld_32
    v2: _ld_35
    v4: _ld_35

class _ld_34(_Step):
    b128: _ld_53
    b16: _ld_53
    b32: _ld_53
    b64: _ld_53
    b8: _ld_53
    f32: _ld_53
    f64: _ld_53
    s16: _ld_53
    s32: _ld_53
    s64: _ld_53
    s8: _ld_53
    u16: _ld_53
    u32: _ld_53
    u64: _ld_53
    u8: _ld_53
    v2: _ld_54
    v4: _ld_54

class _ld_35(_Step):
    b128: _ld_32
    b16: _ld_32
    b32: _ld_32
    b64: _ld_32
    b8: _ld_32
    f32: _ld_32
    f64: _ld_32
    s16: _ld_32
    s32: _ld_32
    s64: _ld_32
    s8: _ld_32
    u16: _ld_32
    u32: _ld_32
    u64: _ld_32
    u8: _ld_32

class _ld_36(_Step):
    L1__evict_first: _ld_1
    L1__evict_last: _ld_1
    L1__evict_normal: _ld_1
    L1__evict_unchanged: _ld_1
    L1__no_allocate: _ld_1
    L2__128B: _ld_2
    L2__256B: _ld_2
    L2__64B: _ld_2
    L2__cache_hint: _ld_3
    L2__evict_first: _ld_4
    L2__evict_last: _ld_4
    L2__evict_normal: _ld_4
    b128: _ld_6
    b16: _ld_6
    b32: _ld_6
    b64: _ld_6
    b8: _ld_6
    ca: _ld_8
    cg: _ld_8
    cs: _ld_8
    cv: _ld_8
    f32: _ld_6
    f64: _ld_6
    lu: _ld_8
    s16: _ld_6
    s32: _ld_6
    s64: _ld_6
    s8: _ld_6
    u16: _ld_6
    u32: _ld_6
    u64: _ld_6
    u8: _ld_6
    v2: _ld_12
    v4: _ld_12
    v8: _ld_12

class _ld_37(_Step):
    L2__128B: _ld_38
    L2__256B: _ld_38
    L2__64B: _ld_38
    L2__cache_hint: _ld_39
    L2__evict_first: _ld_40
    L2__evict_last: _ld_40
    L2__evict_normal: _ld_40
    b128: _ld_41
    b16: _ld_41
    b32: _ld_41
    b64: _ld_41
    b8: _ld_41
    f32: _ld_41
    f64: _ld_41
    s16: _ld_41
    s32: _ld_41
    s64: _ld_41
    s8: _ld_41
    u16: _ld_41
    u32: _ld_41
    u64: _ld_41
    u8: _ld_41
    v2: _ld_44
    v4: _ld_44
    v8: _ld_44

class _ld_38(_Step):
    b128: _ld_41
    b16: _ld_41
    b32: _ld_41
    b64: _ld_41
    b8: _ld_41
    f32: _ld_41
    f64: _ld_41
    s16: _ld_41
    s32: _ld_41
    s64: _ld_41
    s8: _ld_41
    u16: _ld_41
    u32: _ld_41
    u64: _ld_41
    u8: _ld_41
    v2: _ld_44
    v4: _ld_44
    v8: _ld_44

class _ld_39(_Step):
    L2__128B: _ld_38
    L2__256B: _ld_38
    L2__64B: _ld_38
    b128: _ld_41
    b16: _ld_41
    b32: _ld_41
    b64: _ld_41
    b8: _ld_41
    f32: _ld_41
    f64: _ld_41
    s16: _ld_41
    s32: _ld_41
    s64: _ld_41
    s8: _ld_41
    u16: _ld_41
    u32: _ld_41
    u64: _ld_41
    u8: _ld_41
    v2: _ld_44
    v4: _ld_44
    v8: _ld_44

class _ld_40(_Step):
    L2__128B: _ld_38
    L2__256B: _ld_38
    L2__64B: _ld_38
    L2__cache_hint: _ld_39
    b128: _ld_41
    b16: _ld_41
    b32: _ld_41
    b64: _ld_41
    b8: _ld_41
    f32: _ld_41
    f64: _ld_41
    s16: _ld_41
    s32: _ld_41
    s64: _ld_41
    s8: _ld_41
    u16: _ld_41
    u32: _ld_41
    u64: _ld_41
    u8: _ld_41
    v2: _ld_44
    v4: _ld_44
    v8: _ld_44

class _ld_41(_Step):
    def __call__(self, a: Any, policy: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = what lies at a, in the order of the memory model. ``ld {d, ..}, [a]{, policy}``, from PTX 6.3 sm_75."""

class _ld_42(_Step):
    L1__evict_first: _ld_37
    L1__evict_last: _ld_37
    L1__evict_normal: _ld_37
    L1__evict_unchanged: _ld_37
    L1__no_allocate: _ld_37
    L2__128B: _ld_38
    L2__256B: _ld_38
    L2__64B: _ld_38
    L2__cache_hint: _ld_39
    L2__evict_first: _ld_40
    L2__evict_last: _ld_40
    L2__evict_normal: _ld_40
    b128: _ld_41
    b16: _ld_41
    b32: _ld_41
    b64: _ld_41
    b8: _ld_41
    f32: _ld_41
    f64: _ld_41
    s16: _ld_41
    s32: _ld_41
    s64: _ld_41
    s8: _ld_41
    u16: _ld_41
    u32: _ld_41
    u64: _ld_41
    u8: _ld_41
    v2: _ld_44
    v4: _ld_44
    v8: _ld_44

class _ld_43(_Step):
    b128: _ld_55
    b16: _ld_55
    b32: _ld_55
    b64: _ld_55
    b8: _ld_55
    f32: _ld_55
    f64: _ld_55
    s16: _ld_55
    s32: _ld_55
    s64: _ld_55
    s8: _ld_55
    u16: _ld_55
    u32: _ld_55
    u64: _ld_55
    u8: _ld_55
    v2: _ld_56
    v4: _ld_56

class _ld_44(_Step):
    b128: _ld_41
    b16: _ld_41
    b32: _ld_41
    b64: _ld_41
    b8: _ld_41
    f32: _ld_41
    f64: _ld_41
    s16: _ld_41
    s32: _ld_41
    s64: _ld_41
    s8: _ld_41
    u16: _ld_41
    u32: _ld_41
    u64: _ld_41
    u8: _ld_41

class _ld_45(_Step):
    L2__128B: _ld_57
    L2__256B: _ld_57
    L2__64B: _ld_57
    L2__cache_hint: _ld_58
    b128: _ld_59
    b16: _ld_59
    b32: _ld_59
    b64: _ld_59
    b8: _ld_59
    f32: _ld_59
    f64: _ld_59
    s16: _ld_59
    s32: _ld_59
    s64: _ld_59
    s8: _ld_59
    u16: _ld_59
    u32: _ld_59
    u64: _ld_59
    u8: _ld_59
    v2: _ld_60
    v4: _ld_60
    v8: _ld_60

class _ld_46(_Step):
    L2__128B: _ld_61
    L2__256B: _ld_61
    L2__64B: _ld_61
    L2__cache_hint: _ld_62
    L2__evict_first: _ld_49
    L2__evict_last: _ld_49
    L2__evict_normal: _ld_49
    b128: _ld_63
    b16: _ld_63
    b32: _ld_63
    b64: _ld_63
    b8: _ld_63
    f32: _ld_63
    f64: _ld_63
    s16: _ld_63
    s32: _ld_63
    s64: _ld_63
    s8: _ld_63
    u16: _ld_63
    u32: _ld_63
    u64: _ld_63
    u8: _ld_63
    v2: _ld_64
    v4: _ld_64
    v8: _ld_64

class _ld_47(_Step):
    b128: _ld_50
    b16: _ld_50
    b32: _ld_50
    b64: _ld_50
    b8: _ld_50
    f32: _ld_50
    f64: _ld_50
    s16: _ld_50
    s32: _ld_50
    s64: _ld_50
    s8: _ld_50
    u16: _ld_50
    u32: _ld_50
    u64: _ld_50
    u8: _ld_50
    v2: _ld_51
    v4: _ld_51
    v8: _ld_51

class _ld_48(_Step):
    L2__128B: _ld_47
    L2__256B: _ld_47
    L2__64B: _ld_47
    b128: _ld_50
    b16: _ld_50
    b32: _ld_50
    b64: _ld_50
    b8: _ld_50
    f32: _ld_50
    f64: _ld_50
    s16: _ld_50
    s32: _ld_50
    s64: _ld_50
    s8: _ld_50
    u16: _ld_50
    u32: _ld_50
    u64: _ld_50
    u8: _ld_50
    v2: _ld_51
    v4: _ld_51
    v8: _ld_51

class _ld_49(_Step):
    L2__128B: _ld_61
    L2__256B: _ld_61
    L2__64B: _ld_61
    L2__cache_hint: _ld_62
    b128: _ld_63
    b16: _ld_63
    b32: _ld_63
    b64: _ld_63
    b8: _ld_63
    f32: _ld_63
    f64: _ld_63
    s16: _ld_63
    s32: _ld_63
    s64: _ld_63
    s8: _ld_63
    u16: _ld_63
    u32: _ld_63
    u64: _ld_63
    u8: _ld_63
    v2: _ld_64
    v4: _ld_64
    v8: _ld_64

class _ld_50(_Step):
    def __call__(self, a: Any, policy: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = what lies at a, read through the non-coherent cache. ``ld {d, ..}, [a]{, policy}``, from PTX 6.3 sm_75."""

class _ld_51(_Step):
    b128: _ld_50
    b16: _ld_50
    b32: _ld_50
    b64: _ld_50
    b8: _ld_50
    f32: _ld_50
    f64: _ld_50
    s16: _ld_50
    s32: _ld_50
    s64: _ld_50
    s8: _ld_50
    u16: _ld_50
    u32: _ld_50
    u64: _ld_50
    u8: _ld_50

class _ld_52(_Step):
    b128: _ld_65
    b16: _ld_65
    b32: _ld_65
    b64: _ld_65
    b8: _ld_65
    f32: _ld_65
    f64: _ld_65
    global_: _ld_66
    s16: _ld_65
    s32: _ld_65
    s64: _ld_65
    s8: _ld_65
    u16: _ld_65
    u32: _ld_65
    u64: _ld_65
    u8: _ld_65

class _ld_53(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = what lies at a, not to be left out, merged or moved. ``ld {d, ..}, [a]``, from PTX 6.3 sm_75."""

class _ld_54(_Step):
    b128: _ld_53
    b16: _ld_53
    b32: _ld_53
    b64: _ld_53
    b8: _ld_53
    f32: _ld_53
    f64: _ld_53
    s16: _ld_53
    s32: _ld_53
    s64: _ld_53
    s8: _ld_53
    u16: _ld_53
    u32: _ld_53
    u64: _ld_53
    u8: _ld_53

class _ld_55(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = what lies at a, in the order of the memory model. ``ld {d, ..}, [a]``, from PTX 6.3 sm_75."""

class _ld_56(_Step):
    b128: _ld_55
    b16: _ld_55
    b32: _ld_55
    b64: _ld_55
    b8: _ld_55
    f32: _ld_55
    f64: _ld_55
    s16: _ld_55
    s32: _ld_55
    s64: _ld_55
    s8: _ld_55
    u16: _ld_55
    u32: _ld_55
    u64: _ld_55
    u8: _ld_55

class _ld_57(_Step):
    b128: _ld_59
    b16: _ld_59
    b32: _ld_59
    b64: _ld_59
    b8: _ld_59
    f32: _ld_59
    f64: _ld_59
    s16: _ld_59
    s32: _ld_59
    s64: _ld_59
    s8: _ld_59
    u16: _ld_59
    u32: _ld_59
    u64: _ld_59
    u8: _ld_59
    v2: _ld_60
    v4: _ld_60
    v8: _ld_60

class _ld_58(_Step):
    L2__128B: _ld_57
    L2__256B: _ld_57
    L2__64B: _ld_57
    b128: _ld_59
    b16: _ld_59
    b32: _ld_59
    b64: _ld_59
    b8: _ld_59
    f32: _ld_59
    f64: _ld_59
    s16: _ld_59
    s32: _ld_59
    s64: _ld_59
    s8: _ld_59
    u16: _ld_59
    u32: _ld_59
    u64: _ld_59
    u8: _ld_59
    v2: _ld_60
    v4: _ld_60
    v8: _ld_60

class _ld_59(_Step):
    def __call__(self, a: Any, policy: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = what lies at a, read through the non-coherent cache. ``ld {d, ..}, [a]{, policy}``, from PTX 6.3 sm_75."""

class _ld_60(_Step):
    b128: _ld_59
    b16: _ld_59
    b32: _ld_59
    b64: _ld_59
    b8: _ld_59
    f32: _ld_59
    f64: _ld_59
    s16: _ld_59
    s32: _ld_59
    s64: _ld_59
    s8: _ld_59
    u16: _ld_59
    u32: _ld_59
    u64: _ld_59
    u8: _ld_59

class _ld_61(_Step):
    b128: _ld_63
    b16: _ld_63
    b32: _ld_63
    b64: _ld_63
    b8: _ld_63
    f32: _ld_63
    f64: _ld_63
    s16: _ld_63
    s32: _ld_63
    s64: _ld_63
    s8: _ld_63
    u16: _ld_63
    u32: _ld_63
    u64: _ld_63
    u8: _ld_63
    v2: _ld_64
    v4: _ld_64
    v8: _ld_64

class _ld_62(_Step):
    L2__128B: _ld_61
    L2__256B: _ld_61
    L2__64B: _ld_61
    b128: _ld_63
    b16: _ld_63
    b32: _ld_63
    b64: _ld_63
    b8: _ld_63
    f32: _ld_63
    f64: _ld_63
    s16: _ld_63
    s32: _ld_63
    s64: _ld_63
    s8: _ld_63
    u16: _ld_63
    u32: _ld_63
    u64: _ld_63
    u8: _ld_63
    v2: _ld_64
    v4: _ld_64
    v8: _ld_64

class _ld_63(_Step):
    def __call__(self, a: Any, policy: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = what lies at a, read through the non-coherent cache. ``ld {d, ..}, [a]{, policy}``, from PTX 6.3 sm_75."""

class _ld_64(_Step):
    b128: _ld_63
    b16: _ld_63
    b32: _ld_63
    b64: _ld_63
    b8: _ld_63
    f32: _ld_63
    f64: _ld_63
    s16: _ld_63
    s32: _ld_63
    s64: _ld_63
    s8: _ld_63
    u16: _ld_63
    u32: _ld_63
    u64: _ld_63
    u8: _ld_63

class _ld_65(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = what lies at a, for memory-mapped devices: exactly one access. ``ld d, [a]``, from PTX 8.2 sm_75."""

class _ld_66(_Step):
    b128: _ld_65
    b16: _ld_65
    b32: _ld_65
    b64: _ld_65
    b8: _ld_65
    f32: _ld_65
    f64: _ld_65
    s16: _ld_65
    s32: _ld_65
    s64: _ld_65
    s8: _ld_65
    u16: _ld_65
    u32: _ld_65
    u64: _ld_65
    u8: _ld_65

class _ldmatrix(_Step):
    sync: _ldmatrix_1

class _ldmatrix_1(_Step):
    aligned: _ldmatrix_2

class _ldmatrix_2(_Step):
    m16n16: _ldmatrix_3
    m8n16: _ldmatrix_4
    m8n8: _ldmatrix_5

class _ldmatrix_3(_Step):
    x1: _ldmatrix_6
    x2: _ldmatrix_6

class _ldmatrix_4(_Step):
    x1: _ldmatrix_7
    x2: _ldmatrix_7
    x4: _ldmatrix_7

class _ldmatrix_5(_Step):
    x1: _ldmatrix_8
    x2: _ldmatrix_8
    x4: _ldmatrix_8

class _ldmatrix_6(_Step):
    trans: _ldmatrix_9

class _ldmatrix_7(_Step):
    b8x16: _ldmatrix_10
    s8: _ldmatrix_11
    shared: _ldmatrix_12
    shared__cta: _ldmatrix_12

class _ldmatrix_8(_Step):
    b16: _ldmatrix_13
    shared: _ldmatrix_14
    shared__cta: _ldmatrix_14
    trans: _ldmatrix_15

class _ldmatrix_9(_Step):
    b8: _ldmatrix_16
    b8x16: _ldmatrix_17
    shared: _ldmatrix_18
    shared__cta: _ldmatrix_18

class _ldmatrix_10(_Step):
    b4x16_p64: _ldmatrix_19
    b6x16_p32: _ldmatrix_19

class _ldmatrix_11(_Step):
    s4: _ldmatrix_20

class _ldmatrix_12(_Step):
    b8x16: _ldmatrix_10
    s8: _ldmatrix_11

class _ldmatrix_13(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """1, 2 or 4 matrices of 8x8 halves, whose rows the lanes' addresses name. ``ldmatrix {d, ..}, [a]``, from PTX 6.5 sm_75."""

class _ldmatrix_14(_Step):
    b16: _ldmatrix_13

class _ldmatrix_15(_Step):
    b16: _ldmatrix_13
    shared: _ldmatrix_14
    shared__cta: _ldmatrix_14

class _ldmatrix_16(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """1 or 2 transposed matrices of 16x16 bytes. ``ldmatrix {d, ..}, [a]``, from PTX 8.8 sm_100f."""

class _ldmatrix_17(_Step):
    b4x16_p64: _ldmatrix_21
    b6x16_p32: _ldmatrix_21

class _ldmatrix_18(_Step):
    b8: _ldmatrix_16
    b8x16: _ldmatrix_17

class _ldmatrix_19(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """1, 2 or 4 matrices of 8x16 packed 6- or 4-bit values, a byte each. ``ldmatrix {d, ..}, [a]``, from PTX 8.8 sm_100f."""

class _ldmatrix_20(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """1, 2 or 4 matrices of 8x16 signed 4-bit values, a byte each. ``ldmatrix {d, ..}, [a]``, from PTX 9.4 sm_90a."""

class _ldmatrix_21(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """1 or 2 transposed matrices of 16x16 packed 6- or 4-bit values, a byte each. ``ldmatrix {d, ..}, [a]``, from PTX 8.8 sm_100f."""

class _ldu(_Step):
    b128: _ldu_1
    b16: _ldu_1
    b32: _ldu_1
    b64: _ldu_1
    b8: _ldu_1
    f32: _ldu_1
    f64: _ldu_1
    global_: _ldu_2
    s16: _ldu_1
    s32: _ldu_1
    s64: _ldu_1
    s8: _ldu_1
    u16: _ldu_1
    u32: _ldu_1
    u64: _ldu_1
    u8: _ldu_1
    v2: _ldu_3
    v4: _ldu_3

class _ldu_1(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = what lies at a, the same address for all lanes of the warp. ``ldu {d, ..}, [a]``, from PTX 6.3 sm_75."""

class _ldu_2(_Step):
    b128: _ldu_1
    b16: _ldu_1
    b32: _ldu_1
    b64: _ldu_1
    b8: _ldu_1
    f32: _ldu_1
    f64: _ldu_1
    s16: _ldu_1
    s32: _ldu_1
    s64: _ldu_1
    s8: _ldu_1
    u16: _ldu_1
    u32: _ldu_1
    u64: _ldu_1
    u8: _ldu_1
    v2: _ldu_3
    v4: _ldu_3

class _ldu_3(_Step):
    b128: _ldu_1
    b16: _ldu_1
    b32: _ldu_1
    b64: _ldu_1
    b8: _ldu_1
    f32: _ldu_1
    f64: _ldu_1
    s16: _ldu_1
    s32: _ldu_1
    s64: _ldu_1
    s8: _ldu_1
    u16: _ldu_1
    u32: _ldu_1
    u64: _ldu_1
    u8: _ldu_1

class _lg2(_Step):
    approx: _lg2_1

class _lg2_1(_Step):
    f32: _lg2_2
    ftz: _lg2_3

class _lg2_2(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The logarithm to base 2 of a. ``lg2 d, a``, from PTX 6.3 sm_75."""

class _lg2_3(_Step):
    f32: _lg2_2

class _lop3(_Step):
    and_: _lop3_1
    b32: _lop3_2
    or_: _lop3_1

class _lop3_1(_Step):
    b32: _lop3_3

class _lop3_2(_Step):
    def __call__(self, a: Any, b: Any, c: Any, immLut: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The function of three bits whose table of values is immLut: f(0xF0, 0xCC, 0xAA). ``lop3 d, a, b, c, immLut``, from PTX 6.3 sm_75."""

class _lop3_3(_Step):
    def __call__(self, a: Any, b: Any, c: Any, immLut: Any, q: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """As lop3; p is (d != 0) combined with q. ``lop3 d|p, a, b, c, immLut, {!}q``, from PTX 8.2 sm_75."""

class _mad(_Step):
    hi: _mad_1
    lo: _mad_2
    rm: _mad_3
    rn: _mad_3
    rp: _mad_3
    rz: _mad_3
    wide: _mad_4

class _mad_1(_Step):
    cc: _mad_5
    s16: _mad_6
    s32: _mad_6
    s64: _mad_6
    sat: _mad_7
    u16: _mad_6
    u32: _mad_6
    u64: _mad_6

class _mad_2(_Step):
    cc: _mad_5
    s16: _mad_6
    s32: _mad_6
    s64: _mad_6
    u16: _mad_6
    u32: _mad_6
    u64: _mad_6

class _mad_3(_Step):
    f32: _mad_8
    f64: _mad_9
    ftz: _mad_10
    sat: _mad_11

class _mad_4(_Step):
    s16: _mad_12
    s32: _mad_12
    u16: _mad_12
    u32: _mad_12

class _mad_5(_Step):
    s32: _mad_13
    s64: _mad_13
    u32: _mad_13
    u64: _mad_13

class _mad_6(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The lower or upper half of a * b, plus c. ``mad d, a, b, c``, from PTX 6.3 sm_75."""

class _mad_7(_Step):
    s32: _mad_14

class _mad_8(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a * b + c, rounded once. ``mad d, a, b, c``, from PTX 6.3 sm_75."""

class _mad_9(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a * b + c, rounded once. ``mad d, a, b, c``, from PTX 6.3 sm_75."""

class _mad_10(_Step):
    f32: _mad_8
    sat: _mad_11

class _mad_11(_Step):
    f32: _mad_8

class _mad_12(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a * b + c, product and sum in twice the width. ``mad d, a, b, c``, from PTX 6.3 sm_75."""

class _mad_13(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """A half of a * b, plus c; the carry goes to CC. ``mad d, a, b, c``, from PTX 6.3 sm_75."""

class _mad_14(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The upper half of a * b, plus c, clamped. ``mad d, a, b, c``, from PTX 6.3 sm_75."""

class _mad24(_Step):
    hi: _mad24_1
    lo: _mad24_2

class _mad24_1(_Step):
    s32: _mad24_3
    sat: _mad24_4
    u32: _mad24_3

class _mad24_2(_Step):
    s32: _mad24_3
    u32: _mad24_3

class _mad24_3(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The lower or upper 32 of the 48 bits of the product of 24-bit values, plus c. ``mad24 d, a, b, c``, from PTX 6.3 sm_75."""

class _mad24_4(_Step):
    s32: _mad24_5

class _mad24_5(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The upper 32 of the 48 bits of the product of 24-bit values, plus c, clamped. ``mad24 d, a, b, c``, from PTX 6.3 sm_75."""

class _madc(_Step):
    hi: _madc_1
    lo: _madc_1

class _madc_1(_Step):
    cc: _madc_2
    s32: _madc_3
    s64: _madc_3
    u32: _madc_3
    u64: _madc_3

class _madc_2(_Step):
    s32: _madc_3
    s64: _madc_3
    u32: _madc_3
    u64: _madc_3

class _madc_3(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """A half of a * b, plus c and carry. ``madc d, a, b, c``, from PTX 6.3 sm_75."""

class _mapa(_Step):
    shared__cluster: _mapa_1
    u32: _mapa_2
    u64: _mapa_2

class _mapa_1(_Step):
    u32: _mapa_2
    u64: _mapa_2

class _mapa_2(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The address, in block b of the cluster, that corresponds to a. ``mapa d, a, b``, from PTX 7.8 sm_90."""

class _match(_Step):
    all: _match_1
    any: _match_2

class _match_1(_Step):
    sync: _match_3

class _match_2(_Step):
    sync: _match_4

class _match_3(_Step):
    b32: _match_5
    b64: _match_5

class _match_4(_Step):
    b32: _match_6
    b64: _match_6

class _match_5(_Step):
    def __call__(self, a: Any, membermask: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """membermask if all its lanes have the same a, else 0; p: whether so. ``match d{|p}, a, membermask``, from PTX 6.3 sm_75."""

class _match_6(_Step):
    def __call__(self, a: Any, membermask: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The mask of the lanes that have the same a. ``match d, a, membermask``, from PTX 6.3 sm_75."""

class _max(_Step):
    NaN: _max_1
    abs: _max_2
    bf16: _max_3
    bf16x2: _max_3
    f16: _max_4
    f16x2: _max_4
    f32: _max_5
    f64: _max_6
    ftz: _max_7
    relu: _max_8
    s16: _max_9
    s16x2: _max_9
    s32: _max_9
    s64: _max_9
    s8x4: _max_9
    u16: _max_9
    u16x2: _max_9
    u32: _max_9
    u64: _max_9
    u8x4: _max_9
    xorsign: _max_10

class _max_1(_Step):
    abs: _max_2
    bf16: _max_3
    bf16x2: _max_3
    f16: _max_4
    f16x2: _max_4
    f32: _max_5
    xorsign: _max_10

class _max_2(_Step):
    f32: _max_11

class _max_3(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The greater of a and b; the other one if one is NaN, unless .NaN. ``max d, a, b``, from PTX 7.0 sm_80."""

class _max_4(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The greater of a and b; the other one if one is NaN, unless .NaN. ``max d, a, b``, from PTX 7.0 sm_80."""

class _max_5(_Step):
    def __call__(self, a: Any, b: Any, c: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The greater of a and b; the other one if one is NaN, unless .NaN. ``max d, a, b``, from PTX 6.3 sm_75.
        The greatest of a, b and c. ``max d, a, b, c``, from PTX 8.8 sm_100."""

class _max_6(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The greater of a and b; the other one if one is NaN. ``max d, a, b``, from PTX 6.3 sm_75."""

class _max_7(_Step):
    NaN: _max_12
    abs: _max_2
    f16: _max_4
    f16x2: _max_4
    f32: _max_5
    xorsign: _max_13

class _max_8(_Step):
    s16x2: _max_14
    s32: _max_14
    s8x4: _max_14

class _max_9(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The greater of a and b. ``max d, a, b``, from PTX 6.3 sm_75."""

class _max_10(_Step):
    abs: _max_15

class _max_11(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The greatest of a, b and c. ``max d, a, b, c``, from PTX 8.8 sm_100."""

class _max_12(_Step):
    abs: _max_2
    f16: _max_4
    f16x2: _max_4
    f32: _max_5
    xorsign: _max_13

class _max_13(_Step):
    abs: _max_16

class _max_14(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The greater of a and b, 0 if negative. ``max d, a, b``, from PTX 8.0 sm_90."""

class _max_15(_Step):
    bf16: _max_3
    bf16x2: _max_3
    f16: _max_4
    f16x2: _max_4
    f32: _max_17

class _max_16(_Step):
    f16: _max_4
    f16x2: _max_4
    f32: _max_17

class _max_17(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The greater of a and b; the other one if one is NaN, unless .NaN. ``max d, a, b``, from PTX 6.3 sm_75."""

class _mbarrier(_Step):
    arrive: _mbarrier_1
    arrive_drop: _mbarrier_2
    check_layout: _mbarrier_3
    complete_tx: _mbarrier_4
    expect_tx: _mbarrier_5
    init: _mbarrier_6
    inval: _mbarrier_7
    pending_count: _mbarrier_8
    test_wait: _mbarrier_9
    try_wait: _mbarrier_10

class _mbarrier_1(_Step):
    b64: _mbarrier_11
    expect_tx: _mbarrier_12
    noComplete: _mbarrier_13
    relaxed: _mbarrier_14
    release: _mbarrier_14
    shared: _mbarrier_15
    shared__cluster: _mbarrier_16
    shared__cta: _mbarrier_15

class _mbarrier_2(_Step):
    b64: _mbarrier_17
    expect_tx: _mbarrier_18
    noComplete: _mbarrier_19
    relaxed: _mbarrier_20
    release: _mbarrier_20
    shared: _mbarrier_21
    shared__cluster: _mbarrier_22
    shared__cta: _mbarrier_21

class _mbarrier_3(_Step):
    layout__v0: _mbarrier_23
    layout__v1: _mbarrier_23

class _mbarrier_4(_Step):
    b64: _mbarrier_24
    relaxed: _mbarrier_25
    shared: _mbarrier_26
    shared__cluster: _mbarrier_27
    shared__cta: _mbarrier_26

class _mbarrier_5(_Step):
    b64: _mbarrier_28
    relaxed: _mbarrier_29
    shared: _mbarrier_30
    shared__cluster: _mbarrier_31
    shared__cta: _mbarrier_30

class _mbarrier_6(_Step):
    b64: _mbarrier_32
    layout__v0: _mbarrier_33
    layout__v1: _mbarrier_33
    shared: _mbarrier_34
    shared__cta: _mbarrier_34

class _mbarrier_7(_Step):
    b64: _mbarrier_35
    shared: _mbarrier_36
    shared__cta: _mbarrier_36

class _mbarrier_8(_Step):
    b64: _mbarrier_37
    layout__v0: _mbarrier_38

class _mbarrier_9(_Step):
    acquire: _mbarrier_39
    b64: _mbarrier_40
    parity: _mbarrier_41
    phase_type__primary: _mbarrier_42
    relaxed: _mbarrier_39
    shared: _mbarrier_43
    shared__cta: _mbarrier_43

class _mbarrier_10(_Step):
    acquire: _mbarrier_44
    b64: _mbarrier_45
    parity: _mbarrier_46
    phase_type__primary: _mbarrier_47
    relaxed: _mbarrier_44
    shared: _mbarrier_48
    shared__cta: _mbarrier_48

class _mbarrier_11(_Step):
    def __call__(self, a: Any, count: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Counts one arrival; d is the phase. ``mbarrier d, [a]``, from PTX 7.0 sm_80.
        Counts count arrivals; d is the phase. ``mbarrier d, [a], count``, from PTX 7.8 sm_90."""

class _mbarrier_12(_Step):
    b64: _mbarrier_49
    relaxed: _mbarrier_50
    release: _mbarrier_50
    shared: _mbarrier_51
    shared__cluster: _mbarrier_52
    shared__cta: _mbarrier_51

class _mbarrier_13(_Step):
    b64: _mbarrier_53
    release: _mbarrier_54
    shared: _mbarrier_55
    shared__cta: _mbarrier_55

class _mbarrier_14(_Step):
    cluster: _mbarrier_56
    cta: _mbarrier_56

class _mbarrier_15(_Step):
    b64: _mbarrier_11

class _mbarrier_16(_Step):
    b64: _mbarrier_57
    multicast__cluster__32b: _mbarrier_58

class _mbarrier_17(_Step):
    def __call__(self, a: Any, count: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Counts one arrival and expects one less from the next phase on; d is the phase. ``mbarrier d, [a]``, from PTX 7.0 sm_80.
        Counts count arrivals and expects as many less from the next phase on; d is the phase. ``mbarrier d, [a], count``, from PTX 7.8 sm_90."""

class _mbarrier_18(_Step):
    b64: _mbarrier_59
    relaxed: _mbarrier_60
    release: _mbarrier_60
    shared: _mbarrier_61
    shared__cluster: _mbarrier_62
    shared__cta: _mbarrier_61

class _mbarrier_19(_Step):
    b64: _mbarrier_63
    release: _mbarrier_64
    shared: _mbarrier_65
    shared__cta: _mbarrier_65

class _mbarrier_20(_Step):
    cluster: _mbarrier_66
    cta: _mbarrier_66

class _mbarrier_21(_Step):
    b64: _mbarrier_17

class _mbarrier_22(_Step):
    b64: _mbarrier_67
    multicast__cluster__32b: _mbarrier_58

class _mbarrier_23(_Step):
    b64: _mbarrier_68
    shared: _mbarrier_69
    shared__cta: _mbarrier_69

class _mbarrier_24(_Step):
    def __call__(self, a: Any, bytes: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Counts bytes as arrived. ``mbarrier [a], bytes``, from PTX 8.0 sm_90."""

class _mbarrier_25(_Step):
    cluster: _mbarrier_70
    cta: _mbarrier_70

class _mbarrier_26(_Step):
    b64: _mbarrier_24

class _mbarrier_27(_Step):
    b64: _mbarrier_24
    multicast__cluster__32b: _mbarrier_71

class _mbarrier_28(_Step):
    def __call__(self, a: Any, bytes: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """The current phase also waits for so many bytes. ``mbarrier [a], bytes``, from PTX 8.0 sm_90."""

class _mbarrier_29(_Step):
    cluster: _mbarrier_72
    cta: _mbarrier_72

class _mbarrier_30(_Step):
    b64: _mbarrier_28

class _mbarrier_31(_Step):
    b64: _mbarrier_28
    multicast__cluster__32b: _mbarrier_73

class _mbarrier_32(_Step):
    def __call__(self, a: Any, count: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Makes a an mbarrier that expects count arrivals in each phase. ``mbarrier [a], count``, from PTX 7.0 sm_80."""

class _mbarrier_33(_Step):
    b64: _mbarrier_32

class _mbarrier_34(_Step):
    b64: _mbarrier_32
    layout__v0: _mbarrier_33
    layout__v1: _mbarrier_33

class _mbarrier_35(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Ends the mbarrier at a. ``mbarrier [a]``, from PTX 7.0 sm_80."""

class _mbarrier_36(_Step):
    b64: _mbarrier_35

class _mbarrier_37(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The number of arrivals that the phase a still waits for. ``mbarrier d, a``, from PTX 7.0 sm_80."""

class _mbarrier_38(_Step):
    b64: _mbarrier_37

class _mbarrier_39(_Step):
    cluster: _mbarrier_74
    cta: _mbarrier_74

class _mbarrier_40(_Step):
    def __call__(self, a: Any, state: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Whether the phase of state is complete. ``mbarrier d, [a], state``, from PTX 7.0 sm_80."""

class _mbarrier_41(_Step):
    acquire: _mbarrier_75
    b64: _mbarrier_76
    phase_type__conditional: _mbarrier_77
    phase_type__primary: _mbarrier_78
    relaxed: _mbarrier_75
    shared: _mbarrier_79
    shared__cta: _mbarrier_79

class _mbarrier_42(_Step):
    acquire: _mbarrier_80
    b64: _mbarrier_81
    relaxed: _mbarrier_80
    shared: _mbarrier_82
    shared__cta: _mbarrier_82

class _mbarrier_43(_Step):
    b64: _mbarrier_40

class _mbarrier_44(_Step):
    cluster: _mbarrier_83
    cta: _mbarrier_83

class _mbarrier_45(_Step):
    def __call__(self, a: Any, state: Any, time: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Waits, for at most time nanoseconds, for the phase of state; d: whether it is complete. ``mbarrier d, [a], state{, time}``, from PTX 7.8 sm_90."""

class _mbarrier_46(_Step):
    acquire: _mbarrier_84
    b64: _mbarrier_85
    phase_type__conditional: _mbarrier_86
    phase_type__primary: _mbarrier_87
    relaxed: _mbarrier_84
    shared: _mbarrier_88
    shared__cta: _mbarrier_88

class _mbarrier_47(_Step):
    acquire: _mbarrier_89
    b64: _mbarrier_90
    relaxed: _mbarrier_89
    shared: _mbarrier_91
    shared__cta: _mbarrier_91

class _mbarrier_48(_Step):
    b64: _mbarrier_45

class _mbarrier_49(_Step):
    def __call__(self, a: Any, bytes: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Expects so many bytes and counts one arrival; d is the phase. ``mbarrier d, [a], bytes``, from PTX 8.0 sm_90."""

class _mbarrier_50(_Step):
    cluster: _mbarrier_92
    cta: _mbarrier_92

class _mbarrier_51(_Step):
    b64: _mbarrier_49

class _mbarrier_52(_Step):
    b64: _mbarrier_93
    multicast__cluster__32b: _mbarrier_94

class _mbarrier_53(_Step):
    def __call__(self, a: Any, count: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Counts count arrivals, which must not complete the phase; d is the phase. ``mbarrier d, [a], count``, from PTX 7.0 sm_80."""

class _mbarrier_54(_Step):
    cta: _mbarrier_95

class _mbarrier_55(_Step):
    b64: _mbarrier_53

class _mbarrier_56(_Step):
    b64: _mbarrier_11
    shared: _mbarrier_15
    shared__cluster: _mbarrier_16
    shared__cta: _mbarrier_15

class _mbarrier_57(_Step):
    def __call__(self, a: Any, count: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Counts arrivals at the mbarrier of another block. ``mbarrier _, [a]{, count}``, from PTX 8.0 sm_90."""

class _mbarrier_58(_Step):
    b64: _mbarrier_96

class _mbarrier_59(_Step):
    def __call__(self, a: Any, bytes: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Expects so many bytes, counts one arrival and expects one less from the next phase on; d is the phase. ``mbarrier d, [a], bytes``, from PTX 8.0 sm_90."""

class _mbarrier_60(_Step):
    cluster: _mbarrier_97
    cta: _mbarrier_97

class _mbarrier_61(_Step):
    b64: _mbarrier_59

class _mbarrier_62(_Step):
    b64: _mbarrier_98
    multicast__cluster__32b: _mbarrier_94

class _mbarrier_63(_Step):
    def __call__(self, a: Any, count: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Counts count arrivals, which must not complete the phase, and expects as many less; d is the phase. ``mbarrier d, [a], count``, from PTX 7.0 sm_80."""

class _mbarrier_64(_Step):
    cta: _mbarrier_99

class _mbarrier_65(_Step):
    b64: _mbarrier_63

class _mbarrier_66(_Step):
    b64: _mbarrier_17
    shared: _mbarrier_21
    shared__cluster: _mbarrier_22
    shared__cta: _mbarrier_21

class _mbarrier_67(_Step):
    def __call__(self, a: Any, count: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Counts arrivals at the mbarrier of another block, which expects as many less from the next phase on. ``mbarrier _, [a]{, count}``, from PTX 8.0 sm_90."""

class _mbarrier_68(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Whether the mbarrier at a has the layout. ``mbarrier d, [a]``, from PTX 9.3 sm_90."""

class _mbarrier_69(_Step):
    b64: _mbarrier_68

class _mbarrier_70(_Step):
    b64: _mbarrier_24
    shared: _mbarrier_26
    shared__cluster: _mbarrier_27
    shared__cta: _mbarrier_26

class _mbarrier_71(_Step):
    b64: _mbarrier_100

class _mbarrier_72(_Step):
    b64: _mbarrier_28
    shared: _mbarrier_30
    shared__cluster: _mbarrier_31
    shared__cta: _mbarrier_30

class _mbarrier_73(_Step):
    b64: _mbarrier_101

class _mbarrier_74(_Step):
    b64: _mbarrier_40
    shared: _mbarrier_43
    shared__cta: _mbarrier_43

class _mbarrier_75(_Step):
    cluster: _mbarrier_102
    cta: _mbarrier_102

class _mbarrier_76(_Step):
    def __call__(self, a: Any, phase: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Whether the phase of that parity is complete. ``mbarrier d, [a], phase``, from PTX 7.1 sm_80."""

class _mbarrier_77(_Step):
    acquire: _mbarrier_103
    b64: _mbarrier_104
    relaxed: _mbarrier_103
    shared: _mbarrier_105
    shared__cta: _mbarrier_105

class _mbarrier_78(_Step):
    acquire: _mbarrier_106
    b64: _mbarrier_107
    relaxed: _mbarrier_106
    shared: _mbarrier_108
    shared__cta: _mbarrier_108

class _mbarrier_79(_Step):
    b64: _mbarrier_76

class _mbarrier_80(_Step):
    cluster: _mbarrier_109
    cta: _mbarrier_109

class _mbarrier_81(_Step):
    def __call__(self, a: Any, state: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Whether the phase of state is complete; q: without an error; report: which error. ``mbarrier d{|q}{, report}, [a], state``, from PTX 9.3 sm_90."""

class _mbarrier_82(_Step):
    b64: _mbarrier_81

class _mbarrier_83(_Step):
    b64: _mbarrier_45
    shared: _mbarrier_48
    shared__cta: _mbarrier_48

class _mbarrier_84(_Step):
    cluster: _mbarrier_110
    cta: _mbarrier_110

class _mbarrier_85(_Step):
    def __call__(self, a: Any, phase: Any, time: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Waits, for at most time nanoseconds, for the phase of that parity; d: whether it is complete. ``mbarrier d, [a], phase{, time}``, from PTX 7.8 sm_90."""

class _mbarrier_86(_Step):
    acquire: _mbarrier_111
    b64: _mbarrier_112
    relaxed: _mbarrier_111
    shared: _mbarrier_113
    shared__cta: _mbarrier_113

class _mbarrier_87(_Step):
    acquire: _mbarrier_114
    b64: _mbarrier_115
    relaxed: _mbarrier_114
    shared: _mbarrier_116
    shared__cta: _mbarrier_116

class _mbarrier_88(_Step):
    b64: _mbarrier_85

class _mbarrier_89(_Step):
    cluster: _mbarrier_117
    cta: _mbarrier_117

class _mbarrier_90(_Step):
    def __call__(self, a: Any, state: Any, time: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Waits for the phase of state; d: whether it is complete; q: without an error; report: which error. ``mbarrier d{|q}{, report}, [a], state{, time}``, from PTX 9.3 sm_90."""

class _mbarrier_91(_Step):
    b64: _mbarrier_90

class _mbarrier_92(_Step):
    b64: _mbarrier_49
    shared: _mbarrier_51
    shared__cluster: _mbarrier_52
    shared__cta: _mbarrier_51

class _mbarrier_93(_Step):
    def __call__(self, a: Any, bytes: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Expects so many bytes and counts one arrival, at the mbarrier of another block. ``mbarrier _, [a], bytes``, from PTX 8.0 sm_90."""

class _mbarrier_94(_Step):
    b64: _mbarrier_118

class _mbarrier_95(_Step):
    b64: _mbarrier_53
    shared: _mbarrier_55
    shared__cta: _mbarrier_55

class _mbarrier_96(_Step):
    def __call__(self, a: Any, count: Any, mask: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Counts arrivals at the mbarriers of the blocks of the mask. ``mbarrier _, [a]{, count}, mask``, from PTX 9.4 sm_107f."""

class _mbarrier_97(_Step):
    b64: _mbarrier_59
    shared: _mbarrier_61
    shared__cluster: _mbarrier_62
    shared__cta: _mbarrier_61

class _mbarrier_98(_Step):
    def __call__(self, a: Any, bytes: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """As arrive_drop.expect_tx, at the mbarrier of another block. ``mbarrier _, [a], bytes``, from PTX 8.0 sm_90."""

class _mbarrier_99(_Step):
    b64: _mbarrier_63
    shared: _mbarrier_65
    shared__cta: _mbarrier_65

class _mbarrier_100(_Step):
    def __call__(self, a: Any, bytes: Any, mask: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Counts bytes as arrived at the mbarriers of the blocks of the mask. ``mbarrier [a], bytes, mask``, from PTX 9.4 sm_107f."""

class _mbarrier_101(_Step):
    def __call__(self, a: Any, bytes: Any, mask: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """The current phase of the mbarriers of the blocks of the mask also waits for so many bytes. ``mbarrier [a], bytes, mask``, from PTX 9.4 sm_107f."""

class _mbarrier_102(_Step):
    b64: _mbarrier_76
    shared: _mbarrier_79
    shared__cta: _mbarrier_79

class _mbarrier_103(_Step):
    cluster: _mbarrier_119
    cta: _mbarrier_119

class _mbarrier_104(_Step):
    def __call__(self, a: Any, phase: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Whether the conditional phase of that parity is complete. ``mbarrier d, [a], phase``, from PTX 9.3 sm_90."""

class _mbarrier_105(_Step):
    b64: _mbarrier_104

class _mbarrier_106(_Step):
    cluster: _mbarrier_120
    cta: _mbarrier_120

class _mbarrier_107(_Step):
    def __call__(self, a: Any, phase: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Whether the phase of that parity is complete; q: without an error; report: which error. ``mbarrier d{|q}{, report}, [a], phase``, from PTX 9.3 sm_90."""

class _mbarrier_108(_Step):
    b64: _mbarrier_107

class _mbarrier_109(_Step):
    b64: _mbarrier_81
    shared: _mbarrier_82
    shared__cta: _mbarrier_82

class _mbarrier_110(_Step):
    b64: _mbarrier_85
    shared: _mbarrier_88
    shared__cta: _mbarrier_88

class _mbarrier_111(_Step):
    cluster: _mbarrier_121
    cta: _mbarrier_121

class _mbarrier_112(_Step):
    def __call__(self, a: Any, phase: Any, time: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Waits for the conditional phase of that parity; d: whether it is complete. ``mbarrier d, [a], phase{, time}``, from PTX 9.3 sm_90."""

class _mbarrier_113(_Step):
    b64: _mbarrier_112

class _mbarrier_114(_Step):
    cluster: _mbarrier_122
    cta: _mbarrier_122

class _mbarrier_115(_Step):
    def __call__(self, a: Any, phase: Any, time: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Waits for the phase of that parity; d: whether it is complete; q: without an error; report: which error. ``mbarrier d{|q}{, report}, [a], phase{, time}``, from PTX 9.3 sm_90."""

class _mbarrier_116(_Step):
    b64: _mbarrier_115

class _mbarrier_117(_Step):
    b64: _mbarrier_90
    shared: _mbarrier_91
    shared__cta: _mbarrier_91

class _mbarrier_118(_Step):
    def __call__(self, a: Any, bytes: Any, mask: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Expects so many bytes and counts one arrival at the mbarriers of the blocks of the mask. ``mbarrier _, [a], bytes, mask``, from PTX 9.4 sm_107f."""

class _mbarrier_119(_Step):
    b64: _mbarrier_104
    shared: _mbarrier_105
    shared__cta: _mbarrier_105

class _mbarrier_120(_Step):
    b64: _mbarrier_107
    shared: _mbarrier_108
    shared__cta: _mbarrier_108

class _mbarrier_121(_Step):
    b64: _mbarrier_112
    shared: _mbarrier_113
    shared__cta: _mbarrier_113

class _mbarrier_122(_Step):
    b64: _mbarrier_115
    shared: _mbarrier_116
    shared__cta: _mbarrier_116

class _membar(_Step):
    cta: _membar_1
    gl: _membar_1
    proxy: _membar_2
    sys: _membar_1

class _membar_1(_Step):
    def __call__(self, *, out: Any = None, pred: Any = None) -> None:
        """Orders the memory accesses before it and after it, as seen from the level. ``membar ``, from PTX 6.3 sm_75."""

class _membar_2(_Step):
    alias: _membar_3
    async_: _membar_3

class _membar_3(_Step):
    def __call__(self, *, out: Any = None, pred: Any = None) -> None:
        """Orders accesses through different proxies. ``membar ``, from PTX 7.5 sm_75."""

class _min(_Step):
    NaN: _min_1
    abs: _min_2
    bf16: _min_3
    bf16x2: _min_3
    f16: _min_4
    f16x2: _min_4
    f32: _min_5
    f64: _min_6
    ftz: _min_7
    relu: _min_8
    s16: _min_9
    s16x2: _min_9
    s32: _min_9
    s64: _min_9
    s8x4: _min_9
    u16: _min_9
    u16x2: _min_9
    u32: _min_9
    u64: _min_9
    u8x4: _min_9
    xorsign: _min_10

class _min_1(_Step):
    abs: _min_2
    bf16: _min_3
    bf16x2: _min_3
    f16: _min_4
    f16x2: _min_4
    f32: _min_5
    xorsign: _min_10

class _min_2(_Step):
    f32: _min_11

class _min_3(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The lesser of a and b; the other one if one is NaN, unless .NaN. ``min d, a, b``, from PTX 7.0 sm_80."""

class _min_4(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The lesser of a and b; the other one if one is NaN, unless .NaN. ``min d, a, b``, from PTX 7.0 sm_80."""

class _min_5(_Step):
    def __call__(self, a: Any, b: Any, c: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The lesser of a and b; the other one if one is NaN, unless .NaN. ``min d, a, b``, from PTX 6.3 sm_75.
        The least of a, b and c. ``min d, a, b, c``, from PTX 8.8 sm_100."""

class _min_6(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The lesser of a and b; the other one if one is NaN. ``min d, a, b``, from PTX 6.3 sm_75."""

class _min_7(_Step):
    NaN: _min_12
    abs: _min_2
    f16: _min_4
    f16x2: _min_4
    f32: _min_5
    xorsign: _min_13

class _min_8(_Step):
    s16x2: _min_14
    s32: _min_14
    s8x4: _min_14

class _min_9(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The lesser of a and b. ``min d, a, b``, from PTX 6.3 sm_75."""

class _min_10(_Step):
    abs: _min_15

class _min_11(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The least of a, b and c. ``min d, a, b, c``, from PTX 8.8 sm_100."""

class _min_12(_Step):
    abs: _min_2
    f16: _min_4
    f16x2: _min_4
    f32: _min_5
    xorsign: _min_13

class _min_13(_Step):
    abs: _min_16

class _min_14(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The lesser of a and b, 0 if negative. ``min d, a, b``, from PTX 8.0 sm_90."""

class _min_15(_Step):
    bf16: _min_3
    bf16x2: _min_3
    f16: _min_4
    f16x2: _min_4
    f32: _min_17

class _min_16(_Step):
    f16: _min_4
    f16x2: _min_4
    f32: _min_17

class _min_17(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The lesser of a and b; the other one if one is NaN, unless .NaN. ``min d, a, b``, from PTX 6.3 sm_75."""

class _mma(_Step):
    sp: _mma_1
    sp__ordered_metadata: _mma_2
    sync: _mma_3

class _mma_1(_Step):
    sync: _mma_4

class _mma_2(_Step):
    sync: _mma_5

class _mma_3(_Step):
    aligned: _mma_6

class _mma_4(_Step):
    aligned: _mma_7

class _mma_5(_Step):
    aligned: _mma_8

class _mma_6(_Step):
    m16n8k128: _mma_9
    m16n8k16: _mma_10
    m16n8k256: _mma_9
    m16n8k32: _mma_11
    m16n8k4: _mma_12
    m16n8k64: _mma_13
    m16n8k8: _mma_14
    m8n8k128: _mma_9
    m8n8k16: _mma_15
    m8n8k32: _mma_16
    m8n8k4: _mma_17

class _mma_7(_Step):
    m16n8k128: _mma_18
    m16n8k16: _mma_19
    m16n8k32: _mma_20
    m16n8k64: _mma_21
    m16n8k8: _mma_22

class _mma_8(_Step):
    m16n8k128: _mma_23
    m16n8k16: _mma_19
    m16n8k32: _mma_20
    m16n8k64: _mma_24
    m16n8k8: _mma_22

class _mma_9(_Step):
    row: _mma_25

class _mma_10(_Step):
    row: _mma_26

class _mma_11(_Step):
    row: _mma_27

class _mma_12(_Step):
    row: _mma_28

class _mma_13(_Step):
    row: _mma_29

class _mma_14(_Step):
    row: _mma_30

class _mma_15(_Step):
    row: _mma_31

class _mma_16(_Step):
    row: _mma_32

class _mma_17(_Step):
    col: _mma_33
    row: _mma_34

class _mma_18(_Step):
    row: _mma_35

class _mma_19(_Step):
    row: _mma_36

class _mma_20(_Step):
    row: _mma_37

class _mma_21(_Step):
    row: _mma_38

class _mma_22(_Step):
    row: _mma_39

class _mma_23(_Step):
    row: _mma_40

class _mma_24(_Step):
    row: _mma_41

class _mma_25(_Step):
    col: _mma_42

class _mma_26(_Step):
    col: _mma_43

class _mma_27(_Step):
    col: _mma_44

class _mma_28(_Step):
    col: _mma_45

class _mma_29(_Step):
    col: _mma_46

class _mma_30(_Step):
    col: _mma_47

class _mma_31(_Step):
    col: _mma_48

class _mma_32(_Step):
    col: _mma_49

class _mma_33(_Step):
    col: _mma_50
    row: _mma_50

class _mma_34(_Step):
    col: _mma_51
    row: _mma_50

class _mma_35(_Step):
    col: _mma_52

class _mma_36(_Step):
    col: _mma_53

class _mma_37(_Step):
    col: _mma_54

class _mma_38(_Step):
    col: _mma_55

class _mma_39(_Step):
    col: _mma_56

class _mma_40(_Step):
    col: _mma_57

class _mma_41(_Step):
    col: _mma_58

class _mma_42(_Step):
    s32: _mma_59

class _mma_43(_Step):
    f16: _mma_60
    f32: _mma_61
    f64: _mma_62
    rm: _mma_63
    rn: _mma_63
    rp: _mma_63
    rz: _mma_63
    s32: _mma_64
    satfinite: _mma_65

class _mma_44(_Step):
    f16: _mma_66
    f32: _mma_66
    kind__f8f6f4: _mma_67
    kind__mxf8f6f4: _mma_68
    s32: _mma_69
    satfinite: _mma_70

class _mma_45(_Step):
    f32: _mma_71
    f64: _mma_62
    rm: _mma_63
    rn: _mma_63
    rp: _mma_63
    rz: _mma_63

class _mma_46(_Step):
    kind__mxf4: _mma_72
    kind__mxf4nvf4: _mma_73
    s32: _mma_74
    satfinite: _mma_75

class _mma_47(_Step):
    f16: _mma_76
    f32: _mma_77
    f64: _mma_62
    rm: _mma_63
    rn: _mma_63
    rp: _mma_63
    rz: _mma_63

class _mma_48(_Step):
    s32: _mma_64
    satfinite: _mma_65

class _mma_49(_Step):
    s32: _mma_74
    satfinite: _mma_75

class _mma_50(_Step):
    f16: _mma_78
    f32: _mma_78

class _mma_51(_Step):
    f16: _mma_78
    f32: _mma_78
    f64: _mma_62
    rm: _mma_63
    rn: _mma_63
    rp: _mma_63
    rz: _mma_63

class _mma_52(_Step):
    s32: _mma_79
    satfinite: _mma_80

class _mma_53(_Step):
    f16: _mma_81
    f32: _mma_82

class _mma_54(_Step):
    f16: _mma_81
    f32: _mma_82
    s32: _mma_83
    satfinite: _mma_84

class _mma_55(_Step):
    f32: _mma_85
    s32: _mma_86
    satfinite: _mma_87

class _mma_56(_Step):
    f32: _mma_88

class _mma_57(_Step):
    kind__mxf4: _mma_89
    kind__mxf4nvf4: _mma_90
    s32: _mma_79
    satfinite: _mma_80

class _mma_58(_Step):
    f16: _mma_91
    f32: _mma_85
    kind__f8f6f4: _mma_92
    kind__mxf8f6f4: _mma_93
    s32: _mma_86
    satfinite: _mma_87

class _mma_59(_Step):
    b1: _mma_94

class _mma_60(_Step):
    e4m3: _mma_95
    e5m2: _mma_95
    f16: _mma_96

class _mma_61(_Step):
    bf16: _mma_97
    e4m3: _mma_95
    e5m2: _mma_95
    f16: _mma_96
    tf32: _mma_97

class _mma_62(_Step):
    f64: _mma_98

class _mma_63(_Step):
    f64: _mma_62

class _mma_64(_Step):
    s8: _mma_99
    u8: _mma_99

class _mma_65(_Step):
    s32: _mma_64

class _mma_66(_Step):
    e4m3: _mma_95
    e5m2: _mma_95

class _mma_67(_Step):
    f16: _mma_100
    f32: _mma_100

class _mma_68(_Step):
    block_scale: _mma_101

class _mma_69(_Step):
    s4: _mma_102
    s8: _mma_99
    u4: _mma_102
    u8: _mma_99

class _mma_70(_Step):
    s32: _mma_69

class _mma_71(_Step):
    bf16: _mma_97
    tf32: _mma_97

class _mma_72(_Step):
    block_scale: _mma_103

class _mma_73(_Step):
    block_scale: _mma_104

class _mma_74(_Step):
    s4: _mma_102
    u4: _mma_102

class _mma_75(_Step):
    s32: _mma_74

class _mma_76(_Step):
    f16: _mma_96

class _mma_77(_Step):
    bf16: _mma_97
    f16: _mma_96
    tf32: _mma_97

class _mma_78(_Step):
    f16: _mma_105

class _mma_79(_Step):
    s4: _mma_106
    u4: _mma_106

class _mma_80(_Step):
    s32: _mma_79

class _mma_81(_Step):
    f16: _mma_107

class _mma_82(_Step):
    bf16: _mma_108
    f16: _mma_107
    tf32: _mma_108

class _mma_83(_Step):
    s8: _mma_109
    u8: _mma_109

class _mma_84(_Step):
    s32: _mma_83

class _mma_85(_Step):
    e4m3: _mma_110
    e5m2: _mma_110

class _mma_86(_Step):
    s4: _mma_106
    s8: _mma_109
    u4: _mma_106
    u8: _mma_109

class _mma_87(_Step):
    s32: _mma_86

class _mma_88(_Step):
    bf16: _mma_108
    tf32: _mma_108

class _mma_89(_Step):
    block_scale: _mma_111

class _mma_90(_Step):
    block_scale: _mma_112

class _mma_91(_Step):
    e2m1: _mma_113
    e2m3: _mma_113
    e3m2: _mma_113
    e4m3: _mma_113
    e5m2: _mma_113

class _mma_92(_Step):
    f16: _mma_91
    f32: _mma_114

class _mma_93(_Step):
    block_scale: _mma_115

class _mma_94(_Step):
    b1: _mma_116

class _mma_95(_Step):
    e4m3: _mma_117
    e5m2: _mma_117

class _mma_96(_Step):
    f16: _mma_118

class _mma_97(_Step):
    bf16: _mma_119
    tf32: _mma_119

class _mma_98(_Step):
    f64: _mma_120

class _mma_99(_Step):
    s8: _mma_121
    u8: _mma_121

class _mma_100(_Step):
    e2m1: _mma_122
    e2m3: _mma_122
    e3m2: _mma_122
    e4m3: _mma_122
    e5m2: _mma_122

class _mma_101(_Step):
    f32: _mma_123
    scale_vec__1X: _mma_124

class _mma_102(_Step):
    s4: _mma_125
    u4: _mma_125

class _mma_103(_Step):
    f32: _mma_126
    scale_vec__2X: _mma_127

class _mma_104(_Step):
    scale_vec__2X: _mma_128
    scale_vec__4X: _mma_128

class _mma_105(_Step):
    f16: _mma_129

class _mma_106(_Step):
    s4: _mma_130
    u4: _mma_130

class _mma_107(_Step):
    f16: _mma_131

class _mma_108(_Step):
    bf16: _mma_132
    tf32: _mma_132

class _mma_109(_Step):
    s8: _mma_133
    u8: _mma_133

class _mma_110(_Step):
    e4m3: _mma_134
    e5m2: _mma_134

class _mma_111(_Step):
    f32: _mma_135
    scale_vec__2X: _mma_136

class _mma_112(_Step):
    scale_vec__2X: _mma_137
    scale_vec__4X: _mma_137

class _mma_113(_Step):
    e2m1: _mma_138
    e2m3: _mma_138
    e3m2: _mma_138
    e4m3: _mma_138
    e5m2: _mma_138

class _mma_114(_Step):
    e2m1: _mma_139
    e2m3: _mma_139
    e3m2: _mma_139
    e4m3: _mma_139
    e5m2: _mma_139

class _mma_115(_Step):
    f32: _mma_140
    scale_vec__1X: _mma_141

class _mma_116(_Step):
    s32: _mma_142

class _mma_117(_Step):
    f16: _mma_143
    f32: _mma_143

class _mma_118(_Step):
    f16: _mma_144
    f32: _mma_144

class _mma_119(_Step):
    f32: _mma_145

class _mma_120(_Step):
    f64: _mma_146

class _mma_121(_Step):
    s32: _mma_147

class _mma_122(_Step):
    e2m1: _mma_148
    e2m3: _mma_148
    e3m2: _mma_148
    e4m3: _mma_148
    e5m2: _mma_148

class _mma_123(_Step):
    e2m1: _mma_149
    e2m3: _mma_149
    e3m2: _mma_149
    e4m3: _mma_149
    e5m2: _mma_149

class _mma_124(_Step):
    f32: _mma_123

class _mma_125(_Step):
    s32: _mma_150

class _mma_126(_Step):
    e2m1: _mma_151

class _mma_127(_Step):
    f32: _mma_126

class _mma_128(_Step):
    f32: _mma_152

class _mma_129(_Step):
    f16: _mma_153
    f32: _mma_153

class _mma_130(_Step):
    s32: _mma_154

class _mma_131(_Step):
    f16: _mma_155
    f32: _mma_155

class _mma_132(_Step):
    f32: _mma_156

class _mma_133(_Step):
    s32: _mma_157

class _mma_134(_Step):
    f32: _mma_158

class _mma_135(_Step):
    e2m1: _mma_159

class _mma_136(_Step):
    f32: _mma_135

class _mma_137(_Step):
    f32: _mma_160

class _mma_138(_Step):
    f16: _mma_161

class _mma_139(_Step):
    e2m1: _mma_162
    e2m3: _mma_162
    e3m2: _mma_162
    e4m3: _mma_162
    e5m2: _mma_162

class _mma_140(_Step):
    e2m1: _mma_163
    e2m3: _mma_163
    e3m2: _mma_163
    e4m3: _mma_163
    e5m2: _mma_163

class _mma_141(_Step):
    f32: _mma_140

class _mma_142(_Step):
    and_: _mma_164
    xor: _mma_164

class _mma_143(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a * b + c of fp8. ``mma {d, ..}, {a, ..}, {b, ..}, {c, ..}``, from PTX 8.4 sm_89."""

class _mma_144(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a * b + c of f16. ``mma {d, ..}, {a, ..}, {b, ..}, {c, ..}``, from PTX 6.5 sm_75."""

class _mma_145(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a * b + c of bf16 or tf32. ``mma {d, ..}, {a, ..}, {b, ..}, {c, ..}``, from PTX 7.0 sm_80."""

class _mma_146(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a * b + c of f64. ``mma {d, ..}, {a, ..}, {b, ..}, {c, ..}``, from PTX 7.0 sm_80."""

class _mma_147(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a * b + c of bytes. ``mma {d, ..}, {a, ..}, {b, ..}, {c, ..}``, from PTX 6.5 sm_75."""

class _mma_148(_Step):
    f16: _mma_165
    f32: _mma_165

class _mma_149(_Step):
    e2m1: _mma_166
    e2m3: _mma_166
    e3m2: _mma_166
    e4m3: _mma_166
    e5m2: _mma_166

class _mma_150(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a * b + c of 4-bit integers. ``mma {d, ..}, {a, ..}, {b, ..}, {c, ..}``, from PTX 6.5 sm_75."""

class _mma_151(_Step):
    e2m1: _mma_167

class _mma_152(_Step):
    e2m1: _mma_168

class _mma_153(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a * b + c for four 8x8x4 products of f16. ``mma {d, ..}, {a, ..}, {b, ..}, {c, ..}``, from PTX 6.4 sm_75."""

class _mma_154(_Step):
    def __call__(self, a: Any, b: Any, c: Any, e: Any, f: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a * b + c of 4-bit integers, half of a absent. ``mma {d, ..}, {a, ..}, {b, ..}, {c, ..}, e, f``, from PTX 7.1 sm_80."""

class _mma_155(_Step):
    def __call__(self, a: Any, b: Any, c: Any, e: Any, f: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a * b + c of f16, half of a absent. ``mma {d, ..}, {a, ..}, {b, ..}, {c, ..}, e, f``, from PTX 7.1 sm_80."""

class _mma_156(_Step):
    def __call__(self, a: Any, b: Any, c: Any, e: Any, f: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a * b + c of bf16 or tf32, half of a absent. ``mma {d, ..}, {a, ..}, {b, ..}, {c, ..}, e, f``, from PTX 7.1 sm_80."""

class _mma_157(_Step):
    def __call__(self, a: Any, b: Any, c: Any, e: Any, f: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a * b + c of bytes, half of a absent. ``mma {d, ..}, {a, ..}, {b, ..}, {c, ..}, e, f``, from PTX 7.1 sm_80."""

class _mma_158(_Step):
    def __call__(self, a: Any, b: Any, c: Any, e: Any, f: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a * b + c of fp8, half of a absent. ``mma {d, ..}, {a, ..}, {b, ..}, {c, ..}, e, f``, from PTX 8.4 sm_89."""

class _mma_159(_Step):
    e2m1: _mma_169

class _mma_160(_Step):
    e2m1: _mma_170

class _mma_161(_Step):
    def __call__(self, a: Any, b: Any, c: Any, e: Any, f: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a * b + c of fp8, fp6 and fp4, half of a absent. ``mma {d, ..}, {a, ..}, {b, ..}, {c, ..}, e, f``, from PTX 8.8 sm_120f."""

class _mma_162(_Step):
    f32: _mma_171

class _mma_163(_Step):
    e2m1: _mma_172
    e2m3: _mma_172
    e3m2: _mma_172
    e4m3: _mma_172
    e5m2: _mma_172

class _mma_164(_Step):
    popc: _mma_173

class _mma_165(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a * b + c of fp8, fp6 and fp4, a byte each. ``mma {d, ..}, {a, ..}, {b, ..}, {c, ..}``, from PTX 8.8 sm_100f."""

class _mma_166(_Step):
    f32: _mma_174

class _mma_167(_Step):
    f32: _mma_175

class _mma_168(_Step):
    e2m1: _mma_176

class _mma_169(_Step):
    f32: _mma_177

class _mma_170(_Step):
    e2m1: _mma_178

class _mma_171(_Step):
    def __call__(self, a: Any, b: Any, c: Any, e: Any, f: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a * b + c of fp8, fp6 and fp4, half of a absent. ``mma {d, ..}, {a, ..}, {b, ..}, {c, ..}, e, f``, from PTX 8.8 sm_100f."""

class _mma_172(_Step):
    f32: _mma_179

class _mma_173(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = c plus the number of ones in a xor b, or a and b. ``mma {d, ..}, {a, ..}, {b, ..}, {c, ..}``, from PTX 7.0 sm_75."""

class _mma_174(_Step):
    ue8m0: _mma_180

class _mma_175(_Step):
    ue8m0: _mma_181

class _mma_176(_Step):
    f32: _mma_182

class _mma_177(_Step):
    ue8m0: _mma_183

class _mma_178(_Step):
    f32: _mma_184

class _mma_179(_Step):
    ue8m0: _mma_185

class _mma_180(_Step):
    def __call__(self, a: Any, b: Any, c: Any, sa: Any, ia: Any, sb: Any, ib: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a * b + c of fp8, fp6 and fp4, scaled by blocks. ``mma {d, ..}, {a, ..}, {b, ..}, {c, ..}, sa, {ia, ..}, sb, {ib, ..}``, from PTX 8.8 sm_120f."""

class _mma_181(_Step):
    def __call__(self, a: Any, b: Any, c: Any, sa: Any, ia: Any, sb: Any, ib: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a * b + c of fp4, scaled by blocks of 32. ``mma {d, ..}, {a, ..}, {b, ..}, {c, ..}, sa, {ia, ..}, sb, {ib, ..}``, from PTX 8.8 sm_120f."""

class _mma_182(_Step):
    ue4m3: _mma_186
    ue8m0: _mma_186

class _mma_183(_Step):
    def __call__(self, a: Any, b: Any, c: Any, e: Any, f: Any, sa: Any, ia: Any, sb: Any, ib: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a * b + c of fp4, scaled by blocks of 32, half of a absent. ``mma {d, ..}, {a, ..}, {b, ..}, {c, ..}, e, f, sa, {ia, ..}, sb, {ib, ..}``, from PTX 8.7 sm_120a."""

class _mma_184(_Step):
    ue4m3: _mma_187
    ue8m0: _mma_187

class _mma_185(_Step):
    def __call__(self, a: Any, b: Any, c: Any, e: Any, f: Any, sa: Any, ia: Any, sb: Any, ib: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a * b + c of fp8, fp6 and fp4, scaled by blocks, half of a absent. ``mma {d, ..}, {a, ..}, {b, ..}, {c, ..}, e, f, sa, {ia, ..}, sb, {ib, ..}``, from PTX 8.8 sm_120f."""

class _mma_186(_Step):
    def __call__(self, a: Any, b: Any, c: Any, sa: Any, ia: Any, sb: Any, ib: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a * b + c of fp4, scaled by blocks of 16 or 32. ``mma {d, ..}, {a, ..}, {b, ..}, {c, ..}, sa, {ia, ..}, sb, {ib, ..}``, from PTX 8.8 sm_120f."""

class _mma_187(_Step):
    def __call__(self, a: Any, b: Any, c: Any, e: Any, f: Any, sa: Any, ia: Any, sb: Any, ib: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a * b + c of fp4, scaled by blocks of 16 or 32, half of a absent. ``mma {d, ..}, {a, ..}, {b, ..}, {c, ..}, e, f, sa, {ia, ..}, sb, {ib, ..}``, from PTX 8.7 sm_120a."""

class _mov(_Step):
    b128: _mov_1
    b16: _mov_2
    b32: _mov_3
    b64: _mov_4
    f32: _mov_5
    f64: _mov_5
    pred: _mov_6
    s16: _mov_7
    s32: _mov_7
    s64: _mov_7
    u16: _mov_7
    u32: _mov_7
    u64: _mov_7
    v2: _mov_8
    v4: _mov_9

class _mov_1(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a. ``mov d, a``, from PTX 8.3 sm_75.
        d = the parts a, the first lowest. ``mov d, {a, ..}``, from PTX 8.3 sm_75.
        d = the parts of a, the lowest first. ``mov {d, ..}, a``, from PTX 8.3 sm_75."""

class _mov_2(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a: a register, a number, the address of a variable or a special register. ``mov d, a``, from PTX 6.3 sm_75.
        d = the parts a, the first lowest. ``mov d, {a, ..}``, from PTX 6.3 sm_75.
        d = the parts of a, the lowest first. ``mov {d, ..}, a``, from PTX 6.3 sm_75."""

class _mov_3(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a: a register, a number, the address of a variable or a special register. ``mov d, a``, from PTX 6.3 sm_75.
        d = the parts a, the first lowest. ``mov d, {a, ..}``, from PTX 6.3 sm_75.
        d = the parts of a, the lowest first. ``mov {d, ..}, a``, from PTX 6.3 sm_75."""

class _mov_4(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a: a register, a number, the address of a variable or a special register. ``mov d, a``, from PTX 6.3 sm_75.
        d = the parts a, the first lowest. ``mov d, {a, ..}``, from PTX 6.3 sm_75.
        d = the parts of a, the lowest first. ``mov {d, ..}, a``, from PTX 6.3 sm_75."""

class _mov_5(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a. ``mov d, a``, from PTX 6.3 sm_75."""

class _mov_6(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a: a predicate or a special register that is one. ``mov d, {!}a``, from PTX 6.3 sm_75.
        d = a: 0, or 1, which may be written -1. ``mov d, a``, from PTX 6.3 sm_75."""

class _mov_7(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a: a register, a number, the address of a variable or a special register. ``mov d, a``, from PTX 6.3 sm_75."""

class _mov_8(_Step):
    b16: _mov_10
    b32: _mov_10
    b64: _mov_10
    f32: _mov_10
    f64: _mov_10
    s16: _mov_10
    s32: _mov_10
    s64: _mov_10
    u16: _mov_10
    u32: _mov_10
    u64: _mov_10

class _mov_9(_Step):
    b16: _mov_10
    b32: _mov_10
    b64: _mov_10
    f32: _mov_10
    f64: _mov_10
    s16: _mov_10
    s32: _mov_10
    s64: _mov_10
    u16: _mov_11
    u32: _mov_11
    u64: _mov_10

class _mov_10(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a, part by part. The assembler takes it, the manual does not have it. ``mov {d, ..}, {a, ..}``, from PTX 6.3 sm_75."""

class _mov_11(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The four components of a special register. ``mov {d, ..}, a``, from PTX 6.3 sm_75.
        d = a, part by part. The assembler takes it, the manual does not have it. ``mov {d, ..}, {a, ..}``, from PTX 6.3 sm_75."""

class _movmatrix(_Step):
    sync: _movmatrix_1

class _movmatrix_1(_Step):
    aligned: _movmatrix_2

class _movmatrix_2(_Step):
    m8n8: _movmatrix_3

class _movmatrix_3(_Step):
    trans: _movmatrix_4

class _movmatrix_4(_Step):
    b16: _movmatrix_5

class _movmatrix_5(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The transpose of a matrix of 8x8 halves that the warp holds. ``movmatrix d, a``, from PTX 7.8 sm_75."""

class _mul(_Step):
    bf16: _mul_1
    bf16x2: _mul_2
    e4m3x4: _mul_3
    e5m2x4: _mul_3
    f16: _mul_4
    f16x2: _mul_5
    f32: _mul_6
    f32x2: _mul_7
    f64: _mul_8
    ftz: _mul_9
    hi: _mul_10
    lo: _mul_10
    rm: _mul_11
    rn: _mul_12
    rp: _mul_11
    rz: _mul_13
    sat: _mul_14
    satfinite: _mul_15
    wide: _mul_16

class _mul_1(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a * b. ``mul d, a, b``, from PTX 7.8 sm_90."""

class _mul_2(_Step):
    bf16x2: _mul_17
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a * b. ``mul d, a, b``, from PTX 7.8 sm_90."""

class _mul_3(_Step):
    e2m1p4x4: _mul_18
    e2m1x4: _mul_18
    e2m3x4: _mul_18
    e3m2x4: _mul_18
    e4m3x4: _mul_18
    e5m2x4: _mul_18
    ue8m0x4: _mul_18

class _mul_4(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a * b. ``mul d, a, b``, from PTX 6.3 sm_75."""

class _mul_5(_Step):
    f16x2: _mul_19
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a * b. ``mul d, a, b``, from PTX 6.3 sm_75."""

class _mul_6(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a * b. ``mul d, a, b``, from PTX 6.3 sm_75."""

class _mul_7(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a * b in each half. ``mul d, a, b``, from PTX 8.6 sm_100."""

class _mul_8(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a * b. ``mul d, a, b``, from PTX 6.3 sm_75."""

class _mul_9(_Step):
    f16: _mul_4
    f16x2: _mul_4
    f32: _mul_6
    f32x2: _mul_7
    sat: _mul_14

class _mul_10(_Step):
    s16: _mul_20
    s32: _mul_20
    s64: _mul_20
    u16: _mul_20
    u32: _mul_20
    u64: _mul_20

class _mul_11(_Step):
    f32: _mul_6
    f32x2: _mul_7
    f64: _mul_8
    ftz: _mul_21
    sat: _mul_22

class _mul_12(_Step):
    bf16: _mul_1
    bf16x2: _mul_1
    e4m3x4: _mul_3
    e5m2x4: _mul_3
    f16: _mul_4
    f16x2: _mul_4
    f32: _mul_6
    f32x2: _mul_7
    f64: _mul_8
    ftz: _mul_9
    sat: _mul_14
    satfinite: _mul_15

class _mul_13(_Step):
    bf16x2: _mul_23
    f32: _mul_6
    f32x2: _mul_7
    f64: _mul_8
    ftz: _mul_24
    sat: _mul_22

class _mul_14(_Step):
    f16: _mul_4
    f16x2: _mul_4
    f32: _mul_6

class _mul_15(_Step):
    e4m3x4: _mul_3
    e5m2x4: _mul_3

class _mul_16(_Step):
    s16: _mul_25
    s32: _mul_25
    u16: _mul_25
    u32: _mul_25

class _mul_17(_Step):
    f16x2: _mul_26

class _mul_18(_Step):
    e2m1p4x4: _mul_27
    e2m1x4: _mul_27
    e2m3x4: _mul_27
    e3m2x4: _mul_27
    e4m3x4: _mul_27
    e5m2x4: _mul_27
    ue8m0x4: _mul_27

class _mul_19(_Step):
    bf16x2: _mul_28

class _mul_20(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The lower or upper half of a * b. ``mul d, a, b``, from PTX 6.3 sm_75."""

class _mul_21(_Step):
    f32: _mul_6
    f32x2: _mul_7
    sat: _mul_22

class _mul_22(_Step):
    f32: _mul_6

class _mul_23(_Step):
    f32x2: _mul_29

class _mul_24(_Step):
    f16x2: _mul_30
    f32: _mul_6
    f32x2: _mul_7
    sat: _mul_22

class _mul_25(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a * b in twice the width. ``mul d, a, b``, from PTX 6.3 sm_75."""

class _mul_26(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a * b in each half. ``mul d, a, b``, from PTX 9.4 sm_107f."""

class _mul_27(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a * b in each lane. ``mul d, a, b``, from PTX 9.4 sm_100a."""

class _mul_28(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a * b in each half. ``mul d, a, b``, from PTX 9.4 sm_107f."""

class _mul_29(_Step):
    f32x2: _mul_31

class _mul_30(_Step):
    f32x2: _mul_32

class _mul_31(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a * b in each half, narrowed. ``mul d, a, b``, from PTX 9.4 sm_107f."""

class _mul_32(_Step):
    f32x2: _mul_33

class _mul_33(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a * b in each half, narrowed. ``mul d, a, b``, from PTX 9.4 sm_107f."""

class _mul24(_Step):
    hi: _mul24_1
    lo: _mul24_1

class _mul24_1(_Step):
    s32: _mul24_2
    u32: _mul24_2

class _mul24_2(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The lower or upper 32 of the 48 bits of the product of 24-bit values. ``mul24 d, a, b``, from PTX 6.3 sm_75."""

class _multimem(_Step):
    cp: _multimem_1
    ld_reduce: _multimem_2
    red: _multimem_3
    st: _multimem_4

class _multimem_1(_Step):
    async_: _multimem_5
    reduce: _multimem_6

class _multimem_2(_Step):
    acquire: _multimem_7
    add: _multimem_8
    and_: _multimem_9
    global_: _multimem_10
    max: _multimem_11
    min: _multimem_11
    or_: _multimem_9
    relaxed: _multimem_7
    weak: _multimem_12
    xor: _multimem_9

class _multimem_3(_Step):
    add: _multimem_13
    and_: _multimem_14
    async_: _multimem_15
    global_: _multimem_16
    max: _multimem_17
    min: _multimem_17
    or_: _multimem_14
    relaxed: _multimem_18
    release: _multimem_18
    xor: _multimem_14

class _multimem_4(_Step):
    async_: _multimem_19
    b32: _multimem_20
    b64: _multimem_20
    bf16: _multimem_21
    bf16x2: _multimem_21
    e4m3: _multimem_21
    e4m3x2: _multimem_21
    e4m3x4: _multimem_21
    e5m2: _multimem_21
    e5m2x2: _multimem_21
    e5m2x4: _multimem_21
    f16: _multimem_21
    f16x2: _multimem_21
    f32: _multimem_22
    f64: _multimem_20
    global_: _multimem_23
    relaxed: _multimem_24
    release: _multimem_24
    s32: _multimem_20
    s64: _multimem_20
    u32: _multimem_20
    u64: _multimem_20
    v2: _multimem_25
    v4: _multimem_25
    v8: _multimem_25
    weak: _multimem_26

class _multimem_5(_Step):
    bulk: _multimem_27

class _multimem_6(_Step):
    async_: _multimem_28

class _multimem_7(_Step):
    cluster: _multimem_12
    cta: _multimem_12
    gpu: _multimem_12
    sys: _multimem_12

class _multimem_8(_Step):
    acc__f16: _multimem_29
    acc__f32: _multimem_29
    bf16: _multimem_30
    bf16x2: _multimem_30
    e4m3: _multimem_30
    e4m3x2: _multimem_30
    e4m3x4: _multimem_30
    e5m2: _multimem_30
    e5m2x2: _multimem_30
    e5m2x4: _multimem_30
    f16: _multimem_30
    f16x2: _multimem_30
    f32: _multimem_30
    f64: _multimem_31
    s32: _multimem_32
    u32: _multimem_32
    u64: _multimem_32
    v2: _multimem_33
    v4: _multimem_33
    v8: _multimem_33

class _multimem_9(_Step):
    b32: _multimem_32
    b64: _multimem_32

class _multimem_10(_Step):
    add: _multimem_8
    and_: _multimem_9
    max: _multimem_11
    min: _multimem_11
    or_: _multimem_9
    xor: _multimem_9

class _multimem_11(_Step):
    bf16: _multimem_34
    bf16x2: _multimem_34
    e4m3: _multimem_34
    e4m3x2: _multimem_34
    e4m3x4: _multimem_34
    e5m2: _multimem_34
    e5m2x2: _multimem_34
    e5m2x4: _multimem_34
    f16: _multimem_34
    f16x2: _multimem_34
    s32: _multimem_32
    s64: _multimem_32
    u32: _multimem_32
    u64: _multimem_32
    v2: _multimem_35
    v4: _multimem_35
    v8: _multimem_35

class _multimem_12(_Step):
    add: _multimem_8
    and_: _multimem_9
    global_: _multimem_10
    max: _multimem_11
    min: _multimem_11
    or_: _multimem_9
    xor: _multimem_9

class _multimem_13(_Step):
    bf16: _multimem_36
    bf16x2: _multimem_36
    f16: _multimem_36
    f16x2: _multimem_36
    f32: _multimem_36
    f64: _multimem_37
    s32: _multimem_38
    u32: _multimem_38
    u64: _multimem_38
    v2: _multimem_39
    v4: _multimem_39
    v8: _multimem_39

class _multimem_14(_Step):
    b32: _multimem_38
    b64: _multimem_38

class _multimem_15(_Step):
    release: _multimem_40

class _multimem_16(_Step):
    add: _multimem_13
    and_: _multimem_14
    max: _multimem_17
    min: _multimem_17
    or_: _multimem_14
    xor: _multimem_14

class _multimem_17(_Step):
    s32: _multimem_38
    s64: _multimem_38
    u32: _multimem_38
    u64: _multimem_38

class _multimem_18(_Step):
    cluster: _multimem_41
    cta: _multimem_41
    gpu: _multimem_41
    sys: _multimem_41

class _multimem_19(_Step):
    release: _multimem_42

class _multimem_20(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Writes b to a on all devices. ``multimem [a], b``, from PTX 8.1 sm_90."""

class _multimem_21(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Writes b to a on all devices. ``multimem [a], {b, ..}``, from PTX 8.1 sm_90."""

class _multimem_22(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Writes b to a on all devices. ``multimem [a], b``, from PTX 8.1 sm_90.
        Writes b to a on all devices. ``multimem [a], {b, ..}``, from PTX 8.1 sm_90."""

class _multimem_23(_Step):
    b32: _multimem_20
    b64: _multimem_20
    bf16: _multimem_21
    bf16x2: _multimem_21
    e4m3: _multimem_21
    e4m3x2: _multimem_21
    e4m3x4: _multimem_21
    e5m2: _multimem_21
    e5m2x2: _multimem_21
    e5m2x4: _multimem_21
    f16: _multimem_21
    f16x2: _multimem_21
    f32: _multimem_22
    f64: _multimem_20
    s32: _multimem_20
    s64: _multimem_20
    u32: _multimem_20
    u64: _multimem_20
    v2: _multimem_25
    v4: _multimem_25
    v8: _multimem_25

class _multimem_24(_Step):
    cluster: _multimem_26
    cta: _multimem_26
    gpu: _multimem_26
    sys: _multimem_26

class _multimem_25(_Step):
    bf16: _multimem_21
    bf16x2: _multimem_21
    e4m3: _multimem_21
    e4m3x2: _multimem_21
    e4m3x4: _multimem_21
    e5m2: _multimem_21
    e5m2x2: _multimem_21
    e5m2x4: _multimem_21
    f16: _multimem_21
    f16x2: _multimem_21
    f32: _multimem_21

class _multimem_26(_Step):
    b32: _multimem_20
    b64: _multimem_20
    bf16: _multimem_21
    bf16x2: _multimem_21
    e4m3: _multimem_21
    e4m3x2: _multimem_21
    e4m3x4: _multimem_21
    e5m2: _multimem_21
    e5m2x2: _multimem_21
    e5m2x4: _multimem_21
    f16: _multimem_21
    f16x2: _multimem_21
    f32: _multimem_22
    f64: _multimem_20
    global_: _multimem_23
    s32: _multimem_20
    s64: _multimem_20
    u32: _multimem_20
    u64: _multimem_20
    v2: _multimem_25
    v4: _multimem_25
    v8: _multimem_25

class _multimem_27(_Step):
    global_: _multimem_43
    weak: _multimem_44

class _multimem_28(_Step):
    bulk: _multimem_45

class _multimem_29(_Step):
    bf16: _multimem_30
    bf16x2: _multimem_30
    e4m3: _multimem_30
    e4m3x2: _multimem_30
    e4m3x4: _multimem_30
    e5m2: _multimem_30
    e5m2x2: _multimem_30
    e5m2x4: _multimem_30
    f16: _multimem_30
    f16x2: _multimem_30
    f32: _multimem_30
    v2: _multimem_33
    v4: _multimem_33
    v8: _multimem_33

class _multimem_30(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = the sum of what lies at a on all devices, element by element. ``multimem {d, ..}, [a]``, from PTX 8.1 sm_90."""

class _multimem_31(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = the sum of what lies at a on all devices. ``multimem d, [a]``, from PTX 8.1 sm_90."""

class _multimem_32(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = what lies at a on all devices, combined. ``multimem d, [a]``, from PTX 8.1 sm_90."""

class _multimem_33(_Step):
    bf16: _multimem_30
    bf16x2: _multimem_30
    e4m3: _multimem_30
    e4m3x2: _multimem_30
    e4m3x4: _multimem_30
    e5m2: _multimem_30
    e5m2x2: _multimem_30
    e5m2x4: _multimem_30
    f16: _multimem_30
    f16x2: _multimem_30
    f32: _multimem_30

class _multimem_34(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = the least or greatest of what lies at a on all devices, element by element. ``multimem {d, ..}, [a]``, from PTX 8.1 sm_90."""

class _multimem_35(_Step):
    bf16: _multimem_34
    bf16x2: _multimem_34
    e4m3: _multimem_34
    e4m3x2: _multimem_34
    e4m3x4: _multimem_34
    e5m2: _multimem_34
    e5m2x2: _multimem_34
    e5m2x4: _multimem_34
    f16: _multimem_34
    f16x2: _multimem_34

class _multimem_36(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Adds b to a on all devices, element by element. ``multimem [a], {b, ..}``, from PTX 8.1 sm_90."""

class _multimem_37(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Adds b to a on all devices. ``multimem [a], b``, from PTX 8.1 sm_90."""

class _multimem_38(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Combines b into a on all devices. ``multimem [a], b``, from PTX 8.1 sm_90."""

class _multimem_39(_Step):
    bf16: _multimem_36
    bf16x2: _multimem_36
    f16: _multimem_36
    f16x2: _multimem_36
    f32: _multimem_36

class _multimem_40(_Step):
    gpu: _multimem_46
    sys: _multimem_46

class _multimem_41(_Step):
    add: _multimem_13
    and_: _multimem_14
    global_: _multimem_16
    max: _multimem_17
    min: _multimem_17
    or_: _multimem_14
    xor: _multimem_14

class _multimem_42(_Step):
    gpu: _multimem_47
    sys: _multimem_47

class _multimem_43(_Step):
    shared__cta: _multimem_48

class _multimem_44(_Step):
    global_: _multimem_43

class _multimem_45(_Step):
    global_: _multimem_49

class _multimem_46(_Step):
    add: _multimem_50
    global_: _multimem_51

class _multimem_47(_Step):
    b16: _multimem_52
    b32: _multimem_52
    b64: _multimem_52
    b8: _multimem_52
    f32: _multimem_52
    f64: _multimem_52
    global_: _multimem_53
    s16: _multimem_52
    s32: _multimem_52
    s64: _multimem_52
    s8: _multimem_52
    u16: _multimem_52
    u32: _multimem_52
    u64: _multimem_52
    u8: _multimem_52

class _multimem_48(_Step):
    bulk_group: _multimem_54

class _multimem_49(_Step):
    shared__cta: _multimem_55

class _multimem_50(_Step):
    s32: _multimem_56
    u32: _multimem_56
    u64: _multimem_56

class _multimem_51(_Step):
    add: _multimem_50

class _multimem_52(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Writes b to a of every device of the multicast group after all earlier accesses. ``multimem [a], b``, from PTX 9.3 sm_100."""

class _multimem_53(_Step):
    b16: _multimem_52
    b32: _multimem_52
    b64: _multimem_52
    b8: _multimem_52
    f32: _multimem_52
    f64: _multimem_52
    s16: _multimem_52
    s32: _multimem_52
    s64: _multimem_52
    s8: _multimem_52
    u16: _multimem_52
    u32: _multimem_52
    u64: _multimem_52
    u8: _multimem_52

class _multimem_54(_Step):
    cp_mask: _multimem_57
    def __call__(self, d: Any, a: Any, size: Any, mask: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """Copies size bytes to every device of the multicast group. ``multimem [d], [a], size{, mask}``, from PTX 9.1 sm_90."""

class _multimem_55(_Step):
    bulk_group: _multimem_58

class _multimem_56(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Combines b into a of every device of the multicast group after all earlier accesses. ``multimem [a], b``, from PTX 9.3 sm_100."""

class _multimem_57(_Step):
    def __call__(self, d: Any, a: Any, size: Any, mask: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """Copies size bytes to every device of the multicast group. ``multimem [d], [a], size{, mask}``, from PTX 9.1 sm_90."""

class _multimem_58(_Step):
    add: _multimem_59
    and_: _multimem_60
    dec: _multimem_61
    inc: _multimem_61
    max: _multimem_62
    min: _multimem_62
    or_: _multimem_60
    xor: _multimem_60

class _multimem_59(_Step):
    f32: _multimem_63
    f64: _multimem_63
    noftz: _multimem_64
    s32: _multimem_63
    u32: _multimem_63
    u64: _multimem_63

class _multimem_60(_Step):
    b32: _multimem_63
    b64: _multimem_63

class _multimem_61(_Step):
    u32: _multimem_63

class _multimem_62(_Step):
    bf16: _multimem_63
    f16: _multimem_63
    s32: _multimem_63
    s64: _multimem_63
    u32: _multimem_63
    u64: _multimem_63

class _multimem_63(_Step):
    def __call__(self, d: Any, a: Any, size: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Combines size bytes of shared memory into global memory of every device of the multicast group. ``multimem [d], [a], size``, from PTX 9.1 sm_90."""

class _multimem_64(_Step):
    bf16: _multimem_63
    f16: _multimem_63

class _nanosleep(_Step):
    u32: _nanosleep_1

class _nanosleep_1(_Step):
    def __call__(self, t: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Suspends the thread for about t nanoseconds, at most twice that. ``nanosleep t``, from PTX 6.3 sm_75."""

class _neg(_Step):
    bf16: _neg_1
    bf16x2: _neg_1
    f16: _neg_2
    f16x2: _neg_2
    f32: _neg_3
    f64: _neg_4
    ftz: _neg_5
    s16: _neg_6
    s32: _neg_6
    s64: _neg_6
    s8x4: _neg_6

class _neg_1(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = -a. ``neg d, a``, from PTX 7.0 sm_80."""

class _neg_2(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = -a. ``neg d, a``, from PTX 6.3 sm_75."""

class _neg_3(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = -a. ``neg d, a``, from PTX 6.3 sm_75."""

class _neg_4(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = -a. ``neg d, a``, from PTX 6.3 sm_75."""

class _neg_5(_Step):
    f16: _neg_2
    f16x2: _neg_2
    f32: _neg_3

class _neg_6(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = -a. ``neg d, a``, from PTX 6.3 sm_75."""

class _not(_Step):
    b16: _not_1
    b32: _not_1
    b64: _not_1
    pred: _not_1

class _not_1(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = ~a. ``not d, a``, from PTX 6.3 sm_75."""

class _or(_Step):
    b16: _or_1
    b32: _or_1
    b64: _or_1
    pred: _or_1

class _or_1(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a | b. ``or d, a, b``, from PTX 6.3 sm_75."""

class _pmevent(_Step):
    mask: _pmevent_1
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Triggers performance monitor event a. ``pmevent a``, from PTX 6.3 sm_75."""

class _pmevent_1(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Triggers the performance monitor events in the mask a. ``pmevent a``, from PTX 6.3 sm_75."""

class _popc(_Step):
    b32: _popc_1
    b64: _popc_1

class _popc_1(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The number of ones in a. ``popc d, a``, from PTX 6.3 sm_75."""

class _prefetch(_Step):
    L1: _prefetch_1
    L2: _prefetch_1
    const: _prefetch_2
    global_: _prefetch_3
    local: _prefetch_4
    param: _prefetch_2
    tensormap: _prefetch_5

class _prefetch_1(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Brings the line of a into the cache. ``prefetch [a]``, from PTX 6.3 sm_75."""

class _prefetch_2(_Step):
    tensormap: _prefetch_5

class _prefetch_3(_Step):
    L1: _prefetch_1
    L2: _prefetch_1
    L2__evict_last: _prefetch_6
    L2__evict_normal: _prefetch_6

class _prefetch_4(_Step):
    L1: _prefetch_1
    L2: _prefetch_1

class _prefetch_5(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Brings the tensor map at a into the cache. ``prefetch [a]``, from PTX 8.0 sm_90."""

class _prefetch_6(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Brings the line of a into the cache with a priority. ``prefetch [a]``, from PTX 7.4 sm_80."""

class _prefetchu(_Step):
    L1: _prefetchu_1

class _prefetchu_1(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Brings the line of a into the uniform cache. ``prefetchu [a]``, from PTX 6.3 sm_75."""

class _prmt(_Step):
    b32: _prmt_1

class _prmt_1(_Step):
    b4e: _prmt_2
    ecl: _prmt_2
    ecr: _prmt_2
    f4e: _prmt_2
    rc16: _prmt_2
    rc8: _prmt_2
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Four bytes of b:a, chosen by the nibbles of c or by the mode. ``prmt d, a, b, c``, from PTX 6.3 sm_75."""

class _prmt_2(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Four bytes of b:a, chosen by the nibbles of c or by the mode. ``prmt d, a, b, c``, from PTX 6.3 sm_75."""

class _rcp(_Step):
    approx: _rcp_1
    rm: _rcp_2
    rn: _rcp_2
    rp: _rcp_2
    rz: _rcp_2

class _rcp_1(_Step):
    f32: _rcp_3
    ftz: _rcp_4

class _rcp_2(_Step):
    f32: _rcp_5
    f64: _rcp_6
    ftz: _rcp_7

class _rcp_3(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = 1 / a within 1 ulp. ``rcp d, a``, from PTX 6.3 sm_75."""

class _rcp_4(_Step):
    f32: _rcp_3
    f64: _rcp_8

class _rcp_5(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = 1 / a. ``rcp d, a``, from PTX 6.3 sm_75."""

class _rcp_6(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = 1 / a. ``rcp d, a``, from PTX 6.3 sm_75."""

class _rcp_7(_Step):
    f32: _rcp_5

class _rcp_8(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """A rough 1 / a: the upper 32 bits only, to start an iteration. ``rcp d, a``, from PTX 6.3 sm_75."""

class _red(_Step):
    add: _red_1
    and_: _red_2
    async_: _red_3
    cluster: _red_4
    cta: _red_4
    dec: _red_5
    global_: _red_6
    gpu: _red_4
    inc: _red_5
    max: _red_7
    min: _red_7
    or_: _red_2
    relaxed: _red_8
    release: _red_8
    shared: _red_9
    shared__cluster: _red_9
    shared__cta: _red_9
    sys: _red_4
    xor: _red_2

class _red_1(_Step):
    L2__cache_hint: _red_10
    f32: _red_11
    f64: _red_11
    noftz: _red_12
    s32: _red_11
    u32: _red_11
    u64: _red_11
    v2: _red_13
    v4: _red_13

class _red_2(_Step):
    L2__cache_hint: _red_14
    b32: _red_15
    b64: _red_15

class _red_3(_Step):
    mmio: _red_16
    relaxed: _red_17
    release: _red_18

class _red_4(_Step):
    add: _red_1
    and_: _red_2
    dec: _red_5
    global_: _red_6
    inc: _red_5
    max: _red_7
    min: _red_7
    or_: _red_2
    shared: _red_9
    shared__cluster: _red_9
    shared__cta: _red_9
    xor: _red_2

class _red_5(_Step):
    L2__cache_hint: _red_19
    u32: _red_20

class _red_6(_Step):
    add: _red_1
    and_: _red_2
    dec: _red_5
    inc: _red_5
    max: _red_7
    min: _red_7
    or_: _red_2
    xor: _red_2

class _red_7(_Step):
    L2__cache_hint: _red_21
    noftz: _red_22
    s32: _red_23
    s64: _red_23
    u32: _red_23
    u64: _red_23

class _red_8(_Step):
    add: _red_1
    and_: _red_2
    cluster: _red_4
    cta: _red_4
    dec: _red_5
    global_: _red_6
    gpu: _red_4
    inc: _red_5
    max: _red_7
    min: _red_7
    or_: _red_2
    shared: _red_9
    shared__cluster: _red_9
    shared__cta: _red_9
    sys: _red_4
    xor: _red_2

class _red_9(_Step):
    add: _red_24
    and_: _red_2
    dec: _red_5
    inc: _red_5
    max: _red_25
    min: _red_25
    or_: _red_2
    xor: _red_2

class _red_10(_Step):
    f32: _red_11
    f64: _red_11
    s32: _red_11
    u32: _red_11
    u64: _red_11
    v2: _red_13
    v4: _red_13

class _red_11(_Step):
    def __call__(self, a: Any, b: Any, policy: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """What lies at a becomes it + b. ``red [a], b{, policy}``, from PTX 6.3 sm_75."""

class _red_12(_Step):
    L2__cache_hint: _red_26
    bf16: _red_27
    bf16x2: _red_27
    f16: _red_27
    f16x2: _red_27
    f32: _red_27
    v2: _red_28
    v4: _red_28
    v8: _red_28

class _red_13(_Step):
    f32: _red_29

class _red_14(_Step):
    b32: _red_15
    b64: _red_15

class _red_15(_Step):
    def __call__(self, a: Any, b: Any, policy: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """What lies at a becomes it op b. ``red [a], b{, policy}``, from PTX 6.3 sm_75."""

class _red_16(_Step):
    release: _red_30

class _red_17(_Step):
    cluster: _red_31

class _red_18(_Step):
    gpu: _red_32
    sys: _red_32

class _red_19(_Step):
    u32: _red_20

class _red_20(_Step):
    def __call__(self, a: Any, b: Any, policy: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """What lies at a becomes it + 1, 0 after b, or it - 1, b after 0. ``red [a], b{, policy}``, from PTX 6.3 sm_75."""

class _red_21(_Step):
    s32: _red_23
    s64: _red_23
    u32: _red_23
    u64: _red_23

class _red_22(_Step):
    L2__cache_hint: _red_33
    v2: _red_28
    v4: _red_28
    v8: _red_28

class _red_23(_Step):
    def __call__(self, a: Any, b: Any, policy: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """What lies at a becomes the lesser or greater of it and b. ``red [a], b{, policy}``, from PTX 6.3 sm_75."""

class _red_24(_Step):
    L2__cache_hint: _red_34
    f32: _red_11
    f64: _red_11
    noftz: _red_35
    s32: _red_11
    u32: _red_11
    u64: _red_11

class _red_25(_Step):
    L2__cache_hint: _red_21
    s32: _red_23
    s64: _red_23
    u32: _red_23
    u64: _red_23

class _red_26(_Step):
    bf16: _red_27
    bf16x2: _red_27
    f16: _red_27
    f16x2: _red_27
    f32: _red_27
    v2: _red_28
    v4: _red_28
    v8: _red_28

class _red_27(_Step):
    def __call__(self, a: Any, b: Any, policy: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """What lies at a becomes it + b. ``red [a], b{, policy}``, from PTX 6.3 sm_75."""

class _red_28(_Step):
    bf16: _red_36
    bf16x2: _red_36
    f16: _red_36
    f16x2: _red_36

class _red_29(_Step):
    def __call__(self, a: Any, b: Any, policy: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """Each element at a becomes it + b. ``red [a], {b, ..}{, policy}``, from PTX 8.1 sm_90."""

class _red_30(_Step):
    sys: _red_37

class _red_31(_Step):
    mbarrier__complete_tx__bytes: _red_38
    shared__cluster: _red_39

class _red_32(_Step):
    add: _red_40
    and_: _red_41
    dec: _red_42
    global_: _red_43
    inc: _red_42
    max: _red_44
    min: _red_44
    or_: _red_41
    xor: _red_41

class _red_33(_Step):
    v2: _red_28
    v4: _red_28
    v8: _red_28

class _red_34(_Step):
    f32: _red_11
    f64: _red_11
    s32: _red_11
    u32: _red_11
    u64: _red_11

class _red_35(_Step):
    L2__cache_hint: _red_45
    bf16: _red_27
    bf16x2: _red_27
    f16: _red_27
    f16x2: _red_27
    f32: _red_27

class _red_36(_Step):
    def __call__(self, a: Any, b: Any, policy: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """Each element at a becomes it op b. ``red [a], {b, ..}{, policy}``, from PTX 8.1 sm_90."""

class _red_37(_Step):
    add: _red_46
    and_: _red_47
    dec: _red_48
    global_: _red_49
    inc: _red_48
    max: _red_50
    min: _red_50
    or_: _red_47
    xor: _red_47

class _red_38(_Step):
    add: _red_51
    and_: _red_52
    dec: _red_53
    inc: _red_53
    max: _red_54
    min: _red_54
    or_: _red_52
    xor: _red_52

class _red_39(_Step):
    mbarrier__complete_tx__bytes: _red_38

class _red_40(_Step):
    s32: _red_55
    s64: _red_55
    u32: _red_55
    u64: _red_55

class _red_41(_Step):
    b32: _red_55

class _red_42(_Step):
    u32: _red_55

class _red_43(_Step):
    add: _red_40
    and_: _red_41
    dec: _red_42
    inc: _red_42
    max: _red_44
    min: _red_44
    or_: _red_41
    xor: _red_41

class _red_44(_Step):
    s32: _red_55
    u32: _red_55

class _red_45(_Step):
    bf16: _red_27
    bf16x2: _red_27
    f16: _red_27
    f16x2: _red_27
    f32: _red_27

class _red_46(_Step):
    s32: _red_56
    s64: _red_56
    u32: _red_56
    u64: _red_56

class _red_47(_Step):
    b32: _red_56

class _red_48(_Step):
    u32: _red_56

class _red_49(_Step):
    add: _red_46
    and_: _red_47
    dec: _red_48
    inc: _red_48
    max: _red_50
    min: _red_50
    or_: _red_47
    xor: _red_47

class _red_50(_Step):
    s32: _red_56
    u32: _red_56

class _red_51(_Step):
    s32: _red_57
    s64: _red_57
    u32: _red_57
    u64: _red_57

class _red_52(_Step):
    b32: _red_57

class _red_53(_Step):
    u32: _red_57

class _red_54(_Step):
    s32: _red_57
    u32: _red_57

class _red_55(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Combines b into a after all earlier accesses, without waiting. ``red [a], b``, from PTX 8.7 sm_100."""

class _red_56(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Combines b into a after all earlier accesses, for memory-mapped devices. ``red [a], b``, from PTX 8.7 sm_100."""

class _red_57(_Step):
    def __call__(self, a: Any, b: Any, mbar: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Combines b into a of another block; the mbarrier there counts the bytes. ``red [a], b, [mbar]``, from PTX 8.1 sm_90."""

class _redux(_Step):
    sync: _redux_1

class _redux_1(_Step):
    add: _redux_2
    and_: _redux_3
    max: _redux_4
    min: _redux_4
    or_: _redux_3
    xor: _redux_3

class _redux_2(_Step):
    s32: _redux_5
    u32: _redux_5

class _redux_3(_Step):
    b32: _redux_6

class _redux_4(_Step):
    NaN: _redux_7
    abs: _redux_8
    f32: _redux_9
    s32: _redux_5
    u32: _redux_5

class _redux_5(_Step):
    def __call__(self, a: Any, membermask: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The sum, least or greatest of a over the lanes. ``redux d, a, membermask``, from PTX 7.0 sm_80."""

class _redux_6(_Step):
    def __call__(self, a: Any, membermask: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The bitwise combination of a over the lanes. ``redux d, a, membermask``, from PTX 7.0 sm_80."""

class _redux_7(_Step):
    f32: _redux_9

class _redux_8(_Step):
    NaN: _redux_7
    f32: _redux_9

class _redux_9(_Step):
    def __call__(self, a: Any, membermask: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The least or greatest of a over the lanes. ``redux d, a, membermask``, from PTX 8.8 sm_100f."""

class _rem(_Step):
    s16: _rem_1
    s32: _rem_1
    s64: _rem_1
    u16: _rem_1
    u32: _rem_1
    u64: _rem_1

class _rem_1(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a mod b, of the sign of a. ``rem d, a, b``, from PTX 6.3 sm_75."""

class _ret(_Step):
    uni: _ret_1
    def __call__(self, *, out: Any = None, pred: Any = None) -> None:
        """Returns from the function; in a kernel, ends the thread. ``ret ``, from PTX 6.3 sm_75."""

class _ret_1(_Step):
    def __call__(self, *, out: Any = None, pred: Any = None) -> None:
        """Returns from the function; in a kernel, ends the thread. ``ret ``, from PTX 6.3 sm_75."""

class _rsqrt(_Step):
    approx: _rsqrt_1

class _rsqrt_1(_Step):
    f32: _rsqrt_2
    f64: _rsqrt_3
    ftz: _rsqrt_4

class _rsqrt_2(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """1 / sqrt(a), relative error at most 2^-22.9. ``rsqrt d, a``, from PTX 6.3 sm_75."""

class _rsqrt_3(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """A rough 1 / sqrt(a). ``rsqrt d, a``, from PTX 6.3 sm_75."""

class _rsqrt_4(_Step):
    f32: _rsqrt_2
    f64: _rsqrt_5

class _rsqrt_5(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """A rough 1 / sqrt(a): the upper 32 bits only. ``rsqrt d, a``, from PTX 6.3 sm_75."""

class _sad(_Step):
    s16: _sad_1
    s32: _sad_1
    s64: _sad_1
    u16: _sad_1
    u32: _sad_1
    u64: _sad_1

class _sad_1(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = |a - b| + c. ``sad d, a, b, c``, from PTX 6.3 sm_75."""

class _selp(_Step):
    b16: _selp_1
    b32: _selp_1
    b64: _selp_1
    f32: _selp_1
    f64: _selp_1
    s16: _selp_1
    s32: _selp_1
    s64: _selp_1
    u16: _selp_1
    u32: _selp_1
    u64: _selp_1

class _selp_1(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """a if c, else b. ``selp d, a, b, {!}c``, from PTX 6.3 sm_75."""

class _set(_Step):
    eq: _set_1
    equ: _set_2
    ge: _set_3
    geu: _set_2
    gt: _set_3
    gtu: _set_2
    hi: _set_4
    hs: _set_4
    le: _set_3
    leu: _set_2
    lo: _set_4
    ls: _set_4
    lt: _set_3
    ltu: _set_2
    nan: _set_2
    ne: _set_1
    neu: _set_2
    num: _set_2

class _set_1(_Step):
    and_: _set_5
    bf16: _set_6
    bf16x2: _set_7
    f16: _set_6
    f16x2: _set_7
    f32: _set_8
    ftz: _set_9
    or_: _set_5
    s16: _set_10
    s16x2: _set_11
    s32: _set_12
    s8x4: _set_11
    u16: _set_10
    u16x2: _set_11
    u32: _set_12
    u8x4: _set_11
    xor: _set_5

class _set_2(_Step):
    and_: _set_13
    bf16: _set_14
    bf16x2: _set_7
    f16: _set_14
    f16x2: _set_7
    f32: _set_15
    ftz: _set_9
    or_: _set_13
    s16: _set_10
    s32: _set_16
    u16: _set_10
    u32: _set_16
    xor: _set_13

class _set_3(_Step):
    and_: _set_17
    bf16: _set_18
    bf16x2: _set_7
    f16: _set_18
    f16x2: _set_7
    f32: _set_19
    ftz: _set_9
    or_: _set_17
    s16: _set_10
    s16x2: _set_11
    s32: _set_20
    s8x4: _set_11
    u16: _set_10
    u16x2: _set_11
    u32: _set_20
    u8x4: _set_11
    xor: _set_17

class _set_4(_Step):
    and_: _set_21
    bf16: _set_22
    f16: _set_22
    f32: _set_22
    or_: _set_21
    s32: _set_22
    u32: _set_22
    xor: _set_21

class _set_5(_Step):
    bf16: _set_6
    bf16x2: _set_7
    f16: _set_6
    f16x2: _set_7
    f32: _set_8
    ftz: _set_9
    s16: _set_10
    s32: _set_12
    u16: _set_10
    u32: _set_12

class _set_6(_Step):
    b16: _set_23
    b32: _set_23
    b64: _set_23
    bf16: _set_24
    f16: _set_24
    f32: _set_25
    f64: _set_25
    s16: _set_26
    s32: _set_26
    s64: _set_26
    u16: _set_27
    u32: _set_27
    u64: _set_27

class _set_7(_Step):
    bf16x2: _set_28
    f16x2: _set_28

class _set_8(_Step):
    b16: _set_23
    b32: _set_23
    b64: _set_23
    f32: _set_25
    f64: _set_25
    s16: _set_26
    s32: _set_26
    s64: _set_26
    u16: _set_27
    u32: _set_27
    u64: _set_27

class _set_9(_Step):
    bf16: _set_14
    bf16x2: _set_7
    f16: _set_14
    f16x2: _set_7
    f32: _set_15
    s16: _set_10
    s32: _set_16
    u16: _set_10
    u32: _set_16

class _set_10(_Step):
    bf16: _set_29
    f16: _set_29

class _set_11(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """1 in each lane where a cmp b, else 0. ``set d, a, b``, from PTX 9.4 sm_107f."""

class _set_12(_Step):
    b16: _set_23
    b32: _set_23
    b64: _set_23
    bf16: _set_29
    bf16x2: _set_30
    f16: _set_29
    f16x2: _set_30
    f32: _set_25
    f64: _set_25
    s16: _set_26
    s32: _set_26
    s64: _set_26
    u16: _set_27
    u32: _set_27
    u64: _set_27

class _set_13(_Step):
    bf16: _set_14
    bf16x2: _set_7
    f16: _set_14
    f16x2: _set_7
    f32: _set_15
    ftz: _set_9
    s16: _set_10
    s32: _set_16
    u16: _set_10
    u32: _set_16

class _set_14(_Step):
    bf16: _set_24
    f16: _set_24
    f32: _set_25
    f64: _set_25

class _set_15(_Step):
    f32: _set_25
    f64: _set_25

class _set_16(_Step):
    bf16: _set_29
    bf16x2: _set_30
    f16: _set_29
    f16x2: _set_30
    f32: _set_25
    f64: _set_25

class _set_17(_Step):
    bf16: _set_18
    bf16x2: _set_7
    f16: _set_18
    f16x2: _set_7
    f32: _set_19
    ftz: _set_9
    s16: _set_10
    s32: _set_20
    u16: _set_10
    u32: _set_20

class _set_18(_Step):
    bf16: _set_24
    f16: _set_24
    f32: _set_25
    f64: _set_25
    s16: _set_26
    s32: _set_26
    s64: _set_26
    u16: _set_27
    u32: _set_27
    u64: _set_27

class _set_19(_Step):
    f32: _set_25
    f64: _set_25
    s16: _set_26
    s32: _set_26
    s64: _set_26
    u16: _set_27
    u32: _set_27
    u64: _set_27

class _set_20(_Step):
    bf16: _set_29
    bf16x2: _set_30
    f16: _set_29
    f16x2: _set_30
    f32: _set_25
    f64: _set_25
    s16: _set_26
    s32: _set_26
    s64: _set_26
    u16: _set_27
    u32: _set_27
    u64: _set_27

class _set_21(_Step):
    bf16: _set_22
    f16: _set_22
    f32: _set_22
    s32: _set_22
    u32: _set_22

class _set_22(_Step):
    u16: _set_27
    u32: _set_27
    u64: _set_27

class _set_23(_Step):
    def __call__(self, a: Any, b: Any, c: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """All ones (integers) or 1.0 if a cmp b, else 0. ``set d, a, b{, {!}c}``, from PTX 6.3 sm_75."""

class _set_24(_Step):
    def __call__(self, a: Any, b: Any, c: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """1.0 if a cmp b, else 0. ``set d, a, b{, {!}c}``, from PTX 6.3 sm_75."""

class _set_25(_Step):
    def __call__(self, a: Any, b: Any, c: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """All ones (integers) or 1.0 if a cmp b, else 0. ``set d, a, b{, {!}c}``, from PTX 6.3 sm_75."""

class _set_26(_Step):
    def __call__(self, a: Any, b: Any, c: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """All ones (integers) or 1.0 if a cmp b, else 0. ``set d, a, b{, {!}c}``, from PTX 6.3 sm_75."""

class _set_27(_Step):
    def __call__(self, a: Any, b: Any, c: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """All ones (integers) or 1.0 if a cmp b, else 0. ``set d, a, b{, {!}c}``, from PTX 6.3 sm_75."""

class _set_28(_Step):
    def __call__(self, a: Any, b: Any, c: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """1.0 in each half where a cmp b, else 0. ``set d, a, b{, {!}c}``, from PTX 6.3 sm_75."""

class _set_29(_Step):
    def __call__(self, a: Any, b: Any, c: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """All ones if a cmp b, else 0. ``set d, a, b{, {!}c}``, from PTX 6.5 sm_75."""

class _set_30(_Step):
    def __call__(self, a: Any, b: Any, c: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """All ones in each half where a cmp b, else 0. ``set d, a, b{, {!}c}``, from PTX 6.5 sm_75."""

class _setmaxnreg(_Step):
    dec: _setmaxnreg_1
    inc: _setmaxnreg_1

class _setmaxnreg_1(_Step):
    sync: _setmaxnreg_2

class _setmaxnreg_2(_Step):
    aligned: _setmaxnreg_3

class _setmaxnreg_3(_Step):
    u32: _setmaxnreg_4

class _setmaxnreg_4(_Step):
    def __call__(self, count: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Changes the number of registers that a thread of the warpgroup may use. ``setmaxnreg count``, from PTX 8.0 sm_90a."""

class _setp(_Step):
    eq: _setp_1
    equ: _setp_2
    ge: _setp_3
    geu: _setp_2
    gt: _setp_3
    gtu: _setp_2
    hi: _setp_4
    hs: _setp_4
    le: _setp_3
    leu: _setp_2
    lo: _setp_4
    ls: _setp_4
    lt: _setp_3
    ltu: _setp_2
    nan: _setp_2
    ne: _setp_1
    neu: _setp_2
    num: _setp_2

class _setp_1(_Step):
    and_: _setp_5
    b16: _setp_6
    b32: _setp_6
    b64: _setp_6
    bf16: _setp_7
    bf16x2: _setp_8
    f16: _setp_7
    f16x2: _setp_8
    f32: _setp_9
    f64: _setp_9
    ftz: _setp_10
    or_: _setp_5
    s16: _setp_11
    s32: _setp_11
    s64: _setp_11
    u16: _setp_12
    u32: _setp_12
    u64: _setp_12
    xor: _setp_5

class _setp_2(_Step):
    and_: _setp_13
    bf16: _setp_7
    bf16x2: _setp_8
    f16: _setp_7
    f16x2: _setp_8
    f32: _setp_9
    f64: _setp_9
    ftz: _setp_10
    or_: _setp_13
    xor: _setp_13

class _setp_3(_Step):
    and_: _setp_14
    bf16: _setp_7
    bf16x2: _setp_8
    f16: _setp_7
    f16x2: _setp_8
    f32: _setp_9
    f64: _setp_9
    ftz: _setp_10
    or_: _setp_14
    s16: _setp_11
    s32: _setp_11
    s64: _setp_11
    u16: _setp_12
    u32: _setp_12
    u64: _setp_12
    xor: _setp_14

class _setp_4(_Step):
    and_: _setp_15
    or_: _setp_15
    u16: _setp_12
    u32: _setp_12
    u64: _setp_12
    xor: _setp_15

class _setp_5(_Step):
    b16: _setp_6
    b32: _setp_6
    b64: _setp_6
    bf16: _setp_7
    bf16x2: _setp_8
    f16: _setp_7
    f16x2: _setp_8
    f32: _setp_9
    f64: _setp_9
    ftz: _setp_10
    s16: _setp_11
    s32: _setp_11
    s64: _setp_11
    u16: _setp_12
    u32: _setp_12
    u64: _setp_12

class _setp_6(_Step):
    def __call__(self, a: Any, b: Any, c: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a cmp b, q = not d; each combined with c where there is a bool. ``setp d{|q}, a, b{, {!}c}``, from PTX 6.3 sm_75."""

class _setp_7(_Step):
    def __call__(self, a: Any, b: Any, c: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a cmp b, combined with c where there is a bool. ``setp d, a, b{, {!}c}``, from PTX 6.3 sm_75."""

class _setp_8(_Step):
    def __call__(self, a: Any, b: Any, c: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d and q: a cmp b in the lower and in the upper half; each combined with c where there is a bool. ``setp d|q, a, b{, {!}c}``, from PTX 6.3 sm_75."""

class _setp_9(_Step):
    def __call__(self, a: Any, b: Any, c: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a cmp b, q = not d; each combined with c where there is a bool. ``setp d{|q}, a, b{, {!}c}``, from PTX 6.3 sm_75."""

class _setp_10(_Step):
    bf16: _setp_7
    bf16x2: _setp_8
    f16: _setp_7
    f16x2: _setp_8
    f32: _setp_9
    f64: _setp_9

class _setp_11(_Step):
    def __call__(self, a: Any, b: Any, c: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a cmp b, q = not d; each combined with c where there is a bool. ``setp d{|q}, a, b{, {!}c}``, from PTX 6.3 sm_75."""

class _setp_12(_Step):
    def __call__(self, a: Any, b: Any, c: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a cmp b, q = not d; each combined with c where there is a bool. ``setp d{|q}, a, b{, {!}c}``, from PTX 6.3 sm_75."""

class _setp_13(_Step):
    bf16: _setp_7
    bf16x2: _setp_8
    f16: _setp_7
    f16x2: _setp_8
    f32: _setp_9
    f64: _setp_9
    ftz: _setp_10

class _setp_14(_Step):
    bf16: _setp_7
    bf16x2: _setp_8
    f16: _setp_7
    f16x2: _setp_8
    f32: _setp_9
    f64: _setp_9
    ftz: _setp_10
    s16: _setp_11
    s32: _setp_11
    s64: _setp_11
    u16: _setp_12
    u32: _setp_12
    u64: _setp_12

class _setp_15(_Step):
    u16: _setp_12
    u32: _setp_12
    u64: _setp_12

class _shf(_Step):
    l: _shf_1
    r: _shf_2

class _shf_1(_Step):
    clamp: _shf_3
    wrap: _shf_3

class _shf_2(_Step):
    clamp: _shf_4
    wrap: _shf_4

class _shf_3(_Step):
    b32: _shf_5

class _shf_4(_Step):
    b32: _shf_6

class _shf_5(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The upper 32 bits of b:a << c. ``shf d, a, b, c``, from PTX 6.3 sm_75."""

class _shf_6(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The lower 32 bits of b:a >> c. ``shf d, a, b, c``, from PTX 6.3 sm_75."""

class _shfl(_Step):
    bfly: _shfl_1
    down: _shfl_1
    idx: _shfl_1
    sync: _shfl_2
    up: _shfl_1

class _shfl_1(_Step):
    b32: _shfl_3

class _shfl_2(_Step):
    bfly: _shfl_4
    down: _shfl_4
    idx: _shfl_4
    up: _shfl_4

class _shfl_3(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """a of the lane that mode, b and c choose; p: whether it was within the segment. ``shfl d{|p}, a, b, c``, from PTX 6.3 sm_75."""

class _shfl_4(_Step):
    b32: _shfl_5

class _shfl_5(_Step):
    def __call__(self, a: Any, b: Any, c: Any, membermask: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """a of the lane that mode, b and c choose; p: whether it was within the segment. ``shfl d{|p}, a, b, c, membermask``, from PTX 6.3 sm_75."""

class _shl(_Step):
    b16: _shl_1
    b32: _shl_1
    b64: _shl_1

class _shl_1(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a << b; 0 where b exceeds the width. ``shl d, a, b``, from PTX 6.3 sm_75."""

class _shr(_Step):
    b16: _shr_1
    b32: _shr_1
    b64: _shr_1
    s16: _shr_1
    s32: _shr_1
    s64: _shr_1
    u16: _shr_1
    u32: _shr_1
    u64: _shr_1

class _shr_1(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a >> b, filled with the sign for signed types. ``shr d, a, b``, from PTX 6.3 sm_75."""

class _sin(_Step):
    approx: _sin_1

class _sin_1(_Step):
    f32: _sin_2
    ftz: _sin_3

class _sin_2(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """sin(a), absolute error at most 2^-20.5 in [-2pi, 2pi]. ``sin d, a``, from PTX 6.3 sm_75."""

class _sin_3(_Step):
    f32: _sin_2

class _slct(_Step):
    b16: _slct_1
    b32: _slct_1
    b64: _slct_1
    f32: _slct_1
    f64: _slct_1
    ftz: _slct_2
    s16: _slct_1
    s32: _slct_1
    s64: _slct_1
    u16: _slct_1
    u32: _slct_1
    u64: _slct_1

class _slct_1(_Step):
    f32: _slct_3
    s32: _slct_3

class _slct_2(_Step):
    b16: _slct_1
    b32: _slct_1
    b64: _slct_1
    f32: _slct_1
    f64: _slct_1
    s16: _slct_1
    s32: _slct_1
    s64: _slct_1
    u16: _slct_1
    u32: _slct_1
    u64: _slct_1

class _slct_3(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """a if c >= 0, else b. ``slct d, a, b, c``, from PTX 6.3 sm_75."""

class _spcompress(_Step):
    b16: _spcompress_1
    b8: _spcompress_1

class _spcompress_1(_Step):
    b2: _spcompress_2
    b4: _spcompress_2

class _spcompress_2(_Step):
    pass

class _spdecompress(_Step):
    b16: _spdecompress_1
    b8: _spdecompress_1

class _spdecompress_1(_Step):
    b2: _spdecompress_2
    b4: _spdecompress_2

class _spdecompress_2(_Step):
    pass

class _sqrt(_Step):
    approx: _sqrt_1
    rm: _sqrt_2
    rn: _sqrt_2
    rp: _sqrt_2
    rz: _sqrt_2

class _sqrt_1(_Step):
    f32: _sqrt_3
    ftz: _sqrt_4

class _sqrt_2(_Step):
    f32: _sqrt_5
    f64: _sqrt_6
    ftz: _sqrt_7

class _sqrt_3(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The square root of a, relative error at most 2^-23. ``sqrt d, a``, from PTX 6.3 sm_75."""

class _sqrt_4(_Step):
    f32: _sqrt_3

class _sqrt_5(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The square root of a. ``sqrt d, a``, from PTX 6.3 sm_75."""

class _sqrt_6(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The square root of a. ``sqrt d, a``, from PTX 6.3 sm_75."""

class _sqrt_7(_Step):
    f32: _sqrt_5

class _st(_Step):
    L1__evict_first: _st_1
    L1__evict_last: _st_1
    L1__evict_normal: _st_1
    L1__evict_unchanged: _st_1
    L1__no_allocate: _st_1
    L2__cache_hint: _st_2
    L2__evict_first: _st_3
    L2__evict_last: _st_3
    L2__evict_normal: _st_3
    async_: _st_4
    b128: _st_5
    b16: _st_5
    b32: _st_5
    b64: _st_5
    b8: _st_5
    bulk: _st_6
    cg: _st_7
    cs: _st_7
    f32: _st_5
    f64: _st_5
    global_: _st_8
    local: _st_9
    mmio: _st_10
    param: _st_9
    param__func: _st_9
    relaxed: _st_11
    release: _st_11
    s16: _st_5
    s32: _st_5
    s64: _st_5
    s8: _st_5
    shared: _st_9
    shared__cluster: _st_9
    shared__cta: _st_9
    u16: _st_5
    u32: _st_5
    u64: _st_5
    u8: _st_5
    v2: _st_12
    v4: _st_12
    v8: _st_12
    volatile: _st_13
    wb: _st_7
    weak: _st_14
    wt: _st_7

class _st_1(_Step):
    L2__cache_hint: _st_15
    L2__evict_first: _st_3
    L2__evict_last: _st_3
    L2__evict_normal: _st_3
    b128: _st_16
    b16: _st_16
    b32: _st_16
    b64: _st_16
    b8: _st_16
    f32: _st_16
    f64: _st_16
    s16: _st_16
    s32: _st_16
    s64: _st_16
    s8: _st_16
    u16: _st_16
    u32: _st_16
    u64: _st_16
    u8: _st_16
    v2: _st_17
    v4: _st_17
    v8: _st_17

class _st_2(_Step):
    b128: _st_5
    b16: _st_5
    b32: _st_5
    b64: _st_5
    b8: _st_5
    f32: _st_5
    f64: _st_5
    s16: _st_5
    s32: _st_5
    s64: _st_5
    s8: _st_5
    u16: _st_5
    u32: _st_5
    u64: _st_5
    u8: _st_5
    v2: _st_12
    v4: _st_12
    v8: _st_12

class _st_3(_Step):
    L2__cache_hint: _st_15
    b128: _st_16
    b16: _st_16
    b32: _st_16
    b64: _st_16
    b8: _st_16
    f32: _st_16
    f64: _st_16
    s16: _st_16
    s32: _st_16
    s64: _st_16
    s8: _st_16
    u16: _st_16
    u32: _st_16
    u64: _st_16
    u8: _st_16
    v2: _st_17
    v4: _st_17
    v8: _st_17

class _st_4(_Step):
    mbarrier__complete_tx__bytes: _st_18
    mmio: _st_19
    release: _st_20
    shared__cluster: _st_21
    weak: _st_22

class _st_5(_Step):
    def __call__(self, a: Any, b: Any, policy: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """Writes b to a. ``st [a], {b, ..}{, policy}``, from PTX 6.3 sm_75.
        Writes b to a, with a wish how long the caches keep it. ``st [a], {b, ..}{, policy}``, from PTX 6.3 sm_75."""

class _st_6(_Step):
    shared__cta: _st_23
    weak: _st_24
    def __call__(self, a: Any, size: Any, value: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Writes 0 to the size bytes from a. ``st [a], size, value``, from PTX 8.6 sm_100."""

class _st_7(_Step):
    L2__cache_hint: _st_25
    b128: _st_26
    b16: _st_26
    b32: _st_26
    b64: _st_26
    b8: _st_26
    f32: _st_26
    f64: _st_26
    s16: _st_26
    s32: _st_26
    s64: _st_26
    s8: _st_26
    u16: _st_26
    u32: _st_26
    u64: _st_26
    u8: _st_26
    v2: _st_27
    v4: _st_27
    v8: _st_27

class _st_8(_Step):
    L1__evict_first: _st_1
    L1__evict_last: _st_1
    L1__evict_normal: _st_1
    L1__evict_unchanged: _st_1
    L1__no_allocate: _st_1
    L2__cache_hint: _st_2
    L2__evict_first: _st_3
    L2__evict_last: _st_3
    L2__evict_normal: _st_3
    b128: _st_5
    b16: _st_5
    b32: _st_5
    b64: _st_5
    b8: _st_5
    cg: _st_7
    cs: _st_7
    f32: _st_5
    f64: _st_5
    s16: _st_5
    s32: _st_5
    s64: _st_5
    s8: _st_5
    u16: _st_5
    u32: _st_5
    u64: _st_5
    u8: _st_5
    v2: _st_12
    v4: _st_12
    v8: _st_12
    wb: _st_7
    wt: _st_7

class _st_9(_Step):
    b128: _st_28
    b16: _st_28
    b32: _st_28
    b64: _st_28
    b8: _st_28
    cg: _st_29
    cs: _st_29
    f32: _st_28
    f64: _st_28
    s16: _st_28
    s32: _st_28
    s64: _st_28
    s8: _st_28
    u16: _st_28
    u32: _st_28
    u64: _st_28
    u8: _st_28
    v2: _st_30
    v4: _st_30
    wb: _st_29
    wt: _st_29

class _st_10(_Step):
    relaxed: _st_31
    release: _st_31

class _st_11(_Step):
    cluster: _st_32
    cta: _st_32
    gpu: _st_32
    sys: _st_32

class _st_12(_Step):
    b128: _st_5
    b16: _st_5
    b32: _st_5
    b64: _st_5
    b8: _st_5
    f32: _st_5
    f64: _st_5
    s16: _st_5
    s32: _st_5
    s64: _st_5
    s8: _st_5
    u16: _st_5
    u32: _st_5
    u64: _st_5
    u8: _st_5

class _st_13(_Step):
    b128: _st_33
    b16: _st_33
    b32: _st_33
    b64: _st_33
    b8: _st_33
    f32: _st_33
    f64: _st_33
    global_: _st_34
    local: _st_34
    s16: _st_33
    s32: _st_33
    s64: _st_33
    s8: _st_33
    shared: _st_34
    shared__cluster: _st_34
    shared__cta: _st_34
    u16: _st_33
    u32: _st_33
    u64: _st_33
    u8: _st_33
    v2: _st_35
    v4: _st_35

class _st_14(_Step):
    L1__evict_first: _st_1
    L1__evict_last: _st_1
    L1__evict_normal: _st_1
    L1__evict_unchanged: _st_1
    L1__no_allocate: _st_1
    L2__cache_hint: _st_2
    L2__evict_first: _st_3
    L2__evict_last: _st_3
    L2__evict_normal: _st_3
    b128: _st_5
    b16: _st_5
    b32: _st_5
    b64: _st_5
    b8: _st_5
    cg: _st_7
    cs: _st_7
    f32: _st_5
    f64: _st_5
    global_: _st_8
    local: _st_9
    param: _st_9
    param__func: _st_9
    s16: _st_5
    s32: _st_5
    s64: _st_5
    s8: _st_5
    shared: _st_9
    shared__cluster: _st_9
    shared__cta: _st_9
    u16: _st_5
    u32: _st_5
    u64: _st_5
    u8: _st_5
    v2: _st_12
    v4: _st_12
    v8: _st_12
    wb: _st_7
    wt: _st_7

class _st_15(_Step):
    b128: _st_16
    b16: _st_16
    b32: _st_16
    b64: _st_16
    b8: _st_16
    f32: _st_16
    f64: _st_16
    s16: _st_16
    s32: _st_16
    s64: _st_16
    s8: _st_16
    u16: _st_16
    u32: _st_16
    u64: _st_16
    u8: _st_16
    v2: _st_17
    v4: _st_17
    v8: _st_17

class _st_16(_Step):
    def __call__(self, a: Any, b: Any, policy: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """Writes b to a, with a wish how long the caches keep it. ``st [a], {b, ..}{, policy}``, from PTX 6.3 sm_75."""

class _st_17(_Step):
    b128: _st_16
    b16: _st_16
    b32: _st_16
    b64: _st_16
    b8: _st_16
    f32: _st_16
    f64: _st_16
    s16: _st_16
    s32: _st_16
    s64: _st_16
    s8: _st_16
    u16: _st_16
    u32: _st_16
    u64: _st_16
    u8: _st_16

class _st_18(_Step):
    b32: _st_36
    b64: _st_36
    f32: _st_36
    f64: _st_36
    s32: _st_36
    s64: _st_36
    u32: _st_36
    u64: _st_36
    v2: _st_37
    v4: _st_37

class _st_19(_Step):
    release: _st_38

class _st_20(_Step):
    gpu: _st_39
    sys: _st_39

class _st_21(_Step):
    mbarrier__complete_tx__bytes: _st_18

class _st_22(_Step):
    mbarrier__complete_tx__bytes: _st_18
    shared__cluster: _st_21

class _st_23(_Step):
    def __call__(self, a: Any, size: Any, value: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Writes 0 to the size bytes from a. ``st [a], size, value``, from PTX 8.6 sm_100."""

class _st_24(_Step):
    shared__cta: _st_23
    def __call__(self, a: Any, size: Any, value: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Writes 0 to the size bytes from a. ``st [a], size, value``, from PTX 8.6 sm_100."""

class _st_25(_Step):
    b128: _st_26
    b16: _st_26
    b32: _st_26
    b64: _st_26
    b8: _st_26
    f32: _st_26
    f64: _st_26
    s16: _st_26
    s32: _st_26
    s64: _st_26
    s8: _st_26
    u16: _st_26
    u32: _st_26
    u64: _st_26
    u8: _st_26
    v2: _st_27
    v4: _st_27
    v8: _st_27

class _st_26(_Step):
    def __call__(self, a: Any, b: Any, policy: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """Writes b to a. ``st [a], {b, ..}{, policy}``, from PTX 6.3 sm_75."""

class _st_27(_Step):
    b128: _st_26
    b16: _st_26
    b32: _st_26
    b64: _st_26
    b8: _st_26
    f32: _st_26
    f64: _st_26
    s16: _st_26
    s32: _st_26
    s64: _st_26
    s8: _st_26
    u16: _st_26
    u32: _st_26
    u64: _st_26
    u8: _st_26

class _st_28(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Writes b to a. ``st [a], {b, ..}``, from PTX 6.3 sm_75."""

class _st_29(_Step):
    b128: _st_28
    b16: _st_28
    b32: _st_28
    b64: _st_28
    b8: _st_28
    f32: _st_28
    f64: _st_28
    s16: _st_28
    s32: _st_28
    s64: _st_28
    s8: _st_28
    u16: _st_28
    u32: _st_28
    u64: _st_28
    u8: _st_28
    v2: _st_30
    v4: _st_30

class _st_30(_Step):
    b128: _st_28
    b16: _st_28
    b32: _st_28
    b64: _st_28
    b8: _st_28
    f32: _st_28
    f64: _st_28
    s16: _st_28
    s32: _st_28
    s64: _st_28
    s8: _st_28
    u16: _st_28
    u32: _st_28
    u64: _st_28
    u8: _st_28

class _st_31(_Step):
    sys: _st_40

class _st_32(_Step):
    L1__evict_first: _st_41
    L1__evict_last: _st_41
    L1__evict_normal: _st_41
    L1__evict_unchanged: _st_41
    L1__no_allocate: _st_41
    L2__cache_hint: _st_42
    L2__evict_first: _st_43
    L2__evict_last: _st_43
    L2__evict_normal: _st_43
    b128: _st_44
    b16: _st_44
    b32: _st_44
    b64: _st_44
    b8: _st_44
    f32: _st_44
    f64: _st_44
    global_: _st_45
    s16: _st_44
    s32: _st_44
    s64: _st_44
    s8: _st_44
    shared: _st_46
    shared__cluster: _st_46
    shared__cta: _st_46
    u16: _st_44
    u32: _st_44
    u64: _st_44
    u8: _st_44
    v2: _st_47
    v4: _st_47
    v8: _st_47

class _st_33(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Writes b to a, not to be left out, merged or moved. ``st [a], {b, ..}``, from PTX 6.3 sm_75."""

class _st_34(_Step):
    b128: _st_33
    b16: _st_33
    b32: _st_33
    b64: _st_33
    b8: _st_33
    f32: _st_33
    f64: _st_33
    s16: _st_33
    s32: _st_33
    s64: _st_33
    s8: _st_33
    u16: _st_33
    u32: _st_33
    u64: _st_33
    u8: _st_33
    v2: _st_35
    v4: _st_35

class _st_35(_Step):
    b128: _st_33
    b16: _st_33
    b32: _st_33
    b64: _st_33
    b8: _st_33
    f32: _st_33
    f64: _st_33
    s16: _st_33
    s32: _st_33
    s64: _st_33
    s8: _st_33
    u16: _st_33
    u32: _st_33
    u64: _st_33
    u8: _st_33

class _st_36(_Step):
    def __call__(self, a: Any, b: Any, mbar: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Writes b to a of another block; the mbarrier there counts the bytes. ``st [a], {b, ..}, [mbar]``, from PTX 8.1 sm_90."""

class _st_37(_Step):
    b32: _st_36
    b64: _st_36
    f32: _st_36
    f64: _st_36
    s32: _st_36
    s64: _st_36
    u32: _st_36
    u64: _st_36

class _st_38(_Step):
    sys: _st_48

class _st_39(_Step):
    b16: _st_49
    b32: _st_49
    b64: _st_49
    b8: _st_49
    f32: _st_49
    f64: _st_49
    global_: _st_50
    s16: _st_49
    s32: _st_49
    s64: _st_49
    s8: _st_49
    u16: _st_49
    u32: _st_49
    u64: _st_49
    u8: _st_49

class _st_40(_Step):
    b128: _st_51
    b16: _st_51
    b32: _st_51
    b64: _st_51
    b8: _st_51
    f32: _st_51
    f64: _st_51
    global_: _st_52
    s16: _st_51
    s32: _st_51
    s64: _st_51
    s8: _st_51
    u16: _st_51
    u32: _st_51
    u64: _st_51
    u8: _st_51

class _st_41(_Step):
    L2__cache_hint: _st_42
    L2__evict_first: _st_43
    L2__evict_last: _st_43
    L2__evict_normal: _st_43
    b128: _st_44
    b16: _st_44
    b32: _st_44
    b64: _st_44
    b8: _st_44
    f32: _st_44
    f64: _st_44
    s16: _st_44
    s32: _st_44
    s64: _st_44
    s8: _st_44
    u16: _st_44
    u32: _st_44
    u64: _st_44
    u8: _st_44
    v2: _st_47
    v4: _st_47
    v8: _st_47

class _st_42(_Step):
    b128: _st_44
    b16: _st_44
    b32: _st_44
    b64: _st_44
    b8: _st_44
    f32: _st_44
    f64: _st_44
    s16: _st_44
    s32: _st_44
    s64: _st_44
    s8: _st_44
    u16: _st_44
    u32: _st_44
    u64: _st_44
    u8: _st_44
    v2: _st_47
    v4: _st_47
    v8: _st_47

class _st_43(_Step):
    L2__cache_hint: _st_42
    b128: _st_44
    b16: _st_44
    b32: _st_44
    b64: _st_44
    b8: _st_44
    f32: _st_44
    f64: _st_44
    s16: _st_44
    s32: _st_44
    s64: _st_44
    s8: _st_44
    u16: _st_44
    u32: _st_44
    u64: _st_44
    u8: _st_44
    v2: _st_47
    v4: _st_47
    v8: _st_47

class _st_44(_Step):
    def __call__(self, a: Any, b: Any, policy: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """Writes b to a, in the order of the memory model. ``st [a], {b, ..}{, policy}``, from PTX 6.3 sm_75."""

class _st_45(_Step):
    L1__evict_first: _st_41
    L1__evict_last: _st_41
    L1__evict_normal: _st_41
    L1__evict_unchanged: _st_41
    L1__no_allocate: _st_41
    L2__cache_hint: _st_42
    L2__evict_first: _st_43
    L2__evict_last: _st_43
    L2__evict_normal: _st_43
    b128: _st_44
    b16: _st_44
    b32: _st_44
    b64: _st_44
    b8: _st_44
    f32: _st_44
    f64: _st_44
    s16: _st_44
    s32: _st_44
    s64: _st_44
    s8: _st_44
    u16: _st_44
    u32: _st_44
    u64: _st_44
    u8: _st_44
    v2: _st_47
    v4: _st_47
    v8: _st_47

class _st_46(_Step):
    b128: _st_53
    b16: _st_53
    b32: _st_53
    b64: _st_53
    b8: _st_53
    f32: _st_53
    f64: _st_53
    s16: _st_53
    s32: _st_53
    s64: _st_53
    s8: _st_53
    u16: _st_53
    u32: _st_53
    u64: _st_53
    u8: _st_53
    v2: _st_54
    v4: _st_54

class _st_47(_Step):
    b128: _st_44
    b16: _st_44
    b32: _st_44
    b64: _st_44
    b8: _st_44
    f32: _st_44
    f64: _st_44
    s16: _st_44
    s32: _st_44
    s64: _st_44
    s8: _st_44
    u16: _st_44
    u32: _st_44
    u64: _st_44
    u8: _st_44

class _st_48(_Step):
    b16: _st_55
    b32: _st_55
    b64: _st_55
    b8: _st_55
    f32: _st_55
    f64: _st_55
    global_: _st_56
    s16: _st_55
    s32: _st_55
    s64: _st_55
    s8: _st_55
    u16: _st_55
    u32: _st_55
    u64: _st_55
    u8: _st_55

class _st_49(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Writes b to a after all earlier accesses, without waiting. ``st [a], b``, from PTX 8.7 sm_100."""

class _st_50(_Step):
    b16: _st_49
    b32: _st_49
    b64: _st_49
    b8: _st_49
    f32: _st_49
    f64: _st_49
    s16: _st_49
    s32: _st_49
    s64: _st_49
    s8: _st_49
    u16: _st_49
    u32: _st_49
    u64: _st_49
    u8: _st_49

class _st_51(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Writes b to a, for memory-mapped devices: exactly one access. ``st [a], b``, from PTX 8.2 sm_75."""

class _st_52(_Step):
    b128: _st_51
    b16: _st_51
    b32: _st_51
    b64: _st_51
    b8: _st_51
    f32: _st_51
    f64: _st_51
    s16: _st_51
    s32: _st_51
    s64: _st_51
    s8: _st_51
    u16: _st_51
    u32: _st_51
    u64: _st_51
    u8: _st_51

class _st_53(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Writes b to a, in the order of the memory model. ``st [a], {b, ..}``, from PTX 6.3 sm_75."""

class _st_54(_Step):
    b128: _st_53
    b16: _st_53
    b32: _st_53
    b64: _st_53
    b8: _st_53
    f32: _st_53
    f64: _st_53
    s16: _st_53
    s32: _st_53
    s64: _st_53
    s8: _st_53
    u16: _st_53
    u32: _st_53
    u64: _st_53
    u8: _st_53

class _st_55(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Writes b to a after all earlier accesses, for memory-mapped devices. ``st [a], b``, from PTX 8.7 sm_100."""

class _st_56(_Step):
    b16: _st_55
    b32: _st_55
    b64: _st_55
    b8: _st_55
    f32: _st_55
    f64: _st_55
    s16: _st_55
    s32: _st_55
    s64: _st_55
    s8: _st_55
    u16: _st_55
    u32: _st_55
    u64: _st_55
    u8: _st_55

class _stackrestore(_Step):
    u32: _stackrestore_1
    u64: _stackrestore_1

class _stackrestore_1(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Frees what was allocated since the stacksave that gave a. ``stackrestore a``, from PTX 7.3 sm_75."""

class _stacksave(_Step):
    u32: _stacksave_1
    u64: _stacksave_1

class _stacksave_1(_Step):
    def __call__(self, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The stack pointer, for stackrestore. ``stacksave d``, from PTX 7.3 sm_75."""

class _stmatrix(_Step):
    sync: _stmatrix_1

class _stmatrix_1(_Step):
    aligned: _stmatrix_2

class _stmatrix_2(_Step):
    m16n8: _stmatrix_3
    m8n8: _stmatrix_4

class _stmatrix_3(_Step):
    x1: _stmatrix_5
    x2: _stmatrix_5
    x4: _stmatrix_5

class _stmatrix_4(_Step):
    x1: _stmatrix_6
    x2: _stmatrix_6
    x4: _stmatrix_6

class _stmatrix_5(_Step):
    trans: _stmatrix_7

class _stmatrix_6(_Step):
    b16: _stmatrix_8
    shared: _stmatrix_9
    shared__cta: _stmatrix_9
    trans: _stmatrix_10

class _stmatrix_7(_Step):
    b8: _stmatrix_11
    shared: _stmatrix_12
    shared__cta: _stmatrix_12

class _stmatrix_8(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Stores 1, 2 or 4 matrices of 8x8 halves to the rows that the lanes' addresses name. ``stmatrix [a], {b, ..}``, from PTX 7.8 sm_90."""

class _stmatrix_9(_Step):
    b16: _stmatrix_8

class _stmatrix_10(_Step):
    b16: _stmatrix_8
    shared: _stmatrix_9
    shared__cta: _stmatrix_9

class _stmatrix_11(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Stores 1, 2 or 4 transposed matrices of 16x8 bytes. ``stmatrix [a], {b, ..}``, from PTX 8.8 sm_100f."""

class _stmatrix_12(_Step):
    b8: _stmatrix_11

class _sub(_Step):
    bf16: _sub_1
    bf16x2: _sub_2
    cc: _sub_3
    e4m3x4: _sub_4
    e5m2x4: _sub_4
    f16: _sub_5
    f16x2: _sub_5
    f32: _sub_6
    f32x2: _sub_7
    f64: _sub_8
    ftz: _sub_9
    rm: _sub_10
    rn: _sub_11
    rp: _sub_10
    rz: _sub_12
    s16: _sub_13
    s32: _sub_13
    s64: _sub_13
    s8x4: _sub_13
    sat: _sub_14
    satfinite: _sub_15
    u16: _sub_13
    u32: _sub_13
    u64: _sub_13
    u8x4: _sub_13

class _sub_1(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a - b. ``sub d, a, b``, from PTX 7.8 sm_90."""

class _sub_2(_Step):
    f32x2: _sub_16
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a - b. ``sub d, a, b``, from PTX 7.8 sm_90."""

class _sub_3(_Step):
    s32: _sub_17
    s64: _sub_17
    u32: _sub_17
    u64: _sub_17

class _sub_4(_Step):
    e2m1p4x4: _sub_18
    e2m1x4: _sub_18
    e2m3x4: _sub_18
    e3m2x4: _sub_18
    e4m3x4: _sub_18
    e5m2x4: _sub_18
    ue8m0x4: _sub_18

class _sub_5(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a - b. ``sub d, a, b``, from PTX 6.3 sm_75."""

class _sub_6(_Step):
    bf16: _sub_19
    f16: _sub_19
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a - b. ``sub d, a, b``, from PTX 6.3 sm_75."""

class _sub_7(_Step):
    bf16x2: _sub_20
    f16x2: _sub_20
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a - b in each half. ``sub d, a, b``, from PTX 8.6 sm_100."""

class _sub_8(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a - b. ``sub d, a, b``, from PTX 6.3 sm_75."""

class _sub_9(_Step):
    f16: _sub_5
    f16x2: _sub_21
    f32: _sub_22
    f32x2: _sub_23
    sat: _sub_24

class _sub_10(_Step):
    f32: _sub_6
    f32x2: _sub_7
    f64: _sub_8
    ftz: _sub_25
    sat: _sub_26

class _sub_11(_Step):
    bf16: _sub_1
    bf16x2: _sub_1
    e4m3x4: _sub_4
    e5m2x4: _sub_4
    f16: _sub_5
    f16x2: _sub_5
    f32: _sub_6
    f32x2: _sub_7
    f64: _sub_8
    ftz: _sub_27
    sat: _sub_28
    satfinite: _sub_15

class _sub_12(_Step):
    bf16x2: _sub_29
    f32: _sub_6
    f32x2: _sub_7
    f64: _sub_8
    ftz: _sub_30
    sat: _sub_26

class _sub_13(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a - b. ``sub d, a, b``, from PTX 6.3 sm_75."""

class _sub_14(_Step):
    f16: _sub_5
    f16x2: _sub_5
    f32: _sub_6
    s32: _sub_31
    s8x4: _sub_31
    u8x4: _sub_31

class _sub_15(_Step):
    e4m3x4: _sub_4
    e5m2x4: _sub_4

class _sub_16(_Step):
    f32x2: _sub_32

class _sub_17(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a - b; the borrow goes to CC. ``sub d, a, b``, from PTX 6.3 sm_75."""

class _sub_18(_Step):
    def __call__(self, a: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a - c in each lane. ``sub d, a, c``, from PTX 9.4 sm_100a."""

class _sub_19(_Step):
    def __call__(self, a: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a - c, a widened. ``sub d, a, c``, from PTX 8.6 sm_100."""

class _sub_20(_Step):
    f32x2: _sub_33

class _sub_21(_Step):
    f32x2: _sub_34
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a - b. ``sub d, a, b``, from PTX 6.3 sm_75."""

class _sub_22(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a - b. ``sub d, a, b``, from PTX 6.3 sm_75."""

class _sub_23(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a - b in each half. ``sub d, a, b``, from PTX 8.6 sm_100."""

class _sub_24(_Step):
    f16: _sub_5
    f16x2: _sub_5
    f32: _sub_22

class _sub_25(_Step):
    f32: _sub_22
    f32x2: _sub_23
    sat: _sub_35

class _sub_26(_Step):
    f32: _sub_6

class _sub_27(_Step):
    f16: _sub_5
    f16x2: _sub_5
    f32: _sub_22
    f32x2: _sub_23
    sat: _sub_24

class _sub_28(_Step):
    f16: _sub_5
    f16x2: _sub_5
    f32: _sub_6

class _sub_29(_Step):
    f32x2: _sub_16

class _sub_30(_Step):
    f16x2: _sub_36
    f32: _sub_22
    f32x2: _sub_23
    sat: _sub_35

class _sub_31(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a - b, clamped to the range of the type. ``sub d, a, b``, from PTX 6.3 sm_75."""

class _sub_32(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a - b in each half, narrowed. ``sub d, a, b``, from PTX 9.4 sm_107f."""

class _sub_33(_Step):
    def __call__(self, a: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a - c in each half, a widened. ``sub d, a, c``, from PTX 9.4 sm_107f."""

class _sub_34(_Step):
    f32x2: _sub_37

class _sub_35(_Step):
    f32: _sub_22

class _sub_36(_Step):
    f32x2: _sub_34

class _sub_37(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a - b in each half, narrowed. ``sub d, a, b``, from PTX 9.4 sm_107f."""

class _subc(_Step):
    cc: _subc_1
    s32: _subc_2
    s64: _subc_2
    u32: _subc_2
    u64: _subc_2

class _subc_1(_Step):
    s32: _subc_2
    s64: _subc_2
    u32: _subc_2
    u64: _subc_2

class _subc_2(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a - (b + borrow). ``subc d, a, b``, from PTX 6.3 sm_75."""

class _suld(_Step):
    b: _suld_1

class _suld_1(_Step):
    a1d: _suld_2
    a2d: _suld_2

class _suld_2(_Step):
    b16: _suld_3
    b32: _suld_3
    b64: _suld_3
    b8: _suld_3
    ca: _suld_4
    cg: _suld_4
    cs: _suld_4
    cv: _suld_4
    v2: _suld_5
    v4: _suld_5

class _suld_3(_Step):
    clamp: _suld_6
    trap: _suld_6
    zero: _suld_6

class _suld_4(_Step):
    b16: _suld_3
    b32: _suld_3
    b64: _suld_3
    b8: _suld_3
    v2: _suld_5
    v4: _suld_5

class _suld_5(_Step):
    b16: _suld_3
    b32: _suld_3
    b64: _suld_3
    b8: _suld_3

class _suld_6(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """What lies at c of a surface; outside: a trap, the nearest, or 0. ``suld {d, ..}, [a, c]``, from PTX 6.3 sm_75."""

class _suq(_Step):
    array_size: _suq_1
    channel_data_type: _suq_1
    channel_order: _suq_1
    depth: _suq_1
    height: _suq_1
    memory_layout: _suq_1
    width: _suq_1

class _suq_1(_Step):
    b32: _suq_2

class _suq_2(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """A property of a surface. ``suq d, [a]``, from PTX 6.3 sm_75."""

class _sured(_Step):
    b: _sured_1
    p: _sured_2

class _sured_1(_Step):
    add: _sured_3
    and_: _sured_3
    max: _sured_3
    min: _sured_3
    or_: _sured_3

class _sured_2(_Step):
    add: _sured_4
    and_: _sured_4
    max: _sured_4
    min: _sured_4
    or_: _sured_4

class _sured_3(_Step):
    pass

class _sured_4(_Step):
    pass

class _sust(_Step):
    b: _sust_1
    p: _sust_2

class _sust_1(_Step):
    a1d: _sust_3
    a2d: _sust_3

class _sust_2(_Step):
    pass

class _sust_3(_Step):
    b16: _sust_4
    b32: _sust_4
    b64: _sust_4
    b8: _sust_4
    cg: _sust_5
    cs: _sust_5
    v2: _sust_6
    v4: _sust_6
    wb: _sust_5
    wt: _sust_5

class _sust_4(_Step):
    clamp: _sust_7
    trap: _sust_7
    zero: _sust_7

class _sust_5(_Step):
    b16: _sust_4
    b32: _sust_4
    b64: _sust_4
    b8: _sust_4
    v2: _sust_6
    v4: _sust_6

class _sust_6(_Step):
    b16: _sust_4
    b32: _sust_4
    b64: _sust_4
    b8: _sust_4

class _sust_7(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Writes b at c of a surface; outside: a trap, the nearest, or nothing. ``sust [a, c], {b, ..}``, from PTX 6.3 sm_75."""

class _szext(_Step):
    clamp: _szext_1
    wrap: _szext_1

class _szext_1(_Step):
    s32: _szext_2
    u32: _szext_2

class _szext_2(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The lowest b bits of a, zero- or sign-extended. ``szext d, a, b``, from PTX 7.6 sm_75."""

class _tanh(_Step):
    approx: _tanh_1

class _tanh_1(_Step):
    bf16: _tanh_2
    bf16x2: _tanh_2
    f16: _tanh_2
    f16x2: _tanh_2
    f32: _tanh_3

class _tanh_2(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The hyperbolic tangent of a. ``tanh d, a``, from PTX 7.0 sm_75."""

class _tanh_3(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The hyperbolic tangent of a, relative error at most 2^-11. ``tanh d, a``, from PTX 7.0 sm_75."""

class _tcgen05(_Step):
    alloc: _tcgen05_1
    commit: _tcgen05_2
    cp: _tcgen05_3
    dealloc: _tcgen05_4
    fence__after_thread_sync: _tcgen05_5
    fence__before_thread_sync: _tcgen05_6
    ld: _tcgen05_7
    mma: _tcgen05_8
    relinquish_alloc_permit: _tcgen05_9
    shift: _tcgen05_10
    st: _tcgen05_11
    wait__ld: _tcgen05_12
    wait__st: _tcgen05_13

class _tcgen05_1(_Step):
    cta_group__1: _tcgen05_14
    cta_group__2: _tcgen05_14
    exclusive: _tcgen05_15

class _tcgen05_2(_Step):
    cta_group__1: _tcgen05_16
    cta_group__2: _tcgen05_16

class _tcgen05_3(_Step):
    cta_group__1: _tcgen05_17
    cta_group__2: _tcgen05_17

class _tcgen05_4(_Step):
    cta_group__1: _tcgen05_18
    cta_group__2: _tcgen05_18
    exclusive: _tcgen05_19

class _tcgen05_5(_Step):
    def __call__(self, *, out: Any = None, pred: Any = None) -> None:
        """Orders the tcgen05 operations after it after what precedes a synchronisation. ``tcgen05 ``, from PTX 8.8 sm_100f."""

class _tcgen05_6(_Step):
    def __call__(self, *, out: Any = None, pred: Any = None) -> None:
        """Orders the tcgen05 operations before it before what follows a synchronisation. ``tcgen05 ``, from PTX 8.8 sm_100f."""

class _tcgen05_7(_Step):
    red: _tcgen05_20
    spcompress: _tcgen05_21
    sync: _tcgen05_22

class _tcgen05_8(_Step):
    cta_group__1: _tcgen05_23
    cta_group__2: _tcgen05_23
    sp: _tcgen05_24
    ws: _tcgen05_25

class _tcgen05_9(_Step):
    cta_group__1: _tcgen05_26
    cta_group__2: _tcgen05_26

class _tcgen05_10(_Step):
    cta_group__1: _tcgen05_27
    cta_group__2: _tcgen05_27

class _tcgen05_11(_Step):
    sync: _tcgen05_28

class _tcgen05_12(_Step):
    sync: _tcgen05_29

class _tcgen05_13(_Step):
    sync: _tcgen05_30

class _tcgen05_14(_Step):
    sync: _tcgen05_31

class _tcgen05_15(_Step):
    cta_group__1: _tcgen05_14
    cta_group__2: _tcgen05_14

class _tcgen05_16(_Step):
    mbarrier__arrive__one: _tcgen05_32

class _tcgen05_17(_Step):
    pass

class _tcgen05_18(_Step):
    sync: _tcgen05_33

class _tcgen05_19(_Step):
    cta_group__1: _tcgen05_18
    cta_group__2: _tcgen05_18

class _tcgen05_20(_Step):
    spcompress: _tcgen05_34
    sync: _tcgen05_35

class _tcgen05_21(_Step):
    sync: _tcgen05_36

class _tcgen05_22(_Step):
    aligned: _tcgen05_37

class _tcgen05_23(_Step):
    kind__f16: _tcgen05_38
    kind__f8f6f4: _tcgen05_39
    kind__i8: _tcgen05_40
    kind__mxf4: _tcgen05_41
    kind__mxf4nvf4: _tcgen05_41
    kind__mxf8f6f4: _tcgen05_42
    kind__tf32: _tcgen05_38
    kind__ti16: _tcgen05_43

class _tcgen05_24(_Step):
    cta_group__1: _tcgen05_44
    cta_group__2: _tcgen05_44

class _tcgen05_25(_Step):
    cta_group__1: _tcgen05_45
    sp: _tcgen05_46

class _tcgen05_26(_Step):
    sync: _tcgen05_47

class _tcgen05_27(_Step):
    down: _tcgen05_48

class _tcgen05_28(_Step):
    aligned: _tcgen05_49

class _tcgen05_29(_Step):
    aligned: _tcgen05_50

class _tcgen05_30(_Step):
    aligned: _tcgen05_51

class _tcgen05_31(_Step):
    aligned: _tcgen05_52

class _tcgen05_32(_Step):
    b64: _tcgen05_53
    multicast__cluster: _tcgen05_54
    multicast__cluster__16b: _tcgen05_54
    multicast__cluster__32b: _tcgen05_54
    shared__cluster: _tcgen05_55

class _tcgen05_33(_Step):
    aligned: _tcgen05_56

class _tcgen05_34(_Step):
    sync: _tcgen05_57

class _tcgen05_35(_Step):
    aligned: _tcgen05_58

class _tcgen05_36(_Step):
    aligned: _tcgen05_59

class _tcgen05_37(_Step):
    pass

class _tcgen05_38(_Step):
    ashift: _tcgen05_60
    collector__a__discard: _tcgen05_61
    collector__a__fill: _tcgen05_61
    collector__a__lastuse: _tcgen05_61
    collector__a__use: _tcgen05_61
    collector__b__discard: _tcgen05_62
    collector__b__fill: _tcgen05_62
    collector__b__lastuse: _tcgen05_62
    collector__b__use: _tcgen05_62
    def __call__(self, d: Any, a: Any, b: Any, e: Any, idesc: Any, lanes: Any = ..., enable: Any = ..., scale: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """d = a * b, plus d where enable holds; a and b in shared memory or a in tensor memory. ``tcgen05 [d], a, b{, [e]}, idesc{, {lanes, ..}}, {!}enable``, from PTX 8.8 sm_100f.
        d = a * b, plus d / 2^scale where enable holds. ``tcgen05 [d], a, b{, [e]}, idesc{, {lanes, ..}}, {!}enable, scale``, from PTX 8.8 sm_100f."""

class _tcgen05_39(_Step):
    ashift: _tcgen05_63
    collector__a__discard: _tcgen05_64
    collector__a__fill: _tcgen05_64
    collector__a__lastuse: _tcgen05_64
    collector__a__use: _tcgen05_64
    collector__b__discard: _tcgen05_65
    collector__b__fill: _tcgen05_65
    collector__b__lastuse: _tcgen05_65
    collector__b__use: _tcgen05_65
    decompress__lut__b: _tcgen05_66
    def __call__(self, d: Any, a: Any, b: Any, e: Any, idesc: Any, lanes: Any = ..., enable: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """d = a * b, plus d where enable holds; a and b in shared memory or a in tensor memory. ``tcgen05 [d], a, b{, [e]}, idesc{, {lanes, ..}}, {!}enable``, from PTX 8.8 sm_100f."""

class _tcgen05_40(_Step):
    ashift: _tcgen05_67
    collector__a__discard: _tcgen05_68
    collector__a__fill: _tcgen05_68
    collector__a__lastuse: _tcgen05_68
    collector__a__use: _tcgen05_68
    def __call__(self, d: Any, a: Any, b: Any, e: Any, idesc: Any, lanes: Any = ..., enable: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """d = a * b of bytes, plus d where enable holds. ``tcgen05 [d], a, b{, [e]}, idesc{, {lanes, ..}}, {!}enable``, from PTX 8.6 sm_100a."""

class _tcgen05_41(_Step):
    block_scale: _tcgen05_69

class _tcgen05_42(_Step):
    block_scale: _tcgen05_70

class _tcgen05_43(_Step):
    ashift: _tcgen05_63
    collector__a__discard: _tcgen05_64
    collector__a__fill: _tcgen05_64
    collector__a__lastuse: _tcgen05_64
    collector__a__use: _tcgen05_64
    collector__b__discard: _tcgen05_65
    collector__b__fill: _tcgen05_65
    collector__b__lastuse: _tcgen05_65
    collector__b__use: _tcgen05_65
    def __call__(self, d: Any, a: Any, b: Any, e: Any, idesc: Any, lanes: Any = ..., enable: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """d = a * b, plus d where enable holds; a and b in shared memory or a in tensor memory. ``tcgen05 [d], a, b{, [e]}, idesc{, {lanes, ..}}, {!}enable``, from PTX 8.8 sm_100f."""

class _tcgen05_44(_Step):
    kind__f16: _tcgen05_38
    kind__f8f6f4: _tcgen05_43
    kind__i8: _tcgen05_40
    kind__mxf4: _tcgen05_41
    kind__mxf4nvf4: _tcgen05_41
    kind__mxf8f6f4: _tcgen05_41
    kind__tf32: _tcgen05_38
    kind__ti16: _tcgen05_43

class _tcgen05_45(_Step):
    kind__f16: _tcgen05_71
    kind__f8f6f4: _tcgen05_71
    kind__i8: _tcgen05_71
    kind__tf32: _tcgen05_71
    kind__ti16: _tcgen05_71

class _tcgen05_46(_Step):
    cta_group__1: _tcgen05_45

class _tcgen05_47(_Step):
    aligned: _tcgen05_72

class _tcgen05_48(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Shifts the rows of tensor memory down by one. ``tcgen05 [a]``, from PTX 8.6 sm_100a."""

class _tcgen05_49(_Step):
    pass

class _tcgen05_50(_Step):
    def __call__(self, *, out: Any = None, pred: Any = None) -> None:
        """Waits for the tcgen05.ld of this thread. ``tcgen05 ``, from PTX 8.8 sm_100f."""

class _tcgen05_51(_Step):
    def __call__(self, *, out: Any = None, pred: Any = None) -> None:
        """Waits for the tcgen05.st of this thread. ``tcgen05 ``, from PTX 8.8 sm_100f."""

class _tcgen05_52(_Step):
    b32: _tcgen05_73
    shared__cta: _tcgen05_74

class _tcgen05_53(_Step):
    def __call__(self, mbar: Any, mask: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """The mbarrier counts an arrival when the tcgen05 operations so far are complete. ``tcgen05 [mbar]{, mask}``, from PTX 8.8 sm_100f."""

class _tcgen05_54(_Step):
    b64: _tcgen05_53

class _tcgen05_55(_Step):
    b64: _tcgen05_53
    multicast__cluster: _tcgen05_54
    multicast__cluster__16b: _tcgen05_54
    multicast__cluster__32b: _tcgen05_54

class _tcgen05_56(_Step):
    b32: _tcgen05_75

class _tcgen05_57(_Step):
    aligned: _tcgen05_76

class _tcgen05_58(_Step):
    pass

class _tcgen05_59(_Step):
    pass

class _tcgen05_60(_Step):
    collector__a__discard: _tcgen05_77
    collector__a__lastuse: _tcgen05_77
    collector__b__discard: _tcgen05_78
    collector__b__fill: _tcgen05_78
    collector__b__lastuse: _tcgen05_78
    collector__b__use: _tcgen05_78
    def __call__(self, d: Any, a: Any, b: Any, e: Any, idesc: Any, lanes: Any = ..., enable: Any = ..., scale: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """d = a * b, plus d where enable holds; the rows of a are shifted down by one. ``tcgen05 [d], [a], b{, [e]}, idesc{, {lanes, ..}}, {!}enable``, from PTX 8.8 sm_100f.
        d = a * b, plus d / 2^scale where enable holds; the rows of a are shifted down by one. ``tcgen05 [d], [a], b{, [e]}, idesc{, {lanes, ..}}, {!}enable, scale``, from PTX 8.8 sm_100f."""

class _tcgen05_61(_Step):
    collector__b__discard: _tcgen05_62
    collector__b__fill: _tcgen05_62
    collector__b__lastuse: _tcgen05_62
    collector__b__use: _tcgen05_62
    def __call__(self, d: Any, a: Any, b: Any, e: Any, idesc: Any, lanes: Any = ..., enable: Any = ..., scale: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """d = a * b, plus d where enable holds; a and b in shared memory or a in tensor memory. ``tcgen05 [d], a, b{, [e]}, idesc{, {lanes, ..}}, {!}enable``, from PTX 8.8 sm_100f.
        d = a * b, plus d / 2^scale where enable holds. ``tcgen05 [d], a, b{, [e]}, idesc{, {lanes, ..}}, {!}enable, scale``, from PTX 8.8 sm_100f."""

class _tcgen05_62(_Step):
    def __call__(self, d: Any, a: Any, b: Any, e: Any, idesc: Any, lanes: Any = ..., enable: Any = ..., scale: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """d = a * b, plus d where enable holds; a and b in shared memory or a in tensor memory. ``tcgen05 [d], a, b{, [e]}, idesc{, {lanes, ..}}, {!}enable``, from PTX 8.8 sm_100f.
        d = a * b, plus d / 2^scale where enable holds. ``tcgen05 [d], a, b{, [e]}, idesc{, {lanes, ..}}, {!}enable, scale``, from PTX 8.8 sm_100f."""

class _tcgen05_63(_Step):
    collector__a__discard: _tcgen05_79
    collector__a__lastuse: _tcgen05_79
    collector__b__discard: _tcgen05_80
    collector__b__fill: _tcgen05_80
    collector__b__lastuse: _tcgen05_80
    collector__b__use: _tcgen05_80
    def __call__(self, d: Any, a: Any, b: Any, e: Any, idesc: Any, lanes: Any = ..., enable: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """d = a * b, plus d where enable holds; the rows of a are shifted down by one. ``tcgen05 [d], [a], b{, [e]}, idesc{, {lanes, ..}}, {!}enable``, from PTX 8.8 sm_100f."""

class _tcgen05_64(_Step):
    collector__b__discard: _tcgen05_65
    collector__b__fill: _tcgen05_65
    collector__b__lastuse: _tcgen05_65
    collector__b__use: _tcgen05_65
    def __call__(self, d: Any, a: Any, b: Any, e: Any, idesc: Any, lanes: Any = ..., enable: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """d = a * b, plus d where enable holds; a and b in shared memory or a in tensor memory. ``tcgen05 [d], a, b{, [e]}, idesc{, {lanes, ..}}, {!}enable``, from PTX 8.8 sm_100f."""

class _tcgen05_65(_Step):
    def __call__(self, d: Any, a: Any, b: Any, e: Any, idesc: Any, lanes: Any = ..., enable: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """d = a * b, plus d where enable holds; a and b in shared memory or a in tensor memory. ``tcgen05 [d], a, b{, [e]}, idesc{, {lanes, ..}}, {!}enable``, from PTX 8.8 sm_100f."""

class _tcgen05_66(_Step):
    collector__a__discard: _tcgen05_81
    collector__a__fill: _tcgen05_81
    collector__a__lastuse: _tcgen05_81
    collector__a__use: _tcgen05_81
    collector__b__discard: _tcgen05_82
    collector__b__fill: _tcgen05_82
    collector__b__lastuse: _tcgen05_82
    collector__b__use: _tcgen05_82
    def __call__(self, d: Any, a: Any, b: Any, lut: Any, idesc: Any, lanes: Any, enable: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """d = a * b, plus d where enable holds; b is decompressed by a table. ``tcgen05 [d], a, b, [lut], idesc{, {lanes, ..}}, {!}enable``, from PTX 9.4 sm_107f."""

class _tcgen05_67(_Step):
    collector__a__discard: _tcgen05_83
    collector__a__lastuse: _tcgen05_83
    def __call__(self, d: Any, a: Any, b: Any, e: Any, idesc: Any, lanes: Any = ..., enable: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """d = a * b of bytes, plus d where enable holds; the rows of a are shifted down by one. ``tcgen05 [d], [a], b{, [e]}, idesc{, {lanes, ..}}, {!}enable``, from PTX 8.6 sm_100a."""

class _tcgen05_68(_Step):
    def __call__(self, d: Any, a: Any, b: Any, e: Any, idesc: Any, lanes: Any = ..., enable: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """d = a * b of bytes, plus d where enable holds. ``tcgen05 [d], a, b{, [e]}, idesc{, {lanes, ..}}, {!}enable``, from PTX 8.6 sm_100a."""

class _tcgen05_69(_Step):
    block16: _tcgen05_84
    block32: _tcgen05_84
    collector__a__discard: _tcgen05_85
    collector__a__fill: _tcgen05_85
    collector__a__lastuse: _tcgen05_85
    collector__a__use: _tcgen05_85
    collector__b__discard: _tcgen05_86
    collector__b__fill: _tcgen05_86
    collector__b__lastuse: _tcgen05_86
    collector__b__use: _tcgen05_86
    scale_vec__1X: _tcgen05_84
    scale_vec__2X: _tcgen05_84
    scale_vec__4X: _tcgen05_84
    def __call__(self, d: Any, a: Any, b: Any, e: Any, idesc: Any, sa: Any, sb: Any, enable: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """d = a * b, scaled by blocks, plus d where enable holds. ``tcgen05 [d], a, b{, [e]}, idesc, [sa], [sb], {!}enable``, from PTX 8.8 sm_100f."""

class _tcgen05_70(_Step):
    block16: _tcgen05_84
    block32: _tcgen05_84
    collector__a__discard: _tcgen05_85
    collector__a__fill: _tcgen05_85
    collector__a__lastuse: _tcgen05_85
    collector__a__use: _tcgen05_85
    collector__b__discard: _tcgen05_86
    collector__b__fill: _tcgen05_86
    collector__b__lastuse: _tcgen05_86
    collector__b__use: _tcgen05_86
    decompress__lut__b: _tcgen05_87
    scale_vec__1X: _tcgen05_84
    scale_vec__2X: _tcgen05_84
    scale_vec__4X: _tcgen05_84
    def __call__(self, d: Any, a: Any, b: Any, e: Any, idesc: Any, sa: Any, sb: Any, enable: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """d = a * b, scaled by blocks, plus d where enable holds. ``tcgen05 [d], a, b{, [e]}, idesc, [sa], [sb], {!}enable``, from PTX 8.8 sm_100f."""

class _tcgen05_71(_Step):
    collector__b0__discard: _tcgen05_88
    collector__b0__fill: _tcgen05_88
    collector__b0__lastuse: _tcgen05_88
    collector__b0__use: _tcgen05_88
    collector__b1__discard: _tcgen05_88
    collector__b1__fill: _tcgen05_88
    collector__b1__lastuse: _tcgen05_88
    collector__b1__use: _tcgen05_88
    collector__b2__discard: _tcgen05_88
    collector__b2__fill: _tcgen05_88
    collector__b2__lastuse: _tcgen05_88
    collector__b2__use: _tcgen05_88
    collector__b3__discard: _tcgen05_88
    collector__b3__fill: _tcgen05_88
    collector__b3__lastuse: _tcgen05_88
    collector__b3__use: _tcgen05_88
    def __call__(self, d: Any, a: Any, b: Any, e: Any, idesc: Any, enable: Any = ..., zero: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """d = a * b, plus d where enable holds, with b kept in the collector. ``tcgen05 [d], a, b{, [e]}, idesc, {!}enable{, zero}``, from PTX 8.8 sm_100f."""

class _tcgen05_72(_Step):
    def __call__(self, *, out: Any = None, pred: Any = None) -> None:
        """Promises that the block allocates no more tensor memory. ``tcgen05 ``, from PTX 8.8 sm_100f."""

class _tcgen05_73(_Step):
    def __call__(self, d: Any, columns: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Allocates columns of tensor memory; its address goes to shared memory. ``tcgen05 [d], columns``, from PTX 8.8 sm_100f."""

class _tcgen05_74(_Step):
    b32: _tcgen05_73

class _tcgen05_75(_Step):
    def __call__(self, a: Any, columns: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Frees columns of tensor memory. ``tcgen05 a, columns``, from PTX 8.8 sm_100f."""

class _tcgen05_76(_Step):
    pass

class _tcgen05_77(_Step):
    collector__b__discard: _tcgen05_78
    collector__b__fill: _tcgen05_78
    collector__b__lastuse: _tcgen05_78
    collector__b__use: _tcgen05_78
    def __call__(self, d: Any, a: Any, b: Any, e: Any, idesc: Any, lanes: Any = ..., enable: Any = ..., scale: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """d = a * b, plus d where enable holds; the rows of a are shifted down by one. ``tcgen05 [d], [a], b{, [e]}, idesc{, {lanes, ..}}, {!}enable``, from PTX 8.8 sm_100f.
        d = a * b, plus d / 2^scale where enable holds; the rows of a are shifted down by one. ``tcgen05 [d], [a], b{, [e]}, idesc{, {lanes, ..}}, {!}enable, scale``, from PTX 8.8 sm_100f."""

class _tcgen05_78(_Step):
    def __call__(self, d: Any, a: Any, b: Any, e: Any, idesc: Any, lanes: Any = ..., enable: Any = ..., scale: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """d = a * b, plus d where enable holds; the rows of a are shifted down by one. ``tcgen05 [d], [a], b{, [e]}, idesc{, {lanes, ..}}, {!}enable``, from PTX 8.8 sm_100f.
        d = a * b, plus d / 2^scale where enable holds; the rows of a are shifted down by one. ``tcgen05 [d], [a], b{, [e]}, idesc{, {lanes, ..}}, {!}enable, scale``, from PTX 8.8 sm_100f."""

class _tcgen05_79(_Step):
    collector__b__discard: _tcgen05_80
    collector__b__fill: _tcgen05_80
    collector__b__lastuse: _tcgen05_80
    collector__b__use: _tcgen05_80
    def __call__(self, d: Any, a: Any, b: Any, e: Any, idesc: Any, lanes: Any = ..., enable: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """d = a * b, plus d where enable holds; the rows of a are shifted down by one. ``tcgen05 [d], [a], b{, [e]}, idesc{, {lanes, ..}}, {!}enable``, from PTX 8.8 sm_100f."""

class _tcgen05_80(_Step):
    def __call__(self, d: Any, a: Any, b: Any, e: Any, idesc: Any, lanes: Any = ..., enable: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """d = a * b, plus d where enable holds; the rows of a are shifted down by one. ``tcgen05 [d], [a], b{, [e]}, idesc{, {lanes, ..}}, {!}enable``, from PTX 8.8 sm_100f."""

class _tcgen05_81(_Step):
    collector__b__discard: _tcgen05_82
    collector__b__fill: _tcgen05_82
    collector__b__lastuse: _tcgen05_82
    collector__b__use: _tcgen05_82
    def __call__(self, d: Any, a: Any, b: Any, lut: Any, idesc: Any, lanes: Any, enable: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """d = a * b, plus d where enable holds; b is decompressed by a table. ``tcgen05 [d], a, b, [lut], idesc{, {lanes, ..}}, {!}enable``, from PTX 9.4 sm_107f."""

class _tcgen05_82(_Step):
    def __call__(self, d: Any, a: Any, b: Any, lut: Any, idesc: Any, lanes: Any, enable: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """d = a * b, plus d where enable holds; b is decompressed by a table. ``tcgen05 [d], a, b, [lut], idesc{, {lanes, ..}}, {!}enable``, from PTX 9.4 sm_107f."""

class _tcgen05_83(_Step):
    def __call__(self, d: Any, a: Any, b: Any, e: Any, idesc: Any, lanes: Any = ..., enable: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """d = a * b of bytes, plus d where enable holds; the rows of a are shifted down by one. ``tcgen05 [d], [a], b{, [e]}, idesc{, {lanes, ..}}, {!}enable``, from PTX 8.6 sm_100a."""

class _tcgen05_84(_Step):
    collector__a__discard: _tcgen05_85
    collector__a__fill: _tcgen05_85
    collector__a__lastuse: _tcgen05_85
    collector__a__use: _tcgen05_85
    collector__b__discard: _tcgen05_86
    collector__b__fill: _tcgen05_86
    collector__b__lastuse: _tcgen05_86
    collector__b__use: _tcgen05_86
    def __call__(self, d: Any, a: Any, b: Any, e: Any, idesc: Any, sa: Any, sb: Any, enable: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """d = a * b, scaled by blocks, plus d where enable holds. ``tcgen05 [d], a, b{, [e]}, idesc, [sa], [sb], {!}enable``, from PTX 8.8 sm_100f."""

class _tcgen05_85(_Step):
    collector__b__discard: _tcgen05_86
    collector__b__fill: _tcgen05_86
    collector__b__lastuse: _tcgen05_86
    collector__b__use: _tcgen05_86
    def __call__(self, d: Any, a: Any, b: Any, e: Any, idesc: Any, sa: Any, sb: Any, enable: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """d = a * b, scaled by blocks, plus d where enable holds. ``tcgen05 [d], a, b{, [e]}, idesc, [sa], [sb], {!}enable``, from PTX 8.8 sm_100f."""

class _tcgen05_86(_Step):
    def __call__(self, d: Any, a: Any, b: Any, e: Any, idesc: Any, sa: Any, sb: Any, enable: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """d = a * b, scaled by blocks, plus d where enable holds. ``tcgen05 [d], a, b{, [e]}, idesc, [sa], [sb], {!}enable``, from PTX 8.8 sm_100f."""

class _tcgen05_87(_Step):
    block32: _tcgen05_89
    collector__a__discard: _tcgen05_90
    collector__a__fill: _tcgen05_90
    collector__a__lastuse: _tcgen05_90
    collector__a__use: _tcgen05_90
    collector__b__discard: _tcgen05_91
    collector__b__fill: _tcgen05_91
    collector__b__lastuse: _tcgen05_91
    collector__b__use: _tcgen05_91
    scale_vec__1X: _tcgen05_89
    def __call__(self, d: Any, a: Any, b: Any, lut: Any, idesc: Any, sa: Any, sb: Any, enable: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """d = a * b, scaled by blocks, plus d where enable holds; b is decompressed by a table. ``tcgen05 [d], a, b, [lut], idesc, [sa], [sb], {!}enable``, from PTX 9.4 sm_107f."""

class _tcgen05_88(_Step):
    def __call__(self, d: Any, a: Any, b: Any, e: Any, idesc: Any, enable: Any = ..., zero: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """d = a * b, plus d where enable holds, with b kept in the collector. ``tcgen05 [d], a, b{, [e]}, idesc, {!}enable{, zero}``, from PTX 8.8 sm_100f."""

class _tcgen05_89(_Step):
    collector__a__discard: _tcgen05_90
    collector__a__fill: _tcgen05_90
    collector__a__lastuse: _tcgen05_90
    collector__a__use: _tcgen05_90
    collector__b__discard: _tcgen05_91
    collector__b__fill: _tcgen05_91
    collector__b__lastuse: _tcgen05_91
    collector__b__use: _tcgen05_91
    def __call__(self, d: Any, a: Any, b: Any, lut: Any, idesc: Any, sa: Any, sb: Any, enable: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """d = a * b, scaled by blocks, plus d where enable holds; b is decompressed by a table. ``tcgen05 [d], a, b, [lut], idesc, [sa], [sb], {!}enable``, from PTX 9.4 sm_107f."""

class _tcgen05_90(_Step):
    collector__b__discard: _tcgen05_91
    collector__b__fill: _tcgen05_91
    collector__b__lastuse: _tcgen05_91
    collector__b__use: _tcgen05_91
    def __call__(self, d: Any, a: Any, b: Any, lut: Any, idesc: Any, sa: Any, sb: Any, enable: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """d = a * b, scaled by blocks, plus d where enable holds; b is decompressed by a table. ``tcgen05 [d], a, b, [lut], idesc, [sa], [sb], {!}enable``, from PTX 9.4 sm_107f."""

class _tcgen05_91(_Step):
    def __call__(self, d: Any, a: Any, b: Any, lut: Any, idesc: Any, sa: Any, sb: Any, enable: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """d = a * b, scaled by blocks, plus d where enable holds; b is decompressed by a table. ``tcgen05 [d], a, b, [lut], idesc, [sa], [sb], {!}enable``, from PTX 9.4 sm_107f."""

class _tensormap(_Step):
    cp_fenceproxy: _tensormap_1
    replace: _tensormap_2

class _tensormap_1(_Step):
    global_: _tensormap_3

class _tensormap_2(_Step):
    tile: _tensormap_4

class _tensormap_3(_Step):
    shared__cta: _tensormap_5

class _tensormap_4(_Step):
    box_dim: _tensormap_6
    element_stride: _tensormap_6
    elemtype: _tensormap_7
    fill_mode: _tensormap_8
    global_address: _tensormap_9
    global_dim: _tensormap_6
    global_stride: _tensormap_10
    interleave_layout: _tensormap_11
    rank: _tensormap_12
    swizzle_atomicity: _tensormap_13
    swizzle_mode: _tensormap_14

class _tensormap_5(_Step):
    tensormap__generic: _tensormap_15

class _tensormap_6(_Step):
    b1024: _tensormap_16
    global_: _tensormap_17
    shared__cta: _tensormap_17

class _tensormap_7(_Step):
    b1024: _tensormap_18
    global_: _tensormap_19
    shared__cta: _tensormap_19

class _tensormap_8(_Step):
    b1024: _tensormap_20
    global_: _tensormap_21
    shared__cta: _tensormap_21

class _tensormap_9(_Step):
    b1024: _tensormap_22
    global_: _tensormap_23
    shared__cta: _tensormap_23

class _tensormap_10(_Step):
    b1024: _tensormap_24
    global_: _tensormap_25
    shared__cta: _tensormap_25

class _tensormap_11(_Step):
    b1024: _tensormap_26
    global_: _tensormap_27
    shared__cta: _tensormap_27

class _tensormap_12(_Step):
    b1024: _tensormap_28
    global_: _tensormap_29
    shared__cta: _tensormap_29

class _tensormap_13(_Step):
    b1024: _tensormap_30
    global_: _tensormap_31
    shared__cta: _tensormap_31

class _tensormap_14(_Step):
    b1024: _tensormap_32
    global_: _tensormap_33
    shared__cta: _tensormap_33

class _tensormap_15(_Step):
    release: _tensormap_34

class _tensormap_16(_Step):
    b32: _tensormap_35

class _tensormap_17(_Step):
    b1024: _tensormap_16

class _tensormap_18(_Step):
    b32: _tensormap_36

class _tensormap_19(_Step):
    b1024: _tensormap_18

class _tensormap_20(_Step):
    b32: _tensormap_37

class _tensormap_21(_Step):
    b1024: _tensormap_20

class _tensormap_22(_Step):
    b64: _tensormap_38

class _tensormap_23(_Step):
    b1024: _tensormap_22

class _tensormap_24(_Step):
    b64: _tensormap_39

class _tensormap_25(_Step):
    b1024: _tensormap_24

class _tensormap_26(_Step):
    b32: _tensormap_40

class _tensormap_27(_Step):
    b1024: _tensormap_26

class _tensormap_28(_Step):
    b32: _tensormap_41

class _tensormap_29(_Step):
    b1024: _tensormap_28

class _tensormap_30(_Step):
    b32: _tensormap_42

class _tensormap_31(_Step):
    b1024: _tensormap_30

class _tensormap_32(_Step):
    b32: _tensormap_43

class _tensormap_33(_Step):
    b1024: _tensormap_32

class _tensormap_34(_Step):
    cluster: _tensormap_44
    cta: _tensormap_44
    gpu: _tensormap_44
    sys: _tensormap_44

class _tensormap_35(_Step):
    def __call__(self, a: Any, n: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Sets a size of the box or the tensor, or a stride in elements, in dimension n. ``tensormap [a], n, b``, from PTX 8.3 sm_90a."""

class _tensormap_36(_Step):
    def __call__(self, a: Any, value: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Sets the type of the elements. ``tensormap [a], value``, from PTX 8.3 sm_90a.
        Sets the type of the elements to packed fp4 or fp6. ``tensormap [a], value``, from PTX 8.8 sm_100f."""

class _tensormap_37(_Step):
    def __call__(self, a: Any, value: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Sets what is read outside: zeros or NaN. ``tensormap [a], value``, from PTX 8.3 sm_90a."""

class _tensormap_38(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Sets the address of the tensor. ``tensormap [a], b``, from PTX 8.3 sm_90a."""

class _tensormap_39(_Step):
    def __call__(self, a: Any, n: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Sets the stride in bytes of dimension n + 1. ``tensormap [a], n, b``, from PTX 8.3 sm_90a."""

class _tensormap_40(_Step):
    def __call__(self, a: Any, value: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Sets the interleaving: none, 16 or 32 bytes. ``tensormap [a], value``, from PTX 8.3 sm_90a."""

class _tensormap_41(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Sets the number of dimensions less one. ``tensormap [a], b``, from PTX 8.3 sm_90a."""

class _tensormap_42(_Step):
    def __call__(self, a: Any, value: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Sets the atom of swizzling: 16, 32, 32 with flip, or 64 bytes. ``tensormap [a], value``, from PTX 8.8 sm_100f."""

class _tensormap_43(_Step):
    def __call__(self, a: Any, value: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Sets the swizzling: none, 32, 64 or 128 bytes. ``tensormap [a], value``, from PTX 8.3 sm_90a.
        Sets the swizzling to 96 bytes. ``tensormap [a], value``, from PTX 8.8 sm_103a."""

class _tensormap_44(_Step):
    sync: _tensormap_45

class _tensormap_45(_Step):
    aligned: _tensormap_46

class _tensormap_46(_Step):
    def __call__(self, d: Any, a: Any, size: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Copies a tensor map from shared to global memory and releases it. ``tensormap [d], [a], size``, from PTX 8.3 sm_90."""

class _testp(_Step):
    finite: _testp_1
    infinite: _testp_1
    normal: _testp_1
    notanumber: _testp_1
    number: _testp_1
    subnormal: _testp_1

class _testp_1(_Step):
    f32: _testp_2
    f64: _testp_2

class _testp_2(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Whether a has the property. ``testp d, a``, from PTX 6.3 sm_75."""

class _tex(_Step):
    a1d: _tex_1
    a2d: _tex_1
    a2dms: _tex_2
    acube: _tex_1
    base: _tex_3
    cube: _tex_1
    grad: _tex_4
    level: _tex_5

class _tex_1(_Step):
    v2: _tex_6
    v4: _tex_7

class _tex_2(_Step):
    v2: _tex_8
    v4: _tex_9

class _tex_3(_Step):
    a1d: _tex_1
    a2d: _tex_1
    a2dms: _tex_2
    acube: _tex_1
    cube: _tex_1

class _tex_4(_Step):
    a1d: _tex_10
    a2d: _tex_10
    acube: _tex_10
    cube: _tex_10

class _tex_5(_Step):
    a1d: _tex_11
    a2d: _tex_11
    acube: _tex_11
    cube: _tex_11

class _tex_6(_Step):
    f16x2: _tex_12

class _tex_7(_Step):
    f16: _tex_13
    f32: _tex_13
    s32: _tex_13
    u32: _tex_13

class _tex_8(_Step):
    f16x2: _tex_14

class _tex_9(_Step):
    f16: _tex_15
    f32: _tex_15
    s32: _tex_15
    u32: _tex_15

class _tex_10(_Step):
    v2: _tex_16
    v4: _tex_17

class _tex_11(_Step):
    v2: _tex_18
    v4: _tex_19

class _tex_12(_Step):
    f32: _tex_20
    s32: _tex_20

class _tex_13(_Step):
    f32: _tex_21
    s32: _tex_21

class _tex_14(_Step):
    s32: _tex_22

class _tex_15(_Step):
    s32: _tex_23

class _tex_16(_Step):
    f16x2: _tex_24

class _tex_17(_Step):
    f16: _tex_25
    f32: _tex_25
    s32: _tex_25
    u32: _tex_25

class _tex_18(_Step):
    f16x2: _tex_26

class _tex_19(_Step):
    f16: _tex_27
    f32: _tex_27
    s32: _tex_27
    u32: _tex_27

class _tex_20(_Step):
    def __call__(self, a: Any, e: Any = ..., f: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """A texel, filtered; e: an offset; f: a value to compare the depth with. ``tex {d, ..}, [a, sampler, c]{, {e, ..}}{, f}``, from PTX 6.3 sm_75.
        A texel, filtered; e: an offset; f: a value to compare the depth with; p: whether it is resident. ``tex {d, ..}|p, [a, sampler, c]{, {e, ..}}{, f}``, from PTX 7.1 sm_75."""

class _tex_21(_Step):
    def __call__(self, a: Any, e: Any = ..., f: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """A texel, filtered; e: an offset; f: a value to compare the depth with. ``tex {d, ..}, [a, sampler, c]{, {e, ..}}{, f}``, from PTX 6.3 sm_75.
        A texel, filtered; e: an offset; f: a value to compare the depth with; p: whether it is resident. ``tex {d, ..}|p, [a, sampler, c]{, {e, ..}}{, f}``, from PTX 7.1 sm_75."""

class _tex_22(_Step):
    def __call__(self, a: Any, e: Any = ..., f: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """A sample of a texel, numbered by the first coordinate. ``tex {d, ..}, [a, sampler, c]{, {e, ..}}{, f}``, from PTX 6.3 sm_75.
        A sample of a texel, numbered by the first coordinate; p: whether it is resident. ``tex {d, ..}|p, [a, sampler, c]{, {e, ..}}{, f}``, from PTX 7.1 sm_75."""

class _tex_23(_Step):
    def __call__(self, a: Any, e: Any = ..., f: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """A sample of a texel, numbered by the first coordinate. ``tex {d, ..}, [a, sampler, c]{, {e, ..}}{, f}``, from PTX 6.3 sm_75.
        A sample of a texel, numbered by the first coordinate; p: whether it is resident. ``tex {d, ..}|p, [a, sampler, c]{, {e, ..}}{, f}``, from PTX 7.1 sm_75."""

class _tex_24(_Step):
    f32: _tex_28

class _tex_25(_Step):
    f32: _tex_29

class _tex_26(_Step):
    f32: _tex_30

class _tex_27(_Step):
    f32: _tex_31

class _tex_28(_Step):
    def __call__(self, a: Any, x: Any, y: Any, e: Any = ..., f: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """A texel of the mipmap level that the gradients ask for. ``tex {d, ..}, [a, sampler, c], {x, ..}, {y, ..}{, {e, ..}}{, f}``, from PTX 6.3 sm_75.
        A texel of the mipmap level that the gradients ask for; p: whether it is resident. ``tex {d, ..}|p, [a, sampler, c], {x, ..}, {y, ..}{, {e, ..}}{, f}``, from PTX 7.1 sm_75."""

class _tex_29(_Step):
    def __call__(self, a: Any, x: Any, y: Any, e: Any = ..., f: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """A texel of the mipmap level that the gradients ask for. ``tex {d, ..}, [a, sampler, c], {x, ..}, {y, ..}{, {e, ..}}{, f}``, from PTX 6.3 sm_75.
        A texel of the mipmap level that the gradients ask for; p: whether it is resident. ``tex {d, ..}|p, [a, sampler, c], {x, ..}, {y, ..}{, {e, ..}}{, f}``, from PTX 7.1 sm_75."""

class _tex_30(_Step):
    def __call__(self, a: Any, lod: Any, e: Any = ..., f: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """A texel of a mipmap level; e: an offset; f: a value to compare the depth with. ``tex {d, ..}, [a, sampler, c], lod{, {e, ..}}{, f}``, from PTX 6.3 sm_75.
        A texel of a mipmap level; e: an offset; f: a value to compare the depth with; p: whether it is resident. ``tex {d, ..}|p, [a, sampler, c], lod{, {e, ..}}{, f}``, from PTX 7.1 sm_75."""

class _tex_31(_Step):
    def __call__(self, a: Any, lod: Any, e: Any = ..., f: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """A texel of a mipmap level; e: an offset; f: a value to compare the depth with. ``tex {d, ..}, [a, sampler, c], lod{, {e, ..}}{, f}``, from PTX 6.3 sm_75.
        A texel of a mipmap level; e: an offset; f: a value to compare the depth with; p: whether it is resident. ``tex {d, ..}|p, [a, sampler, c], lod{, {e, ..}}{, f}``, from PTX 7.1 sm_75."""

class _tld4(_Step):
    a: _tld4_1
    b: _tld4_1
    g: _tld4_1
    r: _tld4_1

class _tld4_1(_Step):
    a2d: _tld4_2
    acube: _tld4_2
    cube: _tld4_2

class _tld4_2(_Step):
    v4: _tld4_3

class _tld4_3(_Step):
    f32: _tld4_4
    s32: _tld4_4
    u32: _tld4_4

class _tld4_4(_Step):
    f32: _tld4_5

class _tld4_5(_Step):
    def __call__(self, a: Any, e: Any = ..., f: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """One component of the four texels that filtering would use. ``tld4 {d, ..}, [a, sampler, c]{, {e, ..}}{, f}``, from PTX 6.3 sm_75.
        One component of the four texels that filtering would use; p: whether they are resident. ``tld4 {d, ..}|p, [a, sampler, c]{, {e, ..}}{, f}``, from PTX 7.1 sm_75."""

class _trace(_Step):
    mark: _trace_1

class _trace_1(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Puts the mark a into a trace. ``trace a``, from PTX 9.5 sm_107f."""

class _trap(_Step):
    def __call__(self, *, out: Any = None, pred: Any = None) -> None:
        """Aborts the kernel. ``trap ``, from PTX 6.3 sm_75."""

class _txq(_Step):
    addr_mode_0: _txq_1
    addr_mode_1: _txq_1
    addr_mode_2: _txq_1
    array_size: _txq_1
    channel_data_type: _txq_1
    channel_order: _txq_1
    depth: _txq_1
    filter_mode: _txq_1
    force_unnormalized_coords: _txq_1
    height: _txq_1
    level: _txq_2
    normalized_coords: _txq_1
    num_mipmap_levels: _txq_1
    num_samples: _txq_1
    width: _txq_1

class _txq_1(_Step):
    b32: _txq_3

class _txq_2(_Step):
    depth: _txq_4
    height: _txq_4
    width: _txq_4

class _txq_3(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """A property of a texture or sampler. ``txq d, [a]``, from PTX 6.3 sm_75."""

class _txq_4(_Step):
    b32: _txq_5

class _txq_5(_Step):
    def __call__(self, a: Any, lod: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """A property of a mipmap level of a texture. ``txq d, [a], lod``, from PTX 6.3 sm_75."""

class _vabsdiff(_Step):
    s32: _vabsdiff_1
    u32: _vabsdiff_1

class _vabsdiff_1(_Step):
    s32: _vabsdiff_2
    u32: _vabsdiff_2

class _vabsdiff_2(_Step):
    s32: _vabsdiff_3
    u32: _vabsdiff_3

class _vabsdiff_3(_Step):
    add: _vabsdiff_4
    max: _vabsdiff_4
    min: _vabsdiff_4
    sat: _vabsdiff_5
    def __call__(self, a: Any, b: Any, c: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """|a - b|, of words, halves or bytes. ``vabsdiff d, a, b``, from PTX 6.3 sm_75.
        |a - b|, put into a part of c. ``vabsdiff d, a, b, c``, from PTX 6.3 sm_75."""

class _vabsdiff_4(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """|a - b|, then combined with c. ``vabsdiff d, a, b, c``, from PTX 6.3 sm_75."""

class _vabsdiff_5(_Step):
    add: _vabsdiff_4
    max: _vabsdiff_4
    min: _vabsdiff_4
    def __call__(self, a: Any, b: Any, c: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """|a - b|, of words, halves or bytes. ``vabsdiff d, a, b``, from PTX 6.3 sm_75.
        |a - b|, put into a part of c. ``vabsdiff d, a, b, c``, from PTX 6.3 sm_75."""

class _vabsdiff2(_Step):
    s32: _vabsdiff2_1
    u32: _vabsdiff2_1

class _vabsdiff2_1(_Step):
    s32: _vabsdiff2_2
    u32: _vabsdiff2_2

class _vabsdiff2_2(_Step):
    s32: _vabsdiff2_3
    u32: _vabsdiff2_3

class _vabsdiff2_3(_Step):
    add: _vabsdiff2_4
    sat: _vabsdiff2_4
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """|a - b| in each of the halves; those that the mask leaves out are c's; .add: their sum plus c. ``vabsdiff2 d, a, b, c``, from PTX 6.3 sm_75."""

class _vabsdiff2_4(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """|a - b| in each of the halves; those that the mask leaves out are c's; .add: their sum plus c. ``vabsdiff2 d, a, b, c``, from PTX 6.3 sm_75."""

class _vabsdiff4(_Step):
    s32: _vabsdiff4_1
    u32: _vabsdiff4_1

class _vabsdiff4_1(_Step):
    s32: _vabsdiff4_2
    u32: _vabsdiff4_2

class _vabsdiff4_2(_Step):
    s32: _vabsdiff4_3
    u32: _vabsdiff4_3

class _vabsdiff4_3(_Step):
    add: _vabsdiff4_4
    sat: _vabsdiff4_4
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """|a - b| in each of the bytes; those that the mask leaves out are c's; .add: their sum plus c. ``vabsdiff4 d, a, b, c``, from PTX 6.3 sm_75."""

class _vabsdiff4_4(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """|a - b| in each of the bytes; those that the mask leaves out are c's; .add: their sum plus c. ``vabsdiff4 d, a, b, c``, from PTX 6.3 sm_75."""

class _vadd(_Step):
    s32: _vadd_1
    u32: _vadd_1

class _vadd_1(_Step):
    s32: _vadd_2
    u32: _vadd_2

class _vadd_2(_Step):
    s32: _vadd_3
    u32: _vadd_3

class _vadd_3(_Step):
    add: _vadd_4
    max: _vadd_4
    min: _vadd_4
    sat: _vadd_5
    def __call__(self, a: Any, b: Any, c: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """A + b, of words, halves or bytes. ``vadd d, a, b``, from PTX 6.3 sm_75.
        A + b, put into a part of c. ``vadd d, a, b, c``, from PTX 6.3 sm_75."""

class _vadd_4(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """A + b, then combined with c. ``vadd d, a, b, c``, from PTX 6.3 sm_75."""

class _vadd_5(_Step):
    add: _vadd_4
    max: _vadd_4
    min: _vadd_4
    def __call__(self, a: Any, b: Any, c: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """A + b, of words, halves or bytes. ``vadd d, a, b``, from PTX 6.3 sm_75.
        A + b, put into a part of c. ``vadd d, a, b, c``, from PTX 6.3 sm_75."""

class _vadd2(_Step):
    s32: _vadd2_1
    u32: _vadd2_1

class _vadd2_1(_Step):
    s32: _vadd2_2
    u32: _vadd2_2

class _vadd2_2(_Step):
    s32: _vadd2_3
    u32: _vadd2_3

class _vadd2_3(_Step):
    add: _vadd2_4
    sat: _vadd2_4
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """A + b in each of the halves; those that the mask leaves out are c's; .add: their sum plus c. ``vadd2 d, a, b, c``, from PTX 6.3 sm_75."""

class _vadd2_4(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """A + b in each of the halves; those that the mask leaves out are c's; .add: their sum plus c. ``vadd2 d, a, b, c``, from PTX 6.3 sm_75."""

class _vadd4(_Step):
    s32: _vadd4_1
    u32: _vadd4_1

class _vadd4_1(_Step):
    s32: _vadd4_2
    u32: _vadd4_2

class _vadd4_2(_Step):
    s32: _vadd4_3
    u32: _vadd4_3

class _vadd4_3(_Step):
    add: _vadd4_4
    sat: _vadd4_4
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """A + b in each of the bytes; those that the mask leaves out are c's; .add: their sum plus c. ``vadd4 d, a, b, c``, from PTX 6.3 sm_75."""

class _vadd4_4(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """A + b in each of the bytes; those that the mask leaves out are c's; .add: their sum plus c. ``vadd4 d, a, b, c``, from PTX 6.3 sm_75."""

class _vavrg2(_Step):
    s32: _vavrg2_1
    u32: _vavrg2_1

class _vavrg2_1(_Step):
    s32: _vavrg2_2
    u32: _vavrg2_2

class _vavrg2_2(_Step):
    s32: _vavrg2_3
    u32: _vavrg2_3

class _vavrg2_3(_Step):
    add: _vavrg2_4
    sat: _vavrg2_4
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The mean of a and b in each of the halves; those that the mask leaves out are c's; .add: their sum plus c. ``vavrg2 d, a, b, c``, from PTX 6.3 sm_75."""

class _vavrg2_4(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The mean of a and b in each of the halves; those that the mask leaves out are c's; .add: their sum plus c. ``vavrg2 d, a, b, c``, from PTX 6.3 sm_75."""

class _vavrg4(_Step):
    s32: _vavrg4_1
    u32: _vavrg4_1

class _vavrg4_1(_Step):
    s32: _vavrg4_2
    u32: _vavrg4_2

class _vavrg4_2(_Step):
    s32: _vavrg4_3
    u32: _vavrg4_3

class _vavrg4_3(_Step):
    add: _vavrg4_4
    sat: _vavrg4_4
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The mean of a and b in each of the bytes; those that the mask leaves out are c's; .add: their sum plus c. ``vavrg4 d, a, b, c``, from PTX 6.3 sm_75."""

class _vavrg4_4(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The mean of a and b in each of the bytes; those that the mask leaves out are c's; .add: their sum plus c. ``vavrg4 d, a, b, c``, from PTX 6.3 sm_75."""

class _vmad(_Step):
    s32: _vmad_1
    u32: _vmad_1

class _vmad_1(_Step):
    s32: _vmad_2
    u32: _vmad_2

class _vmad_2(_Step):
    s32: _vmad_3
    u32: _vmad_3

class _vmad_3(_Step):
    po: _vmad_4
    sat: _vmad_5
    shr15: _vmad_6
    shr7: _vmad_6
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """a * b + c, shifted right. ``vmad d, {-}a, {-}b, {!}c``, from PTX 6.3 sm_75."""

class _vmad_4(_Step):
    sat: _vmad_7
    shr15: _vmad_8
    shr7: _vmad_8
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """a * b + c + 1, shifted right. ``vmad d, a, b, c``, from PTX 6.3 sm_75."""

class _vmad_5(_Step):
    shr15: _vmad_6
    shr7: _vmad_6
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """a * b + c, shifted right. ``vmad d, {-}a, {-}b, {!}c``, from PTX 6.3 sm_75."""

class _vmad_6(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """a * b + c, shifted right. ``vmad d, {-}a, {-}b, {!}c``, from PTX 6.3 sm_75."""

class _vmad_7(_Step):
    shr15: _vmad_8
    shr7: _vmad_8
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """a * b + c + 1, shifted right. ``vmad d, a, b, c``, from PTX 6.3 sm_75."""

class _vmad_8(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """a * b + c + 1, shifted right. ``vmad d, a, b, c``, from PTX 6.3 sm_75."""

class _vmax(_Step):
    s32: _vmax_1
    u32: _vmax_1

class _vmax_1(_Step):
    s32: _vmax_2
    u32: _vmax_2

class _vmax_2(_Step):
    s32: _vmax_3
    u32: _vmax_3

class _vmax_3(_Step):
    add: _vmax_4
    max: _vmax_4
    min: _vmax_4
    sat: _vmax_5
    def __call__(self, a: Any, b: Any, c: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The greater of a and b, of words, halves or bytes. ``vmax d, a, b``, from PTX 6.3 sm_75.
        The greater of a and b, put into a part of c. ``vmax d, a, b, c``, from PTX 6.3 sm_75."""

class _vmax_4(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The greater of a and b, then combined with c. ``vmax d, a, b, c``, from PTX 6.3 sm_75."""

class _vmax_5(_Step):
    add: _vmax_4
    max: _vmax_4
    min: _vmax_4
    def __call__(self, a: Any, b: Any, c: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The greater of a and b, of words, halves or bytes. ``vmax d, a, b``, from PTX 6.3 sm_75.
        The greater of a and b, put into a part of c. ``vmax d, a, b, c``, from PTX 6.3 sm_75."""

class _vmax2(_Step):
    s32: _vmax2_1
    u32: _vmax2_1

class _vmax2_1(_Step):
    s32: _vmax2_2
    u32: _vmax2_2

class _vmax2_2(_Step):
    s32: _vmax2_3
    u32: _vmax2_3

class _vmax2_3(_Step):
    add: _vmax2_4
    sat: _vmax2_4
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The greater of a and b in each of the halves; those that the mask leaves out are c's; .add: their sum plus c. ``vmax2 d, a, b, c``, from PTX 6.3 sm_75."""

class _vmax2_4(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The greater of a and b in each of the halves; those that the mask leaves out are c's; .add: their sum plus c. ``vmax2 d, a, b, c``, from PTX 6.3 sm_75."""

class _vmax4(_Step):
    s32: _vmax4_1
    u32: _vmax4_1

class _vmax4_1(_Step):
    s32: _vmax4_2
    u32: _vmax4_2

class _vmax4_2(_Step):
    s32: _vmax4_3
    u32: _vmax4_3

class _vmax4_3(_Step):
    add: _vmax4_4
    sat: _vmax4_4
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The greater of a and b in each of the bytes; those that the mask leaves out are c's; .add: their sum plus c. ``vmax4 d, a, b, c``, from PTX 6.3 sm_75."""

class _vmax4_4(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The greater of a and b in each of the bytes; those that the mask leaves out are c's; .add: their sum plus c. ``vmax4 d, a, b, c``, from PTX 6.3 sm_75."""

class _vmin(_Step):
    s32: _vmin_1
    u32: _vmin_1

class _vmin_1(_Step):
    s32: _vmin_2
    u32: _vmin_2

class _vmin_2(_Step):
    s32: _vmin_3
    u32: _vmin_3

class _vmin_3(_Step):
    add: _vmin_4
    max: _vmin_4
    min: _vmin_4
    sat: _vmin_5
    def __call__(self, a: Any, b: Any, c: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The lesser of a and b, of words, halves or bytes. ``vmin d, a, b``, from PTX 6.3 sm_75.
        The lesser of a and b, put into a part of c. ``vmin d, a, b, c``, from PTX 6.3 sm_75."""

class _vmin_4(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The lesser of a and b, then combined with c. ``vmin d, a, b, c``, from PTX 6.3 sm_75."""

class _vmin_5(_Step):
    add: _vmin_4
    max: _vmin_4
    min: _vmin_4
    def __call__(self, a: Any, b: Any, c: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The lesser of a and b, of words, halves or bytes. ``vmin d, a, b``, from PTX 6.3 sm_75.
        The lesser of a and b, put into a part of c. ``vmin d, a, b, c``, from PTX 6.3 sm_75."""

class _vmin2(_Step):
    s32: _vmin2_1
    u32: _vmin2_1

class _vmin2_1(_Step):
    s32: _vmin2_2
    u32: _vmin2_2

class _vmin2_2(_Step):
    s32: _vmin2_3
    u32: _vmin2_3

class _vmin2_3(_Step):
    add: _vmin2_4
    sat: _vmin2_4
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The lesser of a and b in each of the halves; those that the mask leaves out are c's; .add: their sum plus c. ``vmin2 d, a, b, c``, from PTX 6.3 sm_75."""

class _vmin2_4(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The lesser of a and b in each of the halves; those that the mask leaves out are c's; .add: their sum plus c. ``vmin2 d, a, b, c``, from PTX 6.3 sm_75."""

class _vmin4(_Step):
    s32: _vmin4_1
    u32: _vmin4_1

class _vmin4_1(_Step):
    s32: _vmin4_2
    u32: _vmin4_2

class _vmin4_2(_Step):
    s32: _vmin4_3
    u32: _vmin4_3

class _vmin4_3(_Step):
    add: _vmin4_4
    sat: _vmin4_4
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The lesser of a and b in each of the bytes; those that the mask leaves out are c's; .add: their sum plus c. ``vmin4 d, a, b, c``, from PTX 6.3 sm_75."""

class _vmin4_4(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The lesser of a and b in each of the bytes; those that the mask leaves out are c's; .add: their sum plus c. ``vmin4 d, a, b, c``, from PTX 6.3 sm_75."""

class _vote(_Step):
    all: _vote_1
    any: _vote_1
    ballot: _vote_2
    sync: _vote_3
    uni: _vote_1

class _vote_1(_Step):
    pred: _vote_4

class _vote_2(_Step):
    b32: _vote_5

class _vote_3(_Step):
    all: _vote_6
    any: _vote_6
    ballot: _vote_7
    uni: _vote_6

class _vote_4(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Whether a holds in all lanes, in any, or is the same in all. ``vote d, {!}a``, from PTX 6.3 sm_75."""

class _vote_5(_Step):
    def __call__(self, a: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The mask of the lanes in which a holds. ``vote d, {!}a``, from PTX 6.3 sm_75."""

class _vote_6(_Step):
    pred: _vote_8

class _vote_7(_Step):
    b32: _vote_9

class _vote_8(_Step):
    def __call__(self, a: Any, membermask: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Whether a holds in all lanes, in any, or is the same in all. ``vote d, {!}a, membermask``, from PTX 6.3 sm_75."""

class _vote_9(_Step):
    def __call__(self, a: Any, membermask: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """The mask of the lanes in which a holds. ``vote d, {!}a, membermask``, from PTX 6.3 sm_75."""

class _vset(_Step):
    s32: _vset_1
    u32: _vset_1

class _vset_1(_Step):
    s32: _vset_2
    u32: _vset_2

class _vset_2(_Step):
    eq: _vset_3
    ge: _vset_3
    gt: _vset_3
    le: _vset_3
    lt: _vset_3
    ne: _vset_3

class _vset_3(_Step):
    add: _vset_4
    max: _vset_4
    min: _vset_4
    def __call__(self, a: Any, b: Any, c: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """1 if a compares to b, else 0. ``vset d, a, b``, from PTX 6.3 sm_75.
        1 if a compares to b, else 0, put into a part of c. ``vset d, a, b, c``, from PTX 6.3 sm_75."""

class _vset_4(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """1 if a compares to b, else 0, then combined with c. ``vset d, a, b, c``, from PTX 6.3 sm_75."""

class _vset2(_Step):
    s32: _vset2_1
    u32: _vset2_1

class _vset2_1(_Step):
    s32: _vset2_2
    u32: _vset2_2

class _vset2_2(_Step):
    eq: _vset2_3
    ge: _vset2_3
    gt: _vset2_3
    le: _vset2_3
    lt: _vset2_3
    ne: _vset2_3

class _vset2_3(_Step):
    add: _vset2_4
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """1 or 0 in each of the halves, as a compares to b; those that the mask leaves out are c's; .add: their sum plus c. ``vset2 d, a, b, c``, from PTX 6.3 sm_75."""

class _vset2_4(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """1 or 0 in each of the halves, as a compares to b; those that the mask leaves out are c's; .add: their sum plus c. ``vset2 d, a, b, c``, from PTX 6.3 sm_75."""

class _vset4(_Step):
    s32: _vset4_1
    u32: _vset4_1

class _vset4_1(_Step):
    s32: _vset4_2
    u32: _vset4_2

class _vset4_2(_Step):
    eq: _vset4_3
    ge: _vset4_3
    gt: _vset4_3
    le: _vset4_3
    lt: _vset4_3
    ne: _vset4_3

class _vset4_3(_Step):
    add: _vset4_4
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """1 or 0 in each of the bytes, as a compares to b; those that the mask leaves out are c's; .add: their sum plus c. ``vset4 d, a, b, c``, from PTX 6.3 sm_75."""

class _vset4_4(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """1 or 0 in each of the bytes, as a compares to b; those that the mask leaves out are c's; .add: their sum plus c. ``vset4 d, a, b, c``, from PTX 6.3 sm_75."""

class _vshl(_Step):
    s32: _vshl_1
    u32: _vshl_1

class _vshl_1(_Step):
    s32: _vshl_2
    u32: _vshl_2

class _vshl_2(_Step):
    u32: _vshl_3

class _vshl_3(_Step):
    clamp: _vshl_4
    sat: _vshl_5
    wrap: _vshl_4

class _vshl_4(_Step):
    add: _vshl_6
    max: _vshl_6
    min: _vshl_6
    def __call__(self, a: Any, b: Any, c: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """a << b, of words, halves or bytes. ``vshl d, a, b``, from PTX 6.3 sm_75.
        a << b, put into a part of c. ``vshl d, a, b, c``, from PTX 6.3 sm_75."""

class _vshl_5(_Step):
    clamp: _vshl_4
    wrap: _vshl_4

class _vshl_6(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """a << b, then combined with c. ``vshl d, a, b, c``, from PTX 6.3 sm_75."""

class _vshr(_Step):
    s32: _vshr_1
    u32: _vshr_1

class _vshr_1(_Step):
    s32: _vshr_2
    u32: _vshr_2

class _vshr_2(_Step):
    u32: _vshr_3

class _vshr_3(_Step):
    clamp: _vshr_4
    sat: _vshr_5
    wrap: _vshr_4

class _vshr_4(_Step):
    add: _vshr_6
    max: _vshr_6
    min: _vshr_6
    def __call__(self, a: Any, b: Any, c: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """a >> b, of words, halves or bytes. ``vshr d, a, b``, from PTX 6.3 sm_75.
        a >> b, put into a part of c. ``vshr d, a, b, c``, from PTX 6.3 sm_75."""

class _vshr_5(_Step):
    clamp: _vshr_4
    wrap: _vshr_4

class _vshr_6(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """a >> b, then combined with c. ``vshr d, a, b, c``, from PTX 6.3 sm_75."""

class _vsub(_Step):
    s32: _vsub_1
    u32: _vsub_1

class _vsub_1(_Step):
    s32: _vsub_2
    u32: _vsub_2

class _vsub_2(_Step):
    s32: _vsub_3
    u32: _vsub_3

class _vsub_3(_Step):
    add: _vsub_4
    max: _vsub_4
    min: _vsub_4
    sat: _vsub_5
    def __call__(self, a: Any, b: Any, c: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """A - b, of words, halves or bytes. ``vsub d, a, b``, from PTX 6.3 sm_75.
        A - b, put into a part of c. ``vsub d, a, b, c``, from PTX 6.3 sm_75."""

class _vsub_4(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """A - b, then combined with c. ``vsub d, a, b, c``, from PTX 6.3 sm_75."""

class _vsub_5(_Step):
    add: _vsub_4
    max: _vsub_4
    min: _vsub_4
    def __call__(self, a: Any, b: Any, c: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """A - b, of words, halves or bytes. ``vsub d, a, b``, from PTX 6.3 sm_75.
        A - b, put into a part of c. ``vsub d, a, b, c``, from PTX 6.3 sm_75."""

class _vsub2(_Step):
    s32: _vsub2_1
    u32: _vsub2_1

class _vsub2_1(_Step):
    s32: _vsub2_2
    u32: _vsub2_2

class _vsub2_2(_Step):
    s32: _vsub2_3
    u32: _vsub2_3

class _vsub2_3(_Step):
    add: _vsub2_4
    sat: _vsub2_4
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """A - b in each of the halves; those that the mask leaves out are c's; .add: their sum plus c. ``vsub2 d, a, b, c``, from PTX 6.3 sm_75."""

class _vsub2_4(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """A - b in each of the halves; those that the mask leaves out are c's; .add: their sum plus c. ``vsub2 d, a, b, c``, from PTX 6.3 sm_75."""

class _vsub4(_Step):
    s32: _vsub4_1
    u32: _vsub4_1

class _vsub4_1(_Step):
    s32: _vsub4_2
    u32: _vsub4_2

class _vsub4_2(_Step):
    s32: _vsub4_3
    u32: _vsub4_3

class _vsub4_3(_Step):
    add: _vsub4_4
    sat: _vsub4_4
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """A - b in each of the bytes; those that the mask leaves out are c's; .add: their sum plus c. ``vsub4 d, a, b, c``, from PTX 6.3 sm_75."""

class _vsub4_4(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """A - b in each of the bytes; those that the mask leaves out are c's; .add: their sum plus c. ``vsub4 d, a, b, c``, from PTX 6.3 sm_75."""

class _wgmma(_Step):
    commit_group: _wgmma_1
    fence: _wgmma_2
    mma_async: _wgmma_3
    wait_group: _wgmma_4

class _wgmma_1(_Step):
    sync: _wgmma_5

class _wgmma_2(_Step):
    sync: _wgmma_6

class _wgmma_3(_Step):
    sp: _wgmma_7
    sync: _wgmma_8

class _wgmma_4(_Step):
    sync: _wgmma_9

class _wgmma_5(_Step):
    aligned: _wgmma_10

class _wgmma_6(_Step):
    aligned: _wgmma_11

class _wgmma_7(_Step):
    sync: _wgmma_12

class _wgmma_8(_Step):
    aligned: _wgmma_13

class _wgmma_9(_Step):
    aligned: _wgmma_14

class _wgmma_10(_Step):
    def __call__(self, *, out: Any = None, pred: Any = None) -> None:
        """Makes a group of the wgmma.mma_async since the last one. ``wgmma ``, from PTX 8.0 sm_90a."""

class _wgmma_11(_Step):
    def __call__(self, *, out: Any = None, pred: Any = None) -> None:
        """Orders the accesses to registers and shared memory before the following wgmma.mma_async. ``wgmma ``, from PTX 8.0 sm_90a."""

class _wgmma_12(_Step):
    aligned: _wgmma_15

class _wgmma_13(_Step):
    m64n104k16: _wgmma_16
    m64n104k32: _wgmma_17
    m64n104k64: _wgmma_18
    m64n104k8: _wgmma_19
    m64n112k16: _wgmma_16
    m64n112k256: _wgmma_20
    m64n112k32: _wgmma_21
    m64n112k64: _wgmma_22
    m64n112k8: _wgmma_19
    m64n120k16: _wgmma_16
    m64n120k32: _wgmma_17
    m64n120k64: _wgmma_18
    m64n120k8: _wgmma_19
    m64n128k16: _wgmma_16
    m64n128k256: _wgmma_20
    m64n128k32: _wgmma_21
    m64n128k64: _wgmma_22
    m64n128k8: _wgmma_19
    m64n136k16: _wgmma_16
    m64n136k32: _wgmma_17
    m64n136k64: _wgmma_18
    m64n136k8: _wgmma_19
    m64n144k16: _wgmma_16
    m64n144k256: _wgmma_20
    m64n144k32: _wgmma_21
    m64n144k64: _wgmma_22
    m64n144k8: _wgmma_19
    m64n152k16: _wgmma_16
    m64n152k32: _wgmma_17
    m64n152k64: _wgmma_18
    m64n152k8: _wgmma_19
    m64n160k16: _wgmma_16
    m64n160k256: _wgmma_20
    m64n160k32: _wgmma_21
    m64n160k64: _wgmma_22
    m64n160k8: _wgmma_19
    m64n168k16: _wgmma_16
    m64n168k32: _wgmma_17
    m64n168k64: _wgmma_18
    m64n168k8: _wgmma_19
    m64n16k16: _wgmma_16
    m64n16k256: _wgmma_20
    m64n16k32: _wgmma_21
    m64n16k64: _wgmma_22
    m64n16k8: _wgmma_19
    m64n176k16: _wgmma_16
    m64n176k256: _wgmma_20
    m64n176k32: _wgmma_21
    m64n176k64: _wgmma_22
    m64n176k8: _wgmma_19
    m64n184k16: _wgmma_16
    m64n184k32: _wgmma_17
    m64n184k64: _wgmma_18
    m64n184k8: _wgmma_19
    m64n192k16: _wgmma_16
    m64n192k256: _wgmma_20
    m64n192k32: _wgmma_21
    m64n192k64: _wgmma_22
    m64n192k8: _wgmma_19
    m64n200k16: _wgmma_16
    m64n200k32: _wgmma_17
    m64n200k64: _wgmma_18
    m64n200k8: _wgmma_19
    m64n208k16: _wgmma_16
    m64n208k256: _wgmma_20
    m64n208k32: _wgmma_21
    m64n208k64: _wgmma_22
    m64n208k8: _wgmma_19
    m64n216k16: _wgmma_16
    m64n216k32: _wgmma_17
    m64n216k64: _wgmma_18
    m64n216k8: _wgmma_19
    m64n224k16: _wgmma_16
    m64n224k256: _wgmma_20
    m64n224k32: _wgmma_21
    m64n224k64: _wgmma_22
    m64n224k8: _wgmma_19
    m64n232k16: _wgmma_16
    m64n232k32: _wgmma_17
    m64n232k64: _wgmma_18
    m64n232k8: _wgmma_19
    m64n240k16: _wgmma_16
    m64n240k256: _wgmma_20
    m64n240k32: _wgmma_21
    m64n240k64: _wgmma_22
    m64n240k8: _wgmma_19
    m64n248k16: _wgmma_16
    m64n248k32: _wgmma_17
    m64n248k64: _wgmma_18
    m64n248k8: _wgmma_19
    m64n24k16: _wgmma_16
    m64n24k256: _wgmma_20
    m64n24k32: _wgmma_21
    m64n24k64: _wgmma_22
    m64n24k8: _wgmma_19
    m64n256k16: _wgmma_16
    m64n256k256: _wgmma_20
    m64n256k32: _wgmma_21
    m64n256k64: _wgmma_22
    m64n256k8: _wgmma_19
    m64n32k16: _wgmma_16
    m64n32k256: _wgmma_20
    m64n32k32: _wgmma_21
    m64n32k64: _wgmma_22
    m64n32k8: _wgmma_19
    m64n40k16: _wgmma_16
    m64n40k32: _wgmma_17
    m64n40k64: _wgmma_18
    m64n40k8: _wgmma_19
    m64n48k16: _wgmma_16
    m64n48k256: _wgmma_20
    m64n48k32: _wgmma_21
    m64n48k64: _wgmma_22
    m64n48k8: _wgmma_19
    m64n56k16: _wgmma_16
    m64n56k32: _wgmma_17
    m64n56k64: _wgmma_18
    m64n56k8: _wgmma_19
    m64n64k16: _wgmma_16
    m64n64k256: _wgmma_20
    m64n64k32: _wgmma_21
    m64n64k64: _wgmma_22
    m64n64k8: _wgmma_19
    m64n72k16: _wgmma_16
    m64n72k32: _wgmma_17
    m64n72k64: _wgmma_18
    m64n72k8: _wgmma_19
    m64n80k16: _wgmma_16
    m64n80k256: _wgmma_20
    m64n80k32: _wgmma_21
    m64n80k64: _wgmma_22
    m64n80k8: _wgmma_19
    m64n88k16: _wgmma_16
    m64n88k32: _wgmma_17
    m64n88k64: _wgmma_18
    m64n88k8: _wgmma_19
    m64n8k16: _wgmma_16
    m64n8k256: _wgmma_20
    m64n8k32: _wgmma_21
    m64n8k64: _wgmma_22
    m64n8k8: _wgmma_19
    m64n96k16: _wgmma_16
    m64n96k256: _wgmma_20
    m64n96k32: _wgmma_21
    m64n96k64: _wgmma_22
    m64n96k8: _wgmma_19

class _wgmma_14(_Step):
    def __call__(self, n: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """Waits until at most the last n groups are pending. ``wgmma n``, from PTX 8.0 sm_90a."""

class _wgmma_15(_Step):
    m64n104k16: _wgmma_16
    m64n104k32: _wgmma_17
    m64n104k64: _wgmma_18
    m64n104k8: _wgmma_19
    m64n112k16: _wgmma_16
    m64n112k32: _wgmma_21
    m64n112k64: _wgmma_22
    m64n112k8: _wgmma_19
    m64n120k16: _wgmma_16
    m64n120k32: _wgmma_17
    m64n120k64: _wgmma_18
    m64n120k8: _wgmma_19
    m64n128k16: _wgmma_16
    m64n128k32: _wgmma_21
    m64n128k64: _wgmma_22
    m64n128k8: _wgmma_19
    m64n136k16: _wgmma_16
    m64n136k32: _wgmma_17
    m64n136k64: _wgmma_18
    m64n136k8: _wgmma_19
    m64n144k16: _wgmma_16
    m64n144k32: _wgmma_21
    m64n144k64: _wgmma_22
    m64n144k8: _wgmma_19
    m64n152k16: _wgmma_16
    m64n152k32: _wgmma_17
    m64n152k64: _wgmma_18
    m64n152k8: _wgmma_19
    m64n160k16: _wgmma_16
    m64n160k32: _wgmma_21
    m64n160k64: _wgmma_22
    m64n160k8: _wgmma_19
    m64n168k16: _wgmma_16
    m64n168k32: _wgmma_17
    m64n168k64: _wgmma_18
    m64n168k8: _wgmma_19
    m64n16k16: _wgmma_16
    m64n16k32: _wgmma_21
    m64n16k64: _wgmma_22
    m64n16k8: _wgmma_19
    m64n176k16: _wgmma_16
    m64n176k32: _wgmma_21
    m64n176k64: _wgmma_22
    m64n176k8: _wgmma_19
    m64n184k16: _wgmma_16
    m64n184k32: _wgmma_17
    m64n184k64: _wgmma_18
    m64n184k8: _wgmma_19
    m64n192k16: _wgmma_16
    m64n192k32: _wgmma_21
    m64n192k64: _wgmma_22
    m64n192k8: _wgmma_19
    m64n200k16: _wgmma_16
    m64n200k32: _wgmma_17
    m64n200k64: _wgmma_18
    m64n200k8: _wgmma_19
    m64n208k16: _wgmma_16
    m64n208k32: _wgmma_21
    m64n208k64: _wgmma_22
    m64n208k8: _wgmma_19
    m64n216k16: _wgmma_16
    m64n216k32: _wgmma_17
    m64n216k64: _wgmma_18
    m64n216k8: _wgmma_19
    m64n224k16: _wgmma_16
    m64n224k32: _wgmma_21
    m64n224k64: _wgmma_22
    m64n224k8: _wgmma_19
    m64n232k16: _wgmma_16
    m64n232k32: _wgmma_17
    m64n232k64: _wgmma_18
    m64n232k8: _wgmma_19
    m64n240k16: _wgmma_16
    m64n240k32: _wgmma_21
    m64n240k64: _wgmma_22
    m64n240k8: _wgmma_19
    m64n248k16: _wgmma_16
    m64n248k32: _wgmma_17
    m64n248k64: _wgmma_18
    m64n248k8: _wgmma_19
    m64n24k16: _wgmma_16
    m64n24k32: _wgmma_21
    m64n24k64: _wgmma_22
    m64n24k8: _wgmma_19
    m64n256k16: _wgmma_16
    m64n256k32: _wgmma_21
    m64n256k64: _wgmma_22
    m64n256k8: _wgmma_19
    m64n32k16: _wgmma_16
    m64n32k32: _wgmma_21
    m64n32k64: _wgmma_22
    m64n32k8: _wgmma_19
    m64n40k16: _wgmma_16
    m64n40k32: _wgmma_17
    m64n40k64: _wgmma_18
    m64n40k8: _wgmma_19
    m64n48k16: _wgmma_16
    m64n48k32: _wgmma_21
    m64n48k64: _wgmma_22
    m64n48k8: _wgmma_19
    m64n56k16: _wgmma_16
    m64n56k32: _wgmma_17
    m64n56k64: _wgmma_18
    m64n56k8: _wgmma_19
    m64n64k16: _wgmma_16
    m64n64k32: _wgmma_21
    m64n64k64: _wgmma_22
    m64n64k8: _wgmma_19
    m64n72k16: _wgmma_16
    m64n72k32: _wgmma_17
    m64n72k64: _wgmma_18
    m64n72k8: _wgmma_19
    m64n80k16: _wgmma_16
    m64n80k32: _wgmma_21
    m64n80k64: _wgmma_22
    m64n80k8: _wgmma_19
    m64n88k16: _wgmma_16
    m64n88k32: _wgmma_17
    m64n88k64: _wgmma_18
    m64n88k8: _wgmma_19
    m64n8k16: _wgmma_16
    m64n8k32: _wgmma_21
    m64n8k64: _wgmma_22
    m64n8k8: _wgmma_19
    m64n96k16: _wgmma_16
    m64n96k32: _wgmma_21
    m64n96k64: _wgmma_22
    m64n96k8: _wgmma_19

class _wgmma_16(_Step):
    f16: _wgmma_23
    f32: _wgmma_24

class _wgmma_17(_Step):
    f16: _wgmma_25
    f32: _wgmma_26

class _wgmma_18(_Step):
    f16: _wgmma_27
    f32: _wgmma_27

class _wgmma_19(_Step):
    f32: _wgmma_28

class _wgmma_20(_Step):
    s32: _wgmma_29

class _wgmma_21(_Step):
    f16: _wgmma_25
    f32: _wgmma_26
    s32: _wgmma_30
    satfinite: _wgmma_31

class _wgmma_22(_Step):
    f16: _wgmma_27
    f32: _wgmma_27
    s32: _wgmma_30
    satfinite: _wgmma_31

class _wgmma_23(_Step):
    f16: _wgmma_32

class _wgmma_24(_Step):
    bf16: _wgmma_33
    f16: _wgmma_32
    tf32: _wgmma_34

class _wgmma_25(_Step):
    e4m3: _wgmma_35
    e5m2: _wgmma_35
    f16: _wgmma_32

class _wgmma_26(_Step):
    bf16: _wgmma_33
    e4m3: _wgmma_35
    e5m2: _wgmma_35
    f16: _wgmma_32

class _wgmma_27(_Step):
    e4m3: _wgmma_35
    e5m2: _wgmma_35

class _wgmma_28(_Step):
    tf32: _wgmma_34

class _wgmma_29(_Step):
    b1: _wgmma_36

class _wgmma_30(_Step):
    s8: _wgmma_37
    u8: _wgmma_37

class _wgmma_31(_Step):
    s32: _wgmma_30

class _wgmma_32(_Step):
    f16: _wgmma_38

class _wgmma_33(_Step):
    bf16: _wgmma_39

class _wgmma_34(_Step):
    tf32: _wgmma_40

class _wgmma_35(_Step):
    e4m3: _wgmma_41
    e5m2: _wgmma_41

class _wgmma_36(_Step):
    b1: _wgmma_42

class _wgmma_37(_Step):
    s8: _wgmma_43
    u8: _wgmma_43

class _wgmma_38(_Step):
    def __call__(self, d: Any, a: Any, b: Any, e: Any, f: Any, scale: Any, sa: Any, sb: Any = ..., ta: Any = ..., tb: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """d = a * b, plus d where scale holds, of f16, both in shared memory. ``wgmma {d, ..}, a, b{, e}{, f}, {!}scale, sa, sb, ta, tb``, from PTX 8.0 sm_90a.
        d = a * b, plus d where scale holds, of f16, a in registers. ``wgmma {d, ..}, {a, ..}, b{, e}{, f}, {!}scale, sa, sb, tb``, from PTX 8.0 sm_90a."""

class _wgmma_39(_Step):
    def __call__(self, d: Any, a: Any, b: Any, e: Any, f: Any, scale: Any, sa: Any, sb: Any = ..., ta: Any = ..., tb: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """d = a * b, plus d where scale holds, of bf16, both in shared memory. ``wgmma {d, ..}, a, b{, e}{, f}, {!}scale, sa, sb, ta, tb``, from PTX 8.0 sm_90a.
        d = a * b, plus d where scale holds, of bf16, a in registers. ``wgmma {d, ..}, {a, ..}, b{, e}{, f}, {!}scale, sa, sb, tb``, from PTX 8.0 sm_90a."""

class _wgmma_40(_Step):
    def __call__(self, d: Any, a: Any, b: Any, e: Any, f: Any, scale: Any, sa: Any = ..., sb: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """d = a * b, plus d where scale holds, of tf32, both in shared memory. ``wgmma {d, ..}, a, b{, e}{, f}, {!}scale, sa, sb``, from PTX 8.0 sm_90a.
        d = a * b, plus d where scale holds, of tf32, a in registers. ``wgmma {d, ..}, {a, ..}, b{, e}{, f}, {!}scale, sa, sb``, from PTX 8.0 sm_90a."""

class _wgmma_41(_Step):
    def __call__(self, d: Any, a: Any, b: Any, e: Any, f: Any, scale: Any, sa: Any = ..., sb: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """d = a * b, plus d where scale holds, of fp8, both in shared memory. ``wgmma {d, ..}, a, b{, e}{, f}, {!}scale, sa, sb``, from PTX 8.0 sm_90a.
        d = a * b, plus d where scale holds, of fp8, a in registers. ``wgmma {d, ..}, {a, ..}, b{, e}{, f}, {!}scale, sa, sb``, from PTX 8.0 sm_90a."""

class _wgmma_42(_Step):
    and_: _wgmma_44

class _wgmma_43(_Step):
    def __call__(self, d: Any, a: Any, b: Any, e: Any, f: Any = ..., scale: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """d = a * b, plus d where scale holds, of bytes, both in shared memory. ``wgmma {d, ..}, a, b{, e}{, f}, {!}scale``, from PTX 8.0 sm_90a.
        d = a * b, plus d where scale holds, of bytes, a in registers. ``wgmma {d, ..}, {a, ..}, b{, e}{, f}, {!}scale``, from PTX 8.0 sm_90a."""

class _wgmma_44(_Step):
    popc: _wgmma_45

class _wgmma_45(_Step):
    def __call__(self, d: Any, a: Any, b: Any, scale: Any, /, *, out: Any = None, pred: Any = None) -> None:
        """d = the number of ones in a and b, plus d where scale holds, both in shared memory. ``wgmma {d, ..}, a, b, {!}scale``, from PTX 8.0 sm_90a.
        d = the number of ones in a and b, plus d where scale holds, a in registers. ``wgmma {d, ..}, {a, ..}, b, {!}scale``, from PTX 8.0 sm_90a."""

class _wmma(_Step):
    load: _wmma_1
    mma: _wmma_2
    store: _wmma_3

class _wmma_1(_Step):
    a: _wmma_4
    b: _wmma_5
    c: _wmma_6

class _wmma_2(_Step):
    and_: _wmma_7
    sync: _wmma_8
    xor: _wmma_7

class _wmma_3(_Step):
    d: _wmma_9

class _wmma_4(_Step):
    sync: _wmma_10

class _wmma_5(_Step):
    sync: _wmma_11

class _wmma_6(_Step):
    sync: _wmma_12

class _wmma_7(_Step):
    popc: _wmma_13

class _wmma_8(_Step):
    aligned: _wmma_14

class _wmma_9(_Step):
    sync: _wmma_15

class _wmma_10(_Step):
    aligned: _wmma_16

class _wmma_11(_Step):
    aligned: _wmma_17

class _wmma_12(_Step):
    aligned: _wmma_18

class _wmma_13(_Step):
    sync: _wmma_19

class _wmma_14(_Step):
    col: _wmma_20
    row: _wmma_21

class _wmma_15(_Step):
    aligned: _wmma_22

class _wmma_16(_Step):
    col: _wmma_23
    row: _wmma_24

class _wmma_17(_Step):
    col: _wmma_25
    row: _wmma_23

class _wmma_18(_Step):
    col: _wmma_26
    row: _wmma_26

class _wmma_19(_Step):
    aligned: _wmma_27

class _wmma_20(_Step):
    col: _wmma_28
    row: _wmma_28

class _wmma_21(_Step):
    col: _wmma_29
    row: _wmma_28

class _wmma_22(_Step):
    col: _wmma_30
    row: _wmma_30

class _wmma_23(_Step):
    m16n16k16: _wmma_31
    m16n16k8: _wmma_32
    m32n8k16: _wmma_31
    m8n32k16: _wmma_31
    m8n8k4: _wmma_33

class _wmma_24(_Step):
    m16n16k16: _wmma_31
    m16n16k8: _wmma_32
    m32n8k16: _wmma_31
    m8n32k16: _wmma_31
    m8n8k128: _wmma_34
    m8n8k32: _wmma_35
    m8n8k4: _wmma_33

class _wmma_25(_Step):
    m16n16k16: _wmma_31
    m16n16k8: _wmma_32
    m32n8k16: _wmma_31
    m8n32k16: _wmma_31
    m8n8k128: _wmma_36
    m8n8k32: _wmma_37
    m8n8k4: _wmma_33

class _wmma_26(_Step):
    m16n16k16: _wmma_38
    m16n16k8: _wmma_39
    m32n8k16: _wmma_38
    m8n32k16: _wmma_38
    m8n8k128: _wmma_40
    m8n8k32: _wmma_40
    m8n8k4: _wmma_41

class _wmma_27(_Step):
    row: _wmma_42

class _wmma_28(_Step):
    m16n16k16: _wmma_43
    m16n16k8: _wmma_44
    m32n8k16: _wmma_43
    m8n32k16: _wmma_43
    m8n8k4: _wmma_45

class _wmma_29(_Step):
    m16n16k16: _wmma_43
    m16n16k8: _wmma_44
    m32n8k16: _wmma_43
    m8n32k16: _wmma_43
    m8n8k32: _wmma_46
    m8n8k4: _wmma_45

class _wmma_30(_Step):
    m16n16k16: _wmma_47
    m16n16k8: _wmma_48
    m32n8k16: _wmma_47
    m8n32k16: _wmma_47
    m8n8k128: _wmma_49
    m8n8k32: _wmma_49
    m8n8k4: _wmma_50

class _wmma_31(_Step):
    bf16: _wmma_51
    f16: _wmma_52
    global_: _wmma_53
    s8: _wmma_51
    shared: _wmma_53
    shared__cta: _wmma_53
    u8: _wmma_51

class _wmma_32(_Step):
    global_: _wmma_54
    shared: _wmma_54
    shared__cta: _wmma_54
    tf32: _wmma_55

class _wmma_33(_Step):
    f64: _wmma_56
    global_: _wmma_57
    shared: _wmma_57
    shared__cta: _wmma_57

class _wmma_34(_Step):
    b1: _wmma_58
    global_: _wmma_59
    shared: _wmma_59
    shared__cta: _wmma_59

class _wmma_35(_Step):
    global_: _wmma_60
    s4: _wmma_61
    shared: _wmma_60
    shared__cta: _wmma_60
    u4: _wmma_61

class _wmma_36(_Step):
    b1: _wmma_62
    global_: _wmma_63
    shared: _wmma_63
    shared__cta: _wmma_63

class _wmma_37(_Step):
    global_: _wmma_64
    s4: _wmma_65
    shared: _wmma_64
    shared__cta: _wmma_64
    u4: _wmma_65

class _wmma_38(_Step):
    f16: _wmma_66
    f32: _wmma_66
    global_: _wmma_67
    s32: _wmma_68
    shared: _wmma_67
    shared__cta: _wmma_67

class _wmma_39(_Step):
    f16: _wmma_66
    f32: _wmma_66
    global_: _wmma_69
    shared: _wmma_69
    shared__cta: _wmma_69

class _wmma_40(_Step):
    global_: _wmma_70
    s32: _wmma_68
    shared: _wmma_70
    shared__cta: _wmma_70

class _wmma_41(_Step):
    f64: _wmma_71
    global_: _wmma_72
    shared: _wmma_72
    shared__cta: _wmma_72

class _wmma_42(_Step):
    col: _wmma_73

class _wmma_43(_Step):
    f16: _wmma_74
    f32: _wmma_75
    s32: _wmma_76

class _wmma_44(_Step):
    f32: _wmma_77

class _wmma_45(_Step):
    f64: _wmma_78
    rm: _wmma_79
    rn: _wmma_79
    rp: _wmma_79
    rz: _wmma_79

class _wmma_46(_Step):
    s32: _wmma_80

class _wmma_47(_Step):
    f16: _wmma_81
    f32: _wmma_81
    global_: _wmma_82
    s32: _wmma_83
    shared: _wmma_82
    shared__cta: _wmma_82

class _wmma_48(_Step):
    f16: _wmma_81
    f32: _wmma_81
    global_: _wmma_84
    shared: _wmma_84
    shared__cta: _wmma_84

class _wmma_49(_Step):
    global_: _wmma_85
    s32: _wmma_83
    shared: _wmma_85
    shared__cta: _wmma_85

class _wmma_50(_Step):
    f64: _wmma_86
    global_: _wmma_87
    shared: _wmma_87
    shared__cta: _wmma_87

class _wmma_51(_Step):
    def __call__(self, a: Any, stride: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Loads a matrix of bytes or bf16. ``wmma {d, ..}, [a]{, stride}``, from PTX 6.3 sm_75."""

class _wmma_52(_Step):
    def __call__(self, a: Any, stride: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Loads a 16x16 matrix, or 32x8 and 8x32 ones, of f16. ``wmma {d, ..}, [a]{, stride}``, from PTX 6.3 sm_75."""

class _wmma_53(_Step):
    bf16: _wmma_51
    f16: _wmma_52
    s8: _wmma_51
    u8: _wmma_51

class _wmma_54(_Step):
    tf32: _wmma_55

class _wmma_55(_Step):
    def __call__(self, a: Any, stride: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Loads a matrix of tf32. ``wmma {d, ..}, [a]{, stride}``, from PTX 7.0 sm_80."""

class _wmma_56(_Step):
    def __call__(self, a: Any, stride: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Loads a matrix of f64. ``wmma {d, ..}, [a]{, stride}``, from PTX 7.0 sm_80."""

class _wmma_57(_Step):
    f64: _wmma_56

class _wmma_58(_Step):
    def __call__(self, a: Any, stride: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Loads a matrix of bits. ``wmma {d, ..}, [a]{, stride}``, from PTX 6.3 sm_75."""

class _wmma_59(_Step):
    b1: _wmma_58

class _wmma_60(_Step):
    s4: _wmma_61
    u4: _wmma_61

class _wmma_61(_Step):
    def __call__(self, a: Any, stride: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Loads a matrix of 4-bit integers. ``wmma {d, ..}, [a]{, stride}``, from PTX 6.3 sm_75."""

class _wmma_62(_Step):
    def __call__(self, a: Any, stride: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Loads a matrix of bits. ``wmma {d, ..}, [a]{, stride}``, from PTX 6.3 sm_75."""

class _wmma_63(_Step):
    b1: _wmma_62

class _wmma_64(_Step):
    s4: _wmma_65
    u4: _wmma_65

class _wmma_65(_Step):
    def __call__(self, a: Any, stride: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Loads a matrix of 4-bit integers. ``wmma {d, ..}, [a]{, stride}``, from PTX 6.3 sm_75."""

class _wmma_66(_Step):
    def __call__(self, a: Any, stride: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Loads an accumulator. ``wmma {d, ..}, [a]{, stride}``, from PTX 6.3 sm_75."""

class _wmma_67(_Step):
    f16: _wmma_66
    f32: _wmma_66
    s32: _wmma_68

class _wmma_68(_Step):
    def __call__(self, a: Any, stride: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Loads an accumulator. ``wmma {d, ..}, [a]{, stride}``, from PTX 6.3 sm_75."""

class _wmma_69(_Step):
    f16: _wmma_66
    f32: _wmma_66

class _wmma_70(_Step):
    s32: _wmma_68

class _wmma_71(_Step):
    def __call__(self, a: Any, stride: Any = ..., /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """Loads an accumulator. ``wmma {d, ..}, [a]{, stride}``, from PTX 7.0 sm_80."""

class _wmma_72(_Step):
    f64: _wmma_71

class _wmma_73(_Step):
    m8n8k128: _wmma_88

class _wmma_74(_Step):
    f16: _wmma_89
    f32: _wmma_89

class _wmma_75(_Step):
    bf16: _wmma_90
    f16: _wmma_89
    f32: _wmma_89

class _wmma_76(_Step):
    s8: _wmma_91
    u8: _wmma_91

class _wmma_77(_Step):
    tf32: _wmma_92

class _wmma_78(_Step):
    f64: _wmma_93

class _wmma_79(_Step):
    f64: _wmma_78

class _wmma_80(_Step):
    s4: _wmma_94
    u4: _wmma_94

class _wmma_81(_Step):
    def __call__(self, a: Any, b: Any, stride: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """Stores an accumulator. ``wmma [a], {b, ..}{, stride}``, from PTX 6.3 sm_75."""

class _wmma_82(_Step):
    f16: _wmma_81
    f32: _wmma_81
    s32: _wmma_83

class _wmma_83(_Step):
    def __call__(self, a: Any, b: Any, stride: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """Stores an accumulator. ``wmma [a], {b, ..}{, stride}``, from PTX 6.3 sm_75."""

class _wmma_84(_Step):
    f16: _wmma_81
    f32: _wmma_81

class _wmma_85(_Step):
    s32: _wmma_83

class _wmma_86(_Step):
    def __call__(self, a: Any, b: Any, stride: Any = ..., /, *, out: Any = None, pred: Any = None) -> None:
        """Stores an accumulator. ``wmma [a], {b, ..}{, stride}``, from PTX 7.0 sm_80."""

class _wmma_87(_Step):
    f64: _wmma_86

class _wmma_88(_Step):
    s32: _wmma_95

class _wmma_89(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a * b + c of f16. ``wmma {d, ..}, {a, ..}, {b, ..}, {c, ..}``, from PTX 6.3 sm_75."""

class _wmma_90(_Step):
    bf16: _wmma_96

class _wmma_91(_Step):
    s8: _wmma_97
    u8: _wmma_97

class _wmma_92(_Step):
    tf32: _wmma_98

class _wmma_93(_Step):
    f64: _wmma_99

class _wmma_94(_Step):
    s4: _wmma_100
    u4: _wmma_100

class _wmma_95(_Step):
    b1: _wmma_101

class _wmma_96(_Step):
    f32: _wmma_102

class _wmma_97(_Step):
    s32: _wmma_103

class _wmma_98(_Step):
    f32: _wmma_104

class _wmma_99(_Step):
    f64: _wmma_105

class _wmma_100(_Step):
    s32: _wmma_106

class _wmma_101(_Step):
    b1: _wmma_107

class _wmma_102(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a * b + c of bf16. ``wmma {d, ..}, {a, ..}, {b, ..}, {c, ..}``, from PTX 7.0 sm_80."""

class _wmma_103(_Step):
    satfinite: _wmma_108
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a * b + c of bytes. ``wmma {d, ..}, {a, ..}, {b, ..}, {c, ..}``, from PTX 6.3 sm_75."""

class _wmma_104(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a * b + c of tf32. ``wmma {d, ..}, {a, ..}, {b, ..}, {c, ..}``, from PTX 7.0 sm_80."""

class _wmma_105(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a * b + c of f64. ``wmma {d, ..}, {a, ..}, {b, ..}, {c, ..}``, from PTX 7.0 sm_80."""

class _wmma_106(_Step):
    satfinite: _wmma_109
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a * b + c of 4-bit integers. ``wmma {d, ..}, {a, ..}, {b, ..}, {c, ..}``, from PTX 6.3 sm_75."""

class _wmma_107(_Step):
    s32: _wmma_110

class _wmma_108(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a * b + c of bytes. ``wmma {d, ..}, {a, ..}, {b, ..}, {c, ..}``, from PTX 6.3 sm_75."""

class _wmma_109(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a * b + c of 4-bit integers. ``wmma {d, ..}, {a, ..}, {b, ..}, {c, ..}``, from PTX 6.3 sm_75."""

class _wmma_110(_Step):
    def __call__(self, a: Any, b: Any, c: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = c plus the number of ones in a xor b, or a and b. ``wmma {d, ..}, {a, ..}, {b, ..}, {c, ..}``, from PTX 6.3 sm_75."""

class _xor(_Step):
    b16: _xor_1
    b32: _xor_1
    b64: _xor_1
    pred: _xor_1

class _xor_1(_Step):
    def __call__(self, a: Any, b: Any, /, *, out: Any = None, pred: Any = None) -> KernelOperand:
        """d = a ^ b. ``xor d, a, b``, from PTX 6.3 sm_75."""

class _xyz(_Step):
    x: KernelOperand
    y: KernelOperand
    z: KernelOperand

class Namespace:
    def __getitem__(self, mnemonic: str) -> Instruction: ...
    def pragma(self, *texts: str) -> None: ...
    abs: _abs
    activemask: _activemask
    add: _add
    addc: _addc
    alloca: _alloca
    and_: _and
    applypriority: _applypriority
    atom: _atom
    bar: _bar
    barrier: _barrier
    bfe: _bfe
    bfi: _bfi
    bfind: _bfind
    bmsk: _bmsk
    bra: _bra
    brev: _brev
    brkpt: _brkpt
    brx: _brx
    call: _call
    clmad: _clmad
    clusterlaunchcontrol: _clusterlaunchcontrol
    clz: _clz
    cnot: _cnot
    copysign: _copysign
    cos: _cos
    cp: _cp
    createpolicy: _createpolicy
    cvt: _cvt
    cvta: _cvta
    discard: _discard
    div: _div
    dp2a: _dp2a
    dp4a: _dp4a
    elect: _elect
    ex2: _ex2
    exit: _exit
    fabric: _fabric
    fence: _fence
    fma: _fma
    fns: _fns
    getctarank: _getctarank
    griddepcontrol: _griddepcontrol
    isspacep: _isspacep
    istypep: _istypep
    ld: _ld
    ldmatrix: _ldmatrix
    ldu: _ldu
    lg2: _lg2
    lop3: _lop3
    mad: _mad
    mad24: _mad24
    madc: _madc
    mapa: _mapa
    match: _match
    max: _max
    mbarrier: _mbarrier
    membar: _membar
    min: _min
    mma: _mma
    mov: _mov
    movmatrix: _movmatrix
    mul: _mul
    mul24: _mul24
    multimem: _multimem
    nanosleep: _nanosleep
    neg: _neg
    not_: _not
    or_: _or
    pmevent: _pmevent
    popc: _popc
    prefetch: _prefetch
    prefetchu: _prefetchu
    prmt: _prmt
    rcp: _rcp
    red: _red
    redux: _redux
    rem: _rem
    ret: _ret
    rsqrt: _rsqrt
    sad: _sad
    selp: _selp
    set: _set
    setmaxnreg: _setmaxnreg
    setp: _setp
    shf: _shf
    shfl: _shfl
    shl: _shl
    shr: _shr
    sin: _sin
    slct: _slct
    spcompress: _spcompress
    spdecompress: _spdecompress
    sqrt: _sqrt
    st: _st
    stackrestore: _stackrestore
    stacksave: _stacksave
    stmatrix: _stmatrix
    sub: _sub
    subc: _subc
    suld: _suld
    suq: _suq
    sured: _sured
    sust: _sust
    szext: _szext
    tanh: _tanh
    tcgen05: _tcgen05
    tensormap: _tensormap
    testp: _testp
    tex: _tex
    tld4: _tld4
    trace: _trace
    trap: _trap
    txq: _txq
    vabsdiff: _vabsdiff
    vabsdiff2: _vabsdiff2
    vabsdiff4: _vabsdiff4
    vadd: _vadd
    vadd2: _vadd2
    vadd4: _vadd4
    vavrg2: _vavrg2
    vavrg4: _vavrg4
    vmad: _vmad
    vmax: _vmax
    vmax2: _vmax2
    vmax4: _vmax4
    vmin: _vmin
    vmin2: _vmin2
    vmin4: _vmin4
    vote: _vote
    vset: _vset
    vset2: _vset2
    vset4: _vset4
    vshl: _vshl
    vshr: _vshr
    vsub: _vsub
    vsub2: _vsub2
    vsub4: _vsub4
    wgmma: _wgmma
    wmma: _wmma
    xor: _xor
    tid: _xyz
    ntid: _xyz
    ctaid: _xyz
    nctaid: _xyz
    laneid: KernelOperand
    warpid: KernelOperand
    nwarpid: KernelOperand
    smid: KernelOperand
    nsmid: KernelOperand
    gridid: KernelOperand
    lanemask_eq: KernelOperand
    lanemask_le: KernelOperand
    lanemask_lt: KernelOperand
    lanemask_ge: KernelOperand
    lanemask_gt: KernelOperand
    clock: KernelOperand
    clock_hi: KernelOperand
    clock64: KernelOperand
    pm0: KernelOperand
    pm1: KernelOperand
    pm2: KernelOperand
    pm3: KernelOperand
    pm4: KernelOperand
    pm5: KernelOperand
    pm6: KernelOperand
    pm7: KernelOperand
    pm0_64: KernelOperand
    pm1_64: KernelOperand
    pm2_64: KernelOperand
    pm3_64: KernelOperand
    pm4_64: KernelOperand
    pm5_64: KernelOperand
    pm6_64: KernelOperand
    pm7_64: KernelOperand
    envreg0: KernelOperand
    envreg1: KernelOperand
    envreg2: KernelOperand
    envreg3: KernelOperand
    envreg4: KernelOperand
    envreg5: KernelOperand
    envreg6: KernelOperand
    envreg7: KernelOperand
    envreg8: KernelOperand
    envreg9: KernelOperand
    envreg10: KernelOperand
    envreg11: KernelOperand
    envreg12: KernelOperand
    envreg13: KernelOperand
    envreg14: KernelOperand
    envreg15: KernelOperand
    envreg16: KernelOperand
    envreg17: KernelOperand
    envreg18: KernelOperand
    envreg19: KernelOperand
    envreg20: KernelOperand
    envreg21: KernelOperand
    envreg22: KernelOperand
    envreg23: KernelOperand
    envreg24: KernelOperand
    envreg25: KernelOperand
    envreg26: KernelOperand
    envreg27: KernelOperand
    envreg28: KernelOperand
    envreg29: KernelOperand
    envreg30: KernelOperand
    envreg31: KernelOperand
    globaltimer: KernelOperand
    globaltimer_lo: KernelOperand
    globaltimer_hi: KernelOperand
    total_smem_size: KernelOperand
    dynamic_smem_size: KernelOperand
    aggr_smem_size: KernelOperand
    reserved_smem_offset_begin: KernelOperand
    reserved_smem_offset_end: KernelOperand
    reserved_smem_offset_cap: KernelOperand
    reserved_smem_offset_0: KernelOperand
    reserved_smem_offset_1: KernelOperand
    is_explicit_cluster: KernelOperand
    clusterid: _xyz
    nclusterid: _xyz
    cluster_ctaid: _xyz
    cluster_nctaid: _xyz
    cluster_ctarank: KernelOperand
    cluster_nctarank: KernelOperand
    current_graph_exec: KernelOperand
    perctamemorysize: KernelOperand
    perctamemoryoffset: KernelOperand

ptx: Namespace
