#pragma once

#include <filesystem>
#include <string>
#include <string_view>

/// Files that outlive a crash of the machine: what a rename makes visible was synced before. Errors
/// are `c10::Error` with the path and the system's reason.
namespace optim_offload::train {

/// Forces a file's bytes, or a directory's names, to the disk.
void sync_path(const std::filesystem::path& path);

/// sync_path() of all files in a directory, then of the directory.
void sync_tree(const std::filesystem::path& directory);

/// Renames within one file system, in one step for all observers, and syncs the directory. Replaces
/// a file of that name; throws where `to` is a directory that is not empty.
void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to);

/// Writes a file so that at any moment it has either its old content or the new.
void replace_file(const std::filesystem::path& path, std::string_view content);

/// Writes a file, without sync.
void write_file(const std::filesystem::path& path, std::string_view content);

/// Throws where the file cannot be read.
std::string read_file(const std::filesystem::path& path);

/// An exclusive lock on a file, made where absent; given back by the destructor, or by the system
/// when the process ends.
class FileLock {
 public:
  /// Throws where another process (or another lock of this one) has it.
  explicit FileLock(const std::filesystem::path& path);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int descriptor_ = -1;
};

}  // namespace optim_offload::train
