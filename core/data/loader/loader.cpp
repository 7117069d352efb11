#include "core/data/loader/loader.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <iterator>
#include <limits>
#include <mutex>
#include <thread>

#include "core/base/parallel.h"
#include "core/data/loader/batch_filler.h"

namespace tandem {
namespace {

// Decoder threads have a lower priority than threads that compute: a late sample costs nothing
// while other batches are ready, a late kernel delays the step.
void become_decoder(int number) {
  pthread_setname_np(pthread_self(), fmt::format("decoder-{}", number).c_str());
  const auto thread = static_cast<id_t>(gettid());
  setpriority(PRIO_PROCESS, thread, getpriority(PRIO_PROCESS, thread) + 5);
}

enum class SlotStatus { free, filling, ready, delivered };

struct Slot {
  std::byte* memory = nullptr;
  SlotStatus status = SlotStatus::free;
  int64_t number = -1;  // of its batch
  int64_t rows_left = 0;
  BatchFiller::BadRows bad;
  std::exception_ptr failure;
};

}  // namespace

struct Loader::State {
  State(const Dataset& data, const LoaderOptions& loader_options, const Allocator& pinned)
      : options(loader_options),
        allocator(pinned),
        filler(data, options),
        slots(size_t(options.slots)),
        next_batch(options.first_batch),
        end_batch(end_of(options, data.size())),
        bad(options.bad_share_limit, data.size()) {}
  ~State() {
    stop();
    for (const Slot& slot : slots) {
      if (slot.memory != nullptr) allocator.free(slot.memory);
    }
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // The number after the last batch.
  static int64_t end_of(const LoaderOptions& options, int64_t size) {
    int64_t end = std::numeric_limits<int64_t>::max();
    if (options.batch_count >= 0) end = options.first_batch + options.batch_count;
    if (!options.wrap) end = std::min(end, (size + options.batch - 1) / options.batch);
    return end;
  }

  void reserve() {
    for (Slot& slot : slots) {
      slot.memory = static_cast<std::byte*>(allocator.allocate(filler.layout().bytes));
      if (slot.memory == nullptr) {
        throw error("no memory for {} prefetched batches of {} bytes", slots.size(),
                    filler.layout().bytes);
      }
      std::fill_n(slot.memory, filler.layout().bytes, std::byte{0});
    }
  }

  void start() {
    int count = options.threads;
    if (count == 0) count = std::max(2, processor_count() / 2);
    for (int i = 0; i < count; ++i) threads.emplace_back([this, i] { work(i); });
  }

  void stop() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
    }
    space.notify_all();
    for (std::thread& thread : threads) thread.join();
  }

  // Takes a free slot for the next batch; false if there is none. Called with the lock held.
  bool begin_batch() {
    for (size_t i = 0; i < slots.size(); ++i) {
      Slot& slot = slots[i];
      if (slot.status != SlotStatus::free) continue;
      slot.status = SlotStatus::filling;
      slot.number = next_batch++;
      slot.rows_left = options.batch;
      slot.bad.clear();
      slot.failure = nullptr;
      current = &slot;
      next_row = 0;
      in_order.push_back(i);
      return true;
    }
    return false;
  }

  // A thread's loop.
  void work(int number) {
    become_decoder(number);
    std::unique_lock lock(mutex);
    while (!stopping) {
      if (current == nullptr) {
        if (next_batch >= end_batch) return;
        if (!begin_batch()) {
          space.wait(lock);
          continue;
        }
        space.notify_all();  // the rows of this batch are work for every thread
      }
      fill_rows(*current, number, lock);
    }
  }

  // The next rows of the current batch, with the lock open meanwhile.
  void fill_rows(Slot& slot, int thread, std::unique_lock<std::mutex>& lock) {
    const int64_t batch = slot.number, first = next_row;
    const int64_t last = std::min(first + BatchFiller::rows_together, options.batch);
    next_row = last;
    if (last == options.batch) current = nullptr;
    lock.unlock();
    const auto begin = std::chrono::steady_clock::now();
    try {
      BatchFiller::BadRows bad_rows = filler.fill(slot.memory, batch, first, last, stopping);
      lock.lock();
      std::move(bad_rows.begin(), bad_rows.end(), std::back_inserter(slot.bad));
    } catch (...) {
      if (!lock.owns_lock()) lock.lock();
      slot.failure = std::current_exception();
    }
    const bool is_timed =
        batch >= options.timed_from && batch < options.timed_from + options.timed_count;
    if (is_timed) spans.push_back({thread, batch, begin, std::chrono::steady_clock::now()});
    slot.rows_left -= last - first;
    if (slot.rows_left > 0) return;
    std::sort(slot.bad.begin(), slot.bad.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    slot.status = SlotStatus::ready;
    ready.notify_all();
  }

  // Counted on delivery, so that a limit is exceeded at the same batch whatever the threads do.
  void account(const Slot& slot) {
    std::vector<BadSample> damaged;
    for (const auto& [row, one] : slot.bad) damaged.push_back(one);
    bad.add(slot.number, filler.rows_with_data(slot.number), damaged);
    if (slot.failure) std::rethrow_exception(slot.failure);
  }

  const LoaderOptions options;
  const Allocator allocator;
  const BatchFiller filler;
  std::vector<std::thread> threads;

  mutable std::mutex mutex;
  std::condition_variable space;  // a slot became free, or stop
  std::condition_variable ready;  // the batch that is to be delivered is filled
  std::vector<Slot> slots;
  std::deque<size_t> in_order;  // slots with a batch that is not yet delivered
  int64_t next_batch, end_batch;
  Slot* current = nullptr;  // whose rows threads are taking
  int64_t next_row = 0;
  std::atomic<bool> stopping = false;
  BadSamples bad;
  double waited = 0;
  std::vector<LoadSpan> spans;
  std::exception_ptr failure;
};

void require_decode_threads(int threads) {
  constexpr int max_threads = 1024;  // far more than cores; a system may refuse so many
  if (threads >= 0 && threads <= max_threads) return;
  throw error("--decode-threads {}: from 1 to {}, or 0: by the number of cores", threads,
              max_threads);
}

Loader::Loader(const Dataset& dataset, const LoaderOptions& options, const Allocator& allocator) {
  if (options.batch < 1) throw error("batch {} must be at least 1", options.batch);
  if (options.slots < 1)
    throw error("{} prefetched batches: there must be at least 1", options.slots);
  require_decode_threads(options.threads);
  if (options.first_batch < 0) throw error("first batch {} is below 0", options.first_batch);
  state_ = std::make_unique<State>(dataset, options, allocator);
  state_->reserve();
  state_->start();
}

Loader::~Loader() = default;

Batch Loader::next() {
  State& s = *state_;
  std::unique_lock lock(s.mutex);
  if (s.failure) std::rethrow_exception(s.failure);
  if (s.in_order.empty() && s.current == nullptr && s.next_batch >= s.end_batch) {
    throw error("there is no batch {}: the loader was made for the batches up to it", s.next_batch);
  }
  const auto begin = std::chrono::steady_clock::now();
  s.ready.wait(lock, [&] {
    return !s.in_order.empty() && s.slots[s.in_order.front()].status == SlotStatus::ready;
  });
  s.waited += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const size_t index = s.in_order.front();
  Slot& slot = s.slots[index];
  try {
    s.account(slot);
  } catch (...) {
    s.failure = std::current_exception();
    throw;
  }
  s.in_order.pop_front();
  slot.status = SlotStatus::delivered;
  Batch batch;
  batch.number = slot.number;
  batch.epoch = s.filler.epoch(slot.number);
  batch.samples = s.filler.rows_with_data(slot.number) - static_cast<int64_t>(slot.bad.size());
  batch.memory = slot.memory;
  batch.slot = static_cast<int>(index);
  return batch;
}

void Loader::release(const Batch& batch) {
  State& s = *state_;
  {
    const std::lock_guard lock(s.mutex);
    Slot& slot = s.slots.at(size_t(batch.slot));
    if (slot.status != SlotStatus::delivered || slot.number != batch.number) {
      throw error("batch {} was released, but is not on loan", batch.number);
    }
    slot.status = SlotStatus::free;
  }
  s.space.notify_all();
}

const BatchLayout& Loader::layout() const {
  return state_->filler.layout();
}

double Loader::waited_seconds() const {
  const std::lock_guard lock(state_->mutex);
  return state_->waited;
}

std::vector<LoadSpan> Loader::spans() const {
  const std::lock_guard lock(state_->mutex);
  return state_->spans;
}

std::vector<BadSample> Loader::bad_samples() const {
  const std::lock_guard lock(state_->mutex);
  return state_->bad.list();
}

}  // namespace tandem
