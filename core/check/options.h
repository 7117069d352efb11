// What a check is asked for, and what it finds.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/check/promises/promises.h"
#include "core/device/parse.h"

namespace tandem::checker {

// Programs of a sanitizer take that many times as long.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int slow_build = 10;
#else
constexpr int slow_build = 1;
#endif

struct CheckOptions {
  // Module files, layer types and data sets; empty: all known layer types.
  std::vector<std::string> targets;
  std::string layer;                 // only this type, or this layer of the net
  std::string net;                   // a net file, whose layers are the cases; "": none
  std::string promise;               // only this one
  std::vector<std::string> without;  // not these: each is `left_out`
  CaseOptions cases;
  std::string device = default_kind;
  int patience = 20 * slow_build;  // seconds of one case after which the child is ended
  // Of data sets.
  std::string data;  // the source; "": the data set's name
  std::map<std::string, std::string> data_parameters;
  Shape data_shape{1, 0, 0, 0};  // of a sample; 0: any
  std::vector<std::string> class_names;
  bool validates = true;
  // Before training: only the uses of `cases`, or the data set `layer`; only promises by which
  // other weights are trained, and no longer than so many seconds of the processors. 0: all,
  // without a limit.
  double seconds = 0;
};

struct Finding {
  std::string layer, promise, text;
  Outcome outcome;
  std::string command;    // of a broken promise: runs the failing case again
  std::string arguments;  // of the case
};

}  // namespace tandem::checker
