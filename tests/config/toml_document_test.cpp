#include <cstdio>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "config/toml_table.h"
#include "support/error_text.h"

namespace optim_offload {
namespace {

TomlDocument parse_document(std::string_view text) { return TomlDocument::parse(text, "f.toml"); }

TEST(TomlDocument, NamesTheLineOfASyntaxError) {
  EXPECT_HAS(error_text([] { parse_document("a = 1\nb = = 2\n"); }),
             "[optim_offload] f.toml:2: not valid TOML");
  EXPECT_HAS(error_text([] { parse_document("a = 1\na = 2\n"); }), "f.toml:2: not valid TOML");
  EXPECT_HAS(error_text([] { parse_document("x = 'abc\n"); }), "f.toml:1: not valid TOML");
}

// toml11 3.7 reads outside of its memory when it reports such a string (found by fuzzing).
TEST(TomlDocument, RefusesWhatIsNotUtf8) {
  const std::string filler = "b = '" + std::string(5000, 'x') + "'\n";
  for (const std::string bad : {"a = '\xff'", "a = \"\xc3\"", "a = '''\xed\xa0\x80'''", "# \x80"}) {
    EXPECT_HAS(error_text([&] { parse_document("\n" + bad + "\n" + filler); }),
               "f.toml:2: not valid TOML: not UTF-8");
  }
  EXPECT_NO_THROW(parse_document("a = '\u00e9 \U0001F600'  # \u20ac\n"));
}

TEST(TomlDocument, RefusesHostileNesting) {
  EXPECT_HAS(error_text([] { parse_document("a = " + std::string(100000, '[')); }),
             "nested deeper");
  std::string key = "a";
  for (int i = 0; i < 100000; ++i) key += ".a";
  EXPECT_HAS(error_text([&] { parse_document("\n" + key + " = 1"); }), "f.toml:2");
  EXPECT_NO_THROW(parse_document("a = [[[[1]]]]\nb.c.d.e = 1.5\nt = 'and so on.......'\n"));
}

TEST(TomlDocument, SaysThatAFileIsMissing) {
  EXPECT_HAS(error_text([] { TomlDocument::load("/nowhere/at/all.toml"); }),
             "there is no settings file /nowhere/at/all.toml");
  EXPECT_HAS(error_text([] { TomlDocument::load(std::filesystem::temp_directory_path()); }),
             "is a folder");
}

TEST(TomlDocument, LoadsAFile) {
  const auto path = std::filesystem::path(::testing::TempDir()) / "optim_offload_toml_test.toml";
  std::ofstream(path) << "[t]\nn = 4\nm = 'x'";
  auto table = TomlDocument::load(path).table("t");
  EXPECT_EQ(table.get_int("n", 0), 4);
  EXPECT_HAS(error_text([&] { table.get_int("m", 0); }), path.string() + ":3: t.m = \"x\"");
  std::filesystem::remove(path);
}

TEST(TomlDocument, OverridesTakeTomlAndPlainWords) {
  auto document = parse_document("[trainer.optim]\nlr = 1\ntype = 'sgd'\n");
  document.apply_override("trainer.optim.lr=3e-4");
  document.apply_override("trainer.optim.type = adamw");
  document.apply_override("trainer.optim.betas=[0.5, 0.6]");
  document.apply_override("trainer.data.path=/some/file=1.txt");
  document.apply_override("trainer.data.shuffle=false");
  auto optim = document.table("trainer.optim");
  EXPECT_EQ(optim.get_float("lr", 0), 3e-4);
  EXPECT_EQ(optim.get_string("type", ""), "adamw");
  EXPECT_EQ(optim.get_floats("betas", {0, 0}), (std::vector<double>{0.5, 0.6}));
  auto data = document.table("trainer.data");
  EXPECT_EQ(data.get_string("path", ""), "/some/file=1.txt");
  EXPECT_FALSE(data.get_bool("shuffle", true));
  document.reject_unknown_keys();
}

TEST(TomlDocument, OverridesAreCheckedAsTheFileIs) {
  auto document = parse_document("[a]\nn = 1\n");
  document.apply_override("a.n=many");
  document.apply_override("a.m=2\nx=3");  // Not one value: a string.
  auto table = document.table("a");
  EXPECT_EQ(error_text([&] { table.get_int("n", 0); }),
            "[optim_offload] --set: a.n = \"many\" is a string; must be an integer");
  EXPECT_EQ(table.get_string("m", ""), "2\nx=3");
  document.apply_override("a.typo=1");
  EXPECT_HAS(error_text([&] { document.reject_unknown_keys(); }), "--set: unknown key a.typo = 1");

  EXPECT_HAS(error_text([&] { document.apply_override("a.n"); }), "has no '='");
  EXPECT_HAS(error_text([&] { document.apply_override("=3"); }), "no dotted name");
  EXPECT_HAS(error_text([&] { document.apply_override("a..n=3"); }), "no dotted name");
  EXPECT_HAS(error_text([&] { document.apply_override("a.n.x=3"); }), "n is a string");
  EXPECT_HAS(error_text([&] { document.apply_override("a=3"); }), "is a table");
}

TEST(TomlNode, MessagesAreOneSafeLine) {
  TomlNode node;
  node.value = std::string("a\"b\n\x1b[31m");
  EXPECT_EQ(node.text(), "\"a\\\"b\\n\\u001B[31m\"");
  node.value = std::string(1000, 'x');
  EXPECT_LT(node.text().size(), 130u);
}

}  // namespace
}  // namespace optim_offload
