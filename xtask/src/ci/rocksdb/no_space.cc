// A compaction that does not fit: RocksDB is told so, loses nothing, and goes on once tables were dropped.
//
// Keys of 65 % of the drive are written, and those of 25 % anew; a compaction of both generations does not fit then. When it was
// refused, the older tables are dropped (DeleteFilesInRange, which needs no room), and it is tried again. RocksDB itself asks for
// twice the room of a compaction after it was told of no space, hence so few.
// Usage: no_space URI; prints what happened, a line each.

#include <cstdio>
#include <memory>
#include <string>

#include "rocksdb/convenience.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/file_system.h"

using namespace rocksdb;

static const size_t kValueBytes = 1000;

static void Must(const char* doing, const Status& status) {
  if (status.ok()) return;
  fprintf(stderr, "%s: %s\n", doing, status.ToString().c_str());
  exit(1);
}

static std::string Key(uint64_t number) {
  char key[32];
  snprintf(key, sizeof key, "%012llu", static_cast<unsigned long long>(number));
  return key;
}

static std::string Value(uint64_t number, char generation) {
  std::string value = Key(number);
  value.resize(kValueBytes, generation);
  return value;
}

// Writes the first keys.
static void Fill(DB* db, uint64_t count, char generation) {
  for (uint64_t number = 0; number < count; number++) {
    Must("put", db->Put(WriteOptions(), Key(number), Value(number, generation)));
  }
  Must("flush", db->Flush(FlushOptions()));
}

static void Check(DB* db, uint64_t first, uint64_t end, char generation) {
  std::string value;
  for (uint64_t number = first; number < end; number++) {
    Must("get", db->Get(ReadOptions(), Key(number), &value));
    if (value == Value(number, generation)) continue;
    fprintf(stderr, "key %s has another value than was written last\n", Key(number).c_str());
    exit(1);
  }
}

static Options Small(Env* env) {
  Options options;
  options.env = env;
  options.create_if_missing = true;
  options.compression = kNoCompression;
  options.disable_auto_compactions = true;
  options.level0_slowdown_writes_trigger = options.level0_stop_writes_trigger = 1000;
  options.write_buffer_size = options.target_file_size_base = 1 << 20;
  options.max_bytes_for_level_base = 1 << 30;
  return options;
}

int main(int count, char** words) {
  if (count != 2) return 2;
  std::shared_ptr<FileSystem> files;
  Must("file system", FileSystem::CreateFromString(ConfigOptions(), words[1], &files));
  std::unique_ptr<Env> env = NewCompositeEnv(files);
  DB* db = nullptr;
  Must("open", DB::Open(Small(env.get()), "/db", &db));
  uint64_t free_bytes = 0;
  Must("free space", env->GetFreeSpace("/db", &free_bytes));
  const uint64_t keys = free_bytes / (kValueBytes + 40) * 65 / 100, anew = keys * 25 / 65;
  Fill(db, keys, 'a');
  Must("compact what fits", db->CompactRange(CompactRangeOptions(), nullptr, nullptr));
  Fill(db, anew, 'b');
  const Status refused = db->CompactRange(CompactRangeOptions(), nullptr, nullptr);
  printf("compaction: %s\n", refused.IsNoSpace() ? "no space" : refused.ToString().c_str());
  Check(db, 0, anew, 'b');
  Check(db, anew, keys, 'a');
  printf("every key is there\n");
  Must("drop tables", DeleteFilesInRange(db, db->DefaultColumnFamily(), nullptr, nullptr));
  Must("resume", db->Resume());
  Must("compact again", db->CompactRange(CompactRangeOptions(), nullptr, nullptr));
  Check(db, 0, anew, 'b');
  Must("put again", db->Put(WriteOptions(), "more", "value"));
  printf("after tables were dropped the compaction succeeds\n");
  Must("close", db->Close());
  delete db;
  return 0;
}
