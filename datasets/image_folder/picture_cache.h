// Keeps decoded pictures in memory, as many as fit: for small pictures that are read in every
// epoch. The first ones stay to the end. Which ones are kept changes no pixel. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "datasets/picture/picture.h"

namespace tandem::image_folder {

class PictureCache {
 public:
  // For pictures 0 to count - 1, at most `bytes` in all; 0: keeps nothing.
  PictureCache(size_t count, int64_t bytes);
  ~PictureCache();
  PictureCache(const PictureCache&) = delete;
  PictureCache& operator=(const PictureCache&) = delete;

  struct Kept {
    picture::Size whole;  // of the picture, before it was shrunk
    bool can_shrink = false;
    picture::View view;  // all of it
    std::unique_ptr<unsigned char[]> pixels;
  };
  // Null if it is not kept; otherwise valid as long as the cache.
  [[nodiscard]] const Kept* find(size_t index) const {
    return bytes_ == 0 ? nullptr : kept_[index].load(std::memory_order_acquire);
  }
  // Whether a picture of so many bytes would be kept now.
  [[nodiscard]] bool has_room(int64_t bytes) const {
    return used_.load(std::memory_order_relaxed) + bytes <= bytes_;
  }
  // Copies the view of a whole picture if there is room.
  void keep(size_t index, const picture::Size& whole, bool can_shrink, const picture::View& view);

 private:
  int64_t bytes_;
  std::atomic<int64_t> used_ = 0;
  std::vector<std::atomic<const Kept*>> kept_;
};

}  // namespace tandem::image_folder
