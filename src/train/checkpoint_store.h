#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "train/durable_files.h"

namespace optim_offload::train {

/// A directory of checkpoints, each a directory `step-00000123` with a file `manifest.json` that
/// lists the others with sizes and checksums, and a file `latest` with the newest one's name.
///
/// A crash at any moment leaves every finished checkpoint whole: files are written under a
/// temporary name, synced, and only then renamed; `latest` is replaced in one step; the oldest goes
/// last, by a rename too. Checkpoints without a whole manifest do not count.
///
/// One process writes to a directory at a time (a lock sees to it).
class CheckpointStore {
 public:
  /// Moments within save(), in their order.
  enum class Stage { Written, Synced, Renamed, LatestSet, Pruned };

  /// Makes the directory and locks it. With `keep` >= 1, only that many newest checkpoints stay.
  /// Temporary directories that a crash left behind are removed.
  CheckpointStore(std::filesystem::path directory, int64_t keep);

  /// Lets `write` fill an empty directory, makes it the checkpoint of `step`, and removes the
  /// oldest ones above `keep`. Where there is one of that step (a run resumed before it), the name
  /// gets a suffix `.2` and so on. Returns the checkpoint's directory. On a throw no finished
  /// checkpoint has changed.
  std::filesystem::path save(int64_t step,
                             const std::function<void(const std::filesystem::path&)>& write);

  /// Names of the whole checkpoints, in the order of their steps, then as this object saved them.
  const std::vector<std::string>& names() const { return names_; }

  /// Called at each stage of save(); for tests that end the process there.
  std::function<void(Stage)> on_stage;

 private:
  void prune();
  void reached(Stage stage) const;

  std::filesystem::path directory_;
  int64_t keep_;
  FileLock lock_;
  std::vector<std::string> names_;
};

/// The checkpoint directory that `path` means: itself where it is a whole checkpoint; of a store,
/// the one named by `latest` or, where that is missing or not whole, the newest whole one; of a
/// file `latest`, the same of its store. Throws where there is none.
std::filesystem::path resolve_checkpoint(const std::filesystem::path& path);

/// Writes `checkpoint`'s manifest.json, which makes a directory of files a whole checkpoint.
void write_manifest(const std::filesystem::path& checkpoint);

/// How closely files are compared with the manifest. Bytes are all read, at the disk's pace
/// where they are not in the page cache.
enum class Depth { Sizes, Bytes };

/// Empty where `checkpoint` has a manifest and all of its files as it says; else what is wrong.
std::string checkpoint_fault(const std::filesystem::path& checkpoint, Depth depth = Depth::Sizes);

/// Throws what checkpoint_fault() says. LibTorch's reader knows checksums in its archives but does
/// not compare them: without Depth::Bytes, a tensor in which bits have flipped is read as it is.
void check_whole(const std::filesystem::path& checkpoint, Depth depth);

}  // namespace optim_offload::train
