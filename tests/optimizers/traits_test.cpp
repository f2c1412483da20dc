// What traits.cpp claims about each optimizer class, tried on the classes themselves.
#include "optim_offload/traits.h"

#include <gtest/gtest.h>
#include <torch/optim.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "optim_offload/optimizers/fused_adamw.h"
#include "optim_offload/optimizers/muon.h"
#include "optimizers/optimizer_kit.h"

namespace optim_offload {
namespace {

namespace optim = torch::optim;
using Tensors = std::vector<torch::Tensor>;

struct Known {
  std::string name;
  std::function<std::unique_ptr<optim::Optimizer>(Tensors)> make;
  /// Tensors of one parameter's state.
  std::function<Tensors(const optim::OptimizerParamState&)> tensors;

  friend std::ostream& operator<<(std::ostream& out, const Known& known) {
    return out << known.name;
  }
};

template <typename Optimizer, typename Options>
std::function<std::unique_ptr<optim::Optimizer>(Tensors)> maker(Options options) {
  return
      [options](Tensors params) { return std::make_unique<Optimizer>(std::move(params), options); };
}

template <typename State>
Tensors adam_tensors(const optim::OptimizerParamState& state) {
  const auto& s = static_cast<const State&>(state);
  return {s.exp_avg(), s.exp_avg_sq(), s.max_exp_avg_sq()};
}

Tensors sgd_tensors(const optim::OptimizerParamState& state) {
  return {static_cast<const optim::SGDParamState&>(state).momentum_buffer()};
}

Tensors rmsprop_tensors(const optim::OptimizerParamState& state) {
  const auto& s = static_cast<const optim::RMSpropParamState&>(state);
  return {s.square_avg(), s.momentum_buffer(), s.grad_avg()};
}

Tensors adagrad_tensors(const optim::OptimizerParamState& state) {
  return {static_cast<const optim::AdagradParamState&>(state).sum()};
}

const std::vector<Known>& known() {
  static const std::vector<Known> list = {
      {"Adam", maker<optim::Adam>(optim::AdamOptions(0.05).weight_decay(0.1)),
       adam_tensors<optim::AdamParamState>},
      {"AdamAmsgrad", maker<optim::Adam>(optim::AdamOptions(0.05).amsgrad(true)),
       adam_tensors<optim::AdamParamState>},
      {"AdamW", maker<optim::AdamW>(optim::AdamWOptions(0.05)),
       adam_tensors<optim::AdamWParamState>},
      {"AdamWAmsgrad", maker<optim::AdamW>(optim::AdamWOptions(0.05).amsgrad(true)),
       adam_tensors<optim::AdamWParamState>},
      {"FusedAdamW", maker<FusedAdamW>(optim::AdamWOptions(0.05)),
       adam_tensors<optim::AdamWParamState>},
      {"FusedAdamWAmsgrad", maker<FusedAdamW>(optim::AdamWOptions(0.05).amsgrad(true)),
       adam_tensors<optim::AdamWParamState>},
      {"SGDMomentum",
       maker<optim::SGD>(optim::SGDOptions(0.05).momentum(0.9).dampening(0.1).weight_decay(0.1)),
       sgd_tensors},
      {"SGDNesterov", maker<optim::SGD>(optim::SGDOptions(0.05).momentum(0.9).nesterov(true)),
       sgd_tensors},
      {"RMSpropCentered",
       maker<optim::RMSprop>(optim::RMSpropOptions(0.05).centered(true).momentum(0.9)),
       rmsprop_tensors},
      {"RMSprop", maker<optim::RMSprop>(optim::RMSpropOptions(0.05)), rmsprop_tensors},
      {"Adagrad",
       maker<optim::Adagrad>(
           optim::AdagradOptions(0.05).lr_decay(0.1).initial_accumulator_value(0.5)),
       adagrad_tensors},
  };
  return list;
}

class KnownOptimizers : public ::testing::TestWithParam<Known> {};

std::string known_name(const ::testing::TestParamInfo<Known>& info) { return info.param.name; }

TEST_P(KnownOptimizers, HaveBothTraits) {
  const auto optimizer = GetParam().make({parameter({3}, 1)});
  const auto traits = optimizer_traits(*optimizer);
  EXPECT_TRUE(traits.element_wise);
  EXPECT_TRUE(traits.fixed_state);
  EXPECT_TRUE(traits.fixed_options);
  EXPECT_FALSE(traits.couples_parameters);
}

TEST_P(KnownOptimizers, NeverReplaceTheirStateTensors) {
  auto p = parameter({40}, 1);
  const auto optimizer = GetParam().make({p});
  Tensors first;
  for (int64_t step = 0; step < 5; ++step) {
    p.mutable_grad() = numbers({40}, step);
    optimizer->step();
    const auto now = GetParam().tensors(*optimizer->state().at(p.unsafeGetTensorImpl()));
    if (step == 0) first = now;
    for (size_t i = 0; i < now.size(); ++i) EXPECT_TRUE(now[i].is_same(first[i])) << i;
  }
}

void expect_same_bits_in_slices(const Known& known, const std::vector<int64_t>& lengths,
                                torch::Device device) {
  for (const auto dtype : {torch::kFloat32, torch::kBFloat16}) {
    const auto whole = parameter({1001}, 1, dtype).detach().to(device).requires_grad_(true);
    Tensors slices;
    for (const auto& part : whole.detach().split_with_sizes(lengths)) {
      slices.push_back(part.clone().requires_grad_(true));
    }
    const auto one = known.make({whole});
    const auto many = known.make(slices);
    for (int64_t step = 0; step < 5; ++step) {
      whole.mutable_grad() = numbers({1001}, step, dtype).to(device);
      const auto grads = whole.grad().split_with_sizes(lengths);
      for (size_t i = 0; i < slices.size(); ++i) slices[i].mutable_grad() = grads[i].clone();
      one->step();
      many->step();
    }
    EXPECT_TRUE(same_bits(torch::cat(slices), whole)) << dtype;
    const auto state = known.tensors(*one->state().at(whole.unsafeGetTensorImpl()));
    for (size_t i = 0; i < state.size(); ++i) {
      if (!state[i].defined()) continue;
      Tensors parts;
      for (const auto& slice : slices) {
        parts.push_back(known.tensors(*many->state().at(slice.unsafeGetTensorImpl()))[i]);
      }
      EXPECT_TRUE(same_bits(torch::cat(parts), state[i])) << dtype << " state " << i;
    }
  }
}

// Cuts at multiples of 256 bytes, as tiles are. At other cuts the CPU kernels differ: their vector
// loop and what handles its remainder round bfloat16, and in the fused kernel float, unlike.
TEST_P(KnownOptimizers, GiveTheSameBitsInSlices) {
  expect_same_bits_in_slices(GetParam(), {512, 256, 233}, torch::kCPU);
}

TEST_P(KnownOptimizers, GiveTheSameBitsInSlices_CUDA) {
  SKIP_WITHOUT_CUDA();
  expect_same_bits_in_slices(GetParam(), {512, 256, 233}, torch::kCUDA);
  expect_same_bits_in_slices(GetParam(), {1, 600, 93, 307}, torch::kCUDA);
}

INSTANTIATE_TEST_SUITE_P(Traits, KnownOptimizers, ::testing::ValuesIn(known()), known_name);

TEST(Traits, MuonKeepsItsBuffersButIsNotElementWise) {
  auto matrix = parameter({4, 3}, 1);
  Muon muon({matrix});
  EXPECT_FALSE(optimizer_traits(muon).element_wise);
  EXPECT_FALSE(optimizer_traits(muon).couples_parameters);
  EXPECT_TRUE(optimizer_traits(muon).fixed_state);
  EXPECT_FALSE(optimizer_traits(muon).fixed_options) << "it counts steps there";
  torch::Tensor first;
  for (int64_t step = 0; step < 4; ++step) {
    matrix.mutable_grad() = numbers({4, 3}, step);
    muon.step();
    const auto& state =
        static_cast<MuonParamState&>(*muon.state().at(matrix.unsafeGetTensorImpl()));
    if (step == 0) first = state.momentum_buffer();
    EXPECT_TRUE(state.momentum_buffer().is_same(first));
  }
}

TEST(Traits, LbfgsCouplesParameters) {
  const optim::LBFGS lbfgs(Tensors{parameter({3}, 1)});
  EXPECT_TRUE(optimizer_traits(lbfgs).couples_parameters);
  EXPECT_FALSE(optimizer_traits(lbfgs).element_wise);
}

class OwnSgd : public optim::SGD {
 public:
  using optim::SGD::SGD;
};

TEST(Traits, OfAUsersClassAreWhatTheUserSays) {
  // A derived class may do anything: it does not inherit what is known of its base.
  const OwnSgd own(Tensors{parameter({3}, 1)}, optim::SGDOptions(0.1));
  EXPECT_FALSE(optimizer_traits(own).element_wise);
  EXPECT_FALSE(optimizer_traits(own).fixed_state);
  set_optimizer_traits<OwnSgd>({.element_wise = true});
  EXPECT_TRUE(optimizer_traits(own).element_wise);
  EXPECT_FALSE(optimizer_traits(own).fixed_state);
  set_optimizer_traits<OwnSgd>({});
  EXPECT_FALSE(optimizer_traits(own).element_wise);
}

TEST(Traits, AreSetAndReadByManyThreads) {
  class Other : public OwnSgd {
   public:
    using OwnSgd::OwnSgd;
  };
  const Other other(Tensors{parameter({3}, 1)}, optim::SGDOptions(0.1));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int n = 0; n < 1000; ++n) {
        if (i % 2) set_optimizer_traits<Other>({.element_wise = true, .fixed_state = true});
        const auto traits = optimizer_traits(other);
        // Never half of one and half of the other.
        EXPECT_EQ(traits.element_wise, traits.fixed_state);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_TRUE(optimizer_traits(other).element_wise);
}

}  // namespace
}  // namespace optim_offload
