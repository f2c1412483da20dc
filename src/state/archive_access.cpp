#include "state/archive_access.h"

namespace optim_offload::state {
namespace {

torch::jit::Module& private_module(torch::serialize::OutputArchive& archive);
torch::jit::Module& private_module(torch::serialize::InputArchive& archive);

// An explicit template instantiation may name a private member, and its friend give it away.
template <typename Archive, torch::jit::Module Archive::*Member>
struct ExposeModule {
  friend torch::jit::Module& private_module(Archive& archive) { return archive.*Member; }
};
template struct ExposeModule<torch::serialize::OutputArchive,
                             &torch::serialize::OutputArchive::module_>;
template struct ExposeModule<torch::serialize::InputArchive,
                             &torch::serialize::InputArchive::module_>;

}  // namespace

torch::jit::Module& module_of(torch::serialize::OutputArchive& archive) {
  return private_module(archive);
}
torch::jit::Module& module_of(torch::serialize::InputArchive& archive) {
  return private_module(archive);
}

}  // namespace optim_offload::state
