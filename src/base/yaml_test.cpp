#include "base/yaml.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace racktwin::yaml {
namespace {

Document parsed(std::string_view text) {
  auto document = Document::parse(text, "f.yaml");
  EXPECT_TRUE(document.ok()) << (document.ok() ? "" : document.error().text());
  return document.ok() ? std::move(document).value() : Document::parse("", "f").value();
}

std::string refusal(std::string_view text) {
  auto document = Document::parse(text, "f.yaml");
  return document.ok() ? "accepted" : document.error().text();
}

// What reading `key` of the one-line document as T says.
template <class T, class... Range>
std::string refusal_of(std::string_view text, std::string_view key, Range... range) {
  Document document = parsed(text);
  T value{};
  document.top().field(key, value, range...);
  const auto verdict = document.finish();
  return verdict.ok() ? "accepted" : verdict.error().text();
}

TEST(Yaml, every_kind_of_field_is_read) {
  Document document = parsed(
      "flag: true\nname: a b\nwhole: -3\nbig: 9000000000\nseed: 18446744073709551615\n"
      "ratio: 1e-3\nrate: 800 Gb/s\nwords: [x, 'y z']\nnumbers: [1, 2.5]\nkind: second\n"
      "inner:\n  a: 1\nitems:\n  - a: 1\n  - a: 2\n");
  bool flag = false;
  std::string name;
  int whole = 0, kind = 0;
  std::int64_t big = 0;
  std::uint64_t seed = 0;
  double ratio = 0;
  BytesPerSecond rate;
  std::vector<std::string> words;
  std::vector<double> numbers;
  Section top = document.top();
  top.field("flag", flag);
  top.field("name", name);
  top.field("whole", whole);
  top.field("big", big);
  top.field("seed", seed);
  top.field("ratio", ratio, fraction);
  top.field("rate", rate, positive);
  top.field("words", words);
  top.field("numbers", numbers);
  top.choice("kind", kind, {"first", "second"});
  int inner = 0, sum = 0;
  top.section("inner").field("a", inner);
  for (Section item : top.list("items")) {
    int a = 0;
    item.field("a", a);
    sum += a;
  }
  ASSERT_TRUE(document.finish().ok()) << document.finish().error().text();
  EXPECT_TRUE(flag);
  EXPECT_EQ(name, "a b");
  EXPECT_EQ(whole, -3);
  EXPECT_EQ(big, 9000000000);
  EXPECT_EQ(seed, 18446744073709551615u);
  EXPECT_EQ(ratio, 1e-3);
  EXPECT_EQ(rate.in(unit::GBps), 100);
  EXPECT_EQ(words, (std::vector<std::string>{"x", "y z"}));
  EXPECT_EQ(numbers, (std::vector<double>{1, 2.5}));
  EXPECT_EQ(kind, 1);
  EXPECT_EQ(inner, 1);
  EXPECT_EQ(sum, 3);
}

TEST(Yaml, an_absent_key_keeps_the_default) {
  Document document = parsed("a: 1\nnothing:\n");
  int a = 7, b = 7;
  std::optional<Seconds> bound, none;
  document.top().field("a", a);
  document.top().field("b", b);
  document.top().field("nothing", none);
  document.top().field("bound", bound);
  EXPECT_TRUE(document.top().list("nothing").empty());
  EXPECT_TRUE(document.finish().ok());
  EXPECT_EQ(a, 1);
  EXPECT_EQ(b, 7);
  EXPECT_FALSE(bound || none);
}

TEST(Yaml, an_unknown_key_is_refused_with_its_place_and_the_nearest_name) {
  Document document = parsed("seed: 1\npools:\n  - replcas: 4\n");
  std::uint64_t seed = 0;
  int replicas = 0;
  document.top().field("seed", seed);
  for (Section pool : document.top().list("pools")) pool.field("replicas", replicas);
  EXPECT_EQ(document.finish().error().text(),
            "f.yaml:3:5: unknown key \"replcas\"; did you mean \"replicas\"? (known: replicas)");
}

TEST(Yaml, a_required_key_that_is_misspelt_is_found) {
  Document document = parsed("part:\n  hbm_bandwith: 8 TB/s\n");
  document.top().section("part").require("hbm_bandwidth");
  EXPECT_EQ(
      document.finish().error().text(),
      "f.yaml:2:3: the key \"hbm_bandwidth\" is missing; is \"hbm_bandwith\" meant to be it?");
}

TEST(Yaml, a_wrong_value_is_refused_in_one_sentence_that_says_what_is_allowed) {
  EXPECT_EQ(refusal_of<Seconds>("ttft: 30", "ttft"),
            "f.yaml:1:7: ttft: \"30\" lacks a unit; write e.g. \"30 s\" "
            "(units: s, ms, us, ns, min, h, d)");
  EXPECT_EQ(refusal_of<Seconds>("ttft: -3 ms", "ttft"),
            "f.yaml:1:7: ttft must be at least 0 s, found -3 ms");
  EXPECT_EQ(refusal_of<Seconds>("ttft: 0 ms", "ttft", positive),
            "f.yaml:1:7: ttft must be greater than 0 s, found 0 ms");
  EXPECT_EQ(refusal_of<Seconds>("ttft: [1]", "ttft"),
            "f.yaml:1:7: ttft needs a number with its unit, found a list");
  EXPECT_EQ(refusal_of<double>("x: 1.5", "x", fraction),
            "f.yaml:1:4: x must be from 0 to 1, found 1.5");
  EXPECT_EQ(refusal_of<double>("x: .nan", "x"),
            "f.yaml:1:4: x needs a finite number (any finite number), found \".nan\"");
  EXPECT_EQ(refusal_of<double>("x: inf", "x", positive),
            "f.yaml:1:4: x needs a finite number (greater than 0), found \"inf\"");
  EXPECT_EQ(refusal_of<double>("x: 1e999", "x"),
            "f.yaml:1:4: x needs a number (any finite number), found \"1e999\"");
  EXPECT_EQ(refusal_of<int>("n: 1.5", "n"),
            "f.yaml:1:4: n needs a whole number (any finite number), found \"1.5\"");
  EXPECT_EQ(refusal_of<int>("n: 99999999999", "n", positive),
            "f.yaml:1:4: n must be greater than 0 and at most 2147483647, found \"99999999999\"");
  EXPECT_EQ(refusal_of<std::uint64_t>("n: -1", "n"),
            "f.yaml:1:4: n needs a whole number (at least 0), found \"-1\"");
  EXPECT_EQ(refusal_of<bool>("b: yes", "b"), "f.yaml:1:4: b needs true or false, found \"yes\"");
  EXPECT_EQ(refusal_of<std::string>("s:\n  a: 1", "s"),
            "f.yaml:2:3: s needs a text, found a mapping");
  EXPECT_EQ(refusal_of<std::vector<double>>("v: 1", "v"),
            "f.yaml:1:4: v needs a list of numbers, found \"1\"");
  EXPECT_EQ(refusal_of<std::vector<double>>("v: [1, x]", "v"),
            "f.yaml:1:8: v needs a number (any finite number), found \"x\"");
}

TEST(Yaml, the_first_refusal_is_the_one_reported) {
  Document document = parsed("a: x\nb: y\n");
  int a = 1, b = 2;
  document.top().field("a", a);
  document.top().field("b", b);
  EXPECT_EQ(document.finish().error().where, "f.yaml:1:4");
  EXPECT_EQ(a, 1);
  EXPECT_EQ(b, 2);
}

TEST(Yaml, a_choice_names_what_it_knows) {
  Document document = parsed("policy: rond-robin\n");
  int index = 0;
  document.top().choice("policy", index, {"round-robin", "least-loaded"});
  EXPECT_EQ(document.finish().error().text(),
            "f.yaml:1:9: unknown policy \"rond-robin\"; did you mean \"round-robin\"? "
            "(known: round-robin, least-loaded)");
}

TEST(Yaml, what_is_no_single_mapping_is_refused) {
  EXPECT_EQ(refusal("a: 1\na: 2\n"), "f.yaml:2:1: the key \"a\" is given twice");
  EXPECT_EQ(refusal("- 1\n"), "f.yaml:1:1: the file needs a mapping (key: value), found a list");
  EXPECT_EQ(refusal("[x]: 1\n"), "f.yaml:1:1: a key must be a plain name");
  EXPECT_EQ(refusal("a: 1\n---\nb: 2\n"), "f.yaml:3:1: a second YAML document; one is read");
  EXPECT_EQ(refusal("a: &x\n  b: *x\n"), "f.yaml:2:6: an anchor is used inside its own value");
  EXPECT_EQ(refusal("a: !python/object x\n"),
            "f.yaml:1:4: the tag \"!python/object\" means nothing here");
  EXPECT_EQ(refusal(std::string_view("a: \0b", 5)),
            "f.yaml:1:4: byte 0x00 is no UTF-8 text: is this a YAML file?");
  EXPECT_EQ(refusal("a: \xff\xfe"), "f.yaml:1:4: byte 0xff is no UTF-8 text: is this a YAML file?");
  EXPECT_NE(refusal("a: 'x").find("f.yaml:1:6: malformed YAML: "), std::string::npos);
  EXPECT_NE(refusal("a: *b").find("malformed YAML"), std::string::npos);
}

TEST(Yaml, an_empty_text_is_an_empty_mapping) {
  for (const char* text : {"", "# only a comment\n", "---\n", "{}"}) {
    Document document = parsed(text);
    EXPECT_TRUE(document.top().keys().empty());
    EXPECT_TRUE(document.finish().ok());
  }
}

TEST(Yaml, hostile_texts_are_bounded) {
  // An alias bomb shares its values: 10^12 leaves in 13 nodes each.
  std::string bomb = "a0: &a0 [x]\n";
  for (int i = 1; i <= 12; ++i) {
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int k = 0; k < 10; ++k) bomb += (k ? ", *a" : "*a") + std::to_string(i - 1);
    bomb += "]\n";
  }
  Document document = parsed(bomb);
  EXPECT_FALSE(document.finish().ok());
  EXPECT_NE(refusal(std::string(1'000'000, '[')).find("brackets are left open"), std::string::npos);
  for (const std::size_t depth : {std::size_t{101}, std::size_t{9'000}}) {
    std::string braces, dashes = "a: \n";
    for (std::size_t i = 0; i < depth; ++i) braces += "{a: ";
    for (std::size_t i = 0; i < depth; ++i) dashes += "- ";
    EXPECT_NE(refusal(braces + std::string(depth, '}')).find("nested deeper than 100 levels"),
              std::string::npos);
    EXPECT_NE(refusal(dashes).find("nested deeper than 100 levels"), std::string::npos);
  }
  EXPECT_NE(refusal(std::string((64u << 20) + 1, 'a')).find("at most 64 MiB"), std::string::npos);
  EXPECT_EQ(refusal("a: [" + std::string(2'100'000, ',') + "]"),
            "f.yaml: 2100000 lines and commas; at most 2000000 are read");
}

TEST(Yaml, set_replaces_and_adds_as_if_the_file_had_said_so) {
  Document document = parsed("base: &b\n  replicas: 1\n  kind: x\npools: [*b, *b]\n");
  for (const char* assignment : {"pools.0.replicas=4", "pools.2.replicas=9", "new.inner.a=7",
                                 "slos.0.ttft=2 s", "numbers=[1, 2]", "text=a=b: c"})
    EXPECT_TRUE(document.set(assignment).ok()) << assignment;
  std::vector<int> replicas;
  std::string kind, text;
  Section top = document.top();
  const auto read_pool = [&](Section pool) {
    replicas.push_back(0);
    pool.field("replicas", replicas.back());
    pool.field("kind", kind);
  };
  read_pool(top.section("base"));
  for (Section pool : top.list("pools")) read_pool(pool);
  int a = 0;
  Seconds ttft;
  std::vector<double> numbers;
  top.section("new").section("inner").field("a", a);
  for (Section slo : top.list("slos")) slo.field("ttft", ttft);
  top.field("numbers", numbers);
  top.field("text", text);
  ASSERT_TRUE(document.finish().ok()) << document.finish().error().text();
  EXPECT_EQ(replicas, (std::vector<int>{1, 4, 1, 9}));
  EXPECT_EQ(a, 7);
  EXPECT_EQ(ttft.in(unit::sec), 2);
  EXPECT_EQ(numbers.size(), 2u);
  EXPECT_EQ(text, "a=b: c");
}

TEST(Yaml, a_refused_override_is_placed_at_its_key) {
  Document document = parsed("a: 1\nlist: [1]\n");
  EXPECT_EQ(document.set("a").error().text(), "--set: \"a\" is no KEY=VALUE");
  EXPECT_EQ(document.set("a..b=1").error().text(),
            "--set: \"a..b=1\" has an empty name in its key");
  Document wrong = parsed("a: 1\n");
  ASSERT_TRUE(wrong.set("seed=x").ok());
  int seed = 0, a = 0;
  wrong.top().field("a", a);
  wrong.top().field("seed", seed);
  EXPECT_EQ(wrong.finish().error().text(),
            "--set seed: seed needs a whole number (any finite number), found \"x\"");
  Document stray = parsed("seed: 1\n");
  ASSERT_TRUE(stray.set("sed=3").ok());
  stray.top().field("seed", seed);
  EXPECT_EQ(stray.finish().error().text(),
            "--set sed: unknown key \"sed\"; did you mean \"seed\"? (known: seed)");
  EXPECT_EQ(parsed("a: 1").set("a.b=2").error().text(), "--set a.b: \"b\" leads into \"1\"");
  EXPECT_EQ(parsed("l: [1]").set("l.3=2").error().text(),
            "--set l.3: the list has 1 entries: an index is from 0 to 1, found 3");
  EXPECT_FALSE(parsed("l: 1").set("a=[1").ok());
}

// Printable and awkward ASCII, and some of what lies beyond.
rc::Gen<std::string> texts() {
  return rc::gen::map(rc::gen::container<std::vector<std::string>>(
                          rc::gen::elementOf(std::vector<std::string>{"a",
                                                                      "Z",
                                                                      "0",
                                                                      " ",
                                                                      "\"",
                                                                      "'",
                                                                      "\\",
                                                                      "\n",
                                                                      "\t",
                                                                      "#",
                                                                      ": ",
                                                                      "- ",
                                                                      "{",
                                                                      "]",
                                                                      "&x",
                                                                      "*x",
                                                                      "!",
                                                                      "|",
                                                                      ">",
                                                                      "%",
                                                                      "@",
                                                                      "`",
                                                                      ",",
                                                                      "~",
                                                                      "null",
                                                                      "true",
                                                                      "\xc3\xa9",
                                                                      "\xe2\x82\xac",
                                                                      "\xf0\x9f\x98\x80",
                                                                      "\x01",
                                                                      "\x7f",
                                                                      "?"})),
                      [](const std::vector<std::string>& parts) {
                        std::string text;
                        for (const auto& part : parts) text += part;
                        return text;
                      });
}

RC_GTEST_PROP(Yaml, a_written_document_reads_back_equal, ()) {
  const std::string text = *texts();
  const std::vector<std::string> words = *rc::gen::container<std::vector<std::string>>(texts());
  const auto number = *rc::gen::arbitrary<double>();
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const Seconds time = std::abs(number) * unit::ms;
  RC_PRE(std::isfinite(number));
  Writer writer;
  writer.field("text", text);
  writer.field("seed", seed);
  writer.open("inner");
  writer.field("number", number);
  writer.field("time", time);
  writer.open_list("items");
  for (const auto& word : words) {
    writer.item();
    writer.field("word", word);
    writer.open("deep");
    writer.field("word", word);
    writer.close();
    writer.field("flag", true);
    writer.close_item();
  }
  writer.item();
  writer.close_item();
  writer.close();
  writer.close();
  writer.field("words", words);

  auto document = Document::parse(writer.text(), "f.yaml");
  RC_ASSERT(document.ok());
  std::string text_back;
  std::uint64_t seed_back = 0;
  double number_back = 0;
  Seconds time_back;
  std::vector<std::string> words_back, deep_back;
  Document read = std::move(document).value();
  read.top().field("text", text_back);
  read.top().field("seed", seed_back);
  read.top().field("words", words_back);
  Section inner = read.top().section("inner");
  inner.field("number", number_back);
  inner.field("time", time_back);
  auto items = inner.list("items");
  RC_ASSERT(items.size() == words.size() + 1);
  items.pop_back();
  for (Section item : items) {
    std::string word, deep;
    bool flag = false;
    item.field("word", word);
    item.field("flag", flag);
    item.section("deep").field("word", deep);
    RC_ASSERT(flag && word == deep);
    deep_back.push_back(deep);
  }
  RC_ASSERT(read.finish().ok());
  RC_ASSERT(text_back == text);
  RC_ASSERT(seed_back == seed);
  RC_ASSERT(number_back == number);
  RC_ASSERT(time_back == time);
  RC_ASSERT(words_back == words);
  RC_ASSERT(deep_back == words);
}

}  // namespace
}  // namespace racktwin::yaml
