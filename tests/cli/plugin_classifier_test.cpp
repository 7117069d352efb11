// Nets whose scores a plugin's layer makes: how many there are decides the number of classes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/cli/plugin_desk.h"
#include "tests/cli/program.h"

namespace tandem {
namespace {

using test::bad_plugin;
using test::Desk;
using test::replaced;
using test::tiny_net;
using test::with_plugins;
using testing::AllOf;
using testing::HasSubstr;

// Trains a net with 12 features, of which such a layer makes scores.
test::Outcome train_classifier(const Desk& desk, int classes, const std::string& options) {
  std::string net = replaced(tiny_net(), "num_output: 2", "num_output: 12");
  net = replaced(net, "bottom: \"score\" bottom: \"label\" top: \"accuracy\"",
                 "bottom: \"own\" bottom: \"label\" top: \"accuracy\"");
  net = replaced(net, "bottom: \"score\" bottom: \"label\" top: \"loss\"",
                 "bottom: \"own\" bottom: \"label\" top: \"loss\"");
  const std::string own =
      "layer { name: \"own\" type: \"test.Scores\" bottom: \"score\" top: \"own\" "
      "test_param { classes: " +
      std::to_string(classes) + " } }\n";
  const std::string accuracy = "layer {\n  name: \"accuracy\"";
  desk.write("net.prototxt", replaced(net, accuracy, own + accuracy));
  return desk.tandem("train --net net.prototxt --data synthetic --steps 2 --out run " + options,
                     "rm -rf run; exec env " + with_plugins(bad_plugin("run_time")));
}

TEST(PluginClassifier, OfAsManyScoresAsClassesChangesNothingInTheNet) {
  const Desk desk;
  for (const char* options : {"", "--adapt-classes", "--data-option class_count=3"}) {
    const test::Outcome outcome = train_classifier(desk, 3, options);
    EXPECT_EQ(outcome.code, 0) << options << outcome.errors;
    EXPECT_THAT(desk.read("run/net.prototxt"), HasSubstr("num_output: 12")) << options;
    EXPECT_EQ(desk.read("run/classes.txt").size(), std::string("class 0\n").size() * 3) << options;
  }
}

TEST(PluginClassifier, OfAnotherNumberOfScoresIsRefusedByItsName) {
  const Desk desk;
  // 12: what the layer before it has, and could be adapted to.
  for (const int classes : {3, 12}) {
    for (const char* options : {"", " --adapt-classes"}) {
      const test::Outcome outcome =
          train_classifier(desk, classes, "--data-option class_count=5" + std::string(options));
      EXPECT_EQ(outcome.code, 1) << options << outcome.output;
      const bool is_offered = classes == 12 && *options == 0;
      EXPECT_THAT(outcome.errors,
                  AllOf(HasSubstr("the data have 5 classes"),
                        HasSubstr(is_offered ? "use --adapt-classes"
                                             : "layer 'own' (test.Scores) gives the loss")));
    }
  }
}

}  // namespace
}  // namespace tandem
