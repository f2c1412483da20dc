#include "config/toml_table.h"

#include <gtest/gtest.h>

#include "support/error_text.h"

namespace optim_offload {
namespace {

TomlDocument parse_text(std::string_view text) { return TomlDocument::parse(text, "f.toml"); }

TEST(TomlTable, ReadsEveryType) {
  auto table = parse_text(
                   "[a.b]\n"
                   "i = 7\n"
                   "f = 2.5\n"
                   "whole = 3\n"
                   "flag = true\n"
                   "s = \"text\"\n"
                   "list = [1, 2.5]\n"
                   "ints = [1, 2, 3]\n"
                   "words = ['x', 'y']\n")
                   .table("a.b");
  EXPECT_EQ(table.path(), "a.b");
  EXPECT_EQ(table.get_int("i", 0), 7);
  EXPECT_EQ(table.require_int("i", between<int64_t>(7, 7)), 7);
  EXPECT_EQ(table.get_float("f", 0), 2.5);
  EXPECT_EQ(table.require_float("whole", above(2.0)), 3.0);  // An integer where a float is meant.
  EXPECT_TRUE(table.get_bool("flag", false));
  EXPECT_EQ(table.get_string("s", ""), "text");
  EXPECT_EQ(table.get_floats("list", {0, 0}), (std::vector<double>{1, 2.5}));
  EXPECT_EQ(table.get_ints("ints", {}), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(table.get_strings("words", {}), (std::vector<std::string>{"x", "y"}));
  table.reject_unknown_keys();
}

TEST(TomlTable, GivesDefaultsForAbsentKeysAndTables) {
  const auto document = parse_text("");
  auto table = document.table("a.b");
  EXPECT_EQ(table.get_int("i", 5), 5);
  EXPECT_EQ(table.get_float("f", 0.5), 0.5);
  EXPECT_TRUE(table.get_bool("flag", true));
  EXPECT_EQ(table.get_string("s", "d", {"e"}), "d");
  EXPECT_EQ(table.get_floats("list", {1, 2}), (std::vector<double>{1, 2}));
  EXPECT_FALSE(table.has("i"));
  EXPECT_TRUE(table.keys().empty());
  EXPECT_FALSE(document.root().has("a"));
  document.reject_unknown_keys();
}

TEST(TomlTable, NamesFileLineKeyAndValueOfAWrongType) {
  auto table =
      parse_text("\n[a]\nlr = \"fast\"\nn = 1.5\nflag = 1\ns = true\nlist = 3\nday = 1979-05-27\n")
          .table("a");
  EXPECT_EQ(error_text([&] { table.get_float("lr", 1, at_least(0.0)); }),
            "[optim_offload] f.toml:3: a.lr = \"fast\" is a string; must be a number at least 0");
  EXPECT_EQ(error_text([&] { table.get_int("n", 1); }),
            "[optim_offload] f.toml:4: a.n = 1.5 is a float; must be an integer");
  EXPECT_EQ(error_text([&] { table.get_bool("flag", true); }),
            "[optim_offload] f.toml:5: a.flag = 1 is an integer; must be true or false");
  EXPECT_EQ(error_text([&] { table.get_string("s", ""); }),
            "[optim_offload] f.toml:6: a.s = true is a boolean; must be a string");
  EXPECT_EQ(error_text([&] {
              table.get_floats("list", {1, 2}, from_below(0.0, 1.0));
            }),
            "[optim_offload] f.toml:7: a.list = 3 is an integer; must be an array of 2 numbers at "
            "least 0 and below 1");
  EXPECT_HAS(error_text([&] { table.get_string("day", ""); }), "f.toml:8: a.day");
}

TEST(TomlTable, NamesWhatIsOutOfRange) {
  auto table =
      parse_text("i = 0\nf = -0.5\nb = [0.9, 1.0]\nshort = [0.9]\nnan = nan\ninf = -inf\n").root();
  EXPECT_EQ(error_text([&] { table.get_int("i", 1, at_least<int64_t>(1)); }),
            "[optim_offload] f.toml:1: i = 0 must be at least 1");
  EXPECT_EQ(error_text([&] { table.get_float("f", 1, between(0.0, 1.0)); }),
            "[optim_offload] f.toml:2: f = -0.5 must be from 0 to 1");
  EXPECT_EQ(error_text([&] {
              table.get_floats("b", {0, 0}, from_below(0.0, 1.0));
            }),
            "[optim_offload] f.toml:3: b[1] = 1 must be at least 0 and below 1");
  EXPECT_EQ(error_text([&] {
              table.get_floats("short", {0, 0});
            }),
            "[optim_offload] f.toml:4: short = [0.9] must be an array of 2 numbers");
  EXPECT_HAS(error_text([&] { table.get_float("nan", 1); }), "f.toml:5: nan = nan is not finite");
  EXPECT_HAS(error_text([&] { table.get_float("inf", 1); }), "f.toml:6: inf = -inf is not finite");
}

// toml11 3.x gives the largest number instead, silently; 4.x refuses the file.
TEST(TomlTable, NumbersThatDoNotFitAreErrors) {
  for (const char* value : {"99999999999999999999", "-99999999999999999999"}) {
    const auto read = [&] {
      return parse_text(std::string("\nn = ") + value).root().get_int("n", 1);
    };
    EXPECT_HAS(error_text(read), "f.toml:2: n");
    EXPECT_HAS(
        error_text([&] { parse_text(std::string("\nn = ") + value).root().get_float("n", 1); }),
        "f.toml:2: n");
  }
  EXPECT_HAS(error_text([&] { parse_text("\nn = 1e999").root().get_float("n", 1); }),
             "f.toml:2: n");
}

TEST(TomlTable, NamesTheChoicesAndTheNearest) {
  auto table = parse_text("type = \"adam_w\"\nother = \"zzz\"").root();
  EXPECT_EQ(
      error_text([&] {
        table.get_string("type", "", {"sgd", "adamw"});
      }),
      "[optim_offload] f.toml:1: type = \"adam_w\" must be one of \"sgd\", \"adamw\"; did you "
      "mean \"adamw\"?");
  EXPECT_EQ(error_text([&] {
              table.get_string("other", "", {"sgd", "adamw"});
            }),
            "[optim_offload] f.toml:2: other = \"zzz\" must be one of \"sgd\", \"adamw\"");
}

TEST(TomlTable, NamesWhatIsMissing) {
  auto table = parse_text("x = 1\n[a]\n").table("a");
  EXPECT_EQ(error_text([&] { table.require_string("path"); }),
            "[optim_offload] f.toml:2: a.path is missing; set it to a string");
  auto absent = parse_text("").table("b");
  EXPECT_EQ(error_text([&] { absent.require_int("n", at_least<int64_t>(1)); }),
            "[optim_offload] f.toml: b.n is missing; set it to an integer at least 1");
  EXPECT_EQ(error_text([&] { absent.fail("n", "must be set with m"); }),
            "[optim_offload] f.toml: b.n (not set) must be set with m");
}

TEST(TomlTable, RejectsUnknownKeys) {
  const auto document = parse_text("[a]\nlr = 1\nwieght_decay = 2\n[a.deep]\nx = 1\n[b]\ny = 1\n");
  auto table = document.table("a");
  table.get_float("lr", 0);
  table.get_float("weight_decay", 0);
  table.table("deep").get_int("x", 0);
  EXPECT_EQ(
      error_text([&] { table.reject_unknown_keys("", "for type = \"sgd\""); }),
      "[optim_offload] f.toml:3: unknown key a.wieght_decay = 2 (for type = \"sgd\"); did you "
      "mean \"weight_decay\"? valid keys are \"deep\", \"lr\", \"weight_decay\"");
  table.reject_unknown_keys("l");  // Only keys that begin so.
  EXPECT_HAS(error_text([&] { document.reject_unknown_keys(); }),
             "f.toml:6: unknown key b = {...}");
  document.table("b");
  EXPECT_HAS(error_text([&] { document.reject_unknown_keys(); }), "a.wieght_decay");
  table.get_int("wieght_decay", 0);
  EXPECT_HAS(error_text([&] { document.reject_unknown_keys(); }),
             "f.toml:7: unknown key b.y = 1; no key is valid here");
}

TEST(TomlTable, ATableMustBeATable) {
  const auto document = parse_text("a = 3\n");
  EXPECT_HAS(error_text([&] { document.table("a.b"); }),
             "f.toml:1: a = 3 is an integer; must be a table, [a]");
}

}  // namespace
}  // namespace optim_offload
