#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/plugin_desk.h"
#include "tests/cli/program.h"
#include "tests/support/emulation.h"
#include "tests/support/folders.h"

namespace tandem {
namespace {

using test::bad_plugin;
using test::Desk;
using test::replaced;
using test::tiny_net;
using test::train_on_mistake;
using test::with_plugins;
using testing::AllOf;
using testing::HasSubstr;

// What is said when a net asks for a layer that a plugin which does not load may have held.
std::string refusal_with(const std::string& folder) {
  const Desk desk;
  desk.write("net.prototxt", replaced(tiny_net(), "\"ReLU\"", "\"acme.Swish\""));
  return desk.refusal("train --net net.prototxt --data synthetic --steps 2 --out run",
                      with_plugins(folder));
}

TEST(PluginErrors, AnotherAbiMajorNamesBothVersionsAndTheFix) {
  EXPECT_THAT(refusal_with(bad_plugin("wrong_major")),
              AllOf(HasSubstr("'acme.Swish'"), HasSubstr("wrong_major.so"), HasSubstr("100.4"),
                    HasSubstr("rebuild it")));
}

TEST(PluginErrors, AMissingSymbolIsNamed) {
  EXPECT_THAT(refusal_with(bad_plugin("missing_symbol")),
              AllOf(HasSubstr("'acme.Swish'"), HasSubstr("missing_symbol.so"),
                    HasSubstr("'a_function_nobody_defines'")));
}

TEST(PluginErrors, ALibraryThatIsNoPluginIsNamed) {
  EXPECT_THAT(refusal_with(bad_plugin("no_entry")),
              AllOf(HasSubstr("no_entry.so"), HasSubstr("no symbol 'tandem_plugin_entry'")));
}

TEST(PluginErrors, AFileThatIsNoLibraryIsNamed) {
  const Desk plugins;
  plugins.write("text.so", "hello");
  EXPECT_THAT(refusal_with((plugins / "").string()),
              AllOf(HasSubstr("text.so"), HasSubstr("not a shared library")));
}

// The loader's message is as long as the path. One that was freed while it was made crashed the
// program at some lengths only.
TEST(PluginErrors, AFileThatIsNoLibraryIsNamedWhateverTheLengthOfItsPath) {
  const Desk plugins;
  for (size_t length = 1; length <= 64; length += 7) {
    const std::string folder(length, 'p');
    plugins.make_folder(folder);
    plugins.write(folder + "/text.so", "hello");
    EXPECT_THAT(refusal_with((plugins / folder).string()), HasSubstr("not a shared library"));
  }
}

TEST(PluginErrors, AFailedPluginMattersOnlyWhereItIsNeeded) {
  const Desk desk;
  const test::Outcome outcome =
      desk.tandem("train --net tiny.prototxt --data synthetic --steps 2 --out run",
                  with_plugins(bad_plugin("wrong_major")));
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
}

// What is said when the net's ReLU is replaced by a layer that goes wrong when it runs.
test::Outcome train_with(const Desk& desk, const std::string& type, const std::string& parameters) {
  desk.write("net.prototxt",
             replaced(tiny_net(), "type: \"ReLU\"", "type: \"" + type + "\" " + parameters));
  return desk.tandem(
      "train --net net.prototxt --data synthetic --steps 2 --no-plugin-check --out run",
      "rm -rf run; exec env " + with_plugins(bad_plugin("run_time")));
}

TEST(PluginErrors, ALayerWithAnotherNumberOfRowsIsNamed) {
  const Desk desk;
  EXPECT_THAT(train_with(desk, "test.MoreRows", "").errors,
              AllOf(HasSubstr("(test.MoreRows): output 0 would have"), HasSubstr("net.prototxt:")));
}

TEST(PluginErrors, LessThanNoMemoryIsRefused) {
  const Desk desk;
  EXPECT_THAT(train_with(desk, "test.Asks", "test_param { saved: -8 }").errors,
              AllOf(HasSubstr("asks for -8 bytes of saved memory"), HasSubstr("net.prototxt:")));
  EXPECT_THAT(train_with(desk, "test.Asks", "test_param { scratch: -8 }").errors,
              HasSubstr("asks for -8 bytes of scratch memory"));
}

TEST(PluginErrors, MoreMemoryThanAnyDeviceAddressesIsRefused) {
  const Desk desk;
  for (const char* bytes : {"9223372036854775807", "9223372036854775707", "281474976710657"}) {
    for (const std::string memory : {"saved", "scratch"}) {
      const test::Outcome outcome =
          train_with(desk, "test.Asks", "test_param { " + memory + ": " + bytes + " }");
      EXPECT_EQ(outcome.code, 1) << memory << " " << bytes;
      EXPECT_THAT(outcome.errors,
                  AllOf(HasSubstr("(test.Asks): its kernel asks for " + std::string(bytes) +
                                  " bytes of " + memory + " memory, but the most is 2814749767"),
                        HasSubstr("run_time.so")));
    }
  }
}

TEST(PluginErrors, FewerThanNoStatisticsAreRefused) {
  const Desk desk;
  EXPECT_THAT(train_with(desk, "test.Asks", "test_param { statistics: -5 }").errors,
              AllOf(HasSubstr("(test.Asks): its kernel writes -5 statistics of the batch"),
                    HasSubstr("net.prototxt:")));
}

// ---- What the net asks of a data set without parameters

test::Outcome train_on_plain_data(const Desk& desk, const std::string& transform) {
  desk.write("net.prototxt",
             replaced(tiny_net(), "crop_size: 8 scale: 0.01 mean_value: 128", transform));
  return desk.tandem("train --net net.prototxt --data plain --steps 2 --no-plugin-check --out run",
                     "rm -rf run; exec env " + with_plugins(bad_plugin("null_texts")));
}

TEST(PluginErrors, ValuesOfPixelsThatADataSetCannotGiveAreRefused) {
  const Desk desk;
  for (const auto& [transform, said] : std::vector<std::pair<std::string, std::string>>{
           {"crop_size: 8 scale: 0.01 mean_value: 128",
            "has scale 0.01 and mean_value 128, but data 'plain' cannot do that: its data set has "
            "no parameter 'scale' and 'mean'"},
           {"scale: 0.5", "has scale 0.5, but data 'plain'"},
           {"mean_value: 1 mean_value: 2 mean_value: 3", "has mean_value 1,2,3, but data 'plain'"},
           {"mean_file: \"mean.binaryproto\"", "has mean_file, but data 'plain'"}}) {
    const test::Outcome outcome = train_on_plain_data(desk, transform);
    EXPECT_EQ(outcome.code, 1) << transform;
    EXPECT_THAT(outcome.errors, AllOf(HasSubstr("net.prototxt': its transform_param " + said)))
        << transform;
  }
}

TEST(PluginErrors, ACropOfAnotherSizeThanADataSetGivesIsRefused) {
  const Desk desk;
  EXPECT_EQ(train_on_plain_data(desk, "crop_size: 8").code, 0);
  EXPECT_THAT(train_on_plain_data(desk, "crop_size: 9").errors,
              HasSubstr("gives samples of 3x8x8, but the net expects"));
}

TEST(PluginErrors, ImagesThatADataSetCannotMirrorAreReported) {
  const Desk desk;
  const std::string message =
      "data 'plain': its data set has no parameter 'mirror', so no image is mirrored";
  const test::Outcome mirrored = train_on_plain_data(desk, "mirror: true");
  EXPECT_EQ(mirrored.code, 0) << mirrored.errors;
  EXPECT_THAT(mirrored.output, HasSubstr(message));
  EXPECT_THAT(train_on_plain_data(desk, "mirror: false").output, testing::Not(HasSubstr(message)));
}

TEST(PluginErrors, AtRunTimeNameTypeLineAndModule) {
  const Desk desk;
  const test::Outcome outcome = train_with(desk, "test.Ends", "");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.errors,
              AllOf(HasSubstr("(test.Ends): no luck today (net.prototxt:"), HasSubstr("module"),
                    HasSubstr("run_time.so"), HasSubstr("backward_data")));
}

// Trains on a data set with a mistake, which prepares the pixels itself.
// Programs of a sanitizer have its handlers.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(PluginErrors, ACrashIsReportedInOneLineWithPassLayerTypeAndModule) {
  for (const auto& [by, pass, crash, code] :
       {std::tuple{"write", "backward_data", "run_time.so crashed in step 1 (SIGSEGV", 139},
        {"abort", "backward_data", "run_time.so crashed in step 1 (SIGABRT", 134},
        {"prepare", "prepare", "run_time.so crashed (SIGABRT", 134},
        {"stack", "backward_data", "run_time.so crashed in step 1 (SIGSEGV", 139},
        {"divide", "backward_data", "run_time.so crashed in step 1 (SIGFPE: arithmetic", 136},
        {"illegal", "backward_data", "run_time.so crashed in step 1 (SIGILL", 132},
        {"exit", "backward_data", "run_time.so in step 1 called exit()", 1}}) {
    const Desk desk;
    const test::Outcome outcome =
        train_with(desk, "test.Ends", "test_param { by: \"" + std::string(by) + "\" }");
    EXPECT_EQ(outcome.code, code) << by;
    EXPECT_THAT(outcome.errors,
                AllOf(HasSubstr("tandem: " + std::string(pass) + " of layer '"),
                      HasSubstr("(test.Ends)"), HasSubstr("net.prototxt:"), HasSubstr(crash)));
    const bool emulator_tells = test::is_emulated() && code > 128;  // of the signal, in a line
    EXPECT_EQ(std::count(outcome.errors.begin(), outcome.errors.end(), '\n'),
              emulator_tells ? 2 : 1)
        << outcome.errors;
  }
}

TEST(PluginErrors, ACrashInALaterStepNamesThatStep) {
  const Desk desk;
  desk.write("solver.prototxt", "base_lr: 0.01 lr_policy: \"fixed\" max_iter: 9 iter_size: 3\n");
  desk.write("net.prototxt",
             replaced(tiny_net(), "type: \"ReLU\"",
                      "type: \"test.Ends\" test_param { by: \"abort\" after: 13 }"));
  const test::Outcome outcome = desk.tandem(
      "train --net net.prototxt --data synthetic --solver solver.prototxt --no-plugin-check --out "
      "run",
      "rm -rf run; exec env " + with_plugins(bad_plugin("run_time")));
  EXPECT_EQ(outcome.code, 134);
  EXPECT_THAT(outcome.errors, HasSubstr("run_time.so crashed in step 5 (SIGABRT"));
}

// A net is made before a layer is tried, and for that the plugin is asked for shapes.
TEST(PluginErrors, ACrashInAnAnswerOfALayerTypeIsReportedInOneLineWithLayerTypeAndModule) {
  const Desk desk;
  desk.write("net.prototxt",
             replaced(tiny_net(), "type: \"ReLU\"",
                      "type: \"mistake.DividesByAZero\" mistake_param { divisor: 0 }"));
  const test::Outcome outcome =
      desk.tandem("train --net net.prototxt --data synthetic --steps 2 --out run",
                  "rm -rf run; exec env " + with_plugins(bad_plugin("mistakes")));
  EXPECT_EQ(outcome.code, 136) << outcome.errors;
  EXPECT_THAT(outcome.errors,
              AllOf(testing::StartsWith("tandem: shapes of layer 'relu1' (mistake.DividesByAZero) "
                                        "(net.prototxt:"),
                    HasSubstr("), module "),
                    HasSubstr("mistakes.so crashed (SIGFPE: arithmetic error)\n")));
}

TEST(PluginErrors, AnExceptionInAThreadOfAPluginIsReportedWithWhatRuns) {
  const Desk desk;
  const test::Outcome of_layer = train_with(desk, "test.Ends", "test_param { by: \"thread\" }");
  EXPECT_EQ(of_layer.code, 1);
  EXPECT_THAT(of_layer.errors,
              AllOf(HasSubstr("tandem: no luck here; while running backward_data of layer '"),
                    HasSubstr("(test.Ends)"), HasSubstr("run_time.so")));
  const test::Outcome of_data =
      train_on_mistake(desk, "ThrowsInThread", "--steps 1 --no-plugin-check");
  EXPECT_EQ(of_data.code, 1);
  EXPECT_THAT(of_data.errors, AllOf(HasSubstr("tandem: no luck; while running get"),
                                    HasSubstr("data set 'bad_data_ThrowsInThread'"),
                                    HasSubstr("mistakes_of_data.so")));
}

TEST(PluginErrors, AModuleThatCrashesWhenItLoadsIsListedAndLeftOut) {
  const Desk desk;
  const test::Outcome outcome = desk.tandem("plugins", with_plugins(bad_plugin("crashes")));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.errors, "");
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("NOT LOADED: it crashes when it is loaded"),
                                    HasSubstr("crashes.so")));
  EXPECT_EQ(desk.tandem("layers", with_plugins(bad_plugin("crashes"))).code, 0);
}
#endif

// A copy of the program, whose own plugins are links that a test may remove.
class OwnModules : public testing::Test {
 protected:
  OwnModules() {
    const std::filesystem::path build = test::build_folder();
    for (const char* folder : {"bin", "lib/tandem/plugins"}) desk_.make_folder(folder);
    std::filesystem::copy_file(build / "bin/tandem", desk_ / "bin/tandem");
    std::filesystem::copy_file(build / "lib/libtandem.so.0", desk_ / "lib/libtandem.so.0");
    for (const auto& entry : std::filesystem::directory_iterator(test::plugin_folder())) {
      std::filesystem::create_symlink(entry.path(),
                                      desk_ / "lib/tandem/plugins" / entry.path().filename());
    }
    desk_.write("norm.prototxt",
                replaced(tiny_net(), "layer { name: \"relu1\"",
                         "layer { name: \"norm\" type: \"BatchNorm\" bottom: \"conv1\" top: "
                         "\"conv1\" }\nlayer { name: \"scale\" type: \"Scale\" bottom: "
                         "\"conv1\" top: \"conv1\" scale_param { bias_term: true } }\n"
                         "layer { name: \"relu1\""));
  }
  [[nodiscard]] test::Outcome run(const std::string& arguments) const {
    return desk_.run(
        "../" + std::string(std::filesystem::relative(desk_ / "bin/tandem", test::build_folder())),
        arguments);
  }

  Desk desk_;
  const std::filesystem::path joined_ =
      desk_ / "lib/tandem/plugins/tandem_layer_batch_norm_scale.so";
  const std::string train_ = "train --net norm.prototxt --data synthetic --steps 2 --out run";
};

TEST_F(OwnModules, ThatAreMissingOrDamagedAreSaidInOneLine) {
  const test::Outcome whole = run("layers");
  EXPECT_EQ(whole.code, 0);
  EXPECT_EQ(whole.errors, "");
  const std::string bytes = test::read_text(joined_);
  std::filesystem::remove(joined_);
  const std::string note =
      "tandem: note: 1 of Tandem's own modules is not loaded, and results may differ from those "
      "with it: ";
  const test::Outcome missing = run(train_);
  EXPECT_EQ(missing.code, 0);
  EXPECT_THAT(missing.errors, AllOf(testing::StartsWith(note + joined_.string()),
                                    HasSubstr("it is missing: install Tandem again\n")));
  desk_.write("lib/tandem/plugins/tandem_layer_batch_norm_scale.so", bytes.substr(0, 5000));
  const test::Outcome damaged = run("layers");
  EXPECT_EQ(damaged.code, 0);
  EXPECT_THAT(damaged.errors,
              AllOf(testing::StartsWith(note), HasSubstr("damaged or not complete")));
}

TEST_F(OwnModules, ThatARunHasUsedAreNeeded) {
  ASSERT_EQ(run(train_).code, 0);
  std::filesystem::remove(joined_);
  const test::Outcome resumed = run("train --resume --out run --steps 4");
  EXPECT_EQ(resumed.code, 1);
  EXPECT_THAT(resumed.errors, AllOf(HasSubstr("run 'run' cannot go on as it was trained"),
                                    HasSubstr("'BatchNormScale'"), HasSubstr("it is missing")));
}

TEST(Plugins, OfAFolderThatDoesNotExistAreReported) {
  const Desk desk;
  const test::Outcome listed = desk.tandem("plugins", with_plugins("nowhere"));
  EXPECT_EQ(listed.code, 1);
  EXPECT_THAT(listed.output,
              AllOf(HasSubstr("TANDEM_PLUGIN_PATH names this folder"), HasSubstr("nowhere")));
  EXPECT_THAT(refusal_with("nowhere"), AllOf(HasSubstr("'acme.Swish'"), HasSubstr("nowhere")));
  EXPECT_EQ(desk.tandem("plugins").code, 0);
}

TEST(Plugins, AreListedWithTheVersionsThatTheyWereBuiltWith) {
  const Desk desk;
  const std::string environment = with_plugins(bad_plugin("newer_minor"));
  EXPECT_THAT(desk.tandem("plugins", environment).output,
              HasSubstr("newer_minor.so\n  plugin ABI 2.7: layers 2.3\n"));
  bool found = false;
  for (const auto& module :
       nlohmann::json::parse(desk.tandem("plugins --json", environment).output)) {
    if (module.at("name") != "newer_minor") continue;
    found = true;
    EXPECT_EQ(module.at("abi"), "2.7");
    EXPECT_EQ(module.at("parts"), nlohmann::json::array({"layers 2.3"}));
    EXPECT_TRUE(module.at("left_out").empty());
  }
  EXPECT_TRUE(found);
}

TEST(Plugins, AreListedAsJsonWithReasonsOfFailures) {
  const Desk desk;
  const test::Outcome outcome =
      desk.tandem("plugins --json", with_plugins(bad_plugin("wrong_major")));
  EXPECT_EQ(outcome.code, 1) << "one did not load";
  bool found_failure = false, found_convolution = false;
  for (const auto& module : nlohmann::json::parse(outcome.output)) {
    const std::string path = module.at("path");
    if (path.find("wrong_major.so") != std::string::npos) {
      found_failure = !module.at("loaded").get<bool>() &&
                      module.at("reason").get<std::string>().find("100.4") != std::string::npos;
    }
    for (const std::string offer : module.at("offers"))
      found_convolution = found_convolution || offer == "layer Convolution";
  }
  EXPECT_TRUE(found_failure) << outcome.output;
  EXPECT_TRUE(found_convolution) << outcome.output;
}

TEST(Layers, AreListedAsJsonWithEveryParameter) {
  const Desk desk;
  const test::Outcome outcome = desk.tandem("layers Convolution --json");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  const auto tree = nlohmann::json::parse(outcome.output);
  ASSERT_EQ(tree.size(), 1u);
  EXPECT_EQ(tree[0].at("dtypes").at("cpu"), nlohmann::json({"float32", "bfloat16"}));
  bool found = false;
  for (const auto& parameter : tree[0].at("parameters")) {
    if (parameter.at("name") != "num_output") continue;
    found = true;
    EXPECT_EQ(parameter.at("type"), "integer");
    EXPECT_EQ(parameter.at("required"), true);
    EXPECT_NE(parameter.at("help"), "");
  }
  EXPECT_TRUE(found) << outcome.output;
}

TEST(Layers, AreListedWithAKernelThatTwoPluginsRegister) {
  const Desk desk;
  const std::string both = with_plugins(bad_plugin("good") + ":" + bad_plugin("taken_kernel"));
  const test::Outcome listed = desk.tandem("layers", both);
  EXPECT_EQ(listed.code, 0) << listed.errors;
  EXPECT_THAT(listed.output,
              AllOf(HasSubstr("test.Good          for tests [cpu (not usable: two plugins"),
                    HasSubstr("Convolution ")));
  const test::Outcome one = desk.tandem("layers test.Good --json", both);
  ASSERT_EQ(one.code, 0) << one.errors;
  EXPECT_TRUE(nlohmann::json::parse(one.output).at(0).at("dtypes").empty()) << one.output;
}

TEST(Layers, AreListedWithATypeThatTwoPluginsRegister) {
  const Desk desk;
  const std::string both = with_plugins(bad_plugin("good") + ":" + bad_plugin("taken_name"));
  const test::Outcome listed = desk.tandem("layers", both);
  EXPECT_EQ(listed.code, 0) << listed.errors;
  EXPECT_THAT(listed.output,
              AllOf(HasSubstr("test.Good          not usable: "), HasSubstr("good.so"),
                    HasSubstr("taken_name.so"), HasSubstr("Convolution ")));
}

TEST(Layers, OfAnUnknownNameGiveTheNearOne) {
  const Desk desk;
  EXPECT_THAT(desk.refusal("layers Poolin"),
              AllOf(HasSubstr("'Poolin'"), HasSubstr("did you mean 'Pooling'?")));
}

}  // namespace
}  // namespace tandem
