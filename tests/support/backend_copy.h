// A backend whose tables a test may change.
#pragma once

#include "plugins/abi.h"

namespace tandem::test {

struct BackendCopy {
  BackendCopy(const tandem_backend& from)  // NOLINT: used in place of one
      : table(from), buffers(*from.buffers), streams(*from.streams), arithmetic(*from.arithmetic) {
    table.buffers = &buffers;
    table.streams = &streams;
    table.arithmetic = &arithmetic;
    if (from.links != nullptr) links = *from.links, table.links = &links;
    if (from.capture != nullptr) capture = *from.capture, table.capture = &capture;
  }
  BackendCopy(const BackendCopy& other) : BackendCopy(other.table) {}
  BackendCopy& operator=(const BackendCopy&) = delete;
  operator const tandem_backend&() const { return table; }

  tandem_backend table;
  tandem_buffers buffers;
  tandem_streams streams;
  tandem_arithmetic arithmetic;
  tandem_links links{};      // table.links is NULL or points to it
  tandem_capture capture{};  // likewise
};

}  // namespace tandem::test
