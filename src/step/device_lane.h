#pragma once

#include <memory>
#include <vector>

#include <c10/core/Device.h>

#include "memory/slots.h"
#include "step/bound_piece.h"
#include "transfer/device_of.h"
#include "transfer/link.h"
#include "transfer/pipeline.h"

namespace optim_offload::step {

/// What one device needs to be stepped: its link, its slots and the pieces that lie on it.
struct DeviceLane {
  explicit DeviceLane(c10::Device id)
      : device(id), link(transfer::make_link(id)), slots(transfer::memory_of(id)) {}

  c10::Device device;
  std::unique_ptr<transfer::Link> link;  ///< Null where state rests on the device itself.
  memory::Slots slots;
  std::unique_ptr<transfer::Pipeline> pipeline;  ///< Made by the first streamed step.
  std::vector<BoundPiece> pieces;

  bool uses_slots() const { return slots.total_bytes() > 0; }
};

}  // namespace optim_offload::step
