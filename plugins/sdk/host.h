// What every part of a plugin uses: shapes, texts, the exceptions that an author throws, and the
// host's table. guarded() is the only try/catch of a plugin: no exception crosses the ABI.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <new>
#include <sstream>
#include <string>
#include <utility>

#include "../abi.h"

#define TANDEM_EXPORT __attribute__((visibility("default")))

namespace tandem::sdk {

using Shape = tandem_shape;

inline int64_t count(const Shape& s) {
  return s.n * s.c * s.h * s.w;
}
inline bool equal(const Shape& a, const Shape& b) {
  return a.n == b.n && a.c == b.c && a.h == b.h && a.w == b.w;
}

// text("kernel ", 11, " exceeds ...")
template <class... Values>
std::string text(const Values&... values) {
  std::ostringstream stream;
  (stream << ... << values);
  return stream.str();
}
inline std::string text_of(const Shape& s) {
  return text(s.n, "x", s.c, "x", s.h, "x", s.w);
}

// Writes the fields of a struct of the host that its struct_size covers, and leaves its
// struct_size. The host may be of an older minor version, whose struct ends earlier.
template <class T>
void give(const T& value, T* target) {
  const size_t size = std::min<size_t>(target->struct_size, sizeof value);
  constexpr size_t after = sizeof(T::struct_size);
  static_assert(offsetof(T, struct_size) == 0);
  if (size > after) {
    std::memcpy(reinterpret_cast<std::byte*>(target) + after,
                reinterpret_cast<const std::byte*>(&value) + after, size - after);
  }
}

// A copy of the fields that the struct_size of a struct of the host covers; the rest is zero.
template <class T>
T covered(const T& given) {
  T result{};
  std::memcpy(&result, &given, std::min<size_t>(given.struct_size, sizeof result));
  return result;
}

// The exception that an author throws: a status, and a reason for the user.
class Refusal : public std::exception {
 public:
  Refusal(tandem_status status, std::string reason) : status_(status), reason_(std::move(reason)) {}
  const char* what() const noexcept override { return reason_.c_str(); }
  tandem_status status() const { return status_; }

 private:
  tandem_status status_;
  std::string reason_;
};
template <class... Values>
Refusal invalid(const Values&... values) {
  return {TANDEM_INVALID, text(values...)};
}
template <class... Values>
Refusal unsupported(const Values&... values) {
  return {TANDEM_UNSUPPORTED, text(values...)};
}
template <class... Values>
Refusal failed(const Values&... values) {
  return {TANDEM_FAILED, text(values...)};
}

// The host's table, set by Plugin's constructor. One per module, since modules hide their symbols.
inline const tandem_host* host = nullptr;

// The last text that this thread explained; "" if there is none.
inline std::string explained() {
  return host->explained();
}

// Runs the function. An exception becomes a status, whose reason is explained to the host.
template <class Function>
tandem_status guarded(Function&& function) noexcept {
  try {
    function();
    return TANDEM_OK;
  } catch (const Refusal& refusal) {
    host->explain(refusal.what());
    return refusal.status();
  } catch (const std::bad_alloc&) {
    host->explain("out of memory");
    return TANDEM_OUT_OF_MEMORY;
  } catch (const std::exception& failure) {
    host->explain(failure.what());
    return TANDEM_FAILED;
  } catch (...) {
    host->explain("unknown exception");
    return TANDEM_FAILED;
  }
}

}  // namespace tandem::sdk
