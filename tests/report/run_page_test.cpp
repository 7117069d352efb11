// The page of a run, from figures that are made up here.
#include "core/report/run_page.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/resource.h>

#include <cstdlib>

#include "core/base/numbers/random.h"
#include "core/base/text/strings.h"
#include "core/report/captions.h"
#include "core/report/compare_page.h"
#include "core/report/confusion_page.h"
#include "core/report/drawn_findings.h"
#include "core/report/page/page.h"
#include "core/run/folder/progress.h"
#include "tests/support/folders.h"
#include "tests/support/page_data.h"
#include "tests/support/temp_folder.h"

namespace tandem {
namespace {

using nlohmann::json;
using test::page_data;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr size_t three_megabytes = 3 << 20;

MetricRow row(const std::string& split, int64_t step, double loss, double top1) {
  MetricRow row;
  row.split = split;
  row.step = step;
  row.loss = loss;
  row.top1 = top1;
  row.rate = 0.1;
  row.seconds = row.images_per_second = 10;
  return row;
}

RunFigures figures(int64_t classes) {
  RunFigures run;
  run.name = "run";
  run.record.net_name = "resnet18";
  run.record.options.data = "flowers";
  run.record.options.steps = 50;
  run.record.training_samples = 1000;
  run.epochs_per_step = 0.1;
  for (int64_t c = 0; c < classes; ++c) {
    run.record.class_names.push_back("class " + std::to_string(c));
  }
  for (int64_t epoch = 1; epoch <= 5; ++epoch) {
    const auto number = static_cast<double>(epoch);
    run.metrics.push_back(row("train", 10 * epoch, 3 / number, no_figure));
    run.metrics.push_back(row("val", 10 * epoch, 2 / number, 0.1 * number));
    run.metrics.back().best = true;
    run.metrics.push_back(row("epoch", 10 * epoch, 2 / number, 0.12 * number));
  }
  run.findings.emplace();
  run.findings->confusion = Confusion(classes);
  run.judged = "validation after step 50";
  for (int64_t c = 0; c < classes; ++c) {
    run.findings->confusion.add(c, c, 30);
    run.findings->confusion.add(c, (c + 1) % classes, 10);
    run.findings->confusion.add(c, (c * 7 + 3) % classes, 5);
  }
  run.findings->samples = 45 * classes;
  run.findings->right = 30 * classes;
  SplitAudit split;
  split.name = "train";
  split.samples = run.record.training_samples;
  split.class_counts.assign(static_cast<size_t>(classes), 100);
  run.data.splits = {split};
  run.data.class_names = run.record.class_names;
  run.data.type = "image_folder";
  return run;
}

JudgedPicture judged_picture(const std::string& name) {
  JudgedPicture one;
  one.judgement = {3, 0, 1, 0.9};
  one.name = name;
  one.picture = {96, 96, std::vector<unsigned char>(3 * 96 * 96, 100)};
  one.map = ClassMap{7, 7, std::vector<float>(49, 0.5F)};
  return one;
}

std::vector<std::string> titles_of(const json& list) {
  std::vector<std::string> titles;
  for (const json& one : list) titles.push_back(one.at("title"));
  return titles;
}

TEST(RunPage, ATestOfOtherDataIsASectionBesideTheFindingsOfTheRun) {
  RunFigures test = figures(3);
  test.judged = "test of 'phone'";
  test.findings->right = 7;
  const std::string page = page_with_test(test, run_page(figures(3)));
  const json data = page_data(page);
  EXPECT_EQ(data.at("findings").at("judged"), "validation after step 50");
  ASSERT_EQ(data.at("tests").size(), 1U);
  EXPECT_EQ(data.at("tests").at(0).at("judged"), "test of 'phone'");
  EXPECT_THAT(page, HasSubstr(last_step_mark(50)));
}

TEST(RunPage, ATestIsReplacedByALaterOneOfTheSameData) {
  RunFigures test = figures(3);
  std::string page = run_page(figures(3));
  for (const char* judged : {"test of 'a'", "test of 'b'", "test of 'a'"}) {
    test.judged = judged;
    ++test.findings->right;
    page = page_with_test(test, page);
  }
  const json tests = page_data(page).at("tests");
  ASSERT_EQ(tests.size(), 2U);
  EXPECT_EQ(tests.at(0).at("judged"), "test of 'b'");
  EXPECT_EQ(tests.at(1).at("right"), 93);
}

TEST(RunPage, KeepsTestsOfOtherDataWhenTrainingGoesOn) {
  const std::string tested = page_with_test(figures(3), "no page of ours");
  EXPECT_TRUE(page_data(tested).at("findings").is_null());
  EXPECT_EQ(page_data(run_page(figures(3), tested)).at("tests").size(), 1U);
  EXPECT_EQ(page_data(run_page(figures(3), "<html></html>")).at("tests").size(), 0U);
}

TEST(RunPage, HasEachPart) {
  RunFigures run = figures(5);
  run.mistakes = {judged_picture("val/a/1.jpg")};
  run.doubts = {judged_picture("val/a/2.jpg")};
  const std::string page = run_page(run);
  EXPECT_THAT(page, AllOf(HasSubstr("What to try next"), HasSubstr("Options and versions"),
                          HasSubstr("Which class is taken for which"),
                          HasSubstr("most often taken for"), Not(HasSubstr("http"))));
  const json data = page_data(page);
  EXPECT_EQ(data.at("best"), json({{"top1", 0.5}, {"loss", 0.4}, {"epochs", 5.0}}));
  EXPECT_EQ(data.at("progress").at("steps"), 50);
  EXPECT_EQ(data.at("progress").at("time"), "50 s");
  const json& curves = data.at("curves");
  for (const auto& [split, figure] :
       {std::pair("train", "loss"), std::pair("train", "rate"), std::pair("epoch", "loss"),
        std::pair("epoch", "top1"), std::pair("epoch", "seconds"), std::pair("val", "loss")}) {
    EXPECT_EQ(curves.at(split).at(figure).size(), 5U) << split << " " << figure;
  }
  EXPECT_EQ(curves.at("val").at("top1").at(4), json({5.0, 0.5}));
  EXPECT_THAT(data.at("advice"), testing::Not(testing::IsEmpty()));
  const json& found = data.at("findings");
  EXPECT_EQ(found.at("right"), 150);
  EXPECT_EQ(found.at("confusion").at("whole").at("counts").size(), 5U);
  const json& worst = found.at("classes").at("rows").at(0);
  EXPECT_EQ(worst.at("images"), 45);
  EXPECT_THAT(worst.at("taken_for").get<std::string>(), HasSubstr("class "));
  EXPECT_THAT(titles_of(found.at("pictures")),
              ElementsAre("Most confident mistakes", "Least certain hits"));
  const json& card = found.at("pictures").at(1).at("cards").at(0);
  EXPECT_EQ(card.at("name"), "val/a/2.jpg");
  EXPECT_EQ(card.at("predicted"), "class 1");
  EXPECT_EQ(card.at("label"), "class 0");
  EXPECT_DOUBLE_EQ(card.at("probability"), 0.9);
  EXPECT_TRUE(card.contains("map"));
  EXPECT_EQ(data.at("type"), "image_folder");
  EXPECT_THAT(data.at("abi").get<std::string>(), testing::StartsWith("2."));
  EXPECT_THAT(data.at("options").dump(), HasSubstr("bad_share_limit"));
}

TEST(RunPage, ANetWithoutASoftmaxHasNoConfidentMistakes) {
  RunFigures run = figures(5);
  run.mistakes = {judged_picture("val/a/1.jpg")};
  run.doubts = {judged_picture("val/a/2.jpg")};
  run.findings->sure_mistakes = run.findings->samples - run.findings->right;
  run.learns_probabilities = false;
  const json data = page_data(run_page(run));
  const json& pictures = data.at("findings").at("pictures");
  EXPECT_THAT(titles_of(pictures), ElementsAre("Mistakes"));
  EXPECT_EQ(pictures.at(0).at("cards").size(), 1U);
  EXPECT_EQ(pictures[0]["cards"].at(0).at("name"), "val/a/1.jpg");
  EXPECT_FALSE(pictures[0]["cards"][0].contains("probability"));
  EXPECT_THAT(data.dump(), AllOf(Not(HasSubstr("val/a/2.jpg")), Not(HasSubstr("certainty"))));
}

TEST(RunPage, StaysBelowThreeMegabytesForAnyNumberOfClasses) {
  for (const int64_t classes : {5, 1000, 20000}) {
    RunFigures run = figures(classes);
    for (std::string& name : run.record.class_names) name += std::string(200, 'x');
    Random random(1, 2);
    for (int i = 0; i < 50000; ++i) {
      const auto most = static_cast<uint64_t>(classes);
      run.findings->confusion.add(int64_t(random.below(most)), int64_t(random.below(most)));
    }
    for (int i = 0; i < 12; ++i) {
      run.mistakes.push_back(judged_picture("a.jpg"));
      run.doubts.push_back(judged_picture("b.jpg"));
    }
    EXPECT_LT(run_page(run).size(), three_megabytes) << classes << " classes";
  }
}

TEST(RunPage, EscapesAllNamesOfTheUser) {
  const std::string evil = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>";
  RunFigures run = figures(40);  // has the pairs and the groups, too
  for (const int64_t classes : {3, 40}) {
    run = figures(classes);
    run.name = run.record.net_name = run.record.options.data = evil;
    run.record.data_parameters[evil] = evil;
    for (std::string& name : run.record.class_names) name = evil + name;
    run.data.type = run.pictures_note = run.judged = evil;
    run.data.splits[0].name = evil;
    run.data.splits[0].formats[evil] = 1;
    run.data.splits[0].bad = {{evil, evil}};
    run.mistakes = run.doubts = {judged_picture(evil)};
    const std::string page = run_page(run);
    EXPECT_THAT(page, AllOf(Not(HasSubstr("<script>alert")), Not(HasSubstr("<img src=x")),
                            HasSubstr("&lt;script&gt;")));
    EXPECT_EQ(page_data(page).at("net"), shown(evil));
    EXPECT_EQ(page_data(page).at("splits").at(0).at("damage").at(0).at("example"), evil);
    const ComparedRun one{evil, run.record, 1, run.metrics};
    ComparedRun two = one;
    two.record.options.data = evil + "2";
    EXPECT_THAT(compare_page({one, two}),
                AllOf(Not(HasSubstr("<script>alert")), Not(HasSubstr("<img src=x"))));
  }
}

TEST(RunPage, IsUtf8WhateverTheNamesOfFilesAre) {
  const std::string latin = "caf\xE9.jpg";
  RunFigures run = figures(3);
  run.name = run.record.options.data = latin;
  run.record.data_parameters["mean"] = latin;
  for (std::string& name : run.record.class_names) name += latin;
  run.data.splits[0].bad = {{latin, latin}};
  run.mistakes = run.doubts = {judged_picture(latin)};
  EXPECT_TRUE(is_utf8(run_page(run)));
  EXPECT_TRUE(
      is_utf8(html_page("", confusion_json(run.findings->confusion, run.record.class_names))));
  EXPECT_TRUE(is_utf8(compare_page({{latin, run.record, 1, run.metrics}})));
}

TEST(RunPage, IsWholeBeforeTheFirstEvaluation) {
  RunFigures run = figures(3);
  run.metrics.clear();
  run.findings.reset();
  const std::string page = run_page(run);
  EXPECT_THAT(page, AllOf(HasSubstr("Options and versions"), HasSubstr("</html>")));
  const json data = page_data(page);
  EXPECT_TRUE(data.at("curves").empty());
  EXPECT_TRUE(data.at("best").is_null());
  EXPECT_TRUE(data.at("progress").is_null());
  EXPECT_TRUE(data.at("findings").is_null());
}

TEST(Advice, NamesWhatTheFiguresShow) {
  RunFigures run = figures(5);
  EXPECT_THAT(advice(run), testing::Contains(HasSubstr("--epochs 10")));  // still improving
  for (MetricRow& one : run.metrics) {
    if (one.split == "epoch") one.top1 = 0.95;
    if (one.split == "val") one.top1 = 0.5;
  }
  EXPECT_THAT(advice(run), testing::Contains(HasSubstr("95.0 % against 50.0 %")));
  run.findings->sure_mistakes = 70;
  EXPECT_THAT(advice(run), testing::Contains(HasSubstr("their labels may be wrong")));
  for (MetricRow& one : run.metrics) {
    if (one.split == "val" && one.step > 20) one.loss = 9;
  }
  EXPECT_THAT(advice(run), testing::Contains(HasSubstr("was lowest after 2 epochs")));
}

TEST(Advice, OfAShortRunIsToTrainLonger) {
  RunFigures run = figures(5);
  for (MetricRow& one : run.metrics) {
    if (one.split == "val") one.top1 = 0.25;
  }
  EXPECT_THAT(advice(run),
              testing::Contains(AllOf(HasSubstr("after 50 steps"), HasSubstr("--epochs 20"))));
  run.record.options.steps = 1000;  // it goes on
  EXPECT_THAT(advice(run), testing::IsEmpty());
}

int64_t peak_kilobytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

// Each class is confused with the next one, the last ones most, so that each joins a longer chain.
TEST(RunPage, TheOrderOfManyClassesTakesLittleMemory) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers keep freed memory";
#endif
  constexpr int64_t classes = 10000, samples = 100000;
  Confusion confusion(classes);
  for (int64_t c = 0; c + 1 < classes; ++c) {
    confusion.add(c, c + 1, c + 1);
    confusion.add(c, c, samples - c - 1);
  }
  confusion.add(classes - 1, classes - 1, samples);
  const int64_t before = peak_kilobytes();
  EXPECT_EQ(cluster(confusion, classes).order.size(), static_cast<size_t>(classes));
  EXPECT_LT(peak_kilobytes() - before, 100 << 10);
}

TEST(ConfusedClasses, AreNextToEachOther) {
  Confusion confusion(6);
  for (int64_t c = 0; c < 6; ++c) confusion.add(c, c, 100);
  confusion.add(0, 5, 30);
  confusion.add(5, 0, 20);
  confusion.add(5, 2, 10);
  confusion.add(1, 4, 1);
  const ClassOrder order = cluster(confusion, 3);
  ASSERT_EQ(order.groups.size(), 2U);
  EXPECT_THAT(order.groups[0], ElementsAre(2, 5, 0));
  EXPECT_THAT(order.groups[1], ElementsAre(1, 4));
  EXPECT_THAT(order.order, testing::UnorderedElementsAre(0, 1, 2, 3, 4, 5));
  const auto pairs = confused_pairs(confusion);
  ASSERT_EQ(pairs.size(), 3U);
  EXPECT_EQ(pairs[0].a_as_b, 30);
  EXPECT_EQ(pairs[0].b_as_a, 20);
}

TEST(ConfusedClasses, HaveScores) {
  Confusion confusion(2);
  confusion.add(0, 0, 6);
  confusion.add(0, 1, 2);
  confusion.add(1, 1, 4);
  const std::vector<ClassScore> scores = confusion.scores();
  EXPECT_DOUBLE_EQ(scores[0].recall(), 0.75);
  EXPECT_DOUBLE_EQ(scores[0].precision(), 1);
  EXPECT_DOUBLE_EQ(scores[1].precision(), 4.0 / 6);
  EXPECT_DOUBLE_EQ(scores[1].f1(), 0.8);
}

TEST(ComparedRuns, AreOnOnePage) {
  const RunFigures a = figures(3);
  ComparedRun one{"runs/one", a.record, a.epochs_per_step, a.metrics};
  ComparedRun two = one;
  two.name = "runs/two";
  two.record.options.batch = 77;
  two.record.data_parameters = {{"resize", "40"}, {"mirror", "true"}};
  two.record.options.data_parameters = {{"mirror", "true"}};
  two.record.options.strategy_options = {{"buckets", int64_t{4}}, {"split", std::string("fc1")}};
  two.record.given_options = {"buckets"};
  one.solver = {{"type", "SGD"}, {"max_iter", "10"}, {"base_lr", "0.1"}};
  two.solver = {{"type", "Adam"}, {"max_iter", "20"}, {"base_lr", "0.1"}};
  for (MetricRow& metric : two.metrics) metric.top1 /= 2;
  const json data = page_data(compare_page({one, two}));
  EXPECT_EQ(data.at("runs").at(0).at("name"), "runs/one");
  EXPECT_EQ(data.at("runs").at(0).at("best").at(1), "50.00 %");
  EXPECT_EQ(data.at("runs").at(1).at("name"), "runs/two");
  EXPECT_EQ(data.at("runs").at(1).at("best").at(1), "25.00 %");
  EXPECT_EQ(data.at("runs").at(1).at("curves").at("val").at("top1").at(4), json({5.0, 0.25}));
  // Only what differs, and was given.
  EXPECT_EQ(data.at("options"),
            json::array({{"batch", std::to_string(a.record.options.batch), "77"},
                         {"data_parameters.mirror", "", "true"},
                         {"solver: type", "SGD", "Adam"},
                         {"strategy_options.buckets", "", "4"}}));
  EXPECT_THAT(compare_text({one, two}), AllOf(HasSubstr("runs/two"), HasSubstr("25.00 %")));
}

TEST(RunPage, AStepThatCompletesAnEpochEndsIt) {
  constexpr double per_step = 8.0 / 37;  // 37 images in batches of 8
  EXPECT_EQ(epochs_after(5, per_step), 1);
  EXPECT_EQ(epochs_after(14, per_step), 3);
  EXPECT_EQ(epochs_after(139, per_step), 30);
  EXPECT_DOUBLE_EQ(epochs_after(4, per_step), 4 * per_step);
  EXPECT_DOUBLE_EQ(epochs_after(6, per_step), 6 * per_step);
  EXPECT_EQ(epochs_after(10, 0.1), 1);
  EXPECT_DOUBLE_EQ(epochs_after(11, 0.1), 1.1);
  EXPECT_EQ(epochs_after(2, 64.0 / 37), 3);  // a batch of more than all images
}

TEST(RunPage, EpochsHaveFourDigitsAndNoPowerOfTen) {
  EXPECT_EQ(epochs_text(3), "3");
  EXPECT_EQ(epochs_text(2.25), "2.25");
  EXPECT_EQ(epochs_text(1.0 / 3), "0.3333");
  EXPECT_EQ(epochs_text(166666.67), "166667");
}

// What a reader sees of a page: its script run by Node.js.
class PageScript : public testing::Test {
 protected:
  void SetUp() override {
    if (std::system("node --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "there is no node";
  }
  [[nodiscard]] std::string text_of(const std::string& page) const {
    (void)folder_.write("page.html", page);
    const std::string in = folder_.string() + "/";
    const std::string line =
        fmt::format("node '{}/tests/report/page_text.js' '{}page.html' > '{}text' 2>&1",
                    test::source_folder().string(), in, in);
    const int status = std::system(line.c_str());
    const std::string text = test::read_text(folder_ / "text");
    EXPECT_EQ(status, 0) << text;
    return text;
  }
  test::TempFolder folder_;
};

TEST_F(PageScript, ShowsTheFiguresOfARun) {
  RunFigures run = figures(3);
  run.planned_rates = {{0.1, 0.01}, {1, 0.1}, {5, 0}};
  run.has_training = true;
  run.phases = "Until step 2 only fc learns.";
  run.mistakes = {judged_picture("val/a/1.jpg")};
  const std::string text = text_of(run_page(run));
  EXPECT_THAT(text, HasSubstr("Until step 2 only fc learns."));
  EXPECT_THAT(text, AllOf(HasSubstr("Run run\n"), HasSubstr("50.00 %best accuracy, after 5 epochs"),
                          HasSubstr("90 of 135 images are recognized"), HasSubstr("Learning rate"),
                          HasSubstr("class 0 | 100 | 45 | 77.8 %"), HasSubstr("90.0 % class 1")));
  EXPECT_THAT(text, HasSubstr("class | to learn from | images | recall | precision | F1 | "));
  EXPECT_THAT(text, Not(testing::ContainsRegex("NaN|undefined|Infinity|\\[object")));
}

TEST_F(PageScript, ShowsARunBeforeItsFirstStep) {
  RunFigures run = figures(3);
  run.metrics.clear();
  run.findings.reset();
  const std::string text = text_of(run_page(run));
  EXPECT_THAT(text, AllOf(HasSubstr("Net resnet18 on flowers"), Not(HasSubstr("no validation"))));
}

TEST_F(PageScript, ShowsManyClassesLabelsAndNumbers) {
  RunFigures many = figures(40);
  EXPECT_THAT(text_of(run_page(many)), HasSubstr("Most confused pairs"));
  for (const int64_t task : {TANDEM_TASK_LABELS, TANDEM_TASK_VALUES}) {
    RunFigures run = figures(2);
    run.record.task = task;
    run.findings->figures = {{"height", 5, 0.5, 0.6, 0.7, 0.65, 1.5, 0.9},
                             {"width", 5, no_figure, no_figure, 0, 0, 2.5, no_figure}};
    const std::string text = text_of(run_page(run));
    EXPECT_THAT(text, AllOf(HasSubstr("height | "), HasSubstr("width | ")));
    EXPECT_THAT(text, Not(testing::ContainsRegex("NaN|undefined")));
  }
}

TEST_F(PageScript, ShowsComparedRunsAndATestOfOtherData) {
  const RunFigures a = figures(3);
  ComparedRun one{"runs/one", a.record, a.epochs_per_step, a.metrics};
  ComparedRun two = one;
  two.name = "runs/two";
  two.record.options.batch = 77;
  EXPECT_THAT(text_of(compare_page({one, two})),
              AllOf(HasSubstr("runs/one | 50.00 % | 0.4000 | 5"), HasSubstr("| 77")));
  RunFigures test = figures(3);
  test.judged = "test of 'phone'";
  EXPECT_THAT(text_of(page_with_test(test, run_page(a))),
              AllOf(HasSubstr("Test of other images"), HasSubstr("Of the test of 'phone'")));
}

// Losses [epoch, value] of two runs in their page.
TEST_F(PageScript, SaysWhichLossesAreBeyondAnAxisAndTakesALogarithmicOneForLinesFarApart) {
  const RunFigures a = figures(3);
  ComparedRun one{"runs/one", a.record, a.epochs_per_step, {}};
  ComparedRun two = one;
  two.name = "runs/two";
  const auto with_losses = [](ComparedRun run, const std::vector<double>& losses) {
    run.metrics.clear();
    for (size_t i = 0; i < losses.size(); ++i) {
      MetricRow row;
      row.split = "val";
      row.step = static_cast<int64_t>(10 * (i + 1));
      row.loss = losses[i];
      run.metrics.push_back(row);
    }
    return run;
  };
  const std::vector<double> usual{2, 1.9, 1.8, 1.7, 1.6, 1.5, 1.4, 1.3, 1.2, 1.1, 1};
  std::vector<double> begins_high = usual;
  begins_high[0] = 512;
  const auto shown = [&](const std::vector<double>& first, const std::vector<double>& second) {
    return text_of(compare_page({with_losses(one, first), with_losses(two, second)}));
  };
  EXPECT_THAT(shown(usual, usual),
              AllOf(HasSubstr("Validation loss\n"), Not(HasSubstr("upper edge"))));
  EXPECT_THAT(shown(usual, begins_high),
              AllOf(HasSubstr("Validation loss\n"),
                    HasSubstr("At the upper edge: 1 of 22 points, up to 512.")));
  EXPECT_THAT(shown(usual, std::vector<double>(11, 4000)),
              AllOf(HasSubstr("Validation loss (logarithmic)\n"), Not(HasSubstr("upper edge"))));
  // Few points of one run beside many of another are not those beyond the axis.
  EXPECT_THAT(shown(std::vector<double>(300, 0.5), {3, 2.5}), Not(HasSubstr("upper edge")));
}

TEST(DrawnFindings, AreAMatrixWithNamesAndSheetsOfSamples) {
  RunFigures run = figures(3);
  run.record.class_names = {"Gänse", "a", "\xe8\x8a\xb1"};
  run.mistakes = {judged_picture("a.jpg"), judged_picture("b.jpg")};
  const auto drawn = drawn_findings(run, true);
  ASSERT_EQ(drawn.size(), 2U);
  EXPECT_EQ(drawn[0].first, "confusion matrix");
  EXPECT_EQ(drawn[1].first, "most confident mistakes");
  for (const auto& [name, picture] : drawn) {
    EXPECT_EQ(picture.pixels.size(), size_t(3 * picture.width * picture.height)) << name;
  }
  // Names at its left, hits blue on the diagonal.
  const DrawnPicture& matrix = drawn[0].second;
  const auto begin = matrix.width - matrix.height;
  EXPECT_GT(begin, 0);
  const unsigned char* corner = &matrix.pixels[size_t(3 * (begin + 2))];
  EXPECT_LT(corner[0], corner[2]);
  EXPECT_EQ(drawn_findings(run, false).size(), 1U);
  EXPECT_EQ(drawable("Gänse 2"), "GANSE 2");
  EXPECT_EQ(drawable("\xe8\x8a\xb1"), "");
}

}  // namespace
}  // namespace tandem
