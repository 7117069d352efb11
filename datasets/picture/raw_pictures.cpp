#include "datasets/picture/raw_pictures.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "datasets/picture/hash.h"
#include "datasets/picture/held_out.h"
#include "datasets/picture/names.h"

namespace tandem::picture {
namespace {

// One picture with the channels that the net takes, as rows of interleaved pixels, B first.
View arranged(const std::vector<unsigned char>& stored, const RawForm& form, int channels,
              std::vector<unsigned char>& buffer) {
  const auto plane = static_cast<size_t>(form.height) * static_cast<size_t>(form.width);
  const View view{nullptr, form.width, form.height, channels,
                  static_cast<std::ptrdiff_t>(form.width) * channels};
  buffer.resize(plane * static_cast<size_t>(channels));
  unsigned char* to = buffer.data();
  for (size_t i = 0; i < plane; ++i) {
    const int red = stored[i];
    const int green = form.rgb_planes ? stored[plane + i] : red;
    const int blue = form.rgb_planes ? stored[2 * plane + i] : red;
    if (channels == 1) {
      // ITU-R BT.601 with 14 bits
      *to++ = static_cast<unsigned char>((red * 4899 + green * 9617 + blue * 1868 + 8192) >> 14);
    } else {
      *to++ = static_cast<unsigned char>(blue);
      *to++ = static_cast<unsigned char>(green);
      *to++ = static_cast<unsigned char>(red);
    }
  }
  View result = view;
  result.pixels = buffer.data();
  return result;
}

}  // namespace

DataFile::DataFile(const std::string& path)
    : path_(path), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (descriptor_ < 0) throw sdk::invalid(path, ": cannot be read: ", std::strerror(errno));
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor_);
    throw sdk::invalid(path, ": is no ordinary file");
  }
  size_ = status.st_size;
}

DataFile::DataFile(DataFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_) {}

DataFile::~DataFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool DataFile::read(int64_t offset, unsigned char* target, size_t count) const {
  for (size_t done = 0; done < count;) {
    const ssize_t got = ::pread(descriptor_, target + done, count - done,
                                static_cast<off_t>(offset + static_cast<int64_t>(done)));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += static_cast<size_t>(got);
  }
  return true;
}

std::vector<sdk::Parameter> RawPictures::parameters_of(const char* block) {
  std::vector<sdk::Parameter> parameters = transform_parameters(block);
  parameters.push_back(sdk::number(block, "val_fraction")
                           .by_default("0.2")
                           .range(0, 1)
                           .help("share of each class held out for validation"));
  return parameters;
}

void RawPictures::begin(const tandem_dataset_request& request, const sdk::Attributes& attributes,
                        const RawForm& form, std::vector<std::string> class_names, bool drawn) {
  form_ = form;
  tandem_dataset_request wanted = request;
  if (wanted.shape.c == 0) wanted.shape.c = form.channels;
  transform_ = read_transform(wanted, attributes);
  if (transform_.height == 0) transform_.height = form.height;
  if (transform_.width == 0) transform_.width = form.width;
  class_names_ = std::move(class_names);
  if (request.class_names == nullptr) demand_two_classes();
  if (drawn) take_part(request, attributes.number("val_fraction"));
  adopt_classes(request.class_names);
}

void RawPictures::demand_two_classes() const {
  const int64_t first = samples_.at(0).label;
  const bool alike = std::all_of(samples_.begin(), samples_.end(),
                                 [first](const Sample& sample) { return sample.label == first; });
  if (alike) {
    throw sdk::invalid("there is one class only, '", class_names_[static_cast<size_t>(first)],
                       "'; a classifier needs at least two");
  }
}

// Every split is mapped by name, whatever the numbers in its files are.
void RawPictures::adopt_classes(const char* model_classes) {
  if (model_classes == nullptr) return;
  std::vector<std::string> model;
  std::istringstream lines(model_classes);
  for (std::string line; std::getline(lines, line);) model.push_back(line);
  std::vector<int64_t> number(class_names_.size(), -1);
  for (size_t c = 0; c < class_names_.size(); ++c) {
    const auto found = std::find(model.begin(), model.end(), class_names_[c]);
    if (found != model.end()) number[c] = found - model.begin();
  }
  for (Sample& sample : samples_) {
    const auto c = static_cast<size_t>(sample.label);
    if (number[c] < 0) {
      throw sdk::invalid("class '", class_names_[c], "' is unknown to the model",
                         did_you_mean(class_names_[c], model), "; known classes: ", list_of(model));
    }
    sample.label = number[c];
  }
  class_names_ = model;
}

void RawPictures::take_part(const tandem_dataset_request& request, double fraction) {
  const bool training = std::strcmp(request.split, "train") == 0;
  std::vector<std::vector<Sample>> by_class(class_names_.size());
  for (const Sample& sample : samples_) {
    by_class[static_cast<size_t>(sample.label)].push_back(sample);
  }
  samples_.clear();
  for (size_t c = 0; c < by_class.size(); ++c) {
    const std::vector<bool> held =
        choose_held_out(class_names_[c], by_class[c].size(), fraction, request.seed);
    for (size_t i = 0; i < held.size(); ++i) {
      if (held[i] != training) samples_.push_back(by_class[c][i]);
    }
  }
  split_is_drawn_ = true;
  if (samples_.empty()) {
    throw sdk::invalid("val_fraction ", fraction, " leaves no picture ",
                       training ? "to train on" : "for validation");
  }
  if (training) {
    notes_ = sdk::text(std::round(fraction * 1000) / 10, " % of every class are held out (seed ",
                       request.seed, ")");
  }
}

const char* RawPictures::class_name(int64_t index) const {
  return class_names_.at(static_cast<size_t>(index)).c_str();
}

const char* RawPictures::sample_name(int64_t index) const {
  const Sample& sample = samples_.at(static_cast<size_t>(index));
  const std::lock_guard lock(names_mutex_);
  std::string& name = names_[index];
  if (name.empty()) name = sdk::text(files_[sample.file].path(), ", picture ", sample.number);
  return name.c_str();
}

int64_t RawPictures::label(int64_t index) const {
  return samples_.at(static_cast<size_t>(index)).label;
}

void RawPictures::read_pixels(const Sample& sample, std::vector<unsigned char>& pixels) const {
  pixels.resize(static_cast<size_t>(form_.channels) * static_cast<size_t>(form_.height) *
                static_cast<size_t>(form_.width));
  if (!files_[sample.file].read(sample.offset, pixels.data(), pixels.size())) {
    throw sdk::skip("cannot be read at byte ", sample.offset,
                    ": the file became shorter meanwhile, or its disk failed");
  }
}

void RawPictures::get(int64_t index, uint64_t seed, float* pixels, float* label) const {
  thread_local std::vector<unsigned char> stored, rows;
  const Sample& sample = samples_.at(static_cast<size_t>(index));
  read_pixels(sample, stored);
  const View view = arranged(stored, form_, static_cast<int>(transform_.channels), rows);
  const Size whole{form_.width, form_.height};
  const auto number = static_cast<uint64_t>(index);
  transform(view, whole, make_plan(whole, transform_, number, seed), transform_, number, seed,
            pixels);
  *label = static_cast<float>(sample.label);
}

void RawPictures::describe(int64_t index, tandem_sample_info& info) const {
  thread_local std::vector<unsigned char> stored;
  read_pixels(samples_.at(static_cast<size_t>(index)), stored);
  info.channels = form_.channels;
  info.width = form_.width;
  info.height = form_.height;
  info.bytes = static_cast<int64_t>(stored.size());
  info.content = hash_of(stored);
  info.format = form_.format;
}

}  // namespace tandem::picture
