# What the hub starts for each student, as that student: limits, kernels, a server.
set -e
ulimit -c 0
ulimit -v "$MOST_KB"
# Counted for the user on the whole machine, and not for root, as whom nobody should study.
ulimit -u "$MOST_PROCESSES" 2>/dev/null || true

# Machine code is loaded only from files of one's own, so students take copies of the kernels
# that the teacher compiled (MINIHYBRID_CACHE_DIR=$COURSE/kernels); what they need beyond these
# is compiled, and kept, in the same place.
own="$HOME/.cache/minihybrid"
export MINIHYBRID_CACHE_DIR="$own"
umask 022
mkdir -p -m 700 "$own"
find "$COURSE/kernels" -name 'k*.o' -exec cp -u -t "$own" {} + 2>/dev/null || true

exec jupyterhub-singleuser "$@"
