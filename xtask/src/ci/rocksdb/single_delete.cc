// What a database says after a crash of its newest change, if that was a SingleDelete and a flush has dropped it with its put.
//
// Puts a, b and c (changes 1 to 3), deletes b (change 4) and flushes; the process ends there. Opened anew, the database has no b,
// so change 4 is in it; but it counts its changes by the newest one in any table, which is 3. db_stress reads this number, and
// expects b. Usage: single_delete FOLDER single|plain; prints the number before and after, and what became of b.

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "rocksdb/db.h"

using namespace rocksdb;

static void Must(const Status& status) {
  if (status.ok()) return;
  fprintf(stderr, "%s\n", status.ToString().c_str());
  _exit(1);
}

static void WriteAndEnd(const Options& options, const std::string& folder, bool is_single) {
  DB* db = nullptr;
  Must(DB::Open(options, folder, &db));
  for (const char* key : {"a", "b", "c"}) Must(db->Put(WriteOptions(), key, "value"));
  Must(is_single ? db->SingleDelete(WriteOptions(), "b") : db->Delete(WriteOptions(), "b"));
  printf("before %lu", static_cast<unsigned long>(db->GetLatestSequenceNumber()));
  Must(db->Flush(FlushOptions()));
  fflush(stdout);
  _exit(0);
}

int main(int count, char** words) {
  if (count != 3) return 2;
  Options options;
  options.create_if_missing = true;
  const std::string folder = words[1];
  if (fork() == 0) WriteAndEnd(options, folder, words[2] == std::string("single"));
  int ended = 0;
  wait(&ended);
  if (ended != 0) return 1;
  DB* db = nullptr;
  Must(DB::Open(options, folder, &db));
  std::string value;
  const bool is_there = db->Get(ReadOptions(), "b", &value).ok();
  printf(", after %lu, b is %s\n", static_cast<unsigned long>(db->GetLatestSequenceNumber()), is_there ? "there" : "gone");
  delete db;
  return 0;
}
