#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <c10/core/Device.h>

namespace optim_offload::bench {

/// Bytes that the caching allocator has handed out, and that it holds of the device.
struct Memory {
  int64_t allocated = 0;
  int64_t reserved = 0;
};

constexpr int64_t kLinkCopyBytes = int64_t{256} << 20;

enum class LinkUse {
  Up,    ///< To the device, with nothing else on the link.
  Down,  ///< To the host, with nothing else on the link.
  Both,  ///< Both at once, until the later is done.
};

/// Times how long a number of bytes takes over the link, in copies of `kLinkCopyBytes` between
/// page-locked host memory and the device. Holds memory of its own at both ends, outside of the
/// caching allocator.
class LinkProbe {
 public:
  virtual ~LinkProbe() = default;

  virtual int64_t bytes() const = 0;  ///< In each direction.
  virtual double seconds(LinkUse use) = 0;
};

/// What a reader must know of the machine to judge the figures.
struct Environment {
  std::string gpu;
  std::string driver;
  std::string torch;
  std::string date;  ///< UTC, to the second; also tells which pictures belong to which run.
  bool simulated = false;
};

/// The device that is measured. Work goes to the current stream.
class Device {
 public:
  virtual ~Device() = default;

  virtual c10::Device torch_device() const = 0;
  virtual Environment environment() const = 0;

  /// Waits for all work on the device.
  virtual void synchronize() = 0;

  /// Seconds from before the first to after the last work that `work` queues, by events on the
  /// current stream. Waits for it.
  virtual double timed(const std::function<void()>& work) = 0;

  /// Whether memory is counted; if not, the following give zeros.
  virtual bool counts_memory() const = 0;
  virtual Memory memory() const = 0;
  virtual Memory peak() const = 0;  ///< Largest since reset_peak(), each for itself.
  virtual void reset_peak() = 0;
  virtual void release_cached() = 0;  ///< Gives unused memory of the caching allocator back.

  virtual std::unique_ptr<LinkProbe> open_link(int64_t bytes) = 0;
};

/// The CUDA device, or null where there is none or the build has no CUDA side.
std::unique_ptr<Device> make_cuda_device();

/// Host memory as a device; its figures mean nothing.
std::unique_ptr<Device> make_simulated_device();

/// Now, in UTC, as 2030-12-31T23:59:59Z.
std::string utc_now();

}  // namespace optim_offload::bench
