#include "equivalence/random_case.h"

#include <gtest/gtest.h>

#include "fault.h"
#include "state/state_tensors.h"
#include "support/compare.h"

namespace optim_offload::testing {

Case::Case(uint64_t seed, const TestDevice& device, std::ostream& log)
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

void Case::run() {
  const auto rounds = random_.integer(3, 8);
  for (int64_t round = 0; round < rounds; ++round) {
    while (random_.chance(0.35)) ASSERT_NO_FATAL_FAILURE(disturb());
    random_gradients(random_, shape_, round, recipe_.takes_sparse, plain_model_, wrapped_model_);
    log_ << "\n  step " << round;
    plain_->step();
    wrapped_->step();
    ASSERT_TRUE(same_parameters(plain_model_, wrapped_model_));
  }
  ASSERT_TRUE(same_snapshot(snapshot(*plain_), snapshot(*wrapped_)));
  ASSERT_TRUE(same_snapshot(saved_snapshot(*plain_), saved_snapshot(*wrapped_)));
}

void Case::wrap(std::unique_ptr<torch::optim::Optimizer> base) {
  std::string text;
  const auto options = random_offload_options(random_, text);
  log_ << "\n  wrapped: " << text;
  wrapped_.reset();
  wrapped_ =
      std::make_unique<CPUOffloadOptimizer>(std::move(base), shape_.names(wrapped_model_), options);
}

void Case::plain_from_wrapped() {
  plain_ = make_base(recipe_, shape_.group(plain_model_));
  load_saved(*plain_, saved(*wrapped_), device_);
  // The archive was read to one device; parameters may lie on several.
  for (const auto& param : plain_model_.tensors()) {
    const auto entry = plain_->state().find(param.unsafeGetTensorImpl());
    if (entry == plain_->state().end() || param.device() == device_) continue;
    for (auto& found : state::find_state_tensors(*entry->second)) {
      found.tensor.set_data(found.tensor.to(param.device()));
    }
  }
}

void Case::disturb() {
  switch (random_.integer(0, 12)) {
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
      return plain_from_wrapped();
    case 6:
      log_ << "\n  released and wrapped again";
      return wrap(wrapped_->release());
    case 7:
      log_ << "\n  zero_grad and a step with a closure";
      return step_with_closure();
    case 8:
      return change_weights();
    case 9:
      return edit_state();
    case 10:
    case 11:
      return step_that_fails();
    default:
      log_ << "\n  states compared";
      ASSERT_TRUE(same_snapshot(snapshot(*plain_), snapshot(*wrapped_)));
  }
}

void Case::change_learning_rate() {
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

void Case::add_group() {
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

void Case::step_with_closure() {
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

void Case::change_weights() {
  const auto& name = random_.pick(shape_.parameters).spec.name;
  log_ << "\n  weights of " << name << " halved";
  for (auto* model : {&plain_model_, &wrapped_model_}) (*model)[name].detach().mul_(0.5);
}

void Case::edit_state() {
  const auto& name = random_.pick(shape_.parameters).spec.name;
  const bool erase = random_.chance(0.3) && recipe_.grows;  // Adagrad makes none later
  log_ << "\n  state of " << name << (erase ? " erased" : " halved");
  for (auto* optimizer : {plain_.get(), wrapped()}) {
    auto& model = optimizer == plain_.get() ? plain_model_ : wrapped_model_;
    const auto entry = optimizer->state().find(model[name].unsafeGetTensorImpl());
    if (entry == optimizer->state().end()) continue;
    if (erase) {
      optimizer->state().erase(entry);
      continue;
    }
    const torch::NoGradGuard no_grad;
    for (auto& found : state::find_state_tensors(*entry->second)) {
      if (found.tensor.is_floating_point() && !found.tensor.is_sparse()) found.tensor.mul_(0.5);
    }
  }
}

void Case::step_that_fails() {
  const auto site = static_cast<FaultSite>(random_.integer(0, kFaultSites - 1));
  const auto nth = random_.integer(1, 12);
  random_gradients(random_, shape_, /*step=*/8, recipe_.takes_sparse, plain_model_, wrapped_model_);
  log_ << "\n  a step in which " << to_string(site) << " number " << nth << " fails";
  bool failed = false;
  {
    const ScopedFault fault(site, nth);
    try {
      wrapped_->step();
    } catch (const c10::Error& error) {
      failed = true;
      log_ << ": " << error.what_without_backtrace();
      ASSERT_TRUE(fault.hit()) << error.what_without_backtrace();
    }
  }
  if (!failed) {
    plain_->step();
  } else {
    const torch::NoGradGuard no_grad;
    for (auto& item : plain_model_.parameters) item.value().copy_(wrapped_model_[item.key()]);
    plain_from_wrapped();
  }
  ASSERT_TRUE(same_parameters(plain_model_, wrapped_model_));
  ASSERT_TRUE(same_snapshot(snapshot(*plain_), snapshot(*wrapped_)));
}

}  // namespace optim_offload::testing
