#include "datasets/image_folder/pack_writer.h"

#include <turbojpeg.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <mutex>
#include <thread>

#include "datasets/image_folder/image_headers.h"
#include "datasets/image_folder/new_file.h"
#include "datasets/image_folder/pack_file.h"
#include "datasets/picture/bytes.h"
#include "datasets/picture/transform.h"
#include "plugins/random.h"

namespace tandem::image_folder {
namespace {

constexpr size_t chunk = 256;  // pictures encoded at a time, by all threads
constexpr uint32_t order_layer = 0x7061636b;

std::string to_jpeg(const std::vector<unsigned char>& pixels, int width, int height, int quality) {
  thread_local const std::unique_ptr<void, int (*)(tjhandle)> encoder(tjInitCompress(), &tjDestroy);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  const int status = tjCompress2(encoder.get(), pixels.data(), width, 3 * width, height, TJPF_BGR,
                                 &bytes, &size, TJSAMP_420, quality, TJFLAG_ACCURATEDCT);
  const std::unique_ptr<unsigned char, void (*)(unsigned char*)> owner(bytes, &tjFree);
  if (status != 0) throw sdk::failed("libjpeg-turbo: ", tjGetErrorStr2(encoder.get()));
  return {reinterpret_cast<const char*>(bytes), size};
}

struct Made {
  std::string bytes, reason;
  bool by_levels = false;  // of over 8 bits a channel, made 8 bits
};

// The picture with its shorter side at most `side`, as a file.
Made packed(Reader& reader, Bytes file, int64_t side, int quality) {
  const picture::Size whole = reader.open(file);
  const int shorter = std::min(whole.width, whole.height);
  const std::string as_it_is(reinterpret_cast<const char*>(file.data()), file.size());
  if (side == 0 || shorter <= side) {
    (void)reader.decode_all();  // damage is found now, not in every epoch
    return {as_it_is, ""};
  }
  const double scale = static_cast<double>(side) / shorter;
  const int width = std::max(1, static_cast<int>(std::lround(whole.width * scale)));
  const int height = std::max(1, static_cast<int>(std::lround(whole.height * scale)));
  picture::Plan plan;
  plan.region = {0, 0, static_cast<double>(whole.width), static_cast<double>(whole.height)};
  plan.size = {width, height};
  const int shrink = reader.can_shrink() ? picture::possible_shrink(plan) : 1;
  const picture::View view = reader.decode(shrink, picture::needed_part(whole, shrink, plan));
  thread_local std::vector<float> planes;
  thread_local std::vector<unsigned char> pixels;
  const auto count = static_cast<size_t>(width) * static_cast<size_t>(height);
  planes.resize(3 * count);
  pixels.resize(3 * count);
  picture::resample(view, whole, plan.region, {}, {planes.data(), 3, height, width});
  for (size_t i = 0; i < count; ++i) {
    for (size_t c = 0; c < 3; ++c) {
      const float value = std::clamp(planes[c * count + i], 0.0F, 255.0F);
      pixels[3 * i + c] = static_cast<unsigned char>(std::lround(value));
    }
  }
  return {to_jpeg(pixels, width, height, quality), "", reader.values().are_deep};
}

class Packer {
 public:
  Packer(const tandem_pack_request& request, const std::vector<const ImageSet*>& sets)
      : request_(request), sets_(sets), file_(request.path) {
    for (uint32_t s = 0; s < request.split_count; ++s)
      index_.splits.emplace_back(request.splits[s]);
    index_.task = sets[0]->task();
    for (int64_t c = 0; c < sets[0]->class_count(); ++c) {
      index_.class_names.emplace_back(sets[0]->class_name(c));
    }
    choose_order();
  }

  void write() {
    file_.append(std::string(pack_header_bytes, '\0'));
    for (size_t begin = 0; begin < order_.size(); begin += chunk) {
      write_chunk(begin, std::min(begin + chunk, order_.size()));
      const auto done = static_cast<int64_t>(std::min(begin + chunk, order_.size()));
      if (request_.progress != nullptr &&
          request_.progress(request_.user, done, static_cast<int64_t>(order_.size())) != 0) {
        throw sdk::failed("the packing was stopped; '", request_.path, "' was not written");
      }
    }
    if (index_.pictures.empty()) throw sdk::invalid("all ", order_.size(), " images are damaged");
    PackHeader header;
    header.levels = levels_;
    header.version = index_.task == TANDEM_TASK_CLASSES ? 1 : 2;
    const std::string index = to_bytes(index_);
    header.index_offset = file_.size();
    header.index_bytes = index.size();
    header.index_hash =
        picture::hash_of({reinterpret_cast<const unsigned char*>(index.data()), index.size()});
    file_.append(index);
    header.file_bytes = file_.size();
    file_.finish(to_bytes(header));
  }

 private:
  struct Place {
    uint32_t split;
    int64_t index;
  };

  void choose_order() {
    for (uint32_t s = 0; s < request_.split_count; ++s) {
      for (int64_t i = 0; i < sets_[s]->size(); ++i) order_.push_back({s, i});
    }
    for (size_t i = order_.size(); i > 1; --i) {
      const uint32_t bits = tandem_random_block(request_.seed, 0, order_layer, i, 0).value[0];
      std::swap(order_[i - 1], order_[static_cast<uint64_t>(bits) * i >> 32]);
    }
  }

  void write_chunk(size_t begin, size_t end) {
    std::vector<Made> made(end - begin);
    std::atomic<size_t> next = begin;
    std::exception_ptr failure;
    std::mutex mutex;
    const auto work = [&] {
      try {
        for (size_t i = next++; i < end; i = next++) made[i - begin] = make(order_[i]);
      } catch (...) {
        const std::lock_guard lock(mutex);
        failure = std::current_exception();
      }
    };
    std::vector<std::thread> threads;
    for (int i = 1; i < request_.threads; ++i) threads.emplace_back(work);
    work();
    for (std::thread& thread : threads) thread.join();
    if (failure) std::rethrow_exception(failure);
    for (size_t i = begin; i < end; ++i) add(order_[i], made[i - begin]);
  }

  Made make(const Place& place) const {
    const char* name = sets_[place.split]->sample_name(place.index);
    try {
      const ThreadReader reader(false, sets_[place.split]->levels());
      return packed(*reader, reader->load(name), request_.shorter_side, request_.quality);
    } catch (const sdk::Refusal& damaged) {
      if (damaged.status() != TANDEM_SKIP) throw;
      return {"", damaged.what()};
    }
  }

  void add(const Place& place, const Made& made) {
    const ImageSet& set = *sets_[place.split];
    if (!made.reason.empty()) {
      if (request_.left_out != nullptr) {
        request_.left_out(request_.user, set.sample_name(place.index), made.reason.c_str());
      }
      return;
    }
    PackedPicture one;
    one.offset = file_.size();
    one.bytes = static_cast<uint32_t>(made.bytes.size());
    one.label = static_cast<uint32_t>(set.label(place.index));
    one.split = place.split;
    one.hash = picture::hash_of(
        {reinterpret_cast<const unsigned char*>(made.bytes.data()), made.bytes.size()});
    one.name = set.name_in_source(place.index);
    if (index_.task != TANDEM_TASK_CLASSES) {
      one.targets.resize(index_.class_names.size());
      set.targets(place.index, one.targets.data());
    }
    if (made.by_levels) levels_ = set.levels();
    file_.append(made.bytes);
    index_.pictures.push_back(std::move(one));
  }

  const tandem_pack_request& request_;
  const std::vector<const ImageSet*>& sets_;
  NewFile file_;
  PackIndex index_;
  Levels levels_;
  std::vector<Place> order_;
};

}  // namespace

void write_pack(const tandem_pack_request& request, const std::vector<const ImageSet*>& sets) {
  Packer(request, sets).write();
}

}  // namespace tandem::image_folder
