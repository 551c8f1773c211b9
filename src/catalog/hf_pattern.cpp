#include "catalog/hf_pattern.hpp"

#include <functional>

namespace racktwin::catalog {
namespace {

// A backtracking matcher on the pattern's text itself.
class Matcher {
 public:
  Matcher(std::string_view pattern, std::string_view name, std::int64_t& steps)
      : pattern_(pattern), name_(name), steps_(steps) {}

  Match run() {
    const bool found = alternatives(0, pattern_.size(), 0, [](std::size_t) { return true; });
    return unclear_ ? Match::unclear : found ? Match::yes : Match::no;
  }

 private:
  using Then = std::function<bool(std::size_t)>;  // the rest of the pattern, from a place on

  bool give_up() {
    unclear_ = true;
    return false;
  }

  // The end of the atom at `at`: past ], ), an escape, or one character. 0 = malformed.
  std::size_t atom_end(std::size_t at, std::size_t end) const {
    const char c = pattern_[at];
    if (c == '\\') return at + 2 <= end ? at + 2 : 0;
    if (c == '[') {
      const std::size_t close = pattern_.find(']', at + 2);
      return close < end ? close + 1 : 0;
    }
    if (c != '(') return at + 1;
    int depth = 0;
    for (std::size_t i = at; i < end; ++i) {
      if (pattern_[i] == '\\')
        ++i;
      else if (pattern_[i] == '(')
        ++depth;
      else if (pattern_[i] == ')' && --depth == 0)
        return i + 1;
    }
    return 0;
  }

  bool alternatives(std::size_t begin, std::size_t end, std::size_t at, const Then& then) {
    std::size_t start = begin;
    for (std::size_t i = begin; i <= end && !unclear_;) {
      if (i == end || pattern_[i] == '|') {
        if (sequence(start, i, at, then)) return true;
        start = ++i;
        continue;
      }
      i = atom_end(i, end);
      if (i == 0) return give_up();
    }
    return false;
  }

  bool sequence(std::size_t begin, std::size_t end, std::size_t at, const Then& then) {
    if (unclear_ || --steps_ < 0 || depth_ > 400) return give_up();
    if (begin == end) return then(at);
    const std::size_t after = atom_end(begin, end);
    if (after == 0) return give_up();
    const char mark = after < end ? pattern_[after] : '\0';
    ++depth_;
    bool found = false;
    if (mark == '*' || mark == '+' || mark == '?')
      found = repeat(begin, after, at, mark == '+' ? 1 : 0, mark != '?',
                     [&](std::size_t next) { return sequence(after + 1, end, next, then); });
    else
      found = atom(begin, after, at,
                   [&](std::size_t next) { return sequence(after, end, next, then); });
    --depth_;
    return found;
  }

  bool repeat(std::size_t begin, std::size_t end, std::size_t at, int least, bool many,
              const Then& then) {
    if (unclear_ || --steps_ < 0 || depth_ > 400) return give_up();
    ++depth_;
    const bool more = atom(begin, end, at, [&](std::size_t next) {
      if (next == at) return false;  // an empty turn leads nowhere new
      return many ? repeat(begin, end, next, least - 1, many, then) : then(next);
    });
    --depth_;
    return more || (least <= 0 && then(at));
  }

  bool atom(std::size_t begin, std::size_t end, std::size_t at, const Then& then) {
    const char c = pattern_[begin];
    if (c == '^') return at == 0 && then(at);
    if (c == '$') return at == name_.size() && then(at);
    if (c == '(') {
      std::size_t inner = begin + 1;
      if (pattern_.substr(inner, 2) == "?:")
        inner += 2;
      else if (pattern_[inner] == '?')
        return give_up();
      return alternatives(inner, end - 1, at, then);
    }
    if (c == '*' || c == '+' || c == '?' || c == '{' || c == ')') return give_up();
    if (at >= name_.size() || !accepts(begin, end, name_[at])) return false;
    return then(at + 1);
  }

  bool accepts(std::size_t begin, std::size_t end, char given) {
    const char c = pattern_[begin];
    const bool digit = given >= '0' && given <= '9';
    if (c == '.') return true;
    if (c == '\\') {
      const char what = pattern_[begin + 1];
      if (what == 'd') return digit;
      if (what == 'w')
        return digit || given == '_' || (given >= 'a' && given <= 'z') ||
               (given >= 'A' && given <= 'Z');
      if ((what >= 'a' && what <= 'z') || (what >= 'A' && what <= 'Z') ||
          (what >= '0' && what <= '9'))
        return give_up();
      return given == what;
    }
    if (c != '[') return given == c;
    const bool negated = pattern_[begin + 1] == '^';
    bool inside = false;
    for (std::size_t i = begin + (negated ? 2 : 1); i + 1 < end; ++i) {
      if (pattern_[i] == '\\') return give_up();
      if (i + 3 < end && pattern_[i + 1] == '-') {
        inside = inside || (given >= pattern_[i] && given <= pattern_[i + 2]);
        i += 2;
      } else {
        inside = inside || given == pattern_[i];
      }
    }
    return inside != negated;
  }

  std::string_view pattern_, name_;
  std::int64_t& steps_;
  int depth_ = 0;
  bool unclear_ = false;
};

}  // namespace

bool glob_matches(std::string_view pattern, std::string_view name) {
  std::size_t p = 0, n = 0, star = std::string_view::npos, resume = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

Match regex_matches(std::string_view pattern, std::string_view name, std::int64_t& steps) {
  if (pattern.size() > 512 || name.size() > 256) return Match::unclear;
  return Matcher(pattern, name, steps).run();
}

Match entry_matches(std::string_view entry, std::string_view name, std::int64_t& steps) {
  if (--steps < 0) return Match::unclear;
  if (entry.starts_with("re:")) return regex_matches(entry.substr(3), name, steps);
  if (entry.find('*') != std::string_view::npos) {
    const bool found = glob_matches(entry, name) || glob_matches(std::string(entry) + ".*", name);
    return found ? Match::yes : Match::no;
  }
  if (entry.empty()) return Match::no;
  for (std::size_t at = name.find(entry); at != std::string_view::npos;
       at = name.find(entry, at + 1)) {
    const std::size_t after = at + entry.size();
    if ((at == 0 || name[at - 1] == '.') && (after == name.size() || name[after] == '.'))
      return Match::yes;
  }
  return Match::no;
}

}  // namespace racktwin::catalog
