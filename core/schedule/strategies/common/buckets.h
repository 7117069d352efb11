// Buckets of gradients that are sent together, and the order in which gradients and new weights use
// the links. A bucket is contiguous in the weight array; its gradient is complete after the
// backward pass of its first layer.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "core/model/net/net.h"
#include "core/schedule/builder/plan_builder.h"

namespace tandem {

struct Bucket {
  std::string name;          // of its layers: "conv1", "fc7..fc8"
  int layer = -1;            // the first of the net that uses it: whose backward completes the
                             // gradient, and whose forward first needs the new weights
  std::vector<int> weights;  // trained arrays, in the order of their offsets
  Interval range;            // with small arrays between them that are not trained
};

// All trained arrays but those of the layers `without`, in the order in which their gradients are
// complete. A bucket takes more layers while it has fewer than `bytes`; an array is never divided.
// Error if the net has none.
[[nodiscard]] std::vector<Bucket> make_buckets(const Net& net, int64_t bytes,
                                               const std::set<int>& without = {});

// Slice `index` of `count`: equal but for multiples of 64 bytes; the last ones may be empty.
[[nodiscard]] Interval slice_of(Interval range, int index, int count);

// A bucket's reduction, or the broadcast of its new weights.
struct BucketTransfer {
  int bucket = 0;
  bool is_broadcast = false;
  friend bool operator==(const BucketTransfer&, const BucketTransfer&) = default;
};

struct TransferTimes {            // seconds after the begin of backward
  std::vector<double> ready;      // by bucket: its gradient is complete
  std::vector<double> reduction;  // by bucket: how long its gradients use the links
  std::vector<double> broadcast;  // ... its weights
  std::vector<double> update{};   // from its gradients' arrival to its new weights; empty: no time
};

// The order in which transfers use the links. Gradients go first, as they become ready, because the
// end of the step waits for them. While none is ready, new weights are broadcast, those of the
// lowest layer first, because the next forward needs them first. With `duplex` reductions and
// broadcasts have links of their own. With `broadcasts_last` no weights travel before all gradients
// are in.
[[nodiscard]] std::vector<BucketTransfer> order_transfers(const std::vector<Bucket>& buckets,
                                                          const TransferTimes& times, bool duplex,
                                                          bool broadcasts_last);

}  // namespace tandem
