#include "state/registry.h"

#include <sstream>
#include <utility>

#include "error.h"
#include "transfer/device_of.h"

namespace optim_offload::state {

std::string Member::label() const {
  if (!name.empty()) return name;
  std::ostringstream text;
  text << "unnamed parameter of group " << group << ", shape " << param.sizes();
  return text.str();
}

Registry::Registry(const torch::OrderedDict<std::string, at::Tensor>& named_parameters,
                   std::string pattern)
    : pattern_(std::move(pattern)) {
  for (const auto& item : named_parameters) {
    if (item.value().defined()) names_.emplace(item.value().unsafeGetTensorImpl(), item.key());
  }
}

bool Registry::matches(const std::vector<torch::optim::OptimizerParamGroup>& groups) const {
  size_t i = 0;
  for (size_t g = 0; g < groups.size(); ++g) {
    for (const at::Tensor& param : groups[g].params()) {
      if (i == members_.size()) return false;
      const Member& member = members_[i];
      if (member.group != g || !member.param.is_same(param)) return false;
      if (member.device != transfer::device_of(param))
        return false;  // model->to() keeps the object
      ++i;
    }
  }
  return i == members_.size() && groups.size() == group_count_ && version_ > 0;
}

void Registry::refresh(const std::vector<torch::optim::OptimizerParamGroup>& groups) {
  if (matches(groups)) return;

  std::unordered_map<const void*, Member*> before;
  for (Member& member : members_) before.emplace(member.key(), &member);

  std::vector<Member> members;
  std::vector<plan::NamedParam> named;
  std::unordered_map<const void*, size_t> group_of;
  for (size_t g = 0; g < groups.size(); ++g) {
    for (const at::Tensor& param : groups[g].params()) {
      Member member;
      OFFLOAD_CHECK(param.defined(), "parameter group ", g,
                    " holds an undefined tensor; pass defined parameters only");
      member.param = param;
      member.group = g;
      member.device = transfer::device_of(param);
      if (const auto name = names_.find(member.key()); name != names_.end())
        member.name = name->second;
      const auto [other, fresh] = group_of.emplace(member.key(), g);
      OFFLOAD_CHECK(fresh, "a parameter stands twice in the parameter groups (", member.label(),
                    ", in groups ", other->second, " and ", g, "); pass each tensor once");
      named.push_back({member.name, member.device});
      members.push_back(std::move(member));
    }
  }
  auto chunks = plan::plan_chunks(named, pattern_);

  for (Member& member : members) {
    if (const auto old = before.find(member.key()); old != before.end()) {
      member.record = std::move(old->second->record);
      member.stateless = old->second->stateless;
    }
  }
  members_ = std::move(members);
  chunks_ = std::move(chunks);
  group_count_ = groups.size();
  ++version_;
}

void Registry::check_unshared(const Member& member, const FoundTensor& found, bool moves) {
  const at::Tensor& own = found.tensor;
  const bool held = own.use_count() > 2;  // not by the member's state and `found` alone
  const bool shared = own.has_storage() && own.storage().use_count() > 1;
  const auto check_apart = [&](bool apart, const Member& other) {
    OFFLOAD_CHECK(apart, "the states of two parameters share memory (", other.label(), " and ",
                  member.label(), ", ", found.name, "); give each memory of its own (clone())");
  };
  const bool at_home = shared && own.is_cpu();
  if (held || at_home) {
    for (const Member& other : members_) {
      // A state object that went from one parameter to another took its tensors along.
      if (&other == &member || other.record.object == member.record.object) continue;
      for (const StateTensor& tensor : other.record.moved) {
        OFFLOAD_CHECK(!tensor.handle.is_same(own),
                      "two parameters have one state tensor, or exchanged theirs (", other.label(),
                      " and ", member.label(), ", ", found.name,
                      "); give each a tensor of its own (clone())");
        if (at_home && tensor.home.defined()) check_apart(!own.is_alias_of(tensor.home), other);
      }
    }
  }
  if (!shared) return;
  const Member* other = claims_.other_owner(member, own, moves);
  if (other != nullptr) check_apart(false, *other);
  claims_.add(member, own, moves);
}

size_t Registry::state_bytes() const {
  size_t bytes = 0;
  for (const Member& member : members_) {
    for (const StateTensor& tensor : member.record.moved) bytes += tensor.bytes;
  }
  return bytes;
}

}  // namespace optim_offload::state
