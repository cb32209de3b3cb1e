/* A CUDA driver that runs nothing and says that all went well. It notes the first
   argument of every launch, so a test sees that arguments arrive. Handles that a
   function gives stay what the caller set them to, which is 0, unless they matter. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef unsigned long long word;
typedef struct {  /* CUDA_KERNEL_NODE_PARAMS_v2 */
    void *function;
    unsigned grid[3], block[3], shared_nbytes;
    word **arguments;
    void **extra, *kernel, *context;
} Params;

static word next = 1 << 20, notes[1024];
static int n_notes;
static Params nodes[256];
static word values[256];
static word n_nodes;

static int nothing(void) { return 0; }
static int one(int *out) { *out = 1; return 0; }
static int version(int *out) { *out = 13000; return 0; }
static int handle(word *out) { *out = next += 256; return 0; }
static int capability(int *out, int which) { *out = which == 75 ? 7 : which == 76 ? 5 : 1; return 0; }

static int alloc(word *out, size_t nbytes)
{
    *out = next += 256;
    next += nbytes / 256 * 256;
    return 0;
}

static void note(word value) { notes[n_notes++ % 1024] = value; }

static int launch(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                  unsigned by, unsigned bz, unsigned shared, void *stream,
                  word **arguments, void **extra)
{
    note(*arguments[0]);
    return 0;
}

static int keep(word node, const Params *params)
{
    nodes[node] = *params;
    values[node] = *params->arguments[0];
    return 0;
}

static int add(word *out, void *graph, const word *before, size_t n, const Params *params)
{
    *out = ++n_nodes % 256;
    return keep(*out, params);
}

static int change(void *graph, word node, const Params *params) { return keep(node, params); }

static int run(void *graph, void *stream)
{
    for (word node = 1; node <= n_nodes; node++)
        note(values[node]);
    return 0;
}

int noted(int i, word *out) { *out = notes[i]; return n_notes; }

static int find(const char *name, void **out, int version_, word flags, int *status);
static const struct { const char *name; void *function; } OWN[] = {
    {"cuGetProcAddress", find}, {"cuDeviceGetCount", one},
    {"cuDriverGetVersion", version}, {"cuDeviceGetAttribute", capability},
    {"cuMemAlloc", alloc}, {"cuStreamCreate", handle}, {"cuGraphCreate", handle},
    {"cuGraphInstantiateWithFlags", handle}, {"cuLaunchKernel", launch},
    {"cuGraphAddKernelNode", add}, {"cuGraphExecKernelNodeSetParams", change},
    {"cuGraphLaunch", run},
};

static int find(const char *name, void **out, int version_, word flags, int *status)
{
    *out = nothing;
    for (size_t i = 0; i < sizeof OWN / sizeof *OWN; i++)
        if (!strcmp(name, OWN[i].name))
            *out = OWN[i].function;
    if (status)
        *status = 0;
    return 0;
}

int cuGetProcAddress_v2(const char *name, void **out, int version_, word flags, int *status)
{
    return find(name, out, version_, flags, status);
}
