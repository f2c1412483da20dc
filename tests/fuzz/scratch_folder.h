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
    // The second where the first is not there or not everyone's to write to.
    for (const auto& place :
         {std::filesystem::path("/dev/shm"), std::filesystem::temp_directory_path()}) {
      auto form = (place / "offload-fuzz-XXXXXX").string();
      if (mkdtemp(form.data()) == nullptr) continue;
      path_ = form;
      return;
    }
    TORCH_CHECK(false, "no temporary directory can be made in /dev/shm or ",
                std::filesystem::temp_directory_path().string());
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
