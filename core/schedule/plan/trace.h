// When the tasks of a plan ran: what an executor records and what reports draw.
#pragma once

#include <cstdint>

namespace tandem {

struct TraceEvent {
  int task = -1;
  int64_t micro_batch = 0;
  double start = 0, end = 0;  // seconds since the machine was opened
};

}  // namespace tandem
