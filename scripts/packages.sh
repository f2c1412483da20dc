# Sourced: what the build needs of the system, and its installation on Debian and its kin.
# shellcheck shell=bash disable=SC2154  # cache is of common.sh

# Whether the header is where the compiler or CMake will look, among them folders of unpacked packages
# in CMAKE_PREFIX_PATH, CMAKE_INCLUDE_PATH or CPATH.
has_header() {
  local folder folders
  IFS=: read -ra folders <<<"${CMAKE_INCLUDE_PATH:-}:${CPATH:-}"
  for folder in /usr/include /usr/local/include "${folders[@]}"; do
    if [ -n "$folder" ] && [ -e "$folder/$1" ]; then return 0; fi
  done
  IFS=':;' read -ra folders <<<"${CMAKE_PREFIX_PATH:-}"
  for folder in "${folders[@]}"; do
    if [ -n "$folder" ] && [ -e "$folder/include/$1" ]; then return 0; fi
  done
  return 1
}

# Whether there is a torch, as far as can be told before there is CMake, or a Python to set one up.
has_torch_or_venv() {
  [ -n "${Torch_DIR:-}${CMAKE_PREFIX_PATH:-}" ] || compgen -G "$cache/torch-*" >/dev/null ||
    python_for_venv >/dev/null ||
    python3 -c 'import importlib.util as u, sys; sys.exit(not u.find_spec("torch"))' 2>/dev/null
}

# Prints the Debian packages that are missing for the given purposes.
missing_packages() {
  local purpose
  for purpose in "$@"; do
    case $purpose in
      build)
        has_command "${CXX:-g++}" || echo g++
        has_command cmake || echo cmake
        has_command ninja || echo ninja-build
        has_header toml.hpp || has_header toml11/toml.hpp || echo libtoml11-dev
        has_header CLI/CLI.hpp || echo libcli11-dev
        has_header nlohmann/json.hpp || echo nlohmann-json3-dev
        has_header xxhash.h || echo libxxhash-dev
        has_torch_or_venv || echo python3-venv
        ;;
      test) has_header gtest/gtest.h || echo libgtest-dev ;;
      bench) has_header benchmark/benchmark.h || echo libbenchmark-dev ;;
      lint)
        has_command clang-format || echo clang-format
        has_command shellcheck || echo shellcheck
        ;;
      docs) has_command doxygen || echo doxygen ;;
      fuzz)
        has_command clang++ || echo clang
        # libFuzzer and AddressSanitizer.
        compgen -G '/usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer-*.a' >/dev/null ||
          echo libclang-rt-dev
        ;;
      tidy) has_command clang-tidy || echo clang-tidy ;;
      *) die "packages for '$purpose' are not known" ;;
    esac
  done
}

# Installs the given packages where this user may, and otherwise says what to install.
install_packages() {
  local sudo=() command
  command="apt-get install -y --no-install-recommends $*"
  if ! has_command apt-get; then
    die "missing: $* (Debian's names; there is no apt-get here); install them and run again"
  fi
  if [ "$(id -u)" != 0 ]; then
    # Asking for a password needs somebody to type it.
    if has_command sudo && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
      sudo=(sudo)
    else
      die "missing: $*; this user may not install them; run as root: apt-get update && $command"
    fi
  fi
  local apt=("${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300
    -o Acquire::Retries=3 -qq)
  # Package lists may be absent or old: only then is an update worth its time. What apt says is worth
  # reading only where it fails.
  local log
  log=$(mktemp)
  say "installing $*"
  if ! "${apt[@]}" install -y --no-install-recommends "$@" </dev/null >"$log" 2>&1; then
    say "updating the package lists"
    "${apt[@]}" update </dev/null >"$log" 2>&1 || true
    if ! "${apt[@]}" install -y --no-install-recommends "$@" </dev/null >>"$log" 2>&1; then
      cat "$log" >&2
      rm -f "$log"
      die "could not install $*; see above, or install them yourself: $command"
    fi
  fi
  rm -f "$log"
}

ensure_packages() {
  local missing
  mapfile -t missing < <(missing_packages "$@")
  if [ "${#missing[@]}" -gt 0 ]; then install_packages "${missing[@]}"; fi
}
