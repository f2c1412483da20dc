#include "train/data/text_corpus.h"

#include "config/utf8.h"
#include "train/support.h"

namespace optim_offload::train {
namespace {

TEST(TextCorpus, EveryByteIsTrainedOnOrHeldOutAndNeverBoth) {
  const TextCorpus corpus({sample_text(5000), sample_text(3333), sample_text(10)}, 128, 0.2);
  std::vector<int> uses(corpus.text().size(), 0);
  int64_t held_out = 0;
  for (const auto& span : corpus.training()) {
    for (int64_t i = span.begin; i < span.end; ++i) uses[i] += 1;
  }
  for (const auto& span : corpus.held_out()) {
    for (int64_t i = span.begin; i < span.end; ++i) uses[i] += 1;
    held_out += span.size();
  }
  for (size_t i = 0; i < uses.size(); ++i) ASSERT_EQ(uses[i], 1) << i;
  EXPECT_NEAR(static_cast<double>(held_out) / corpus.text().size(), 0.2, 0.03);
}

TEST(TextCorpus, RangesStayWithinTheirFile) {
  const TextCorpus corpus({std::string(300, 'a'), std::string(300, 'b')}, 64, 0.2);
  for (const auto* spans : {&corpus.training(), &corpus.held_out()}) {
    for (const auto& span : *spans) {
      const auto text = corpus.text(span);
      EXPECT_EQ(text.find_first_not_of(text.front()), std::string_view::npos);
    }
  }
}

TEST(TextCorpus, FindsWhatTrainingContains) {
  std::string text = sample_text(1000);
  const TextCorpus corpus({text}, 100, 0.1);
  const auto span = corpus.held_out().front();
  EXPECT_EQ(span.begin, 900);
  EXPECT_TRUE(corpus.occurs_in_training(text.substr(350, 40)));
  EXPECT_FALSE(corpus.occurs_in_training(text.substr(span.begin, 40)));
  EXPECT_FALSE(corpus.occurs_in_training(text.substr(span.begin - 20, 40)));
}

TEST(TextCorpus, SaysWhatIsWrongWithAFile) {
  const TempDir dir;
  write_text(dir / "good", sample_text(2000));
  write_text(dir / "empty", "");
  write_text(dir / "latin1", std::string("caf\xe9 au lait"));
  const auto load = [&](const std::string& name) {
    return error_of([&] { TextCorpus::load({dir / "good", dir / name}, 100, 0.1); });
  };
  EXPECT_TRUE(contains(load("missing"), "cannot read the text " + (dir / "missing").string()));
  EXPECT_TRUE(contains(load("empty"), "is empty"));
  EXPECT_TRUE(contains(load("latin1"), "is not UTF-8 (at byte 3 of 12)"));
  EXPECT_TRUE(contains(error_of([] { TextCorpus({"abc"}, 100, 0.1); }), "none to hold out"));
  EXPECT_EQ(TextCorpus::load({dir / "good"}, 100, 0.1).text(), sample_text(2000));
}

TEST(Utf8, TakesWhatIsWellFormedOnly) {
  EXPECT_EQ(find_invalid_utf8("plain"), -1);
  EXPECT_EQ(find_invalid_utf8("\u00e9\u20ac\U0001F600"), -1);
  EXPECT_EQ(find_invalid_utf8("ab\x80"), 2);            // no lead byte
  EXPECT_EQ(find_invalid_utf8("ab\xc3"), 2);            // cut off
  EXPECT_EQ(find_invalid_utf8("\xc0\xaf"), 0);          // overlong
  EXPECT_EQ(find_invalid_utf8("\xe0\x80\xaf"), 0);      // overlong
  EXPECT_EQ(find_invalid_utf8("x\xed\xa0\x80"), 1);     // surrogate
  EXPECT_EQ(find_invalid_utf8("\xf4\x90\x80\x80"), 0);  // above U+10FFFF
  EXPECT_EQ(find_invalid_utf8("\xe2\x82\xac\xe2\x28\xa1"), 3);
}

}  // namespace
}  // namespace optim_offload::train
