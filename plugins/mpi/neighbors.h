// The other ranks of this host. Each rank counts in memory of all what it has begun to send to each
// other one, and to receive from it, and rings the other's bell. So both know whether a message has
// begun on both sides. Until then there is nothing to ask MPI about. A rank whose process ends
// rings all bells of the host.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include "plugins/mpi/bell.h"

namespace tandem::mpi {

class Neighbors {
 public:
  // Called by all ranks after MPI_Init. Where memory or bells are not shared with all other ranks
  // of the host, as between containers, there are no neighbors.
  explicit Neighbors(const Bell& bell);
  ~Neighbors();
  Neighbors(const Neighbors&) = delete;
  Neighbors& operator=(const Neighbors&) = delete;

  // A rank of MPI_COMM_WORLD. False for this rank itself.
  [[nodiscard]] bool have(int rank) const { return place(rank) >= 0; }

  // Messages of a channel, in one direction between two ranks, are counted on both sides in the
  // same order.
  struct Message {
    bool is_sent;  // by this rank
    int peer, channel;
    uint32_t number;
  };
  // This rank has asked MPI to send to the neighbor, or to receive from it.
  [[nodiscard]] Message begin(bool is_sent, int peer, int channel);
  [[nodiscard]] bool has_begun_on_both_sides(const Message& message) const;

  void ring(int peer) const;

  // A neighbor whose process has ended; -1: none, as far as the system tells.
  [[nodiscard]] int ended_rank() const;
  // This rank says why the job fails. False: another one of the host has said so before.
  bool is_first_to_fail() const;

 private:
  struct Counts {
    std::atomic<uint32_t> sent, received;
  };
  struct Shared {  // and the counts after it
    std::atomic<uint32_t> has_failed;
  };

  [[nodiscard]] int place(int rank) const { return places_[static_cast<size_t>(rank)]; }
  [[nodiscard]] Counts& counts(bool is_sent, int peer, int channel) const;
  void join(MPI_Comm host);
  void map(int file, bool& is_ok);
  void watch(MPI_Comm host, const std::vector<int>& ranks);

  const Bell& bell_;
  std::vector<int> places_;  // among the ranks of the host, by rank; -1: none
  std::vector<Bell::Address> bells_;
  int me_ = 0;
  size_t bytes_ = 0;
  Shared* all_ = nullptr;
  std::vector<int> processes_;  // file descriptors, by place; -1: not watched
};

}  // namespace tandem::mpi
