// Random models, optimizers, options and schedules against the plain optimizer, bit by bit.
//
// OPTIM_OFFLOAD_SEED (default 20250101) is the first case's seed, each further case has the next
// number; OPTIM_OFFLOAD_CASES says how many. A failure prints the seed that replays it alone.
#include <cstdlib>
#include <iostream>
#include <sstream>

#include <gtest/gtest.h>

#include "equivalence/random_model.h"
#include "equivalence/random_recipes.h"
#include "optim_offload/cpu_offload_optimizer.h"
#include "support/compare.h"
#include "support/test_device.h"

namespace optim_offload::testing {
namespace {

int64_t number_from_environment(const char* name, int64_t fallback) {
  const char* text = std::getenv(name);
  return text == nullptr || *text == '\0' ? fallback : std::atoll(text);
}

class Case {
 public:
  /// Describes itself to `log` as it goes, so that a throw is described as well.
  Case(uint64_t seed, const TestDevice& device, std::ostream& log)
      : log_(log),
        random_(seed),
        device_(device.device()),
        recipe_(random_recipe(random_)),
        shape_(random_model(random_)),
        value_seed_(random_.bits() % 100'000) {
    plain_model_ = shape_.make(device_, value_seed_);
    wrapped_model_ = shape_.make(device_, value_seed_);
    plain_ = make_base(recipe_, shape_.group(plain_model_));
    log_ << "  " << recipe_.name << shape_.describe();
    wrap(make_base(recipe_, shape_.group(wrapped_model_)));
  }

  void run() {
    const auto rounds = random_.integer(3, 8);
    for (int64_t round = 0; round < rounds; ++round) {
      while (random_.chance(0.35)) ASSERT_NO_FATAL_FAILURE(disturb());
      random_gradients(random_, shape_, round, plain_model_, wrapped_model_);
      log_ << "\n  step " << round;
      plain_->step();
      wrapped_->step();
      ASSERT_TRUE(same_parameters(plain_model_, wrapped_model_));
    }
    ASSERT_TRUE(same_snapshot(snapshot(*plain_), snapshot(*wrapped_)));
    ASSERT_TRUE(same_snapshot(saved_snapshot(*plain_), saved_snapshot(*wrapped_)));
  }

 private:
  void wrap(std::unique_ptr<torch::optim::Optimizer> base) {
    std::string text;
    const auto options = random_offload_options(random_, text);
    log_ << "\n  wrapped: " << text;
    wrapped_.reset();
    wrapped_ = std::make_unique<CPUOffloadOptimizer>(std::move(base), shape_.names(wrapped_model_),
                                                     options);
  }

  /// One of the things that happen between steps.
  void disturb() {
    switch (random_.integer(0, 9)) {
      case 0:
        return change_learning_rate();
      case 1:
        return add_group();
      case 2:
        log_ << "\n  saved and loaded in place";
        return load_saved(*wrapped_, saved(*wrapped_));
      case 3: {
        log_ << "\n  new wrapper from the wrapped one's archive";
        const auto archive = saved(*wrapped_);
        wrap(make_base(recipe_, shape_.group(wrapped_model_)));
        return load_saved(*wrapped_, archive);
      }
      case 4:
        log_ << "\n  new wrapper from the plain one's archive";
        wrap(make_base(recipe_, shape_.group(wrapped_model_)));
        return load_saved(*wrapped_, saved(*plain_));
      case 5:
        log_ << "\n  new plain optimizer from the wrapped one's archive";
        plain_ = make_base(recipe_, shape_.group(plain_model_));
        return load_saved(*plain_, saved(*wrapped_), device_);
      case 6:
        log_ << "\n  released and wrapped again";
        return wrap(wrapped_->release());
      case 7:
        log_ << "\n  zero_grad and a step with a closure";
        return step_with_closure();
      case 8:
        return change_weights();
      default:
        log_ << "\n  states compared";
        ASSERT_TRUE(same_snapshot(snapshot(*plain_), snapshot(*wrapped_)));
    }
  }

  void change_learning_rate() {
    // Muon's recipe has more groups than the model.
    const auto groups = static_cast<int64_t>(plain_->param_groups().size());
    const auto group = static_cast<size_t>(random_.integer(0, groups - 1));
    const double factor = random_.pick<double>({0.5, 0.1, 1.7});
    log_ << "\n  learning rate of group " << group << " times " << factor;
    for (auto* optimizer : {plain_.get(), wrapped()}) {
      auto& options = optimizer->param_groups()[group].options();
      options.set_lr(options.get_lr() * factor);
    }
  }

  void add_group() {
    if (!recipe_.grows) return;
    auto added = random_parameter(random_, shape_.parameters.size(), 1);
    added.group = shape_.groups++;
    added.second_name.clear();
    shape_.parameters.push_back(added);
    log_ << "\n  new group with " << added.spec.name << " " << c10::IntArrayRef(added.spec.shape);
    const auto seed = random_.bits() % 1'000'000;
    for (auto* model : {&plain_model_, &wrapped_model_}) {
      model->parameters.insert(added.spec.name, make_parameter(added.spec, device_, seed));
    }
    using torch::optim::OptimizerParamGroup;
    plain_->add_param_group(OptimizerParamGroup({plain_model_[added.spec.name]}));
    wrapped_->add_param_group(OptimizerParamGroup({wrapped_model_[added.spec.name]}));
  }

  void step_with_closure() {
    for (auto* optimizer : {plain_.get(), wrapped()}) optimizer->zero_grad();
    const auto seed = random_.bits() % 1'000'000;
    int calls = 0;
    for (auto* optimizer : {plain_.get(), wrapped()}) {
      auto& model = optimizer == plain_.get() ? plain_model_ : wrapped_model_;
      const auto loss = optimizer->step([&] {
        ++calls;
        set_gradients(model, seed);
        return torch::full({}, static_cast<double>(seed));
      });
      ASSERT_TRUE(loss.defined());
      ASSERT_EQ(loss.item<float>(), static_cast<float>(seed));
    }
    ASSERT_EQ(calls, 2);
    ASSERT_TRUE(same_parameters(plain_model_, wrapped_model_));
  }

  void change_weights() {
    const auto& name = random_.pick(shape_.parameters).spec.name;
    log_ << "\n  weights of " << name << " halved";
    for (auto* model : {&plain_model_, &wrapped_model_}) (*model)[name].detach().mul_(0.5);
  }

  torch::optim::Optimizer* wrapped() { return wrapped_.get(); }

  std::ostream& log_;
  Random random_;
  torch::Device device_;
  Recipe recipe_;
  RandomModel shape_;
  uint64_t value_seed_;
  Model plain_model_;
  Model wrapped_model_;
  std::unique_ptr<torch::optim::Optimizer> plain_;
  std::unique_ptr<CPUOffloadOptimizer> wrapped_;
};

void run_cases(DeviceKind kind, int64_t default_cases) {
  const auto first = static_cast<uint64_t>(number_from_environment("OPTIM_OFFLOAD_SEED", 20250101));
  const auto count = number_from_environment("OPTIM_OFFLOAD_CASES", default_cases);
  std::cout << "seeds " << first << " to " << first + count - 1 << std::endl;
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(count); ++seed) {
    // The delay is a draw of its own, so that a case is the same on every device.
    TestDevice device(kind, std::chrono::microseconds(Random(~seed).integer(0, 150)));
    std::ostringstream log;
    try {
      Case(seed, device, log).run();
      device.expect_order();
    } catch (const std::exception& error) {
      ADD_FAILURE() << "thrown: " << error.what();
    }
    if (::testing::Test::HasFailure()) {
      FAIL() << "replay with OPTIM_OFFLOAD_SEED=" << seed << " OPTIM_OFFLOAD_CASES=1\n"
             << log.str();
    }
  }
}

TEST(Equivalence, RandomCases_Cpu) { run_cases(DeviceKind::Cpu, 100); }

TEST(Equivalence, RandomCases_Simulated) { run_cases(DeviceKind::Simulated, 200); }

TEST(Equivalence, RandomCases_CUDA) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no CUDA device";
  run_cases(DeviceKind::Cuda, 200);
}

}  // namespace
}  // namespace optim_offload::testing
