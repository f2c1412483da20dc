#include <filesystem>
#include <fstream>
#include <iostream>

#include <c10/util/Exception.h>

#include "bench/device.h"
#include "bench/options.h"
#include "bench/run.h"

namespace {

using namespace optim_offload::bench;

// What test runners take for "skipped".
constexpr int kNoDevice = 77;

void write_file(const std::filesystem::path& path, const std::string& text) {
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  TORCH_CHECK(file.good(), "[optim_offload] cannot write ", path.string(),
              "; see whether the folder may be written and has room");
}

void write_pictures(const RunResult& result, const BenchOptions& options) {
  const std::filesystem::path folder(options.pictures);
  const std::string stem =
      options.json.empty() ? "bench" : std::filesystem::path(options.json).stem().string();
  const Report& report = result.report;
  write_file(folder / (stem + "_step_time.svg"), step_time_svg(report));
  write_file(folder / (stem + "_vram.svg"), vram_svg(report));
  if (result.spans.empty()) {
    std::cerr << "no timeline: no streamed step was recorded" << std::endl;
    return;
  }
  const TimelineTitle title{
      "One streamed step: " + result.spans_of + " (" +
          (report.environment.simulated ? "SIMULATED" : report.environment.gpu) + ")",
      report.environment.date};
  write_file(folder / (stem + "_timeline.svg"), to_svg(result.spans, title));
  write_file(folder / (stem + "_trace.json"), to_chrome_trace(result.spans, title));
}

int bench(const BenchOptions& options) {
  const auto device = options.simulate ? make_simulated_device() : make_cuda_device();
  if (device == nullptr) {
    std::cerr << "offload-bench: no CUDA device was found, so there is nothing to measure. Run it "
                 "on a CUDA machine, or with --simulate to try the program without one.\n";
    return kNoDevice;
  }
  const RunResult result = run(options, *device);
  std::cout << to_table(result.report);
  if (!options.json.empty()) write_file(options.json, to_json(result.report));
  if (!options.pictures.empty()) write_pictures(result, options);
  for (const Row& row : result.report.rows) {
    if (row.soak && row.soak->grew()) {
      std::cerr << "offload-bench: memory grew over " << row.soak->steps << " steps of "
                << row.model << ", " << row.mode << "\n";
      return 1;
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  int exit_code = 0;
  const auto options = parse_command_line(argc, argv, exit_code);
  if (!options) return exit_code;
  try {
    return bench(*options);
  } catch (const c10::Error& error) {
    std::cerr << "offload-bench: " << error.what_without_backtrace() << "\n";
  } catch (const std::exception& error) {
    std::cerr << "offload-bench: " << error.what() << "\n";
  }
  return 1;
}
