#pragma once

#include <functional>
#include <string>
#include <unordered_set>
#include <vector>

#include <torch/optim/optimizer.h>

#include "memory/arena.h"
#include "state/optimizer_data.h"
#include "state/registry.h"
#include "state/state_tensors.h"
#include "transfer/link.h"

namespace optim_offload::state {

/// Takes out entries without an object. An optimizer that makes state by `auto& state =
/// state_[key]` leaves one where it then throws, and LibTorch's save() would read through it.
void erase_empty(StateMap& map);

memory::LockFor lock_for(c10::Device device);

/// Brings state home between steps: what is there when an optimizer is wrapped, what load() read,
/// and what the user put or changed in state() since.
class HostState {
 public:
  explicit HostState(PinMemory pin) : arena_(pin) {}

  /// The link to a device, or null where state rests on the device itself.
  using LinkOf = std::function<transfer::Link*(c10::Device)>;

  /// Makes every record describe the state in `map`, and moves tensors that are not at home there.
  /// `loaded`: the state comes from an archive. Waits for its copies. Fast where nothing changed.
  void settle(Registry& registry, StateMap& map, const LinkOf& link_of, bool loaded);

  /// A record's entry for `found` with `home`, or with a new one of these sizes and strides. Its
  /// content is still to be copied.
  StateTensor make_home(const FoundTensor& found, at::IntArrayRef sizes, at::IntArrayRef strides,
                        const at::Tensor& param, at::Tensor home = {});

  /// A tensor that has to move, and its place in the record that waits for it.
  struct Move {
    Member* member;
    size_t index;
    FoundTensor found;
  };

  memory::Arena& arena() { return arena_; }
  const memory::Arena& arena() const { return arena_; }

 private:
  void move_home(std::vector<Move>& list, const LinkOf& link_of, bool loaded);

  memory::Arena arena_;
  std::unordered_set<std::string> names_;  // of all tensors that have had a home
};

}  // namespace optim_offload::state
