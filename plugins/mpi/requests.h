// The transfers that a rank has handed to MPI, and their requests. Called by the one thread that
// calls MPI.
#pragma once

#include <mpi.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plugins/abi.h"
#include "plugins/mpi/neighbors.h"

namespace tandem::mpi {

// Throws Refusal with MPI's text unless the call `what` succeeded.
void require_success(int code, const char* what);

enum class Kind { send, receive, broadcast };

// A call of send, receive or broadcast, on the stack of the thread that waits for it.
struct Transfer {
  Transfer(Kind what, int rank, int number, std::vector<tandem_part> blocks)
      : kind(what), peer(rank), channel(number), parts(std::move(blocks)) {}

  Kind kind;
  int peer;  // of a broadcast: its root
  int channel;
  std::vector<tandem_part> parts;
  bool sends = false;                             // data of this rank
  int under_way = 0;                              // requests of MPI
  std::optional<Neighbors::Message> to_neighbor;  // or from it
  bool is_done = false;
  std::string failure;
};

// The requests of all transfers under way: one question to MPI is for all of them, since each
// question looks at every connection.
class Requests {
 public:
  [[nodiscard]] bool is_empty() const { return requests_.empty(); }
  [[nodiscard]] const std::vector<Transfer*>& transfers() const { return transfers_; }

  // Throws Refusal; the transfer's requests that were made until then are under way.
  void start(Transfer& transfer);

  // Adds the transfers whose last request has ended, by success or failure. Throws Refusal.
  void ask(std::vector<Transfer*>& ended);

  // MPI does not say which of them failed, and may still use the memory of the others: after this
  // nobody calls MPI any more.
  void give_up(const std::string& reason, std::vector<Transfer*>& ended);
  [[nodiscard]] bool have_failed() const { return !reason_.empty(); }
  // Why they have failed.
  [[nodiscard]] const std::string& reason() const { return reason_; }

 private:
  void add(Transfer& transfer, MPI_Request request);
  void post(Transfer& transfer, void* address, int count, MPI_Datatype type);

  std::string reason_;
  std::vector<MPI_Request> requests_;
  std::vector<Transfer*> transfers_;  // that they belong to
  std::vector<int> indices_;
  std::vector<MPI_Status> statuses_;
};

}  // namespace tandem::mpi
