"""The modules of the package, in the order of reading, and what they import."""

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "minihybrid"
# `ops` alone is the file ops/__init__.py, and `__init__` the package's own.
READING_ORDER = """
    core.hooks core.lazy core core.pytree core.op core.checked_call core.convert
    core.fork_safe core.lru_cache core.switches core.attribute core.context core.placement
    core.definition_checks core.lengths core.source_lines core.name
    ops.registry ops.cpu ops.cpu.machine ops.gpu ops.shapes ops.integers ops.loops
    ops.elementwise
    ops.bfloat16 ops.gpu.order ops.reduce ops.layout ops.filled ops.joining ops.indexing
    ops.tiling ops.ordering ops.sequence ops.cpu.products ops.gpu.tiles ops.gpu.products
    ops.neural ops.functions ops.cpu.flatshift ops.cpu.imagelanes
    ops.cpu.imagepoints ops.gpu.images ops.im2col ops.convolution
    ops.windows ops.pooling ops.random ops.norm ops.outputs ops.recurrent ops.ctc
    ops.cpu.flash ops.gpu.flash ops.attention ops.quantize
    ops.gpu.linalg ops.linalg ops.resizing ops.boxes ops.anchors ops.regions ops.np.names
    ops.np.shapes ops.np ops.signatures ops.infix ops.errors ops.eager_cache ops.distributions ops
    core.files core.params core.writes core.graph core.tracing core.array core.nd
    core.backprop core.serial core.sym core.tape core.passes.rewrite
    core.passes.expand core.passes.fold core.passes.cse core.passes.dce core.passes.memory
    core.passes.gradient core.passes core.targets core.pipeline core.plan core.numpy_target
    core.compiled core.initial core.parameter core.arguments core.cache_entry core.hybrid
    core.formats core.call_errors core.block core.layers
    registrations
    mxnet.base
    runtime.features
    mxnet.util mxnet.nd_extras mxnet.sym_extras
    gluon.init gluon.autograd
    codegen.cache codegen.device_math codegen.gpu codegen.gpu.cuda
    simt.errors simt.numbers simt.rewrite simt.floats simt.lockstep simt.watcher simt.memory
    simt.counts simt.checked simt.program simt.fast
    simt.cuda simt.picture simt.traffic simt.heap simt.driver simt
    runtime.device runtime.dlpack runtime.numbered_cpus runtime.device_array
    runtime.device_checks runtime.interop
    passes.lower passes.reduction_schedule passes.scan passes.branches passes.foreach passes.control
    passes.remat passes.loops
    passes.lift_constants passes.hoist_max_pool passes.pads_to_concat passes.slice_views
    passes.fuse passes.int8 passes
    codegen.rows codegen.source codegen.bytecode codegen.ir codegen.check codegen.evaluate
    codegen codegen.cpu codegen.cpu.scalar codegen.cpu.transcendental codegen.cpu.trig
    codegen.cpu.flat codegen.cpu.vector codegen.cpu.interpreter codegen.cpu.compiler
    codegen.cpu.objects codegen.cpu.thread_pool codegen.cpu.target codegen.gpu.block_shape
    codegen.gpu.rows codegen.gpu.kernel codegen.gpu.target codegen.numpy.special
    codegen.numpy.excerpt codegen.numpy.alone codegen.numpy.whole codegen.numpy
    codegen.tiles codegen.read codegen.lower codegen.schedule codegen.cpu.printer codegen.wasm
    codegen.side_module
    codegen.c_helpers codegen.c formats.c
    runtime.donation runtime.overwrites runtime.guards runtime.shared_plans runtime.op_hooks
    runtime.launch
    runtime.tiers runtime.page_cpu runtime.device_eager runtime.kernel_times
    mxnet.executor
    formats.foreign formats.onednn formats.legacy formats.outline formats.sparse formats.writers
    mxnet.model
    np.public np.operands np.functions np.rearrange np.array np.creation np.host np.compound np
    np.npx
    gluon.lr_scheduler gluon.optimizer
    mxnet.kvstore
    gluon.function gluon.transform gluon.conv_layers gluon.norm_layers gluon.nn
    gluon.rnn.steps gluon.rnn.rnn_cell gluon.rnn.rnn_layer gluon.rnn gluon.loss
    gluon.trainer gluon.data.vision.image
    mxnet.recordio
    gluon.data.sampler gluon.data.dataset gluon.data.dataloader gluon.data.vision.datasets
    gluon.data.vision.transforms gluon.data.vision gluon.data gluon.utils gluon.contrib.nn
    gluon.contrib gluon.model_zoo.vision gluon.model_zoo gluon gluon.control_flow
    formats.onnx.export formats.onnx.export.draft formats.onnx.export.scalar
    formats.onnx.export.layout formats.onnx.export.layers formats.onnx.export.control
    formats.onnx.export.nodes formats.onnx.export.model formats.onnx.load
    formats.onnx.load.file formats.onnx.load.values formats.onnx.load.fold
    formats.onnx.load.elementwise formats.onnx.load.shapes formats.onnx.load.parts
    formats.onnx.load.images formats.onnx.load.control formats.onnx.load.layers
    formats.onnx.load.model formats.convert formats.onnx formats
    gluon.quantization gluon.amp gluon.metric
    mxnet.io mxnet.callback mxnet.monitor mxnet.module
    mxnet.profiler
    mxnet.test_utils
    gluon.pytorch_names
    view.layers
    view.text view.summary view.drawing view.viz view.bench view.links view.hybrid_view
    view.notebook view.explain
    gluon.data.bundled
    view.show
    mxnet
    view
    formats.wasm
    runtime
    __init__
    __main__
    """.split()


def path_of(module):
    path = PACKAGE / module.replace(".", "/")
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def outside_functions(tree):
    """Yield the nodes that run when a module is imported."""
    todo = [tree]
    while todo:
        node = todo.pop()
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            yield node
            todo += ast.iter_child_nodes(node)


def imports(tree, in_functions=True):
    """Yield every name that `tree` imports, also by a call.

    in_functions: whether imports inside functions count.
    """
    for node in ast.walk(tree) if in_functions else outside_functions(tree):
        match node:
            case ast.Import():
                yield from (alias.name for alias in node.names)
            case ast.ImportFrom(level=0):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
                yield from names
                modules = {f"minihybrid.{module}" for module in READING_ORDER}
                if node.module != "minihybrid" and not modules.issuperset(names):
                    yield node.module  # not only its modules
            case ast.ImportFrom():
                yield "." * node.level + (node.module or "")
            case ast.Call(
                func=ast.Name(id="__import__" | "import_module")
                | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield name
