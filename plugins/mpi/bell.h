// What ends the sleep of the thread that calls MPI: this process or another one of the host rings,
// something happens on a TCP connection of this process, or another process ends. So the thread
// need not ask MPI all the time whether a message has come. Where the system refuses what that
// takes, the thread wakes every millisecond instead. Linux.
#pragma once

#include <array>
#include <chrono>

namespace tandem::mpi {

class Bell {
 public:
  using Address = std::array<char, 8>;  // of a bell on this host; plain memory
  enum class Woken { by_bell, by_connection, by_end, by_time };

  Bell();
  ~Bell();
  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;

  [[nodiscard]] const Address& address() const { return address_; }

  // Ends the wait of another bell's thread, or its next one. False: there is no such bell, as seen
  // from this process. Thread-safe.
  [[nodiscard]] bool ring(const Address& other) const;
  void ring() const { static_cast<void>(ring(address_)); }

  // From now on all connections that the process has by now are heard. Nobody is told of later
  // ones.
  void hear_connections() const;
  // The end of a process, of which this is a file descriptor (pidfd_open), wakes once.
  void hear_end(int process_file) const;

  // Of one thread.
  [[nodiscard]] Woken wait(std::chrono::microseconds longest) const;

 private:
  [[nodiscard]] bool make();
  void remove();

  int socket_ = -1, events_ = -1;
  Address address_{};
};

}  // namespace tandem::mpi
