// What the ranks of a job tell each other while they run, and no plan has: how many samples a batch
// has, when to stop, which algorithms were measured, which samples cannot be read.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "core/data/bad_samples.h"
#include "core/data/dataset.h"
#include "core/data/fingerprint.h"
#include "core/device/communicator.h"
#include "core/schedule/kernels/kernel_choices.h"

namespace tandem {

// Error if these data have other names, sizes or contents than those of rank 0, which have
// `of_root`.
void require_same_samples(const Fingerprint& of_root, const Dataset& dataset,
                          const std::string& data, const std::string& split);

// What rank `from` has measured, to all; called by all.
[[nodiscard]] KernelChoices share_choices(const Communicator& ranks, int from,
                                          const KernelChoices& mine);

// The samples that any rank could not read, each once by name, to rank 0; called by all.
[[nodiscard]] std::vector<BadSample> gather_bad_samples(const Communicator& ranks,
                                                        const std::vector<BadSample>& mine);

// What all ranks agree on for each batch before it is issued.
class BatchAgreement {
 public:
  // `stop` (of any rank; may be null) becomes true: all ranks stop after the same batch.
  BatchAgreement(const Communicator& ranks, const std::atomic<bool>* stop)
      : ranks_(ranks), stop_(stop) {}

  // `labels`: of the batch, NaN in the rows that this rank has not read. Returns the number of rows
  // of the batch that hold a sample. Rank 0 then has the labels of all rows. Called by all ranks.
  [[nodiscard]] int64_t agree(float* labels, int64_t rows);
  // As of the last batch.
  [[nodiscard]] bool stopping() const { return stopping_; }

 private:
  const Communicator& ranks_;
  const std::atomic<bool>* stop_;
  bool stopping_ = false;
};

}  // namespace tandem
