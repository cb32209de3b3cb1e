// A chapter in Pyodide, without Jupyter: the outputs of its cells, as JSON.
//
// Use: node in_pyodide.mjs PYODIDE NOTEBOOK LIBRARIES WHEEL ...
//
// PYODIDE is its distribution. NOTEBOOK is as book/make_lite.py makes it: what its first cell
// asks `piplite` for is there already, LIBRARIES from PYODIDE, and the wheels.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

process.on("uncaughtException", (error) => {
  console.error(error.message); // without the line of Pyodide's source, which is very long
  process.exit(1);
});
const [folder, notebook, libraries, ...wheels] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(`${folder}/pyodide.mjs`));
const pyodide = await loadPyodide({ indexURL: `${folder}/`, stdout: () => {}, stderr: () => {} });
await pyodide.loadPackage(["ipython", ...libraries.split(",")], { messageCallback: () => {} });
const extractDir = pyodide.runPython("import sysconfig; sysconfig.get_paths()['purelib']");
for (const wheel of wheels) // where it's found from any folder
  pyodide.unpackArchive(new Uint8Array(readFileSync(wheel)), "wheel", { extractDir });
pyodide.FS.mkdirTree("/tests");
pyodide.FS.writeFile("/tests/in_page.py", readFileSync(new URL("in_page.py", import.meta.url), "utf8"));
pyodide.globals.set("text", readFileSync(notebook, "utf8"));
const outputs = await pyodide.runPythonAsync(`
import json, os, sys, types

async def install(name, **options):
    """It is installed."""

sys.modules["piplite"] = types.SimpleNamespace(install=install)
os.environ |= {"TQDM_DISABLE": "1", "MPLBACKEND": "module://matplotlib_inline.backend_inline"}
sys.path.append("/tests")
try:
    import matplotlib.font_manager  # says so when it lists the fonts, the first time
except ImportError:
    pass
from in_page import outputs_of
json.dumps(await outputs_of(json.loads(text)))
`);
// All of it is written before the end, whatever a cell has started.
process.stdout.write(`${outputs}\n`, () => process.exit(0));
