# Sourced by the other scripts.
# shellcheck shell=bash disable=SC2034  # the variables are for the scripts that source this

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/optim_offload

say() { printf '[optim_offload] %s\n' "$*" >&2; }
die() {
  say "$*"
  exit 1
}

has_command() { command -v "$1" >/dev/null 2>&1; }

# add_large_files N: adds to the array `arguments`, for cmake: compilations of N files instead of one
# each with a precompiled header. Parsing torch's headers takes longer than all else, so everything
# then builds in a quarter of the time. With ccache where it is there.
add_large_files() {
  arguments+=(-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE="$1")
  add_ccache
}
add_ccache() {
  if has_command ccache; then arguments+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
}

# The flavour of torch to set up where none is there: TORCH, else what the machine can use.
wanted_flavour() {
  case ${TORCH:-} in
    cpu | cuda) echo "$TORCH" ;;
    '') if [ -e /dev/nvidiactl ] || [ -e /dev/dxg ]; then echo cuda; else echo cpu; fi ;;
    *) die "TORCH=$TORCH is not a flavour of torch; use TORCH=cpu or TORCH=cuda" ;;
  esac
}

# Parallel jobs: one per core, and 2.5 GiB of memory for each, which a file with torch's headers and
# the precompiled header may take.
jobs_that_fit() {
  if [ -n "${JOBS:-}" ]; then
    echo "$JOBS"
    return
  fi
  local cores kib limit by_memory
  cores=$(nproc)
  kib=$(awk '/^MemAvailable:/ {print $2}' /proc/meminfo)
  # A container's own limit, where it has one ("max" where not).
  limit=$(cat /sys/fs/cgroup/memory.max 2>/dev/null || echo max)
  if [ "$limit" != max ] && [ $((limit / 1024)) -lt "$kib" ]; then
    kib=$((limit / 1024))
  fi
  by_memory=$((kib / (2560 * 1024)))
  if [ "$by_memory" -lt 1 ]; then by_memory=1; fi
  if [ "$by_memory" -lt "$cores" ]; then echo "$by_memory"; else echo "$cores"; fi
}
