#include "faults/before_or_after.h"

#include <cstring>
#include <regex>

namespace optim_offload::testing {
namespace {

/// For each element, in memory's order: whether it can be from before the step, and from after it.
struct Ages {
  std::vector<bool> before;
  std::vector<bool> after;

  bool all(const std::vector<bool>& which) const {
    return std::find(which.begin(), which.end(), false) == which.end();
  }
};

Ages ages(const torch::Tensor& before, const torch::Tensor& after, const torch::Tensor& now) {
  const auto flat = [](const torch::Tensor& tensor) {
    return tensor.detach().cpu().contiguous().view(-1);  // specs here are contiguous
  };
  const auto equal = [](const torch::Tensor& a, const torch::Tensor& b) {
    const auto size = a.element_size();
    const auto* x = static_cast<const char*>(a.const_data_ptr());
    const auto* y = static_cast<const char*>(b.const_data_ptr());
    std::vector<bool> list;
    for (int64_t i = 0; i < a.numel(); ++i) {
      list.push_back(std::memcmp(x + i * size, y + i * size, size) == 0);
    }
    return list;
  };
  return {equal(flat(before), flat(now)), equal(flat(after), flat(now))};
}

/// A number of first elements after which none is from after the step, and before which all are;
/// -1 where there is none.
int64_t boundary(const Ages& a) {
  const auto size = static_cast<int64_t>(a.before.size());
  int64_t at = 0;
  while (at < size && a.after[at]) ++at;
  // An element that the step does not change can be on either side.
  while (at > 0 && a.before[at - 1]) --at;
  for (int64_t i = at; i < size; ++i) {
    if (!a.before[i]) return -1;
  }
  return at;
}

void expect_state(const Fields& before, const Fields& after, const Fields& now, int64_t stepped,
                  int64_t numel, const std::string& name) {
  if (stepped == 0) {
    ASSERT_TRUE(same_fields(before, now)) << name << ", not stepped";
  } else if (stepped == numel) {
    ASSERT_TRUE(same_fields(after, now)) << name << ", stepped";
  } else if (before.empty()) {
    // The state of the whole was not all made.
    ASSERT_TRUE(now.empty()) << name;
  } else {
    for (const auto& [key, value] : now) {
      if (!value.isTensor() || value.toTensor().numel() != numel) {
        const Fields was{{key, before.at(key)}};
        const Fields is{{key, value}};
        ASSERT_TRUE(same_fields(was, is)) << name << "." << key << ", in part stepped";
        continue;
      }
      const auto a = ages(before.at(key).toTensor(), after.at(key).toTensor(), value.toTensor());
      for (int64_t i = 0; i < numel; ++i) {
        ASSERT_TRUE(i < stepped ? a.after[i] : a.before[i])
            << name << "." << key << ", element " << i << " where " << stepped << " are stepped";
      }
    }
  }
}

}  // namespace

StepStart::StepStart(const Twins& twins)
    : snapshot_(snapshot(*twins.wrapped)), members_(all_parameters(*twins.wrapped)) {
  for (const auto& item : twins.wrapped_model.parameters) {
    model_.parameters.insert(item.key(), item.value().detach().clone());
  }
  for (const auto& group : twins.wrapped->param_groups()) options_.push_back(&group.options());
}

void StepStart::expect_groups(const Twins& twins) const {
  const auto now = all_parameters(*twins.wrapped);
  ASSERT_EQ(now.size(), members_.size());
  for (size_t i = 0; i < now.size(); ++i) ASSERT_TRUE(now[i].is_same(members_[i]));
  for (size_t g = 0; g < options_.size(); ++g) {
    ASSERT_EQ(&twins.wrapped->param_groups()[g].options(), options_[g]);
  }
  EXPECT_TRUE(twins.wrapped->base_optimizer().param_groups().empty());
  EXPECT_TRUE(twins.wrapped->base_optimizer().state().empty());
  const auto is = snapshot(*twins.wrapped);
  for (size_t g = 0; g < options_.size(); ++g) {
    ASSERT_TRUE(same_fields(snapshot_.options[g], is.options[g]));
  }
}

void StepStart::expect_kept(const Twins& twins, const std::string& error, bool tiles) const {
  ASSERT_NO_FATAL_FAILURE(expect_groups(twins));
  const auto is = snapshot(*twins.wrapped);
  const auto after = snapshot(*twins.plain);
  ASSERT_EQ(is.state.size(), 1u) << "made for one group in the order of the model";
  const bool nothing = error.find("nothing has changed") != std::string::npos;
  const bool everything = error.find("all parameters have been stepped") != std::string::npos;
  std::smatch piece;
  const bool before_piece = std::regex_search(
      error, piece,
      std::regex(
          R"(failed before piece \d+ of \d+ \((\S+?)( tile (\d+) of \d+)?( and \d+ more)?\))"));
  const auto& items = twins.wrapped_model.parameters;
  for (size_t p = 0; p < items.size(); ++p) {
    const auto& name = items[p].key();
    const auto& value = items[p].value();
    const int64_t numel = value.numel();
    const int64_t stepped =
        boundary(ages(model_.parameters[name], twins.plain_model.parameters[name], value));
    ASSERT_GE(stepped, 0) << name << " is neither before nor after the step\n" << error;
    ASSERT_TRUE(tiles || stepped == 0 || stepped == numel) << name << " in part\n" << error;
    ASSERT_TRUE(!nothing || stepped == 0) << name << " has moved on\n" << error;
    ASSERT_TRUE(!everything || stepped == numel) << name << " has not moved on\n" << error;
    if (before_piece && piece[1] == name) {
      if (piece[3].matched && piece[3] != "1") {
        ASSERT_TRUE(stepped > 0 && stepped < numel) << name << "\n" << error;
      } else {
        ASSERT_EQ(stepped, 0) << name << "\n" << error;
      }
    }
    ASSERT_NO_FATAL_FAILURE(expect_state(snapshot_.state[0][p], after.state[0][p], is.state[0][p],
                                         stepped, numel, name))
        << error;
  }
}

}  // namespace optim_offload::testing
