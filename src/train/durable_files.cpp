#include "train/durable_files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include <c10/util/Exception.h>
#include <c10/util/error.h>

namespace optim_offload::train {
namespace {

std::string reason() { return c10::utils::str_error(errno); }

}  // namespace

void sync_path(const std::filesystem::path& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  TORCH_CHECK(descriptor >= 0, "[optim_offload] cannot open ", path.string(), " to sync it (",
              reason(), "); check the directory's permissions");
  const int failed = fsync(descriptor);
  const int error = errno;
  close(descriptor);
  TORCH_CHECK(failed == 0, "[optim_offload] syncing ", path.string(), " failed (",
              c10::utils::str_error(error), "); check the disk");
}

void sync_tree(const std::filesystem::path& directory) {
  for (const auto& entry : std::filesystem::directory_iterator(directory)) sync_path(entry.path());
  sync_path(directory);
}

void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to) {
  TORCH_CHECK(std::rename(from.c_str(), to.c_str()) == 0, "[optim_offload] cannot rename ",
              from.string(), " to ", to.string(), " (", reason(), "); check the directory");
  sync_path(to.parent_path());
}

void write_file(const std::filesystem::path& path, std::string_view content) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  out.close();
  TORCH_CHECK(out.good(), "[optim_offload] cannot write ", path.string(), " (", reason(),
              "); check space and permissions");
}

void replace_file(const std::filesystem::path& path, std::string_view content) {
  auto temporary = path;
  temporary += ".tmp";
  write_file(temporary, content);
  sync_path(temporary);
  rename_durably(temporary, path);
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::string content{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  TORCH_CHECK(in.good() || in.eof(), "[optim_offload] cannot read ", path.string(), " (", reason(),
              "); check that it is there and may be read");
  return content;
}

FileLock::FileLock(const std::filesystem::path& path)
    : descriptor_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
  TORCH_CHECK(descriptor_ >= 0, "[optim_offload] cannot make the lock ", path.string(), " (",
              reason(), "); check the directory's permissions");
  if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    close(descriptor_);
    TORCH_CHECK(error != EWOULDBLOCK, "[optim_offload] another run has the lock ", path.string(),
                "; wait for it or use another directory");
    TORCH_CHECK(false, "[optim_offload] cannot lock ", path.string(), " (",
                c10::utils::str_error(error), "); use a file system with locks");
  }
}

FileLock::~FileLock() { close(descriptor_); }

}  // namespace optim_offload::train
