#include "bench/check.h"

#include <cstring>

#include "bench/model.h"
#include "bench/optimizers.h"
#include "optim_offload/cpu_offload_optimizer.h"

namespace optim_offload::bench {

namespace {

constexpr int64_t kSteps = 5;
constexpr int64_t kPieceBytes = int64_t{256} << 10;

void copy_gradients(const NamedParameters& from, const NamedParameters& to) {
  for (const auto& item : from) {
    to[item.key()].mutable_grad() = item.value().grad().clone();
  }
}

}  // namespace

void require_same_bits(const torch::Tensor& a, const torch::Tensor& b, const std::string& what) {
  TORCH_CHECK(a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes(), "[optim_offload] ",
              what, " is ", a.scalar_type(), " ", a.sizes(), " in the plain optimizer and ",
              b.scalar_type(), " ", b.sizes(), " in the other; no figures are printed");
  const auto left = a.detach().cpu().contiguous();
  const auto right = b.detach().cpu().contiguous();
  const auto* left_bytes = static_cast<const char*>(left.const_data_ptr());
  const auto* right_bytes = static_cast<const char*>(right.const_data_ptr());
  const size_t size = left.element_size();
  if (std::memcmp(left_bytes, right_bytes, left.nbytes()) == 0) return;
  for (int64_t i = 0; i < left.numel(); ++i) {
    const size_t at = static_cast<size_t>(i) * size;
    TORCH_CHECK(std::memcmp(left_bytes + at, right_bytes + at, size) == 0, "[optim_offload] ", what,
                " differs from the plain optimizer's at element ", i, " of ", left.numel(), " (",
                left.flatten()[i].item<double>(), " and ", right.flatten()[i].item<double>(),
                "); no figures are printed");
  }
}

void require_same_state(const std::vector<SavedState>& a, const std::vector<SavedState>& b,
                        const NamedParameters& names) {
  TORCH_CHECK(a.size() == b.size() && a.size() == names.size(), "[optim_offload] states of ",
              a.size(), " and ", b.size(), " parameters for ", names.size(),
              " names; no figures are printed");
  for (size_t i = 0; i < a.size(); ++i) {
    const std::string& name = names[i].key();
    TORCH_CHECK(!a[i].empty() && a[i].size() == b[i].size(), "[optim_offload] the state of ", name,
                " has ", a[i].size(), " entries in the plain optimizer and ", b[i].size(),
                " in the other; no figures are printed");
    for (const auto& [key, value] : a[i]) {
      const auto other = b[i].find(key);
      TORCH_CHECK(other != b[i].end(), "[optim_offload] the state of ", name, " has no '", key,
                  "'; no figures are printed");
      require_same_bits(value, other->second, "state '" + key + "' of " + name);
    }
  }
}

void check_against_plain(Mode mode, OptimizerKind kind, const BenchOptions& options,
                         Device& device) {
  if (mode == Mode::Resident) return;  // it is the plain optimizer
  const ModelSpec spec = decoder_spec("check", 3, 128, 1000);
  const auto plain_model = make_parameters(spec, options.dtype, device.torch_device(), 1);
  const auto model = make_parameters(spec, options.dtype, device.torch_device(), 1);
  const auto plain = make_optimizer(kind, plain_model);
  CPUOffloadOptimizer offloaded(make_optimizer(kind, model), model,
                                options.offload(mode, kPieceBytes));
  const std::string setting = std::string(to_string(kind)) + ", " + to_string(mode) + ": ";
  for (int64_t step = 1; step <= kSteps; ++step) {
    fill_gradients(plain_model, 100 + static_cast<uint64_t>(step));
    copy_gradients(plain_model, model);
    plain->step();
    offloaded.step();
    for (const auto& item : plain_model) {
      require_same_bits(item.value(), model[item.key()],
                        setting + item.key() + " after step " + std::to_string(step));
    }
  }
  require_same_state(saved_state(*plain, plain_model), saved_state(offloaded, model), model);
}

}  // namespace optim_offload::bench
