#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "cli/verbs.hpp"

namespace racktwin::cli {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

// A script on disk, and what a shell prints.
class Script {
 public:
  explicit Script(const std::string& shell)
      : path_(std::filesystem::path(::testing::TempDir()) /
              ("racktwin_completion." + std::to_string(::getpid()) + shell)) {
    std::ofstream(path_) << completion_script(shell).value();
  }
  ~Script() { std::filesystem::remove(path_); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

std::string output_of(const std::string& command, int* code = nullptr) {
  std::FILE* pipe = ::popen(command.c_str(), "r");
  std::string text;
  char buffer[256];
  while (pipe && std::fgets(buffer, sizeof buffer, pipe)) text += buffer;
  const int status = pipe ? ::pclose(pipe) : -1;
  if (code) *code = status;
  return text;
}

bool has(const std::string& shell) {
  return !output_of("command -v " + shell).empty();
}

// What bash offers after `line`, whose last word is being typed.
std::vector<std::string> offered(const Script& script, const std::string& line) {
  const std::string text =
      output_of("bash --norc -c 'source " + script.path() + "; COMP_WORDS=(" + line +
                "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _racktwin; printf \"%s\\n\" "
                "\"${COMPREPLY[@]}\"'");
  std::vector<std::string> words;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

TEST(Completion, bash_offers_verbs_flags_and_names) {
  if (!has("bash")) GTEST_SKIP() << "no bash here";
  const Script script("bash");
  EXPECT_THAT(offered(script, "racktwin r"), ::testing::ElementsAre("run"));
  EXPECT_THAT(offered(script, "racktwin \"\""),
              IsSupersetOf({"run", "show", "catalog", "trace", "version"}));
  EXPECT_THAT(offered(script, "racktwin run --se"), IsSupersetOf({"--seed", "--set"}));
  EXPECT_THAT(offered(script, "racktwin run --se"), Not(Contains("--json")));
  EXPECT_THAT(offered(script, "racktwin show --j"), Not(Contains("--json")));
  EXPECT_THAT(offered(script, "racktwin run def"), Contains("default"));
  EXPECT_THAT(offered(script, "racktwin run default --rec"), ::testing::ElementsAre("--records"));
  EXPECT_THAT(offered(script, "racktwin trace \"\""), IsSupersetOf({"info", "convert"}));
  EXPECT_THAT(offered(script, "racktwin catalog \"\""), IsSupersetOf({"list", "gpu", "model"}));
  EXPECT_THAT(offered(script, "racktwin catalog gpu GB"), IsSupersetOf({"GB200", "GB300"}));
  EXPECT_THAT(offered(script, "racktwin catalog model deepseek"), Contains("deepseek-r1-nvfp4"));
  EXPECT_THAT(offered(script, "racktwin --completion \"\""), IsSupersetOf({"bash", "zsh"}));
}

TEST(Completion, every_verb_and_flag_is_in_both_scripts) {
  const std::string bash = completion_script("bash").value();
  const std::string zsh = completion_script("zsh").value();
  for (const VerbRow& verb : verb_table()) {
    EXPECT_THAT(bash, HasSubstr(verb.name));
    EXPECT_THAT(zsh, HasSubstr(verb.name));
    for (const VerbRow::Flag& flag : verb.flags) {
      EXPECT_THAT(bash, HasSubstr(flag.name));
      EXPECT_THAT(zsh, HasSubstr("'" + std::string(flag.name == "--set" ? "*" : "") + flag.name));
    }
  }
}

TEST(Completion, both_scripts_are_sound_shell) {
  for (const char* shell : {"bash", "zsh"}) {
    if (!has(shell)) continue;
    const Script script(shell);
    int code = -1;
    EXPECT_EQ(output_of(std::string(shell) + " -n " + script.path() + " 2>&1", &code), "");
    EXPECT_EQ(code, 0) << shell;
  }
}

// A terminal of its own, in which Tab is pressed.
TEST(Completion, zsh_completes_in_a_terminal) {
  if (!has("zsh")) GTEST_SKIP() << "no zsh here";
  const Script script("zsh");
  const std::string folder = ::testing::TempDir() + "racktwin_zsh" + std::to_string(::getpid());
  std::filesystem::create_directories(folder);
  std::filesystem::copy_file(script.path(), folder + "/_racktwin",
                             std::filesystem::copy_options::overwrite_existing);
  std::ofstream(folder + "/press.zsh") << R"(
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PS1=; fpath=($1 \$fpath); autoload -Uz compinit; compinit -D -u; print ready"
zpty -r -m shell line '*ready*'
zpty -r -m shell line '*ready*'
for typed expected in 'racktwin sho' 'racktwin show' 'racktwin run --rec' 'run --records' \
                      'racktwin catalog gpu GB3' 'gpu GB300' 'racktwin trace conv' 'trace convert'; do
  zpty -n -w shell "$typed"$'\t'
  zpty -r -m shell line "*$expected*" && print -r -- "$expected"
  zpty -n -w shell $'\C-u'
done
zpty -d shell
)";
  const std::string text =
      output_of("timeout 30 zsh -f " + folder + "/press.zsh " + folder + " 2>&1");
  EXPECT_EQ(text, "racktwin show\nrun --records\ngpu GB300\ntrace convert\n");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace racktwin::cli
