#pragma once

#include <string>

/// The examples of the pages in docs/ and of the README. A region between two comments `[name]` is
/// what a page shows; scripts/check_docs compares them.
namespace examples {

void readme();
void options();
void from_toml(const std::string& path);
void loop();
void closure();
void parameter_groups();
void fused();
void muon();
void statistics();
void own_optimizer();
void saving(const std::string& folder);
void back_to_plain_on_cuda(const std::string& folder);  // needs a GPU
void releasing();
void failed_load(const std::string& folder);
void failed_step();

}  // namespace examples
