"""Each rule of the verifier, broken once: the error names operation, rule, fix and the author's line."""

from __future__ import annotations

import re

import pytest

import flyllvm.atoms
from flyllvm.errors import FlyError, VerifyError
from flyllvm.ir import types as t
from flyllvm.ir.core import OPS, Block, Kernel
from flyllvm.ir.location import Frame, Location
from flyllvm.ir.ops_control import If, Yield
from flyllvm.ir.parser import parse_kernel
from flyllvm.ir.protocols import parse_payload, register_payload
from flyllvm.ir.verifier import verify
from flyllvm.layout import Layout
from flyllvm.state import AtomStateField, StateStruct
from flyllvm.target import Target
from tests.ir.samples import GFX942, SAMPLES

assert flyllvm.atoms

MFMA = "!fly.mma_atom<!fly_rocdl.cdna3.mfma<16x16x16, (f16, f16) -> f32>>"
UNIVERSAL = "!fly.copy_atom<!fly.universal_copy<64>, 16>"
BUFFER = "!fly.copy_atom<!fly_rocdl.cdna3.buffer_copy<64>, 16>"
ARGS = (
    "%i: i32, %l: i64, %h: f16, %x: f32, %c: i1, %v: vector<4xf32>, %g: vector<4xf16>, %p: !fly.ptr<f16, global>, "
    "%q: !fly.ptr<f16, shared>, %r: !fly.memref<f16, register, 4:1>, %m: !fly.memref<f16, global, 4:1>, "
    "%m2: !fly.memref<f16, global, 2:1>, %d: !fly.memref<f16, global, ?:1>, %f: !fly.memref<f32, register, 4:1>, "
    f"%t: !fly.int_tuple<(2,?)>, %y: !fly.layout<4:1>, %u: {UNIVERSAL}, %b: {BUFFER}, %n: {MFMA}"
)


def refused(body: str, stage: str = "fly", target: Target | None = GFX942, **sizes: object) -> str:
    """The error for a kernel with arguments of many types and one more line."""
    block = sizes.get("block")
    attrs = f" attributes {{known_block_size = array<i32: {block}>}}" if block else ""
    kernel = parse_kernel(f"gpu.func @k({ARGS}) kernel{attrs} {{\n{body}\n}}\n", "k.fly")
    with pytest.raises(FlyError) as info:
        verify(kernel, stage, target)
    assert re.match(r"k\.fly:\d+", str(info.value.where)), info.value
    return str(info.value)


#: Short names for the long types in the texts below.
SHORT = {
    "MEM": "!fly.memref<f16, global, 4:1>",
    "REG": "!fly.memref<f16, register, 4:1>",
    "ACC": "!fly.memref<f32, register, 4:1>",
    "PTR": "!fly.ptr<f16, global>",
    "LDS": "!fly.ptr<f16, shared>",
    "TUP": "!fly.int_tuple<(2,?)>",
    "LAY": "!fly.layout<4:1>",
    "UNIVERSAL": UNIVERSAL,
    "BUFFER": BUFFER,
    "MFMA": MFMA,
    "V4": "vector<4xf32>",
}


def long(text: str) -> str:
    return re.sub(r"\b(" + "|".join(SHORT) + r")\b", lambda m: SHORT[m[1]], text)


# (line, what the message says, what the fix says)
RULES = [
    # arity, attributes, terminators
    ('"arith.addi"(%i) : (i32) -> i32', "arith.addi: 1 operands", "give 2"),
    ('"vector.extract"() : () -> f32', "vector.extract: 0 operands", "give 1 to 2"),
    ('"vector.concat"() : () -> f32', "vector.concat: 0 operands", "give 1 or more"),
    ('"gpu.barrier"() : () -> i32', "gpu.barrier: 1 results", "it has 0"),
    ('"scf.if"(%c) : (i1) -> ()', "scf.if: 0 regions", "it has 2"),
    ("gpu.return\ngpu.barrier", "gpu.return: does not end its block", "nothing may follow it"),
    ("scf.yield", "scf.yield: stands in the wrong place: it ends a region", "end the kernel with gpu.return"),
    ("scf.if %c { gpu.return\nscf.yield }", "gpu.return: does not end its block", "nothing may follow"),
    (
        '"scf.if"(%c) ({ scf.yield }, { }) : (i1) -> ()',
        "region 1 does not end with scf.yield",
        "yield the carried values",
    ),
    ('"scf.if"(%c) ({ gpu.return }, { scf.yield }) : (i1) -> ()', "region 0 does not end with scf.yield", "yield"),
    # control flow
    ('"scf.if"(%i) ({ scf.yield }, { scf.yield }) : (i32) -> ()', "scf.if: the condition is no i1", "compare first"),
    (
        '"scf.if"(%c) ({ scf.yield %x : f32 }, { scf.yield }) : (i1) -> f32',
        "the else branch yields: []",
        "same on every",
    ),
    (
        '"scf.for"(%x, %x, %x) ({ ^bb0(%k: f32): scf.yield }) : (f32, f32, f32) -> ()',
        "bounds of types",
        "use i32 bounds",
    ),
    ("%z = arith.constant 0 : i32\nscf.for %k = %i to %i step %z : i32 { }", "scf.for: step 0", "use a positive step"),
    (
        "scf.for %k = %i to %i step %i iter_args(%a = %x) -> (f32) : i32 { scf.yield %k : i32 }",
        "the body yields",
        "carried",
    ),
    ('"scf.for"(%i, %i, %i) ({ scf.yield }) : (i32, i32, i32) -> ()', "body arguments: []", "carried values the same"),
    (
        "scf.while (%a = %i) : (i32) -> () { scf.yield } do { scf.yield %i : i32 }",
        "does not end with scf.condition",
        "end",
    ),
    ('"scf.while"() ({ "scf.condition"(%i) : (i32) -> () }, { scf.yield }) : () -> ()', "is no i1", "condition first"),
    (
        "scf.while (%a = %i) : (i32) -> (i32) { scf.condition(%c) } do { ^bb0(%z: i32): scf.yield %z : i32 }",
        "the condition hands on: []",
        "keep the number and the types",
    ),
    # ids and effects
    ('"gpu.thread_id"() {dimension = "w"} : () -> i32', "dimension 'w'", "use x, y or z"),
    ('"gpu.lane_id"() : () -> i64', "gpu.lane_id: result i64", "the result is an i32"),
    ("gpu.barrier {fence = 3 : i32}", "fence is 3", "use true or false"),
    ("llvm.fence monotonic", "ordering 'monotonic'", "use acquire, release"),
    ("llvm.fence release {syncscope = 1 : i32}", "syncscope 1", "name a scope"),
    ('"gpu.printf"() : () -> ()', "no format text", "pass a format string"),
    ('gpu.printf "", %v : vector<4xf32>', "cannot print a vector<4xf32>", "extract vector elements first"),
    ('llvm.call_intrinsic "s.sleep"() : () -> ()', "intrinsic 's.sleep'", "give the full name with 'llvm.'"),
    ('llvm.call_intrinsic "llvm.x"() {imms = [1]} : () -> ()', "immediate 1", "give (position, value, bits)"),
    ('llvm.call_intrinsic "llvm.x"() {imms = [array<i32: 3, 0, 1>]} : () -> ()', "immediates at positions [3]", "one"),
    ('llvm.call_intrinsic "llvm.x"() {pure = 1} : () -> ()', "pure is 1", "use true or false"),
    ('%0, %1 = llvm.call_intrinsic "llvm.x"() : () -> (i32, i32)', "2 results", "one result or none"),
    # numbers
    ("%0 = arith.constant 300 : i8", "300 does not fit i8", "use a value of 8 bits"),
    ("%0 = arith.constant dense<[1, 2]> : vector<3xi8>", "2 numbers for vector<3xi8>", "give one number or 3"),
    ('"arith.constant"() {value = "x"} : () -> i8', "'x' is no number for i8", "use int or float"),
    ('"arith.constant"() {value = 1.5 : f64} : () -> i8', "1.5 is no integer for i8", "use an int"),
    ("%0 = arith.addi %x, %x : f32", "operand type f32", "use integers or vectors of them"),
    ("%0 = arith.addf %i, %i : i32", "operand type i32", "convert smaller floats first"),
    (
        '"arith.addi"(%i, %l) : (i32, i64) -> i32',
        "operand types i32 and i64, result i32 differ",
        "convert the operands",
    ),
    ("%0 = arith.addf %x, %x fastmath<quick> : f32", "unknown fastmath flag 'quick'", "use: nnan, ninf"),
    ("%0 = arith.andi %i, %i overflow<nsw> : i32", "unknown overflow flag 'nsw'", "use: none here"),
    ("%0 = arith.addi %i, %i {overflow = 1} : i32", "overflow is 1", "give a tuple of flags"),
    ("%0 = math.exp2 %i : i32", "i32 -> i32", "use f16, bf16, f32 or f64"),
    ("%0 = math.ctpop %x : f32", "f32 -> f32", "use integers with the same result type"),
    ("%0 = math.fma %i, %i, %i : i32", "operands ['i32', 'i32', 'i32']", "use three floats of one type"),
    ("%0 = arith.cmpi lt, %i, %i : i32", "unknown predicate 'lt'", "use: eq, ne, slt"),
    ("%0 = arith.cmpf olt, %i, %i : i32", "compares i32 with i32 giving i1", "compare two values of one type"),
    ('"arith.select"(%i, %x, %x) : (i32, f32, f32) -> f32', "select i32, f32, f32", "use an i1 and two values"),
    ("%0 = arith.select %c, %p, %p : PTR", "select of !fly.ptr<f16, global>", "yield it from the arms of an scf.if"),
    ("%0 = arith.extf %x : f32 to f16", "cannot convert f32 to f16", "converts a float to a wider one"),
    ("%0 = vector.bitcast %x : f32 to i64", "f32 has 32 bits, i64 has 64", "types of equal size in bits"),
    ("%0 = vector.broadcast %x : f32 to vector<4xf16>", "f32 into vector<4xf16>", "a vector of its type"),
    ("%0 = vector.extract %v[4] : f32 from vector<4xf32>", "position 4 in vector<4xf32>", "a position from 0 to 3"),
    ("%0 = vector.extract %v[%l] : f32 from vector<4xf32>", "index of type i64", "use an i32 index"),
    ("%0 = vector.insert %h, %v[0] : f16 into vector<4xf32>", "f16 into vector<4xf32>", "of the vector's type"),
    (
        "%0 = vector.extract_strided_slice %v {offsets = [3], sizes = [2], strides = [1]} : V4 to vector<2xf32>",
        "elements 3 to 5 of vector<4xf32>",
        "stay inside the vector",
    ),
    (
        "%0 = vector.insert_strided_slice %v, %v {offsets = [1], strides = [1]} : vector<4xf32> into vector<4xf32>",
        "vector<4xf32> at 1 of vector<4xf32>",
        "stay inside the vector",
    ),
    ("%0 = vector.concat(%v, %h) : (vector<4xf32>, f16) -> vector<5xf32>", "into vector<5xf32>", "of one element type"),
    (
        "%0 = vector.concat(%v, %x) : (vector<4xf32>, f32) -> vector<4xf32>",
        "parts hold 5 elements",
        "make the counts equal",
    ),
    ("%0 = vector.shuffle %v, %v [8] : vector<4xf32>, vector<4xf32>", "mask (8,)", "use indices from 0 to 7"),
    ("%0 = vector.reduction <sum>, %v : vector<4xf32> into f32", "kind 'sum'", "use: add, mul"),
    # layouts, pointers, memrefs
    ("%0 = fly.static : !fly.layout<(2,?):(1,2)>", "has run-time leaves", "make it with fly.make_layout"),
    ("%0 = fly.static : BUFFER", "result BUFFER", "atoms without state are static"),
    ("%0 = fly.make_int_tuple : TUP", "0 operands for TUP", "its 1 run-time leaves"),
    ("%0 = fly.make_int_tuple : i32", "result i32", "the result is an int tuple"),
    ("%0 = fly.make_layout(%i, %t) : (i32, TUP) -> LAY", "operands ['i32'", "a shape and"),
    ("%0 = fly.make_layout(%t, %t) : (TUP, TUP) -> i32", "result i32", "is a Layout"),
    ("%0 = fly.make_composed_layout(%y, %i, %y) : (LAY, i32, LAY) -> i32", "offset i32", "tuple"),
    (
        "%0 = fly.make_layout(%t, %t) : (TUP, TUP) -> !fly.layout<(4,?):(2,?)>",
        "!fly.int_tuple<(2,?)> as (4,?)",
        "the result is made of the operands",
    ),
    (
        "%0 = fly.make_layout(%t, %t) : (TUP, TUP) -> !fly.layout<(2,?):(2,?{i64})>",
        "as (2,?{i64})",
        "the result is made of the operands",
    ),
    (
        "%0 = fly.make_composed_layout(%y, %t, %y) : (LAY, TUP, LAY) -> !fly.composed_layout<4:1 o (2,?) o 4:2>",
        "!fly.layout<4:1> as 4:2",
        "the result is made of the operands",
    ),
    (
        "%0 = fly.make_int_tuple(%l) : (i64) -> TUP",
        "the leaf ? of !fly.int_tuple<(2,?)> is given as i64",
        "pass an i32",
    ),
    (
        "fly.copy_atom_call(%u, %d, %r) : (UNIVERSAL, !fly.memref<f16, global, ?:1>, REG) -> ()",
        "has a run-time number of elements",
        "an atom moves a static number of them",
    ),
    (
        "%0 = fly.memref.alloca : !fly.memref<i1, register, 4:1>\n"
        "fly.copy_atom_call(%u, %m, %r, %0) : (UNIVERSAL, MEM, REG, !fly.memref<i1, register, 4:1>) -> ()",
        "has 4 entries",
        "give one atom call one entry",
    ),
    ("%0 = fly.make_composed_layout(%i, %t, %y) : (i32, TUP, LAY) -> i32", "i32 and", "inner"),
    ("%0 = fly.make_view(%q, %y) : (LDS, LAY) -> MEM", "pointer LDS for", "use the pointer type of the result"),
    (
        "%0 = fly.make_view(%p, %y) : (PTR, LAY) -> !fly.memref<f16, global, 2:1>",
        "layout LAY for",
        "pass a layout operand of 2:1",
    ),
    ("%0 = fly.make_view(%p, %y) : (PTR, LAY) -> i32", "result i32", "a memref or a coord"),
    ("%0 = fly.get_iter(%m) : (MEM) -> i32", "gives i32", "the result is PTR"),
    ("%0 = fly.get_iter(%i) : (i32) -> i32", "operand 0 is i32", "pass a memref"),
    ("%0 = fly.make_ptr {allocBytes = 0, allocAlign = 4} : LDS", "allocBytes 0", "at least one byte"),
    (
        "%0 = fly.make_ptr {allocBytes = 64, allocAlign = 4} : !fly.ptr<f16, shared, align<16>>",
        "for an allocation aligned to 4 bytes",
        "raise allocAlign",
    ),
    (
        "%0 = fly.get_dyn_shared : !fly.ptr<f16, shared, align<2048>>",
        "given at launch is aligned to 1024 bytes",
        "promise no more",
    ),
    (
        "%0 = fly.make_copy_atom {valBits = 24 : i32} : !fly.copy_atom<!fly.universal_copy<64>, 24>",
        "64 bits are no whole number of values of 24 bits",
        "use the width of an element",
    ),
    (
        "%0 = fly.make_copy_atom {valBits = 0 : i32} : !fly.copy_atom<!fly.universal_copy<64>, 0>",
        "values of 0 bits",
        "use the width of an element",
    ),
    ("%0 = fly.make_ptr {allocBytes = 4, allocAlign = 3} : LDS", "allocAlign 3", "use a power of two"),
    ("%0 = fly.make_ptr {allocBytes = 4, allocAlign = 4, symbol = 1} : LDS", "symbol 1", "a name"),
    (
        "%0 = fly.make_ptr : !fly.ptr<f16, #fly_rocdl.buffer_desc>",
        "operands []",
        "pass a global pointer, i16, i64, i32",
    ),
    (
        "%0 = fly.make_ptr {allocBytes = 4} : !fly.ptr<f16, #fly_rocdl.buffer_desc>",
        "allocates nothing",
        "leave allocBytes",
    ),
    ("%0 = fly.make_ptr : PTR", "cannot make a global pointer", "makes shared and buffer_desc pointers"),
    ("%0 = fly.make_ptr : i32", "result i32", "the result is a pointer"),
    ("%0 = fly.get_dyn_shared : !fly.ptr<i8, global>", "result !fly.ptr<i8, global>", "the result is a shared pointer"),
    ("%0 = fly.add_offset(%p, %x) : (PTR, f32) -> PTR", "offset of type f32", "i64"),
    ("%0 = fly.add_offset(%p, %i) : (PTR, i32) -> !fly.ptr<f32, global>", "gives", "only the alignment"),
    ("%0 = fly.apply_swizzle(%q) : (LDS) -> LDS", "gives", "with the swizzle"),
    ("%0 = fly.recast_iter(%p) : (PTR) -> !fly.ptr<f32, shared>", "as !fly.ptr<f32, shared>", "only the"),
    ("%0 = fly.inttoptr(%i) : (i32) -> PTR", "i32 to PTR", "use i64"),
    (
        "%0 = fly.inttoptr(%i) : (i32) -> !fly.ptr<f16, register>",
        "result !fly.ptr",
        "generic, global or shared pointer",
    ),
    ("%0 = fly.ptrtoint(%p) : (PTR) -> i32", "to i32", "use i64"),
    ("%0 = fly.ptr.load(%p) : (PTR) -> f32", "f32 at PTR", "fly.recast_iter changes it"),
    ("fly.ptr.store(%x, %p) : (f32, PTR) -> ()", "f32 at !fly.ptr", "use the pointer's element type"),
    (
        "%s = fly.apply_swizzle(%q) : (LDS) -> !fly.ptr<f16, shared, S<1,2,3>>\n"
        "fly.ptr.store(%g, %s) : (vector<4xf16>, !fly.ptr<f16, shared, S<1,2,3>>) -> ()",
        "(8 bytes) through",
        "runs of 4",
    ),
    (
        "%0 = fly.memref.alloca : !fly.memref<f16, shared, 4:1>",
        "result !fly.memref<f16, shared, 4:1>",
        "in space 'register'",
    ),
    ("%0 = fly.memref.alloca : !fly.memref<f16, register, 4:-1>", "layout 4:-1", "strides of at least 0"),
    ("%0 = fly.memref.alloca : !fly.memref<f16, register, (2,2):(1E0,1E1)>", "layout (2,2)", "a plain layout"),
    ("%0 = fly.memref.alloca : !fly.memref<f16, register, S<1,1,1> o 0 o 4:1>", "layout S<1,1,1>", "a plain layout"),
    (
        "%0 = fly.memref.alloca : !fly.memref<f16, register, ?:1>",
        "has run-time leaves",
        "register memory has a static layout",
    ),
    ("%0 = fly.memref.load(%m, %i) : (MEM, i32) -> f32", "f32 from", "load the element type"),
    ("%0 = fly.memref.load(%m, %x) : (MEM, f32) -> f16", "index of type f32", "use an i32"),
    ("fly.memref.store(%x, %m, %i) : (f32, MEM, i32) -> ()", "f32 into", "store the element type"),
    ("%0 = fly.memref.load_vec(%m) : (MEM) -> vector<2xf16>", "as vector<2xf16>", "every element"),
    (
        "%0 = fly.memref.load_vec(%d) : (!fly.memref<f16, global, ?:1>) -> vector<2xf16>",
        "at run time only",
        "a static shape",
    ),
    ("fly.memref.store_vec(%v, %m) : (vector<4xf32>, MEM) -> ()", "vector<4xf32> into", "every"),
    # atoms
    ("%0 = fly.make_copy_atom {valBits = 8} : UNIVERSAL", "valBits 8 for", "use the width of the type, in bits"),
    ("%0 = fly.make_mma_atom : i32", "result i32", "the result is an mma atom"),
    ('%0 = fly.atom.set_value(%b, "offset", %i) : (BUFFER, i32) -> BUFFER', "no state field 'offset'", "soffset: i32"),
    ('%0 = fly.atom.set_value(%b, "soffset", %l) : (BUFFER, i64) -> BUFFER', "cannot hold a value of type i64", "i32"),
    ('%0 = fly.atom.set_value(%u, "soffset", %i) : (UNIVERSAL, i32) -> UNIVERSAL', "has no state fields", "leave the"),
    ('%0 = fly.atom.set_value(%b, "soffset", %i) : (BUFFER, i32) -> i32', "becomes i32", "the atom keeps its type"),
    ("%0 = fly.make_tiled_copy(%u) : (UNIVERSAL) -> i32", "gives i32", "a tiled copy of the atom"),
    ("%0 = fly.make_tiled_mma(%n) : (MFMA) -> i32", "gives i32", "a tiled mma of the atom"),
    ("fly.copy_atom_call(%i, %m, %m) : (i32, MEM, MEM) -> ()", "operand 0 is i32", "pass a copy atom"),
    ("fly.copy_atom_call(%u, %m, %f) : (UNIVERSAL, MEM, ACC) -> ()", "copies f16 to f32", "use equal element types"),
    (
        "fly.copy_atom_call(%u, %m2, %r) : (UNIVERSAL, !fly.memref<f16, global, 2:1>, REG) -> ()",
        "holds 32 bits, the atom !fly.universal_copy<64> moves 64",
        "give it 4 elements of f16",
    ),
    (
        "fly.copy(%u, %m, %r, %i) : (UNIVERSAL, MEM, REG, i32) -> ()",
        "predicate of type i32",
        "pass an i1, or register memory of i1",
    ),
    (
        "%0 = fly.copy_atom_call_ssa(%u, %m) : (UNIVERSAL, MEM) -> vector<4xf16>",
        "segments None",
        "count src, dst, pred and old operands",
    ),
    (
        "fly.copy_atom_call_ssa(%u, %m) {segments = array<i32: 1, 0, 0, 0>} : (UNIVERSAL, MEM) -> ()",
        "needs either a destination or a result",
        "a copy into registers has a result",
    ),
    (
        "%0 = fly.copy_atom_call_ssa(%u, %m, %c) {segments = array<i32: 1, 0, 1, 0>} : (UNIVERSAL, "
        "MEM, i1) -> vector<4xf16>",
        "has no old value",
        "pass what false lanes keep",
    ),
    (
        "%0 = fly.copy_atom_call_ssa(%u, %m, %g) {segments = array<i32: 1, 0, 0, 1>} : (UNIVERSAL, "
        "MEM, vector<4xf16>) -> vector<4xf16>",
        "an old value that no lane keeps",
        "pass one to a predicated copy into registers only",
    ),
    (
        "%0 = fly.copy_atom_call_ssa(%u, %m) {segments = array<i32: 1, 0, 0, 0>} : (UNIVERSAL, MEM) -> vector<8xf16>",
        "the destination !fly.memref<f16, register, 8:1> holds 128 bits, the atom !fly.universal_copy<64> moves 64",
        "give it 4 elements of f16",
    ),
    (
        "fly.copy_atom_call_ssa(%u, %h, %m) {segments = array<i32: 1, 1, 0, 0>} : (UNIVERSAL, f16, MEM) -> ()",
        "the source !fly.memref<f16, register, 1:1> holds 16 bits",
        "give it 4 elements of f16",
    ),
    (
        "%0 = fly.copy_atom_call_ssa(%u, %m) {segments = array<i32: 1, 0, 0, 0>} : (UNIVERSAL, MEM) -> vector<4xi16>",
        "copies f16 to i16",
        "use equal element types",
    ),
    (
        "fly.copy_atom_call_ssa(%u, %p, %m) {segments = array<i32: 1, 1, 0, 0>} : (UNIVERSAL, PTR, MEM) -> ()",
        "the source is !fly.ptr<f16, global>",
        "pass a memref, a number or a vector",
    ),
    (
        "%0 = fly.copy_atom_call_ssa(%b, %m) {segments = array<i32: 1, 0, 0, 0>} : (BUFFER, MEM) -> vector<4xf16>",
        "buffer_copy<64>",
        "buffer",
    ),
    (
        "fly.mma_atom_call(%n, %f, %r, %r, %r) : (MFMA, ACC, REG, REG, REG) -> ()",
        "operand c holds f16",
        "the atom takes f32",
    ),
    (
        "%0 = fly.mma_atom_call_ssa(%n, %g, %v, %v) : (MFMA, vector<4xf16>, V4, V4) -> V4",
        "operand b is vector<4xf32>",
        "the atom takes vector<4xf16>",
    ),
    (
        'fly.gemm(%n, %f, %r, %r, %f) {traversal_order = "mnk", traversal_layout = #fly.layout<1:0>} : (MFMA, '
        "ACC, REG, REG, "
        "ACC) -> ()",
        "both a traversal order and a layout",
        "give one of them",
    ),
    ("%0 = fly.assume(%i) {divisibility = 0} : (i32) -> i32", "divisibility 0", "give a positive integer"),
    ("%0 = fly.assume(%x) {divisibility = 2} : (f32) -> f32", "f32 gives f32", "assume takes an integer"),
]


@pytest.mark.parametrize(("line", "what", "fix"), RULES, ids=range(len(RULES)))
def test_a_broken_rule_of_an_operation_is_refused(line: str, what: str, fix: str) -> None:
    said = refused(long(line))
    assert long(what) in said
    assert long(fix) in said.partition("fix: ")[2]


MEMREFS = "!fly.memref<f16, global, 4:1>, !fly.memref<f16, register, 4:1>"
EXPANDED = [
    f"fly.copy(%u, %m, %r) : ({UNIVERSAL}, {MEMREFS}) -> ()",
    f"fly.gemm(%n, %f, %r, %r, %f) : ({MFMA}, !fly.memref<f32, register, 4:1>, !fly.memref<f16, register, 4:1>, "
    "!fly.memref<f16, register, 4:1>, !fly.memref<f32, register, 4:1>) -> ()",
    "%0 = fly.memref.load(%m, %i) : (!fly.memref<f16, global, 4:1>, i32) -> f16",
    "fly.memref.store(%h, %m, %i) : (f16, !fly.memref<f16, global, 4:1>, i32) -> ()",
    "%0 = fly.memref.load_vec(%m) : (!fly.memref<f16, global, 4:1>) -> vector<4xf16>",
    "fly.memref.store_vec(%g, %m) : (vector<4xf16>, !fly.memref<f16, global, 4:1>) -> ()",
]


@pytest.mark.parametrize("line", EXPANDED)
@pytest.mark.parametrize("stage", ["atoms", "ssa"])
def test_what_a_pass_has_expanded_may_not_come_back(line: str, stage: str) -> None:
    verify(parse_kernel(f"gpu.func @k({ARGS}) kernel {{ {line} }}"), "fly", GFX942)
    said = refused(line, stage)
    assert f"is not legal at stage {stage}" in said and "passes.expand" in said


ALLOCA = "%0 = fly.memref.alloca : !fly.memref<f16, register, 4:1>"
CALL = f"fly.copy_atom_call(%u, %m, %r) : ({UNIVERSAL}, {MEMREFS}) -> ()"


def test_stage_ssa_has_no_register_memory_left() -> None:
    assert "register memory is left at stage ssa" in (said := refused(ALLOCA, "ssa"))
    assert "passes.to_ssa" in said and "register_memory" in said
    said = refused(CALL, "ssa")
    assert "operand 2 is register memory at stage ssa" in said and "passes.to_ssa" in said
    verify(parse_kernel(f"gpu.func @k({ARGS}) kernel {{ {ALLOCA} {CALL} }}"), "atoms", GFX942)


def test_as_much_register_memory_may_stay_as_the_kernel_says() -> None:
    text = f"gpu.func @k({ARGS}) kernel attributes {{register_memory = 1 : i32}} {{ {ALLOCA}\n{CALL}\nMORE }}"
    verify(parse_kernel(text.replace("MORE", "")), "ssa", GFX942)
    with pytest.raises(VerifyError, match="register memory is left"):
        verify(parse_kernel(text.replace("MORE", ALLOCA.replace("%0", "%1"))), "ssa", GFX942)
    with pytest.raises(VerifyError, match=r"register_memory is True(.|\n)*fix: give the number of allocations"):
        verify(parse_kernel(text.replace(" = 1 : i32", "").replace("MORE", "")), "ssa", GFX942)


def test_an_unknown_stage_is_refused() -> None:
    with pytest.raises(VerifyError, match=r"unknown stage 'llvm'(.|\n)*use one of: fly, atoms, ssa"):
        verify(Kernel("k"), "llvm")


# --- values ------------------------------------------------------------------------------------------


def _located(line: int) -> Location:
    return Location((Frame("author.py", line, "k"),))


def test_a_value_is_defined_before_it_is_used() -> None:
    kernel = parse_kernel("gpu.func @k(%i: i32) kernel { %0 = arith.addi %i, %i : i32 %1 = arith.addi %0, %i : i32 }")
    kernel.body.ops.reverse()
    kernel.body.ops[0].loc, kernel.body.ops[1].loc = _located(7), _located(8)
    with pytest.raises(VerifyError) as info:
        verify(kernel, "fly")
    said = str(info.value)
    assert said.startswith("author.py:7: arith.addi: operand 0 (i32, made by arith.addi at author.py:8)")
    assert "is used before it is defined" in said and "fix: define it first" in said


def test_a_value_of_a_region_is_not_used_outside_of_it() -> None:
    kernel = parse_kernel(
        "gpu.func @k(%c: i1, %i: i32) kernel { scf.if %c { %0 = gpu.lane_id } %1 = math.ctpop %i : i32 }"
    )
    inner = kernel.body.ops[0].regions[0].ops[0]
    kernel.body.ops[1].operands[0] = inner.results[0]
    with pytest.raises(VerifyError, match=r"defined in a region and used outside of it\n  fix: yield it"):
        verify(kernel, "fly")


def test_a_loop_index_is_not_used_outside_of_its_loop() -> None:
    text = "gpu.func @k(%i: i32) kernel { scf.for %k = %i to %i step %i : i32 { } %1 = math.ctpop %i : i32 }"
    kernel = parse_kernel(text)
    kernel.body.ops[1].operands[0] = kernel.body.ops[0].regions[0].args[0]
    with pytest.raises(VerifyError, match=r"operand 0 \(i32\) is defined in a region and used outside"):
        verify(kernel, "fly")


def test_the_result_of_a_loop_is_not_known_inside_of_it() -> None:
    text = (
        "gpu.func @k(%i: i32) kernel { %r = scf.for %k = %i to %i step %i iter_args(%a = %i) -> (i32) : i32 "
        "{ scf.yield %a : i32 } }"
    )
    kernel = parse_kernel(text)
    verify(kernel, "fly")
    loop = kernel.body.ops[0]
    loop.regions[0].ops[0].operands[0] = loop.results[0]
    with pytest.raises(VerifyError, match="is used before it is defined"):
        verify(kernel, "fly")


def test_a_value_of_another_kernel_is_refused() -> None:
    one, other = (parse_kernel("gpu.func @k(%i: i32) kernel { %0 = math.ctpop %i : i32 }") for _ in range(2))
    one.body.ops[0].operands[0] = other.args[0]
    with pytest.raises(VerifyError, match=r"does not belong to this kernel\n  fix: use values of the kernel"):
        verify(one, "fly")


def test_an_operation_stands_in_one_block() -> None:
    kernel = parse_kernel("gpu.func @k() kernel { gpu.barrier }")
    kernel.body.ops[0].parent = Block()
    with pytest.raises(VerifyError, match=r"stands in a block that does not hold it\n  fix: append it to one block"):
        verify(kernel, "fly")


def test_a_region_belongs_to_one_operation() -> None:
    kernel = parse_kernel("gpu.func @k(%c: i1) kernel { scf.if %c { } }")
    kernel.body.ops[0].regions[1].parent = None
    with pytest.raises(VerifyError, match=r"a region belongs to another operation\n  fix: make a new block"):
        verify(kernel, "fly")


def test_an_unknown_attribute_is_refused_and_one_with_a_dot_is_not() -> None:
    kernel = parse_kernel("gpu.func @k() kernel { gpu.barrier {my.hint} }")
    verify(kernel, "fly")
    kernel.body.ops[0].attrs["hint"] = 1
    with pytest.raises(VerifyError, match=r"gpu.barrier: has no attribute 'hint'\n  fix: its attributes: fence"):
        verify(kernel, "fly")


def test_nesting_has_a_limit_and_no_recursion() -> None:
    kernel = Kernel("deep")
    cond = kernel.add_arg(t.I1, "c")
    block = kernel.body
    for depth in range(3000):
        made = If([cond], (), None, [Block((), None, depth + 1), Block((), None, depth + 1)], _located(depth))
        made.regions[1].append(Yield())
        block.append(made)
        if depth:
            block.append(Yield())
        block = made.regions[0]
    block.append(Yield())
    with pytest.raises(VerifyError, match=r"regions nest deeper than 100\n  fix: flatten the control flow"):
        verify(kernel, "fly")


# --- atoms and sizes ---------------------------------------------------------------------------------

TILED = f"!fly.tiled_mma<{MFMA}, (2,2,1):(1,2,0), [*|*|*]>"
TILED_COPY = f"!fly.tiled_copy<{UNIVERSAL}, (128,4):(4,1), [512]>"
MAKE = f"%0 = fly.make_mma_atom : {MFMA}"


def test_a_block_of_63_threads_does_not_fit_a_matrix_instruction_of_64_lanes() -> None:
    text = f"gpu.func @k() kernel attributes {{known_block_size = array<i32: 63, 1, 1>}} {{\n{MAKE}\n}}"
    with pytest.raises(VerifyError) as info:
        verify(parse_kernel(text, "k.fly"), "fly", GFX942)
    said = str(info.value)
    assert said.startswith("k.fly:2: ")
    assert "cdna3.mfma<16x16x16, (f16, f16) -> f32>" in said and "64 lanes" in said
    assert "the block of @k has 63" in said and "fix: use a block size that is a multiple of 64" in said


def test_a_tiled_mma_needs_its_threads() -> None:
    said = refused(f"%0 = fly.make_tiled_mma(%n) : ({MFMA}) -> {TILED}", block="64, 2, 1")
    assert "a tiled mma of !fly_rocdl.cdna3.mfma" in said and "needs 256 threads" in said
    assert "the block of @k has 64x2 = 128" in said and "fix: launch at least 256 threads" in said


def test_a_tiled_copy_needs_its_threads() -> None:
    said = refused(f"%0 = fly.make_tiled_copy(%u) : ({UNIVERSAL}) -> {TILED_COPY}", block="64, 1, 1")
    assert "a tiled copy of !fly.universal_copy<64> needs 128 threads" in said and "has 64" in said


@pytest.mark.parametrize("block", ["0, 1, 1", "64, 1"])
def test_a_block_size_is_three_positive_integers(block: str) -> None:
    assert "give three positive integers: x, y, z" in refused("gpu.return", block=block)


def test_a_block_has_a_size_limit() -> None:
    said = refused("gpu.return", block="1024, 2, 1")
    assert "a workgroup has at most 1024 threads, the block of @k has 1024x2 = 2048" in said
    assert "fix: use blocks of at most 1024 threads" in said


def test_an_atom_that_the_target_lacks_is_refused_by_name_at_its_line() -> None:
    kernel = parse_kernel(f"gpu.func @k() kernel {{\n{MAKE}\n}}", "k.fly")
    verify(kernel, "fly")
    with pytest.raises(FlyError, match=r"k\.fly:2: cdna3\.mfma<16x16x16.* is not on gfx1100"):
        verify(kernel, "fly", Target.parse("gfx1100"))


def test_an_atom_argument_is_checked_against_the_target() -> None:
    kernel = parse_kernel(f"gpu.func @k(%n: {MFMA}) kernel {{ }}", "k.fly")
    with pytest.raises(FlyError, match=r"k\.fly:1: cdna3\.mfma.* is not on gfx1200"):
        verify(kernel, "fly", Target.parse("gfx1200"))


def test_lds_has_a_limit_that_counts_every_allocation() -> None:
    one = "%{} = fly.make_ptr {{allocBytes = {} : i32, allocAlign = 16 : i32}} : !fly.ptr<i8, shared, align<16>>"
    fits = [one.format(0, 65520), one.format(1, 16)]
    verify(parse_kernel(f"gpu.func @k() kernel {{ {' '.join(fits)} }}"), "fly", GFX942)
    said = refused("\n".join([one.format(0, 65520), one.format(1, 17)]))
    assert said.startswith("k.fly:3: fly.make_ptr: @k allocates 65537 bytes of LDS")
    assert "a workgroup on gfx942 has 65536 bytes" in said
    verify(parse_kernel(f"gpu.func @k() kernel {{ {one.format(0, 163840)} }}"), "fly", Target.parse("gfx950"))


class _Scaled:
    """A copy with state: a scale without a default and a constant field."""

    state = StateStruct(
        "test.scaled",
        AtomStateField("scale", t.I32, default=None, doc="multiplies the values", units="exponent"),
        AtomStateField(
            "offset", t.I32, default=0, doc="immediate", units="bytes", constant=True, maximum=4095, minimum=0
        ),
    )
    thr_layout = Layout(1, 1)
    bit_size = 64

    def __str__(self) -> str:
        return "!test.scaled"

    def check_target(self, target: Target) -> None: ...
    def check_operands(self, src: t.PtrType, dst: t.PtrType) -> None: ...


register_payload("test.scaled", lambda params: _Scaled())
SCALED = "!fly.copy_atom<!test.scaled, 16>"


def _scaled(*lines: str) -> str:
    made = [f"%a = fly.make_copy_atom {{valBits = 16}} : {SCALED}", *lines]
    return "\n".join(
        x.replace("SET", "fly.atom.set_value").replace("TYPES", f"({SCALED}, i32) -> {SCALED}") for x in made
    )


COPY = f"fly.copy_atom_call(%s, %m, %r) : ({SCALED}, {MEMREFS}) -> ()"


def test_state_without_a_default_is_set_before_use() -> None:
    assert str(parse_payload("test.scaled", "")) == "!test.scaled"
    said = refused(_scaled(COPY.replace("%s", "%a")))
    assert said.startswith("k.fly:3: test.scaled is used with its state field scale unset")
    assert "atom.set_value('scale', ...)" in said
    good = _scaled('%s = SET(%a, "scale", %i) : TYPES', COPY)
    verify(parse_kernel(f"gpu.func @k({ARGS}) kernel {{ {good} }}"), "fly", GFX942)


def test_a_field_that_the_instruction_encodes_is_a_constant_in_its_range() -> None:
    said = refused(_scaled('%s = SET(%a, "offset", %i) : TYPES'))
    assert said.startswith("k.fly:3: test.scaled: state field offset is a run-time value")
    assert "offset must be a compile-time constant" in said
    said = refused(_scaled("%k = arith.constant 4096 : i32", '%s = SET(%a, "offset", %k) : TYPES'))
    assert "state field offset = 4096 does not fit" in said and "a value from 0 to 4095" in said


def test_state_that_comes_through_a_loop_is_left_to_code_generation() -> None:
    body = _scaled(
        f"%s = scf.for %k = %i to %i step %i iter_args(%z = %a) -> ({SCALED}) : i32 {{ scf.yield %z : {SCALED} }}", COPY
    )
    verify(parse_kernel(f"gpu.func @k({ARGS}) kernel {{ {body} }}"), "fly", GFX942)


CALLED = (
    f"%z = fly.mma_atom_call_ssa(%n, %g, %g, %v) : ({MFMA}, vector<4xf16>, vector<4xf16>, vector<4xf32>) "
    "-> vector<4xf32>"
)


def guarded(ids: str, predicate: str, limit: int, *, swap: bool = False) -> str:
    a, b = ("%lim", "%id") if swap else ("%id", "%lim")
    cond = f"%w = arith.cmpi {predicate}, {a}, {b} : i32"
    return f"%id = {ids}\n%lim = arith.constant {limit} : i32\n{cond}\nscf.if %w {{ scf.if %c {{ {CALLED} }} }}"


@pytest.mark.parametrize(
    ("body", "block"),
    [
        (guarded("gpu.thread_id x", "slt", 32), "64, 1, 1"),
        (guarded("gpu.thread_id x", "sgt", 32, swap=True), "64, 1, 1"),
        (guarded("gpu.thread_id x", "uge", 127), "256, 1, 1"),
        (guarded("gpu.thread_id x", "sle", 64), "128, 2, 1"),
        (guarded("gpu.thread_id x", "eq", 0), "64, 1, 1"),
        (guarded("gpu.thread_id x", "ne", 70), "128, 1, 1"),
        (guarded("gpu.lane_id", "ult", 16), None),
    ],
)
def test_a_matrix_instruction_is_refused_where_an_if_splits_a_wave(body: str, block: str | None) -> None:
    said = refused(body, block=block)
    assert "all lanes of a wave must reach it, but the if at k.fly:5 splits one" in said
    assert "fix: make the condition the same for all lanes of a wave" in said


def test_a_product_of_one_lane_may_stand_where_an_if_splits_a_wave() -> None:
    fma = "!fly.mma_atom<!fly.universal_fma<1x1x1, (f32, f32) -> f32>>"
    called = f"%z = fly.mma_atom_call_ssa(%n, %g, %g, %g) : ({fma}, f32, f32, f32) -> f32"
    body = guarded("gpu.thread_id x", "slt", 32).replace(CALLED, called)
    attrs = "attributes {known_block_size = array<i32: 64, 1, 1>}"
    text = f"gpu.func @k(%g: f32, %c: i1) kernel {attrs} {{ %n = fly.make_mma_atom : {fma}\n{body} }}"
    verify(parse_kernel(text), "ssa", GFX942)


@pytest.mark.parametrize(
    ("body", "block"),
    [
        (guarded("gpu.thread_id x", "slt", 64), "256, 1, 1"),
        (guarded("gpu.thread_id x", "slt", 1000), "256, 1, 1"),
        (guarded("gpu.thread_id x", "ult", -1), "256, 1, 1"),
        (guarded("gpu.thread_id x", "slt", 32), None),
        (guarded("gpu.thread_id x", "slt", 32), "96, 2, 1"),
        (guarded("gpu.thread_id y", "slt", 1), "64, 4, 1"),
        (guarded("gpu.block_id x", "slt", 32), "64, 1, 1"),
        (f"scf.if %c {{ {CALLED} }}", "64, 1, 1"),
    ],
)
def test_a_matrix_instruction_is_accepted_where_no_wave_is_surely_split(body: str, block: str | None) -> None:
    attrs = f" attributes {{known_block_size = array<i32: {block}>}}" if block else ""
    kernel = parse_kernel(f"gpu.func @k({ARGS}) kernel{attrs} {{ {body} }}")
    verify(kernel, "fly", GFX942)


@pytest.mark.parametrize("name", SAMPLES)
def test_verifying_changes_nothing(name: str) -> None:
    from flyllvm.ir.printer import print_kernel

    kernel = SAMPLES[name]()
    before = print_kernel(kernel, locations=True)
    verify(kernel, kernel.attrs["stage"], GFX942)
    assert print_kernel(kernel, locations=True) == before


def test_every_operation_declares_its_arity() -> None:
    assert [name for name, cls in OPS.items() if "arity" not in {k for b in cls.__mro__[:-2] for k in vars(b)}] == []
