#pragma once

#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

namespace optim_offload::train {

/// A file with one JSON object a line. Each line is flushed, so that it can be followed and a crash
/// loses none that were written.
class MetricsFile {
 public:
  /// Writes nowhere.
  MetricsFile() = default;

  /// Starts the file afresh, or goes on at its end. Makes its directory. Throws where it cannot be
  /// written.
  MetricsFile(const std::filesystem::path& path, bool append);

  void write(const nlohmann::json& line);

 private:
  std::filesystem::path path_;
  std::ofstream out_;
};

}  // namespace optim_offload::train
