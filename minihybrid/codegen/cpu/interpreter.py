"""Chapter 19. The bytecode interpreter: one compiled function that runs every plan.

Defines: `drive`, the interpreter loop, compiled once per machine; `enter`, its entry point
         from Python.

Several threads can run one program together. A launch is split into chunks of its
outermost loop, and idle threads take the next chunk (self-scheduling), so a thread that
comes late, or never, delays nothing. Every second thread takes chunks from the back, so
that each of two threads finds its data of earlier launches in its core's caches.

Waking a thread takes as long as a small net. So workers spin for a while on a shared work
queue (the board), outside of Python. A caller posts its program there, runs it, withdraws
it, and waits for the workers still inside, because they read its memory.
Not supported: overlapping launches; two programs in one queue.
"""

import sys

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from minihybrid.codegen.bytecode import (
    ARENA,
    ARRAY,
    COUNTERS,
    HEADER,
    INSIDE,
    KEY,
    OWNED,
    PARAM,
    POSTED,
    WORK,
)
from minihybrid.codegen.cpu.flat import Flat

HEAD = object.__basicsize__ // 8  # words of the object header, before an array's own:
DATA, FLAGS = HEAD, HEAD + 6  # address of the data, and NumPy's flags
PLAIN = 0x0101  # flags of C order and of aligned memory
SPINS = 64  # polls of a counter before yielding the core

ARGUMENTS = (Flat(types.int64),) * 3 + (types.int64,) * 4 + (Flat(types.int64),)


@intrinsic
def words(typing, address):
    """Return the int64 array at an address."""

    def codegen(context, builder, signature, args):
        return builder.inttoptr(args[0], ir.IntType(64).as_pointer())

    return Flat(types.int64)(types.int64), codegen


@intrinsic
def call(typing, address, given):
    """Call the kernel at an address with the address of its arguments."""

    def codegen(context, builder, signature, args):
        kind = ir.FunctionType(ir.VoidType(), [args[1].type])
        builder.call(builder.inttoptr(args[0], kind.as_pointer()), [args[1]])
        return context.get_dummy_value()

    return types.void(types.int64, Flat(types.int64)), codegen


@intrinsic
def address_of(typing, numbers):
    """Return the address of an array's data."""

    def codegen(context, builder, signature, args):
        return builder.ptrtoint(args[0], ir.IntType(64))

    return types.int64(Flat(types.int64)), codegen


def _atomic(operation):
    """Return the atomic update of a shared integer, which returns its old value."""

    @intrinsic
    def update(typing, address, number):
        def codegen(context, builder, signature, args):
            where = builder.inttoptr(args[0], ir.IntType(64).as_pointer())
            return builder.atomic_rmw(operation, where, args[1], "seq_cst")

        return types.int64(types.int64, types.int64), codegen

    return update


add, put = _atomic("add"), _atomic("xchg")


@intrinsic
def look(typing, address):
    """Atomically load a shared integer."""

    def codegen(context, builder, signature, args):
        where = builder.inttoptr(args[0], ir.IntType(64).as_pointer())
        return builder.load_atomic(where, "seq_cst", 8)

    return types.int64(types.int64), codegen


@intrinsic
def rest(typing):
    """Yield the core to another thread."""

    def codegen(context, builder, signature, args):
        name = "SwitchToThread" if sys.platform == "win32" else "sched_yield"
        kind = ir.FunctionType(ir.IntType(32), [])
        builder.call(
            builder.module.globals.get(name) or ir.Function(builder.module, kind, name), []
        )
        return context.get_dummy_value()

    return types.void(), codegen


def drive(program, objects, done, key, until, shared, thread, given):
    """Run the first `until` launches of a program.

    objects:  addresses of NumPy arrays: inputs, outputs, the arena, the parameters'
              addresses.
    done:     becomes 1; stays 0 if an array isn't contiguous.
    key:      of the random stream.
    shared:   address of the threads' shared memory (codegen/bytecode.py); 0 for one thread.
    thread:   0 for the caller. A worker takes programs from the queue instead, until it has
              polled it `until` times in vain.
    given:    buffer for a kernel's operands, two more than the longest launch has.
    """
    for i in range(program[0]):
        if words(objects[i])[FLAGS] & PLAIN != PLAIN:
            return
    launches, room, board = until, program[2], words(shared)[0] if shared != 0 else 0
    helps, leads = board != 0 and thread != 0, False
    posted = words(board + POSTED)
    if board != 0 and thread == 0:
        leads = put(board + OWNED, 1) == 0
        if leads:
            posted[0], posted[1], posted[2] = address_of(program), address_of(objects), key
            posted[3], posted[4] = until, shared
            add(board, 1)
        else:  # the workers run another call
            shared = 0
    ticket = last = looks = 0
    while looks < until or not helps:
        if helps:
            ticket = look(board)
            looks += 1
            if ticket % 2 == 0 or ticket == last:
                if looks % SPINS == 0:
                    rest()
                continue
            add(board + INSIDE, 1)
            if look(board) != ticket or words(posted[0])[2] > room:  # withdrawn, or too long
                add(board + INSIDE, -1)
                continue
            program, objects, key = words(posted[0]), words(posted[1]), posted[2]
            launches, shared = posted[3], posted[4]
            last, looks = ticket, 0
        n_arrays = program[0]
        arena = words(objects[n_arrays])[DATA]
        params = words(words(objects[n_arrays + 1])[DATA])
        at, turn = 5, 0
        for launch in range(min(program[1], launches)):
            chunks, n_operands = program[at + 1], program[at + 2]
            for i in range(n_operands):
                operand = at + HEADER + 4 * i
                kind, which = program[operand], program[operand + 1]
                after = program[operand + 2] + turn * program[operand + 3]
                operand = which
                if kind == ARENA:
                    operand = arena + which
                elif kind == PARAM:
                    operand = params[which]
                elif kind == ARRAY:
                    operand = words(objects[which])[DATA]
                elif kind == KEY:
                    operand = key
                elif kind == WORK:
                    own = program[3] + (thread - 1) * program[4]
                    operand = arena + (which if thread == 0 else own)
                given[i] = operand + after
            n, guard, runs = n_operands, program[at + 5], True
            if guard != 0:
                n -= 1  # the aligned word that contains the condition
                condition = words(given[n] & -8)[0] >> 8 * (given[n] & 7)
                runs = (condition & guard != 0) if guard > 0 else (condition & -guard == 0)
            given[n], given[n + 1] = 0, 1
            mine, end = shared + COUNTERS + 32 * launch, thread % 2
            if not runs:
                if shared != 0:  # a later launch may overwrite the condition
                    add(mine, chunks)
                    add(mine + 8, chunks)
            elif shared == 0:
                call(program[at], given)
            else:
                given[n + 1] = chunks
                while add(mine, 1) < chunks:
                    chunk = add(mine + 16 + 8 * end, 1)
                    given[n] = chunk if end == 0 else chunks - 1 - chunk
                    call(program[at], given)
                    add(mine + 8, 1)
                waits = 0
                while look(mine + 8) < chunks:
                    waits += 1
                    if waits % SPINS == 0:
                        rest()
            turns = program[at + 3]
            if turn + 1 < turns:
                turn += 1
                at -= program[at + 4]
            else:
                turn = 0 if turns else turn
                at += HEADER + 4 * n_operands
        if not helps:
            break
        add(board + INSIDE, -1)
    if leads:
        add(board, 1)
        waits = 0
        while look(board + INSIDE) > 0:
            waits += 1
            if waits % SPINS == 0:
                rest()
        put(board + OWNED, 0)
    done[0] = 1


def enter(module, inner, arguments, context, symbol):
    """Write the entry point `run(*arrays, arena, table, key, until, shared, thread)`; a worker
    passes no arrays: `run(0, until, shared, thread)`.

    It is a built-in C function, whose `self` is the program's array. Integers come last.
    The GIL is released while kernels run.
    Returns: True; False if an array isn't contiguous.
    """
    word, address = ir.IntType(64), ir.IntType(64).as_pointer()

    def python(name, result, *arguments):
        return ir.Function(module, ir.FunctionType(result, arguments), name)

    outer = ir.Function(module, ir.FunctionType(address, [address, address, word]), symbol)
    builder = ir.IRBuilder(outer.append_basic_block())
    me, objects, n = outer.args

    def at(array, index):
        return builder.load(builder.gep(array, [index]))

    program = builder.inttoptr(at(me, word(DATA)), address)
    parse = python("PyLong_AsUnsignedLongLongMask", word, address)
    numbers = [
        builder.call(parse, [builder.inttoptr(at(objects, builder.sub(n, word(4 - i))), address)])
        for i in range(4)
    ]
    room = builder.alloca(word, builder.add(at(program, word(2)), word(2)))
    done = builder.alloca(word)
    builder.store(word(0), done)
    state = builder.call(python("PyEval_SaveThread", address), [])
    context.call_conv.call_function(
        builder, inner, types.void, arguments, [program, objects, done, *numbers, room]
    )
    builder.call(python("PyEval_RestoreThread", ir.VoidType(), address), [state])
    to_bool = python("PyBool_FromLong", address, word)
    builder.ret(builder.call(to_bool, [builder.load(done)]))
