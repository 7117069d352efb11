// A transport between devices of ranks that are threads of one process, for tests: a link is a
// queue of messages. It notes what it is asked for, and a test says which end cannot be opened.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "core/plugin/host.h"
#include "core/plugin/registry.h"
#include "plugins/abi.h"

namespace tandem::test {

class ThreadLinks {
 public:
  // One at a time; the links of a test are those of the newest.
  ThreadLinks() { current() = this; }

  // Why the end of a link cannot be opened; "": it can. Links are numbered as their keys are made.
  std::function<std::string(int link, bool receives)> refuses;

  // "transfer ends", "close to send" and "close to receive", in order. For when all are closed.
  std::vector<std::string> calls;
  std::vector<double> waits_of_close;  // that were allowed
  int opened = 0, closed = 0, aborted = 0;

  // The backend and data sets of the default registry, and this transport for devices of a kind.
  [[nodiscard]] static Registry registry_with(const char* kind) {
    table().device_kind = kind;
    Registry registry = Registry::with_defaults();
    registry.load([](const tandem_host*) { return &plugin(); });
    return registry;
  }
  // Until a transfer has begun.
  void wait_for_transfer() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return begun_ > 0; });
  }

 private:
  struct Wire {
    std::deque<std::string> messages;
    int ends = 0, closed = 0;
    bool is_refused = false;  // by one of its ends
  };
  struct End {
    ThreadLinks* links;
    Wire* wire;
    bool receives;
    bool is_aborted = false;
  };

  static ThreadLinks*& current() {
    static ThreadLinks* links = nullptr;
    return links;
  }
  static End& of(tandem_device_link* link) { return *reinterpret_cast<End*>(link); }
  static tandem_status failed(const std::string& reason) {
    host_table().explain(reason.c_str());
    return TANDEM_FAILED;
  }

  static tandem_status make_key(void* key) {
    const std::lock_guard lock(current()->mutex_);
    std::memcpy(key, &current()->keys_, sizeof(int));
    ++current()->keys_;
    return TANDEM_OK;
  }
  static tandem_status open(const tandem_call*, const void* key, int32_t receives, double seconds,
                            tandem_device_link** link) {
    ThreadLinks& links = *current();
    int number = 0;
    std::memcpy(&number, key, sizeof(number));
    const std::string refusal = links.refuses ? links.refuses(number, receives != 0) : "";
    std::unique_lock lock(links.mutex_);
    Wire& wire = links.wires_[number];
    wire.is_refused = wire.is_refused || !refusal.empty();
    ++wire.ends;
    links.changed_.notify_all();
    if (!refusal.empty()) return failed(refusal);
    const bool is_met = links.changed_.wait_for(lock, std::chrono::duration<double>(seconds),
                                                [&] { return wire.ends == 2; });
    if (!is_met || wire.is_refused) return failed("the other end does not come");
    ++links.opened;
    *link = reinterpret_cast<tandem_device_link*>(new End{&links, &wire, receives != 0});
    return TANDEM_OK;
  }
  static tandem_status transfer(tandem_device_link* link, const tandem_call*, void* memory,
                                int64_t bytes) {
    End& end = of(link);
    std::unique_lock lock(end.links->mutex_);
    std::deque<std::string>& messages = end.wire->messages;
    const auto size = static_cast<size_t>(bytes);
    if (!end.receives) messages.emplace_back(static_cast<const char*>(memory), size);
    ++end.links->begun_;
    end.links->changed_.notify_all();
    end.links->changed_.wait(lock,
                             [&] { return end.is_aborted || !end.receives || !messages.empty(); });
    end.links->calls.emplace_back("transfer ends");
    if (end.is_aborted) return failed("this end was aborted");
    if (!end.receives) return TANDEM_OK;
    if (messages.front().size() != size) return failed("a message of another size");
    std::memcpy(memory, messages.front().data(), size);
    messages.pop_front();
    return TANDEM_OK;
  }
  static void abort(tandem_device_link* link) {
    End& end = of(link);
    const std::lock_guard lock(end.links->mutex_);
    if (!end.is_aborted) ++end.links->aborted;
    end.is_aborted = true;
    end.links->changed_.notify_all();
  }
  static void close(tandem_device_link* link, double seconds) {
    End& end = of(link);
    ThreadLinks& links = *end.links;
    {
      std::unique_lock lock(links.mutex_);
      ++links.closed;
      ++end.wire->closed;
      links.waits_of_close.push_back(seconds);
      links.calls.emplace_back(end.receives ? "close to receive" : "close to send");
      links.changed_.notify_all();
      links.changed_.wait_for(lock, std::chrono::duration<double>(seconds),
                              [&] { return end.is_aborted || end.wire->closed == 2; });
    }
    delete &end;
  }

  static tandem_device_transport& table() {
    static tandem_device_transport table{sizeof(tandem_device_transport),
                                         "cpu",
                                         "threads of one process",
                                         &make_key,
                                         &open,
                                         &transfer,
                                         [](tandem_device_link*) { return tandem_status{}; },
                                         &abort,
                                         &close};
    return table;
  }
  static const tandem_plugin& plugin() {
    static const tandem_device_transport* tables[] = {&table()};
    static const tandem_transports part{sizeof(tandem_transports),
                                        TANDEM_TRANSPORTS_MAJOR,
                                        TANDEM_TRANSPORTS_MINOR,
                                        0,
                                        nullptr,
                                        1,
                                        tables};
    static const tandem_plugin plugin = [] {
      tandem_plugin result{};
      result.abi_major = TANDEM_ABI_MAJOR;
      result.abi_minor = TANDEM_ABI_MINOR;
      result.struct_size = sizeof result;
      result.name = "thread-links";
      result.version = "1";
      result.transports = &part;
      return result;
    }();
    return plugin;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int, Wire> wires_;
  int keys_ = 0, begun_ = 0;
};

}  // namespace tandem::test
