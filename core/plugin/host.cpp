#include "core/plugin/host.h"

#include <utility>
#include <vector>

#include "core/plugin/attributes.h"

namespace tandem {

namespace {

// One for each thread, as works of several streams may fail at the same time.
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

template <class Value, const std::vector<Value>& (Attributes::*get)(const std::string&) const>
tandem_status get_list(const tandem_attributes* handle, const char* name, const Value** values,
                       uint32_t* count) {
  return guarded([&] {
    const std::vector<Value>& list = (attributes_of(handle).*get)(name);
    *values = list.data();
    *count = uint32_t(list.size());
  });
}

int32_t is_set(const tandem_attributes* handle, const char* name) {
  if (handle == nullptr || name == nullptr) return 0;
  const Attribute* attribute = attributes_of(handle).find(name);
  return attribute != nullptr && attribute->is_set ? 1 : 0;
}

const char* status_name(tandem_status status) {
  for (const auto& [known, name] :
       {std::pair<tandem_status, const char*>{TANDEM_INVALID, "invalid"},
        {TANDEM_UNSUPPORTED, "unsupported"},
        {TANDEM_OUT_OF_MEMORY, "out of memory"},
        {TANDEM_FAILED, "failed"},
        {TANDEM_SKIP, "damaged sample"},
        {TANDEM_TIMEOUT, "timed out"}}) {
    if (status == known) return name;
  }
  return "unknown status";
}

}  // namespace

const tandem_host& host_table() {
  static constexpr tandem_host table{TANDEM_ABI_MAJOR,
                                     TANDEM_ABI_MINOR,
                                     sizeof(tandem_host),
                                     &explain,
                                     &get_integer,
                                     &get_number,
                                     &get_text,
                                     &get_list<int64_t, &Attributes::integers>,
                                     &is_set,
                                     &explained,
                                     &get_list<double, &Attributes::numbers>,
                                     TANDEM_LAYERS_MAJOR,
                                     TANDEM_LAYERS_MINOR,
                                     TANDEM_DATASETS_MAJOR,
                                     TANDEM_DATASETS_MINOR,
                                     TANDEM_BACKENDS_MAJOR,
                                     TANDEM_BACKENDS_MINOR,
                                     TANDEM_TRANSPORTS_MAJOR,
                                     TANDEM_TRANSPORTS_MINOR};
  return table;
}

std::string take_reason() {
  return std::exchange(last_reason, {});
}

void check(tandem_status status, const std::string& what) {
  // Also taken from a success: the next failure must not report the reason of an earlier call.
  const std::string reason = take_reason();
  if (status == TANDEM_OK) return;
  if (!reason.empty()) throw error("{}: {}", what, reason);
  throw error("{}: {} (status {}; the plugin gave no reason)", what, status_name(status), status);
}

}  // namespace tandem
