#include "train/checkpoint_store.h"

#include <sys/wait.h>

#include <csignal>
#include <set>

#include "train/support.h"

namespace optim_offload::train {
namespace {

namespace fs = std::filesystem;
using Stage = CheckpointStore::Stage;

auto writer(const std::string& content) {
  return [content](const fs::path& directory) {
    write_text(directory / "a.bin", content);
    write_text(directory / "b.bin", content + content);
  };
}

std::set<std::string> entries(const fs::path& directory) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) {
    names.insert(entry.path().filename().string());
  }
  names.erase(".lock");
  return names;
}

TEST(CheckpointStore, SavesAndKeepsTheNewest) {
  const TempDir dir;
  CheckpointStore store(dir / "ckpt", 2);
  for (const int64_t step : {5, 10, 15}) store.save(step, writer("step" + std::to_string(step)));
  EXPECT_EQ(entries(dir / "ckpt"),
            (std::set<std::string>{"latest", "step-00000010", "step-00000015"}));
  EXPECT_EQ(resolve_checkpoint(dir / "ckpt"), dir / "ckpt" / "step-00000015");
  EXPECT_EQ(read_file(dir / "ckpt" / "step-00000015" / "b.bin"), "step15step15");
}

TEST(CheckpointStore, AStepSavedAgainGetsAnotherName) {
  const TempDir dir;
  CheckpointStore store(dir.path(), 3);
  store.save(5, writer("first"));
  const auto again = store.save(5, writer("second"));
  EXPECT_EQ(again.filename(), "step-00000005.2");
  EXPECT_EQ(resolve_checkpoint(dir.path()), again);
  EXPECT_EQ(read_file(dir.path() / "step-00000005" / "a.bin"), "first");
}

TEST(CheckpointStore, AThrowingWriterChangesNothing) {
  const TempDir dir;
  CheckpointStore store(dir.path(), 1);
  const auto good = store.save(1, writer("good"));
  EXPECT_THROW(store.save(2,
                          [](const fs::path& directory) {
                            write_text(directory / "a.bin", "half");
                            throw std::runtime_error("disk full");
                          }),
               std::runtime_error);
  EXPECT_EQ(resolve_checkpoint(dir.path()), good);
  EXPECT_EQ(store.save(2, writer("next")).filename(), "step-00000002");
}

void die_while_saving(const fs::path& directory, Stage stage) {
  CheckpointStore store(directory, 1);
  store.save(1, writer("old"));
  store.on_stage = [stage](Stage reached) {
    if (reached == stage) kill(getpid(), SIGKILL);
  };
  store.save(2, writer("new"));
}

/// Lets another process save step 2 after step 1 and die at `stage`.
void save_and_die(const fs::path& directory, Stage stage) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    // The child is a copy of the test program and must never go on with the tests.
    try {
      die_while_saving(directory, stage);
    } catch (...) {
    }
    _exit(3);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
}

TEST(CheckpointStore, ACrashAtAnyMomentLeavesAWholeOne) {
  for (const auto stage : {Stage::Written, Stage::Synced, Stage::Renamed, Stage::LatestSet}) {
    const TempDir dir;
    save_and_die(dir.path(), stage);
    const auto found = resolve_checkpoint(dir.path());
    EXPECT_EQ(checkpoint_fault(found), "");
    const bool old = stage == Stage::Written || stage == Stage::Synced || stage == Stage::Renamed;
    EXPECT_EQ(read_file(found / "a.bin"), old ? "old" : "new") << static_cast<int>(stage);

    // The next run works in what the crash left, and clears it up.
    CheckpointStore store(dir.path(), 1);
    const auto next = store.save(3, writer("next"));
    EXPECT_EQ(resolve_checkpoint(dir.path()), next);
    EXPECT_EQ(entries(dir.path()), (std::set<std::string>{"latest", "step-00000003"}));
  }
}

TEST(CheckpointStore, OneWriterAtATime) {
  const TempDir dir;
  {
    const CheckpointStore store(dir.path(), 1);
    EXPECT_TRUE(contains(error_of([&] { CheckpointStore(dir.path(), 1); }), "another run"));
  }
  const CheckpointStore store(dir.path(), 1);
  EXPECT_TRUE(store.names().empty());
}

TEST(ResolveCheckpoint, TakesACheckpointAStoreOrItsLatest) {
  const TempDir dir;
  CheckpointStore store(dir.path(), 3);
  const auto first = store.save(1, writer("one"));
  const auto second = store.save(2, writer("two"));
  EXPECT_EQ(resolve_checkpoint(first), first);
  EXPECT_EQ(resolve_checkpoint(dir.path()), second);
  EXPECT_EQ(resolve_checkpoint(dir / "latest"), second);
  EXPECT_TRUE(contains(error_of([&] { resolve_checkpoint(dir / "none"); }), "no checkpoint at"));
}

TEST(ResolveCheckpoint, NeverFollowsALatestThatIsDamaged) {
  const TempDir dir;
  CheckpointStore store(dir.path(), 3);
  const auto first = store.save(1, writer("one"));
  const auto second = store.save(2, writer("two"));
  for (const std::string bad : {"", "step-00000009", "../step-00000001", "/etc", "step-1\n"}) {
    write_text(dir / "latest", bad);
    EXPECT_EQ(resolve_checkpoint(dir.path()), second) << bad;
  }
  fs::remove(dir / "latest");
  EXPECT_EQ(resolve_checkpoint(dir.path()), second);
  fs::resize_file(second / "b.bin", 2);
  EXPECT_EQ(resolve_checkpoint(dir.path()), first);
  EXPECT_TRUE(contains(error_of([&] { resolve_checkpoint(second); }),
                       "its file b.bin has not its full size"));
  write_text(first / "manifest.json", "{\"version\": 2, \"files\"");
  EXPECT_TRUE(contains(error_of([&] { resolve_checkpoint(dir.path()); }), "no whole checkpoint"));
}

TEST(CheckpointFault, NoticesEveryFlippedBit) {
  const TempDir dir;
  CheckpointStore store(dir.path(), 3);
  const auto checkpoint = store.save(1, writer("123456789 123456789 123456789 123456789"));
  const auto content = read_file(checkpoint / "a.bin");
  EXPECT_EQ(checkpoint_fault(checkpoint, Depth::Bytes), "");
  for (size_t bit = 0; bit < 8 * content.size(); ++bit) {
    auto flipped = content;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    write_text(checkpoint / "a.bin", flipped);
    ASSERT_EQ(checkpoint_fault(checkpoint, Depth::Bytes),
              "its file a.bin has other bytes than were written (xxh64 is not e6cd8741d9344fea)")
        << bit;
  }
  EXPECT_TRUE(contains(error_of([&] { check_whole(checkpoint, Depth::Bytes); }),
                       "is not whole: its file a.bin has other bytes than were written"));
  // Reading all bytes of all checkpoints is too much for finding the newest.
  EXPECT_EQ(checkpoint_fault(checkpoint), "");
  EXPECT_NO_THROW(check_whole(checkpoint, Depth::Sizes));
}

TEST(CheckpointFault, NoticesManifestsOfAnotherForm) {
  const TempDir dir;
  CheckpointStore store(dir.path(), 3);
  const auto checkpoint = store.save(1, writer("one"));
  const auto fault_of = [&](const std::string& version, const std::string& file) {
    write_text(checkpoint / "manifest.json",
               "{\"version\": " + version + ", \"files\": {\"a.bin\": " + file + "}}");
    return checkpoint_fault(checkpoint, Depth::Bytes);
  };
  // XXH64 of "one", as xxhsum -H64 says.
  const std::string good = "{\"bytes\": 3, \"xxh64\": \"363b02a42408a1f6\"}";
  EXPECT_EQ(fault_of("2", good), "");
  for (const std::string file :
       {"3", "\"3\"", "[3]", "null", "{}", "{\"bytes\": 3}", "{\"xxh64\": \"363b02a42408a1f6\"}",
        "{\"bytes\": -3, \"xxh64\": \"363b02a42408a1f6\"}", "{\"bytes\": 3, \"xxh64\": 5}"}) {
    EXPECT_EQ(fault_of("2", file), "its manifest.json is damaged") << file;
  }
  for (const std::string version : {"1", "3", "\"2\"", "{}"}) {
    EXPECT_EQ(fault_of(version, good),
              "its manifest.json is of a version that this program does not know");
  }
}

// Whoever copies or prints so deep a tree runs out of stack.
TEST(CheckpointFault, TakesNoBottomlessJson) {
  const TempDir dir;
  CheckpointStore store(dir.path(), 3);
  const auto checkpoint = store.save(1, writer("one"));
  const std::string deep = std::string(300000, '[') + std::string(300000, ']');
  write_text(checkpoint / "manifest.json", "{\"version\": 2, \"files\": {\"a\": " + deep + "}}");
  EXPECT_EQ(checkpoint_fault(checkpoint), "its manifest.json is damaged");
  write_text(checkpoint / "manifest.json",
             "{\"version\": 2, \"files\": {}}" + std::string(2000000, ' '));
  EXPECT_EQ(checkpoint_fault(checkpoint), "its manifest.json is damaged");
}

}  // namespace
}  // namespace optim_offload::train
