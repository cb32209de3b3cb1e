"""The modules of the package, in the order of reading, and what they import."""

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "minihybrid"
# `ops` alone is the file ops/__init__.py, and `__init__` the package's own.
READING_ORDER = """
    faces
    core
    core.nested core.op core.hooks core.mistake core.given core.locked core.newest
    core.attribute core.context core.switches core.placing
    ops.registry
    ops.cpu
    ops.cpu.machine
    ops.gpu ops.shapes ops.whole ops.loops ops.elementwise
    ops.gpu.order
    ops.reduce ops.layout ops.filled ops.joining ops.indexing ops.tiling ops.ordering ops.sequence
    ops.cpu.products
    ops.gpu.tiles ops.gpu.products
    ops.neural ops.functions
    ops.cpu.flatshift ops.cpu.imagelanes ops.cpu.imagecolumns
    ops.cpu.imagepoints ops.cpu.imageslides
    ops.gpu.images
    ops.im2col ops.convolution
    ops.windows ops.pooling ops.random ops.norm ops.outputs ops.recurrent ops.ctc
    ops.gpu.linalg
    ops.linalg ops.resizing ops.boxes ops.anchors ops.regions
    ops.np.names ops.np.shapes
    ops.np ops.shown ops.infix ops.steps ops.distributions
    ops
    core.files core.params core.writes core.array core.nd core.graph core.backprop core.name
    core.tracing core.serial core.sym core.autograd
    core.passes.rewrite core.passes.expand core.passes.fold core.passes.cse
    core.passes.dce core.passes.gradient core.passes.memory
    core.passes core.targets core.pipeline core.plan core.numpy core.compiled
    core.initial core.parameter core.arguments core.entry core.hybrid
    core.formats core.block core.layers
    later
    base runtime util arrays symbols init autograd
    codegen.cache codegen.device
    simt.errors simt.numbers simt.rewrite simt.floats simt.lockstep simt.watcher
    simt.memory simt.record simt.counts simt.checked simt.plain simt.device simt.program
    simt.fast simt.cuda simt.picture simt.traffic simt.heap simt.driver
    simt
    codegen.gpu
    codegen.gpu.cuda
    device.device device.dlpack device.numbered device.array device.checks device.interop
    device
    passes.lower passes.rows
    loops
    loops.turns loops.foreach
    passes.loops passes.numbers passes.pool_early passes.side_by_side passes.pieces passes.fuse
    passes
    codegen.rows codegen.source codegen.program codegen.ir codegen.check codegen.evaluate
    codegen
    codegen.cpu
    codegen.cpu.scalar codegen.cpu.polynomial codegen.cpu.angle codegen.cpu.flat
    codegen.cpu.vector codegen.cpu.driver codegen.cpu.compiler codegen.cpu.objects
    codegen.cpu.team codegen.cpu.target
    codegen.gpu.team codegen.gpu.rows codegen.gpu.kernel codegen.gpu.target
    codegen.numpy.special codegen.numpy.excerpt codegen.numpy.alone codegen.numpy.whole
    codegen.numpy codegen.c
    codegen.c.values codegen.c.names codegen.c.calls codegen.c.kernels codegen.c.vectors
    codegen.c.helpers codegen.c.file codegen.read codegen.lower
    codegen.schedule codegen.wasm
    run.reuse run.sharing run.watched run.launch run.tiers run.uncompiled run.eager run.timing
    run executor
    files.foreign files.legacy files.outline files.sparse files.wasm files.formats
    files model
    np.public np.functions np.rearrange np.array np.creation np.host np.compound
    np npx lr_scheduler optimizer kvstore
    gluon.function gluon.activations gluon.conv_layers gluon.norm_layers gluon.nn
    gluon.rnn.steps gluon.rnn.rnn_cell gluon.rnn.rnn_layer gluon.rnn
    gluon.loss gluon.trainer image recordio
    gluon.data.sampler gluon.data.dataset gluon.data.dataloader
    gluon.data.vision.datasets gluon.data.vision.transforms gluon.data.vision
    gluon.data gluon.utils
    gluon.contrib.nn
    gluon.contrib
    gluon.model_zoo.vision
    gluon.model_zoo
    gluon
    onnx.export
    onnx.export.draft onnx.export.scalar onnx.export.layout onnx.export.layers
    onnx.export.nodes onnx.export.model
    onnx.load
    onnx.load.file onnx.load.values onnx.load.fold onnx.load.elementwise
    onnx.load.shapes onnx.load.parts onnx.load.images onnx.load.layers onnx.load.model
    files.convert
    onnx contrib metric io callback augmenters imageiter monitor module test_utils
    look.misfit look.pytorch look.record look.layers look.places look.text
    summary drawing viz bench
    look.links look.view look.boxes look.digit_canvas look.tape look.cells
    look.other_libraries look.ink
    look.figures.calls look.figures.graphs look.figures.memory look.figures.plans
    look.figures.records
    look.figures.threads look.figures.tiles
    look.figures look.notebook
    look
    look.exercises.judging look.puzzles look.exercises.first look.exercises.graphs
    look.exercises.hybrids look.exercises.inside look.exercises.packing look.exercises.nano
    look.exercises.traced look.exercises.training look.exercises.using
    look.exercises.writing look.exercises.machine look.exercises.kernels look.exercises.threads
    look.exercises.records look.exercises.texts look.exercises.readers look.exercises.launches
    look.exercises
    look.explain
    datasets
    look.show look.steps look.building look.growing look.needs
    __init__ __main__
    """.split()


def path_of(module):
    path = PACKAGE / module.replace(".", "/")
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def imports(tree):
    """Yield every name that `tree` imports, also inside functions and by a call."""
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                yield from (alias.name for alias in node.names)
            case ast.ImportFrom(level=0):
                yield from (f"{node.module}.{alias.name}" for alias in node.names)
                if node.module != "minihybrid":
                    yield node.module
            case ast.ImportFrom():
                yield "." * node.level + (node.module or "")
            case ast.Call(
                func=ast.Name(id="__import__" | "import_module")
                | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield name
