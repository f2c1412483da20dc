#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/optim/optimizer.h>
#include <torch/ordered_dict.h>

#include "plan/chunk.h"
#include "state/memory_claims.h"
#include "state/state_record.h"

namespace optim_offload::state {

/// A parameter of the groups.
struct Member {
  at::Tensor param;
  std::string name;  ///< Empty where the user gave none.
  size_t group = 0;
  c10::Device device{c10::DeviceType::CPU};  ///< device_of() the parameter when chunks were made.
  StateRecord record;
  bool stateless = false;  ///< Was stepped and got no state.

  const void* key() const { return param.unsafeGetTensorImpl(); }
  std::string label() const;
};

/// The parameters of all groups in order, with names, records and chunks. Follows the groups: any
/// change a user makes to them is taken over at the next refresh().
class Registry {
 public:
  /// Of a tensor registered under two names the first counts.
  Registry(const torch::OrderedDict<std::string, at::Tensor>& named_parameters,
           std::string pattern);

  /// Takes over the parameters of `groups`; records of parameters that stay are kept. Throws where
  /// a tensor stands twice in the groups. Cheap where nothing changed.
  void refresh(const std::vector<torch::optim::OptimizerParamGroup>& groups);

  std::vector<Member>& members() { return members_; }
  const std::vector<Member>& members() const { return members_; }
  const std::vector<plan::Chunk>& chunks() const { return chunks_; }

  size_t group_count() const { return group_count_; }

  /// Advances whenever refresh() found a change.
  size_t version() const { return version_; }

  /// Throws where the state of another member than `member` holds this very tensor, or one that
  /// overlaps it in memory: it cannot visit the device with both. Known are those that rest on the
  /// host, and those that were checked since end_checks(). `moves`: it is about to go home.
  void check_unshared(const Member& member, const FoundTensor& found, bool moves);
  void end_checks() { claims_.clear(); }

  /// Bytes of state at rest on the host.
  size_t state_bytes() const;

 private:
  bool matches(const std::vector<torch::optim::OptimizerParamGroup>& groups) const;

  std::unordered_map<const void*, std::string> names_;
  std::string pattern_;
  std::vector<Member> members_;
  std::vector<plan::Chunk> chunks_;
  size_t group_count_ = 0;
  size_t version_ = 0;
  MemoryClaims claims_;
};

}  // namespace optim_offload::state
