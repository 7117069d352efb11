// The first message of a job: the version of this module on rank 0. What ranks say to each other
// after it may change from version to version; its form never does, so that each version can read
// what any other one says.
#pragma once

namespace tandem::mpi {

// Called by all ranks after MPI_Init, before any other message. Throws Refusal on a rank whose
// module has another version than that of rank 0.
void require_same_version(const char* version);

}  // namespace tandem::mpi
