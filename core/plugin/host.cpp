#include <string>
#include <utility>
#include <vector>

#include "core/base/attributes.h"
#include "core/plugin/registry.h"

namespace tandem {

namespace {

// Per thread, as works fail on their streams' threads at the same time.
thread_local std::string last_reason;

void explain(const char* text) {
  last_reason = text == nullptr ? "" : text;
}

const char* explained() {
  return last_reason.c_str();
}

const Attributes& attributes_of(const tandem_attributes* handle) {
  if (handle == nullptr) throw Error("it was asked for a parameter where there are none");
  return *reinterpret_cast<const Attributes*>(handle);
}

// No exception crosses the ABI: an Error becomes a status and a reason.
template <class Function>
tandem_status guarded(Function&& function) noexcept {
  try {
    function();
    return TANDEM_OK;
  } catch (const std::exception& failure) {
    explain(failure.what());
    return TANDEM_INVALID;
  }
}

tandem_status get_integer(const tandem_attributes* handle, const char* name, int64_t* value) {
  return guarded([&] { *value = attributes_of(handle).integer(name); });
}

tandem_status get_number(const tandem_attributes* handle, const char* name, double* value) {
  return guarded([&] { *value = attributes_of(handle).number(name); });
}

tandem_status get_text(const tandem_attributes* handle, const char* name, const char** value) {
  return guarded([&] { *value = attributes_of(handle).text(name).c_str(); });
}

tandem_status get_integers(const tandem_attributes* handle, const char* name,
                           const int64_t** values, uint32_t* count) {
  return guarded([&] {
    const std::vector<int64_t>& list = attributes_of(handle).integers(name);
    *values = list.data();
    *count = static_cast<uint32_t>(list.size());
  });
}

tandem_status get_numbers(const tandem_attributes* handle, const char* name, const double** values,
                          uint32_t* count) {
  return guarded([&] {
    const std::vector<double>& list = attributes_of(handle).numbers(name);
    *values = list.data();
    *count = static_cast<uint32_t>(list.size());
  });
}

int32_t is_set(const tandem_attributes* handle, const char* name) {
  if (handle == nullptr || name == nullptr) return 0;
  const Attribute* attribute = attributes_of(handle).find(name);
  return attribute != nullptr && attribute->is_set ? 1 : 0;
}

const char* status_name(tandem_status status) {
  switch (status) {
    case TANDEM_INVALID:
      return "invalid";
    case TANDEM_UNSUPPORTED:
      return "unsupported";
    case TANDEM_OUT_OF_MEMORY:
      return "out of memory";
    case TANDEM_FAILED:
      return "failed";
    case TANDEM_SKIP:
      return "damaged sample";
    case TANDEM_TIMEOUT:
      return "timed out";
    default:
      return "unknown status";
  }
}

}  // namespace

const tandem_host& host_table() {
  static constexpr tandem_host table{TANDEM_ABI_MAJOR, TANDEM_ABI_MINOR, sizeof(tandem_host),
                                     &explain,         &get_integer,     &get_number,
                                     &get_text,        &get_integers,    &is_set,
                                     &explained,       &get_numbers};
  return table;
}

std::string take_reason() {
  return std::exchange(last_reason, {});
}

void check(tandem_status status, const std::string& what) {
  // Taken even of a success: a reason that its call got over must not be blamed on the next
  // failure.
  const std::string reason = take_reason();
  if (status == TANDEM_OK) return;
  if (!reason.empty()) throw error("{}: {}", what, reason);
  throw error("{}: {} (status {}; the plugin gave no reason)", what, status_name(status), status);
}

}  // namespace tandem
