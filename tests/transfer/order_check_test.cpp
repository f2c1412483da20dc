// The order check itself: what it must find, and what it must let pass.
#include <array>

#include <gtest/gtest.h>

#include "transfer/order_check.h"

namespace optim_offload::transfer {
namespace {

using enum OrderCheck::Access;
using enum OrderCheck::Side;

class OrderCheckTest : public ::testing::Test {
 protected:
  bool read(OrderCheck::Lane lane, size_t begin = 0, size_t bytes = 64) {
    return order.access(lane, &memory[begin], bytes, Read, Device, "a reader");
  }
  bool write(OrderCheck::Lane lane, size_t begin = 0, size_t bytes = 64) {
    return order.access(lane, &memory[begin], bytes, Write, Device, "a writer");
  }
  void wait(OrderCheck::Lane lane, OrderCheck::Lane for_lane) {
    order.wait(lane, order.now(for_lane));
  }

  OrderCheck order;
  OrderCheck::Lane up = order.add_lane("up");
  OrderCheck::Lane down = order.add_lane("down");
  std::array<std::byte, 256> memory{};
};

TEST_F(OrderCheckTest, OneLaneKeepsItsOwnOrder) {
  EXPECT_TRUE(write(up));
  EXPECT_TRUE(read(up));
  EXPECT_TRUE(write(up));
  EXPECT_TRUE(order.errors().empty());
}

TEST_F(OrderCheckTest, EachConflictOfTwoLanes) {
  EXPECT_TRUE(write(up, 0));
  EXPECT_FALSE(read(down, 0)) << "read after write";
  EXPECT_TRUE(write(up, 64));
  EXPECT_FALSE(write(down, 64)) << "write after write";
  EXPECT_TRUE(read(up, 128));
  EXPECT_FALSE(write(down, 128)) << "write after read";
  EXPECT_TRUE(read(up, 192));
  EXPECT_TRUE(read(down, 192)) << "two reads do not conflict";
  EXPECT_EQ(order.take_errors().size(), 3u);
  EXPECT_TRUE(order.errors().empty());
}

TEST_F(OrderCheckTest, TheMessageNamesBothSides) {
  write(up);
  read(down);
  read(down);
  ASSERT_EQ(order.errors().size(), 1u) << "each kind once";
  EXPECT_EQ(order.errors()[0],
            "a reader on down reads memory that a writer on up may still be writing: no wait puts "
            "one after the other");
}

TEST_F(OrderCheckTest, AWaitOrders) {
  EXPECT_TRUE(write(up));
  wait(down, up);
  EXPECT_TRUE(write(down));
  EXPECT_FALSE(read(up)) << "the other way it does not";
}

// What is queued after the event was recorded is not waited for.
TEST_F(OrderCheckTest, AnEventIsAPoint) {
  EXPECT_TRUE(write(up, 0));
  const auto event = order.now(up);
  EXPECT_TRUE(write(up, 64));
  order.wait(down, event);
  EXPECT_TRUE(read(down, 0));
  EXPECT_FALSE(read(down, 64));
}

TEST_F(OrderCheckTest, WaitsAddUp) {
  EXPECT_TRUE(write(up));
  wait(OrderCheck::kCompute, up);
  wait(down, OrderCheck::kCompute);
  EXPECT_TRUE(write(down)) << "through a third lane that did not touch the memory";
}

// A later access of one lane does not hide an earlier one of another.
TEST_F(OrderCheckTest, AllReadersCount) {
  EXPECT_TRUE(read(up));
  EXPECT_TRUE(read(OrderCheck::kCompute));
  wait(down, OrderCheck::kCompute);
  EXPECT_FALSE(write(down));
}

TEST_F(OrderCheckTest, TheHostOrdersWhatItQueuesAfterItsWaits) {
  EXPECT_TRUE(write(up));
  EXPECT_EQ(order.bytes_in_use(Device), 64u);
  EXPECT_EQ(order.bytes_in_use(Host), 0u);
  wait(OrderCheck::kHost, up);
  EXPECT_EQ(order.bytes_in_use(Device), 0u);
  EXPECT_TRUE(write(down));
}

// One allocator gives the memory of all simulated devices.
TEST(OrderCheckOfDevices, MemoryOfTwoDevicesIsNeverTheSame) {
  OrderCheck order(/*devices=*/2);
  alignas(64) static std::byte memory[64];
  const auto write = [&](OrderCheck::Lane lane, OrderCheck::Side side) {
    return order.access(lane, memory, sizeof(memory), Write, side, "a test");
  };
  const auto up = order.add_lane("up", 1);
  EXPECT_TRUE(write(OrderCheck::compute(0), Device));
  EXPECT_TRUE(write(OrderCheck::compute(1), Device));
  EXPECT_FALSE(write(up, Device)) << "of the same device";
  EXPECT_FALSE(write(OrderCheck::compute(0), Host)) << "all devices reach the host's memory";
}

TEST_F(OrderCheckTest, PartsOfMemoryAreApart) {
  EXPECT_TRUE(write(up, 64, 64));
  EXPECT_TRUE(write(down, 0, 64));
  EXPECT_TRUE(write(down, 128, 64));
  EXPECT_FALSE(write(OrderCheck::kCompute, 127, 1)) << "the last byte";
  EXPECT_TRUE(order.take_errors().size() == 1);
  wait(OrderCheck::kCompute, up);
  EXPECT_TRUE(write(OrderCheck::kCompute, 64, 64));
  EXPECT_FALSE(write(OrderCheck::kCompute, 0, 256)) << "down is not waited for";
  wait(OrderCheck::kCompute, down);
  EXPECT_TRUE(write(OrderCheck::kCompute, 0, 256));
  EXPECT_EQ(order.bytes_in_use(Device), 256u);
}

}  // namespace
}  // namespace optim_offload::transfer
