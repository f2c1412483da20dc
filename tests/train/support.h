#pragma once

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <c10/util/Exception.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <torch/types.h>
#include <nlohmann/json.hpp>

#include "train/config.h"
#include "train/data/random.h"

namespace optim_offload::train {

/// A directory that goes when the test ends.
class TempDir {
 public:
  TempDir() {
    auto form = (std::filesystem::temp_directory_path() / "offload-train-XXXXXX").string();
    TORCH_CHECK(mkdtemp(form.data()) != nullptr, "no temporary directory ", form);
    path_ = form;
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Made-up words with two-byte characters among them; the same every time.
inline std::string sample_text(int64_t bytes) {
  std::string text;
  for (uint64_t i = 0; static_cast<int64_t>(text.size()) < bytes; ++i) {
    for (int64_t k = 1 + below(random_at(1, i), 8); k > 0; --k) {
      text += static_cast<char>('a' + below(random_at(2, 100 * i + k), 26));
    }
    text += i % 37 == 0 ? "\u00e9 " : " ";
  }
  return text;
}

inline void write_text(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

/// configs/test.toml of the source tree. Compilers that ccache serves may name this file relative
/// to the build folder, where the program is too.
inline std::filesystem::path test_config() {
  const auto build = std::filesystem::path(OFFLOAD_TRAIN_PATH).parent_path();
  return (build / __FILE__).parent_path() / "../../configs/test.toml";
}

/// test.toml on made-up text that is written to `dir`, with `overrides` on top.
inline std::vector<std::string> test_overrides(const TempDir& dir,
                                               std::vector<std::string> overrides = {}) {
  const auto text = dir / "text.txt";
  if (!std::filesystem::exists(text)) write_text(text, sample_text(20000));
  overrides.insert(overrides.begin(), "trainer.data.files=[\"" + text.string() + "\"]");
  return overrides;
}

inline TrainConfig small_config(const TempDir& dir, std::vector<std::string> overrides = {}) {
  return load_train_config(test_config(), test_overrides(dir, std::move(overrides)));
}

/// The metrics lines whose "event" is `event`.
inline std::vector<nlohmann::json> read_metrics(const std::filesystem::path& path,
                                                const std::string& event) {
  std::vector<nlohmann::json> lines;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    auto json = nlohmann::json::parse(line);
    if (json["event"] == event) lines.push_back(std::move(json));
  }
  return lines;
}

inline bool same_bits(const torch::Tensor& a, const torch::Tensor& b) {
  if (a.sizes() != b.sizes() || a.dtype() != b.dtype()) return false;
  const auto x = a.detach().cpu().contiguous();
  const auto y = b.detach().cpu().contiguous();
  return std::memcmp(x.data_ptr(), y.data_ptr(), x.nbytes()) == 0;
}

inline void expect_same_parameters(const torch::nn::Module& a, const torch::nn::Module& b) {
  const auto left = a.named_parameters();
  const auto right = b.named_parameters();
  ASSERT_EQ(left.size(), right.size());
  for (const auto& item : left) {
    EXPECT_TRUE(same_bits(item.value(), right[item.key()])) << item.key();
  }
}

/// The message of the c10::Error that `call` throws, checked for the library's form; empty where
/// it throws none.
template <typename Call>
std::string error_of(Call&& call) {
  try {
    call();
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    EXPECT_EQ(text.rfind("[optim_offload] ", 0), 0u) << text;
    return text;
  }
  ADD_FAILURE() << "no error";
  return {};
}

inline ::testing::AssertionResult contains(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "\"" << part << "\" is not in: " << text;
}

}  // namespace optim_offload::train
