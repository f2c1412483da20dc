#include "fuzz/archive_edits.h"

#include <cmath>
#include <iterator>
#include <string>

#include <ATen/core/ivalue.h>
#include <ATen/ops/full.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>

#include "state/archive_access.h"

namespace optim_offload::fuzz {

namespace {

using Kind = Edit::Kind;

// A prime above the entries of the archives used, so that a place means one entry.
constexpr int kPlaces = 251;
constexpr size_t kMostEdits = 16;

/// Small and odd, huge and negative.
int64_t number(uint8_t value) {
  switch (value % 4) {
    case 0:
      return value / 4;
    case 1:
      return -static_cast<int64_t>(value / 4);
    case 2:
      return int64_t{1} << (value / 4);
    default:
      return -(int64_t{1} << (value / 4));
  }
}

at::Tensor of_shape(uint8_t value, at::ScalarType dtype) {
  static const std::vector<std::vector<int64_t>> shapes = {
      {}, {0}, {1}, {3}, {6}, {7}, {2, 3}, {3, 2}, {6, 1}, {1, 6}, {2, 3, 1}, {0, 3}, {64, 64}};
  return at::zeros(shapes[value % shapes.size()], dtype);
}

at::Tensor of_dtype(uint8_t value, const at::Tensor& tensor) {
  constexpr at::ScalarType kTypes[] = {at::kFloat, at::kDouble, at::kHalf,        at::kBFloat16,
                                       at::kLong,  at::kInt,    at::kBool,        at::kByte,
                                       at::kShort, at::kChar,   at::kComplexFloat};
  return at::zeros(tensor.sizes(), kTypes[value % std::size(kTypes)]);
}

at::Tensor of_strides(uint8_t value, const at::Tensor& tensor) {
  if (value % 2 == 0 && tensor.dim() == 2) return tensor.t().contiguous().t();
  std::vector<int64_t> sizes = tensor.sizes().vec();
  sizes.push_back(2);
  return at::zeros(sizes, tensor.scalar_type()).select(tensor.dim(), 0);
}

class Copier {
 public:
  explicit Copier(const std::vector<Edit>& edits) : edits_(edits) {}

  void copy(torch::serialize::InputArchive& from, torch::serialize::OutputArchive& to) {
    for (std::string key : from.keys()) {
      const int place = next_++ % kPlaces;
      c10::IValue value;
      torch::serialize::InputArchive inner;
      bool is_archive = from.try_read(key, inner);
      if (!is_archive) from.read(key, value);
      bool written = false;
      for (const Edit& edit : edits_) {
        if (edit.place % kPlaces != place || written) continue;
        if (edit.kind == Kind::Drop) {
          written = true;
        } else if (edit.kind == Kind::Rename) {
          key += static_cast<char>('0' + edit.value % 10);
        } else if (edit.kind == Kind::Empty) {
          torch::serialize::OutputArchive empty(to.compilation_unit());
          to.write(key, empty);
          written = true;
        } else {
          value = changed(edit, value);
          is_archive = false;
        }
      }
      if (written) continue;
      if (is_archive) {
        torch::serialize::OutputArchive copy_of_inner(to.compilation_unit());
        copy(inner, copy_of_inner);
        to.write(key, copy_of_inner);
      } else if (value.isTensor()) {
        const at::Tensor& tensor = value.toTensor();
        // Of its own, as whoever loads the copy steps with it.
        to.write(key, tensor.defined() ? tensor.clone() : tensor, /*is_buffer=*/true);
      } else {
        to.write(key, value);
      }
    }
  }

 private:
  static c10::IValue changed(const Edit& edit, const c10::IValue& value) {
    const at::Tensor tensor =
        value.isTensor() && value.toTensor().defined() ? value.toTensor() : at::zeros({2, 3});
    switch (edit.kind) {
      case Kind::Shape:
        return of_shape(edit.value, tensor.scalar_type());
      case Kind::DataType:
        return of_dtype(edit.value, tensor);
      case Kind::Strides:
        return of_strides(edit.value, tensor);
      case Kind::Scalar:
        return at::scalar_tensor(number(edit.value), at::kLong);
      case Kind::Undefined:
        return at::Tensor();
      case Kind::Integer:
        return number(edit.value);
      case Kind::Float:
        return edit.value == 255 ? std::nan("") : static_cast<double>(number(edit.value)) / 8;
      case Kind::Text:
        return std::to_string(number(edit.value));
      case Kind::List:
        return std::vector<at::Tensor>(edit.value % 3, tensor);
      case Kind::Tuple:
        return c10::ivalue::Tuple::create(number(edit.value), 0.5);
      default:
        return {};
    }
  }

  const std::vector<Edit>& edits_;
  int next_ = 0;
};

}  // namespace

std::vector<Edit> read_edits(std::string_view input) {
  std::vector<Edit> edits;
  for (size_t i = 0; i + 2 < input.size() && edits.size() < kMostEdits; i += 3) {
    const auto byte = [&](size_t k) { return static_cast<uint8_t>(input[i + k]); };
    edits.push_back({.place = byte(0),
                     .kind = static_cast<Kind>(byte(1) % static_cast<uint8_t>(Kind::Count)),
                     .value = byte(2)});
  }
  return edits;
}

torch::serialize::InputArchive with_edits(torch::serialize::InputArchive& from,
                                          const std::vector<Edit>& edits) {
  torch::serialize::OutputArchive copy;
  Copier(edits).copy(from, copy);
  torch::serialize::InputArchive edited;
  // Without a way through bytes, which takes a hundred times as long.
  state::module_of(edited) = state::module_of(copy);
  return edited;
}

}  // namespace optim_offload::fuzz
