#include "support/twins.h"

#include <ATen/core/grad_mode.h>

namespace optim_offload::testing {

Groups even_and_odd(Model& model) {
  Groups groups(2);
  size_t i = 0;
  for (const auto& tensor : model.tensors()) groups[i++ % 2].push_back(tensor);
  return groups;
}

Twins::Twins(const TestDevice& device, std::vector<ParamSpec> specs, const Recipe& recipe,
             OffloadOptions options, Grouping grouping, uint64_t seed)
    : device_(device.device()),
      specs_(std::move(specs)),
      recipe_(recipe),
      grouping_(grouping ? std::move(grouping)
                         : [](Model& model) { return Groups{model.tensors()}; }),
      seed_(seed) {
  plain_model = make_model(specs_, device_, seed_);
  wrapped_model = make_model(specs_, device_, seed_);
  plain = make_base(recipe_, grouping_(plain_model));
  rewrap_empty(std::move(options));
}

void Twins::gradients(const GradientFilter& filter) {
  ++round_;
  set_gradients(plain_model, seed_ * 7919 + round_, filter);
  set_gradients(wrapped_model, seed_ * 7919 + round_, filter);
}

void Twins::step(const GradientFilter& filter) {
  gradients(filter);
  plain->step();
  wrapped->step();
  if (!device_is_shared) expect_copies_done();
}

void Twins::steps(int count, const GradientFilter& filter) {
  for (int i = 0; i < count; ++i) step(filter);
}

::testing::AssertionResult Twins::same() const {
  if (auto same = same_parameters(plain_model, wrapped_model); !same) return same;
  return same_snapshot(snapshot(*plain), snapshot(*wrapped));
}

void Twins::restart_plain_from_wrapped() {
  plain_model = make_model(specs_, device_, seed_);
  {
    torch::NoGradGuard no_grad;
    for (auto& item : plain_model.parameters) item.value().copy_(wrapped_model[item.key()]);
  }
  plain = make_base(recipe_, grouping_(plain_model));
  load_saved(*plain, saved(*wrapped), device_);
}

void Twins::resume(OffloadOptions options) {
  const auto archive = saved(*wrapped);
  rewrap_empty(std::move(options));
  load_saved(*wrapped, archive);
}

void Twins::rewrap_empty(OffloadOptions options) {
  wrapped.reset();
  wrapped = std::make_unique<CPUOffloadOptimizer>(make_base(recipe_, grouping_(wrapped_model)),
                                                  wrapped_model.parameters, std::move(options));
}

}  // namespace optim_offload::testing
