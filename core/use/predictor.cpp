#include "include/tandem/predictor.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <limits>

#include "core/base/error.h"
#include "core/device/parse.h"
#include "include/tandem/predict.h"

struct tandem_predictor {
  tandem::Predictor predictor;
};

namespace tandem {
namespace {

thread_local std::string last_failure;

// Returns what `function` does, or `failed` with the reason kept. Storing the reason may fail, too.
template <class Result, class Function>
Result without_exceptions(Result failed, const Function& function) noexcept {
  try {
    last_failure.clear();
    return function();
  } catch (const std::exception& failure) {
    try {
      last_failure = failure.what();
    } catch (...) {
      last_failure = "out of memory";  // short texts need none
    }
  } catch (...) {
    last_failure = "unknown failure";
  }
  return failed;
}

void require_given(const void* argument, const char* name) {
  if (argument == nullptr) throw error("{} is NULL", name);
}

// Elements lie as far apart as the caller's struct is large.
std::vector<Picture> read_pictures(const tandem_picture* pictures, size_t count) {
  std::vector<Picture> result;
  const auto* at = reinterpret_cast<const char*>(pictures);
  for (size_t i = 0; i < count; ++i) {
    tandem_picture one{};
    std::memcpy(&one.struct_size, at, sizeof(one.struct_size));
    if (one.struct_size < sizeof(tandem_picture)) {
      throw error("picture {} has struct_size {}: set it to sizeof(tandem_picture), {}", i,
                  one.struct_size, sizeof(tandem_picture));
    }
    const size_t size = one.struct_size;
    std::memcpy(&one, at, sizeof(one));
    result.push_back({one.data, one.bytes, one.height, one.width, one.channels});
    at += size;
  }
  return result;
}

}  // namespace
}  // namespace tandem

tandem_predictor* tandem_predictor_open(const char* run, const char* devices, const char* weights,
                                        int32_t batch) {
  return tandem::without_exceptions<tandem_predictor*>(nullptr, [&] {
    tandem::require_given(run, "run");
    constexpr int32_t usual_batch = 32;
    return new tandem_predictor{
        tandem::Predictor(run, devices != nullptr ? devices : tandem::default_kind,
                          weights != nullptr ? weights : "best", batch == 0 ? usual_batch : batch)};
  });
}

void tandem_predictor_close(tandem_predictor* predictor) {
  tandem::without_exceptions<int>(0, [&] { return delete predictor, 0; });
}

int32_t tandem_predictor_class_count(const tandem_predictor* predictor) {
  return predictor == nullptr ? 0 : static_cast<int32_t>(predictor->predictor.class_count());
}

int32_t tandem_predictor_has_probabilities(const tandem_predictor* predictor) {
  return predictor != nullptr && predictor->predictor.has_probabilities() ? 1 : 0;
}

const char* tandem_predictor_class_name(const tandem_predictor* predictor, int32_t index) {
  if (predictor == nullptr || index < 0) return nullptr;
  const std::vector<std::string>& names = predictor->predictor.class_names();
  return size_t(index) < names.size() ? names[size_t(index)].c_str() : nullptr;
}

int64_t tandem_predictor_run(tandem_predictor* predictor, const tandem_picture* pictures,
                             size_t count, float* scores) {
  return tandem::without_exceptions<int64_t>(-1, [&]() -> int64_t {
    if (count == 0) return 0;
    tandem::require_given(predictor, "predictor");
    tandem::require_given(pictures, "pictures");
    tandem::require_given(scores, "scores");
    std::vector<std::string> errors;
    predictor->predictor.scores(tandem::read_pictures(pictures, count), scores, &errors);
    int64_t unused = 0;
    for (size_t i = 0; i < errors.size(); ++i) {
      if (errors[i].empty()) continue;
      if (unused++ == 0) tandem::last_failure = fmt::format("picture {}: {}", i, errors[i]);
    }
    return unused;
  });
}

const char* tandem_predictor_error(void) {
  return tandem::last_failure.c_str();
}
