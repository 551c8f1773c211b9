#include "cli/command_line.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "base/text.hpp"
#include "base/version.hpp"
#include "cli/verbs.hpp"

namespace racktwin::cli {
namespace {

constexpr const char* about =
    "racktwin: what will this cluster of GPUs deliver with this model and this workload?\n"
    "Simulates LLM serving on a rack-scale cluster and says what limits it.";

constexpr const char* run_examples = R"(Examples:
  racktwin run                                     the reference cluster, five minutes
  racktwin run --out out/demo                      and the report in out/demo/report.html
  racktwin run llama8b-h100 --set load.rate='20 /s'
  racktwin run my.yaml --seed 7 --json | jq .output_throughput
  racktwin run mooncake-8 --trace conversation_trace.jsonl --records --out out/mooncake
  racktwin run --trace azure_code.csv --copies 200   independent copies, to cluster size

SCENARIO is a YAML file or one of the scenarios in the binary (default: default).
The result goes to stdout, all else to stderr.
Exit code: 0 done, 1 could not, 2 misused, 130 interrupted (the partial result is written).)";

constexpr const char* show_examples = R"(Examples:
  racktwin show                          the default scenario with every default spelt out
  racktwin show my.yaml --set racks=2 > resolved.yaml
  racktwin run resolved.yaml             gives the same bytes as the run it came from)";

constexpr const char* catalog_examples = R"(Examples:
  racktwin catalog list
  racktwin catalog gpu GB300                     every figure with its source
  racktwin catalog model deepseek-r1-nvfp4
  racktwin catalog model path/to/config.json --json | jq .total_params)";

constexpr const char* trace_examples = R"(Examples:
  racktwin trace info conversation_trace.jsonl
  racktwin trace info azure_code.csv --json | jq .isl.p99
  racktwin trace info azure_code.csv --copies 100     burstiness and reuse before and after
  racktwin trace convert sessions.jsonl --out mooncake.jsonl

Formats are recognised by content, .gz and .zst are read as they are.)";

struct Flags {  // all that can be said; a verb takes its own
  RunCommand run;
  ShowCommand show;
  CatalogCommand catalog;
  TraceCommand trace;
  std::string action = "info", completion;
  bool version = false;
};

// A flag with one text value, at most once.
template <class Value>
void value(CLI::App& app, const char* name, Value& target, const char* what, const char* help) {
  app.add_option(name, target, help)->type_name(what);
}

void scaling_flags(CLI::App& app, TraceFlags& flags) {
  value(app, "--copies", flags.copies, "N", "superpose N copies, each at a random phase");
  value(app, "--compress", flags.compress, "X", "divide time by X (keeps burstiness)");
  value(app, "--keep", flags.keep, "P", "keep each request with this chance");
  value(app, "--limit", flags.limit, "N", "read the first N requests only");
  value(app, "--max-context", flags.max_context, "TOKENS", "leave longer requests out");
}

void scenario_flags(CLI::App& app, std::string& scenario, std::vector<std::string>& set,
                    std::optional<std::string>& seed) {
  app.add_option("scenario", scenario, "YAML file or name of a built-in scenario")
      ->type_name("SCENARIO");
  app.add_option("--set", set, "replace one value of the scenario: pools.0.replicas=4")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  value(app, "--seed", seed, "N", "seed of all random streams");
}

void declare_run(CLI::App& app, RunCommand& run) {
  CLI::App& verb = *app.add_subcommand("run", "simulate a scenario and report");
  scenario_flags(verb, run.scenario, run.set, run.seed);
  value(verb, "--trace", run.trace, "FILE", "replay this trace instead of the scenario's load");
  scaling_flags(verb, run.trace_flags);
  value(verb, "--out", run.out, "DIR",
        "write report.html, summary.json, timeseries.csv and trace.json there");
  verb.add_flag("--json", run.json, "print summary.json instead of the summary");
  verb.add_flag("--records", run.records, "keep every request: requests.csv.zst in DIR");
  verb.add_flag("--progress", run.progress, "show progress though stderr is no terminal");
  verb.footer(run_examples);
}

void declare(CLI::App& app, Flags& flags) {
  app.set_help_flag("-h,--help", "print this help");
  app.add_flag("--version", flags.version, "print the version");
  value(app, "--completion", flags.completion, "SHELL", "print a completion script: bash, zsh");
  declare_run(app, flags.run);

  CLI::App& show = *app.add_subcommand("show", "print a scenario with every default spelt out");
  scenario_flags(show, flags.show.scenario, flags.show.set, flags.show.seed);
  show.footer(show_examples);

  CLI::App& catalog =
      *app.add_subcommand("catalog", "what is known of hardware, engines and models, and whence");
  catalog.add_option("kind", flags.catalog.kind, "list, gpu, system, cluster, engine or model")
      ->type_name("KIND");
  catalog.add_option("name", flags.catalog.name, "name, or a Hugging Face config.json")
      ->type_name("NAME");
  catalog.add_flag("--json", flags.catalog.json, "print JSON");
  catalog.footer(catalog_examples);

  CLI::App& trace = *app.add_subcommand("trace", "inspect or convert a recorded trace");
  trace.add_option("action", flags.action, "info or convert")->type_name("ACTION")->required();
  trace.add_option("file", flags.trace.file, "the trace")->type_name("FILE")->required();
  scaling_flags(trace, flags.trace.flags);
  value(trace, "--seed", flags.trace.seed, "N", "seed of --copies and --keep");
  value(trace, "--out", flags.trace.out, "FILE", "convert: write Mooncake JSONL there");
  trace.add_flag("--json", flags.trace.json, "info: print JSON");
  trace.footer(trace_examples);

  app.add_subcommand("version", "print the version");
  for (CLI::App* verb : app.get_subcommands({})) verb->allow_extras();
  app.allow_extras();
}

const std::string nowhere;

Error refused(std::string message, std::string where) {
  return {Error::Code::invalid_input, std::move(message), std::move(where)};
}

std::vector<std::string> verb_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(verb->get_name());
  return names;
}

std::vector<std::string> flag_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

// What CLI11 did not know what to do with.
Error surplus(const CLI::App& verb, const std::vector<std::string>& extras) {
  const std::string& place = verb.get_parent() ? verb.get_name() : nowhere;
  for (const std::string& extra : extras) {
    if (extra.size() < 2 || extra[0] != '-') continue;
    return refused(unknown_name("flag", extra.substr(0, extra.find('=')), flag_names(verb)), place);
  }
  return refused(fmt::format("\"{}\" is one argument too many", extras.front()), place);
}

// A sentence for what CLI11 refuses: its message begins with the option's name.
Error refusal_of(const CLI::App& verb, const CLI::ParseError& error) {
  const std::string& place = verb.get_parent() ? verb.get_name() : nowhere;
  const std::string what = error.what();
  const std::string name = what.substr(0, what.find_first_of(": "));
  if (dynamic_cast<const CLI::RequiredError*>(&error))
    return refused(fmt::format("{} is needed; see racktwin {} --help", name, place), place);
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error)) {
    const CLI::Option* option = name[0] == '-' ? verb.get_option_no_throw(name) : nullptr;
    return refused(option && option->count() > 1 ? fmt::format("{} is given twice", name)
                                                 : fmt::format("{} needs a value", name),
                   place);
  }
  return refused(what, place);
}

Result<Command> chosen(const CLI::App& verb, Flags& flags) {
  const std::string& name = verb.get_name();
  if (name == "run") return Command{std::move(flags.run)};
  if (name == "show") return Command{std::move(flags.show)};
  if (name == "catalog") return Command{std::move(flags.catalog)};
  if (name == "version") return Command{TextCommand{fmt::format("racktwin {}\n", version)}};
  const std::vector<std::string> actions = {"info", "convert"};
  const auto action = std::find(actions.begin(), actions.end(), flags.action);
  if (action == actions.end())
    return refused(unknown_name("action", flags.action, actions), "trace");
  flags.trace.action = static_cast<TraceCommand::Action>(action - actions.begin());
  return Command{std::move(flags.trace)};
}

}  // namespace

Result<Command> parse_command_line(std::span<const std::string> arguments) {
  CLI::App app(about, "racktwin");
  Flags flags;
  declare(app, flags);
  const std::vector<std::string> verbs = verb_names(app);
  if (!arguments.empty() && !arguments[0].empty() && arguments[0][0] != '-' &&
      std::find(verbs.begin(), verbs.end(), arguments[0]) == verbs.end())
    return refused(unknown_name("verb", arguments[0], verbs), {});

  const auto verb = [&]() -> const CLI::App& {
    const auto given = app.get_subcommands();
    return given.empty() ? app : *given.front();
  };
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    return Command{TextCommand{app.help()}};
  } catch (const CLI::ParseError& error) {
    return refusal_of(verb(), error);
  }
  if (const auto extras = app.remaining(true); !extras.empty()) return surplus(verb(), extras);
  if (flags.version) return Command{TextCommand{fmt::format("racktwin {}\n", version)}};
  if (!flags.completion.empty()) {
    RACKTWIN_TRY(std::string script, completion_script(flags.completion));
    return Command{TextCommand{std::move(script)}};
  }
  if (app.get_subcommands().empty())
    return refused(fmt::format("a verb is needed: {}; see racktwin --help", fmt::join(verbs, ", ")),
                   {});
  return chosen(verb(), flags);
}

std::vector<VerbRow> verb_table() {
  CLI::App app(about, "racktwin");
  Flags flags;
  declare(app, flags);
  const std::map<std::string, std::vector<std::string>> words = {
      {"catalog", {"list", "gpu", "system", "cluster", "engine", "model"}},
      {"trace", {"info", "convert"}}};
  std::vector<VerbRow> table;
  const auto add = [&](const CLI::App& verb) {
    VerbRow row{.name = verb.get_parent() ? verb.get_name() : "",
                .help = verb.get_parent() ? verb.get_description() : ""};
    for (const CLI::Option* option : verb.get_options())
      for (const std::string& name : option->get_lnames())
        row.flags.push_back(
            {"--" + name, option->get_description(), option->get_items_expected_max() > 0});
    if (const auto found = words.find(row.name); found != words.end()) row.words = found->second;
    table.push_back(std::move(row));
  };
  add(app);
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) add(*verb);
  return table;
}

}  // namespace racktwin::cli
