// `tandem plugin check`: tries to break every promise of layers, in a child process, so that a
// crash or an endless loop of a plugin is a broken promise and not the end of the check.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/check/promises.h"
#include "core/device/parse.h"

namespace tandem::checker {

struct CheckOptions {
  std::vector<std::string> targets;  // module files and layer types; empty: all known types
  std::string layer;                 // only this type, or this layer of the net
  std::string net;                   // a net file, whose layers are the cases; "": none
  std::string promise;               // only this one
  CaseOptions cases;
  std::string device = default_kind;
  int patience = 120;  // seconds without a result after which the child is ended
};

struct Finding {
  std::string layer, promise, text;
  Outcome outcome;
  std::string command;  // of a broken promise: runs the failing case again
};

// Calls report() for each promise of each layer, in order. Throws Error for an unknown target or
// promise. The calling process must have one thread.
void check_layers(const CheckOptions& options, const std::function<void(const Finding&)>& report);

}  // namespace tandem::checker
