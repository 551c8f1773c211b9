#include <fmt/format.h>

#include "base/text.hpp"
#include "catalog/catalog.hpp"
#include "cli/verbs.hpp"
#include "sim/scenario.hpp"

namespace racktwin::cli {
namespace {

// What follows a flag or verb, as words; "" beside it = files too.
struct Names {
  std::vector<std::string> scenarios;
  std::vector<std::pair<std::string, std::vector<std::string>>> catalog;  // by kind
};

Result<Names> names() {
  RACKTWIN_TRY(const catalog::Catalog known, catalog::Catalog::built_in());
  return Names{.scenarios = sim::scenario_names(),
               .catalog = {{"gpu", known.gpus()},
                           {"system", known.systems()},
                           {"cluster", known.clusters()},
                           {"engine", known.engines()},
                           {"model", known.models()}}};
}

std::string flag_words(const VerbRow& verb) {
  std::string words;
  for (const VerbRow::Flag& flag : verb.flags) words += (words.empty() ? "" : " ") + flag.name;
  return words;
}

std::string catalog_cases(const Names& names, std::string_view line) {
  std::string cases;
  for (const auto& [kind, known] : names.catalog)
    cases += fmt::format(fmt::runtime(line), kind, fmt::join(known, " "));
  return cases;
}

std::string bash(const std::vector<VerbRow>& table, const Names& names) {
  std::string verbs, flags;
  for (const VerbRow& verb : table) {
    if (!verb.name.empty()) verbs += (verbs.empty() ? "" : " ") + verb.name;
    flags += fmt::format("    {}) flags=\"{}\" ;;\n", verb.name.empty() ? "''" : verb.name,
                         flag_words(verb));
  }
  return fmt::format(
      R"(# bash completion of racktwin: source it, or save it as
# ~/.local/share/bash-completion/completions/racktwin
_racktwin() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} verb= flags= words= i
  for ((i = 1; i < COMP_CWORD; i++)); do
    [[ ${{COMP_WORDS[i]}} != -* ]] && {{ verb=${{COMP_WORDS[i]}}; break; }}
  done
  case $verb in
{}  esac
  COMPREPLY=()
  case $prev in
    --trace) COMPREPLY=($(compgen -f -- "$cur")); return ;;
    --out) COMPREPLY=($(compgen -f -- "$cur")); return ;;
    --completion) COMPREPLY=($(compgen -W "bash zsh" -- "$cur")); return ;;
    --set|--seed|--copies|--compress|--keep|--limit|--max-context) return ;;
  esac
  if [[ $cur == -* ]]; then COMPREPLY=($(compgen -W "$flags" -- "$cur")); return; fi
  case $verb in
    '') words="{}" ;;
    run|show) COMPREPLY=($(compgen -f -X '!*.yaml' -- "$cur") $(compgen -d -- "$cur"))
      words="{}" ;;
    trace) case $prev in trace) words="info convert" ;; *) COMPREPLY=($(compgen -f -- "$cur")) ;; esac ;;
    catalog) case $prev in
      catalog) words="list gpu system cluster engine model" ;;
{}    esac
    [[ $prev == model ]] && COMPREPLY=($(compgen -f -X '!*.json' -- "$cur") $(compgen -d -- "$cur")) ;;
  esac
  COMPREPLY+=($(compgen -W "$words" -- "$cur"))
}}
complete -o filenames -F _racktwin racktwin
)",
      flags, verbs, fmt::join(names.scenarios, " "),
      catalog_cases(names, "      {}) words=\"{}\" ;;\n"));
}

// In single quotes for zsh; brackets and colons mean something to _arguments.
std::string zsh_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return out;
}

std::string zsh_flags(const VerbRow& verb) {
  std::string flags;
  for (const VerbRow::Flag& flag : verb.flags) {
    const char* values = !flag.takes_value                                ? ""
                         : flag.name == "--completion"                    ? ":shell:(bash zsh)"
                         : flag.name == "--trace" || flag.name == "--out" ? ":file:_files"
                                                                          : ":value: ";
    flags += fmt::format(" \\\n        '{}{}[{}]{}'", flag.name == "--set" ? "*" : "", flag.name,
                         zsh_text(flag.help), values);
  }
  return flags;
}

std::string zsh(const std::vector<VerbRow>& table, const Names& names) {
  std::string verbs, cases, top;
  for (const VerbRow& verb : table) {
    if (verb.name.empty()) {
      top = zsh_flags(verb);
      continue;
    }
    verbs += fmt::format("        '{}:{}'\n", verb.name, zsh_text(verb.help));
    std::string arguments;
    if (verb.name == "run" || verb.name == "show")
      arguments = " \\\n        '1:scenario:_racktwin_scenarios'";
    if (verb.name == "trace") arguments = " \\\n        '1:action:(info convert)' '2:trace:_files'";
    if (verb.name == "catalog")
      arguments =
          " \\\n        '1:kind:(list gpu system cluster engine model)' '2:name:_racktwin_names'";
    cases += fmt::format("      {}) _arguments{}{} ;;\n", verb.name, zsh_flags(verb), arguments);
  }
  return fmt::format(R"(#compdef racktwin
# zsh completion of racktwin: save it as _racktwin in a folder of $fpath
_racktwin_scenarios() {{
  compadd -- {}
  _files -g '*.yaml'
}}
_racktwin_names() {{
  case $words[2] in
{}  esac
  [[ $words[2] == model ]] && _files -g '*.json'
}}
_racktwin() {{
  local state
  _arguments -C{} \
        '1:verb:->verb' '*::argument:->argument'
  case $state in
    verb) local verbs=(
{}      )
      _describe verb verbs ;;
    argument) case $words[1] in
{}    esac ;;
  esac
}}
_racktwin "$@"
)",
                     fmt::join(names.scenarios, " "),
                     catalog_cases(names, "    {}) compadd -- {} ;;\n"), top, verbs, cases);
}

}  // namespace

Result<std::string> completion_script(const std::string& shell) {
  const std::vector<std::string> shells = {"bash", "zsh"};
  RACKTWIN_TRY(const Names known, names());
  if (shell == "bash") return bash(verb_table(), known);
  if (shell == "zsh") return zsh(verb_table(), known);
  return Error{Error::Code::invalid_input, unknown_name("shell", shell, shells), "--completion"};
}

}  // namespace racktwin::cli
