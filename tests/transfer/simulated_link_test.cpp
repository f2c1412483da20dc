// What the simulated device does to work that no wait puts in order.
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "transfer/link.h"
#include "transfer/simulated_device.h"

namespace optim_offload::transfer {
namespace {

using Bytes = std::vector<unsigned char>;

constexpr size_t kSize = 96;

bool all(const Bytes& bytes, unsigned char value) {
  return std::all_of(bytes.begin(), bytes.end(), [value](auto byte) { return byte == value; });
}

/// Two host buffers and a device buffer between them.
class SimulatedLinkTest : public ::testing::Test {
 protected:
  void start(std::optional<WaitPoint> without = {}) {
    device = std::make_unique<ScopedSimulatedDevice>(SimulatedDeviceOptions{
        .delay = std::chrono::microseconds(100), .poison = true, .without = without});
    link = make_link(c10::kCPU);
    arrived = link->make_event();
    stepped = link->make_event();
  }
  void TearDown() override {
    for (const Lane lane : {Lane::H2D, Lane::D2H}) {
      link->synchronize(lane, WaitPoint::Synchronized);
    }
  }

  void up() {
    const Copy copy{slot.data(), from.data(), kSize};
    link->copy(Lane::H2D, Direction::ToDevice, {&copy, 1});
    link->record(Lane::H2D, *arrived);
  }
  void step() {
    link->uses(Lane::Compute, slot.data(), kSize, "a step");
    for (auto& byte : slot) ++byte;
    link->record(Lane::Compute, *stepped);
  }
  void down() {
    const Copy copy{to.data(), slot.data(), kSize};
    link->copy(Lane::D2H, Direction::ToHost, {&copy, 1});
  }
  void finish() { link->synchronize(Lane::D2H, WaitPoint::CopiesDone); }
  std::vector<std::string> errors() { return simulated_device_order()->take_errors(); }

  std::unique_ptr<ScopedSimulatedDevice> device;
  std::unique_ptr<Link> link;
  std::unique_ptr<Event> arrived;
  std::unique_ptr<Event> stepped;
  Bytes from = Bytes(kSize, 7);
  Bytes slot = Bytes(kSize, 1);
  Bytes to = Bytes(kSize, 2);
};

TEST_F(SimulatedLinkTest, WorkInOrderArrives) {
  start();
  up();
  link->wait(Lane::Compute, *arrived, WaitPoint::StateArrived);
  step();
  link->wait(Lane::D2H, *stepped, WaitPoint::PieceStepped);
  down();
  EXPECT_GT(simulated_device_order()->bytes_in_use(OrderCheck::Side::Host), 0u);
  finish();
  EXPECT_EQ(simulated_device_order()->bytes_in_use(OrderCheck::Side::Host), 0u);
  EXPECT_TRUE(all(to, 8));
  EXPECT_TRUE(errors().empty());
}

TEST_F(SimulatedLinkTest, AStepBeforeItsStateArrivedSeesNaN) {
  start(WaitPoint::StateArrived);
  up();
  link->wait(Lane::Compute, *arrived, WaitPoint::StateArrived);
  link->uses(Lane::Compute, slot.data(), kSize, "a step");
  EXPECT_TRUE(all(slot, 0xff));
  const auto found = errors();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(
      found[0].find("a step on the compute lane writes memory that a copy up on the H2D lane"),
      std::string::npos)
      << found[0];
}

// On this device the step is over when the copy is queued; on a real one it would not be.
TEST_F(SimulatedLinkTest, ACopyDownBeforeTheStepBringsNaN) {
  start(WaitPoint::PieceStepped);
  up();
  link->wait(Lane::Compute, *arrived, WaitPoint::StateArrived);
  step();
  link->wait(Lane::D2H, *stepped, WaitPoint::PieceStepped);
  down();
  finish();
  EXPECT_TRUE(all(to, 0xff));
  // Neither after the copy up nor after the step.
  const auto found = errors();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_NE(found[0].find("on the D2H lane reads memory that a copy up on the H2D lane"),
            std::string::npos)
      << found[0];
  EXPECT_NE(found[1].find("on the D2H lane reads memory that a step on the compute lane"),
            std::string::npos)
      << found[1];
}

TEST_F(SimulatedLinkTest, ACopyUpIntoMemoryInUseBringsNaN) {
  start();
  step();
  up();
  link->synchronize(Lane::H2D, WaitPoint::Synchronized);
  EXPECT_TRUE(all(slot, 0xff));
  EXPECT_EQ(errors().size(), 1u);
}

TEST_F(SimulatedLinkTest, ALaneWithoutItsHostWaitIsInUse) {
  start(WaitPoint::CopiesDone);
  down();
  finish();
  EXPECT_EQ(simulated_device_order()->bytes_in_use(OrderCheck::Side::Host), kSize);
  link->synchronize(Lane::D2H, WaitPoint::Synchronized);
  EXPECT_EQ(simulated_device_order()->bytes_in_use(OrderCheck::Side::Host), 0u);
  EXPECT_TRUE(all(to, 1));
}

}  // namespace
}  // namespace optim_offload::transfer
