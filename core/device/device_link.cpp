#include "core/device/device_link.h"

#include <utility>

#include "core/plugin/host.h"

namespace tandem {
namespace {

tandem_status failed(const std::string& reason) {
  host_table().explain(reason.c_str());
  return TANDEM_FAILED;
}

}  // namespace

DeviceLink::DeviceLink(const tandem_device_transport& transport, tandem_device_link* handle,
                       std::string expired)
    : transport_(transport), expired_(std::move(expired)), handle_(handle) {}

DeviceLink::~DeviceLink() {
  abort();
  close(0);
}

tandem_status DeviceLink::transfer(const tandem_call& call, void* memory, int64_t bytes) {
  const std::lock_guard in_use(in_use_);
  if (handle_ == nullptr) return failed("this rank has closed its links");
  ++turns_;
  const tandem_status status = transport_.transfer(handle_, &call, memory, bytes);
  ++turns_;
  // Not TANDEM_TIMEOUT, which is what waiting for an event of the machine says.
  return status != TANDEM_OK && has_expired_ ? failed(expired_) : status;
}

tandem_status DeviceLink::check() {
  const std::lock_guard lock(handle_mutex_);
  return handle_ == nullptr ? TANDEM_OK : transport_.check(handle_);
}

void DeviceLink::abort() {
  const std::lock_guard lock(handle_mutex_);
  if (handle_ != nullptr) transport_.abort(handle_);
}

void DeviceLink::close(double seconds) {
  const std::lock_guard in_use(in_use_);
  tandem_device_link* handle = nullptr;
  {
    const std::lock_guard lock(handle_mutex_);
    handle = std::exchange(handle_, nullptr);
  }
  if (handle != nullptr) transport_.close(handle, seconds);
}

void DeviceLink::look(int most) {
  const int64_t now = turns_;
  const bool is_same = now % 2 == 1 && now == looked_at_;
  looked_at_ = now;
  looks_ = is_same ? looks_ + 1 : 0;
  if (looks_ != most) return;
  has_expired_ = true;
  abort();
}

}  // namespace tandem
