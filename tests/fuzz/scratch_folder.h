#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

#include <c10/util/Exception.h>

namespace optim_offload::fuzz {

/// A folder that goes at the end; in memory where there is such a place, as inputs are many.
class ScratchFolder {
 public:
  ScratchFolder() {
    const std::filesystem::path memory = "/dev/shm";
    std::error_code error;
    const bool usable = std::filesystem::is_directory(memory, error);
    auto form = ((usable ? memory : std::filesystem::temp_directory_path()) / "offload-fuzz-XXXXXX")
                    .string();
    TORCH_CHECK(mkdtemp(form.data()) != nullptr, "no temporary directory ", form);
    path_ = form;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace optim_offload::fuzz
