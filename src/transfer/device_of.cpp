#include "transfer/device_of.h"

#include "transfer/simulated_device.h"

namespace optim_offload::transfer {

c10::Device device_of(const at::Tensor& tensor) {
  const c10::Device device = tensor.device();
  if (!device.is_cpu() || !simulated_device_active()) return device;
  return simulated_device(static_cast<int>(tensor.numel() % simulated_device_options().devices));
}

c10::Device simulated_device(int number) {
  if (number == 0) return {c10::DeviceType::CPU};
  return {c10::DeviceType::PrivateUse1, static_cast<c10::DeviceIndex>(number)};
}

bool is_simulated(c10::Device device) {
  return simulated_device_active() && (device.is_cpu() || device.is_privateuseone());
}

c10::Device memory_of(c10::Device device) {
  return is_simulated(device) ? c10::Device(c10::DeviceType::CPU) : device;
}

}  // namespace optim_offload::transfer
