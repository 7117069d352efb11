#include "plugins/mpi/bell.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>

namespace tandem::mpi {

namespace {

constexpr socklen_t address_bytes = Bell::Address().size();
constexpr uint64_t is_process = uint64_t{1} << 32;      // in the data of an event, beside the file
constexpr auto unheard = std::chrono::milliseconds(1);  // the longest sleep without a bell

bool is_tcp(int file) {
  int domain = 0, type = 0;
  socklen_t size = sizeof(int);
  if (getsockopt(file, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0) return false;
  if (getsockopt(file, SOL_SOCKET, SO_TYPE, &type, &size) != 0) return false;
  return (domain == AF_INET || domain == AF_INET6) && type == SOCK_STREAM;
}

}  // namespace

Bell::Bell() {
  if (!make()) remove();
}

Bell::~Bell() {
  remove();
}

// The system gives an address without a file to a socket that is bound to none.
bool Bell::make() {
  socket_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  events_ = epoll_create1(EPOLL_CLOEXEC);
  sockaddr_un any{};
  any.sun_family = AF_UNIX;
  sockaddr_un given{};
  socklen_t size = sizeof(given);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = socket_;
  if (socket_ < 0 || events_ < 0 ||
      bind(socket_, reinterpret_cast<const sockaddr*>(&any), sizeof(sa_family_t)) != 0 ||
      getsockname(socket_, reinterpret_cast<sockaddr*>(&given), &size) != 0 ||
      size != address_bytes || epoll_ctl(events_, EPOLL_CTL_ADD, socket_, &event) != 0) {
    return false;
  }
  std::memcpy(address_.data(), &given, address_bytes);
  return true;
}

void Bell::remove() {
  for (int* file : {&socket_, &events_}) {
    if (*file >= 0) close(*file);
    *file = -1;
  }
}

bool Bell::ring(const Address& other) const {
  sockaddr_un to{};
  std::memcpy(&to, other.data(), address_bytes);
  const auto sent = sendto(socket_, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL,
                           reinterpret_cast<const sockaddr*>(&to), address_bytes);
  return sent == 1 || (sent < 0 && errno == EAGAIN);  // full: it rings already
}

// A transport may read less than has come, so that a connection would be ready all the time: only
// what is new on it is an event.
void Bell::hear_connections() const {
  if (events_ < 0) return;
  std::error_code none;
  // The loop over a range would throw where the folder cannot be read on.
  for (std::filesystem::directory_iterator entry("/proc/self/fd", none), end; !none && entry != end;
       entry.increment(none)) {
    const std::string name = entry->path().filename();
    int file = -1;
    std::from_chars(name.data(), name.data() + name.size(), file);
    if (file < 0 || !is_tcp(file)) continue;
    epoll_event event{};
    event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
    event.data.fd = file;
    epoll_ctl(events_, EPOLL_CTL_ADD, file, &event);  // EEXIST: it is heard already
  }
}

void Bell::hear_end(int process_file) const {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLET;
  event.data.u64 = is_process | static_cast<uint64_t>(process_file);
  if (events_ >= 0) epoll_ctl(events_, EPOLL_CTL_ADD, process_file, &event);
}

Bell::Woken Bell::wait(std::chrono::microseconds longest) const {
  if (events_ < 0) {
    std::this_thread::sleep_for(std::min<std::chrono::microseconds>(longest, unheard));
    return Woken::by_time;
  }
  const timespec time{longest.count() / 1'000'000, longest.count() % 1'000'000 * 1000};
  pollfd ready{events_, POLLIN, 0};
  if (ppoll(&ready, 1, &time, nullptr) <= 0) return Woken::by_time;
  std::array<epoll_event, 64> events{};
  const int count = epoll_wait(events_, events.data(), static_cast<int>(events.size()), 0);
  const auto have = [&](const auto& condition) {
    return std::any_of(events.begin(), events.begin() + std::max(count, 0), condition);
  };
  if (have([](const epoll_event& e) { return (e.data.u64 & is_process) != 0; })) {
    return Woken::by_end;
  }
  if (!have([&](const epoll_event& e) { return e.data.fd == socket_; })) {
    return Woken::by_connection;
  }
  char byte = 0;
  while (recv(socket_, &byte, 1, MSG_DONTWAIT) >= 0) {
  }
  return Woken::by_bell;
}

}  // namespace tandem::mpi
