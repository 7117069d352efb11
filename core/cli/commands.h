// The commands of the `tandem` program, and what they are written with: options and printing. Each
// function adds its command, with its options and what it does, to the command line; a file of
// commands/ defines it. The work is done by the library: here are only options, words and tables.
#pragma once

#include "core/cli/arguments.h"
#include "core/cli/command_line.h"
#include "core/cli/print.h"

namespace tandem::cli {

void add_train(CommandLine& line);
void add_search(CommandLine& line);
void add_test(CommandLine& line);
void add_predict(CommandLine& line);
void add_compare(CommandLine& line);
void add_data(CommandLine& line);
void add_pack(CommandLine& line);
void add_profile(CommandLine& line);
void add_plan(CommandLine& line);
void add_export(CommandLine& line);
void add_import(CommandLine& line);
void add_fetch(CommandLine& line);
void add_net(CommandLine& line);
void add_models(CommandLine& line);
void add_layers(CommandLine& line);
void add_datasets(CommandLine& line);
void add_plugins(CommandLine& line);
void add_plugin(CommandLine& line);
void add_devices(CommandLine& line);
void add_completion(CommandLine& line);

}  // namespace tandem::cli
