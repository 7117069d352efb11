#include "plugins/mpi/versions.h"

#include <mpi.h>

#include <array>
#include <string>

#include "plugins/sdk.h"

namespace tandem::mpi {

namespace {

// For ever: 64 bytes from rank 0 to all, this text and the version, and zeros after them.
constexpr const char* beginning = "tandem-transport-mpi ";
using Header = std::array<char, 64>;

std::string host_name() {
  std::array<char, MPI_MAX_PROCESSOR_NAME + 1> name{};
  int length = 0;
  MPI_Get_processor_name(name.data(), &length);
  return name.data();
}

}  // namespace

void require_same_version(const char* version) {
  const std::string mine = sdk::text(beginning, version);
  Header header{};
  mine.copy(header.data(), header.size() - 1);
  const int code =
      MPI_Bcast(header.data(), static_cast<int>(header.size()), MPI_BYTE, 0, MPI_COMM_WORLD);
  header.back() = '\0';
  std::string of_root = code == MPI_SUCCESS ? header.data() : "";
  if (of_root == mine) return;
  if (of_root.rfind(beginning, 0) == 0) {
    of_root = "version " + of_root.substr(std::string(beginning).size());
  } else {
    of_root = "one that does not say its version";
  }
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  throw sdk::failed("rank ", rank, " (host ", host_name(), ") has version ", version,
                    " of this module, and rank 0 has ", of_root,
                    ": install the same version of Tandem on all hosts");
}

}  // namespace tandem::mpi
