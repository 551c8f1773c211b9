#include "cli/cli.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/file.hpp"
#include "cli/command_line.hpp"
#include "sim/scenario.hpp"

namespace racktwin::cli {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::json;

struct Outcome {
  int code = -1;
  std::string out, err;
};

Outcome run(const std::vector<std::string>& arguments, Console console = {}) {
  Outcome outcome;
  if (!console.out)
    console.out = [&](std::string_view text) {
      outcome.out += text;
      return true;
    };
  console.err = [&](std::string_view text) {
    outcome.err += text;
    return true;
  };
  outcome.code = run_cli(arguments, console);
  return outcome;
}

// A run of some milliseconds.
const std::vector<std::string> tiny = {"--set", "horizon=20 s",       "--set", "warmup=0 s",
                                       "--set", "load.rate=5 /s",     "--set", "racks=1",
                                       "--set", "load.mix=azure-conv"};
std::vector<std::string> with_tiny(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), tiny.begin(), tiny.end());
  return arguments;
}

class Folder {
 public:
  Folder() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::path(::testing::TempDir()) /
            (std::string("racktwin_cli.") + test->name() + "." + std::to_string(::getpid()));
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::vector<std::string> files(const std::string& folder) const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_ / folder))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name) << text;
    return *this / name;
  }

 private:
  std::filesystem::path path_;
};

// --- misuse: one sentence, exit 2, nothing on stdout --------------------------------------

TEST(CommandLine, every_misuse_is_one_sentence_that_names_what_is_near) {
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{}, "a verb is needed"},
      {{"rnu"}, "did you mean \"run\"?"},
      {{"plan"}, "unknown verb \"plan\""},
      {{"run", "--seeed", "3"},
       "racktwin: run: unknown flag \"--seeed\"; did you mean \"--seed\"?"},
      {{"run", "--jsn"}, "did you mean \"--json\"?"},
      {{"--versoin"}, "did you mean \"--version\"?"},
      {{"run", "default", "surplus"}, "\"surplus\" is one argument too many"},
      {{"run", "--seed"}, "--seed needs a value"},
      {{"run", "--seed", "1", "--seed", "2"}, "--seed is given twice"},
      {{"run", "--seed", "x"}, "--seed: seed needs a whole number"},
      {{"show", "--seed", "1.5"}, "--seed: seed needs a whole number"},
      {{"run", "--set", "racks"}, "\"racks\" is no KEY=VALUE"},
      {{"run", "--set", "rakcs=4"}, "did you mean \"racks\"?"},
      {{"run", "--set", "horizon=300"}, "--set horizon: "},
      {{"run", "defualt"}, "did you mean \"default\"?"},
      {{"run", "no/such.yaml"}, "no/such.yaml: cannot open the file"},
      {{"run", "/"}, "is a directory"},
      {{"run", "--trace", "no/such.jsonl"}, "no/such.jsonl"},
      {{"run", "--copies", "2"}, "give --trace"},
      {{"run", "--trace", "x", "--copies", "0"}, "--copies: needs a whole number from 1 on"},
      {{"run", "--trace", "x", "--keep", "1.5"}, "--keep: needs a number above 0 and at most 1"},
      {{"run", "--trace", "x", "--compress", "nan"}, "--compress: needs a number above 0"},
      {{"run", "--trace", "x", "--set", "horizon=10 s"}, "replayed to its end"},
      {{"run", "--set", "model=llama-9"}, "llama-9"},
      {{"run", "--set", "pools.0.replicas=4000"}, "GPUs"},
      {{"run", "--out", "/dev/null/x"}, "--out: \"/dev/null\" is no folder"},
      {{"trace"}, "racktwin: trace: action is needed"},
      {{"trace", "info"}, "racktwin: trace: file is needed"},
      {{"trace", "inof", "x"}, "did you mean \"info\"?"},
      {{"trace", "info", "no-such"}, "no-such"},
      {{"trace", "info", "x", "--out", "y"}, "belongs to trace convert"},
      {{"catalog", "gpus"}, "did you mean \"gpu\"?"},
      {{"catalog", "gpu", "GB20O"}, "did you mean"},
      {{"catalog", "list", "GB200"}, "list takes no name"},
      {{"catalog", "model", "no/such.json"}, "no/such.json"},
      {{"--completion", "fish"}, "unknown shell \"fish\""},
  };
  for (const auto& [arguments, says] : cases) {
    const Outcome outcome = run(arguments);
    std::string line;
    for (const std::string& argument : arguments) line += argument + " ";
    EXPECT_EQ(outcome.code, exit_misused) << line << outcome.err;
    EXPECT_THAT(outcome.out, IsEmpty()) << line;
    EXPECT_THAT(outcome.err, AllOf(StartsWith("racktwin: "), HasSubstr(says), EndsWith("\n")))
        << line;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
}

TEST(CommandLine, every_verb_has_help_with_examples) {
  for (const VerbRow& verb : verb_table()) {
    const Outcome outcome = verb.name.empty() ? run({"--help"}) : run({verb.name, "--help"});
    EXPECT_EQ(outcome.code, exit_done) << verb.name;
    EXPECT_THAT(outcome.err, IsEmpty());
    for (const VerbRow::Flag& flag : verb.flags) EXPECT_THAT(outcome.out, HasSubstr(flag.name));
    if (!verb.name.empty() && verb.name != "version") {
      EXPECT_THAT(outcome.out, HasSubstr("Examples:")) << verb.name;
      EXPECT_THAT(outcome.out, HasSubstr("racktwin " + verb.name)) << verb.name;
    }
  }
}

TEST(CommandLine, scenarios_that_help_names_exist) {
  const auto names = sim::scenario_names();
  for (const char* name : {"default", "llama8b-h100", "mooncake-8"}) {
    EXPECT_THAT(names, ::testing::Contains(name));
    EXPECT_THAT(run({"run", "--help"}).out, HasSubstr(name));
  }
}

TEST(CommandLine, version_is_printed_by_verb_and_flag) {
  EXPECT_THAT(run({"version"}).out, ::testing::MatchesRegex("racktwin [0-9.]+\n"));
  EXPECT_EQ(run({"version"}).out, run({"--version"}).out);
}

TEST(CommandLine, a_result_that_cannot_be_written_is_refused) {
  Console full;
  full.out = [](std::string_view) { return false; };
  const Outcome outcome = run({"show"}, full);
  EXPECT_EQ(outcome.code, exit_misused);
  EXPECT_THAT(outcome.err, HasSubstr("cannot write the result"));
}

// --- show ---------------------------------------------------------------------------------

TEST(Show, prints_a_scenario_that_shows_as_itself) {
  const Folder folder;
  const Outcome first = run({"show", "default", "--set", "racks=7", "--seed", "3"});
  ASSERT_EQ(first.code, exit_done) << first.err;
  EXPECT_THAT(first.out, AllOf(HasSubstr("racks: 7\n"), HasSubstr("seed: 3\n")));
  EXPECT_EQ(run({"show", folder.write("resolved.yaml", first.out)}).out, first.out);
}

// --- run ----------------------------------------------------------------------------------

TEST(Run, json_is_all_that_stdout_carries) {
  const Outcome outcome = run(with_tiny({"run", "llama8b-h100", "--json"}));
  ASSERT_EQ(outcome.code, exit_done) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_GT(json["completed"], 0);
  EXPECT_THAT(outcome.err, IsEmpty());
}

TEST(Run, the_same_scenario_gives_the_same_bytes_and_another_seed_others) {
  const auto json = [](const char* seed) {
    return run(with_tiny({"run", "llama8b-h100", "--json", "--seed", seed})).out;
  };
  EXPECT_EQ(json("1"), json("1"));
  EXPECT_NE(json("1"), json("2"));
}

TEST(Run, what_show_prints_runs_to_the_same_bytes) {
  const Folder folder;
  const std::string resolved = folder.write("r.yaml", run(with_tiny({"show", "llama8b-h100"})).out);
  EXPECT_EQ(run({"run", resolved, "--json"}).out,
            run(with_tiny({"run", "llama8b-h100", "--json"})).out);
}

TEST(Run, out_takes_the_report_whole) {
  const Folder folder;
  const Outcome outcome =
      run(with_tiny({"run", "llama8b-h100", "--records", "--out", folder / "a/b", "--json"}));
  ASSERT_EQ(outcome.code, exit_done) << outcome.err;
  EXPECT_THAT(folder.files("a/b"),
              ::testing::ElementsAre("report.html", "requests.csv.zst", "summary.json",
                                     "timeseries.csv", "trace.json"));
  EXPECT_EQ(read_file(folder / "a/b/summary.json").value(), outcome.out);
  EXPECT_THAT(outcome.err, HasSubstr("report.html"));
}

TEST(Run, without_out_nothing_is_written) {
  const Folder folder;
  std::filesystem::create_directories(folder / "work");
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder / "work");
  const Outcome outcome = run(with_tiny({"run", "llama8b-h100"}));
  std::filesystem::current_path(before);
  EXPECT_EQ(outcome.code, exit_done);
  EXPECT_THAT(folder.files("work"), IsEmpty());
}

TEST(Run, an_interrupt_leaves_a_marked_partial_result) {
  const Folder folder;
  Console console;
  console.stop_asked = [] { return true; };
  const Outcome outcome = run({"run", "llama8b-h100", "--json", "--out", folder / "out"}, console);
  EXPECT_EQ(outcome.code, exit_interrupted) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["partial"], true);
  EXPECT_THAT(outcome.err, HasSubstr("the result is partial"));
  EXPECT_EQ(Json::parse(read_file(folder / "out/summary.json").value()), json);
}

TEST(Run, progress_waits_two_seconds_and_then_tells_what_is_left) {
  double now = 0;
  Console console;
  console.wall_seconds = [&] { return now += 1; };
  console.err_is_terminal = true;
  const Outcome slow = run({"run", "llama8b-h100"}, console);
  EXPECT_THAT(slow.err, HasSubstr(" % "));
  EXPECT_THAT(slow.err, HasSubstr("ETA "));
  EXPECT_THAT(slow.err, EndsWith("\r\033[K"));  // wiped before the result

  console.wall_seconds = [&] { return now += 1e-6; };
  EXPECT_THAT(run({"run", "llama8b-h100"}, console).err, IsEmpty());
  console.wall_seconds = [&] { return now += 1; };
  console.err_is_terminal = false;
  EXPECT_THAT(run({"run", "llama8b-h100"}, console).err, IsEmpty());
  EXPECT_THAT(run({"run", "llama8b-h100", "--progress"}, console).err,
              AllOf(HasSubstr(" % "), Not(HasSubstr("\r"))));
}

// Six requests, one row of each kind that Mooncake has.
constexpr const char* mooncake =
    R"({"timestamp": 0, "input_length": 1000, "output_length": 20, "hash_ids": [1, 2]}
{"timestamp": 0, "input_length": 1100, "output_length": 20, "hash_ids": [1, 2, 3]}
{"timestamp": 3052, "input_length": 512, "output_length": 1, "hash_ids": [1]}
{"timestamp": 30000, "input_length": 600, "output_length": 40, "hash_ids": [4, 5]}
{"timestamp": 400000, "input_length": 600, "output_length": 40, "hash_ids": [4, 5]}
)";

TEST(Run, a_trace_takes_the_place_of_the_load_from_first_row_to_last) {
  const Folder folder;
  const std::string path = folder.write("a \"b\"\\c.jsonl", mooncake);
  const Outcome outcome = run({"run", "mooncake-8", "--trace", path, "--json"});
  ASSERT_EQ(outcome.code, exit_done) << outcome.err;
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("mooncake"), HasSubstr("ms"), HasSubstr("5 requests")));
  EXPECT_EQ(Json::parse(outcome.out)["completed"], 5);

  const Outcome cut = run({"run", "mooncake-8", "--trace", path, "--json", "--limit", "3"});
  EXPECT_EQ(Json::parse(cut.out)["completed"], 3);
  const Outcome copies = run({"run", "mooncake-8", "--trace", path, "--json", "--copies", "3"});
  EXPECT_EQ(Json::parse(copies.out)["completed"], 15);
}

// --- trace --------------------------------------------------------------------------------

TEST(Trace, info_has_the_keys_that_scripts_rely_on) {
  const Folder folder;
  const Outcome outcome = run({"trace", "info", folder.write("t.jsonl", mooncake), "--json"});
  ASSERT_EQ(outcome.code, exit_done) << outcome.err;
  EXPECT_THAT(outcome.err, IsEmpty());
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["format"], "mooncake");
  EXPECT_EQ(json["time_unit"], "ms");
  EXPECT_EQ(json["requests"], 5);
  EXPECT_EQ(json["span_s"], 400);
  EXPECT_NEAR(json["isl"]["mean"].get<double>(), 762.4, 1e-9);
  EXPECT_EQ(json["isl"]["p50"], 600);
  EXPECT_EQ(json["osl"]["p99"], 40);
  EXPECT_NEAR(json["reuse"].get<double>(), 5.0 / 10, 1e-9);  // blocks 1 2, 1, 4 5 of ten
  EXPECT_TRUE(json["skipped"].is_object());
}

TEST(Trace, info_for_people_names_format_and_unit) {
  const Folder folder;
  const std::string path = folder.write("t.jsonl", mooncake);
  EXPECT_THAT(run({"trace", "info", path}).out,
              AllOf(HasSubstr("mooncake"), HasSubstr("ms"), HasSubstr("50.0 %")));
  EXPECT_THAT(run({"trace", "info", path, "--copies", "2"}).out,
              AllOf(HasSubstr("as recorded"), HasSubstr("scaled")));
}

TEST(Trace, converting_what_is_mooncake_already_keeps_its_statistics) {
  const Folder folder;
  const std::string path = folder.write("t.jsonl", mooncake);
  ASSERT_EQ(run({"trace", "convert", path, "--out", folder / "u.jsonl"}).code, exit_done);
  EXPECT_EQ(run({"trace", "info", folder / "u.jsonl", "--json"}).out,
            run({"trace", "info", path, "--json"}).out);
}

// --- catalog ------------------------------------------------------------------------------

TEST(Catalogue, list_names_all_kinds) {
  const Json json = Json::parse(run({"catalog", "list", "--json"}).out);
  for (const char* kind : {"gpus", "systems", "clusters", "engines", "models"})
    EXPECT_FALSE(json[kind].empty()) << kind;
  EXPECT_THAT(run({"catalog"}).out, HasSubstr("GB300"));
}

TEST(Catalogue, a_model_has_the_keys_that_scripts_rely_on) {
  const Outcome outcome = run({"catalog", "model", "deepseek-r1", "--json"});
  ASSERT_EQ(outcome.code, exit_done) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_NEAR(json["total_params"].get<double>(), 671e9, 0.005 * 671e9);
  EXPECT_NEAR(json["active_params"].get<double>(), 37e9, 0.02 * 37e9);
  EXPECT_EQ(json["layers"], 61);
  EXPECT_EQ(json["attention"], "latent");
  EXPECT_EQ(json["experts"]["routed"], 256);
  EXPECT_EQ(json["experts"]["active"], 8);
  EXPECT_GT(json["kv_bytes_per_token"], 0);
  const Json dense = Json::parse(run({"catalog", "model", "llama-3.1-8b", "--json"}).out);
  EXPECT_TRUE(dense["experts"].is_null());
  EXPECT_EQ(dense["attention"], "grouped-query");
  // 32 layers, keys and values, 8 heads of 128, 2 bytes.
  EXPECT_EQ(dense["kv_bytes_per_token"], 32 * 2 * 8 * 128 * 2);
}

TEST(Catalogue, every_named_thing_prints_with_its_sources) {
  const Json all = Json::parse(run({"catalog", "list", "--json"}).out);
  for (const char* kind : {"gpu", "system", "cluster", "engine", "model"}) {
    for (const std::string name : all[std::string(kind) + "s"]) {
      const Outcome text = run({"catalog", kind, name});
      EXPECT_EQ(text.code, exit_done) << text.err;
      EXPECT_FALSE(text.out.empty());
      const Json json = Json::parse(run({"catalog", kind, name, "--json"}).out);
      for (const Json& figure : json["figures"])
        EXPECT_TRUE(!figure["source"].get<std::string>().empty() ||
                    !figure["note"].get<std::string>().empty())
            << name << " " << figure;
    }
  }
}

}  // namespace
}  // namespace racktwin::cli
