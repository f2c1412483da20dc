#include "train/checkpoint_store.h"

#include <algorithm>
#include <regex>
#include <tuple>
#include <utility>

#include <c10/util/Exception.h>
#include <nlohmann/json.hpp>

#include "train/checksum.h"
#include "train/json_file.h"

namespace optim_offload::train {
namespace fs = std::filesystem;
namespace {

constexpr const char* kManifest = "manifest.json";
constexpr int kVersion = 2;  // of the manifest's form
constexpr const char* kLatest = "latest";
constexpr const char* kTemporary = ".tmp-";

/// Step and suffix number of a checkpoint's name; {-1, 0} for other names.
std::pair<int64_t, int64_t> parse_name(const std::string& name) {
  static const std::regex form(R"(step-(\d{8,12})(?:\.(\d{1,6}))?)");
  std::smatch match;
  if (!std::regex_match(name, match, form)) return {-1, 0};
  return {std::stoll(match[1]), match[2].matched ? std::stoll(match[2]) : 1};
}

std::string make_name(int64_t step, int64_t number) {
  auto digits = std::to_string(step);
  digits.insert(0, digits.size() < 8 ? 8 - digits.size() : 0, '0');
  return "step-" + digits + (number > 1 ? "." + std::to_string(number) : "");
}

std::vector<std::string> whole_checkpoints(const fs::path& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) {
    auto name = entry.path().filename().string();
    if (parse_name(name).first >= 0 && checkpoint_fault(entry.path()).empty()) {
      names.push_back(std::move(name));
    }
  }
  std::sort(names.begin(), names.end(),
            [](const auto& a, const auto& b) { return parse_name(a) < parse_name(b); });
  return names;
}

void remove_temporaries(const fs::path& directory) {
  std::vector<fs::path> leftovers;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.path().filename().string().rfind(kTemporary, 0) == 0) {
      leftovers.push_back(entry.path());
    }
  }
  for (const auto& path : leftovers) fs::remove_all(path);
}

fs::path prepared(fs::path directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  TORCH_CHECK(!error, "[optim_offload] cannot make the checkpoint directory ", directory.string(),
              " (", error.message(), "); set trainer.ckpt.dir to a place that can be written");
  return directory;
}

}  // namespace

void write_manifest(const fs::path& checkpoint) {
  nlohmann::json files = nlohmann::json::object();
  for (const auto& entry : fs::directory_iterator(checkpoint)) {
    auto name = entry.path().filename().string();
    if (name == kManifest) continue;
    files[std::move(name)] = {{"bytes", entry.file_size()}, {"xxh64", checksum_of(entry.path())}};
  }
  const nlohmann::json manifest = {{"version", kVersion}, {"files", files}};
  write_file(checkpoint / kManifest, manifest.dump(2) + "\n");
}

CheckpointStore::CheckpointStore(fs::path directory, int64_t keep)
    : directory_(prepared(std::move(directory))), keep_(keep), lock_(directory_ / ".lock") {
  TORCH_CHECK(keep >= 1, "[optim_offload] a store that keeps ", keep,
              " checkpoints has none to resume from; set trainer.ckpt.keep to 1 or more");
  remove_temporaries(directory_);
  names_ = whole_checkpoints(directory_);
}

fs::path CheckpointStore::save(int64_t step, const std::function<void(const fs::path&)>& write) {
  int64_t number = 1;
  while (fs::exists(directory_ / make_name(step, number))) ++number;
  const auto name = make_name(step, number);
  const auto temporary = directory_ / (kTemporary + name);
  fs::remove_all(temporary);
  fs::create_directory(temporary);
  write(temporary);
  write_manifest(temporary);
  reached(Stage::Written);
  sync_tree(temporary);
  reached(Stage::Synced);
  rename_durably(temporary, directory_ / name);
  names_.push_back(name);
  reached(Stage::Renamed);
  replace_file(directory_ / kLatest, name + "\n");
  reached(Stage::LatestSet);
  prune();
  reached(Stage::Pruned);
  return directory_ / name;
}

void CheckpointStore::prune() {
  while (static_cast<int64_t>(names_.size()) > keep_) {
    // Under a temporary name it does not count, so that a crash in between leaves no half one.
    const auto& oldest = names_.front();
    const auto doomed = directory_ / (kTemporary + ("old-" + oldest));
    rename_durably(directory_ / oldest, doomed);
    fs::remove_all(doomed);
    names_.erase(names_.begin());
  }
}

void CheckpointStore::reached(Stage stage) const {
  if (on_stage) on_stage(stage);
}

std::string checkpoint_fault(const fs::path& checkpoint, Depth depth) {
  std::error_code error;
  if (!fs::is_regular_file(checkpoint / kManifest, error)) return "it has no manifest.json";
  const auto manifest = read_json(checkpoint / kManifest);
  if (!manifest.is_object() || !manifest.contains("files") || !manifest["files"].is_object()) {
    return "its manifest.json is damaged";
  }
  if (manifest.value("version", nlohmann::json()) != kVersion) {
    return "its manifest.json is of a version that this program does not know";
  }
  for (const auto& [name, file] : manifest["files"].items()) {
    const auto bytes = file.is_object() ? file.value("bytes", nlohmann::json()) : nullptr;
    const auto sum = file.is_object() ? file.value("xxh64", nlohmann::json()) : nullptr;
    if (name.find('/') != std::string::npos || !bytes.is_number_unsigned() || !sum.is_string()) {
      return "its manifest.json is damaged";
    }
    const auto actual = fs::file_size(checkpoint / name, error);
    if (error) return "its file " + name + " is missing";
    if (actual != bytes.get<uintmax_t>()) return "its file " + name + " has not its full size";
    if (depth == Depth::Bytes && checksum_of(checkpoint / name) != sum.get<std::string>()) {
      return "its file " + name + " has other bytes than were written (xxh64 is not " +
             sum.get<std::string>() + ")";
    }
  }
  return {};
}

void check_whole(const fs::path& checkpoint, Depth depth) {
  const auto fault = checkpoint_fault(checkpoint, depth);
  TORCH_CHECK(fault.empty(), "[optim_offload] the checkpoint ", checkpoint.string(),
              " is not whole: ", fault, "; resume from another one");
}

fs::path resolve_checkpoint(const fs::path& given) {
  std::error_code error;
  const auto path = given.filename() == kLatest && !fs::is_directory(given, error)
                        ? fs::absolute(given).parent_path()
                        : given;
  TORCH_CHECK(fs::is_directory(path, error), "[optim_offload] there is no checkpoint at ",
              given.string(), "; give a checkpoint's directory or one that holds checkpoints");
  if (fs::exists(path / kManifest, error) || parse_name(path.filename().string()).first >= 0) {
    check_whole(path, Depth::Sizes);
    return path;
  }
  if (fs::is_regular_file(path / kLatest, error)) {
    auto name = read_file(path / kLatest);
    name.erase(name.find_last_not_of(" \r\n\t") + 1);
    if (parse_name(name).first >= 0 && checkpoint_fault(path / name).empty()) return path / name;
  }
  const auto names = whole_checkpoints(path);
  TORCH_CHECK(!names.empty(), "[optim_offload] there is no whole checkpoint in ", path.string(),
              "; give another directory, or start without --resume");
  return path / names.back();
}

}  // namespace optim_offload::train
