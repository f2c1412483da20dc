#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <c10/core/Device.h>

namespace optim_offload::plan {

/// What planning needs to know of a parameter. An empty name means that it has none.
struct NamedParam {
  std::string name;
  c10::Device device;
};

/// Parameters that belong together: one layer's, or all others of a device (misc).
struct Chunk {
  std::string name;  ///< `model.layers.3` or `misc`
  c10::Device device;
  std::vector<size_t> params;  ///< Indices into the list that was planned, ascending.
};

/// Characters of a layer pattern. The standard library compiles and matches a pattern by recursion,
/// so that one of some ten thousand would run out of stack.
constexpr size_t kLongestPattern = 1000;
/// Characters of a name in which the pattern is searched, for the same reason.
constexpr size_t kLongestName = 1000;

/// Groups parameters by layer. `pattern` is searched in each name; all names with the same text up
/// to the match's end share a chunk, so two stacks with the same numbers stay apart, and so do two
/// devices. Layers keep the order of first appearance; misc chunks come last.
///
/// Throws where the pattern is too long, no ECMAScript regular expression or captures nothing.
std::vector<Chunk> plan_chunks(const std::vector<NamedParam>& params, const std::string& pattern);

}  // namespace optim_offload::plan
