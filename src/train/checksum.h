#pragma once

#include <filesystem>
#include <string>

namespace optim_offload::train {

/// The XXH64 of a file as 16 hexadecimal digits, as `xxhsum -H64` prints it. It notices every
/// change within one aligned word of 8 bytes, and any other but for one in 2^64; against somebody
/// who means to deceive it is no help.
///
/// Throws where the file cannot be read.
std::string checksum_of(const std::filesystem::path& path);

}  // namespace optim_offload::train
