#include "core/data/dataset.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "core/base/files/files.h"
#include "core/base/guarded_memory.h"
#include "core/base/numbers/random.h"
#include "core/base/running_note.h"
#include "core/base/text/strings.h"
#include "core/data/dataset_source.h"
#include "core/data/foreign_data.h"
#include "core/plugin/host.h"
#include "core/plugin/registry.h"

namespace tandem {
namespace {

// The sizes that a net leaves open are those of the images.
Shape like_image(Shape shape, const Shape& image) {
  shape.n = 1;
  if (shape.c == 0) shape.c = image.c;
  if (shape.h == 0) shape.h = image.h;
  if (shape.w == 0) shape.w = image.w;
  return shape;
}

// The shapes of the inputs whose values the data set has.
std::vector<Shape> own_inputs(const DatasetOptions& options) {
  std::vector<Shape> shapes;
  for (const MoreInput& input : options.more) {
    if (!input.filler) shapes.push_back(like_image(input.shape, {1, 0, 0, 0}));
  }
  return shapes;
}

void generate(const Filler& filler, Random random, float* values, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    double value = filler.value;
    if (filler.type == "uniform") {
      value = filler.min + (filler.max - filler.min) * random.uniform();
    } else if (filler.type == "gaussian") {
      value = filler.mean + filler.std * random.normal();
    }
    values[i] = static_cast<float>(value);
  }
}

// What a function of the data set gave, for the sample or class `index` if that is not -1.
std::string text_of(const tandem_dataset_type& type, const char* text, const char* function,
                    int64_t index = -1) {
  if (text != nullptr) return text;
  throw error("data set '{}': {}({}) gave NULL instead of a text", type.name, function,
              index < 0 ? "" : std::to_string(index));
}

constexpr int64_t max_byte_channels = std::extent_v<decltype(tandem_dataset_info::byte_means)>;

// Of one of Tandem's own data sets the name says enough.
std::string sample_title(const Dataset& dataset, const std::string& owner, int64_t index) {
  const std::string name = dataset.sample_name(index);
  const bool is_own = owner == fmt::format("data set '{}'", dataset.type_name());
  return is_own ? fmt::format("sample '{}'", name)
                : fmt::format("sample {} ('{}') of {}", index, name, owner);
}

bool fits(int64_t given, int64_t expected) {
  return given > 0 && (expected == 0 || given == expected);
}

// Bytes are converted to floats far from here, where a wrong scale cannot be reported.
void check_bytes(const tandem_dataset_type& type, const tandem_dataset_info& info,
                 const std::string& what) {
  if (info.has_bytes == 0) return;
  const auto wrong = [&](const std::string& problem) {
    return error("{}: data set '{}' says that it has bytes (has_bytes), but {}", what, type.name,
                 problem);
  };
  if (type.get_bytes == nullptr) throw wrong("has no get_bytes() to give them");
  if (info.shape.c > max_byte_channels) {
    throw wrong(fmt::format("its samples have {} channels; bytes have 1 to {}", info.shape.c,
                            max_byte_channels));
  }
  if (!std::isfinite(info.byte_scale) || info.byte_scale == 0) {
    throw wrong(fmt::format("their scale (byte_scale) is {}; it must be finite and not 0",
                            info.byte_scale));
  }
  for (int64_t channel = 0; channel < info.shape.c; ++channel) {
    if (std::isfinite(info.byte_means[channel])) continue;
    throw wrong(fmt::format("the mean of channel {} (byte_means) is {}; it must be finite", channel,
                            info.byte_means[channel]));
  }
}

// What a data set reports when it is opened: sizes, shape and the scale of its bytes. Error for
// impossible values. `expected`: the shape of a sample, 0 for any; `what` begins the message.
void check_info(const tandem_dataset_type& type, const tandem_dataset_info& info,
                const Shape& expected, const std::string& what) {
  if (info.size < 1) throw error("{}: holds no sample", what);
  if (info.class_count < 1) throw error("{}: has no classes", what);
  const Shape& given = info.shape;
  if (!fits(given.c, expected.c) || !fits(given.h, expected.h) || !fits(given.w, expected.w)) {
    throw error("{}: gives samples of {}x{}x{}, but the net expects {}x{}x{} (0: any)", what,
                given.c, given.h, given.w, expected.c, expected.h, expected.w);
  }
  check_bytes(type, info, what);
  const bool is_known = info.task >= TANDEM_TASK_CLASSES && info.task <= TANDEM_TASK_VALUES;
  if (!is_known || (info.task != TANDEM_TASK_CLASSES && type.targets == nullptr)) {
    throw error("{}: data set '{}' says that its task is {}, {}", what, type.name, info.task,
                is_known ? "but has no targets() to give what a sample has"
                         : "which this version does not know");
  }
}

}  // namespace

Dataset::Dataset(Registry& registry, const DatasetOptions& options) : options_(options) {
  type_ = &registry.dataset(dataset_of(registry, options.source, options.split));
  const ModuleReport* module = registry.module_of_dataset(type_->name);
  const bool is_own = module == nullptr || module->built_in;
  owner_ = fmt::format("data set '{}'{}", type_->name,
                       is_own ? "" : fmt::format(" ({})", module->path.string()));
  if (options.guarded && !is_own) guards_ = std::make_unique<Guards>();
  // The parameters of a run may be of another data set than the one that reads single files.
  attributes_ = read_parameters(*type_, options.parameters, options.split == "predict");
  const std::string class_names = fmt::format("{}", fmt::join(options.class_names, "\n"));
  tandem_dataset_request request{};
  request.struct_size = sizeof(request);
  request.phase = options.phase;
  request.source = options.source.c_str();
  request.split = options.split.c_str();
  request.class_names = options.class_names.empty() ? nullptr : class_names.c_str();
  request.attributes = attributes_.handle();
  request.seed = options.seed;
  request.shape = options.shape;
  request.shape.n = 1;
  const std::vector<Shape> own = own_inputs(options);
  request.inputs = own.data();
  request.input_count = static_cast<uint32_t>(own.size());

  info_.struct_size = sizeof(info_);
  const std::string what =
      options.split == "predict" ? "images to predict" : fmt::format("data '{}'", options.source);
  (void)take_reason();  // a reason from here on is of this data set
  const tandem_status status = [&] {
    const RunningNote note("open", owner_.c_str());
    return type_->open(&request, &handle_, &info_);
  }();
  if (status == TANDEM_OK) no_bytes_ = take_reason();
  if (status != TANDEM_OK && type_name() == folder_dataset && options.split != "predict") {
    const std::string foreign = foreign_data(options.source);
    if (!foreign.empty()) throw error("{}: {}", what, foreign);
  }
  check(status, what);
  // If the constructor throws, no destructor closes the data set.
  std::unique_ptr<void, void (*)(void*)> opened(handle_, type_->close);
  info_.shape.n = 1;
  check_info(*type_, info_, options.shape, what);
  prepare_more(options);
  static_cast<void>(opened.release());
}

std::unique_ptr<Dataset> Dataset::to_be_shown(Registry& registry) const {
  DatasetOptions options = options_;
  if (options.parameters.erase("mean_image") == 0) return nullptr;
  return std::make_unique<Dataset>(registry, options);
}

void Dataset::prepare_more(const DatasetOptions& options) {
  more_ = options.more;
  for (MoreInput& input : more_) {
    if (!input.filler && type_->get_inputs == nullptr) {
      throw error(
          "data '{}': gives an image and a label for each sample, but the net also takes "
          "'{}', which data set '{}' does not have",
          options.source, input.name, type_->name);
    }
    input.shape = like_image(input.shape, info_.shape);
  }
}

Dataset::~Dataset() {
  type_->close(handle_);
}

std::vector<std::string> Dataset::class_names() const {
  std::vector<std::string> names;
  for (int64_t i = 0; i < info_.class_count; ++i) {
    names.push_back(text_of(*type_, type_->class_name(handle_, i), "class_name", i));
  }
  return names;
}

std::string Dataset::sample_name(int64_t index) const {
  return text_of(*type_, type_->sample_name(handle_, index), "sample_name", index);
}

std::string Dataset::notes() const {
  std::string notes = text_of(*type_, type_->notes(handle_), "notes");
  const bool is_name = options_.source == type_->name && options_.source != folder_dataset;
  if (is_name && path_status(options_.source).exists()) {
    notes += fmt::format(
        "{}note: data '{}' is the data set of that name, not the file or folder of that name here "
        "(./{})",
        notes.empty() ? "" : "\n", options_.source, options_.source);
  }
  return notes;
}

std::map<std::string, std::string> Dataset::chosen_parameters() const {
  std::map<std::string, std::string> chosen;
  for (const std::string& note : split(notes(), '\n')) {
    for (uint32_t i = 0; i < type_->parameter_count; ++i) {
      const std::string begin = std::string(type_->parameters[i]->name) + "=";
      const size_t end = note.find(": ");
      if (!note.starts_with(begin) || end == std::string::npos) continue;
      chosen[type_->parameters[i]->name] = note.substr(begin.size(), end - begin.size());
    }
  }
  return chosen;
}

std::optional<int64_t> Dataset::label(int64_t index) const {
  if (type_->label == nullptr) return std::nullopt;
  const int64_t label = type_->label(handle_, index);
  if (label < 0 || label >= class_count()) {
    throw error("sample '{}': data set '{}' gave the class {}, but has classes 0 to {}",
                sample_name(index), type_->name, label, class_count() - 1);
  }
  return label;
}

void Dataset::values(int64_t index, float* values) const {
  require_index(index);
  check(type_->targets(handle_, index, values), sample_title(*this, owner_, index));
  for (int64_t i = 0; i < class_count(); ++i) {
    const bool is_label = task() == TANDEM_TASK_LABELS;
    const float value = values[i];
    if (is_label ? value == 0 || value == 1 : std::isfinite(value)) continue;
    throw error("sample '{}': data set '{}' gave the value {} for '{}'; it must be {}",
                sample_name(index), type_->name, value, class_names()[size_t(i)],
                is_label ? "0 or 1" : "finite");
  }
}

void Dataset::targets(int64_t index, float* targets) const {
  values(index, targets);
  for (size_t i = 0; i < target_scale_.means.size(); ++i) {
    targets[i] = static_cast<float>((static_cast<double>(targets[i]) - target_scale_.means[i]) /
                                    target_scale_.deviations[i]);
  }
}

std::optional<StoredSample> Dataset::describe(int64_t index, std::string* reason) const {
  if (type_->describe == nullptr) return std::nullopt;
  tandem_sample_info info{};
  info.struct_size = sizeof(info);
  info.format = "";
  const tandem_status status = type_->describe(handle_, index, &info);
  if (status == TANDEM_SKIP) {
    *reason = take_reason();
    return std::nullopt;
  }
  if (status != TANDEM_OK) check(status, sample_title(*this, owner_, index));
  const std::string remarks = take_reason();
  return StoredSample{text_of(*type_, info.format, "describe", index),
                      info.channels,
                      info.width,
                      info.height,
                      info.bytes,
                      info.content,
                      remarks.empty() ? std::vector<std::string>() : split(remarks, '\n')};
}

SampleStatus Dataset::get(int64_t index, uint64_t seed, float* pixels, float* label,
                          std::string* reason) const {
  require_index(index);
  const tandem_status read =
      reads("get", index, pixels, 4 * element_count(info_.shape), label,
            [&](void* values, float* of_label) {
              return type_->get(handle_, index, seed, static_cast<float*>(values), of_label);
            });
  const SampleStatus status = status_of(read, index, label, reason);
  if (status == SampleStatus::skipped) std::fill_n(pixels, element_count(info_.shape), 0.0F);
  return status;
}

tandem_status Dataset::reads(const char* name, int64_t index, void* values, int64_t bytes,
                             float* label, const Read& read) const {
  const RunningNote note(name, owner_.c_str());
  if (guards_ == nullptr) return read(values, label);
  ++guards_->samples;
  // Twice: what is left out shows by what the memory held before.
  for (const unsigned char fill : {GuardedMemory::nan, GuardedMemory::finite}) {
    const GuardedMemory memory(bytes, fill), of_label(sizeof *label, fill);
    const tandem_status status = read(memory.data(), of_label.data());
    const auto wrong = [&](const std::string& how) {
      return error("sample '{}': {}() of {}: {} (--check-plugins)", sample_name(index), name,
                   owner_, how);
    };
    if (!memory.damage().empty()) throw wrong("of the pixels, " + memory.damage());
    if (!of_label.damage().empty()) throw wrong("of the label, " + of_label.damage());
    if (status != TANDEM_OK) return status;
    const auto* now = reinterpret_cast<const unsigned char*>(memory.data());
    if (fill == GuardedMemory::nan) {
      std::copy_n(now, bytes, static_cast<unsigned char*>(values));
      *label = *of_label.data();
      continue;
    }
    const auto* before = static_cast<const unsigned char*>(values);
    const auto other = std::mismatch(now, now + bytes, before).first - now;
    if (other < bytes) {
      throw wrong(
          fmt::format("byte {} of {} of the pixels is not written, or is another one in each call",
                      other, bytes));
    }
    if (std::memcmp(label, of_label.data(), sizeof *label) != 0) {
      throw wrong("the label is not written, or is another one in each call");
    }
  }
  return TANDEM_OK;
}

void Dataset::require_index(int64_t index) const {
  if (index >= 0 && index < size()) return;
  throw error("sample {} does not exist: the data set has {}", index, size());
}

SampleStatus Dataset::status_of(tandem_status status, int64_t index, float* label,
                                std::string* reason) const {
  if (status == TANDEM_SKIP) {
    *reason = take_reason();
    *label = -1;
    return SampleStatus::skipped;
  }
  if (status != TANDEM_OK) check(status, sample_title(*this, owner_, index));
  if (const std::string lines = take_reason(); !lines.empty()) {
    for (const std::string& remark : split(lines, '\n')) remarks_.add(remark, index);
  }
  if (!(*label >= 0 && *label < static_cast<float>(class_count()))) {
    throw error("sample '{}': data set '{}' gave the class {}, but has classes 0 to {}",
                sample_name(index), type_->name, *label, class_count() - 1);
  }
  return SampleStatus::good;
}

std::string Dataset::why_no_bytes() const {
  if (type_->get_bytes == nullptr) return fmt::format("data set '{}' gives floats", type_->name);
  return fmt::format("data set '{}' gives floats here: {}", type_->name,
                     no_bytes_.empty() ? "it does not say why" : no_bytes_);
}

PixelScale Dataset::pixel_scale() const {
  PixelScale result;
  if (!has_bytes()) return result;
  std::copy_n(info_.byte_means, info_.shape.c, result.means.begin());
  result.scale = info_.byte_scale;
  return result;
}

SampleStatus Dataset::get_bytes(int64_t index, uint64_t seed, uint8_t* pixels, float* label,
                                std::string* reason) const {
  require_index(index);
  const tandem_status read = reads(
      "get_bytes", index, pixels, element_count(info_.shape), label,
      [&](void* values, float* of_label) {
        return type_->get_bytes(handle_, index, seed, static_cast<uint8_t*>(values), of_label);
      });
  const SampleStatus status = status_of(read, index, label, reason);
  if (status == SampleStatus::skipped) fill_with_means(info_.shape, pixel_scale(), pixels);
  return status;
}

std::vector<Shape> Dataset::more_shapes() const {
  std::vector<Shape> shapes;
  for (const MoreInput& input : more_) shapes.push_back(input.shape);
  return shapes;
}

void Dataset::get_more(int64_t index, uint64_t seed, const std::vector<float*>& inputs) const {
  std::vector<float*> own;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const MoreInput& input = more_[i];
    if (!input.filler) {
      own.push_back(inputs[i]);
      continue;
    }
    generate(*input.filler, Random(seed, stream_of(input.name.c_str())), inputs[i],
             element_count(input.shape));
  }
  if (own.empty()) return;
  const RunningNote note("get_inputs", owner_.c_str());
  check(type_->get_inputs(handle_, index, seed, own.data()), sample_title(*this, owner_, index));
}

}  // namespace tandem
