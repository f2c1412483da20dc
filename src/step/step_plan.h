#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "optim_offload/options.h"
#include "optim_offload/traits.h"
#include "state/registry.h"
#include "state/state_forecast.h"
#include "step/device_lane.h"

namespace optim_offload::step {

/// The pieces of a step, bound to slots, kept from step to step while parameters, gradients'
/// presence and layout, and state stay as they are.
class StepPlan {
 public:
  StepPlan(OffloadOptions options, OptimizerTraits traits) : options_(options), traits_(traits) {}

  /// Makes the pieces anew where something changed. `all_gradients`: gradients will be there for
  /// all parameters when the base steps (a closure makes them).
  void update(state::Registry& registry,
              const std::vector<torch::optim::OptimizerParamGroup>& groups, bool all_gradients);

  std::vector<std::unique_ptr<DeviceLane>>& lanes() { return lanes_; }
  DeviceLane& lane(c10::Device device);

  size_t piece_count() const { return piece_count_; }
  size_t tile_count() const { return tile_count_; }
  size_t largest_piece_bytes() const { return largest_bytes_; }
  const std::string& oversize_piece() const { return oversize_; }

  /// The piece that is stepped as number `index`, from 0.
  const BoundPiece& piece(size_t index) const;

  /// Members in the order in which they are stepped.
  const std::vector<size_t>& order() const { return order_; }

  /// State that members without any are to get; learns during the step.
  state::StateForecast& forecast() { return forecast_; }

  /// For each group the last piece that steps parameters of it, or the last piece of all.
  const std::vector<size_t>& last_piece_of_group() const { return last_piece_; }

 private:
  enum class Gradient : uint8_t { None, Dense, Other };
  struct Signature {
    const void* param;
    const void* data;
    size_t layout;  ///< Hash of the strides.
    size_t record_version;
    Gradient gradient;
    bool stateless;
    bool operator==(const Signature&) const = default;
  };

  std::vector<Signature> sign(const state::Registry& registry, bool all_gradients) const;
  plan::ParamSize size_of(const state::Member& member, const state::StateForecast& forecast,
                          Gradient gradient);
  /// Members with gradients in the order in which the base comes to them, which goes by groups.
  std::vector<size_t> stepping_order(const std::vector<state::Member>& members,
                                     const std::vector<Signature>& signature) const;
  void bind(const state::Registry& registry, const std::vector<plan::Piece>& pieces,
            const std::vector<bool>& visits);

  OffloadOptions options_;
  OptimizerTraits traits_;
  std::vector<Signature> signature_;
  size_t registry_version_ = 0;
  std::vector<std::unique_ptr<DeviceLane>> lanes_;
  std::vector<size_t> last_piece_;
  std::vector<size_t> order_;
  state::StateForecast forecast_;
  size_t piece_count_ = 0;
  size_t tile_count_ = 0;
  size_t largest_bytes_ = 0;
  std::string oversize_;
};

}  // namespace optim_offload::step
