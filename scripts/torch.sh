# Sourced: finds a torch or sets one up.
# shellcheck shell=bash disable=SC2154  # root and cache are of common.sh

# Of the series and version in cmake/OptimOffloadTorch.cmake.
torch_version=$(sed -n 's/^set(OPTIM_OFFLOAD_TORCH_PINNED \(.*\))$/\1/p' \
  "$root/cmake/OptimOffloadTorch.cmake")

# Prints a Python that can make virtual environments and for which torch has wheels.
python_for_venv() {
  local python
  for python in python3 /usr/bin/python3; do
    if "$python" - 2>/dev/null <<'PY'; then
import sys, venv, ensurepip
sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 14))
PY
      command -v "$python"
      return
    fi
  done
  return 1
}

# Makes the virtual environment $cache/$1 with the packages that follow. It gets its name only when it
# is whole, so that an interrupted set-up is never taken for a finished one.
make_venv() {
  local final=$cache/$1 python work
  shift
  if ! python=$(python_for_venv); then
    install_packages python3-venv
    python=$(python_for_venv) ||
      die "no python3 of 3.10 to 3.14 with the modules venv and ensurepip; install one"
  fi
  rm -rf "$cache"/unfinished.*
  work=$(mktemp -d "$cache/unfinished.XXXXXX")
  # shellcheck disable=SC2064  # now, not when it fires
  trap "rm -rf '$work'" EXIT
  mkdir "$work/tmp"
  # Settings of the user's own pip and Python must not lead the packages elsewhere. TMPDIR: /tmp may
  # be a small file system in memory.
  (
    unset PYTHONPATH PYTHONHOME PIP_USER PIP_TARGET PIP_PREFIX PIP_REQUIRE_VIRTUALENV
    export TMPDIR="$work/tmp"
    "$python" -m venv "$work/venv" &&
      "$work/venv/bin/python" -m pip install --quiet --no-cache-dir --no-compile --no-input \
        --disable-pip-version-check --retries 5 "$@"
  ) </dev/null >&2 || die "setting up $final failed; see above, and run again once it can work"
  rm -rf "$final"
  mv "$work/venv" "$final"
  rm -rf "$work"
  trap - EXIT
}

# CUDA headers that torch's own dependencies lack; see _optim_offload_extra_cuda_headers.
header_packages=(nvidia-cuda-crt==13.0.88 nvidia-cuda-cccl==13.0.85)

make_torch() {
  local name=torch-$torch_version-$1
  if [ "$1" = cpu ]; then
    # The wheel is a CUDA one in both flavours. Of its 3 GB of dependencies libtorch_cpu.so loads two
    # libraries.
    say "setting up torch $torch_version, CPU flavour (1.3 GB) in $cache/$name"
    make_venv "$name" --no-deps "torch==$torch_version" nvidia-cuda-cupti==13.0.85 \
      nvidia-cuda-runtime==13.0.96
  else
    say "setting up torch $torch_version, CUDA flavour (4.6 GB) in $cache/$name"
    make_venv "$name" "torch==$torch_version" "${header_packages[@]}"
  fi
}

# Prints "FLAVOUR ROOT" of the torch to build with, made now where there is none.
ensure_torch() {
  local wanted from flavour headers folder
  wanted=$(wanted_flavour)
  mkdir -p "$cache"
  # Two builds at once must not set up the same thing twice.
  exec 9>"$cache/lock"
  flock 9
  read -r from flavour headers folder < <(cmake -P "$root/cmake/PrintTorch.cmake") || true
  if [ -z "${folder:-}" ] || [ "$from $flavour $wanted" = "cache cpu cuda" ]; then
    if [ -z "$(TORCH=$wanted cmake -P "$root/cmake/PrintTorch.cmake")" ]; then
      make_torch "$wanted"
    fi
    read -r from flavour headers folder < <(TORCH=$wanted cmake -P "$root/cmake/PrintTorch.cmake") ||
      die "torch was set up in $cache but is not found there; remove it and run again"
  fi
  if [ "$headers" = missing ]; then
    say "setting up CUDA headers (30 MB) that torch's wheels lack"
    make_venv cuda-headers-13.0 --no-deps "${header_packages[@]}"
  fi
  exec 9>&-
  echo "$flavour $folder"
}
