// tandem fetch, by the whole program and a hub on the loopback that each test starts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>

#include "core/base/files/sha256.h"
#include "core/run/weights/hub.h"
#include "tests/cli/program.h"
#include "tests/support/http_server.h"
#include "tests/support/message_of.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::Desk;
using test::HttpRequest;
using test::HttpResponse;
using test::HttpServer;
using test::Outcome;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string sha256(const std::string& text) {
  Sha256 sum;
  sum.add(text.data(), text.size());
  return sum.finish();
}

TEST(Sha256, OfTheExamplesOfTheStandardIsRight) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// A safetensors file of one array, and timm's configuration of the net below.
std::string weights() {
  const std::string header = R"({"fc.weight":{"dtype":"F32","shape":[3,3],"data_offsets":[0,36]},)"
                             R"("fc.bias":{"dtype":"F32","shape":[3],"data_offsets":[36,48]}})";
  std::string length(8, '\0');
  length[0] = static_cast<char>(header.size());
  return length + header + std::string(48, '\0');
}

constexpr const char* net_text = R"(name: "line"
layer { name: "data" type: "Data" top: "data" top: "label"
        transform_param { crop_size: 8 } data_param { batch_size: 4 } }
layer { name: "std" type: "Scale" bottom: "data" top: "input" param { lr_mult: 0 } }
layer { name: "pool" type: "Pooling" bottom: "input" top: "pool"
        pooling_param { pool: AVE global_pooling: true } }
layer { name: "fc" type: "InnerProduct" bottom: "pool" top: "fc"
        inner_product_param { num_output: 3 } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "fc" bottom: "label" top: "loss" }
)";

constexpr const char* config_text = R"({"architecture": "line", "num_classes": 3,
  "pretrained_cfg": {"input_size": [3, 8, 8], "license": "apache-2.0"}})";

class Fetch : public testing::Test {
 protected:
  Fetch() : server_([this](const HttpRequest& request) { return answer(request); }) {
    desk_.write("models/pretrained/line.prototxt", net_text);
    desk_.write("models/pretrained/torch.names", "*.running_mean *.mean\n");
    files_ = {{"model.safetensors", weights()}, {"config.json", config_text}};
    listed_ = {{"sha", "c0ffee"},
               {"cardData", {{"license", "apache-2.0"}}},
               {"siblings",
                {{{"rfilename", "README.md"}, {"size", 5}},
                 {{"rfilename", "config.json"}, {"size", files_["config.json"].size()}},
                 {{"rfilename", "model.safetensors"},
                  {"size", weights().size()},
                  {"lfs", {{"sha256", sha256(weights())}, {"size", weights().size()}}}}}}};
  }

  void SetUp() override {
#ifndef TANDEM_HAS_CURL
    GTEST_SKIP() << "this build has no libcurl";
#endif
  }

  HttpResponse answer(const HttpRequest& request) {
    const std::lock_guard lock(mutex_);
    if (request.path == "/api/models/acme/line/revision/main?blobs=true")
      return {200, listed_.dump()};
    const std::string begin = "/acme/line/resolve/c0ffee/";
    if (!request.path.starts_with(begin)) return {404, "no such page"};
    const auto file = files_.find(request.path.substr(begin.size()));
    if (file == files_.end()) return {404, "no such file"};
    HttpResponse response{200, file->second};
    const auto range = request.headers.find("range");
    if (range != request.headers.end() && has_ranges_) {
      response.status = 206;
      response.body = response.body.substr(std::stoul(range->second.substr(6)));
    }
    if (file->first == "model.safetensors") response.cut_after = cut_after_;
    return change_ ? change_(request, response) : response;
  }

  // A test changes the answers between two programs. ThreadSanitizer does not see that the
  // server's thread waits for a program.
  void meet_server() const {
    const std::lock_guard lock(mutex_);
  }
  [[nodiscard]] std::string environment(int port) const {
    meet_server();
    return "no_proxy='*' HF_ENDPOINT=http://127.0.0.1:" + std::to_string(port) +
           " XDG_CACHE_HOME='" + (desk_ / "cache").string() + "' TANDEM_MODEL_PATH='" +
           (desk_ / "models").string() + "'";
  }
  [[nodiscard]] Outcome tandem(const std::string& arguments, const std::string& before = "") const {
    Outcome outcome = desk_.tandem(arguments, environment(server_.port()) + " " + before);
    meet_server();
    return outcome;
  }
  [[nodiscard]] std::string refusal(const std::string& arguments,
                                    const std::string& before = "") const {
    std::string message = desk_.refusal(arguments, environment(server_.port()) + " " + before);
    meet_server();
    return message;
  }
  [[nodiscard]] fs::path cached(const std::string& name) const {
    return desk_ / "cache/tandem/acme/line" / name;
  }
  void expect_nothing_usable() const {
    EXPECT_FALSE(fs::exists(cached("model.safetensors")));
    EXPECT_THAT(refusal("import acme/line --out run"), HasSubstr("nothing was fetched"));
  }

  mutable std::mutex mutex_;
  Desk desk_;
  std::map<std::string, std::string> files_;
  json listed_;
  bool has_ranges_ = true;
  size_t cut_after_ = SIZE_MAX;
  std::function<HttpResponse(const HttpRequest&, HttpResponse)> change_;
  HttpServer server_;
};

TEST_F(Fetch, ARepositoryIsUsedByItsNameWithoutTheHub) {
  const Outcome outcome = tandem("fetch acme/line");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("fetched 'acme/line' (license apache-2.0) into "),
                                    HasSubstr("model.safetensors: ")));
  EXPECT_EQ(test::read_text(cached("model.safetensors")), weights());
  EXPECT_FALSE(fs::exists(cached("README.md")));
  const size_t requests = server_.requests().size();
  const Outcome import = tandem("import acme/line --out run");
  ASSERT_EQ(import.code, 0) << import.errors;
  EXPECT_THAT(import.output, HasSubstr("license apache-2.0"));
  EXPECT_EQ(server_.requests().size(), requests);
  EXPECT_THAT(tandem("fetch acme/line").output, HasSubstr("'acme/line' is there already"));
  EXPECT_EQ(server_.requests().size(), requests + 1);
}

TEST_F(Fetch, WeightsThatAreNotThereAreDownloadedOnlyWhenAsked) {
  EXPECT_THAT(refusal("import acme/line --out run"),
              AllOf(HasSubstr("'tandem fetch acme/line'"), HasSubstr("--download")));
  EXPECT_TRUE(server_.requests().empty());
  const Outcome import = tandem("import acme/line --download --out run");
  EXPECT_EQ(import.code, 0) << import.errors;
  desk_.draw_two_classes("images");
  fs::remove_all(desk_ / "cache");
  const std::string train = "train --data images --steps 1 --out trained --weights acme/line ";
  EXPECT_THAT(refusal(train), HasSubstr("nothing was fetched"));
  EXPECT_EQ(tandem(train + "--download").code, 0);
}

TEST_F(Fetch, WeightsOfTheModelInTheCacheAreFineTunedUnlessItIsTrainedFromScratch) {
  desk_.draw_two_classes("images");
  const std::string train = "train --data images --model line --steps 1 --out ";
  EXPECT_THAT(tandem(train + "before").output, Not(HasSubstr("cache")));
  ASSERT_EQ(tandem("fetch acme/line").code, 0);
  const Outcome tuned = tandem(train + "tuned");
  ASSERT_EQ(tuned.code, 0) << tuned.errors;
  EXPECT_THAT(
      tuned.output,
      AllOf(HasSubstr("weights of line are in the cache, and are fine-tuned (--from-scratch "
                      "trains from random ones)"),
            HasSubstr(", at which the weights were trained (--image-size)"),
            HasSubstr("recipe finetune")));
  const Outcome searched = tandem("search --data images --model line --trials 1 --out found");
  ASSERT_EQ(searched.code, 0) << searched.errors;
  const auto trial = nlohmann::json::parse(desk_.read("found/round-1-trial-01/run.json"));
  EXPECT_EQ(trial.at("options").at("epochs"), 10) << "as a run that is fine-tuned";
  for (const char* other : {"--from-scratch", "--recipe caffe"}) {
    const Outcome outcome = tandem(train + "other" + std::string(other).back() + " " + other);
    ASSERT_EQ(outcome.code, 0) << outcome.errors;
    EXPECT_THAT(outcome.output, AllOf(Not(HasSubstr("cache")), Not(HasSubstr("finetune"))));
  }
  EXPECT_THAT(tandem("train --data images --net tiny.prototxt --steps 1 --out tiny").output,
              Not(HasSubstr("cache")));
}

// Pictures of 8x8 pixels, for which the least size is 24.
TEST_F(Fetch, WeightsOfTheCacheLeaveSmallImagesAsTheyAreWhereTheirOwnSizeCostsMuch) {
  files_["config.json"] = test::replaced(config_text, "[3, 8, 8]", "[3, 96, 96]");
  listed_["siblings"][1]["size"] = files_["config.json"].size();
  desk_.draw_two_classes("images");
  ASSERT_EQ(tandem("fetch acme/line").code, 0);
  const std::string train = "train --data images --model line --steps 1 --out ";
  const auto size_of = [&](const std::string& run) {
    return nlohmann::json::parse(desk_.read(run + "/run.json")).at("data_shape").dump();
  };
  const Outcome cached = tandem(train + "cached");
  ASSERT_EQ(cached.code, 0) << cached.errors;
  EXPECT_THAT(cached.output,
              HasSubstr("image size 24, by the images: at the 96 of the weights each would take 16 "
                        "times as many operations (--image-size 96)"));
  EXPECT_THAT(cached.output, HasSubstr("resized to 24"));
  const Outcome named = tandem(train + "named --weights acme/line");
  ASSERT_EQ(named.code, 0) << named.errors;
  EXPECT_THAT(named.output,
              HasSubstr("image size 96, at which the weights were trained: 16 times the operations "
                        "of 24, the size of the images (--image-size)"));
  const Outcome large = tandem(train + "large --image-size 96");
  ASSERT_EQ(large.code, 0) << large.errors;
  EXPECT_NE(size_of("cached"), size_of("large"));
  EXPECT_EQ(size_of("named"), size_of("large"));
}

TEST_F(Fetch, WeightsOfTheCacheAreLeftAloneWhereTheyDoNotFitOrAreGone) {
  // Digits of one channel: four of 8x8 pixels, of two classes.
  const auto big_endian = [](const std::vector<int>& values) {
    std::string bytes;
    for (const int value : values) bytes += std::string(3, '\0') + static_cast<char>(value);
    return bytes;
  };
  for (const char* split : {"train", "t10k"}) {
    const std::string name = std::string("digits/") + split;
    std::string pixels;
    for (int i = 0; i < 4 * 64; ++i) pixels += static_cast<char>(i);
    desk_.write(name + "-images-idx3-ubyte",
                std::string("\0\0\x08\x03", 4) + big_endian({4, 8, 8}) + pixels);
    desk_.write(name + "-labels-idx1-ubyte",
                std::string("\0\0\x08\x01", 4) + big_endian({4}) + std::string("\0\1\0\1", 4));
  }
  ASSERT_EQ(tandem("fetch acme/line").code, 0);
  const Outcome digits = tandem("train --data digits --model line --steps 1 --out digits_run");
  ASSERT_EQ(digits.code, 0) << digits.errors;
  EXPECT_THAT(digits.output,
              AllOf(HasSubstr("the weights of line in the cache are of images of 3 channels, and "
                              "not of 1"),
                    Not(HasSubstr("finetune"))));
  EXPECT_THAT(refusal("train --data digits --weights acme/line --steps 1 --out other"),
              HasSubstr("they are of images of 3 channels, and those of data 'digits' have 1"));
  desk_.draw_two_classes("images");
  fs::remove(cached("model.safetensors"));
  const Outcome without = tandem("train --data images --model line --steps 1 --out without");
  ASSERT_EQ(without.code, 0) << without.errors;
  EXPECT_THAT(without.output, Not(HasSubstr("cache")));
}

TEST_F(Fetch, AnInterruptedDownloadContinuesWhereItEnded) {
  cut_after_ = 100;
  EXPECT_THAT(refusal("fetch acme/line"),
              AllOf(HasSubstr("model.safetensors' was interrupted after 100 B"),
                    HasSubstr("the same command continues")));
  expect_nothing_usable();
  cut_after_ = SIZE_MAX;
  const Outcome outcome = tandem("fetch acme/line");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_EQ(test::read_text(cached("model.safetensors")), weights());
  const auto requests = server_.requests();
  const auto resumed =
      std::find_if(requests.begin(), requests.end(),
                   [](const HttpRequest& request) { return request.headers.contains("range"); });
  ASSERT_NE(resumed, requests.end());
  EXPECT_EQ(resumed->headers.at("range"), "bytes=100-");
}

TEST_F(Fetch, AServerThatCannotContinueBeginsAgain) {
  cut_after_ = 100;
  (void)refusal("fetch acme/line");
  cut_after_ = SIZE_MAX;
  has_ranges_ = false;
  EXPECT_EQ(tandem("fetch acme/line").code, 0);
  EXPECT_EQ(test::read_text(cached("model.safetensors")), weights());
}

TEST_F(Fetch, BytesOfAnotherHashOrSizeAreRefusedAndRemoved) {
  files_["model.safetensors"].back() = 'x';
  EXPECT_THAT(refusal("fetch acme/line"),
              AllOf(HasSubstr("its SHA-256 is "), HasSubstr(sha256(weights()))));
  expect_nothing_usable();
  files_["model.safetensors"] = weights() + "longer";
  EXPECT_THAT(refusal("fetch acme/line"), HasSubstr("it is longer than "));
  expect_nothing_usable();
  files_["model.safetensors"] = weights().substr(0, 50);
  EXPECT_THAT(refusal("fetch acme/line"), HasSubstr("it has 50 bytes, the hub says "));
  expect_nothing_usable();
  for (const auto& entry : fs::directory_iterator(cached(""))) {
    EXPECT_LT(fs::file_size(entry.path()), weights().size()) << entry.path();
  }
}

TEST_F(Fetch, ARedirectionIsFollowedWithoutTheKey) {
  HttpServer store([](const HttpRequest&) { return HttpResponse{200, weights()}; });
  change_ = [&](const HttpRequest& request, HttpResponse response) {
    if (request.path.ends_with("model.safetensors")) {
      response = {302, ""};
      response.headers["Location"] = "http://localhost:" + std::to_string(store.port()) + "/blob";
    }
    return response;
  };
  const Outcome outcome = tandem("fetch acme/line", "HF_TOKEN=secret");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_EQ(server_.requests().at(0).headers.at("authorization"), "Bearer secret");
  ASSERT_EQ(store.requests().size(), 1U);
  EXPECT_FALSE(store.requests()[0].headers.contains("authorization"));
}

TEST_F(Fetch, WhatTheHubDoesNotHaveIsSaidInALine) {
  EXPECT_THAT(refusal("fetch acme/circle"),
              AllOf(HasSubstr("has no 'acme/circle' (revision main)"), HasSubstr("HF_TOKEN")));
  EXPECT_THAT(refusal("fetch acme/line@v9"), HasSubstr("(revision v9)"));
  listed_["siblings"].erase(2);
  EXPECT_THAT(refusal("fetch acme/line"), HasSubstr("'acme/line' has no weights: neither "));
  listed_ = json::array();
  EXPECT_THAT(refusal("fetch acme/line"), HasSubstr("did not answer as a hub does"));
  for (const char* name : {"line", "../line", "acme/../line", "acme/line/more", "acme/li%6ee"}) {
    EXPECT_THAT(refusal(std::string("fetch ") + name), HasSubstr("is no repository of weights"));
  }
}

// A file that is listed and not there.
TEST_F(Fetch, AFailureKeepsNoFileLocked) {
  files_.erase("model.safetensors");
  const std::map<std::string, std::string> environment = {
      {"no_proxy", "*"},
      {"HF_ENDPOINT", "http://127.0.0.1:" + std::to_string(server_.port())},
      {"XDG_CACHE_HOME", (desk_ / "cache").string()}};
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
  meet_server();
  const auto message = [] {
    return test::message_of([] { (void)fetch_repository("acme/line", [](const auto&) {}); });
  };
  const std::string first = message();
  EXPECT_THAT(first, HasSubstr("has no 'acme/line'"));
  EXPECT_EQ(message(), first);
  for (const auto& [name, value] : environment) unsetenv(name.c_str());
}

TEST_F(Fetch, NamesThatLeadOutOfTheFolderAreRefused) {
  listed_["siblings"].erase(2);
  files_["model.safetensors.index.json"] = R"({"weight_map": {"fc.bias": "../../evil"}})";
  listed_["siblings"].push_back({{"rfilename", "model.safetensors.index.json"}});
  listed_["siblings"].push_back({{"rfilename", "../../evil"}});
  EXPECT_THAT(refusal("fetch acme/line"), HasSubstr("names the file '../../evil'"));
  listed_["sha"] = "../..";
  EXPECT_THAT(refusal("fetch acme/line"), HasSubstr("its commit is '../..'"));
}

TEST_F(Fetch, WithoutANetworkEndsWithAnError) {
  int port = 0;
  {
    const HttpServer gone([](const HttpRequest&) { return HttpResponse{}; });
    port = gone.port();
  }
  EXPECT_THAT(desk_.refusal("fetch acme/line", environment(port)),
              AllOf(HasSubstr("cannot be fetched: "), HasSubstr("onnect")));
  EXPECT_FALSE(fs::exists(desk_ / "cache"));
}

TEST_F(Fetch, AFullDiskEndsWithAnErrorAndWithoutAFile) {
  files_["model.safetensors"] = std::string(100'000, 'x');
  listed_["siblings"][2]["size"] = 100'000;
  listed_["siblings"][2]["lfs"]["sha256"] = sha256(files_["model.safetensors"]);
  EXPECT_THAT(
      desk_.refusal("fetch acme/line", "ulimit -f 32; env " + environment(server_.port())),
      AllOf(HasSubstr("model.safetensors' cannot be stored: "), HasSubstr("File too large")));
  expect_nothing_usable();
}

}  // namespace
}  // namespace tandem
