#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "core/base/error.h"
#include "core/base/text/strings.h"
#include "core/cli/commands.h"
#include "core/cli/data_report.h"
#include "core/cli/progress.h"
#include "core/data/loader/loader.h"
#include "core/plugin/registry.h"
#include "core/report/display.h"
#include "core/report/page/png.h"
#include "core/run/setup/setup.h"

namespace tandem::cli {
namespace {

constexpr const char* as_of_train = "For --preview: as of 'tandem train'";

struct DataArguments {
  std::string source, html, preview, weights;
  TrainOptions preview_of;  // what `tandem train` would have; without the data and the seed
  std::vector<std::string> options;
  uint64_t seed = 1;
  int threads = 0;
  int64_t pictures = 32;
  bool as_json = false;
};

Audit inspect(Registry& registry, const DataArguments& arguments) {
  AuditOptions options;
  options.source = arguments.source;
  options.parameters = read_pairs(arguments.options, "--data-option", "val_fraction=0.1");
  options.seed = arguments.seed;
  options.threads = arguments.threads;
  options.thumbnails = arguments.html.empty() ? 0 : 8;
  const bool terminal = isatty(STDERR_FILENO) != 0;
  int64_t shown = -1;
  if (terminal) {
    options.progress = [&shown](int64_t done, int64_t all) {
      const int64_t percent = 100 * done / std::max<int64_t>(1, all);
      if (percent != shown) say(stderr, "\r{} of {} images", done, all);
      shown = percent;
    };
  }
  Audit found = audit(registry, options);
  if (terminal && shown >= 0) say(stderr, "\r\033[K");
  return found;
}

// Draws the first images of the first epoch, as `tandem train` with the same options reads them.
void draw_preview(Registry& registry, const DataArguments& arguments) {
  constexpr int64_t border = 2, max_columns = 8;
  TrainOptions options = arguments.preview_of;
  options.data = arguments.source;
  options.seed = arguments.seed;
  options.adapt_classes = true;
  if (!arguments.weights.empty()) options.solver_fields["weights"] = arguments.weights;
  options.data_parameters = read_pairs(arguments.options, "--data-option", "mirror=true");
  const TrainSetup setup = resolve(registry, options);
  const std::unique_ptr<Dataset> shown = setup.training_data->to_be_shown(registry);
  const Dataset& data = shown != nullptr ? *shown : *setup.training_data;
  const Shape shape = data.shape();
  const Display display(setup.record.data_parameters, shape);
  const int64_t count = std::min(arguments.pictures, data.size());
  const int64_t columns = std::min(count, max_columns), rows = (count + columns - 1) / columns;
  const int64_t width = columns * (shape.w + border) + border;
  const int64_t height = rows * (shape.h + border) + border;
  std::vector<unsigned char> picture(size_t(3 * width * height), 255);
  LoaderOptions loading;
  loading.batch = count + count % 2;  // even, so that every image has a partner to be mixed with
  loading.seed = arguments.seed;
  loading.targets = target_options(setup);
  loading.bad_share_limit = 1;
  loading.slots = 1;
  loading.batch_count = 1;
  Loader loader(data, loading,
                {[](int64_t bytes) { return std::malloc(size_t(bytes)); }, std::free});
  const Batch batch = loader.next();
  const auto* pixels = reinterpret_cast<const float*>(batch.memory + loader.layout().data_offset);
  const auto* labels = reinterpret_cast<const float*>(batch.memory + loader.layout().label_offset);
  for (int64_t i = 0; i < count; ++i, pixels += element_count(shape)) {
    if (labels[i] < 0) continue;
    const int64_t left = i % columns * (shape.w + border) + border;
    const int64_t top = i / columns * (shape.h + border) + border;
    const DrawnPicture one = display.picture(pixels);
    for (int64_t y = 0; y < shape.h; ++y) {
      std::copy_n(one.pixels.begin() + 3 * y * shape.w, 3 * shape.w,
                  picture.begin() + 3 * ((top + y) * width + left));
    }
  }
  write_output(arguments.preview, to_png(width, height, picture));
  if (arguments.as_json) return;  // the JSON is all of the output
  print_names("{} images as net '{}' receives them: {}\n", count, setup.record.net_name,
              arguments.preview);
  for (const std::string& line : setup.messages) {
    if (line.starts_with("images: ")) print_names("{}\n", line);
  }
}

int run_data(DataArguments& arguments) {
  Registry registry = Registry::with_defaults();
  if (!arguments.preview.empty()) draw_preview(registry, arguments);
  if (!arguments.preview.empty() && arguments.html.empty() && !arguments.as_json) return 0;
  const Audit found = inspect(registry, arguments);
  if (arguments.as_json) {
    print_json(to_json(found, arguments.source));
  } else {
    print_names("{}", to_text(found, arguments.source, terminal_width(100)));
  }
  if (!arguments.html.empty()) {
    write_output(arguments.html, to_html(found, arguments.source));
    if (!arguments.as_json) say("page: {}\n", arguments.html);
  }
  return 0;
}

}  // namespace

void add_data(CommandLine& line) {
  Command& command =
      line.add("data", "Inspect a data set: classes, sizes, damaged images, duplicates, leaks");
  DataArguments& a = command.runs(run_data);
  command.add({
      {"source PATH", &a.source, "As --data of 'tandem train'", required},
      json_option(a.as_json),
      {"--html FILE", &a.html, "Write a page with pictures of every class"},
      {"--preview FILE", &a.preview,
       "Write a PNG with images as a net receives them, and inspect only with --html or --json"},
      {"--net FILE", &a.preview_of.net, "For --preview: the net (default: resnet18)"},
      {"--weights PATH", &a.weights, as_of_train},
      {"--from-scratch", &a.preview_of.from_scratch, as_of_train},
      {"--image-size N", &a.preview_of.image_size, as_of_train, in_range(1, max_image_size)},
      {"--augment none|light|photos|strong", &a.preview_of.augment, as_of_train},
      {"--recipe plain|photos|caffe|finetune", &a.preview_of.recipe, as_of_train},
      {"--mixup X", &a.preview_of.mixup, as_of_train},
      {"--cutmix X", &a.preview_of.cutmix, as_of_train},
      {"--images N", &a.pictures, "For --preview: number of images", show_default,
       in_range(1, 1000)},
      {"--data-option NAME=VALUE", &a.options, "A parameter of the data set, as of 'tandem train'"},
      task_option([&a](const std::string& word) { a.options.push_back("task=" + word); }),
      {"--seed N", &a.seed, "Seed of split and augmentation", show_default},
      threads_option(a.threads),
  });
}

}  // namespace tandem::cli
