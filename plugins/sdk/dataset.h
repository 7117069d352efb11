// A data set: a class derived from DatasetType.
#pragma once

#include <cstdint>
#include <vector>

#include "parameters.h"

namespace tandem::sdk {

// An opened data set. A type derives from it, and has a constructor (const tandem_dataset_request&,
// const Attributes&), static const char* name() and static const char* help(). It may have
// - static std::vector<Parameter> parameters();
// - static bool recognizes(const std::string& source), if it reads files or folders;
// - static void pack(const tandem_pack_request&).
// All functions are called by several threads at a time.
class DatasetType {
 public:
  virtual ~DatasetType() = default;
  static std::vector<Parameter> parameters() { return {}; }

  virtual int64_t size() const = 0;
  virtual int64_t class_count() const = 0;
  virtual Shape shape() const = 0;  // of one sample: n = 1
  virtual const char* class_name(int64_t index) const = 0;
  virtual const char* sample_name(int64_t index) const = 0;  // for messages
  // Lines for the user: what was skipped and why.
  virtual const char* notes() const { return ""; }
  // Writes c*h*w floats and the class: a function of index and seed alone. skip() says that the
  // sample is damaged.
  virtual void get(int64_t index, uint64_t seed, float* pixels, float* label) const = 0;

  // Whether the request's seed decides which samples it holds.
  virtual bool split_is_drawn() const { return false; }

  // Offered to the host only by a type that defines them.
  // The further inputs of the request, if a sample is more than an image and a label.
  virtual void get_inputs(int64_t, uint64_t, float* const*) const {}
  // The label that get() gives, without reading pixels.
  virtual int64_t label(int64_t) const { return -1; }
  virtual void describe(int64_t, tandem_sample_info&) const {}
  // Like get(), but pixels are rounded to bytes. describe_bytes sets has_bytes and the fields after
  // it.
  virtual void get_bytes(int64_t, uint64_t, uint8_t*, float*) const {}
  virtual void describe_bytes(tandem_dataset_info&) const {}
  // Several labels or numbers in place of a class: what the samples have (TANDEM_TASK_LABELS, ...),
  // and class_count() values of one of them.
  virtual int64_t task() const { return TANDEM_TASK_CLASSES; }
  virtual void targets(int64_t, float*) const {}
};

// Thrown by a data set's get(): this sample is damaged and is to be skipped.
template <class... Values>
Refusal skip(const Values&... values) {
  return {TANDEM_SKIP, text(values...)};
}

}  // namespace tandem::sdk
