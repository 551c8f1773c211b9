// Files as they come: compressed, truncated, foreign, huge, in folders; ServeGen's folder.
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <filesystem>
#include <fstream>

#include "workload/trace_test_tools.hpp"

namespace racktwin::workload {
namespace {

namespace fs = std::filesystem;

std::string gzipped(const std::string& text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string zstded(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 1));
  return out;
}

class Folder {
 public:
  explicit Folder(const std::string& name)
      : path_(fs::temp_directory_path() / ("racktwin_trace_" + std::to_string(::getpid()) + name)) {
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string file(const std::string& name, const std::string& content) const {
    std::ofstream(path_ / name, std::ios::binary) << content;
    return (path_ / name).string();
  }
  std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

const std::string rows =
    "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,4808,10\n"
    "2023-11-16 18:17:04.0319600,3180,8\n";

TEST(TraceFiles, gzip_and_zstd_are_read_as_the_text_in_them) {
  const Folder folder("packed");
  for (const std::string& content : {rows, gzipped(rows), zstded(rows),
                                     gzipped(rows) + gzipped("2023-11-16 18:17:04.04,1,1\n")}) {
    EXPECT_EQ(opened(content).info.format, "azure-2023");
    const auto info = inspect_trace(folder.file("x", content), {});
    ASSERT_TRUE(info.ok()) << info.error().text();
    EXPECT_GE(info.value().stats.requests, 2);
  }
  EXPECT_EQ(opened(gzipped(rows) + gzipped("2023-11-16 18:17:04.04,1,1\n")).info.stats.requests, 3);
}

TEST(TraceFiles, cut_and_broken_compression_is_refused) {
  std::string text = rows;
  for (int i = 0; i < 20000; ++i)
    text += "2023-11-16 18:17:05.0319600," + std::to_string(i * 7919 % 9973 + 1) + ",8\n";
  for (const std::string& packed : {gzipped(text), zstded(text)}) {
    const std::string cut = refusal(packed.substr(0, packed.size() / 2));
    EXPECT_NE(cut.find("ends in the middle of its"), std::string::npos) << cut;
    std::string broken = packed;
    for (std::size_t i = broken.size() / 2; i < broken.size() / 2 + 200; ++i) broken[i] = '\x55';
    const std::string said = refusal(broken);
    EXPECT_TRUE(said.find("broken") != std::string::npos || said.starts_with("t:")) << said;
    EXPECT_EQ(said.find("accepted"), std::string::npos) << said;
  }
}

TEST(TraceFiles, a_line_without_an_end_is_refused_and_not_swallowed) {
  // 300 MB in one line, a few kilobytes on disk: refused after 64 MiB of it.
  const std::string huge = zstded(rows + std::string(300u << 20, '7'));
  EXPECT_EQ(refusal(huge), "t:4: the line is longer than 64 MiB; that is the most read");
  const std::string json =
      zstded("{\"timestamp\": 0, \"input_length\": 1, \"output_length\": 1}\n{\"a\": \"" +
             std::string(80u << 20, 'x'));
  EXPECT_EQ(refusal(json), "t:2: the line is longer than 64 MiB; that is the most read");
}

TEST(TraceFiles, what_is_no_trace_is_named_with_what_is) {
  using namespace std::string_literals;
  const std::pair<std::string, std::string> cases[] = {
      {"", "found an empty file"},
      {" \n\n", "found an empty file"},
      {"PAR1\x15\x04\x15"s, "found a Parquet file: convert it to JSON lines first"},
      {"PK\x03\x04zip"s, "found a zip archive: unpack it first"},
      {"SQLite format 3\0xxxx"s, "found an SQLite database"},
      {"\xff\xfeT\0I\0"s, "found UTF-16 text: save it as UTF-8"},
      {"\x01\x02\x03\x04\x05\x06 junk"s, "found binary data"},
      {"time,value\n1,2\n", "found columns \"time,value\""},
      {"Dear reader, this is not a trace at all but a letter to whom it may concern\n",
       "found text that begins \"Dear reader"},
      {"{\"a\": 1, \"b\": 2}\n", "found JSON with the fields a, b"},
      {"[1, 2, 3]\n", "found JSON without named fields"},
      {"{\"id\": 1, \"conversations\": []}\n", "found conversations as texts (ShareGPT)"},
      {"trace_version: 2\ntime_unit: us\n", "found the header of a BLIS TraceV2"},
      {"0,0,0,,0,0\n600,0.1,2,Gamma,0.2,1\n", "found the arrivals of one ServeGen client"},
      {"{\"0\": {\"input_tokens\": \"{1: 1}\", \"output_tokens\": \"{1: 1}\"}}",
       "found the lengths of one ServeGen client"}};
  for (const auto& [content, message] : cases) {
    const std::string said = refusal(content);
    EXPECT_TRUE(said.starts_with("t: " + message)) << said;
    EXPECT_NE(said.find("known trace formats: azure-2023, "), std::string::npos) << said;
    EXPECT_EQ(said.find('\n'), std::string::npos) << said;
  }
  EXPECT_EQ(refusal("version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 2\n"),
            "t: found a Git LFS pointer, not the data: fetch it with git lfs pull");
}

TEST(TraceFiles, missing_files_and_folders_without_a_trace_are_refused) {
  const Folder folder("empty");
  const auto missing = open_trace(folder.path() + "/no.csv", {});
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, Error::Code::not_found);
  EXPECT_EQ(missing.error().text(),
            folder.path() + "/no.csv: cannot open the file: No such file or directory");
  const auto empty = open_trace(folder.path(), {});
  ASSERT_FALSE(empty.ok());
  EXPECT_NE(empty.error().text().find("is a folder without a trace"), std::string::npos);
}

TEST(TraceFiles, options_that_make_no_sense_are_refused_by_name) {
  const std::pair<TraceOptions, std::string> cases[] = {
      {{.scaling = {.copies = 0}}, "copies: 0 is not between"},
      {{.scaling = {.compress = 0}}, "compress: 0 is not between"},
      {{.scaling = {.keep = 0}}, "keep: 0 is no chance"},
      {{.scaling = {.keep = 1.5}}, "keep: 1.5 is no chance"},
      {{.limit = 0}, "limit: 0 requests are not >= 1"},
      {{.max_context = 1}, "max_context: 1 tokens are not >= 2"},
      {{.concurrency = 0}, "concurrency: 0 sessions are not >= 1"},
      {{.format = "mooncak"},
       "format: unknown trace format \"mooncak\"; did you mean \"mooncake\"?"},
      {{.block_tokens = -1}, "block_tokens: -1 is not between"}};
  for (const auto& [options, message] : cases)
    EXPECT_TRUE(refusal(rows, options).starts_with(message)) << refusal(rows, options);
}

TEST(TraceFiles, a_format_that_is_named_is_used_and_every_name_is_known) {
  for (const std::string& format : trace_formats()) {
    const std::string said = refusal(rows, {.format = format});
    if (format.starts_with("azure")) {
      EXPECT_EQ(said,
                "accepted as " + std::string(format == "azure-multimodal" ? format : "azure-2023"));
    } else {
      EXPECT_TRUE(said.starts_with("t")) << format << ": " << said;
    }
  }
}

TEST(TraceFolder, sessions_lie_one_in_a_file) {
  const Folder folder("sessions");
  const std::string one =
      R"({"id":"a","block_size":64,"hash_id_scope":"local","requests":[{"t":0,"type":"n","in":64,"out":1,"hash_ids":[1],"api_time":1}]})";
  folder.file("b.json", one);
  folder.file("a.json.gz", gzipped(one));
  folder.file("README.md", "not a trace");
  const auto info = inspect_trace(folder.path(), {});
  ASSERT_TRUE(info.ok()) << info.error().text();
  EXPECT_EQ(info.value().stats.sessions, 2);
  EXPECT_DOUBLE_EQ(*info.value().stats.reuse, 0);
  folder.file("c.jsonl", "{\"timestamp\": 0, \"input_length\": 1, \"output_length\": 1}\n");
  const auto mixed = inspect_trace(folder.path(), {});
  ASSERT_FALSE(mixed.ok());
  EXPECT_NE(mixed.error().text().find("is a trace of format mooncake, of which one file is read"),
            std::string::npos);
}

class ServeGen : public ::testing::Test {
 protected:
  // Two clients over four windows of 600 s; the second is idle in the first two.
  ServeGen() : folder_("servegen") {
    folder_.file("chunk-0-trace.csv",
                 "0,2.0,1.5,Gamma,0.4,1\n600,2.0,1.5,Weibull,0.6,1\n1200,2.0,1,Gamma,1,1\n"
                 "1800,2.0,1,Gamma,1,1\n");
    folder_.file(
        "chunk-0-dataset.json",
        R"({"0": {"input_tokens": "{100: 0.5, 300.0: 0.5}", "output_tokens": "{7: 1}",)"
        R"( "reason_ratio": "{}"}, "21600": {"input_tokens": "{}", "output_tokens": "{}"}})");
    folder_.file("chunk-10-trace.csv",
                 "0,0,0,,0,0\n600,0,0,,0,0\n1200,6.0,2,Gamma,0.25,1\n1800,6.0,2,Gamma,0.25,1\n");
    folder_.file("chunk-10-dataset.json",
                 R"({"0": {"input_tokens": "{5: 1}", "output_tokens": "{900: 1}"}})");
  }
  Folder folder_;
};

TEST_F(ServeGen, a_folder_of_clients_becomes_its_load) {
  auto trace = open_trace(folder_.path(), {});
  ASSERT_TRUE(trace.ok()) << trace.error().text();
  EXPECT_EQ(trace.value().info.format, "servegen");
  std::map<std::int64_t, std::vector<int>> windows;  // by input length
  for (const Served& served : serve_all(*trace.value().source, unit::sec)) {
    auto& counts = windows[served.request.isl];
    counts.resize(4);
    ++counts.at(static_cast<std::size_t>(served.at() / 600));
    EXPECT_EQ(served.request.osl, served.request.isl == 5 ? 900 : 7);
  }
  ASSERT_EQ(windows.size(), 3u);
  EXPECT_EQ(windows[5][0] + windows[5][1], 0);
  EXPECT_NEAR(windows[5][2], 3600, 600);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(windows[100][i] + windows[300][i], 1200, 250);
  EXPECT_NEAR(static_cast<double>(trace.value().info.stats.requests), 4 * 1200 + 2 * 3600, 1500);
}

TEST_F(ServeGen, scaling_multiplies_and_keeps_clients) {
  TraceOptions options{.scaling = {.copies = 3, .compress = 2}};
  const auto info = inspect_trace(folder_.path(), options);
  ASSERT_TRUE(info.ok());
  EXPECT_NEAR(static_cast<double>(info.value().scaled.requests) /
                  static_cast<double>(info.value().stats.requests),
              3, 0.25);
  EXPECT_NEAR(info.value().scaled.span.in(unit::sec), 1200, 20);
}

TEST_F(ServeGen, broken_clients_are_refused_by_file) {
  const auto said = [&] {
    const auto trace = open_trace(folder_.path(), {});
    return trace.ok() ? std::string("accepted") : trace.error().text();
  };
  folder_.file("chunk-2-trace.csv",
               "0,2.0,1.5,Pareto,0.4,1\n600,0,0,,0,0\n1200,0,0,,0,0\n1800,0,0,,0,0\n");
  EXPECT_NE(said().find("chunk-2-trace.csv:1: has the kind \"Pareto\"; Gamma, Weibull"),
            std::string::npos);
  folder_.file("chunk-2-trace.csv", "0,2.0,1.5,Gamma,0.4,1\n");
  EXPECT_NE(said().find("has 1 windows, the clients before 4"), std::string::npos);
  folder_.file("chunk-2-trace.csv", "0,2,1,Gamma,1,1\n700,0,0,,0,0\n");
  EXPECT_NE(said().find("chunk-2-trace.csv:2: begins at \"700\"; the window at 600 s is due"),
            std::string::npos);
  folder_.file("chunk-2-trace.csv", "0,2,nan,Gamma,1,1\n");
  EXPECT_NE(said().find("has the cv \"nan\""), std::string::npos);
  folder_.file("chunk-2-trace.csv",
               "0,2,1,Gamma,1,1\n600,0,0,,0,0\n1200,0,0,,0,0\n1800,0,0,,0,0\n");
  EXPECT_NE(said().find("chunk-2-dataset.json: the lengths of this client are missing"),
            std::string::npos);
  folder_.file("chunk-2-dataset.json",
               R"({"0": {"input_tokens": "{5: x}", "output_tokens": "{}"}})");
  EXPECT_NE(said().find("that are no dictionary {tokens: weight}"), std::string::npos);
  folder_.file("chunk-2-dataset.json", R"({"0": {"input_tokens": "{}", "output_tokens": "{}"}})");
  EXPECT_NE(said().find("has no lengths for a client that sends"), std::string::npos);
}

}  // namespace
}  // namespace racktwin::workload
