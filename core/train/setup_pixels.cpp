#include "core/train/setup_pixels.h"

#include "core/base/error.h"
#include "core/device/machine.h"
#include "core/train/session.h"
#include "core/train/setup_targets.h"

namespace tandem {
namespace {

// `told`: by the user; what a resumed run has cannot be told otherwise.
void require_bytes(const Dataset& dataset, const std::string& source, const TrainOptions& told) {
  if (dataset.has_bytes()) return;
  if (told.resume) {
    throw error(
        "run '{}' learns from pixels as bytes, but data '{}': {}; resume it with data that have "
        "bytes, or begin a new run",
        told.out.string(), source, dataset.why_no_bytes());
  }
  throw error("--pixels bytes: data '{}': {}; leave the option out, or say --pixels floats", source,
              dataset.why_no_bytes());
}

// A copy of floats four times as long is what a GPU waits for; the cpu's memory is its own.
bool are_worth_bytes(const Registry& registry, const TrainSetup& setup) {
  const DeviceSpec devices = parse_devices(setup.record.options.devices, registry.backends());
  if (devices.kind != "cuda" || registry.backend(devices.kind).convert_pixels == nullptr) {
    return false;
  }
  const bool validates = setup.validation_data != nullptr;
  return setup.training_data->has_bytes() && !target_options(setup).mixes() &&
         (!validates || setup.validation_data->has_bytes());
}

}  // namespace

void resolve_pixels(const Registry& registry, TrainSetup& setup, const TrainOptions& told) {
  TrainOptions& chosen = setup.record.options;
  if (!chosen.pixels.empty()) require_pixels_word(chosen.pixels);
  const bool decides = chosen.pixels.empty() || chosen.pixels == "auto";
  if (decides) chosen.pixels = are_worth_bytes(registry, setup) ? "bytes" : "floats";
  if (chosen.pixels != "bytes") return;
  require_bytes(*setup.training_data, chosen.data, told);
  if (setup.validation_data != nullptr) {
    require_bytes(*setup.validation_data, chosen.data, told);
  }
  setup.messages.push_back(
      fmt::format("pixels are bytes{}{}",
                  decides ? ", rounded where they are resampled (--pixels floats: not)" : "",
                  target_options(setup).mixes() ? "; mixed ones travel as floats" : ""));
}

PixelForm pixel_form(const std::string& pixels, const Dataset& dataset) {
  return pixels == "bytes" && dataset.has_bytes() ? PixelForm::bytes : PixelForm::floats;
}

void choose_pixels(const TrainSetup& setup, SessionOptions& options) {
  const std::string& pixels = setup.record.options.pixels;
  options.training_pixels = pixel_form(pixels, *setup.training_data);
  options.pixel_scale = setup.training_data->pixel_scale();
  if (options.training_pixels == PixelForm::bytes && target_options(setup).mixes()) {
    options.training_pixels = PixelForm::rounded;
  }
  if (setup.validation_data == nullptr) return;
  options.testing_pixels = pixel_form(pixels, *setup.validation_data);
  const bool differs = setup.validation_data->pixel_scale() != options.pixel_scale;
  if (options.testing_pixels == PixelForm::bytes && differs) {
    options.testing_pixels = PixelForm::rounded;
  }
}

}  // namespace tandem
