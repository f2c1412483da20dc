// A stream that breaks while an archive is written or read, and no room for what was read.
#include <algorithm>

#include <gtest/gtest.h>
#include <torch/serialize.h>

#include "fault.h"
#include "support/blend.h"
#include "support/twins.h"

namespace optim_offload::testing {
namespace {

/// Takes so many bytes, then refuses, as a full disk does. What LibTorch writes to a stream or file
/// that fails ends the process (an archive writer's destructor throws), whatever the optimizer; so
/// this one fails behind a function that says nothing of it.
class SmallDisk {
 public:
  explicit SmallDisk(size_t room) : room_(room) {}
  size_t write(const void* /*data*/, size_t bytes) {
    full_ = full_ || bytes > room_;
    room_ -= std::min(room_, bytes);
    return bytes;
  }
  bool full() const { return full_; }

 private:
  size_t room_;
  bool full_ = false;
};

/// Places in a text of this size: its ends, and many between.
std::vector<size_t> places(size_t size) {
  std::vector<size_t> list;
  for (size_t i = 0; i < 24; ++i) list.push_back(size * i / 24);
  for (const size_t near : {1, 22, 100, 1000}) {
    if (near < size) list.push_back(size - near);
  }
  return list;
}

OFFLOAD_TEST(CheckpointFaults, DiskThatFills) {
  for (const auto mode : kModes) {
    Twins twins(device, small_decoder(1), recipe("AdamW"), offload_options(mode, 2048));
    twins.steps(2);
    const auto whole = saved(*twins.wrapped);
    for (const size_t room : places(whole.size())) {
      SCOPED_TRACE(::testing::Message() << to_string(mode) << ", " << room << " bytes");
      SmallDisk disk(room);
      torch::serialize::OutputArchive archive;
      twins.wrapped->save(archive);
      archive.save_to([&](const void* data, size_t bytes) { return disk.write(data, bytes); });
      EXPECT_TRUE(disk.full());
      ASSERT_TRUE(twins.same());
    }
    EXPECT_EQ(saved(*twins.wrapped).size(), whole.size());
    twins.steps(2);
    ASSERT_TRUE(twins.same());
  }
}

/// Cannot be written while `broken`.
struct UnwritableState : BlendParamState {
  static inline bool broken = false;
  std::unique_ptr<OptimizerParamState> clone() const override {
    return std::make_unique<UnwritableState>(*this);
  }
  using BlendParamState::serialize;
  void serialize(torch::serialize::OutputArchive& archive) const override {
    TORCH_CHECK(!broken, "planned fault");
    BlendParamState::serialize(archive);
  }
};

class UnwritableBlend : public Blend {
 public:
  using Blend::Blend;

 protected:
  std::unique_ptr<BlendParamState> make_state(const torch::Tensor& parameter) override {
    auto state = std::make_unique<UnwritableState>();
    static_cast<BlendParamState&>(*state) = *Blend::make_state(parameter);
    return state;
  }
};

OFFLOAD_TEST(CheckpointFaults, StateThatCannotBeWritten) {
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(1), recipe_of<UnwritableBlend>("UnwritableBlend"),
                offload_options(mode, 2048));
    twins.steps(2);
    UnwritableState::broken = true;
    EXPECT_THROW(saved(*twins.wrapped), c10::Error);
    UnwritableState::broken = false;
    ASSERT_TRUE(twins.same());
    twins.steps(2);
    ASSERT_TRUE(twins.same());
  }
}

OFFLOAD_TEST(CheckpointFaults, TruncatedAnywhere) {
  for (const auto mode : kModes) {
    Twins twins(device, small_decoder(1), recipe("AdamW"), offload_options(mode, 2048));
    twins.steps(2);
    const auto archive = saved(*twins.wrapped);
    for (const size_t size : places(archive.size())) {
      SCOPED_TRACE(::testing::Message() << to_string(mode) << ", " << size << " bytes");
      EXPECT_THROW(load_saved(*twins.wrapped, archive.substr(0, size)), c10::Error);
      ASSERT_TRUE(twins.same());
    }
    twins.steps(2);
    ASSERT_TRUE(twins.same());
  }
}

OFFLOAD_TEST(CheckpointFaults, ReaderThatThrows) {
  for (const auto mode : kModes) {
    Twins twins(device, small_decoder(1), recipe("AdamW"), offload_options(mode, 2048));
    twins.steps(2);
    const auto bytes = saved(*twins.wrapped);
    int failed = 0;
    for (int nth = 1;; ++nth) {
      SCOPED_TRACE(::testing::Message() << to_string(mode) << ", read " << nth);
      int reads = 0;
      try {
        torch::serialize::InputArchive archive;
        archive.load_from(
            [&](uint64_t at, void* to, size_t count) {
              TORCH_CHECK(++reads != nth, "planned fault");
              return bytes.copy(static_cast<char*>(to), count, at);
            },
            [&] { return bytes.size(); });
        twins.wrapped->load(archive);
      } catch (const std::exception&) {
        ++failed;
      }
      ASSERT_TRUE(twins.same());
      if (reads < nth) break;
    }
    EXPECT_GT(failed, 0);
    twins.steps(2);
    ASSERT_TRUE(twins.same());
  }
}

// Host memory cannot be had for state that was read: options and state are the archive's, and the
// next call tries again.
TEST(CheckpointFaults, NoHomeForWhatWasLoaded_Simulated) {
  const TestDevice device(DeviceKind::Simulated);
  for (const auto mode : kModes) {
    for (const auto site : {FaultSite::HostMemory, FaultSite::PageLock}) {
      int failed = 0;
      for (int64_t nth = 1;; ++nth) {
        SCOPED_TRACE(::testing::Message()
                     << to_string(mode) << ", " << to_string(site) << " number " << nth);
        const auto options = offload_options(mode, 2048).pin_memory(PinMemory::Required);
        Twins twins(device, small_decoder(1), recipe("AdamW"), options);
        twins.steps(2);
        const auto archive = saved(*twins.plain);
        twins.rewrap_empty(options);
        bool hit = false;
        {
          const ScopedFault fault(site, nth);
          try {
            load_saved(*twins.wrapped, archive);
          } catch (const c10::Error& error) {
            ++failed;
            const std::string what = error.what_without_backtrace();
            const bool names = what.find(site == FaultSite::HostMemory
                                             ? "no host memory for optimizer state"
                                             : "could not be page-locked") != std::string::npos;
            EXPECT_TRUE(names) << what;
            EXPECT_EQ(what.find("GPU"), std::string::npos) << what;
          }
          hit = fault.hit();
        }
        ASSERT_TRUE(twins.same());
        twins.steps(2);
        ASSERT_TRUE(twins.same());
        EXPECT_GE(twins.wrapped->stats().state_bytes, state_bytes(*twins.plain));
        if (!hit) break;
      }
      EXPECT_GT(failed, 0);
    }
  }
}

}  // namespace
}  // namespace optim_offload::testing
