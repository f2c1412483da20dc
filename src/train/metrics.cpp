#include "train/metrics.h"

#include <c10/util/Exception.h>

namespace optim_offload::train {

MetricsFile::MetricsFile(const std::filesystem::path& path, bool append) : path_(path) {
  std::error_code ignored;  // a real fault shows when the file is opened
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), ignored);
  out_.open(path, append ? std::ios::app : std::ios::trunc);
  TORCH_CHECK(out_.good(), "[optim_offload] cannot write metrics to ", path.string(),
              "; set trainer.metrics to a file that can be written");
}

void MetricsFile::write(const nlohmann::json& line) {
  if (!out_.is_open()) return;
  out_ << line.dump() << std::endl;
  TORCH_CHECK(out_.good(), "[optim_offload] writing metrics to ", path_.string(),
              " failed; check the disk's space");
}

}  // namespace optim_offload::train
