// Patterns of module names in quantisation lists: plain names, globs, and the regular
// expressions of compressed-tensors. Bounded: no pattern can make the match run long.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace racktwin::catalog {

// `*` stands for any run of characters, dots included (Python's fnmatch, without ? and []).
bool glob_matches(std::string_view pattern, std::string_view name);

// Python's re.match: anchored at the start, not at the end. Understood: literals, . \. \d \w,
// (a|b), [abc], * + ?, ^ $. What is not understood, and a match that needs more steps than
// are left in `steps`, is `unclear`; the steps that were taken are subtracted.
enum class Match { no, yes, unclear };
Match regex_matches(std::string_view pattern, std::string_view name, std::int64_t& steps);

// A list entry as the engines read it: "re:..." is a regex; a name with `*` is a glob of the
// module or of one it lies in; any other is the module, one it lies in, or its last parts.
Match entry_matches(std::string_view entry, std::string_view name, std::int64_t& steps);

}  // namespace racktwin::catalog
