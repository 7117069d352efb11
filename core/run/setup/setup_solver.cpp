#include "core/run/setup/setup_solver.h"

#include <limits>

#include "core/base/error.h"
#include "core/base/files/files.h"
#include "core/base/text/strings.h"
#include "core/formats/onnx_reader/file.h"
#include "core/formats/onnx_reader/reader.h"
#include "core/model/adapted/adapted.h"
#include "core/model/adapted/models.h"
#include "core/model/file/learning_rate.h"
#include "core/model/file/net_phases.h"
#include "core/run/setup/recipe.h"
#include "core/run/setup/setup_data.h"
#include "core/run/weights/hub.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// Synthetic data serve measurements, for which AlexNet is the usual net.
constexpr const char* default_net = "resnet18";
constexpr const char* synthetic_net = "alexnet";

// Caffe's solvers name files relative to the folder that Caffe runs in, usually its root, which is
// above the solver. The files usually lie beside the solver.
fs::path file_of_solver(const SolverDefinition& solver, const std::string& written,
                        const char* what, const char* advice) {
  const fs::path folder = absolute_path(solver.file.empty() ? "." : solver.file).parent_path();
  std::vector<fs::path> candidates{written, folder / written};
  if (fs::path(written).is_relative()) {
    for (fs::path above = folder; above.has_relative_path(); above = above.parent_path()) {
      candidates.push_back(above.parent_path() / written);
    }
  }
  candidates.push_back(folder / last_name(written));
  for (const fs::path& candidate : candidates) {
    if (path_status(candidate).is_file()) return candidate;
  }
  const std::string who =
      solver.file.empty() ? "the command line" : fmt::format("solver '{}'", solver.file);
  throw error("{} names the {} '{}', which is neither here nor beside or above the solver: {}", who,
              what, written, advice);
}

std::map<std::string, std::string> changes_of(const TrainOptions& options) {
  std::map<std::string, std::string> changes = options.solver_fields;
  if (!options.solver_type.empty()) changes["type"] = options.solver_type;
  return changes;
}

// The folder of the run that wrote the solver, whose net it names; "": no run did.
fs::path run_of(const SolverDefinition& solver) {
  if (solver.file.empty() || fs::path(solver.file).filename() != "solver.prototxt") return "";
  const fs::path folder = absolute_path(solver.file).parent_path();
  return RunFolder::holds_run(folder) ? folder : "";
}

bool names_net(const SolverDefinition& solver) {
  return solver.net_definition || !solver.net.empty() || !solver.train_net.empty();
}

// The net that the solver names or holds; `file` receives its file's name.
NetDefinition net_of_solver(const SolverDefinition& solver, std::string* file) {
  if (solver.net_definition) {
    *file = solver.file;
    return *solver.net_definition;
  }
  const fs::path run = run_of(solver);
  const auto find = [&](const std::string& written) {
    // Another file of that name may be here.
    if (!run.empty() && path_status(run / written).is_file()) return run / written;
    return file_of_solver(solver, written, "net", "name it with --net");
  };
  const fs::path path = find(solver.net.empty() ? solver.train_net : solver.net);
  *file = path.string();
  NetDefinition net = read_net(path);
  if (solver.test_nets.empty()) return net;
  return joined(net, read_net(find(solver.test_nets.front())));
}

// A net that is neither where the solver says nor there as seen from the solver.
void note_other_place(TrainSetup& setup) {
  const SolverDefinition& solver = setup.solver;
  const fs::path written = solver.net.empty() ? solver.train_net : solver.net;
  const fs::path taken = setup.record.options.net;
  const fs::path folder = absolute_path(solver.file).parent_path();
  if (solver.net_definition || taken == written || taken == folder / written) return;
  setup.note("solver '{}' names the net '{}', and '{}' is taken (--net)", solver.file,
             written.string(), taken.string());
}

std::string model_of(const TrainOptions& options) {
  if (!options.net.empty()) return options.net;
  return options.data == "synthetic" ? synthetic_net : default_net;
}

// Whether nothing says how the net is to be trained.
bool leaves_recipe(const TrainOptions& options) {
  return options.data != "synthetic" && options.net_text.empty() && options.solver.empty() &&
         options.recipe.empty();
}

// The folder with weights of the net that the options name; "" if there is none.
fs::path cached_weights(Registry& registry, const TrainOptions& options, TrainSetup& setup) {
  const bool may_tune = leaves_recipe(options) || options.recipe == "finetune";
  const fs::path found = may_tune ? find_cached(model_of(options)) : fs::path();
  if (found.empty()) return found;
  const int64_t channels = find_sizes(registry, setup).channels;
  if (channels == 3) return found;
  setup.note("the weights of {} in the cache are of images of 3 channels, and not of {}",
             model_of(options), channels);
  return {};
}

void find_published_weights(Registry& registry, const TrainOptions& options, TrainSetup& setup) {
  const auto given = options.solver_fields.find("weights");
  const bool has_weights = given != options.solver_fields.end();
  if (options.from_scratch) {
    if (!has_weights) return;
    throw error("--from-scratch and --weights '{}' contradict each other: give one of them",
                given->second);
  }
  const bool is_onnx = is_onnx_file(options.net);  // it has weights as well
  const fs::path cached =
      has_weights || is_onnx ? fs::path() : cached_weights(registry, options, setup);
  if (!has_weights && !is_onnx && cached.empty()) return;
  const std::string source = has_weights ? given->second : is_onnx ? options.net : cached.string();
  // A file beside a config.json is only weights where the solver has the net. That of a run gives
  // way to the net of the weights.
  const bool has_net =
      options.net.empty() && names_net(setup.solver) && run_of(setup.solver).empty();
  if (has_net && path_status(source).is_file()) return;
  setup.published =
      find_published(source, is_onnx || !cached.empty() ? "" : options.net, options.download);
  if (!setup.published) return;
  if (!cached.empty()) {
    setup.note(
        "weights of {} are in the cache, and are fine-tuned (--from-scratch trains from random "
        "ones)",
        setup.published->architecture);
  }
  const PublishedWeights& published = *setup.published;
  if (has_net) {
    throw error(
        "--solver {} names a net, and --weights '{}' has a net of its own: remove the solver's "
        "net, or give the weights alone, as --weights '{}'",
        options.solver, source, published.file.string());
  }
  if (is_onnx && source != options.net) {
    throw error("--net {} and --weights '{}', which has a net of its own: leave --net out",
                options.net, source);
  }
  const bool is_same = options.net == model_of_net(published.architecture);
  if (published.is_run && ((!options.net.empty() && !is_same) || !options.net_text.empty())) {
    throw error(
        "--weights '{}' is a run, which has a net of its own: leave --net out, or give its weights "
        "alone, as --weights '{}'",
        source, published.file.string());
  }
  if (!options.net_text.empty()) {
    throw error("a net in C++, and --weights '{}', which are of architecture {}: leave the net out",
                source, published.architecture);
  }
  setup.messages.push_back(to_text(published));
}

// `model`: the built-in model that the net is, by its name or as a copy of its file; or "".
// `is_model`: also for a net made in C++.
void read_net_of_run(const TrainOptions& options, TrainSetup& setup, std::string* model,
                     bool* is_model) {
  TrainOptions& chosen = setup.record.options;
  *is_model = true;
  if (setup.published) {
    *model = chosen.net = setup.published->architecture;
    setup.net = net_of(*setup.published);
  } else if (!options.net_text.empty()) {
    setup.net = read_net_text(options.net_text);
  } else if (options.net.empty() && names_net(setup.solver)) {
    setup.net = net_of_solver(setup.solver, &chosen.net);
    note_other_place(setup);
    if (!run_of(setup.solver).empty()) *model = model_of_net(setup.net.name);
    *is_model = !model->empty();
  } else {
    chosen.net = options.net;
    if (options.net.empty()) {
      chosen.net = model_of(options);
      setup.note("model {} (--model; 'tandem models' lists them)", chosen.net);
    }
    setup.net = read_net_file(chosen.net);
    const bool is_name = is_model_name(chosen.net) || !find_pretrained_net(chosen.net).empty();
    *model = is_name ? chosen.net : model_of_net(setup.net.name);
    *is_model = !model->empty() || is_onnx_file(chosen.net);
    if (*is_model && *model != chosen.net) {
      setup.note(
          "net '{}' is by its name ('{}') a copy of the model {}: {}its classes follow the data",
          chosen.net, setup.net.name, *model,
          options.solver.empty() ? "it is trained with that model's solver, and " : "");
    }
  }
  constexpr int64_t least_size = 8;
  if (*is_model && options.image_size > 0 && options.image_size < least_size) {
    throw error("--image-size {}: model {} recognizes nothing in so few pixels; at least {}",
                options.image_size, chosen.net, least_size);
  }
  if (options.image_size > 0) setup.net = with_image_size(setup.net, options.image_size);
}

// Applies the stages and level of each phase to its net.
void choose_states(const TrainOptions& options, TrainSetup& setup) {
  const std::vector<NetState>& tested = setup.solver.test_states;
  setup.net = in_states(setup.net, options.train_state.value_or(setup.solver.train_state),
                        options.test_state.value_or(tested.empty() ? NetState{} : tested.front()));
}

void read_model_solver(const TrainOptions& options, TrainSetup& setup, const std::string& model) {
  fs::path own;
  if (is_model_name(model)) own = find_net(model).parent_path() / (model + "_solver.prototxt");
  const bool has_own = path_status(own).exists();
  const std::string& recipe = setup.record.options.recipe;
  if (recipe == "photos" || recipe == "finetune") {
    std::map<std::string, std::string> fields = options.solver_fields;
    fields.emplace("weight_decay", "0.0005");
    const std::string type = options.solver_type.empty() ? "Nesterov" : options.solver_type;
    const bool has_decay = type == "SGD" || type == "Nesterov";
    setup.solver = default_solver(type, has_decay ? fields : options.solver_fields);
  } else if (recipe == "caffe" && has_own && options.solver_type.empty()) {
    setup.solver = read_solver(own, options.solver_fields);
  } else {
    const std::string type = options.solver_type.empty() ? "SGD" : options.solver_type;
    setup.solver = default_solver(type, options.solver_fields);
  }
}

// Caffe's `weights`: several files, or their names with commas between them. Those of the command
// line are not searched for.
void find_weights(const TrainOptions& options, SolverDefinition& solver) {
  const bool is_option = options.solver_fields.count("weights") > 0;
  std::vector<std::string> files;
  for (const std::string& written : solver.weights) {
    for (const std::string& one : split(written, ',')) {
      if (is_option && !path_status(one).is_file()) {
        if (path_status(one).is_folder()) {
          throw error(
              "--weights '{}' names the folder '{}' in a list: a run folder or a folder of timm's "
              "must be given alone; only files can be several",
              written, one);
        }
        if (path_status(one).exists()) {
          throw error("--weights '{}' cannot be read: it is not a regular file", one);
        }
        throw error(
            "--weights '{}' does not exist: a file ({}), a run folder or a folder of timm's is "
            "needed",
            one, weight_formats);
      }
      files.push_back(
          file_of_solver(solver, one, "weights", "give the file's path from here").string());
    }
  }
  solver.weights = files;
}

// Whether the rate follows the length of the run by itself, or never changes.
bool has_no_steps(const SolverDefinition& solver) {
  const std::string& policy = solver.rate_policy;
  return policy == "fixed" || policy == "poly" || policy == "cosine";
}

template <class Value>
void note_change(const char* field, Value written, Value chosen, std::string& text) {
  if (written <= 0 || written == chosen) return;
  text += fmt::format("{}{} {} instead of {}", text.empty() ? "" : ", ", field, chosen, written);
}

}  // namespace

fs::path net_file_of(const TrainOptions& options) {
  const bool is_file = path_status(options.net).is_file() && !is_onnx_file(options.net);
  if (!options.net.empty()) return is_file ? options.net : "";
  if (options.solver.empty()) return "";
  const SolverDefinition solver = read_solver(options.solver, changes_of(options));
  if (solver.net_definition || !names_net(solver)) return "";
  std::string file;
  static_cast<void>(net_of_solver(solver, &file));
  return file;
}

bool resolve_solver_and_net(Registry& registry, const TrainOptions& options, TrainSetup& setup) {
  if (!options.solver.empty()) setup.solver = read_solver(options.solver, changes_of(options));
  if (options.image_size < 0) {
    throw error("--image-size {}: images have at least 1 pixel", options.image_size);
  }
  find_published_weights(registry, options, setup);
  std::string model;
  bool is_model = false;
  read_net_of_run(options, setup, &model, &is_model);
  choose_recipe(options, model, setup);
  if (options.solver.empty()) read_model_solver(options, setup, model);
  constexpr double max_rate = std::numeric_limits<float>::max();
  if (options.rate && !(*options.rate >= 0 && *options.rate <= max_rate)) {
    throw error("--lr {}: the learning rate must be a finite number of at least 0, at most 3.4e38",
                *options.rate);
  }
  choose_states(options, setup);
  if (setup.published) setup.solver.weights = {setup.published->file.string()};
  find_weights(options, setup.solver);
  if (!options.solver.empty() && !setup.solver.has_rate && !options.rate) {
    setup.note("solver '{}' has no base_lr: {} is taken (--lr)", options.solver,
               setup.solver.base_rate);
  }
  for (const std::string& note : setup.solver.notes) setup.messages.push_back(note);
  for (const std::string& note : setup.net.notes) setup.messages.push_back("net: " + note);
  return is_model;
}

void say_how_to_get_weights(const TrainOptions& options, TrainSetup& setup) {
  const std::string repository = example_repository(model_of(options));
  const bool has_weights = setup.published || options.solver_fields.contains("weights");
  if (has_weights || options.from_scratch || !leaves_recipe(options) || repository.empty()) return;
  if (setup.training_data->shape().c != 3) return;
  setup.note(
      "it begins with random weights; trained ones usually give more accuracy in fewer epochs: "
      "'tandem fetch {0}', then --weights {0}",
      repository);
}

void fit_recipe(const TrainOptions& options, TrainSetup& setup) {
  SolverDefinition& solver = setup.solver;
  const bool is_recipe = options.solver.empty() && !solver.file.empty() && !options.resume;
  if (!is_recipe) return;
  const int64_t steps = setup.record.options.steps;
  const int64_t recipe_steps = read_solver(solver.file).max_steps;
  const auto& given = options.solver_fields;
  if (!given.contains("test_interval")) solver.test_interval = 0;
  const bool is_fitted = recipe_steps == 0 || recipe_steps == steps || has_no_steps(solver);
  const bool is_chosen = given.contains("lr_policy") || given.contains("gamma") ||
                         given.contains("stepsize") || given.contains("stepvalue");
  if (is_fitted || is_chosen) return;
  fit_policy(solver, static_cast<double>(steps) / static_cast<double>(recipe_steps));
  setup.note(
      "learning rate: the model's schedule of {} steps is fitted to the {} of this run (a file "
      "given with --solver is taken as it is)",
      recipe_steps, steps);
}

void note_changes(const TrainOptions& options, TrainSetup& setup) {
  SolverDefinition& solver = setup.solver;
  const TrainOptions& chosen = setup.record.options;
  std::string text;
  const std::string written = solver.net.empty() ? solver.train_net : solver.net;
  if (!options.net.empty() && !written.empty() && written != options.net) {
    text = fmt::format("net '{}' instead of '{}'", options.net, written);
  }
  if (options.rate) {
    note_change("base_lr", solver.base_rate, *options.rate, text);
    solver.base_rate = *options.rate;
  }
  note_change("max_iter", solver.max_steps, chosen.steps, text);
  if (options.test_interval > 0) {
    note_change("test_interval", solver.test_interval, options.test_interval, text);
  }
  if (options.display > 0) note_change("display", solver.display, options.display, text);
  if (options.snapshot > 0) note_change("snapshot", solver.snapshot, options.snapshot, text);
  if (options.seed && solver.seed) note_change("random_seed", *solver.seed, *options.seed, text);
  for (const auto& [name, value] : options.solver_fields) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, value);
  }
  if (!text.empty() && !options.solver.empty() && !options.resume) {
    setup.note("the command line changes solver '{}': {}", solver.file, text);
  }
}

void resolve_tests(TrainSetup& setup) {
  SolverDefinition& solver = setup.solver;
  const TrainOptions& chosen = setup.record.options;
  if (setup.validation_data != nullptr && solver.test_steps > 0) {
    const int64_t batch = setup.net.batch_size(TANDEM_TEST).value_or(chosen.batch);
    const int64_t size = setup.validation_data->size();
    setup.test_samples = std::min(size, solver.test_steps * batch);
    if (setup.test_samples < size) {
      setup.note(
          "test_iter {} of batch {}: every test during training takes the same {} of the {} "
          "validation images",
          solver.test_steps, batch, setup.test_samples, size);
    }
  }
  const fs::path prefix = solver.snapshot_prefix;
  std::string name = prefix.filename().string();
  if (name.empty()) name = fs::path(solver.file).stem().string();
  if (name.empty()) name = setup.net.name.empty() ? "snapshot" : as_file_name(setup.net.name);
  const int64_t interval = chosen.snapshot > 0 ? chosen.snapshot : solver.snapshot;
  if (interval > 0 && prefix.has_parent_path()) {
    setup.note("snapshots are '{}_iter_<step>.safetensors' in the run folder, not in '{}'", name,
               prefix.parent_path().string());
  }
  solver.snapshot_prefix = name;
}

}  // namespace tandem
