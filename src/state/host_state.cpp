#include "state/host_state.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <set>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>

#include "align.h"
#include "error.h"
#include "transfer/device_of.h"

namespace optim_offload::state {
namespace {

void copy_on_host(std::byte* dst, const std::byte* src, size_t bytes) {
  constexpr int64_t kBlock = int64_t{4} << 20;  // bytes per task: large against a task's cost
  at::parallel_for(0, static_cast<int64_t>(bytes), kBlock, [&](int64_t begin, int64_t end) {
    std::memcpy(dst + begin, src + begin, end - begin);
  });
}

bool at_home(const StateRecord& record) {
  return std::all_of(record.moved.begin(), record.moved.end(),
                     [](const StateTensor& tensor) { return tensor.is_home(); });
}

/// Reads the member's state anew. Tensors already at home keep it; the others are listed in
/// `moves`.
void reread(Registry& registry, const memory::Arena& arena,
            const std::unordered_set<std::string>& names, Member& member,
            const torch::optim::OptimizerParamState& object, bool loaded,
            std::vector<HostState::Move>& list) {
  std::vector<FoundTensor> found = find_state_tensors(object);
  const std::vector<bool> moving = which_move(found, member.param, loaded);
  const std::vector<bool> overlapping = which_overlap(found);
  StateRecord old = std::exchange(member.record, StateRecord{});
  member.record.object = &object;
  member.record.version = old.version + 1;
  for (size_t i = 0; i < found.size(); ++i) {
    FoundTensor& f = found[i];
    const auto known = std::find_if(old.moved.begin(), old.moved.end(), [&](const StateTensor& t) {
      return t.home.defined() && t.handle.is_same(f.tensor) && t.is_home();
    });
    if (known != old.moved.end()) {
      known->name = f.name;
      member.record.moved.push_back(*known);
      continue;
    }
    const bool rests = can_visit(f.tensor) && arena.owns(f.tensor.const_data_ptr());
    OFFLOAD_CHECK(!rests || !overlapping[i], "a state tensor has become a view of another (",
                  member.label(), ", ", f.name, "); give it memory of its own (clone())");
    // A tensor that was known to visit the device does so also when an archive brings it, or when
    // the user puts another in its place, on the host as that one lay. And one that rests already,
    // but whose parameter was not among the groups for a while.
    const bool lost = old.object == nullptr || old.incomplete;
    const bool named = (lost && names.count(f.name) > 0) ||
                       std::any_of(old.moved.begin(), old.moved.end(),
                                   [&](const auto& t) { return t.name == f.name; });
    const bool visited = can_visit(f.tensor) && !overlapping[i] &&
                         (rests || (named && (loaded || f.tensor.is_cpu())));
    registry.check_unshared(member, f, moving[i] || visited);
    if (!moving[i] && !visited) {
      member.record.resident.push_back(f.tensor);
      continue;
    }
    StateTensor waiting;
    waiting.handle = f.tensor;
    // What took the place of a tensor of the same form gets its home, so that loading needs no more
    // host memory than was used before.
    const auto place = std::find_if(old.moved.begin(), old.moved.end(),
                                    [&](const StateTensor& t) { return t.can_house(f); });
    if (place != old.moved.end()) waiting.home = std::exchange(place->home, at::Tensor());
    member.record.moved.push_back(std::move(waiting));
    list.push_back({&member, member.record.moved.size() - 1, std::move(f)});
  }
}

/// What has no home stays where it is, and is read anew next time.
void give_up(const std::vector<HostState::Move>& list) {
  for (const HostState::Move& move : list) {
    StateRecord& record = move.member->record;
    std::erase_if(record.moved, [](const StateTensor& t) { return t.home_storage == nullptr; });
    record.incomplete = true;
  }
}

}  // namespace

void erase_empty(StateMap& map) {
  std::vector<void*> empty;
  for (const auto& [key, object] : map) {
    if (object == nullptr) empty.push_back(key);
  }
  for (void* key : empty) map.erase(key);
}

memory::LockFor lock_for(c10::Device device) {
  return device.is_cuda() ? memory::LockFor::Cuda : memory::LockFor::Simulated;
}

StateTensor HostState::make_home(const FoundTensor& found, at::IntArrayRef sizes,
                                 at::IntArrayRef strides, const at::Tensor& param,
                                 at::Tensor home) {
  StateTensor tensor;
  tensor.name = found.name;
  names_.insert(found.name);
  tensor.handle = found.tensor;
  tensor.settle_in(home.defined() ? std::move(home)
                                  : arena_.allocate(sizes, strides, found.tensor.options(),
                                                    lock_for(param.device())));
  tensor.bytes = memory::extent_bytes(tensor.home);
  tensor.shaped = is_shaped_like(tensor.home, param);
  return tensor;
}

void HostState::move_home(std::vector<Move>& list, const LinkOf& link_of, bool loaded) {
  std::vector<size_t> expected;
  for (const Move& move : list) {
    if (move.member->record.moved[move.index].home.defined()) continue;
    expected.push_back(align_up(memory::extent_bytes(move.found.tensor)));
  }
  arena_.expect([expected = std::move(expected)] { return expected; });

  std::set<transfer::Link*> used;
  const auto finish = [&] {
    // The sources stay until their copies are done.
    for (transfer::Link* link : used) {
      link->synchronize(transfer::Lane::Compute, transfer::WaitPoint::StateSettled);
    }
    for (const Move& move : list) {
      StateTensor& tensor = move.member->record.moved[move.index];
      if (tensor.home_storage != nullptr) tensor.go_home();
    }
  };
  try {
    for (Move& move : list) {
      const at::Tensor& tensor = move.found.tensor;
      StateTensor home = make_home(move.found, tensor.sizes(), tensor.strides(), move.member->param,
                                   move.member->record.moved[move.index].home);
      // What an archive brings lies on the host. Other CPU tensors do too, but for a simulated
      // device, whose memory is the CPU's.
      transfer::Link* link =
          loaded && tensor.is_cpu() ? nullptr : link_of(transfer::device_of(tensor));
      if (link == nullptr) {
        copy_on_host(home.host_data(), static_cast<const std::byte*>(tensor.const_data_ptr()),
                     home.bytes);
      } else {
        used.insert(link);
        const transfer::Copy copy{home.host_data(), tensor.const_data_ptr(), home.bytes};
        link->copy(transfer::Lane::Compute, transfer::Direction::ToHost, {&copy, 1});
      }
      move.member->record.moved[move.index] = std::move(home);
    }
  } catch (...) {
    const std::exception_ptr failure = std::current_exception();
    try {
      finish();
    } catch (const std::exception&) {
      // The first failure tells more.
    }
    give_up(list);
    std::rethrow_exception(failure);
  }
  finish();
}

void HostState::settle(Registry& registry, StateMap& map, const LinkOf& link_of, bool loaded) {
  std::vector<Move> list;
  c10::Device device(c10::DeviceType::CPU);
  transfer::Link* link = link_of(device);
  for (Member& member : registry.members()) {
    if (member.device != device) {
      device = member.device;
      link = link_of(device);
    }
    if (link == nullptr) continue;
    const auto entry = map.find(member.param.unsafeGetTensorImpl());
    const auto* object = entry == map.end() ? nullptr : entry->second.get();
    if (object == nullptr) {
      if (member.record.object != nullptr) member.record.forget();
      continue;
    }
    if (!member.record.describes(object) || !at_home(member.record)) {
      try {
        reread(registry, arena_, names_, member, *object, loaded, list);
      } catch (...) {
        member.record.incomplete = true;
        give_up(list);
        throw;
      }
    }
  }
  if (list.empty()) return;

  move_home(list, link_of, loaded);
  arena_.trim();
}

}  // namespace optim_offload::state
