#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <torch/serialize/archive.h>

namespace optim_offload::fuzz {

/// One change to one entry of an archive. The entries are counted in the order in which they are
/// visited, an inner archive before what is in it; a place beyond the last is taken modulo
/// `places`.
struct Edit {
  enum class Kind : uint8_t {
    Drop,       ///< The entry is left out.
    Rename,     ///< Its key gets a character more.
    Empty,      ///< An inner archive without entries.
    Shape,      ///< A tensor of another shape.
    DataType,   ///< A tensor of another dtype.
    Strides,    ///< The tensor transposed, or with gaps.
    Scalar,     ///< A 0-dim int64 tensor of the value.
    Undefined,  ///< An undefined tensor.
    Integer,
    Float,
    Text,
    None,
    List,
    Tuple,
    Count,  // not a kind
  };
  uint8_t place = 0;
  Kind kind = Kind::Drop;
  uint8_t value = 0;
};

/// Three bytes make one edit.
std::vector<Edit> read_edits(std::string_view input);

/// What is in `from`, with the edits; no tensor is shared.
torch::serialize::InputArchive with_edits(torch::serialize::InputArchive& from,
                                          const std::vector<Edit>& edits);

}  // namespace optim_offload::fuzz
