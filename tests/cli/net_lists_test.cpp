// Training with the lists that a net's ImageData layers name, as Caffe's users have them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using test::Desk;
using test::Outcome;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class NetLists : public testing::Test {
 protected:
  NetLists() {
    desk_.draw_two_classes("pets");
    for (const char* split : {"train", "val"}) {
      std::string list;
      for (const std::string name : {"blue", "red"}) {
        const fs::path folder = fs::path(split) / name;
        for (const auto& entry : fs::directory_iterator(desk_ / "pets" / folder)) {
          list += (folder / entry.path().filename()).string() + (name == "red" ? " 1\n" : " 0\n");
        }
      }
      desk_.write("lists/" + std::string(split) + "ing.txt", list);
    }
    desk_.write("solver.prototxt",
                "net: 'lists_net.prototxt' base_lr: 0.001 lr_policy: 'fixed'\n"
                "max_iter: 2 test_iter: 1 test_interval: 2\n");
    write_net("root_folder: 'pets/'", "root_folder: 'pets/'");
  }
  void write_net(const std::string& train, const std::string& val) const {
    const auto data = [](const std::string& phase, const std::string& source) {
      return "layer {\n  name: 'data' type: 'ImageData' top: 'data' top: 'label'\n"
             "  include { phase: " +
             phase +
             " }\n  transform_param { crop_size: 8 }\n"
             "  image_data_param { batch_size: 4 " +
             source + " }\n}\n";
    };
    const std::string tiny = desk_.read("tiny.prototxt");
    const size_t begin = tiny.find("layer {"), end = tiny.find("layer {", begin + 1);
    desk_.write("lists_net.prototxt",
                tiny.substr(0, begin) + data("TRAIN", "source: 'lists/training.txt' " + train) +
                    data("TEST", "source: 'lists/valing.txt' " + val) + tiny.substr(end));
  }
  Desk desk_;
};

TEST_F(NetLists, AreTheDataWhereNoneAreGiven) {
  const Outcome outcome = desk_.tandem("train --solver=solver.prototxt --out run");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(
      outcome.output,
      AllOf(HasSubstr("data: the lists that net 'lists_net.prototxt' names: "
                      "'lists/training.txt' to train, 'lists/valing.txt' to validate, paths "
                      "from 'pets/' (--data)"),
            Not(HasSubstr("held out")), Not(HasSubstr("root_folder is not used"))));
  const auto record = nlohmann::json::parse(desk_.read("run/run.json"));
  EXPECT_EQ(record.at("training_samples"), 12) << "nothing is held out";
  EXPECT_THAT(desk_.tandem("test --run run").output, HasSubstr("4 images"));
  const Outcome resumed = desk_.tandem("train --resume --out run --steps 4");
  EXPECT_EQ(resumed.code, 0) << resumed.errors;
}

TEST_F(NetLists, OfAnotherMachineAreFoundByTheirNamesBesideTheNet) {
  write_net("root_folder: 'pets/'", "root_folder: 'pets/'");
  std::string net = desk_.read("lists_net.prototxt");
  net = test::replaced(net, "lists/training.txt", "C:\\nets\\training.txt");
  desk_.write("moved/net.prototxt", test::replaced(net, "lists/valing.txt", "/nets/valing.txt"));
  for (const char* list : {"training.txt", "valing.txt"}) {
    desk_.write(std::string("moved/") + list, desk_.read(std::string("lists/") + list));
  }
  desk_.write("solver.prototxt",
              "net: 'D:\\old\\net.prototxt' base_lr: 0.001 lr_policy: 'fixed' max_iter: 2\n");
  fs::rename(desk_ / "solver.prototxt", desk_ / "moved/solver.prototxt");
  const Outcome outcome = desk_.tandem("train --solver moved/solver.prototxt --out run");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("moved/training.txt' to train, "),
                                    HasSubstr("moved/valing.txt' to validate")));
}

TEST_F(NetLists, AreNotReadWhereDataAreGiven) {
  const Outcome outcome = desk_.tandem("train --solver solver.prototxt --data pets --out run");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, Not(HasSubstr("the lists that net")));
}

TEST_F(NetLists, ThatAreNotThereAreNamed) {
  fs::remove(desk_ / "lists/training.txt");
  EXPECT_THAT(desk_.refusal("train --solver solver.prototxt --out run"),
              AllOf(HasSubstr("no data (--data)"), HasSubstr("'lists/training.txt'")));
  write_net("", "");
  desk_.write("lists/training.txt", "train/blue/1.ppm 0\ntrain/red/1.ppm 1\n");
  EXPECT_THAT(desk_.refusal("train --solver solver.prototxt --out run"), HasSubstr("root=FOLDER"));
  write_net("root_folder: 'pets/'", "root_folder: 'other/'");
  EXPECT_THAT(desk_.refusal("train --solver solver.prototxt --out run"),
              HasSubstr("have two root_folder, 'pets/' and 'other/'"));
}

TEST_F(NetLists, AListToValidateThatIsNotThereIsRefusedUnlessAnotherIsNamed) {
  fs::rename(desk_ / "lists/valing.txt", desk_ / "lists/other.txt");
  EXPECT_THAT(desk_.refusal("train --solver=solver.prototxt --out run"),
              AllOf(HasSubstr("names the list 'lists/valing.txt' to validate"),
                    HasSubstr("--data-option val=FILE")));
  const Outcome outcome =
      desk_.tandem("train --solver=solver.prototxt --out run --data-option val=lists/other.txt");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
}

TEST_F(NetLists, ASolverWithoutARateSaysWhichIsTaken) {
  desk_.write("solver.prototxt",
              "net: 'lists_net.prototxt' lr_policy: 'fixed' max_iter: 1 test_interval: 0\n");
  EXPECT_THAT(desk_.tandem("train --solver=solver.prototxt --out run").output,
              HasSubstr("solver 'solver.prototxt' has no base_lr: 0.01 is taken (--lr)"));
  EXPECT_THAT(desk_.tandem("train --solver=solver.prototxt --lr 0.001 --out second").output,
              Not(HasSubstr("has no base_lr")));
}

TEST_F(NetLists, ADatabaseIsRefusedByItsName) {
  std::string net = desk_.read("tiny.prototxt");
  net = test::replaced(net, "data_param {", "data_param { source: 'train_lmdb'");
  desk_.write("lists_net.prototxt", net);
  EXPECT_THAT(desk_.refusal("train --solver solver.prototxt --out run"),
              AllOf(HasSubstr("the database 'train_lmdb'"), HasSubstr("--data")));
}

TEST_F(NetLists, TwoListsAreGivenByAnOption) {
  const std::string train =
      "train --net tiny.prototxt --steps 2 --data lists/training.txt "
      "--data-option root=pets ";
  EXPECT_THAT(desk_.tandem(train + "--out one").output, HasSubstr("are held out"));
  const Outcome two = desk_.tandem(train + "--data-option val=lists/valing.txt --out two");
  ASSERT_EQ(two.code, 0) << two.errors;
  EXPECT_THAT(two.output, Not(HasSubstr("held out")));
}

// Folders of the pictures of lists, which have no folder for each class.
TEST_F(NetLists, OfAFolderAreReadThoughTheirPicturesAreInFoldersOfTheSplits) {
  for (const char* split : {"train", "val"}) {
    std::string list;
    for (const std::string name : {"blue", "red"}) {
      const std::string picture = name + ".ppm";
      fs::create_directories(desk_ / "flat" / (std::string(split) + "_images"));
      for (const std::string copy : {"1", "2", "3"}) {
        fs::copy_file(desk_ / "pets" / split / name / "1.ppm",
                      desk_ / "flat" / (std::string(split) + "_images") / (copy + picture));
        list +=
            std::string(split) + "_images/" + copy + picture + (name == "red" ? " 1\n" : " 0\n");
      }
    }
    desk_.write("flat/" + std::string(split) + ".txt", list);
  }
  const Outcome outcome = desk_.tandem("train --net tiny.prototxt --steps 2 --data flat --out run");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, Not(HasSubstr("held out")));
}

}  // namespace
}  // namespace tandem
