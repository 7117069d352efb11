// The table of docs/reports/layouts.md: layouts of other trainers, each made and read.
#include "plugins/abi.h"
#ifdef TANDEM_TEST_IMAGES

#include <gmock/gmock.h>

#include <sstream>

#include "core/base/text/strings.h"
#include "datasets/picture/names.h"
#include "tests/data/image_data.h"

namespace tandem {
namespace {

using test::TempFolder;
using testing::HasSubstr;

struct Row {
  std::string from, what, files, result;
};

std::vector<Row> rows() {
  std::ifstream file(test::source_folder() / "docs" / "reports" / "layouts.md");
  std::vector<Row> result;
  for (std::string line; std::getline(file, line);) {
    std::vector<std::string> cells = split(line, '|');
    if (cells.size() != 6 || cells[3].find('`') == std::string::npos) continue;
    for (std::string& cell : cells) {
      cell = cell.size() > 2 ? cell.substr(1, cell.size() - 2) : "";
    }
    cells[3] = cells[3].substr(1, cells[3].size() - 2);
    result.push_back({cells[1], cells[2], cells[3], cells[4]});
  }
  return result;
}

// Makes the files of a row in the folder and tells how to open them.
DatasetOptions make(const TempFolder& folder, const std::string& files) {
  DatasetOptions options = test::image_options(folder.string());
  std::istringstream words(files);
  int color = 0;
  for (std::string word; words >> word;) {
    const std::string jpeg = test::encoded(".jpg", test::gradient(20, 16, 7 * (++color % 30)));
    const size_t equals = word.find('='), link = word.find('>');
    if (word.starts_with('@')) {
      options.source = (folder / word.substr(1)).string();
    } else if (word.starts_with('%')) {
      options.parameters[word.substr(1, equals - 1)] = (folder / word.substr(equals + 1)).string();
    } else if (word.ends_with('/')) {
      for (const char* name : {"1.jpg", "2.jpg", "3.jpg"}) (void)folder.write(word + name, jpeg);
    } else if (link != std::string::npos) {
      const std::filesystem::path path = folder / word.substr(0, link);
      std::filesystem::create_directories(path.parent_path());
      std::filesystem::create_directory_symlink(word.substr(link + 1), path);
    } else if (equals != std::string::npos) {
      std::string text = word.substr(equals + 1) + "\n";
      std::replace(text.begin(), text.end(), ';', '\n');
      std::replace(text.begin(), text.end(), '~', ' ');
      (void)folder.write(word.substr(0, equals), text);
    } else {
      (void)folder.write(word, picture::is_image(word) ? jpeg : "x");
    }
  }
  return options;
}

struct Read {
  std::string classes, notes, refusal;
};

Read read_all(DatasetOptions options) {
  Read read;
  read.refusal = test::message_of([&] {
    for (const char* split : {"train", "val", "test"}) {
      options.split = split;
      const Dataset data = test::open_images(options);
      read.classes = fmt::format("{}", fmt::join(data.class_names(), ", "));
      read.notes += data.notes() + "\n";
      for (int64_t i = 0; i < data.size(); ++i) {
        EXPECT_EQ(test::get(data, i).status, SampleStatus::good) << data.sample_name(i);
      }
    }
  });
  return read;
}

TEST(Layouts, OfOtherTrainersAreReadRightOrRefused) {
  const std::vector<Row> all = rows();
  EXPECT_GE(all.size(), 60U);
  for (const Row& row : all) {
    const TempFolder folder;
    const Read read = read_all(make(folder, row.files));
    const size_t colon = row.result.find(": ");
    ASSERT_NE(colon, std::string::npos) << row.files;
    const std::string kind = row.result.substr(0, colon), expected = row.result.substr(colon + 2);
    SCOPED_TRACE(row.from + ": " + row.files);
    if (kind == "refused") {
      EXPECT_THAT(read.refusal, HasSubstr(expected));
      continue;
    }
    EXPECT_EQ(read.refusal, "");
    if (kind == "classes") {
      EXPECT_EQ(read.classes, expected);
    } else {
      EXPECT_EQ(kind, "note");
      EXPECT_THAT(read.notes, HasSubstr(expected));
    }
  }
}

}  // namespace
}  // namespace tandem

#endif
