#include "datasets/image_folder/picture_cache.h"

#include <algorithm>

namespace tandem::image_folder {

PictureCache::PictureCache(size_t count, int64_t bytes)
    : bytes_(bytes), kept_(bytes == 0 ? 0 : count) {}

PictureCache::~PictureCache() {
  for (const std::atomic<const Kept*>& one : kept_) delete one.load();
}

void PictureCache::keep(size_t index, const picture::Size& whole, bool can_shrink,
                        const picture::View& view) {
  const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(view.width) * view.channels;
  const int64_t bytes = row * view.height;
  if (used_.fetch_add(bytes, std::memory_order_relaxed) + bytes > bytes_) {
    used_.fetch_sub(bytes, std::memory_order_relaxed);
    return;
  }
  auto made = std::make_unique<Kept>();
  made->pixels = std::make_unique_for_overwrite<unsigned char[]>(static_cast<size_t>(bytes));
  for (int y = 0; y < view.height; ++y) {
    std::copy_n(view.pixels + y * view.stride, row, made->pixels.get() + y * row);
  }
  made->whole = whole;
  made->can_shrink = can_shrink;
  made->view = view;
  made->view.pixels = made->pixels.get();
  made->view.stride = row;
  const Kept* expected = nullptr;
  // Where every class is balanced, two threads may have the same picture at a time.
  if (kept_[index].compare_exchange_strong(expected, made.get(), std::memory_order_release)) {
    static_cast<void>(made.release());
  } else {
    used_.fetch_sub(bytes, std::memory_order_relaxed);
  }
}

}  // namespace tandem::image_folder
