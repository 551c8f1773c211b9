// Result<T>: a value, or the reason why bad *input* gave none. It is the error channel of
// everything that reads a file, a flag or a socket, and of nothing else.
#pragma once

#include <string>
#include <utility>
#include <variant>

#include "base/check.hpp"

namespace racktwin {

struct Error {
  enum class Code {
    invalid_input,  // the user can mend it: wrong key, unit, range, syntax
    not_found,      // a name or file that is not there
    io,             // the system refused to read or write
    unsupported,    // understood, and not modelled
  };
  Code code = Code::invalid_input;
  std::string message;  // a sentence: what was found, what is allowed
  std::string where;    // "scenarios/chat.yaml:12:7", "--tp", or empty

  std::string text() const { return where.empty() ? message : where + ": " + message; }
};

// A Result that carries nothing but success.
struct Done {};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  const T& value() const& {
    RACKTWIN_CHECK(ok());
    return *std::get_if<0>(&state_);
  }
  T&& value() && {
    RACKTWIN_CHECK(ok());
    return std::move(*std::get_if<0>(&state_));
  }
  const Error& error() const& {
    RACKTWIN_CHECK(!ok());
    return *std::get_if<1>(&state_);
  }
  Error&& error() && {
    RACKTWIN_CHECK(!ok());
    return std::move(*std::get_if<1>(&state_));
  }

 private:
  std::variant<T, Error> state_;
};

}  // namespace racktwin

// RACKTWIN_TRY(auto gpu, catalog.gpu("GB200"));  returns the error from the caller, or goes on.
#define RACKTWIN_TRY_CONCAT_(a, b) a##b
#define RACKTWIN_TRY_NAME_(line) RACKTWIN_TRY_CONCAT_(racktwin_try_, line)
#define RACKTWIN_TRY(declaration, expression)                                                     \
  auto RACKTWIN_TRY_NAME_(__LINE__) = (expression);                                               \
  if (!RACKTWIN_TRY_NAME_(__LINE__).ok()) return std::move(RACKTWIN_TRY_NAME_(__LINE__)).error(); \
  declaration = std::move(RACKTWIN_TRY_NAME_(__LINE__)).value()

// The same for a Result<Done>.
#define RACKTWIN_TRY_DONE(expression)                                 \
  do {                                                                \
    auto racktwin_done = (expression);                                \
    if (!racktwin_done.ok()) return std::move(racktwin_done).error(); \
  } while (false)
