// A run's solver and net: from the solver file, from the command line, or the model's own; and
// where these differ.
#pragma once

#include "core/run/setup/train_setup.h"

namespace tandem {

// Fills in the setup's solver and net and, in its record, the net's name or file. True if the net
// is one of ours, or made in C++: then its class count may follow the data. Errors: a solver that
// contradicts itself, nets that are not found.
bool resolve_solver_and_net(Registry& registry, const TrainOptions& options, TrainSetup& setup);

// Notes where trained weights are, of a run that takes the usual options and has none; when the
// data are open.
void say_how_to_get_weights(const TrainOptions& options, TrainSetup& setup);

// The prototxt file of the net that the options or their solver name; "" if there is none.
[[nodiscard]] std::filesystem::path net_file_of(const TrainOptions& options);

// Fits the recipe of a built-in model, its own solver file, to the run's steps: drops of the rate
// keep their share of the run, and validation is after every epoch. Fields that the command line
// gives stay. A solver file that the user gave is left as it is.
void fit_recipe(const TrainOptions& options, TrainSetup& setup);

// One message with everything in which the options replace the solver file's fields; when the steps
// of the run are decided, and before max_iter is set to them.
void note_changes(const TrainOptions& options, TrainSetup& setup);

// How many samples an evaluation takes (test_iter times the net's test batch), and where snapshots
// go; when the data sets are open.
void resolve_tests(TrainSetup& setup);

}  // namespace tandem
